//! Workloads: studies to simulate, with their plans and the time of each task.
//!
//! A workload has an optional first stage, with one instance for each tile, whose output all instances of the tile
//! read, and a second stage, whose instances are chains of tasks that share prefixes within a bucket (a reuse tree).
//! All tiles have the same instances, as in the papers' studies. Task times differ by tile and by task. A workload can
//! also be the plan of a real study ([`StageWorkload`]).

mod recorded;

use crate::random::Random;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_dispatch::{InstanceId, PlanId};
use pleach_planner::RangeTables;
use pleach_regions::{ElementType, RegionKey};
use pleach_reuse::{
    Dataflow, LeftoverRule, Member, MergeProblem, ReuseTree, SharingSchedule, Strategy, TaskCosts,
    TrtmaOptions,
};
use pleach_workflow::{InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput};
use recorded::RecordedWorkload;
pub use recorded::{MakespanBound, SharedStage, StageWorkload};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Bucketing of a tile's instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bucketing {
    /// One instance for each bucket.
    Single,
    /// RTMA with this maximum of instances.
    Rtma(NonZeroUsize),
    /// TRTMA with this many buckets for all tiles together, at least one for each tile. Balances buckets by cost.
    Trtma(NonZeroUsize),
    /// As `Trtma`, but balances buckets by numbers of tasks, as in the papers.
    TrtmaByCount(NonZeroUsize),
}

/// Design of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadDesign {
    /// Tiles, which differ only in their task times.
    pub tiles: u32,
    /// Number of tasks of the second stage.
    pub levels: usize,
    /// Keys of the tasks of each instance of a tile, as in [`MergeProblem`].
    pub keys: Vec<u32>,
    /// Mean seconds of the tasks of each level.
    pub seconds: Vec<f64>,
    /// Mean seconds of the first stage. Without it, instances read the tile itself.
    pub first_seconds: Option<f64>,
    /// Coefficient of variation of task times, from tile to tile and again from task to task.
    pub variation: f64,
    /// Bytes that the first stage stores for a tile.
    pub region_bytes: u64,
    /// The bucketing.
    pub cut: Bucketing,
    /// Seed of the variations.
    pub seed: u64,
}

/// Parameters of a generated study, for scenario files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyntheticWorkload {
    /// Number of tiles.
    pub tiles: u32,
    /// Number of instances of a tile.
    pub instances: u32,
    /// Number of tasks of an instance.
    pub levels: u32,
    /// Number of different values that each task consumes.
    pub values: u32,
    /// Mean seconds of a task.
    pub task_seconds: f64,
    /// Mean seconds of the first stage, if there is one.
    pub first_seconds: Option<f64>,
    /// As [`WorkloadDesign::variation`].
    pub variation: f64,
    /// As [`WorkloadDesign::region_bytes`].
    pub region_bytes: u64,
    /// The bucketing.
    pub cut: Bucketing,
    /// Seed of the values and the variations.
    pub seed: u64,
}

impl SyntheticWorkload {
    /// Placeholder for a workload that is given separately.
    pub const UNUSED: Self = Self {
        tiles: 0,
        instances: 0,
        levels: 0,
        values: 0,
        task_seconds: 0.0,
        first_seconds: None,
        variation: 0.0,
        region_bytes: 0,
        cut: Bucketing::Single,
        seed: 0,
    };

    /// Returns the design of the generated study.
    #[must_use]
    pub fn design(&self) -> WorkloadDesign {
        let mut random = Random::new(self.seed);
        let count = self.instances as usize * self.levels as usize;
        let values = u64::from(self.values.max(1));
        WorkloadDesign {
            tiles: self.tiles,
            levels: self.levels as usize,
            keys: (0..count).map(|_| (random.word() % values) as u32).collect(),
            seconds: vec![self.task_seconds; self.levels as usize],
            first_seconds: self.first_seconds,
            variation: self.variation,
            region_bytes: self.region_bytes,
            cut: self.cut,
            seed: self.seed,
        }
    }
}

/// A planned design.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The plan for the manager.
    pub plan: ExecutionPlan,
    design: WorkloadDesign,
    /// The nodes of each instance of a tile in the tile's reuse tree, first task first.
    nodes: Vec<u32>,
    /// Position of each instance of a tile in the tree's order.
    rank: Vec<u32>,
    /// Time factor of each tile.
    factor: Vec<f64>,
    /// Data of a real study, which replaces the rest.
    traced: Option<RecordedWorkload>,
}

