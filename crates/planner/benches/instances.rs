//! Memory and time of a study for each stage instance, by part: what a manager keeps from the plan to the end of the study.
//!
//! `cargo bench -p pleach-planner --bench instances -- [EVALUATIONS]`

#![expect(clippy::print_stdout, reason = "it prints a table")]

use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::study::Study;
use pleach_planner::{
    BucketLimitOptions, PlanOptions, PlanRequest, PlanTile, PlanningInput, StrategyName, identity, plan,
};
use pleach_workflow::{Domain, Value, Workflow};
use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;

/// Returns parameter sets. Each parameter has one of eight values, by a fixed sequence.
fn evaluations(workflow: &Workflow, count: usize) -> Vec<Vec<Value>> {
    let mut state = 7_u64;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 33) as usize
    };
    let mut value = |domain: &Domain, default| match domain {
        Domain::Levels { values } => values[next() % values.len().min(8)],
        _ => default,
    };
    let mut set =
        |_| workflow.parameters.iter().map(|parameter| value(&parameter.domain, parameter.default)).collect();
    (0..count).map(&mut set).collect()
}

/// Prints the bytes allocated and the time passed since the step before.
struct Steps {
    bytes: u64,
    start: Instant,
}

impl Steps {
    fn begin() -> Self {
        Self { bytes: pleach_pages::allocated_bytes(), start: Instant::now() }
    }

    fn print(&mut self, name: &str, instances: usize) {
        let micros = self.start.elapsed().as_secs_f64() * 1e6 / instances as f64;
        let bytes = pleach_pages::allocated_bytes();
        let each = (bytes as f64 - self.bytes as f64) / instances as f64;
        println!("{name:<16} {each:>8.0} bytes {micros:>8.2} us an instance");
        *self = Self { bytes, start: Instant::now() };
    }
}

fn main() {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(50_000);
    let registry = pleach_pathology::registry();
    let workflow = Workflow::embedded(&pleach_pathology::NUCLEI_DESCRIPTORS, &registry).expect("descriptors");
    let workflow = workflow.measuring(0);
    let mut steps = Steps::begin();
    let evaluations = Arc::new(evaluations(&workflow, count));
    steps.print("parameter sets", 2 * count);
    let input = PlanningInput {
        workflow: &workflow,
        registry: &registry,
        evaluations: &evaluations,
        defaults_run: true,
        reference_run: true,
        tiles: &[PlanTile { pixels: 1 << 18, inputs: vec![identity::of_file("tile", Path::new("a.png"))] }],
        units: None,
        costs: &CostModel::default(),
        link: None,
        bucket_overhead_seconds: 0.0,
        accelerators: 0,
    };
    let request = PlanRequest {
        options: PlanOptions::new(StrategyName::Ranges, ReuseScope::Value),
        buckets: BucketLimitOptions { max_bucket_size: None, max_buckets: None },
        slots: NonZeroU32::new(256).expect("not 0"),
        workers: &[],
        tree_fallback: false,
    };
    let mut planned = plan(input, &request).expect("a plan");
    let instances = planned.study.instances();
    steps.print("plan", instances);
    let most = planned.record.max_buckets.and_then(NonZeroUsize::new).expect("a limit");
    let replanner = planned.study.take_replanner(most, NonZeroUsize::MIN);
    steps.print("replanner", instances);
    let plan = std::mem::take(&mut planned.study.plan);
    let study = Study::resume(plan, &BTreeSet::new()).expect("a valid plan");
    steps.print("study", instances);
    println!("{instances} instances, {} buckets of {}", study.unstarted().count(), replanner.max_buckets());
}
