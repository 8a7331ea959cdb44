//! A workflow with operations in Rust, in Python and in C: `examples/mixed`, task t4 of the nuclei application in two parts.
//! `pleach run`, `segment` and `simulate` know its operations.

use crate::pleach::pleach;
use crate::runs::{responses, run};
use crate::study::Study;
use crate::{copy, environment};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn operations_in_three_languages_give_the_responses_of_the_application() {
    let test = "operations_in_three_languages_give_the_responses_of_the_application";
    let Some(python) = environment(test) else { return };
    let study = Study::of_tissue(128);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(study.path("mixed")).expect("a folder");
    copy(&root.join("examples/mixed"), &study.path("mixed"));
    let workflow = fs::read_to_string(study.path("mixed/workflow.json")).expect("a workflow");
    let absolute = workflow.replace("../../crates", root.join("crates").to_str().expect("UTF-8"));
    study.write("mixed/workflow.json", absolute);
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-O2", "-o", "area", "area.c"]).current_dir(study.path("mixed")).status();
    assert!(compiled.is_ok_and(|status| status.success()));

    run(&study, "application", &["--workers", "2"]);
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"mixed/workflow.json\"")]);
    for workers in ["1", "4"] {
        let out = format!("mixed-{workers}");
        let python = ["--python", python.to_str().expect("UTF-8"), "--workers", workers];
        let record = run(&study, &out, &python);
        assert_eq!(responses(&study, &out), responses(&study, "application"), "{workers} workers");
        let operations = record["operations"].as_array().expect("a list");
        for name in ["python:area.minimum_area", "exec:maximum-area"] {
            let operation =
                operations.iter().find(|of| of["name"] == name).expect("an operation of the manifest");
            assert!(operation["runs"].as_u64() > Some(10), "{operation}");
        }
    }
    segment_and_simulate(&study, python.to_str().expect("UTF-8"));
}

/// A single tile and a simulated study use the operations of the manifest.
fn segment_and_simulate(study: &Study, python: &str) {
    let tile =
        fs::read_dir(study.path("tiles")).expect("tiles").next().expect("a tile").expect("a tile").path();
    let tile = tile.to_str().expect("UTF-8");
    let segment = |out: &str, options: &[&str]| {
        pleach(study.folder(), &[&["segment", tile, "--out", out], options].concat()).done();
        fs::read(study.path(out)).expect("a mask")
    };
    let workflow = ["--workflow", "mixed/workflow.json", "--python", python];
    assert_eq!(segment("own.png", &workflow), segment("built-in.png", &[]));
    let answer = pleach(study.folder(), &["segment", tile, "--out", "none.png", "--workflow", "noop"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.starts_with("error: --workflow noop: "), "{answer:?}");
    let burst = "study = { file = \"study.toml\" }\nbase = { nodes = 2, cores = 1 }\n\
        pool = [{ name = \"p\", cores = 1, price_per_hour = 1, startup_seconds = 1, max = 1 }]\n\
        policy = [{ kind = \"fixed\" }]\n";
    study.write("burst.toml", burst);
    let simulated = pleach(study.folder(), &["simulate", "burst.toml", "--python", python]).done();
    assert!(simulated.contains("base-alone"), "{simulated}");
}
