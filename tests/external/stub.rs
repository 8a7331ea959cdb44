//! Operations in Python that `pleach workflow stub` begins.

use crate::environment;
use crate::pleach::pleach;
use std::fs;
use std::path::Path;

const WORKFLOW: &str = r#"{
  "workflow": "w",
  "inputs": [{ "region": "tile", "type": "bgr8" }],
  "stages": [{ "descriptor": "stage.json" }],
  "response": { "region": "result", "metrics": [{ "metric": "m", "over_tiles": "mean" }] }
}
"#;

#[test]
fn generated_functions_are_found_and_fail_until_written() {
    let Some(python) = environment("generated_functions_are_found_and_fail_until_written") else { return };
    let python = python.to_str().expect("UTF-8");
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path();
    let stage = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own-operation/stub/stage.json");
    fs::copy(stage, folder.join("stage.json")).expect("copied");
    fs::write(folder.join("workflow.json"), WORKFLOW).expect("written");
    let check = |file: &str| pleach(folder, &["workflow", "check", file, "--python", python]);
    let missing = check("workflow.json");
    assert_eq!((missing.code, missing.stdout.lines().count()), (2, 3), "{missing:?}");
    let said = pleach(folder, &["workflow", "stub", "workflow.json", "--python", "--out", "mine"]).done();
    assert!(said.starts_with("mine: pleach.toml, darkness.py, stage.json, workflow.json\n"), "{said}");
    let said = check("mine/workflow.json").done();
    assert_eq!(said, "mine/workflow.json: workflow w: 1 stages, 3 tasks, 3 parameters, valid\n");
    // A written function is called with its arguments.
    pleach(folder, &["tissue", "--out", "tiles", "--size", "64", "--count", "1"]).done();
    let twice =
        ["workflow", "check", "mine/workflow.json", "--python", python, "--twice", "tiles/tissue_01.png"];
    let failed = pleach(folder, &twice);
    assert!(failed.stderr.contains("python:darkness.dark_fraction is not written yet"), "{failed:?}");
}
