//! The study to simulate: a plan with the seconds of its tasks by kind of slot.

use super::TaskRuns;
use crate::random::Random;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_dispatch::stage::{DeviceTask, GAIN_UNIT};
use pleach_dispatch::{InstanceId, SlotKind};
use pleach_regions::{ElementType, RegionKey};
use pleach_workflow::{InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput};
use std::time::Duration;
use thiserror::Error;

/// Mean seconds of a task of a stage on each kind of slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskSeconds {
    /// On a core. `None` without a variant for cores.
    pub core: Option<f64>,
    /// On an accelerator, without transfers. `None` without a variant for accelerators.
    pub accelerator: Option<f64>,
}

impl TaskSeconds {
    /// A task without time, which ends without a slot.
    pub const NONE: Self = Self { core: Some(0.0), accelerator: None };

    /// Returns the seconds on a kind of slot. `None` without a variant for it.
    #[must_use]
    pub fn on(&self, kind: SlotKind) -> Option<f64> {
        match kind {
            SlotKind::Core => self.core,
            SlotKind::Accelerator => self.accelerator,
        }
    }

    fn is_valid(&self) -> bool {
        let is_positive = |seconds: f64| seconds > 0.0 && seconds.is_finite();
        *self == Self::NONE
            || [self.core, self.accelerator].into_iter().flatten().all(is_positive)
                && (self.core.is_some() || self.accelerator.is_some())
    }

    /// Returns the estimates of the task, with transfers of this many seconds on accelerators.
    fn estimate(&self, transfer_seconds: f64) -> DeviceTask {
        let device = self.accelerator.map(|seconds| seconds + transfer_seconds);
        // A task of one kind has the gain 1, so that its time on accelerators is that of its `core_time`.
        let core = self.core.or(device).unwrap_or_default();
        let gain = core / device.unwrap_or(core).max(f64::MIN_POSITIVE);
        DeviceTask {
            on_core: self.core.is_some(),
            on_accelerator: device.is_some(),
            gain: (gain * f64::from(GAIN_UNIT)).round() as u32,
            core_time: Duration::from_secs_f64(core),
            // Devices have memory for all tasks.
            device_bytes: 1,
            trial: None,
        }
    }
}

/// A task of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineTask {
    /// Its name.
    pub name: String,
    /// Mean seconds.
    pub seconds: TaskSeconds,
    /// Numbers of the earlier tasks whose output it reads. Without any it reads the tile.
    pub reads: Vec<usize>,
}

/// A study that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InvalidHybridStudy {
    /// The seconds do not match the stages of the plan.
    #[error(
        "seconds of {given} tasks for the {tasks} tasks of stage {stage}; one entry for each task is needed"
    )]
    Shape {
        /// Number of the stage.
        stage: usize,
        /// Entries given.
        given: usize,
        /// Tasks of the stage.
        tasks: usize,
    },
    /// A task has no variant, or seconds that are not positive.
    #[error(
        "task {task} of stage {stage}: seconds {seconds:?}; positive seconds on at least one kind are allowed, or none at all"
    )]
    Seconds {
        /// Number of the stage.
        stage: usize,
        /// Number of the task.
        task: usize,
        /// Its seconds.
        seconds: TaskSeconds,
    },
    /// A task reads itself or a later one.
    #[error("task {task} reads task {read}; earlier tasks are allowed")]
    Read {
        /// Number of the task.
        task: usize,
        /// The task that it reads.
        read: usize,
    },
}

/// A plan with the seconds of its tasks.
#[derive(Clone, Debug)]
pub struct HybridStudy {
    plan: ExecutionPlan,
    /// By stage and task.
    seconds: Vec<Vec<TaskSeconds>>,
}

impl HybridStudy {
    /// Creates a study from a plan and the seconds of each task of each of its stages.
    ///
    /// # Errors
    /// [`InvalidHybridStudy`] if the seconds do not match the plan, or a task has no valid ones.
    pub fn new(plan: ExecutionPlan, seconds: Vec<Vec<TaskSeconds>>) -> Result<Self, InvalidHybridStudy> {
        for stage in 0..plan.stages.len().max(seconds.len()) {
            let tasks = plan.stages.get(stage).map_or(0, |stage| stage.tasks.len());
            let given = seconds.get(stage).map_or(0, Vec::len);
            if given != tasks {
                return Err(InvalidHybridStudy::Shape { stage, given, tasks });
            }
        }
        for (stage, tasks) in seconds.iter().enumerate() {
            for (task, &seconds) in tasks.iter().enumerate() {
                if !seconds.is_valid() {
                    return Err(InvalidHybridStudy::Seconds { stage, task, seconds });
                }
            }
        }
        Ok(Self { plan, seconds })
    }

