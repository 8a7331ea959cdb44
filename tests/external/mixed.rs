//! A workflow with operations in Rust and in Python: task t4 of the nuclei application by scipy.

use crate::environment;
use crate::runs::{number, responses, run};
use crate::study::Study;
use std::fs;
use std::path::Path;

const MODULE: &str = r#"
import numpy as np
from scipy import ndimage


def candidate_area(mask, minSize, maxSize):
    """Keeps the 8-connected components of an area from minSize up to but not including maxSize."""
    labels, count = ndimage.label(mask, structure=np.ones((3, 3)))
    areas = np.bincount(labels.ravel(), minlength=count + 1)
    kept = (areas >= minSize) & (areas < maxSize)
    kept[0] = False
    return kept[labels]
"#;

const MANIFEST: &str = r#"
[package]
requires = ["scipy"]
[[operation]]
name = "python:area.candidate_area"
version = 1
inputs = [{ name = "bw1", type = "mask" }]
outputs = [{ name = "bw1_t", type = "mask" }]
arguments = [
  { name = "minSize", type = "integer", low = 0, high = 1000000 },
  { name = "maxSize", type = "integer", low = 0, high = 1000000 },
]
"#;

#[test]
fn task_in_python_gives_the_responses_of_the_one_in_rust() {
    let Some(python) = environment("task_in_python_gives_the_responses_of_the_one_in_rust") else { return };
    let study = Study::of_tissue(128);
    let descriptors = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pathology/descriptors/nuclei");
    for entry in fs::read_dir(descriptors).expect("descriptors").map(|entry| entry.expect("an entry")) {
        let text = fs::read_to_string(entry.path()).expect("a descriptor");
        let text = text.replace("nuclei.candidate-area", "python:area.candidate_area");
        let text = text.replacen("\"inputs\"", "\"operations\": [\"pleach.toml\"],\n  \"inputs\"", {
            usize::from(entry.file_name() == "workflow.json")
        });
        study.write(&format!("mixed/{}", entry.file_name().to_str().expect("UTF-8")), text);
    }
    study.write("mixed/area.py", MODULE);
    study.write("mixed/pleach.toml", MANIFEST);
    let rust = run(&study, "rust", &["--workers", "2"]);
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"mixed/workflow.json\"")]);
    for workers in ["1", "4"] {
        let out = format!("python-{workers}");
        let python = ["--python", python.to_str().expect("UTF-8"), "--workers", workers];
        let mixed = run(&study, &out, &python);
        assert_eq!(responses(&study, &out), responses(&study, "rust"), "{workers} workers");
        let all = |record| {
            [
                "/tasks_executed",
                "/tasks_reused/stage",
                "/tasks_reused/tree",
                "/tasks_reused/dataflow",
                "/tasks_reused/value",
            ]
            .iter()
            .map(|pointer| number(record, pointer))
            .sum::<u64>()
        };
        assert_eq!(all(&mixed), all(&rust));
        let operations = mixed["operations"].as_array().expect("a list");
        let t4 =
            operations.iter().find(|of| of["name"] == "python:area.candidate_area").expect("t4 in Python");
        assert!(t4["runs"].as_u64() > Some(0), "{t4}");
    }
}
