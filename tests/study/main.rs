//! Whole studies with the real binary: one result on every path of execution, checked against independent computations.

mod accelerators;
mod annotations;
#[cfg(feature = "s3")]
mod bucket;
mod caches;
#[path = "../support/data.rs"]
mod data;
#[path = "../support/disk.rs"]
mod disk;
mod exports;
mod faults;
mod features;
mod halo;
mod inputs;
#[path = "../support/masks.rs"]
mod masks;
mod matrix;
mod memory;
#[path = "../support/mirax.rs"]
mod mirax;
#[path = "../support/model.rs"]
mod model;
mod objects;
mod parameters;
mod pictures;
#[path = "../support/pleach.rs"]
mod pleach;
#[path = "../support/pyramid.rs"]
mod pyramid;
#[path = "../support/results.rs"]
mod results;
mod reuse;
#[cfg(feature = "s3")]
#[expect(clippy::unwrap_used, reason = "it is part of tests of several packages")]
#[path = "../../crates/objects/tests/laws/serving.rs"]
mod serving;
mod slide_annotations;
mod slides;
#[path = "../support/study.rs"]
mod study;
#[path = "../support/tables.rs"]
mod tables;

use masks::{compare, mask};
use pleach::pleach;
use results::text;
use study::Study;
use tables::{Row, rows};

/// Result files that must not depend on how a study was executed.
const FINDINGS: [&str; 5] = ["samples.csv", "responses.csv", "failed.csv", "indices.csv", "indices.json"];

/// Runs `study.toml` into the folder `out`.
fn run(study: &Study, out: &str, options: &[&str]) {
    let printed =
        pleach(study.folder(), &[&["run", "study.toml", "--out", out, "--quiet"], options].concat()).done();
    assert_eq!(printed, "");
}

/// Runs `study.toml` into the folder `out`. Returns the contents of the result files.
fn findings(study: &Study, out: &str, options: &[&str]) -> Vec<String> {
    run(study, out, options);
    FINDINGS.iter().map(|name| text(&study.path(out).join(name))).collect()
}

/// Segments a tile with the values of a row of `samples.csv`. An empty row means the defaults.
fn segment(study: &Study, tile: &str, sample: &Row, options: &[&str]) -> Vec<bool> {
    let settings = sample.iter().filter(|(name, _)| *name != "evaluation");
    let settings: Vec<String> = settings.map(|(name, value)| format!("--set={name}={value}")).collect();
    let mut arguments = vec!["segment", tile, "--out", "mask.png"];
    arguments.extend(settings.iter().map(String::as_str));
    arguments.extend(options);
    pleach(study.folder(), &arguments).done();
    mask(&study.path("mask.png"))
}

/// Recomputes the responses of some evaluations with one `pleach segment` each and compares all metrics exactly. `reference`
/// returns the reference mask of a tile.
fn check_responses(
    study: &Study,
    out: &str,
    tiles: &[&str],
    evaluations: &[usize],
    options: &[&str],
    reference: impl Fn(&str) -> Vec<bool>,
) {
    let (samples, responses) =
        (rows(&study.path(out).join("samples.csv")), rows(&study.path(out).join("responses.csv")));
    assert_eq!(responses.len(), samples.len() * tiles.len());
    for (number, tile) in tiles.iter().enumerate() {
        let reference = reference(tile);
        assert!(reference.iter().any(|object| *object), "{tile} has nuclei");
        for &evaluation in evaluations {
            let expected = compare(&segment(study, tile, &samples[evaluation - 1], options), &reference);
            // Rows are sorted by evaluation, then tile.
            let mut found = responses[(evaluation - 1) * tiles.len() + number].clone();
            assert_eq!(found.remove("evaluation"), Some(evaluation.to_string()));
            let name = found.remove("tile").expect("a tile");
            assert_eq!(std::path::Path::new(tile).file_stem(), Some(name.as_ref()));
            assert_eq!(found, expected, "evaluation {evaluation} on {tile}");
        }
    }
}
