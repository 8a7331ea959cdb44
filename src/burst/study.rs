//! Plans the study of a burst for the base cluster, with the predicted costs of its tasks.

use super::StudySpec;
use super::error::BurstError;
use super::values::RecordedValues;
use pleach_api::submission::MAX_OVERHEAD_SECONDS;
use pleach_dispatch::cost_model::OperationWork;
use pleach_dispatch::plan::{ExecutionPlan, ReuseScope};
use pleach_planner::{
    BucketLimitOptions, Plan, PlanOptions, PlanRequest, PlanTile, PlannedStudy, PlanningInput, StageTables,
    StrategyName, identity,
};
use pleach_regions::{ElementType, RegionKey};
use pleach_results::measured_run::MeasuredRun;
use pleach_simulation::workload::{SharedStage, StageWorkload, Workload};
use pleach_study::{Defect, PreparedStudy};
use pleach_workflow::{Registry, Stage, Task};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;

/// Approximate bytes per pixel of an uncompressed input file.
const BYTES_A_PIXEL: u64 = 3;

/// Compression ratio of masks and label maps in transfers: encoding leaves less than 3 % of real ones
/// (benches/RESULTS.md, encodings).
const SMALLER: u64 = 33;

/// Study that can be simulated.
#[derive(Debug)]
pub(crate) struct SimulatedStudy {
    pub(crate) name: String,
    pub(crate) evaluations: usize,
    pub(crate) tiles: usize,
    /// Names of the stages.
    pub(crate) stages: Vec<String>,
    pub(crate) workload: Workload,
    /// Work of each operation, for the speed of accelerators.
    pub(crate) work: Vec<OperationWork>,
    /// Overhead of a bucket that the plan has.
    pub(crate) bucket_overhead_seconds: f64,
    /// Buckets of each stage of the plan.
    pub(crate) max_buckets: Option<usize>,
}

/// Returns the stages of a plan as workloads to simulate.
fn workloads(
    spec: &StudySpec,
    prepared: &PreparedStudy,
    study: &PlannedStudy,
) -> Result<Vec<StageWorkload>, BurstError> {
    let pixels = prepared.tiles.iter().map(|tile| tile.pixels).max().unwrap_or(0);
    let mut recorded = match (&spec.run, spec.reuse) {
        (Some(run), ReuseScope::Value) => Some(RecordedValues::read(run, prepared, spec.tiles.is_none())?),
        _ => None,
    };
    let mut workloads = Vec::new();
    for (tables, stage) in study.stage_tables().into_iter().zip(&prepared.study.workflow.stages) {
        let values =
            recorded.as_mut().map(|recorded| recorded.of_stage(study, &tables, stage)).transpose()?;
        let StageTables { levels, instances, inputs, keys, seconds, tasks } = tables;
        let sharing = (spec.reuse != ReuseScope::Tree).then(|| {
            let output_bytes = output_bytes(prepared, stage, pixels);
            SharedStage { tasks, output_bytes, values }
        });
        let workload = StageWorkload { levels, instances, inputs, keys, seconds, sharing };
        if let Some(recorded) = &recorded
            && !workload.has_consistent_values().map_err(Defect::new)?
        {
            return Err(recorded.other("the parameter sets of this study".to_owned()));
        }
        workloads.push(workload);
    }
    Ok(workloads)
}

