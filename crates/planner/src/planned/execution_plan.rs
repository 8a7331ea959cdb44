//! Builds the execution plan from buckets: instances with their parameters, inputs, outputs and parents.

use crate::builder;
use crate::{PlanBuilder, ReuseMode, identity};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlans, OutputPlan};
use pleach_regions::{ElementType, RegionKey};
use pleach_reuse::{Buckets, InstanceId, RunId, StageIndex};
use pleach_workflow::{InputOrigin, StageInput, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Builds the plan of `solutions`, the buckets of each stage.
pub(crate) fn build(builder: &PlanBuilder<'_>, solutions: &[Buckets], mode: ReuseMode) -> ExecutionPlan {
    let PlanBuilder { study, runs, graph, .. } = builder;
    let stages = &study.workflow.stages;
    let read_as = study.workflow.reference_elements();
    let columns = stages.iter().map(|stage| stage.parameters.clone()).collect();
    let mut instances = InstancePlans::of_sets(Arc::clone(study.evaluations), columns);
    for (id, instance) in (0u32..).map(InstanceId).zip(graph.instances()) {
        let number = instance.stage.0 as usize;
        let stage = &stages[number];
        let run = instance.first_run;
        let evaluation = &study.evaluations[runs.evaluation(run)];
        let input = |input: &StageInput| key_of(builder, &instances, &read_as, run, input);
        let inputs: Vec<RegionKey> = stage.inputs.iter().map(input).collect();
        let parameters: Vec<Value> = stage.parameters.iter().map(|&p| evaluation[p]).collect();
        // Without merging, equal instances are different ones, and so are their outputs.
        let replica = (mode == ReuseMode::None).then_some(run.0);
        let identity = identity::of_instance(stage, &parameters, &inputs, replica);
        let response = &study.workflow.response;
        let outputs = (0..stage.outputs.len()).map(|output| OutputPlan {
            key: identity::of_output(&identity, output),
            stored: false,
            reported: number == response.stage && output == response.output,
        });
        let outputs: Vec<OutputPlan> = outputs.collect();
        let mut parents: Vec<_> = graph.parents(id).map(|p| pleach_dispatch::InstanceId(p.0)).collect();
        parents.sort_unstable();
        parents.dedup();
        instances.push_row((number, runs.evaluation(run)), &inputs, &outputs, &parents);
    }
    // An output that no instance reads is reported at most, so no worker has to store it.
    let read: HashSet<RegionKey> = instances.iter().flat_map(|i| i.inputs.iter().copied()).collect();
    instances.change_outputs(|output| output.stored = read.contains(&output.key));
    instances.shrink();
    let id = |id: InstanceId| pleach_dispatch::InstanceId(id.0);
    let bucket = |(tile, bucket): (usize, Vec<InstanceId>)| BucketPlan {
        pixels: builder.pixels[instances.at(id(bucket[0])).stage][tile],
        instances: bucket.into_iter().map(id).collect(),
    };
    let (planned, found) = (instances.len(), graph.instances().len());
    assert!(planned == found, "{planned} of {found} instances are planned");
    debug_assert!(
        instances.enumerate().all(|(id, instance)| instance.parents.iter().all(|parent| *parent < id)),
        "an instance precedes a parent"
    );
    let (solved, problems) = (solutions.len(), builder.stages.len());
    assert!(solved == problems, "{solved} of {problems} stages have buckets");
    let by_stage = builder.stages.iter().zip(solutions);
    let buckets = by_stage.flat_map(|(stage, solution)| stage.buckets_by_tile(solution, runs, graph));
    let buckets: Vec<BucketPlan> = buckets.map(bucket).collect();
    let in_buckets: usize = buckets.iter().map(|bucket| bucket.instances.len()).sum();
    assert!(in_buckets == planned, "{in_buckets} of {planned} instances are in buckets");
    let sharing = mode.sharing().unwrap_or_default();
    let bucket_overhead_seconds = builder.study.bucket_overhead_seconds;
    let stages = stages.clone();
    ExecutionPlan { stages, instances, buckets, sharing, bucket_overhead_seconds, ..ExecutionPlan::default() }
}

/// Returns the key of the region that an input of a run's stage reads.
fn key_of(
    builder: &PlanBuilder<'_>,
    instances: &InstancePlans,
    read_as: &[ElementType],
    run: RunId,
    input: &StageInput,
) -> RegionKey {
    let PlanBuilder { study, runs, graph, slots, .. } = builder;
    let run = builder::slot_of(slots, input).map_or(run, |slot| runs.neighbor(run, slot));
    let output = |run: RunId, stage: usize, output: usize| {
        let id = graph.instance_of(run, StageIndex(stage as u32));
        instances.at(pleach_dispatch::InstanceId(id.0)).outputs[output].key
    };
    let tile = runs.tile(run);
    match input.origin {
        InputOrigin::Input(input) => study.tiles[tile].inputs[input],
        InputOrigin::Stage { stage, output: number } => output(run, stage, number),
        InputOrigin::Reference => match &study.workflow.reference {
            Some(reference) if study.reference_run => {
                output(runs.run(0, tile), reference.stage, reference.output)
            }
            _ => study.tiles[tile].inputs[builder::reference_column(*study, read_as, input)],
        },
    }
}
