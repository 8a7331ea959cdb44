//! From a study and its parameter sets to a plan: stage instances merged, buckets made, keys given
//! (hops 3 and 4 of a study, joined to hop 5).
//!
//! The algorithms are `pleach-reuse`'s; this module translates between names, values and operations on one side
//! and the integers of that crate on the other. Nothing is executed and no image is opened here.

mod figures;
pub(crate) mod identity;
mod memory;
mod tasks;

pub(crate) use figures::PlanFigures;
pub(crate) use memory::{Least, rehearse};
pub(crate) use tasks::task_counts;

use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, Sharing};
use pleach_regions::{ElementType, RegionKey};
use pleach_reuse::{
    Buckets, CompactGraph, Costs, ExternalIndex, InstanceId, Interner, Member, Merging, Problem, ReuseTree,
    Runs, SolveError, Source, StageIndex, Strategy, WorkflowShape,
};
use pleach_workflow::{Operation, Origin, Registry, Stage, StageInput, Value, Workflow};
use std::collections::HashSet;
use std::sync::Arc;
use thiserror::Error;

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Material<'a> {
    /// The workflow of the study.
    pub(crate) workflow: &'a Workflow,
    /// Its operations.
    pub(crate) registry: &'a Registry,
    /// Parameter sets, evaluation 0 first where the run at defaults is the reference.
    pub(crate) evaluations: &'a [Vec<Value>],
    /// Whether evaluation 0 is there, and serves as reference.
    pub(crate) reference_run: bool,
    /// The tiles.
    pub(crate) tiles: &'a [TileFacts],
}

/// What planning needs to know of a tile.
#[derive(Clone, Debug)]
pub(crate) struct TileFacts {
    /// Pixels.
    pub(crate) pixels: u64,
    /// Keys of its files: one for each input of the workflow, then the reference file, if there is one, once for each
    /// of [`Workflow::reference_elements`].
    pub(crate) inputs: Vec<RegionKey>,
}

/// What is reused, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Nothing: every run is replicated.
    None,
    /// Equal stage instances, and tasks.
    Merged {
        /// How instances are put into buckets.
        strategy: Strategy,
        /// What their tasks share.
        sharing: Sharing,
    },
}

/// A finished plan with what is needed to find results in it.
#[derive(Debug)]
pub(crate) struct Woven {
    /// What to execute.
    pub(crate) plan: ExecutionPlan,
    /// What it saves and costs.
    pub(crate) figures: PlanFigures,
    runs: Runs,
    graph: CompactGraph,
    first_evaluation: usize,
}

/// The study is too large to be planned. Everything else that `pleach-reuse` can refuse is a defect of ours.
#[derive(Debug, Error)]
#[error("failed to plan the study: {0}")]
pub(crate) struct WeaveError(Box<dyn std::error::Error + Send + Sync>);

impl WeaveError {
    fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// A strategy refused a problem of this size; others may not.
    pub(crate) fn is_too_many_to_cut(&self) -> bool {
        self.0.downcast_ref::<SolveError>().is_some()
    }
}

/// The instances of one stage as a merging problem, and their solution.
struct StageSolution {
    /// Graph instances by member.
    members: Vec<InstanceId>,
    /// Graph instances that serve the reference only: a bucket each, before the others.
    reference_only: Vec<InstanceId>,
    problem: Problem,
    tree: ReuseTree,
    buckets: Buckets,
}

/// Makes the plan.
///
/// # Errors
/// [`WeaveError`] when the study has more runs than ids.
pub(crate) fn weave(material: Material<'_>, level: Level, workers: u32) -> Result<Woven, WeaveError> {
    let runs = runs(material)?;
    let merging = if level == Level::None { Merging::None } else { Merging::Merged };
    let graph = CompactGraph::build(&runs, merging);
    let (strategy, sharing) = match level {
        Level::None => (Strategy::Stage, Sharing::Tree),
        Level::Merged { strategy, sharing } => (strategy, sharing),
    };
    let mut solutions = Vec::new();
    for (number, stage) in (0u32..).zip(&material.workflow.stages) {
        let operations = operations(stage, material.registry);
        solutions.push(solve(material, &runs, &graph, StageIndex(number), stage, &operations, strategy)?);
    }
    let figures = figures::of(material, &runs, &graph, &solutions, workers)?;
    let plan = ExecutionPlan { sharing, ..execution(material, &runs, &graph, &solutions, level) };
    let first_evaluation = usize::from(!material.reference_run);
    Ok(Woven { plan, figures, runs, graph, first_evaluation })
}

