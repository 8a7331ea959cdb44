//! A study whose tasks have known content: measured classes of equal outputs, the same on each tile.

use crate::random::Random;
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_regions::{Digest, ElementType, RegionIdentity, RegionKey, TaskKey};
use pleach_workflow::{InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput, Value};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A task of the stage, in the order of most reuse.
#[derive(Clone, Debug)]
pub struct SharedTask {
    /// Column of its values among the tasks of the measured table.
    pub column: usize,
    /// First column of its outputs among the outputs of the table.
    pub first_output: usize,
    /// Number of its outputs.
    pub outputs: usize,
    /// Inputs: outputs of earlier tasks as (task, output). `None` is the tile.
    pub reads: Vec<Option<(usize, usize)>>,
    /// Seconds of a run.
    pub seconds: f64,
}

/// A study on one tile, or on several without equal contents.
#[derive(Clone, Debug)]
pub struct SharedStudy {
    pub(super) stage: Stage,
    pub(super) tasks: Vec<SharedTask>,
    /// By instance: the values of each task, then the content of each output.
    rows: Vec<Vec<u32>>,
    tiles: u32,
    /// Coefficient of variation of task times, from tile to tile and again from task to task.
    variation: f64,
    /// Content of the outputs by task, values and content of the inputs.
    contents: HashMap<(usize, i64, Vec<Digest>), Vec<Digest>>,
    pub(super) scope: ReuseScope,
    pub(super) region_bytes: u64,
}

/// Cost of a study in one reuse scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudyCost {
    /// Seconds of all instances, without reuse within the stage.
    pub stage_seconds: f64,
    /// Seconds of the distinct tasks.
    pub unique_seconds: f64,
    /// Distinct tasks.
    pub unique_tasks: usize,
    /// Seconds of the longest path of an instance.
    pub critical_seconds: f64,
}

/// Returns the key of a tile.
fn tile_key(tile: u32) -> RegionKey {
    let mut key = [1; 16];
    key[..4].copy_from_slice(&tile.to_le_bytes());
    RegionKey(key)
}

/// Returns the content of the same output on a tile, from that on the first tile.
fn of_tile(Digest(mut bytes): Digest, tile: u32) -> Digest {
    bytes[8..12].copy_from_slice(&tile.to_le_bytes());
    Digest(bytes)
}

fn digest(task: usize, output: usize, class: u32) -> Digest {
    let mut bytes = [0; 32];
    bytes[..3].copy_from_slice(&[1, task as u8, output as u8]);
    bytes[4..8].copy_from_slice(&class.to_le_bytes());
    Digest(bytes)
}

impl SharedStudy {
    /// Creates a study from a table with a row for each instance: numbers that identify the values of each task, then numbers
    /// that identify the content of each output. Instances are sorted by the tasks' order. `region_bytes` is the size of each
    /// output.
    #[must_use]
    pub fn new(
        tasks: Vec<SharedTask>,
        mut rows: Vec<Vec<u32>>,
        scope: ReuseScope,
        region_bytes: u64,
    ) -> Self {
        let values = |row: &Vec<u32>| tasks.iter().map(|task| row[task.column]).collect::<Vec<u32>>();
        rows.sort_by_cached_key(values);
        let stage = stage(&tasks);
        let (tiles, variation, contents) = (1, 0.0, HashMap::new());
        let mut study = Self { stage, tasks, rows, tiles, variation, contents, scope, region_bytes };
        for row in 0..study.rows.len() {
            for task in 0..study.tasks.len() {
                let reads = study.read_contents(row, task);
                let value = i64::from(study.rows[row][study.tasks[task].column]);
                let outputs = study.output_contents(row, task);
                study.contents.insert((task, value, reads), outputs);
            }
        }
        study
    }

    /// Repeats the study on this number of tiles, with log-normal task times of this coefficient of variation.
    #[must_use]
    pub fn on_tiles(self, tiles: u32, variation: f64) -> Self {
        Self { tiles, variation, ..self }
    }

    fn tile_of(&self, instance: InstanceId) -> u32 {
        (instance.index() / self.rows.len().max(1)) as u32
    }

