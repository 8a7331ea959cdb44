//! Merge problems of a study: its runs, their stage instances after merging, and each stage as a problem in integers.
//!
//! One builder serves all strategies and reuse scopes.

use crate::cost_classes::CostClasses;
use crate::memory::memory_check;
use crate::{PlanningError, PlanningInput, ReuseMode, operations};
use pleach_regions::{ElementType, RegionKey};
use pleach_reuse::{
    Buckets, CompactGraph, Dataflow, ExternalIndex, InstanceId, Interner, Member, MergeProblem, Merging,
    Neighbors, ReuseTree, RunId, Runs, SlotIndex, Source, StageIndex, Strategy, TaskCosts, TaskGraph,
    TaskReads, WorkflowShape, best_order,
};
use pleach_workflow::{InputOrigin, Stage, StageInput, TaskInput, UnitSelector, Value};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::num::NonZeroUsize;

/// Merge problems of a study.
#[derive(Debug)]
pub struct PlanBuilder<'a> {
    pub(super) study: PlanningInput<'a>,
    pub(super) runs: Runs,
    pub(super) graph: CompactGraph,
    pub(super) stages: Vec<StageProblem>,
    /// Work of each stage after stage merging, also for plans without merging.
    pub(super) after_merging: Vec<WorkTotal>,
    /// By stage, the pixels that it works on on each tile.
    pub(super) pixels: Vec<Vec<u64>>,
    /// Units that stages read beside their own, by slot.
    pub(super) slots: Vec<UnitSelector>,
}

/// Tasks of a stage, without those of the reference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkTotal {
    pub(super) tasks: usize,
    pub(super) seconds: f64,
}

/// Stage instances of one stage as a merge problem.
#[derive(Debug)]
pub(super) struct StageProblem {
    /// Graph instance of each member of the problem.
    pub(super) members: Vec<InstanceId>,
    /// Graph instances that only the reference needs: one bucket each, before the others.
    pub(super) reference_only: Vec<InstanceId>,
    pub(super) problem: MergeProblem,
    pub(super) tree: ReuseTree,
    /// Inputs of each task.
    pub(super) tasks: TaskGraph,
    /// Cost classes of the tasks, by key.
    pub(super) classes: CostClasses,
    /// Tables of the [`reference_only`](Self::reference_only) instances, in the problem's layout.
    reference: ProblemTables,
    dataflow: OnceCell<Dataflow>,
}

/// Inputs, task keys and task costs of some instances.
#[derive(Clone, Debug, Default)]
pub(super) struct ProblemTables {
    pub(super) inputs: Vec<u32>,
    pub(super) keys: Vec<u32>,
    pub(super) costs: Vec<f64>,
}

impl<'a> PlanBuilder<'a> {
    /// Builds the merge problems. With merged stage instances, they serve all reuse scopes.
    ///
    /// # Errors
    /// [`PlanningError`] if the study has more runs than ids, or this machine lacks the memory.
    pub fn set_up(study: PlanningInput<'a>, merging: Merging) -> Result<Self, PlanningError> {
        memory_check::for_runs(study)?;
        let (pixels, slots) = (study.stage_pixels(), study.selectors());
        let runs = runs(study, &slots)?;
        // Built for every scope: reuse is a fraction of the work after stage-level merging.
        let merged = CompactGraph::build(&runs, Merging::Merged);
        memory_check::for_tables(study, &merged)?;
        let stages = || (0u32..).map(StageIndex).zip(&study.workflow.stages);
        let after_merging =
            stages().map(|(index, stage)| work(study, &runs, &merged, (index, stage), &pixels));
        let after_merging = after_merging.collect();
        let graph = match merging {
            Merging::None => {
                let replicated = CompactGraph::build(&runs, Merging::None);
                memory_check::for_tables(study, &replicated)?;
                replicated
            }
            Merging::Merged => merged,
        };
        let problems =
            stages().map(|(index, stage)| StageProblem::new(study, &runs, &graph, (index, stage), &pixels));
        let stages = problems.collect::<Result<_, _>>()?;
        Ok(Self { study, runs, graph, stages, after_merging, pixels, slots })
    }

    /// Builds the buckets of each stage.
    ///
    /// # Errors
    /// [`PlanningError`] if the strategy refuses the number of instances.
    pub fn solve(&self, mode: ReuseMode) -> Result<Vec<Buckets>, PlanningError> {
        let strategy = mode.strategy().unwrap_or(Strategy::Stage);
        let solve = |stage: &StageProblem| {
            let StageProblem { problem, tree, tasks, .. } = stage;
            if mode.is_dataflow() {
                strategy.solve_dataflow(problem, tree, tasks, stage.dataflow()?).map_err(PlanningError::from)
            } else {
                strategy.solve(problem, tree).map_err(PlanningError::from)
            }
        };
        self.stages.iter().map(solve).collect()
    }