impl Woven {
    /// The instance that computes a stage of an evaluation (numbered from 1; 0 is the reference) on a tile.
    pub(crate) fn instance(
        &self,
        evaluation: usize,
        tile: usize,
        stage: usize,
    ) -> pleach_dispatch::InstanceId {
        let run = self.runs.run(evaluation - self.first_evaluation, tile);
        pleach_dispatch::InstanceId(self.graph.instance_of(run, StageIndex(stage as u32)).0)
    }

    /// The evaluation (as in [`instance`](Self::instance)) and the tile of the first run that an instance serves.
    pub(crate) fn first_run(&self, instance: pleach_dispatch::InstanceId) -> (usize, usize) {
        let run = self.graph.instance(InstanceId(instance.0)).first_run;
        (self.runs.evaluation(run) + self.first_evaluation, self.runs.tile(run))
    }

    /// The stage of an instance.
    pub(crate) fn stage(&self, instance: pleach_dispatch::InstanceId) -> usize {
        self.graph.instance(InstanceId(instance.0)).stage.0 as usize
    }
}

/// The operations of a stage's tasks; a checked workflow names only linked ones.
fn operations(stage: &Stage, registry: &Registry) -> Vec<Arc<dyn Operation>> {
    stage.tasks.iter().filter_map(|task| registry.get(&task.operation, task.version).cloned()).collect()
}

fn runs(material: Material<'_>) -> Result<Runs, WeaveError> {
    let stages = &material.workflow.stages;
    // Columns of external inputs: those of the workflow, then the reference file's.
    let columns = material.tiles.first().map_or(0, |tile| tile.inputs.len());
    let read_as = material.workflow.reference_elements();
    let source = |input: &StageInput| match input.origin {
        Origin::Input(input) => Source::External(ExternalIndex(input as u32)),
        Origin::Stage { stage, .. } => Source::Stage(StageIndex(stage as u32)),
        Origin::Reference if material.reference_run => {
            let stage = material.workflow.reference.as_ref().map_or(0, |reference| reference.stage);
            Source::Reference(StageIndex(stage as u32))
        }
        Origin::Reference => {
            Source::External(ExternalIndex(reference_column(material, &read_as, input) as u32))
        }
    };
    let shape = stages.iter().map(|s| s.inputs.iter().map(source).collect()).collect();
    let shape = WorkflowShape::new(shape, columns).map_err(WeaveError::new)?;

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
    Runs::new(shape, evaluations, tiles, keys, externals, material.reference_run).map_err(WeaveError::new)
}

/// Where [`TileFacts::inputs`] holds the reference file as `input` wants it; `read_as` are the types it is read as.
fn reference_column(material: Material<'_>, read_as: &[ElementType], input: &StageInput) -> usize {
    let place = read_as.iter().position(|element| *element == input.region.element);
    material.workflow.inputs.len() + place.unwrap_or(0)
}

fn solve(
    material: Material<'_>,
    runs: &Runs,
    graph: &CompactGraph,
    index: StageIndex,
    stage: &Stage,
    operations: &[Arc<dyn Operation>],
    strategy: Strategy,
) -> Result<StageSolution, WeaveError> {
    let (mut members, mut reference_only) = (Vec::new(), Vec::new());
    for id in graph.of_stage(index) {
        let list = if graph.instance(id).reference_only { &mut reference_only } else { &mut members };
        list.push(id);
    }
    let levels = stage.tasks.len();
    let mut interners: Vec<Interner<Vec<Value>>> = (0..levels).map(|_| Interner::default()).collect();
    let mut inputs = Vec::with_capacity(members.len());
    let mut keys = Vec::with_capacity(members.len() * levels);
    let mut costs = Vec::with_capacity(members.len() * levels);
    for &id in &members {
        let instance = graph.instance(id);
        let evaluation = &material.evaluations[runs.evaluation(instance.first_run)];
        let pixels = material.tiles[runs.tile(instance.first_run)].pixels;
        inputs.push(instance.inputs.0);
        for ((task, interner), operation) in stage.tasks.iter().zip(&mut interners).zip(operations) {
            keys.push(interner.intern(stage.task_parameters(task).map(|p| evaluation[p]).collect()));
            costs.push(operation.cost_seconds(pixels));
        }
    }
    let problem = Problem::new(levels, inputs, keys, Costs::PerTask(costs)).map_err(WeaveError::new)?;
    let tree = ReuseTree::build(&problem);
    let buckets = strategy.solve(&problem, &tree).map_err(WeaveError::new)?;
    Ok(StageSolution { members, reference_only, problem, tree, buckets })
}

