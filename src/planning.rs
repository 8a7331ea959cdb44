//! From a study and its parameter sets to a plan: stage instances merged, buckets made, keys given
//! (hops 3 and 4 of a study, joined to hop 5).
//!
//! The algorithms are `pleach-reuse`'s; this module translates between names, values and operations on one side
//! and the integers of that crate on the other. Nothing is executed and no image is opened here.

mod draft;
mod forecast;
pub(crate) mod identity;
mod memory_bounds;
mod planner;
mod replan;
mod room;
mod summary;
mod tasks;
mod workload;

pub(crate) use draft::Draft;
pub(crate) use forecast::{Forecast, forecast};
pub(crate) use memory_bounds::{MemoryFloor, WorkerMemory};
pub(crate) use planner::PlanBuilder;
pub(crate) use replan::StudyReplanner;
pub(crate) use summary::{PlanSummary, of as figures};
pub(crate) use tasks::task_counts;

use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_regions::RegionKey;
use pleach_reuse::{Buckets, CompactGraph, InstanceId, Runs, SolveError, StageIndex, Strategy};
use pleach_workflow::{InputOrigin, Operation, Registry, Stage, StageInput, Value, Workflow};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use thiserror::Error;

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanningInput<'a> {
    /// The workflow of the study.
    pub(crate) workflow: &'a Workflow,
    /// Its operations.
    pub(crate) registry: &'a Registry,
    /// Parameter sets, evaluation 0 (the defaults) first where it is run.
    pub(crate) evaluations: &'a [Vec<Value>],
    /// Whether evaluation 0 is there.
    pub(crate) defaults_run: bool,
    /// Whether it is there and serves as reference.
    pub(crate) reference_run: bool,
    /// The tiles.
    pub(crate) tiles: &'a [PlanTile],
    /// What operations are believed to cost.
    pub(crate) costs: &'a CostModel,
}

/// What planning needs to know of a tile.
#[derive(Clone, Debug)]
pub(crate) struct PlanTile {
    /// Pixels.
    pub(crate) pixels: u64,
    /// Keys of its files: one for each input of the workflow, then the reference file, if there is one, once for each
    /// of [`Workflow::reference_elements`].
    pub(crate) inputs: Vec<RegionKey>,
}

/// What is reused, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReuseMode {
    /// Nothing: every run is replicated.
    None,
    /// Equal stage instances, and tasks.
    Merged {
        /// How instances are put into buckets.
        strategy: Strategy,
        /// What their tasks share; of no account where every instance is a bucket.
        sharing: ReuseScope,
    },
}

impl ReuseMode {
    /// How instances are put into buckets.
    pub(crate) fn strategy(self) -> Option<Strategy> {
        match self {
            Self::None => None,
            Self::Merged { strategy, .. } => Some(strategy),
        }
    }

    /// What the tasks of a stage share, if anything.
    fn sharing(self) -> Option<ReuseScope> {
        match self {
            Self::None | Self::Merged { strategy: Strategy::Stage, .. } => None,
            Self::Merged { sharing, .. } => Some(sharing),
        }
    }

    /// Whether equal tasks of different buckets are one.
    fn is_dataflow(self) -> bool {
        self.sharing().is_some_and(|sharing| sharing != ReuseScope::Tree)
    }
}

/// A finished plan with what is needed to find results in it.
#[derive(Debug)]
pub(crate) struct PlannedStudy {
    /// What to execute.
    pub(crate) plan: ExecutionPlan,
    /// What it saves and costs.
    pub(crate) figures: PlanSummary,
    runs: Runs,
    graph: CompactGraph,
    first_evaluation: usize,
    /// What the plan was made from, for it to be made anew.
    stages: Vec<planner::StageProblem>,
    /// Of each tile.
    pixels: Vec<u64>,
}

/// The study is too large to be planned. Everything else that `pleach-reuse` can refuse is a defect of ours.
#[derive(Debug, Error)]
#[error("failed to plan the study: {0}")]
pub(crate) struct PlanningError(Box<dyn std::error::Error + Send + Sync>);

impl PlanningError {
    fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// A strategy refused a problem of this size; others may not.
    pub(crate) fn is_too_many_to_cut(&self) -> bool {
        self.0.downcast_ref::<SolveError>().is_some()
    }
}

/// Makes the plan of a study that is set up with what the level merges.
///
/// # Errors
/// [`PlanningError`] when the strategy does not take so many instances, or there are more tasks than ids.
pub(crate) fn plan_study(
    loom: PlanBuilder<'_>,
    level: ReuseMode,
    workers: u32,
) -> Result<PlannedStudy, PlanningError> {
    let solutions = loom.solve(level)?;
    room::for_execution(loom.material, &loom.graph)?;
    let plan = execution(&loom, &solutions, level);
    PlannedStudy::new(loom, plan, &solutions, level, workers)
}

impl PlannedStudy {
    fn new(
        loom: PlanBuilder<'_>,
        plan: ExecutionPlan,
        solutions: &[Buckets],
        level: ReuseMode,
        workers: u32,
    ) -> Result<Self, PlanningError> {
        let figures = summary::of(&loom, solutions, level, workers)?;
        let first_evaluation = usize::from(!loom.material.defaults_run);
        let PlanBuilder { runs, graph, stages, material, .. } = loom;
        let pixels = material.tiles.iter().map(|tile| tile.pixels).collect();
        Ok(Self { plan, figures, runs, graph, first_evaluation, stages, pixels })
    }

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

    /// Lets go of what it takes to plan the study anew while it runs, for workers that come and go. There are `max_buckets`
    /// now, and never fewer than `min_buckets`.
    pub(crate) fn take_replan(
        &mut self,
        max_buckets: NonZeroUsize,
        min_buckets: NonZeroUsize,
    ) -> StudyReplanner {
        let stages = std::mem::take(&mut self.stages);
        let tile_pixels =
            |instance: InstanceId| self.pixels[self.runs.tile(self.graph.instance(instance).first_run)];
        StudyReplanner::new(stages, max_buckets, min_buckets, tile_pixels)
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

fn execution(loom: &PlanBuilder<'_>, solutions: &[Buckets], level: ReuseMode) -> ExecutionPlan {
    let PlanBuilder { material, runs, graph, .. } = loom;
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
            InputOrigin::Input(input) => tile.inputs[input],
            InputOrigin::Stage { stage, output } => producer(stage).outputs[output].key,
            InputOrigin::Reference => match &material.workflow.reference {
                Some(reference) if material.reference_run => {
                    let run = runs.run(0, runs.tile(run));
                    let id = graph.instance_of(run, StageIndex(reference.stage as u32));
                    instances[id.0 as usize].outputs[reference.output].key
                }
                _ => tile.inputs[planner::reference_column(*material, &read_as, input)],
            },
        };
        let inputs: Vec<RegionKey> = stage.inputs.iter().map(input).collect();
        let parameters: Vec<Value> = stage.parameters.iter().map(|&p| evaluation[p]).collect();
        // Without merging, equal instances are different ones, and so are their outputs.
        let replica = (level == ReuseMode::None).then_some(run.0);
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
    let by_stage = loom.stages.iter().zip(solutions);
    let buckets = by_stage.flat_map(|(stage, solution)| stage.buckets_by_tile(solution, runs, graph));
    let buckets = buckets.map(bucket).collect();
    let sharing = level.sharing().unwrap_or_default();
    ExecutionPlan { stages: stages.clone(), instances, buckets, sharing, ..ExecutionPlan::default() }
}