/// Returns the stages: the first one, if any, precedes the second.
fn stages(has_first: bool, levels: usize) -> Vec<Stage> {
    let region = |name: &str| RegionDecl { region: name.to_owned(), element: ElementType::Gray8 };
    let task = |name: &str| Task {
        name: name.to_owned(),
        description: String::new(),
        operation: format!("simulated.{name}"),
        version: 1,
        arguments: Vec::new(),
        reads: vec![TaskInput::StageInput(0)],
        writes: vec![region("out")],
        guard: None,
    };
    let stage = |name: &str, tasks: usize| Stage {
        name: name.to_owned(),
        description: String::new(),
        inputs: vec![StageInput::new(region("in"), InputOrigin::Input(0))],
        outputs: vec![StageOutput::new(region("out"), 0, 0)],
        parameters: Vec::new(),
        tasks: vec![task(name); tasks],
        switch: None,
    };
    let first = has_first.then(|| stage("normalize", 1));
    first.into_iter().chain([stage("segment", levels)]).collect()
}

/// Returns a key that is unique for the study. Kinds are 0 for tiles, 1 for first stages and 2 for results.
fn key(study: PlanId, kind: u8, number: u32) -> RegionKey {
    let wide = u128::from(study.study) << 64 | u128::from(kind) << 32 | u128::from(number);
    RegionKey(wide.to_be_bytes())
}

impl Workload {
    /// Plans a design. Region keys are unique for `study`.
    #[must_use]
    pub fn new(study: PlanId, design: WorkloadDesign) -> Self {
        let each = design.keys.len().checked_div(design.levels).unwrap_or(0);
        let (buckets, nodes) = cut(&design, each);
        let mut rank: Vec<u32> = (0..each as u32).collect();
        let row = |member: &u32| &nodes[*member as usize * design.levels..][..design.levels];
        rank.sort_by(|a, b| row(a).cmp(row(b)));
        let mut place = vec![0; each];
        (0..).zip(&rank).for_each(|(rank, member)| place[*member as usize] = rank);

        let first = design.first_seconds.is_some();
        let mut plan = ExecutionPlan {
            stages: stages(first, design.levels),
            sharing: ReuseScope::Tree,
            ..ExecutionPlan::default()
        };
        let firsts = if first { design.tiles } else { 0 };
        for tile in 0..firsts {
            plan.instances.push(InstancePlan {
                stage: 0,
                parameters: Vec::new(),
                inputs: vec![key(study, 0, tile)],
                outputs: vec![OutputPlan { key: key(study, 1, tile), stored: each > 0, reported: each == 0 }],
                parents: Vec::new(),
            });
            plan.buckets.push(BucketPlan { instances: vec![InstanceId(tile)], pixels: design.region_bytes });
        }
        for tile in 0..design.tiles {
            let base = plan.instances.len() as u32;
            for member in 0..each as u32 {
                plan.instances.push(InstancePlan {
                    stage: usize::from(first),
                    parameters: Vec::new(),
                    inputs: vec![key(study, u8::from(first), tile)],
                    outputs: vec![OutputPlan {
                        key: key(study, 2, base + member),
                        stored: false,
                        reported: true,
                    }],
                    parents: if first { vec![InstanceId(tile)] } else { Vec::new() },
                });
            }
            plan.buckets.extend(buckets.iter().map(|members| BucketPlan {
                instances: members.iter().map(|member| InstanceId(base + member)).collect(),
                pixels: design.region_bytes,
            }));
        }
        let tile_factor = |tile: u32| Random::of(design.seed, &[1, u64::from(tile)]).factor(design.variation);
        let factor = (0..design.tiles).map(tile_factor).collect();
        Self { plan, nodes, rank: place, factor, design, traced: None }
    }

    fn of_trace(plan: ExecutionPlan, traced: RecordedWorkload) -> Self {
        let nothing = WorkloadDesign {
            tiles: 0,
            levels: 0,
            keys: Vec::new(),
            seconds: Vec::new(),
            first_seconds: None,
            variation: 0.0,
            region_bytes: 0,
            cut: Bucketing::Single,
            seed: 0,
        };
        let (nodes, rank, factor) = (Vec::new(), Vec::new(), Vec::new());
        Self { plan, design: nothing, nodes, rank, factor, traced: Some(traced) }
    }

    /// Returns the tile and the index within it. The index is `None` for the first stage.
    fn member(&self, instance: InstanceId) -> (u32, Option<u32>) {
        let firsts = if self.design.first_seconds.is_some() { self.design.tiles } else { 0 };
        if instance.0 < firsts {
            return (instance.0, None);
        }
        let each = self.rank.len() as u32;
        let number = instance.0 - firsts;
        (number / each, Some(number % each))
    }