    /// Returns, for each stage, the task order with the most sharing.
    pub fn best_orders(&self) -> Vec<Vec<usize>> {
        self.stages.iter().map(|stage| best_order(&stage.problem, &stage.tasks).tasks).collect()
    }

    /// Returns the number of members of the largest stage.
    pub fn max_instances(&self) -> NonZeroUsize {
        let most = self.stages.iter().map(|stage| stage.members.len()).max().unwrap_or(0);
        NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN)
    }

    /// Returns the tile of an instance.
    pub(super) fn tile(&self, instance: InstanceId) -> usize {
        self.runs.tile(self.graph.instance(instance).first_run)
    }
}

impl StageProblem {
    fn new(
        study: PlanningInput<'_>,
        runs: &Runs,
        graph: &CompactGraph,
        (index, stage): (StageIndex, &Stage),
        pixels: &[Vec<u64>],
    ) -> Result<Self, PlanningError> {
        let (reference_only, members): (Vec<InstanceId>, Vec<InstanceId>) =
            graph.of_stage(index).partition(|&id| graph.instance(id).reference_only);
        let levels = stage.tasks.len();
        let mut tasks = TaskTable::new(study, stage, &pixels[index.0 as usize]);
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
        for (tables, instances) in [(&tables, members.len()), (&reference, reference_only.len())] {
            let (keys, costs) = (tables.keys.len(), tables.costs.len());
            assert!(keys == instances * levels, "{instances} instances of {levels} tasks have {keys} keys");
            assert!(keys == costs, "{keys} tasks have {costs} costs");
        }
        let problem = tables.problem(levels)?;
        let tree = ReuseTree::build(&problem);
        let graph = task_graph(stage)?;
        Ok(Self {
            members,
            reference_only,
            problem,
            tree,
            tasks: graph,
            classes: tasks.classes,
            reference,
            dataflow: OnceCell::new(),
        })
    }

    /// Returns the dataflow graph of all tasks, members first, then the reference's instances.
    ///
    /// # Errors
    /// [`PlanningError`] if there are more tasks than ids.
    pub(super) fn dataflow(&self) -> Result<&Dataflow, PlanningError> {
        if let Some(dataflow) = self.dataflow.get() {
            return Ok(dataflow);
        }
        let levels = self.problem.levels();
        let [(mut all, _), (reference, _)] = self.tables();
        all.inputs.extend(reference.inputs);
        all.keys.extend(reference.keys);
        all.costs.extend(reference.costs);
        // `OnceCell` has no stable fallible initializer, so the graph is built before `get_or_init`.
        let dataflow = Dataflow::build(&all.problem(levels)?, &self.tasks);
        Ok(self.dataflow.get_or_init(|| dataflow))
    }

    /// Returns the seconds of each task of each graph instance, members first, then the reference's instances.
    pub(super) fn seconds(&self) -> impl Iterator<Item = (InstanceId, Vec<f64>)> {
        let levels = self.problem.levels();
        let of_member = move |member| (0..levels).map(|level| self.problem.cost(member, level)).collect();
        let members = self.members.iter().zip(self.problem.members().map(of_member));
        let reference = self.reference.costs.chunks(levels).map(<[f64]>::to_vec);
        let reference = self.reference_only.iter().zip(reference);
        members.chain(reference).map(|(id, seconds)| (*id, seconds))
    }

    /// Returns the minimum seconds of each instance that only the reference needs.
    pub(super) fn reference_seconds(&self, is_dataflow: bool) -> impl Iterator<Item = (InstanceId, f64)> {
        let tasks = self.reference.costs.chunks(self.problem.levels());
        self.reference_only.iter().zip(tasks).map(move |(id, tasks)| {
            let chain = is_dataflow.then(|| self.tasks.longest_chain(tasks));
            (*id, chain.unwrap_or_else(|| tasks.iter().sum()))
        })
    }

    /// Returns the tables of the members, and of the instances that only the reference needs.
    pub(super) fn tables(&self) -> [(ProblemTables, &[InstanceId]); 2] {
        let mut own = ProblemTables::default();
        for member in self.problem.members() {
            own.inputs.push(self.problem.inputs(member));
            own.keys.extend(self.problem.keys(member));
            own.costs.extend((0..self.problem.levels()).map(|level| self.problem.cost(member, level)));
        }
        [(own, &self.members), (self.reference.clone(), &self.reference_only)]
    }

