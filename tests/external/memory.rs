//! Memory of the processes that run functions, beside that of tasks and regions.

use crate::environment;
use crate::pleach::pleach;
use crate::results::{json, text};
use std::fs;

/// Bytes of a call of `threshold`, by its manifest.
const CALL_BYTES: u64 = 250_000_000;

/// Budget of the run: four calls, without the processes.
const MEMORY: &str = "1100MB";

/// Each process has 120 MB besides Python and numpy. Four slots have ready tasks, and memory for them if processes took none.
#[test]
fn fewer_tasks_run_beside_large_processes() {
    let Some(python) = environment("fewer_tasks_run_beside_large_processes") else { return };
    let parent = tempfile::tempdir().expect("a folder");
    pleach(parent.path(), &["workflow", "new", "large", "--python"]).done();
    let folder = parent.path().join("large");
    pleach(&folder, &["tissue", "--out", "tiles", "--size", "64", "--count", "1"]).done();
    let edit = |file: &str, from: &str, to: &str| {
        let before = text(&folder.join(file));
        assert!(before.contains(from), "{file}: {before}");
        fs::write(folder.join(file), before.replace(from, to)).expect("written");
    };
    let estimate = format!("measure.threshold\"\nmemory = {{ bytes_a_pixel = {} }}", CALL_BYTES / (64 * 64));
    edit("pleach.toml", "measure.threshold\"", &estimate);
    let large =
        format!("    large = np.ones({CALL_BYTES}, np.uint8)\n    return (density > level) & (large[0] > 0)");
    edit("measure.py", "    return density > level", &large);
    for module in ["density.py", "measure.py"] {
        edit(module, "import numpy as np\n", "import numpy as np\nimport ballast\n");
    }
    let run = |ballast: u64, out: &str| {
        fs::write(folder.join("ballast.py"), format!("DATA = b'1' * {ballast}\n")).expect("written");
        let python = python.to_str().expect("UTF-8");
        let args = ["run", "study.toml", "--quiet", "--workers", "4", "--memory", MEMORY, "--python", python];
        pleach(&folder, &[&args[..], &["--out", out]].concat()).done();
        let admitted =
            json(&folder.join(out).join("run.json"))["peak_bytes_admitted"].as_u64().expect("bytes");
        (admitted, text(&folder.join(out).join("responses.csv")))
    };
    let (small, expected) = run(1, "small");
    let (large, responses) = run(120_000_000, "large");
    assert_eq!(responses, expected);
    assert!(small > CALL_BYTES * 5 / 2, "the study has too few tasks at once: {small} bytes");
    assert!(
        large < small - CALL_BYTES / 2,
        "{large} bytes of tasks beside large processes, {small} beside small ones"
    );
}