    fn row(&self, member: u32) -> &[u32] {
        &self.nodes[member as usize * self.design.levels..][..self.design.levels]
    }

    /// Returns the sort key that places instances of a bucket with most common tasks next to each other.
    #[must_use]
    pub fn order(&self, instance: InstanceId) -> (u32, u32) {
        if let Some(traced) = &self.traced {
            return traced.order(instance);
        }
        let (tile, member) = self.member(instance);
        (tile, member.map_or(0, |member| self.rank[member as usize]))
    }

    /// Returns the seconds of an instance that follows `after` in its bucket, without the tasks that both share.
    #[must_use]
    pub fn seconds(&self, after: Option<InstanceId>, instance: InstanceId) -> f64 {
        self.tasks(after, instance).into_iter().map(|(_, seconds)| seconds).sum()
    }

    /// Returns the tasks that [`seconds`](Self::seconds) adds up: index in the stage, and seconds.
    #[must_use]
    pub fn tasks(&self, after: Option<InstanceId>, instance: InstanceId) -> Vec<(u32, f64)> {
        if let Some(traced) = &self.traced {
            return traced.tasks(after, instance);
        }
        let (tile, member) = self.member(instance);
        let noise = |node: u64| {
            Random::of(self.design.seed, &[2, u64::from(tile), node]).factor(self.design.variation)
        };
        let Some(member) = member else {
            let seconds = self.design.first_seconds.unwrap_or(0.0);
            return vec![(0, seconds * self.factor[tile as usize] * noise(u64::MAX))];
        };
        let row = self.row(member);
        let before = after.map(|after| self.member(after));
        let shared = match before {
            Some((other, Some(before))) if other == tile => {
                row.iter().zip(self.row(before)).take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        };
        let of = |level: usize| {
            self.design.seconds[level] * self.factor[tile as usize] * noise(u64::from(row[level]))
        };
        (shared..row.len()).map(|level| (level as u32, of(level))).collect()
    }

    /// Returns the stage of an instance.
    #[must_use]
    pub fn stage(&self, instance: InstanceId) -> u32 {
        if let Some(traced) = &self.traced {
            return traced.stage(instance);
        }
        u32::from(self.design.first_seconds.is_some() && self.is_second(instance))
    }

    /// Returns whether an instance is of the second stage. For a real study: of the stage that is replanned.
    #[must_use]
    pub fn is_second(&self, instance: InstanceId) -> bool {
        if let Some(traced) = &self.traced {
            return traced.is_merged(instance);
        }
        self.member(instance).1.is_some()
    }

    /// Returns the outputs that an instance stores for its readers.
    pub fn stored(&self, study: PlanId, instance: InstanceId) -> impl Iterator<Item = RegionKey> + use<> {
        if let Some(traced) = &self.traced {
            return traced.stored(instance).to_vec().into_iter();
        }
        let (tile, member) = self.member(instance);
        let keys: Vec<RegionKey> = member.is_none().then(|| key(study, 1, tile)).into_iter().collect();
        keys.into_iter()
    }

    /// Returns an instance's inputs from files. Empty except for real studies.
    #[must_use]
    pub fn files(&self, instance: InstanceId) -> &[RegionKey] {
        self.traced.as_ref().map_or(&[], |traced| traced.files(instance))
    }

    /// Returns the bytes of a file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.traced.as_ref().map_or(self.design.region_bytes, RecordedWorkload::file_bytes)
    }

    /// Returns [`seconds`](Self::seconds) as predicted by the cost model.
    #[must_use]
    pub fn foreseen_seconds(&self, after: Option<InstanceId>, instance: InstanceId) -> f64 {
        match &self.traced {
            Some(traced) => traced.foreseen_seconds(after, instance),
            None => self.seconds(after, instance),
        }
    }

    /// Returns the predicted seconds of all instances without reuse, and of all distinct tasks. `None` except for real
    /// studies.
    #[must_use]
    pub fn total_and_unique_seconds(&self) -> Option<(f64, f64)> {
        self.traced.as_ref().map(RecordedWorkload::alone_and_unique_seconds)
    }

    /// Returns a lower bound of the makespan. `None` unless workers share task results.
    #[must_use]
    pub fn makespan_bound(&self) -> Option<MakespanBound> {
        self.traced.as_ref().and_then(RecordedWorkload::bound)
    }