    /// Returns the instances that only the reference needs, as members of [`dataflow`](Self::dataflow).
    pub(super) fn reference_members(&self) -> impl Iterator<Item = Member> + use<> {
        let first = self.members.len() as u32;
        (first..first + self.reference_only.len() as u32).map(Member)
    }

    /// Returns all buckets as lists of graph instances, the reference's first.
    pub(super) fn all_buckets(&self, solution: &Buckets) -> impl Iterator<Item = Vec<InstanceId>> {
        let reference = self.reference_only.iter().map(|&id| vec![id]);
        let instance = |member: &Member| self.members[member.0 as usize];
        reference.chain(solution.iter().map(move |members| members.iter().map(instance).collect()))
    }

    /// Returns all buckets in execution order: tile after tile, so that regions of a tile are dropped before the next tile
    /// starts. A bucket of several tiles (TRTMA, ranges and HRB with more tiles than buckets) becomes one bucket for each
    /// tile: tiles share no tasks.
    pub(super) fn buckets_by_tile(
        &self,
        solution: &Buckets,
        runs: &Runs,
        graph: &CompactGraph,
    ) -> Vec<(usize, Vec<InstanceId>)> {
        let mut buckets = Vec::new();
        let (members, instances) = (solution.iter().map(<[Member]>::len).sum::<usize>(), self.members.len());
        assert!(members == instances, "{members} of {instances} instances are in the solution");
        for mut bucket in self.all_buckets(solution) {
            let inputs = |id: &InstanceId| inputs_of(*id, runs, graph);
            // Both sorts are stable: instances of one input keep the depth-first order of the strategy.
            bucket.sort_by_key(inputs);
            let parts = bucket.chunk_by(|a, b| inputs(a) == inputs(b));
            buckets.extend(parts.map(|part| (inputs(&part[0]).0, part.to_vec())));
        }
        buckets.sort_by_key(|(tile, _)| *tile);
        buckets
    }

    /// Returns the number of executed buckets of each bucket of [`all_buckets`](Self::all_buckets): one for each input.
    pub(super) fn executed_buckets(
        &self,
        solution: &Buckets,
        runs: &Runs,
        graph: &CompactGraph,
    ) -> impl Iterator<Item = usize> {
        self.all_buckets(solution).map(|bucket| {
            let inputs: HashSet<_> = bucket.iter().map(|id| inputs_of(*id, runs, graph)).collect();
            inputs.len()
        })
    }
}

/// Returns the tile and the inputs of an instance. Instances of others share no tasks, and are executed in other buckets.
fn inputs_of(id: InstanceId, runs: &Runs, graph: &CompactGraph) -> (usize, u32) {
    let instance = graph.instance(id);
    (runs.tile(instance.first_run), instance.inputs.0)
}

impl ProblemTables {
    fn problem(self, levels: usize) -> Result<MergeProblem, PlanningError> {
        MergeProblem::new(levels, self.inputs, self.keys, TaskCosts::of_tasks(levels, self.costs))
            .map_err(PlanningError::from)
    }
}

/// Tasks of a stage by the values that they consume: keys for equality, and costs.
struct TaskTable<'a> {
    study: PlanningInput<'a>,
    stage: &'a Stage,
    /// Declared seconds, by tile and task.
    declared: Vec<Vec<f64>>,
    /// Interner of each task's values.
    keys: Vec<Interner<Vec<Value>>>,
    classes: CostClasses,
}

impl<'a> TaskTable<'a> {
    fn new(study: PlanningInput<'a>, stage: &'a Stage, pixels: &[u64]) -> Self {
        let operations = operations(stage, study.registry);
        let declared = |pixels| operations.iter().map(|operation| operation.cost_seconds(pixels)).collect();
        let declared = pixels.iter().map(|pixels| declared(*pixels)).collect();
        let keys = stage.tasks.iter().map(|_| Interner::default()).collect();
        Self { study, stage, declared, keys, classes: CostClasses::of(operations) }
    }

    /// Returns the key and the seconds of each task of a run.
    fn of_run(&mut self, runs: &Runs, run: RunId) -> impl Iterator<Item = (u32, f64)> {
        let (study, stage) = (self.study, self.stage);
        let evaluation = &study.evaluations[runs.evaluation(run)];
        let tasks = stage.tasks.iter().zip(&self.declared[runs.tile(run)]).enumerate();
        let (classes, keys) = (&mut self.classes, &mut self.keys);
        tasks.map(move |(level, (task, declared))| {
            let values = || stage.task_parameters(task).map(|p| evaluation[p]).collect::<Vec<_>>();
            let key = keys[level].intern(values());
            (key, declared * classes.planned_ratio(level, key, values, study.costs))
        })
    }
}

