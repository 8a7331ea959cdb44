//! Workload of a real study's plan: the tasks of its instances, their reuse, and their predicted times.

use super::Workload;
use crate::random::Random;
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_regions::RegionKey;
use pleach_reuse::{
    Dataflow, Member, MergeProblem, ProblemError, ReuseTree, SharingSchedule, TaskCosts, TaskGraph,
    TransferCost,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The instances of one stage.
#[derive(Clone, Debug, Default)]
pub struct StageWorkload {
    /// Number of tasks of each instance.
    pub levels: usize,
    /// By member, as the plan numbers them.
    pub instances: Vec<InstanceId>,
    /// By member: its input, as in [`MergeProblem`].
    pub inputs: Vec<u32>,
    /// By member and level: the keys of its tasks.
    pub keys: Vec<u32>,
    /// By member and level: seconds of its tasks.
    pub seconds: Vec<f64>,
    /// Sharing of task results between workers. Without it, instances of a bucket share the prefixes of their tasks.
    pub sharing: Option<SharedStage>,
}

/// Data of a stage whose task results all workers share.
#[derive(Clone, Debug)]
pub struct SharedStage {
    /// Inputs of each task.
    pub tasks: TaskGraph,
    /// By level: bytes of the outputs of a task.
    pub output_bytes: Vec<u64>,
    /// By member and level: a number for each distinct result, if equal contents are shared. Tasks of a level with equal numbers
    /// have equal results. Without it, equal tasks are those of equal provenance.
    pub values: Option<Vec<u32>>,
}

/// Lower bound of the makespan of a study whose workers share task results, in seconds of a slot of speed 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MakespanBound {
    /// Longest path of tasks of one stage that read each other.
    pub critical_seconds: f64,
    /// All distinct tasks.
    pub unique_seconds: f64,
}

/// A stage with the reuse of its instances.
#[derive(Clone, Debug)]
struct Stage {
    trace: StageWorkload,
    /// By member and level: the node of the reuse tree.
    nodes: Vec<u32>,
    /// By member: its position in the tree's order.
    rank: Vec<u32>,
    unique_seconds: f64,
    /// Tasks with their simulated times, if workers share results.
    dataflow: Option<Arc<Dataflow>>,
}

/// Workload of a real study.
#[derive(Clone, Debug)]
pub(super) struct RecordedWorkload {
    stages: Vec<Stage>,
    /// By instance: its stage and its member index.
    places: Vec<(u32, u32)>,
    /// By instance: the outputs that it stores for its readers.
    stored: Vec<Vec<RegionKey>>,
    /// By instance: its inputs from files.
    files: Vec<Vec<RegionKey>>,
    /// By instance: the pixels of its image.
    pixels: Vec<u64>,
    /// The stage that is replanned: the one with most tasks.
    merged: usize,
    /// Bytes to transfer each stored region.
    region_bytes: HashMap<RegionKey, u64>,
    file_bytes: u64,
    variation: f64,
    seed: u64,
}

impl Workload {
    /// Creates the workload of a real plan. Task times are the predicted ones times a factor with this coefficient of
    /// variation. `region_bytes` has the transfer size of each stored region, `file_bytes` the size of each file.
    ///
    /// # Errors
    /// Returns a [`ProblemError`] if the tables of a stage do not match.
    pub fn traced(
        plan: ExecutionPlan,
        stages: Vec<StageWorkload>,
        (region_bytes, file_bytes): (HashMap<RegionKey, u64>, u64),
        variation: f64,
        seed: u64,
    ) -> Result<Self, ProblemError> {
        let mut places = vec![(0, 0); plan.instances.len()];
        for (stage, trace) in (0..).zip(&stages) {
            for (member, instance) in (0..).zip(&trace.instances) {
                places[instance.index()] = (stage, member);
            }
        }
        let made: BTreeSet<RegionKey> =
            plan.instances.iter().flat_map(|instance| instance.outputs).map(|output| output.key).collect();
        let stored = plan.instances.iter().map(|instance| {
            instance.outputs.iter().filter(|output| output.stored).map(|output| output.key).collect()
        });
        let files = plan.instances.iter().map(|instance| {
            let mut files: Vec<RegionKey> =
                instance.inputs.iter().copied().filter(|key| !made.contains(key)).collect();
            // A file that feeds two inputs is read once.
            files.sort_unstable();
            files.dedup();
            files
        });
        let (stored, files) = (stored.collect(), files.collect());
        let mut pixels = vec![0; plan.instances.len()];
        for bucket in &plan.buckets {
            bucket.instances.iter().for_each(|instance| pixels[instance.index()] = bucket.pixels);
        }
        let noise = |stage: usize| {
            move |node: u32| Random::of(seed, &[2, stage as u64, u64::from(node)]).factor(variation)
        };
        let stages = stages.into_iter().enumerate();
        let stages =
            stages.map(|(number, stage)| Stage::new(stage, noise(number))).collect::<Result<Vec<_>, _>>()?;
        let tasks = |stage: &Stage| stage.trace.keys.len();
        let merged = (0..stages.len()).max_by_key(|stage| tasks(&stages[*stage])).unwrap_or(0);
        let traced = RecordedWorkload {
            stages,
            places,
            stored,
            files,
            pixels,
            merged,
            region_bytes,
            file_bytes,
            variation,
            seed,
        };
        Ok(Self::of_trace(plan, traced))
    }
}

