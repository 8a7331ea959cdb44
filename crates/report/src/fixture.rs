//! Test reports of the built-in workflow, with the numbers of a study of 160 evaluations on 2 tiles.

use crate::Report;
use crate::gallery::rows::TileRows;
use crate::gallery::window::Window;
use crate::gallery::{EvaluationResponse, Gallery, Jpeg, ShownEvaluation, TilePictures};
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::ReuseScope;
use pleach_planner::PlanRecord;
use pleach_planner::{
    BucketLimitOptions, PlanOptions, PlanRequest, PlanTile, PlanningInput, StrategyName, identity,
};
use pleach_results::analysis::Analysis;
use pleach_results::analysis::RunResponse;
use pleach_results::analysis::extremes::{Extreme, Extremes, Role, Setting};
use pleach_results::record::{HostRecord, OperationRecord, RunRecord};
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::moat::{MoatIndices, MoatParameter};
use pleach_sensitivity::sampling::morris;
use pleach_study::builtin;
use pleach_workflow::{BothEmpty, Durability, Method, ReferenceSource, Study, StudyTile, Value};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

/// Owner of the data that a report borrows.
pub(crate) struct Fixture {
    pub(crate) study: Study,
    pub(crate) plan: PlanRecord,
    pub(crate) run: RunRecord,
    pub(crate) analysis: Analysis,
    pub(crate) runs: Vec<RunResponse>,
    pub(crate) gallery: Gallery,
}

/// Returns a MOAT study with the given parameters: name, μ* and the half-width of its interval.
pub(crate) fn moat(parameters: &[(&str, f64, f64)]) -> Fixture {
    let parameters = parameters.iter().map(|&(name, mu_star, conf)| MoatParameter {
        name: name.to_owned(),
        mu: mu_star,
        mu_star,
        sigma: Some(conf),
        mu_conf: Some(conf),
        mu_star_conf: Some(conf),
        sigma_conf: Some(conf),
        effect: mu_star,
    });
    let indices = MoatIndices {
        response: "dice".to_owned(),
        trajectories_used: 10,
        trajectories_dropped: 0,
        parameters: parameters.collect(),
    };
    let study = study();
    Fixture {
        plan: plan(&study, true),
        study,
        run: run(),
        analysis: Analysis::Indices(Indices::Moat(indices)),
        runs: (0..320)
            .map(|run| RunResponse {
                evaluation: run / 2 + 1,
                tile: run % 2,
                result: Ok(vec![f64::from((run % 97) as u32) / 97.0, 0.5, 100.0]),
                both_empty: Vec::new(),
            })
            .collect(),
        gallery: gallery(),
    }
}

impl Fixture {
    pub(crate) fn report(&self) -> Report<'_> {
        Report {
            study: &self.study,
            plan: &self.plan,
            run: &self.run,
            analysis: &self.analysis,
            further: &[],
            runs: &self.runs,
            failures: None,
            best: &[],
            gallery: &self.gallery,
            sampled: None,
        }
    }

    /// Changes the indices to those of a single trajectory, without spreads.
    pub(crate) fn without_spread(&mut self) {
        let Analysis::Indices(Indices::Moat(indices)) = &mut self.analysis else { return };
        indices.trajectories_used = 1;
        for parameter in &mut indices.parameters {
            (parameter.sigma, parameter.mu_conf) = (None, None);
            (parameter.mu_star_conf, parameter.sigma_conf) = (None, None);
        }
    }

    /// Changes the plan and the run to those of `--strategy none`.
    pub(crate) fn without_reuse(&mut self) {
        self.plan = plan(&self.study, false);
        (self.run.strategy, self.run.reuse, self.run.tasks_executed) = ("none", None, 2898);
        self.run.tasks_reused.values_mut().for_each(|tasks| *tasks = 0);
    }
}

fn study() -> Study {
    let workflow = builtin::workflow("nuclei", &builtin::registry()).unwrap().unwrap().measuring(0);
    let tile = |name: &str| StudyTile {
        name: name.to_owned(),
        path: name.into(),
        slide: None,
        block: None,
        fit: None,
    };
    Study {
        name: "gbm <moat>".to_owned(),
        seed: 500,
        workflow,
        switched_off: Vec::new(),
        slides: None,
        volumes: None,
        tiles: vec![tile("tile & one"), tile("tile-two")],
        reference: ReferenceSource::Defaults,
        annotations_outside: 0.05,
        normalization: None,
        annotations: Vec::new(),
        annotation_rules: Default::default(),
        tiles_without_regions: 0,
        method: Method::Moat { trajectories: 10, levels: 20, base: None, candidates: None },
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
    }
}