    /// Returns the key of the tile of an instance.
    pub(super) fn tile_key(&self, instance: InstanceId) -> RegionKey {
        tile_key(self.tile_of(instance))
    }

    /// Returns the seconds of a task with this key, which an instance needs.
    pub(super) fn seconds(&self, task: usize, instance: InstanceId, key: &TaskKey) -> f64 {
        let mut word = [0; 8];
        word.copy_from_slice(&key.0[..8]);
        let tile = Random::of(u64::from(self.tile_of(instance)), &[1]).factor(self.variation);
        let own = Random::of(u64::from_le_bytes(word), &[2]).factor(self.variation);
        self.tasks[task].seconds * tile * own
    }

    /// Returns the mean seconds of a task.
    pub(super) fn task_seconds(&self, task: usize) -> f64 {
        self.tasks[task].seconds
    }

    /// Returns the time of the longest path from the start of each task to the end of an instance.
    pub(super) fn paths(&self) -> Vec<Duration> {
        let mut paths: Vec<f64> = self.tasks.iter().map(|task| task.seconds).collect();
        // Readers come after the tasks that they read.
        for (reader, task) in self.tasks.iter().enumerate().rev() {
            for (read, _) in task.reads.iter().flatten() {
                paths[*read] = paths[*read].max(self.tasks[*read].seconds + paths[reader]);
            }
        }
        paths.into_iter().map(Duration::from_secs_f64).collect()
    }

    fn output_contents(&self, row: usize, task: usize) -> Vec<Digest> {
        let first = self.tasks.len() + self.tasks[task].first_output;
        let class = |output: usize| digest(task, output, self.rows[row][first + output]);
        (0..self.tasks[task].outputs).map(class).collect()
    }

    fn read_contents(&self, row: usize, task: usize) -> Vec<Digest> {
        let reads = self.tasks[task].reads.iter().flatten();
        reads.map(|(task, output)| self.output_contents(row, *task)[*output]).collect()
    }

    /// Returns the content of the outputs of a task that an instance needs.
    pub(super) fn outputs(
        &self,
        task: usize,
        instance: InstanceId,
        arguments: &[Value],
        reads: Vec<Digest>,
    ) -> Vec<Digest> {
        let Some(Value::Integer(value)) = arguments.first().copied() else { return Vec::new() };
        let reads = reads.into_iter().map(|read| of_tile(read, 0)).collect();
        let outputs = self.contents.get(&(task, value, reads)).into_iter().flatten();
        outputs.map(|output| of_tile(*output, self.tile_of(instance))).collect()
    }

    /// Returns the identity of an output in the keys of its readers, where it is its content.
    pub(super) fn identity(&self, provenance: RegionIdentity, content: Digest) -> RegionIdentity {
        if self.scope == ReuseScope::Value { RegionIdentity(content.0) } else { provenance }
    }

    /// Returns the cost of the study on one tile in its scope.
    #[must_use]
    pub fn cost(&self) -> StudyCost {
        let all: f64 = self.tasks.iter().map(|task| task.seconds).sum();
        let (mut unique_seconds, mut seen) = (0.0, HashSet::new());
        for row in 0..self.rows.len() {
            for (number, task) in self.tasks.iter().enumerate() {
                let inputs = match self.scope {
                    ReuseScope::Value => self.read_contents(row, number),
                    ReuseScope::Tree | ReuseScope::Dataflow => Vec::new(),
                };
                let values = if inputs.is_empty() { self.ancestors(row, number) } else { Vec::new() };
                let key = (number, self.rows[row][task.column], inputs, values);
                if seen.insert(key) {
                    unique_seconds += task.seconds;
                }
            }
        }
        let mut ends: Vec<f64> = Vec::new();
        for task in &self.tasks {
            let begin = task.reads.iter().flatten().map(|(task, _)| ends[*task]).fold(0.0, f64::max);
            ends.push(begin + task.seconds);
        }
        StudyCost {
            stage_seconds: all * self.rows.len() as f64,
            unique_seconds,
            unique_tasks: seen.len(),
            critical_seconds: ends.into_iter().fold(0.0, f64::max),
        }
    }