    /// Creates a study that runs a pipeline once on each tile, with a bucket for each.
    ///
    /// # Errors
    /// [`InvalidHybridStudy`] if a task reads a later one, or has no valid seconds.
    pub fn pipeline(tasks: &[PipelineTask], tiles: u32) -> Result<Self, InvalidHybridStudy> {
        let later = |(number, task): (usize, &PipelineTask)| {
            let read = task.reads.iter().copied().find(|read| *read >= number)?;
            Some(InvalidHybridStudy::Read { task: number, read })
        };
        if let Some(invalid) = tasks.iter().enumerate().find_map(later) {
            return Err(invalid);
        }
        let instance = |tile: u32| InstancePlan {
            stage: 0,
            parameters: Vec::new(),
            inputs: vec![key(1, tile)],
            outputs: vec![OutputPlan { key: key(2, tile), stored: false, reported: true }],
            parents: Vec::new(),
        };
        let bucket = |tile| BucketPlan { instances: vec![InstanceId(tile)], pixels: 1 };
        let plan = ExecutionPlan {
            stages: vec![stage(tasks)],
            instances: (0..tiles).map(instance).collect(),
            buckets: (0..tiles).map(bucket).collect(),
            // Tasks that do not read each other run at once. In a tree they would be a chain.
            sharing: ReuseScope::Dataflow,
            ..ExecutionPlan::default()
        };
        let seconds = tasks.iter().map(|task| task.seconds).chain([TaskSeconds::NONE]).collect();
        Self::new(plan, vec![seconds])
    }

    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &ExecutionPlan {
        &self.plan
    }

    /// Returns the mean seconds of a task.
    pub(super) fn task_seconds(&self, stage: usize, task: usize) -> TaskSeconds {
        self.seconds[stage][task]
    }

    /// Returns the number of tasks of the largest stage.
    pub(super) fn max_tasks(&self) -> usize {
        self.seconds.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub(super) fn no_runs(&self) -> Vec<Vec<TaskRuns>> {
        self.seconds.iter().map(|tasks| vec![TaskRuns::default(); tasks.len()]).collect()
    }

    /// Returns the estimates of the tasks of a stage.
    pub(super) fn estimates(&self, stage: usize, transfer_seconds: f64) -> Vec<DeviceTask> {
        self.seconds[stage].iter().map(|seconds| seconds.estimate(transfer_seconds)).collect()
    }

    /// Returns the factor of the task times of an instance's tile: its first input.
    pub(super) fn tile_factor(&self, instance: InstanceId, seed: u64, variation: f64) -> f64 {
        let input = self.plan.instances.at(instance).inputs.first();
        let mut word = [0; 8];
        word.copy_from_slice(&input.map_or([0; 16], |key| key.0)[8..]);
        Random::of(seed, &[1, u64::from_le_bytes(word)]).factor(variation)
    }
}

/// Returns the key of a tile or an output: the kind of region, and the number of the tile.
fn key(kind: u64, tile: u32) -> RegionKey {
    RegionKey((u128::from(kind) << 64 | u128::from(tile)).to_be_bytes())
}

/// Returns the stage of a pipeline. A last task without time ends the instance when all others have ended.
fn stage(tasks: &[PipelineTask]) -> Stage {
    let region = |name: &str| RegionDecl { region: name.to_owned(), element: ElementType::Gray8 };
    let task = |name: &str, reads: Vec<TaskInput>| Task {
        name: name.to_owned(),
        description: String::new(),
        operation: format!("simulated.{name}"),
        version: 1,
        arguments: Vec::new(),
        reads,
        writes: vec![region(name)],
        guard: None,
    };
    let read = |task: usize| TaskInput::Task { task, output: 0 };
    let own = |own: &PipelineTask| match own.reads.as_slice() {
        [] => task(&own.name, vec![TaskInput::StageInput(0)]),
        reads => task(&own.name, reads.iter().copied().map(read).collect()),
    };
    let is_read = |number: &usize| tasks.iter().any(|task| task.reads.contains(number));
    let ends = (0..tasks.len()).filter(|number| !is_read(number)).map(read).collect();
    Stage {
        name: "pipeline".to_owned(),
        description: String::new(),
        inputs: vec![StageInput::new(region("tile"), InputOrigin::Input(0))],
        outputs: vec![StageOutput::new(region("result"), tasks.len(), 0)],
        parameters: Vec::new(),
        tasks: tasks.iter().map(own).chain([task("end", ends)]).collect(),
        switch: None,
    }
}
