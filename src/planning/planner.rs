//! What every way of planning a study has in common: its runs, what is left of them when equal stage instances are one,
//! and each stage as a merging problem. Set up once, it is solved by as many strategies as are to be compared.
//!
//! What a solution saves and how long it takes is not here.

use super::{PlanningError, PlanningInput, ReuseMode, operations, room};
use pleach_regions::{ElementType, RegionKey};
use pleach_reuse::{
    Buckets, CompactGraph, Dataflow, ExternalIndex, InstanceId, Interner, Member, MergeProblem, Merging,
    ReuseTree, RunId, Runs, Source, StageIndex, Strategy, TaskCosts, TaskGraph, TaskReads, WorkflowShape,
    best_order,
};
use pleach_workflow::{InputOrigin, Operation, Stage, StageInput, TaskInput, Value};
use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A study ready to be planned.
#[derive(Debug)]
pub(crate) struct PlanBuilder<'a> {
    pub(super) material: PlanningInput<'a>,
    pub(super) runs: Runs,
    pub(super) graph: CompactGraph,
    pub(super) stages: Vec<StageProblem>,
    /// What stage-level merging leaves, also where nothing is merged; by stage.
    pub(super) after_merging: Vec<WorkTotal>,
}

/// Tasks of a stage, without those of the reference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkTotal {
    pub(super) tasks: usize,
    pub(super) seconds: f64,
}

/// The instances of one stage as a merging problem.
#[derive(Debug)]
pub(super) struct StageProblem {
    /// Graph instances by member: those that strategies put into buckets.
    pub(super) members: Vec<InstanceId>,
    /// Graph instances that serve the reference only: a bucket each, before the others.
    pub(super) reference_only: Vec<InstanceId>,
    pub(super) problem: MergeProblem,
    pub(super) tree: ReuseTree,
    /// What each task reads.
    pub(super) tasks: TaskGraph,
    /// The tables of the instances in [`reference_only`](Self::reference_only), in the layout of the problem's.
    reference: ProblemTables,
    dataflow: OnceCell<Dataflow>,
}

/// Inputs, and keys and costs of tasks, of some instances.
#[derive(Clone, Debug, Default)]
pub(super) struct ProblemTables {
    pub(super) inputs: Vec<u32>,
    pub(super) keys: Vec<u32>,
    pub(super) costs: Vec<f64>,
}

impl<'a> PlanBuilder<'a> {
    /// Sets up what planning needs; one with equal stage instances merged serves all levels of reuse.
    ///
    /// # Errors
    /// [`PlanningError`] when the study has more runs than ids.
    pub(crate) fn set_up(material: PlanningInput<'a>, merging: Merging) -> Result<Self, PlanningError> {
        room::for_runs(material)?;
        let runs = runs(material)?;
        let merged = CompactGraph::build(&runs, Merging::Merged);
        room::for_tables(material, &merged)?;
        let stages = || (0u32..).map(StageIndex).zip(&material.workflow.stages);
        let after_merging = stages().map(|(index, stage)| work(material, &runs, &merged, index, stage));
        let after_merging = after_merging.collect();
        let graph = match merging {
            Merging::None => {
                let replicated = CompactGraph::build(&runs, Merging::None);
                room::for_tables(material, &replicated)?;
                replicated
            }
            Merging::Merged => merged,
        };
        let problems =
            stages().map(|(index, stage)| StageProblem::new(material, &runs, &graph, index, stage));
        let stages = problems.collect::<Result<_, _>>()?;
        Ok(Self { material, runs, graph, stages, after_merging })
    }

    /// The buckets of each stage.
    ///
    /// # Errors
    /// [`PlanningError`] when the strategy does not take so many instances.
    pub(crate) fn solve(&self, level: ReuseMode) -> Result<Vec<Buckets>, PlanningError> {
        let strategy = level.strategy().unwrap_or(Strategy::Stage);
        let solve =
            |stage: &StageProblem| strategy.solve(&stage.problem, &stage.tree).map_err(PlanningError::new);
        self.stages.iter().map(solve).collect()
    }