    /// Returns an empty schedule of each stage, for workers that share task results. Empty for others.
    #[must_use]
    pub fn schedules(&self) -> Vec<SharingSchedule<Arc<Dataflow>>> {
        self.traced.as_ref().map(RecordedWorkload::schedules).unwrap_or_default()
    }

    /// Returns the schedule of an instance, and its member there. `None` except for real studies.
    #[must_use]
    pub fn place(&self, instance: InstanceId) -> Option<(usize, Member)> {
        self.traced.as_ref().map(|traced| traced.member(instance))
    }

    /// Returns the tables for ranges of the replanned stage, whose instances have this problem. `None` if its buckets are
    /// branches of the reuse tree.
    #[must_use]
    pub fn ranges(&self, problem: &MergeProblem) -> Option<RangeTables> {
        Some(RangeTables::new(problem, self.traced.as_ref()?.tasks_of_merged()?))
    }

    /// Returns the bytes to transfer a stored region.
    #[must_use]
    pub fn bytes_of(&self, key: RegionKey) -> u64 {
        self.traced.as_ref().map_or(self.design.region_bytes, |traced| traced.bytes_of(key))
    }

    /// Returns the image size of a bucket, in the plan's unit.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        self.traced.as_ref().map_or(self.design.region_bytes, RecordedWorkload::file_bytes)
    }

    /// Returns the pixels of an instance's image. Synthetic images have none.
    #[must_use]
    pub fn pixels_of(&self, instance: InstanceId) -> u64 {
        self.traced.as_ref().map_or(0, |traced| traced.pixels_of(instance))
    }

    /// Builds a merge problem from instances of the second stage, for replanning. Costs are the means.
    ///
    /// # Errors
    /// Returns an error if the planner does not accept that many instances.
    pub fn problem(&self, instances: &[InstanceId]) -> Result<MergeProblem, pleach_reuse::ProblemError> {
        if let Some(traced) = &self.traced {
            return traced.problem(instances);
        }
        let second = |id: &InstanceId| {
            let (tile, member) = self.member(*id);
            member.map(|member| (tile, member))
        };
        let members: Vec<(u32, u32)> = instances.iter().filter_map(second).collect();
        let keys = members.iter().flat_map(|(_, member)| {
            self.design.keys[*member as usize * self.design.levels..][..self.design.levels].iter().copied()
        });
        let keys = keys.collect();
        let tiles = members.iter().map(|(tile, _)| *tile).collect();
        MergeProblem::new(self.design.levels, tiles, keys, TaskCosts::PerLevel(self.design.seconds.clone()))
    }
}

/// Returns the buckets of one tile, and the nodes of its instances in its reuse tree.
fn cut(design: &WorkloadDesign, each: usize) -> (Vec<Vec<u32>>, Vec<u32>) {
    let problem =
        |costs: TaskCosts| MergeProblem::new(design.levels, vec![0; each], design.keys.clone(), costs);
    let Ok(problem_by_cost) = problem(TaskCosts::PerLevel(design.seconds.clone())) else {
        return (Vec::new(), Vec::new());
    };
    let tree = ReuseTree::build(&problem_by_cost);
    let nodes = problem_by_cost.members().flat_map(|member| {
        let mut up: Vec<u32> = tree.upwards(member).map(|node| node.0).collect();
        up.reverse();
        up
    });
    let nodes = nodes.collect();
    let a_tile = |all: NonZeroUsize| {
        NonZeroUsize::new(all.get() / design.tiles.max(1) as usize).unwrap_or(NonZeroUsize::MIN)
    };
    let options = TrtmaOptions::default();
    let (by, strategy) = match design.cut {
        Bucketing::Single => (problem_by_cost, Strategy::Stage),
        Bucketing::Rtma(most) => {
            (problem_by_cost, Strategy::Rtma { max_bucket_size: most, ending: LeftoverRule::default() })
        }
        Bucketing::Trtma(all) => (problem_by_cost, Strategy::Trtma { max_buckets: a_tile(all), options }),
        Bucketing::TrtmaByCount(all) => {
            let Ok(counted) = problem(TaskCosts::Count) else { return (Vec::new(), nodes) };
            (counted, Strategy::Trtma { max_buckets: a_tile(all), options })
        }
    };
    let tree = ReuseTree::build(&by);
    let Ok(buckets) = strategy.solve(&by, &tree) else { return (Vec::new(), nodes) };
    let members = |bucket: &[pleach_reuse::Member]| bucket.iter().map(|member| member.0).collect();
    (buckets.iter().map(members).collect(), nodes)
}