    /// Returns the seconds of the longest path on the slowest tile, without the variation from task to task.
    #[must_use]
    pub fn critical_seconds(&self) -> f64 {
        let factor = |tile: u32| Random::of(u64::from(tile), &[1]).factor(self.variation);
        self.cost().critical_seconds * (0..self.tiles).map(factor).fold(0.0, f64::max)
    }

    /// Returns the values that a task and the tasks before it consume.
    fn ancestors(&self, row: usize, task: usize) -> Vec<u32> {
        let reads = self.tasks[task].reads.iter().flatten().map(|(task, _)| *task);
        let mut values: Vec<u32> = reads.flat_map(|task| self.ancestors(row, task)).collect();
        values.push(self.rows[row][self.tasks[task].column]);
        values
    }

    /// Plans one contiguous range of instances for each of `ranges` workers. Ranges have about equal costs, where a task
    /// counts for the first instance that needs it. A range ends with its tile.
    #[must_use]
    pub fn plan(&self, ranges: usize) -> ExecutionPlan {
        let rows = (0..self.tiles).flat_map(|tile| self.rows.iter().map(move |row| (tile, row)));
        let instance = |(number, (tile, row)): (u32, (u32, &Vec<u32>))| InstancePlan {
            stage: 0,
            parameters: self.tasks.iter().map(|task| Value::Integer(i64::from(row[task.column]))).collect(),
            inputs: vec![tile_key(tile)],
            outputs: vec![OutputPlan { key: output_key(number), stored: false, reported: true }],
            parents: Vec::new(),
        };
        let instances = (0..).zip(rows).map(instance).collect();
        let mut seen = HashSet::new();
        let mut cost = |row: usize| -> f64 {
            let new = |number: &usize| seen.insert((*number, self.ancestors(row, *number)));
            let new: Vec<usize> = (0..self.tasks.len()).filter(new).collect();
            new.into_iter().map(|number| self.tasks[number].seconds).sum()
        };
        let costs: Vec<f64> = (0..self.rows.len()).map(&mut cost).collect();
        let (total, mut sum) = (costs.iter().sum::<f64>() * f64::from(self.tiles), 0.0);
        let mut buckets: Vec<BucketPlan> = Vec::new();
        let mut last = (u32::MAX, usize::MAX);
        let costs = (0..self.tiles).flat_map(|tile| costs.iter().map(move |cost| (tile, *cost)));
        for (number, (tile, cost)) in (0..).zip(costs) {
            let range = (tile, ((sum + cost / 2.0) / total * ranges as f64) as usize);
            sum += cost;
            if range != last {
                last = range;
                buckets.push(BucketPlan { instances: Vec::new(), pixels: self.region_bytes });
            }
            if let Some(bucket) = buckets.last_mut() {
                bucket.instances.push(InstanceId(number));
            }
        }
        ExecutionPlan {
            stages: vec![self.stage.clone()],
            ranks: vec![self.cost().critical_seconds as f32; self.rows.len() * self.tiles as usize],
            instances,
            buckets,
            sharing: self.scope,
            ..ExecutionPlan::default()
        }
    }
}

fn output_key(number: u32) -> RegionKey {
    RegionKey((2_u128 << 64 | u128::from(number)).to_be_bytes())
}

fn stage(tasks: &[SharedTask]) -> Stage {
    let region = |name: String| RegionDecl { region: name, element: ElementType::Gray8 };
    let task = |(number, task): (usize, &SharedTask)| Task {
        name: format!("t{}", task.column + 1),
        description: String::new(),
        operation: format!("simulated.t{}", task.column + 1),
        version: 1,
        arguments: vec![number],
        reads: task
            .reads
            .iter()
            .map(|read| {
                read.map_or(TaskInput::StageInput(0), |(task, output)| TaskInput::Task { task, output })
            })
            .collect(),
        writes: (0..task.outputs).map(|output| region(format!("out{output}"))).collect(),
        guard: None,
    };
    Stage {
        name: "segment".to_owned(),
        description: String::new(),
        inputs: vec![StageInput::new(region("tile".to_owned()), InputOrigin::Input(0))],
        outputs: vec![StageOutput::new(region("mask".to_owned()), tasks.len() - 1, 0)],
        parameters: (0..tasks.len()).collect(),
        tasks: tasks.iter().enumerate().map(task).collect(),
        switch: None,
    }
}