/// Returns the plan of the study. It does not depend on the content of the tiles.
fn plan(study: &Study, merged: bool) -> PlanRecord {
    let registry = builtin::registry();
    let sampling = morris::Morris { trajectories: 10, levels: 20, seed: study.seed };
    let parameters = &study.workflow.parameters;
    let mut evaluations = vec![parameters.iter().map(|parameter| parameter.default).collect()];
    evaluations.extend(morris::sample(parameters, &sampling).unwrap().evaluations);
    let tile =
        |tile: &StudyTile| PlanTile { pixels: 262_144, inputs: vec![identity::of_file("tile", &tile.path)] };
    let tiles: Vec<PlanTile> = study.tiles.iter().map(tile).collect();
    let input = PlanningInput {
        workflow: &study.workflow,
        registry: &registry,
        evaluations: &Arc::new(evaluations),
        defaults_run: true,
        reference_run: true,
        tiles: &tiles,
        units: None,
        costs: &CostModel::default(),
        link: None,
        bucket_overhead_seconds: 0.0,
        accelerators: 0,
    };
    let strategy = if merged { StrategyName::Rtma } else { StrategyName::None };
    let max_bucket_size = NonZeroUsize::new(16);
    let request = PlanRequest {
        options: PlanOptions::new(strategy, ReuseScope::Tree),
        buckets: BucketLimitOptions { max_bucket_size, max_buckets: None },
        slots: NonZeroU32::new(2).unwrap(),
        workers: &[],
        tree_fallback: false,
    };
    let record = pleach_planner::plan(input, &request).unwrap().record;
    PlanRecord { planning_seconds: Some(0.002), ..record }
}

/// Returns pictures of two evaluations on a window of the first tile.
fn gallery() -> Gallery {
    let jpeg = |side| Jpeg { bytes: vec![0, 16, 131, 16, 81], width: side, height: side };
    let square = |side| vec![[side, 0], [side, side], [0, side], [0, 0]];
    let moved = |name: &str, value, default| Setting {
        name: name.to_owned(),
        value: Value::Integer(value),
        default: Value::Integer(default),
    };
    let shown = |evaluation, role, on_tile, moved, side| ShownEvaluation {
        evaluation,
        roles: vec![(0, role)],
        responses: vec![EvaluationResponse { metric: 0, on_tile: Some(on_tile), over_tiles: Some(0.8) }],
        moved,
        outlines: vec![square(side)],
    };
    let pictures = TilePictures {
        tile: "tile & one".to_owned(),
        tile_px: [512, 512],
        overview: Some(jpeg(480)),
        window: Window { left: 20, top: 30, width: 320, height: 320 },
        detail: jpeg(320),
        reference: vec![square(9)],
        shown: vec![
            shown(7, Role::Nearest, 0.812, Vec::new(), 8),
            shown(70, Role::Farthest, 0.112, vec![moved("G2", 4, 45), moved("G1", 5, 80)], 20),
        ],
        focus: 70,
    };
    Gallery { pictures: Ok(pictures), previews: Vec::new(), tiles: TileRows::default(), slides: Vec::new() }
}

fn extremes() -> Extremes {
    let setting = |name: &str, value, default| Setting {
        name: name.to_owned(),
        value: Value::Integer(value),
        default: Value::Integer(default),
    };
    let of = |role, evaluation, value, g2| Extreme {
        role,
        evaluation: Some(evaluation),
        value: Some(value),
        settings: vec![setting("G1", 80, 80), setting("G2", g2, 45)],
    };
    Extremes {
        response: "dice".to_owned(),
        metric: 0,
        evaluations: vec![
            of(Role::Default, 0, 1.0, 45),
            of(Role::Nearest, 7, 0.912, 40),
            of(Role::Farthest, 70, 0.112, 4),
        ],
    }
}

fn run() -> RunRecord {
    let operation = |name: &str, runs, seconds| OperationRecord {
        name: name.to_owned(),
        runs,
        seconds,
        accelerator: None,
        predicted_seconds: Some(seconds),
        prediction_error: Some(0.1),
    };
    RunRecord {
        study: "gbm <moat>".to_owned(),
        version: "0.1.0",
        format: 1,
        strategy: "rtma",
        reuse: Some("tree"),
        seed: 500,
        host: HostRecord { name: "host".to_owned(), processors: 2, system: "linux", architecture: "x86_64" },
        planning_seconds: Some(0.002),
        wall_seconds: 5.1,
        execution_seconds: 4.2,
        evaluations: 160,
        runs: 320,
        failed: 0,
        tasks_executed: 1838,
        tasks_skipped: 0,
        tasks_reused: BTreeMap::from([("stage", 318), ("tree", 740), ("cache", 0)]),
        bucket_overhead_seconds: None,
        operations: vec![operation("nuclei.normalize", 2, 0.3), operation("nuclei.separate", 282, 4.9)],
        cache: None,
        storage: None,
        peak_bytes_admitted: 5_767_210,
        peak_rss_bytes: 52_277_248,
        workers: 2,
        cost: None,
        tiles: vec!["tile & one".to_owned(), "tile-two".to_owned()],
        excluded_tiles: Vec::new(),
        annotations: Vec::new(),
        tiles_without_regions: 0,
        weights: None,
        both_empty: Vec::new(),
        extremes: vec![extremes()],
        convergence: None,
        phases: Vec::new(),
    }
}