    /// For each stage the order of its tasks in which the instances share most.
    pub(crate) fn best_orders(&self) -> Vec<Vec<usize>> {
        self.stages.iter().map(|stage| best_order(&stage.problem, &stage.tasks).tasks).collect()
    }

    /// Instances of the stage that has most, as far as strategies put them into buckets.
    pub(crate) fn most_instances(&self) -> NonZeroUsize {
        let most = self.stages.iter().map(|stage| stage.members.len()).max().unwrap_or(0);
        NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN)
    }

    /// The tile that an instance works on.
    pub(super) fn tile(&self, instance: InstanceId) -> usize {
        self.runs.tile(self.graph.instance(instance).first_run)
    }
}

impl StageProblem {
    fn new(
        material: PlanningInput<'_>,
        runs: &Runs,
        graph: &CompactGraph,
        index: StageIndex,
        stage: &Stage,
    ) -> Result<Self, PlanningError> {
        let (reference_only, members): (Vec<InstanceId>, Vec<InstanceId>) =
            graph.of_stage(index).partition(|&id| graph.instance(id).reference_only);
        let levels = stage.tasks.len();
        let mut tasks = TaskTable::new(material, stage);
        let mut tables_of = |instances: &[InstanceId]| {
            let mut tables = ProblemTables::default();
            for &id in instances {
                let instance = graph.instance(id);
                tables.inputs.push(instance.inputs.0);
                for (key, seconds) in tasks.of_run(runs, instance.first_run) {
                    tables.keys.push(key);
                    tables.costs.push(seconds);
                }
            }
            tables
        };
        let (tables, reference) = (tables_of(&members), tables_of(&reference_only));
        let problem = tables.problem(levels)?;
        let tree = ReuseTree::build(&problem);
        let tasks = task_graph(stage)?;
        Ok(Self { members, reference_only, problem, tree, tasks, reference, dataflow: OnceCell::new() })
    }

    /// The tasks of all instances as a graph, those of the reference behind the members.
    ///
    /// # Errors
    /// [`PlanningError`] when there are more tasks than ids.
    pub(super) fn dataflow(&self) -> Result<&Dataflow, PlanningError> {
        if let Some(dataflow) = self.dataflow.get() {
            return Ok(dataflow);
        }
        let levels = self.problem.levels();
        let [(mut all, _), (reference, _)] = self.tables();
        all.inputs.extend(reference.inputs);
        all.keys.extend(reference.keys);
        all.costs.extend(reference.costs);
        let dataflow = Dataflow::build(&all.problem(levels)?, &self.tasks);
        Ok(self.dataflow.get_or_init(|| dataflow))
    }

    /// Seconds of an instance's tasks: of the graph's instances, members first, then those of the reference.
    pub(super) fn seconds(&self) -> impl Iterator<Item = (InstanceId, Vec<f64>)> {
        let levels = self.problem.levels();
        let of_member = move |member| (0..levels).map(|level| self.problem.cost(member, level)).collect();
        let members = self.members.iter().zip(self.problem.members().map(of_member));
        let reference = self.reference.costs.chunks(levels).map(<[f64]>::to_vec);
        let reference = self.reference_only.iter().zip(reference);
        members.chain(reference).map(|(id, seconds)| (*id, seconds))
    }

    /// The tables of the members, and of the instances that serve the reference only.
    pub(super) fn tables(&self) -> [(ProblemTables, &[InstanceId]); 2] {
        let mut own = ProblemTables::default();
        for member in self.problem.members() {
            own.inputs.push(self.problem.inputs(member));
            own.keys.extend(self.problem.keys(member));
            own.costs.extend((0..self.problem.levels()).map(|level| self.problem.cost(member, level)));
        }
        [(own, &self.members), (self.reference.clone(), &self.reference_only)]
    }

