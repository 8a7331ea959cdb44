//! Submission for tests of this crate and of the server.

use super::{InputFile, PlanChoice, Submission, VERSION};
use pleach_dispatch::plan::ReuseScope;
use pleach_planner::StrategyName;
use pleach_study::builtin;
use pleach_workflow::{BothEmpty, Durability, Method, ReferenceSource};
use std::path::PathBuf;

/// Returns a submission with these input files.
#[must_use]
pub fn submission(name: &str, inputs: Vec<InputFile>) -> Submission {
    let registry = builtin::registry();
    let study = pleach_workflow::Study {
        name: name.to_owned(),
        seed: 1,
        workflow: builtin::workflow("nuclei", &registry).expect("built in").expect("whole"),
        switched_off: Vec::new(),
        tiles: Vec::new(),
        slides: None,
        volumes: None,
        reference: ReferenceSource::Defaults,
        annotations_outside: 0.05,
        normalization: None,
        annotations: Vec::new(),
        annotation_rules: Default::default(),
        tiles_without_regions: 0,
        method: Method::Moat { trajectories: 1, levels: 2, base: None, candidates: None },
        metric: 0,
        further: Vec::new(),
        both_empty: BothEmpty::default(),
        weights: Default::default(),
        tile_weights: Vec::new(),
        durable: Durability::None,
        retained: Vec::new(),
        until: None,
        phases: Vec::new(),
        phase: None,
    };
    Submission {
        version: VERSION,
        build: String::new(),
        name: name.to_owned(),
        inputs,
        companions: Default::default(),
        pixels: Vec::new(),
        study,
        parameter_sets: PathBuf::from("study.toml"),
        is_table: false,
        evaluations: Vec::new(),
        plan: PlanChoice {
            strategy: StrategyName::Trtma,
            reuse: ReuseScope::Value,
            max_bucket_size: None,
            max_buckets: None,
            overhead_seconds: None,
            order: Default::default(),
        },
        deadline: None,
        budget: None,
        preview: Vec::new(),
        operations: Vec::new(),
        code: Vec::new(),
    }
}
