//! Planned study: the execution plan, and the way from a run to the instances that compute it.

use crate::builder::StageProblem;
use crate::planned::summary;
use crate::replan::{RankTables, ReplannedStage};
use crate::{PlanBuilder, PlanSummary, PlanningError, ReuseMode, StudyReplanner};
use pleach_dispatch::plan::ExecutionPlan;
use pleach_reuse::{Buckets, CompactGraph, InstanceId, Runs, StageIndex};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

/// Execution plan, with the mapping from runs to instances.
#[derive(Debug)]
pub struct PlannedStudy {
    /// Plan to execute.
    pub plan: ExecutionPlan,
    /// Savings and predicted cost.
    pub summary: PlanSummary,
    runs: Runs,
    graph: Arc<CompactGraph>,
    first_evaluation: usize,
    /// Merge problems of the stages, for replanning.
    pub(crate) stages: Vec<StageProblem>,
    /// By stage, the pixels that it works on on each tile.
    pixels: Vec<Vec<u64>>,
    pub(crate) mode: ReuseMode,
    /// Slots of the plan, and buckets for each.
    made_for: (NonZeroUsize, NonZeroUsize),
}

impl PlannedStudy {
    pub(crate) fn new(
        builder: PlanBuilder<'_>,
        plan: ExecutionPlan,
        solutions: &[Buckets],
        mode: ReuseMode,
        workers: u32,
    ) -> Result<Self, PlanningError> {
        let summary = summary::summarize(&builder, solutions, mode, workers)?;
        // Evaluation 0 is the defaults. Without their run, runs begin with evaluation 1.
        let first_evaluation = usize::from(!builder.study.defaults_run);
        let workers = NonZeroU32::new(workers).unwrap_or(NonZeroU32::MIN);
        let slots = NonZeroUsize::try_from(workers).unwrap_or(NonZeroUsize::MIN);
        let made_for = (slots, builder.weigh_overhead(workers).buckets_per_core);
        let PlanBuilder { runs, graph, stages, pixels, .. } = builder;
        let graph = Arc::new(graph);
        Ok(Self { plan, summary, runs, graph, first_evaluation, stages, pixels, mode, made_for })
    }

    /// Returns the instance that computes a stage of an evaluation on a tile. Evaluations are numbered from 1; 0 is the
    /// reference.
    pub fn instance(&self, evaluation: usize, tile: usize, stage: usize) -> pleach_dispatch::InstanceId {
        let run = self.runs.run(evaluation - self.first_evaluation, tile);
        pleach_dispatch::InstanceId(self.graph.instance_of(run, StageIndex(stage as u32)).0)
    }

    /// Returns the evaluation (as in [`instance`](Self::instance)) and the tile of the first run that needs an instance.
    pub fn first_run(&self, instance: pleach_dispatch::InstanceId) -> (usize, usize) {
        let run = self.graph.instance(InstanceId(instance.0)).first_run;
        (self.runs.evaluation(run) + self.first_evaluation, self.runs.tile(run))
    }

    /// Takes the merge problems out of the plan, for replanning while workers join and leave. The plan has `max_buckets` for
    /// each stage now. Replanning never goes below `min_buckets`.
    pub fn take_replanner(&mut self, max_buckets: NonZeroUsize, min_buckets: NonZeroUsize) -> StudyReplanner {
        let stages = std::mem::take(&mut self.stages);
        let ranks = RankTables::new(Arc::clone(&self.graph), &stages, self.mode.is_dataflow());
        let tile_pixels = |instance: InstanceId| {
            let instance = self.graph.instance(instance);
            self.pixels[instance.stage.0 as usize][self.runs.tile(instance.first_run)]
        };
        let stages =
            stages.into_iter().map(|stage| ReplannedStage::of_problem(stage, self.mode, tile_pixels));
        let (slots, buckets_per_slot) = self.made_for;
        let replanner = StudyReplanner::new(stages.collect(), max_buckets, min_buckets);
        replanner.made_for(slots, buckets_per_slot).with_ranks(ranks)
    }

    /// Returns the pixels that an instance works on.
    pub fn pixels(&self, instance: pleach_dispatch::InstanceId) -> u64 {
        let instance = self.graph.instance(InstanceId(instance.0));
        self.pixels[instance.stage.0 as usize][self.runs.tile(instance.first_run)]
    }

    /// Returns the number of stage instances.
    pub fn instances(&self) -> usize {
        self.graph.instances().len()
    }

    /// Returns the stage of an instance.
    pub fn stage(&self, instance: pleach_dispatch::InstanceId) -> usize {
        self.graph.instance(InstanceId(instance.0)).stage.0 as usize
    }
}