impl SimulatedStudy {
    /// Plans a study for `slots` slots.
    ///
    /// # Errors
    /// [`BurstError`] names the error in the study or in the measured run.
    pub(crate) fn of(
        spec: &StudySpec,
        slots: NonZeroU32,
        seed: u64,
        registry: &Registry,
    ) -> Result<Self, BurstError> {
        let mut prepared = PreparedStudy::load(&spec.file, None, registry)?;
        let mut measured_overhead = None;
        if let Some(run) = &spec.run {
            let measured = MeasuredRun::read(run, &prepared)?;
            if spec.reuse == ReuseScope::Value && measured.reuse.as_deref() != Some("value") {
                return Err(BurstError::other_scope(run, measured.reuse));
            }
            measured_overhead =
                measured.bucket_overhead_seconds.filter(|seconds| *seconds <= MAX_OVERHEAD_SECONDS);
            prepared.costs = measured.costs;
        }
        let bucket_overhead_seconds = spec.overhead.or(measured_overhead).unwrap_or(0.0);
        if let Some((tiles, pixels)) = spec.tiles {
            prepared.tiles = made_up(&prepared, tiles, u64::from(pixels));
        }
        let request = PlanRequest {
            options: PlanOptions::new(StrategyName::default_of(spec.reuse), spec.reuse),
            buckets: BucketLimitOptions::default(),
            slots,
            workers: &[],
            tree_fallback: false,
        };
        let input = PlanningInput { bucket_overhead_seconds, ..prepared.planning_input() };
        let Plan { mut study, record, .. } = pleach_planner::plan(input, &request)?;
        let pixels = prepared.tiles.iter().map(|tile| tile.pixels).max().unwrap_or(0);
        let work = study.operation_work(input)?;
        let traces = workloads(spec, &prepared, &study)?;
        let plan = std::mem::take(&mut study.plan);
        let bytes = (on_the_way(&plan), pixels * BYTES_A_PIXEL);
        let workload = Workload::traced(plan, traces, bytes, spec.variation, seed).map_err(Defect::new)?;
        Ok(Self {
            name: prepared.study.name.clone(),
            evaluations: prepared.design.evaluations.len(),
            tiles: prepared.tiles.len(),
            stages: prepared.study.workflow.stages.iter().map(|stage| stage.name.clone()).collect(),
            workload,
            work,
            bucket_overhead_seconds,
            // Only these buckets are replanned.
            max_buckets: record.max_buckets,
        })
    }
}

/// Returns the transfer size of the outputs of each task of a stage in bytes.
fn output_bytes(prepared: &PreparedStudy, stage: &Stage, pixels: u64) -> Vec<u64> {
    let outputs = |task: &Task| {
        let operation = prepared.registry.get(&task.operation, task.version);
        let ports = operation.iter().flat_map(|operation| operation.outputs());
        ports.map(|port| on_the_wire(port.element, pixels)).sum()
    };
    stage.tasks.iter().map(outputs).collect()
}

/// Returns the transfer size of a region.
fn on_the_wire(element: ElementType, pixels: u64) -> u64 {
    let whole = element.bytes(pixels);
    if matches!(element, ElementType::Mask | ElementType::Labels) { whole / SMALLER } else { whole }
}

/// Returns the transfer size of each stored region in bytes.
fn on_the_way(plan: &ExecutionPlan) -> HashMap<RegionKey, u64> {
    let mut bytes = HashMap::new();
    for bucket in &plan.buckets {
        for instance in bucket.instances.iter().map(|id| plan.instances.at(*id)) {
            let declared = &plan.stages[instance.stage].outputs;
            for (output, declared) in
                instance.outputs.iter().zip(declared).filter(|(output, _)| output.stored)
            {
                bytes.insert(output.key, on_the_wire(declared.region.element, bucket.pixels));
            }
        }
    }
    bytes
}

/// Returns simulated tiles of `pixels` pixels. They need no files, because planning reads none.
fn made_up(prepared: &PreparedStudy, tiles: u32, pixels: u64) -> Vec<PlanTile> {
    let columns = prepared.tiles.first().map_or(0, |tile| tile.inputs.len());
    let tile = |number: u32| {
        let name = format!("tile {number}");
        let input = |column| identity::of_tile(&format!("simulated {column}"), Path::new(&name), None);
        // All workflow inputs of a tile read the same file.
        let own = prepared.study.workflow.inputs.len();
        let input = |column: usize| input(if column < own { 0 } else { column });
        PlanTile { pixels, inputs: (0..columns).map(input).collect() }
    };
    (0..tiles).map(tile).collect()
}