impl Stage {
    fn new(trace: StageWorkload, noise: impl Fn(u32) -> f64) -> Result<Self, ProblemError> {
        let problem = trace.problem(trace.seconds.clone())?;
        let tree = ReuseTree::build(&problem);
        let nodes = problem.members().flat_map(|member| {
            let mut up: Vec<u32> = tree.upwards(member).map(|node| node.0).collect();
            up.reverse();
            up
        });
        let nodes: Vec<u32> = nodes.collect();
        let row = |member: &u32| &nodes[*member as usize * trace.levels..][..trace.levels];
        let mut order: Vec<u32> = (0..trace.instances.len() as u32).collect();
        order.sort_by(|a, b| row(a).cmp(row(b)));
        let mut rank = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, member)| rank[*member as usize] = place);
        let (mut unique_seconds, mut dataflow) = (tree.unique_cost(), None);
        if let Some(shared) = &trace.sharing {
            let predicted = shared.dataflow(&problem);
            unique_seconds = predicted.tasks().map(|task| predicted.cost(task)).sum();
            let seconds = trace.seconds.iter().zip(&nodes).map(|(seconds, node)| seconds * noise(*node));
            let simulated = trace.problem(seconds.collect())?;
            dataflow = Some(Arc::new(shared.dataflow(&simulated)));
        }
        Ok(Self { unique_seconds, trace, nodes, rank, dataflow })
    }

    fn row(&self, member: u32) -> &[u32] {
        &self.nodes[member as usize * self.trace.levels..][..self.trace.levels]
    }
}

impl SharedStage {
    fn dataflow(&self, problem: &MergeProblem) -> Dataflow {
        match &self.values {
            Some(values) => Dataflow::build_by_value(problem, &self.tasks, values),
            None => Dataflow::build(problem, &self.tasks),
        }
    }
}

impl StageWorkload {
    /// Returns whether tasks of equal provenance have equal results, as they must. Otherwise the results are of another study.
    /// True without results.
    ///
    /// # Errors
    /// Returns a [`ProblemError`] if the tables do not match.
    pub fn has_consistent_values(&self) -> Result<bool, ProblemError> {
        let Some((shared, values)) =
            self.sharing.as_ref().and_then(|shared| shared.values.as_ref().map(|values| (shared, values)))
        else {
            return Ok(true);
        };
        let problem = self.problem(self.seconds.clone())?;
        let dataflow = Dataflow::build(&problem, &shared.tasks);
        let mut values_of: Vec<Option<u32>> = vec![None; dataflow.len()];
        let tasks = problem.members().flat_map(|member| dataflow.row(member));
        Ok(tasks.zip(values).all(|(task, value)| {
            let known = values_of[task.0 as usize].get_or_insert(*value);
            known == value
        }))
    }

    fn problem(&self, seconds: Vec<f64>) -> Result<MergeProblem, ProblemError> {
        let costs = TaskCosts::PerTask(seconds);
        MergeProblem::new(self.levels, self.inputs.clone(), self.keys.clone(), costs)
    }
}

impl RecordedWorkload {
    fn place(&self, instance: InstanceId) -> (&Stage, u32) {
        let (stage, member) = self.places[instance.index()];
        (&self.stages[stage as usize], member)
    }

    /// Returns an empty schedule of each stage. Empty unless workers share task results.
    pub(super) fn schedules(&self) -> Vec<SharingSchedule<Arc<Dataflow>>> {
        let schedule = |stage: &Stage| {
            let dataflow = Arc::clone(stage.dataflow.as_ref()?);
            let bytes = stage.trace.sharing.as_ref()?.output_bytes.clone();
            Some(SharingSchedule::new(dataflow, bytes, TransferCost::FREE))
        };
        self.stages.iter().map_while(schedule).collect()
    }