impl StageSolution {
    /// All buckets as lists of graph instances: those of the reference first.
    fn all_buckets(&self) -> impl Iterator<Item = Vec<InstanceId>> {
        let reference = self.reference_only.iter().map(|&id| vec![id]);
        let instance = |member: &Member| self.members[member.0 as usize];
        reference.chain(self.buckets.iter().map(move |members| members.iter().map(instance).collect()))
    }

    /// The same, in the order of execution: tile after tile, so that what belongs to a tile can go before the next one
    /// is begun.
    /// A bucket of several tiles, of which TRTMA makes some where there are more tiles than buckets, is executed as
    /// several: they share nothing.
    fn buckets_by_tile(&self, runs: &Runs, graph: &CompactGraph) -> Vec<(usize, Vec<InstanceId>)> {
        let mut buckets = Vec::new();
        for mut bucket in self.all_buckets() {
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

fn execution(
    material: Material<'_>,
    runs: &Runs,
    graph: &CompactGraph,
    solutions: &[StageSolution],
    level: Level,
) -> ExecutionPlan {
    let stages = &material.workflow.stages;
    let read_as = material.workflow.reference_elements();
    let mut instances: Vec<InstancePlan> = Vec::with_capacity(graph.instances().len());
    for (id, instance) in (0u32..).map(InstanceId).zip(graph.instances()) {
        let number = instance.stage.0 as usize;
        let stage = &stages[number];
        let run = instance.first_run;
        let evaluation = &material.evaluations[runs.evaluation(run)];
        let tile = &material.tiles[runs.tile(run)];
        let producer = |s: usize| &instances[graph.instance_of(run, StageIndex(s as u32)).0 as usize];
        let input = |input: &StageInput| match input.origin {
            Origin::Input(input) => tile.inputs[input],
            Origin::Stage { stage, output } => producer(stage).outputs[output].key,
            Origin::Reference => match &material.workflow.reference {
                Some(reference) if material.reference_run => {
                    let run = runs.run(0, runs.tile(run));
                    let id = graph.instance_of(run, StageIndex(reference.stage as u32));
                    instances[id.0 as usize].outputs[reference.output].key
                }
                _ => tile.inputs[reference_column(material, &read_as, input)],
            },
        };
        let inputs: Vec<RegionKey> = stage.inputs.iter().map(input).collect();
        let parameters: Vec<Value> = stage.parameters.iter().map(|&p| evaluation[p]).collect();
        // Without merging, equal instances are different ones, and so are their outputs.
        let replica = (level == Level::None).then_some(run.0);
        let identity = identity::of_instance(stage, &parameters, &inputs, replica);
        let response = &material.workflow.response;
        let outputs = (0..stage.outputs.len()).map(|output| OutputPlan {
            key: identity::of_output(&identity, output),
            stored: false,
            reported: number == response.stage && output == response.output,
        });
        let outputs = outputs.collect();
        let mut parents: Vec<_> = graph.parents(id).map(|p| pleach_dispatch::InstanceId(p.0)).collect();
        parents.sort_unstable();
        parents.dedup();
        instances.push(InstancePlan { stage: number, parameters, inputs, outputs, parents });
    }
    let read: HashSet<RegionKey> = instances.iter().flat_map(|i| i.inputs.iter().copied()).collect();
    for output in instances.iter_mut().flat_map(|instance| &mut instance.outputs) {
        output.stored = read.contains(&output.key);
    }
    let id = |id: InstanceId| pleach_dispatch::InstanceId(id.0);
    let bucket = |(tile, bucket): (usize, Vec<InstanceId>)| BucketPlan {
        instances: bucket.into_iter().map(id).collect(),
        pixels: material.tiles[tile].pixels,
    };
    let buckets = solutions.iter().flat_map(|s| s.buckets_by_tile(runs, graph)).map(bucket).collect();
    ExecutionPlan { stages: stages.clone(), instances, buckets, ..ExecutionPlan::default() }
}