    /// The instances that serve the reference only, as members of [`dataflow`](Self::dataflow).
    pub(super) fn reference_members(&self) -> impl Iterator<Item = Member> + use<> {
        let first = self.members.len() as u32;
        (first..first + self.reference_only.len() as u32).map(Member)
    }

    /// All buckets as lists of graph instances: those of the reference first.
    pub(super) fn all_buckets(&self, solution: &Buckets) -> impl Iterator<Item = Vec<InstanceId>> {
        let reference = self.reference_only.iter().map(|&id| vec![id]);
        let instance = |member: &Member| self.members[member.0 as usize];
        reference.chain(solution.iter().map(move |members| members.iter().map(instance).collect()))
    }

    /// The same, in the order of execution: tile after tile, so that what belongs to a tile can go before the next one
    /// is begun.
    /// A bucket of several tiles, of which TRTMA makes some where there are more tiles than buckets, is executed as
    /// several: they share nothing.
    pub(super) fn buckets_by_tile(
        &self,
        solution: &Buckets,
        runs: &Runs,
        graph: &CompactGraph,
    ) -> Vec<(usize, Vec<InstanceId>)> {
        let mut buckets = Vec::new();
        for mut bucket in self.all_buckets(solution) {
            let tile = |id: &InstanceId| runs.tile(graph.instance(*id).first_run);
            let inputs = |id: &InstanceId| (tile(id), graph.instance(*id).inputs.0);
            bucket.sort_by_key(inputs);
            let parts = bucket.chunk_by(|a, b| inputs(a) == inputs(b));
            buckets.extend(parts.map(|part| (tile(&part[0]), part.to_vec())));
        }
        buckets.sort_by_key(|(tile, _)| *tile);
        buckets
    }
}

impl ProblemTables {
    fn problem(self, levels: usize) -> Result<MergeProblem, PlanningError> {
        MergeProblem::new(levels, self.inputs, self.keys, TaskCosts::PerTask(self.costs))
            .map_err(PlanningError::new)
    }
}

/// The tasks of a stage by the values they consume: what is equal, and what it is believed to cost.
struct TaskTable<'a> {
    material: PlanningInput<'a>,
    stage: &'a Stage,
    operations: Vec<Arc<dyn Operation>>,
    /// Declared seconds, by tile and task.
    declared: Vec<Vec<f64>>,
    /// By task.
    keys: Vec<Interner<Vec<Value>>>,
    /// How many times what is declared a task takes, by task and key.
    ratios: Vec<Vec<f64>>,
}

impl<'a> TaskTable<'a> {
    fn new(material: PlanningInput<'a>, stage: &'a Stage) -> Self {
        let operations = operations(stage, material.registry);
        let declared = |pixels| operations.iter().map(|operation| operation.cost_seconds(pixels)).collect();
        let declared = material.tiles.iter().map(|tile| declared(tile.pixels)).collect();
        let keys = stage.tasks.iter().map(|_| Interner::default()).collect();
        let ratios = stage.tasks.iter().map(|_| Vec::new()).collect();
        Self { material, stage, operations, declared, keys, ratios }
    }

    /// The key and the seconds of each task of a run.
    fn of_run(&mut self, runs: &Runs, run: RunId) -> impl Iterator<Item = (u32, f64)> {
        let (material, stage) = (self.material, self.stage);
        let evaluation = &material.evaluations[runs.evaluation(run)];
        let tasks = stage.tasks.iter().zip(&self.operations).zip(&self.declared[runs.tile(run)]);
        let tables = self.keys.iter_mut().zip(&mut self.ratios);
        tasks.zip(tables).map(move |(((task, operation), declared), (keys, ratios))| {
            let values = || stage.task_parameters(task).map(|p| evaluation[p]).collect::<Vec<_>>();
            let key = keys.intern(values());
            if key as usize == ratios.len() {
                ratios.push(material.costs.ratio(operation.as_ref(), &values()));
            }
            (key, declared * ratios[key as usize])
        })
    }
}