    /// Returns the stage of an instance, and its member in the stage's dataflow.
    pub(super) fn member(&self, instance: InstanceId) -> (usize, Member) {
        let (stage, member) = self.places[instance.index()];
        (stage as usize, Member(member))
    }

    /// Returns the lower bound of the makespan. `None` unless workers share task results.
    pub(super) fn bound(&self) -> Option<MakespanBound> {
        let dataflows = self.stages.iter().map(|stage| stage.dataflow.as_ref());
        let dataflows = dataflows.collect::<Option<Vec<_>>>()?;
        let unique =
            |dataflow: &&Arc<Dataflow>| dataflow.tasks().map(|task| dataflow.cost(task)).sum::<f64>();
        Some(MakespanBound {
            critical_seconds: dataflows.iter().map(|dataflow| dataflow.critical_cost()).fold(0.0, f64::max),
            unique_seconds: dataflows.iter().map(unique).sum(),
        })
    }

    /// Returns the inputs of the tasks of the replanned stage, if workers share task results.
    pub(super) fn tasks_of_merged(&self) -> Option<&TaskGraph> {
        self.stages[self.merged].trace.sharing.as_ref().map(|shared| &shared.tasks)
    }

    pub(super) fn stage(&self, instance: InstanceId) -> u32 {
        self.places[instance.index()].0
    }

    pub(super) fn is_merged(&self, instance: InstanceId) -> bool {
        self.stage(instance) as usize == self.merged
    }

    pub(super) fn order(&self, instance: InstanceId) -> (u32, u32) {
        let (stage, member) = self.place(instance);
        (self.stage(instance), stage.rank[member as usize])
    }

    /// Returns the tasks of an instance that the one before it has not done: level, node and predicted seconds.
    fn own(
        &self,
        after: Option<InstanceId>,
        instance: InstanceId,
    ) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        let (stage, member) = self.place(instance);
        let row = stage.row(member);
        let before = after.filter(|after| self.stage(*after) == self.stage(instance));
        let shared = before.map_or(0, |before| {
            let (_, before) = self.place(before);
            row.iter().zip(stage.row(before)).take_while(|(a, b)| a == b).count()
        });
        let first = member as usize * stage.trace.levels;
        (shared..row.len()).map(move |level| (level as u32, row[level], stage.trace.seconds[first + level]))
    }

    pub(super) fn tasks(&self, after: Option<InstanceId>, instance: InstanceId) -> Vec<(u32, f64)> {
        let stage = u64::from(self.stage(instance));
        let noise = |node: u32| Random::of(self.seed, &[2, stage, u64::from(node)]).factor(self.variation);
        self.own(after, instance).map(|(level, node, seconds)| (level, seconds * noise(node))).collect()
    }

    pub(super) fn foreseen_seconds(&self, after: Option<InstanceId>, instance: InstanceId) -> f64 {
        self.own(after, instance).map(|(_, _, seconds)| seconds).sum()
    }

    pub(super) fn alone_and_unique_seconds(&self) -> (f64, f64) {
        let alone = self.stages.iter().flat_map(|stage| &stage.trace.seconds).sum();
        (alone, self.stages.iter().map(|stage| stage.unique_seconds).sum())
    }

    pub(super) fn stored(&self, instance: InstanceId) -> &[RegionKey] {
        &self.stored[instance.index()]
    }

    pub(super) fn files(&self, instance: InstanceId) -> &[RegionKey] {
        &self.files[instance.index()]
    }

    pub(super) fn bytes_of(&self, key: RegionKey) -> u64 {
        self.region_bytes.get(&key).copied().unwrap_or(0)
    }

    pub(super) fn pixels_of(&self, instance: InstanceId) -> u64 {
        self.pixels[instance.index()]
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Builds a merge problem from instances of the merged stage. Ignores others.
    pub(super) fn problem(&self, instances: &[InstanceId]) -> Result<MergeProblem, ProblemError> {
        let trace = &self.stages[self.merged].trace;
        let levels = trace.levels;
        let (mut inputs, mut keys, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
        for instance in instances.iter().filter(|instance| self.is_merged(**instance)) {
            let member = self.places[instance.index()].1 as usize;
            inputs.push(trace.inputs[member]);
            keys.extend_from_slice(&trace.keys[member * levels..][..levels]);
            seconds.extend_from_slice(&trace.seconds[member * levels..][..levels]);
        }
        MergeProblem::new(levels, inputs, keys, TaskCosts::PerTask(seconds))
    }
}
