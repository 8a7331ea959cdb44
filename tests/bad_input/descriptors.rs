//! Workflow and stage descriptors, valid and broken, through `pleach workflow` and through a study.

use crate::pleach::pleach;
use crate::results::text;
use crate::study::Study;
use crate::tables::rows;
use crate::{KNOWN, refused, refused_as};
use std::path::Path;

const FILES: [&str; 5] =
    ["workflow.json", "normalization.json", "segmentation.json", "comparison.json", "object-comparison.json"];

fn shipped(name: &str) -> String {
    text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pathology/descriptors/nuclei").join(name))
}

#[test]
fn shipped_descriptors_are_checked_and_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    FILES.iter().for_each(|name| std::fs::write(folder.path().join(name), shipped(name)).expect("written"));
    let check = |file| pleach(folder.path(), &["workflow", "check", file]).done();
    let found = "workflow nuclei: 4 stages, 10 tasks, 15 parameters, valid\n";
    assert_eq!(check("workflow.json"), format!("workflow.json: {found}"));
    assert_eq!(check("nuclei"), format!("nuclei: {found}"));
    assert_eq!(check("segmentation.json"), "segmentation.json: stage segmentation: 7 tasks, valid\n");

    let show = |file| pleach(folder.path(), &["workflow", "show", file]).done();
    assert_eq!(show("workflow.json"), show("nuclei"));
    let shown = show("nuclei");
    let table = shown.lines().skip_while(|line| !line.starts_with("parameter ")).skip(1);
    let names: Vec<&str> = table.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.join(", "), KNOWN);
    let json = pleach(folder.path(), &["workflow", "show", "nuclei", "--json"]).done();
    let json: serde_json::Value = serde_json::from_str(&json).expect("one JSON document");
    assert_eq!(json["parameters"].as_array().map(Vec::len), Some(15));
}

/// Replaces one text in one file. Asserts that `check`, `show`, `run` and `plan` refuse the workflow in one line that begins
/// with the file and the JSON pointer.
#[track_caller]
fn broken(study: &Study, file: &str, old: &str, new: &str, beginning: &str) {
    FILES.iter().for_each(|name| study.write(&format!("workflow/{name}"), shipped(name)));
    let good = shipped(file);
    assert!(good.contains(old), "{old} is in {file}");
    study.write(&format!("workflow/{file}"), good.replacen(old, new, 1));
    let beginning = format!("workflow/{file}#{beginning}");
    for args in [
        &["workflow", "check", "workflow/workflow.json"][..],
        &["workflow", "show", "workflow/workflow.json"],
        &["run", "study.toml", "--out", "out"],
        &["plan", "study.toml"],
    ] {
        refused_as(study.folder(), args, &beginning);
    }
    if file == "segmentation.json" {
        refused_as(study.folder(), &["workflow", "check", "workflow/segmentation.json"], &beginning);
    }
}

#[test]
fn broken_descriptors_are_refused_with_the_place() {
    let study = Study::of_tissue(64);
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"workflow/workflow.json\"")]);
    let broken =
        |file: &str, old: &str, new: &str, beginning: &str| broken(&study, file, old, new, beginning);
    let stage = "segmentation.json";
    broken(
        stage,
        "nuclei.background",
        "nuclei.sky",
        "/tasks/0/operation: operation \"nuclei.sky\" is unknown; known are ",
    );
    broken(
        stage,
        "\"version\": 1",
        "\"version\": 7",
        "/tasks/0/version: operation \"nuclei.background\" has no version 7; known are ",
    );
    broken(
        stage,
        "\"reads\": [\"bw1\"]",
        "\"reads\": [\"bw9\"]",
        "/tasks/3/reads/0: region \"bw9\" has no writer; ",
    );
    broken(
        stage,
        "\"writes\": [\"rc\", \"recon\"]",
        "\"writes\": [\"rbc\", \"recon\"]",
        "/tasks/1/writes/0: region \"rbc\" already has a writer, ",
    );
    broken(
        stage,
        "[5, 80]",
        "[80, 5]",
        "/tasks/2/parameters/0/range: parameter \"G1\": range [80, 5] is empty; ",
    );
    broken(
        stage,
        "\"step\": 5",
        "\"step\": 4",
        "/tasks/2/parameters/0/step: parameter \"G1\": step 4 does not divide the range from 5 to 80; ",
    );
    broken(stage, "\"type\": \"integer\"", "\"type\": \"whole\"", "/tasks/0/parameters/0/type: ");
    broken(
        stage,
        "\"default\": 220, ",
        "",
        "/tasks/0/parameters/0: parameter \"B\" is defined without \"default",
    );
    broken(
        stage,
        "\"reads\": [\"bw1\"]",
        "\"reads\": [\"seg_open\"]",
        "/tasks/4: tasks depend on each other in a cycle: t5 -> t4 -> ",
    );
    let metric = "/response/0/metrics/0/metrik: unknown key `metrik`, expected ";
    broken("workflow.json", "\"metric\": \"dice\"", "\"metrik\": \"dice\"", metric);
    let table = "/outputs/0/region: region \"metrics\" holds table, but mask is required by ";
    broken("comparison.json", "\"type\": \"table\"", "\"type\": \"mask\"", table);
}

#[test]
fn workflow_with_a_missing_stage_file_is_refused() {
    let study = Study::of_tissue(64);
    study.write("workflow.json", shipped("workflow.json"));
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"workflow.json\"")]);
    let missing = "normalization.json: failed to read: No such file or directory (os error 2)";
    refused(study.folder(), &["workflow", "check", "workflow.json"], missing);
    refused(study.folder(), &["run", "study.toml", "--out", "out"], missing);
}

/// The columns of a table are known only after its task ran, so the study fails run by run and reports the missing column.
#[test]
fn undeclared_metric_column_fails_every_run() {
    let study = Study::of_tissue(64);
    FILES.iter().for_each(|name| study.write(&format!("workflow/{name}"), shipped(name)));
    study.write("workflow/workflow.json", shipped("workflow.json").replace("\"jaccard\"", "\"kappa\""));
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"workflow/workflow.json\"")]);
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    let said = "warning: 64 of 64 runs failed, listed in out/failed.csv; the first: comparison, response: its table \
                has no kappa, which the workflow declares as a metric\n";
    assert_eq!((answer.code, answer.stderr.as_str()), (3, said));
    assert_eq!(rows(&study.path("out/failed.csv")).len(), 64);
}

#[test]
fn non_descriptor_files_are_refused() {
    let study = Study::of_tissue(64);
    study.write("text.json", "Dear diary\n");
    study.write("list.json", "[]\n");
    study.write("stage.json", shipped("segmentation.json"));
    for command in ["check", "show"] {
        let at = |file| ["workflow", command, file];
        refused(
            study.folder(),
            &at("none.json"),
            "none.json: failed to read: No such file or directory (os error 2)",
        );
        refused(study.folder(), &at("tiles"), "tiles: failed to read: Is a directory (os error 21)");
        refused_as(study.folder(), &at("text.json"), "text.json");
        refused_as(study.folder(), &at("list.json"), "list.json");
    }
    refused_as(study.folder(), &["workflow", "show", "stage.json"], "stage.json#/stage: ");
}