/// The work of a stage's instances, nothing shared.
fn work(
    material: PlanningInput<'_>,
    runs: &Runs,
    graph: &CompactGraph,
    index: StageIndex,
    stage: &Stage,
) -> WorkTotal {
    let mut tasks = TaskTable::new(material, stage);
    let mut work = WorkTotal::default();
    for id in graph.of_stage(index).filter(|&id| !graph.instance(id).reference_only) {
        work.tasks += stage.tasks.len();
        work.seconds +=
            tasks.of_run(runs, graph.instance(id).first_run).map(|(_, seconds)| seconds).sum::<f64>();
    }
    work
}

/// What the tasks of a stage read of each other. One that reads any input of the stage is taken to read them all: more
/// may turn out to be shared than is planned, never less.
fn task_graph(stage: &Stage) -> Result<TaskGraph, PlanningError> {
    let reads = stage.tasks.iter().map(|task| TaskReads {
        tasks: task
            .reads
            .iter()
            .filter_map(|read| match *read {
                TaskInput::Task { task, .. } => Some(task),
                TaskInput::StageInput(_) => None,
            })
            .collect(),
        inputs: task.reads.iter().any(|read| matches!(read, TaskInput::StageInput(_))),
    });
    TaskGraph::new(reads.collect()).map_err(PlanningError::new)
}

fn runs(material: PlanningInput<'_>) -> Result<Runs, PlanningError> {
    let stages = &material.workflow.stages;
    // Columns of external inputs: those of the workflow, then the reference file's.
    let columns = material.tiles.first().map_or(0, |tile| tile.inputs.len());
    let read_as = material.workflow.reference_elements();
    let source = |input: &StageInput| match input.origin {
        InputOrigin::Input(input) => Source::External(ExternalIndex(input as u32)),
        InputOrigin::Stage { stage, .. } => Source::Stage(StageIndex(stage as u32)),
        InputOrigin::Reference if material.reference_run => {
            let stage = material.workflow.reference.as_ref().map_or(0, |reference| reference.stage);
            Source::Reference(StageIndex(stage as u32))
        }
        InputOrigin::Reference => {
            Source::External(ExternalIndex(reference_column(material, &read_as, input) as u32))
        }
    };
    let shape = stages.iter().map(|s| s.inputs.iter().map(source).collect()).collect();
    let shape = WorkflowShape::new(shape, columns).map_err(PlanningError::new)?;

    let mut keys = Vec::with_capacity(material.evaluations.len() * stages.len());
    let mut interners: Vec<Interner<Vec<Value>>> = stages.iter().map(|_| Interner::default()).collect();
    for evaluation in material.evaluations {
        for (stage, interner) in stages.iter().zip(&mut interners) {
            keys.push(interner.intern(stage.parameters.iter().map(|&p| evaluation[p]).collect()));
        }
    }
    let mut interners: Vec<Interner<RegionKey>> = (0..columns).map(|_| Interner::default()).collect();
    let mut externals = Vec::with_capacity(material.tiles.len() * columns);
    for tile in material.tiles {
        externals.extend(tile.inputs.iter().zip(&mut interners).map(|(key, interner)| interner.intern(*key)));
    }
    let (evaluations, tiles) = (material.evaluations.len(), material.tiles.len());
    Runs::new(shape, evaluations, tiles, keys, externals, material.defaults_run).map_err(PlanningError::new)
}

/// Where [`TileFacts::inputs`](super::PlanTile::inputs) holds the reference file as `input` wants it; `read_as` are the
/// types it is read as.
pub(super) fn reference_column(
    material: PlanningInput<'_>,
    read_as: &[ElementType],
    input: &StageInput,
) -> usize {
    let place = read_as.iter().position(|element| *element == input.region.element);
    material.workflow.inputs.len() + place.unwrap_or(0)
}
