//! A function that needs an accelerator: it is refused where there is no device, and an emulated device runs it.

use crate::environment;
use crate::pleach::pleach;
use crate::results::{json, text};
use std::fs;

#[test]
fn function_on_an_accelerator_gives_the_responses_of_a_core() {
    let Some(python) = environment("function_on_an_accelerator_gives_the_responses_of_a_core") else {
        return;
    };
    let parent = tempfile::tempdir().expect("a folder");
    pleach(parent.path(), &["workflow", "new", "flow", "--python"]).done();
    let folder = parent.path().join("flow");
    pleach(&folder, &["tissue", "--out", "tiles", "--size", "64", "--count", "2"]).done();
    let run = |out: &str, devices: &str| {
        let python = python.to_str().expect("UTF-8");
        let args =
            ["run", "study.toml", "--out", out, "--quiet", "--python", python, "--accelerators", devices];
        pleach(&folder, &args)
    };
    run("core", "none").done();
    let manifest = text(&folder.join("pleach.toml"));
    let name = "name = \"python:measure.threshold\"\n";
    assert!(manifest.contains(name), "{manifest}");
    let declared =
        manifest.replace(name, &format!("{name}device = \"accelerator\"\ndevice_memory = \"1MB\"\n"));
    fs::write(folder.join("pleach.toml"), declared).expect("written");

    let refused = run("refused", "none");
    assert_eq!(refused.code, 2, "{refused:?}");
    let cause = "error: --accelerators: no device is used, and python:measure.threshold needs one; a number of devices, all or \
                 emulate:1x is allowed\n";
    assert_eq!(refused.stderr, cause);
    assert!(!folder.join("refused").exists());

    run("device", "emulate:1x").done();
    let responses = |out: &str| text(&folder.join(out).join("responses.csv"));
    assert_eq!(responses("device"), responses("core"));
    let record = json(&folder.join("device/run.json"));
    for operation in record["operations"].as_array().expect("a list") {
        let (runs, on_devices) = (operation["runs"].as_u64(), operation["accelerator"]["runs"].as_u64());
        let is_declared =
            operation["name"].as_str().is_some_and(|name| name.starts_with("python:measure.threshold"));
        assert_eq!(
            on_devices.unwrap_or(0),
            if is_declared { runs.expect("a number") } else { 0 },
            "{operation}"
        );
        assert!(!is_declared || runs > Some(1), "{operation}");
    }
}