/// Returns the work of a stage's instances without sharing.
fn work(
    study: PlanningInput<'_>,
    runs: &Runs,
    graph: &CompactGraph,
    (index, stage): (StageIndex, &Stage),
    pixels: &[Vec<u64>],
) -> WorkTotal {
    let mut tasks = TaskTable::new(study, stage, &pixels[index.0 as usize]);
    let mut work = WorkTotal::default();
    for id in graph.of_stage(index).filter(|&id| !graph.instance(id).reference_only) {
        work.tasks += stage.tasks.len();
        work.seconds +=
            tasks.of_run(runs, graph.instance(id).first_run).map(|(_, seconds)| seconds).sum::<f64>();
    }
    work
}

/// Returns which tasks of a stage read each other's outputs. A task that reads any stage input counts as a reader of all of
/// them: execution may share more than planned, never less.
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
    TaskGraph::new(reads.collect()).map_err(PlanningError::from)
}

fn runs(study: PlanningInput<'_>, slots: &[UnitSelector]) -> Result<Runs, PlanningError> {
    let stages = &study.workflow.stages;
    // Columns of external inputs: the workflow's, then the reference file's.
    let columns = study.tiles.first().map_or(0, |tile| tile.inputs.len());
    let read_as = study.workflow.reference_elements();
    let own = |input: &StageInput| match input.origin {
        InputOrigin::Input(input) => Source::External(ExternalIndex(input as u32)),
        InputOrigin::Stage { stage, .. } => Source::Stage(StageIndex(stage as u32)),
        InputOrigin::Reference if study.reference_run => {
            let stage = study.workflow.reference.as_ref().map_or(0, |reference| reference.stage);
            Source::Reference(StageIndex(stage as u32))
        }
        InputOrigin::Reference => {
            Source::External(ExternalIndex(reference_column(study, &read_as, input) as u32))
        }
    };
    let source = |input: &StageInput| match (own(input), slot_of(slots, input)) {
        (Source::Stage(stage), Some(slot)) => Source::StageAt(stage, slot),
        (Source::Reference(stage), Some(slot)) => Source::ReferenceAt(stage, slot),
        (Source::External(column), Some(slot)) => Source::ExternalAt(column, slot),
        (own, _) => own,
    };
    let shape = stages.iter().map(|s| s.inputs.iter().map(source).collect()).collect();
    let shape = WorkflowShape::new(shape, columns).map_err(PlanningError::from)?;

    let mut keys = Vec::with_capacity(study.evaluations.len() * stages.len());
    let mut interners: Vec<Interner<Vec<Value>>> = stages.iter().map(|_| Interner::default()).collect();
    for evaluation in study.evaluations.iter() {
        for (stage, interner) in stages.iter().zip(&mut interners) {
            keys.push(interner.intern(stage.parameters.iter().map(|&p| evaluation[p]).collect()));
        }
    }
    let mut interners: Vec<Interner<RegionKey>> = (0..columns).map(|_| Interner::default()).collect();
    let mut externals = Vec::with_capacity(study.tiles.len() * columns);
    for tile in study.tiles {
        externals.extend(tile.inputs.iter().zip(&mut interners).map(|(key, interner)| interner.intern(*key)));
    }
    let (evaluations, tiles) = (study.evaluations.len(), study.tiles.len());
    let neighbors = neighbors(study, slots);
    Runs::with_neighbors(shape, (evaluations, tiles), keys, externals, study.defaults_run, neighbors)
        .map_err(PlanningError::from)
}

/// Returns the slot of an input that reads a region of another unit.
pub(super) fn slot_of(slots: &[UnitSelector], input: &StageInput) -> Option<SlotIndex> {
    slots.binary_search(&input.unit()?).ok().map(|slot| SlotIndex(slot as u32))
}

/// Returns the tile that each slot names, for each tile.
fn neighbors(study: PlanningInput<'_>, slots: &[UnitSelector]) -> Neighbors {
    let Some(units) = study.units else { return Neighbors::default() };
    let tiles = 0..study.tiles.len();
    let named = tiles.flat_map(|tile| slots.iter().map(move |slot| units.select(tile, *slot) as u32));
    Neighbors {
        tiles: named.collect(),
        slots: slots.len(),
        first_of_specimen: units.first_of_specimen(),
        once: study.workflow.runs_once(),
    }
}

/// Returns the column of [`PlanTile::inputs`](crate::PlanTile::inputs) with the reference file in the element type of `input`.
/// `read_as` lists the types that the file is read as.
pub(super) fn reference_column(
    study: PlanningInput<'_>,
    read_as: &[ElementType],
    input: &StageInput,
) -> usize {
    let place = read_as.iter().position(|element| *element == input.region.element);
    study.workflow.inputs.len() + place.unwrap_or(0)
}
