//! Cuts of a function: the example as one function, keys by brute force, hard scripts, refusals.

mod refusals;

use crate::pleach::{Answer, pleach};
use crate::results::{json, text};
use crate::{copy, environment};
use serde_json::{Value, json as document};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with a script of this test and a tile.
struct Scripts {
    folder: tempfile::TempDir,
    python: PathBuf,
}

impl Scripts {
    /// `None`, with a line that names the test, without an environment.
    fn new(test: &str, size_px: &str) -> Option<Self> {
        let python = environment(test)?;
        let folder = tempfile::tempdir().expect("a folder");
        copy(&source(""), folder.path());
        pleach(folder.path(), &["tissue", "--out", "tiles", "--size", size_px, "--count", "2"]).done();
        Some(Self { folder, python })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn python(&self) -> &str {
        self.python.to_str().expect("UTF-8")
    }

    fn instrument(&self, args: &[&str]) -> Answer {
        pleach(self.path(), &[&["instrument", "--python", self.python()], args].concat())
    }

    /// Writes the folder `out`. Returns the proposal.
    fn written(&self, script: &str, out: &str, more: &[&str]) -> Value {
        let args = ["--tile", "tiles/tissue_01.png", "--out", out, "--json", script];
        let proposal = self.instrument(&[&args, more].concat()).done();
        serde_json::from_str(&proposal).expect("JSON")
    }

    /// Runs a Python file of this test. Returns its output.
    fn run_python(&self, args: &[&str]) -> String {
        let output = Command::new(self.python.join("bin/python"))
            .args(args)
            .current_dir(self.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("Python starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

/// Returns a file beside this one.
fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/external/instrument").join(file)
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item.as_str().expect("a text")).collect()
}

fn tasks(proposal: &Value) -> &[Value] {
    proposal["tasks"].as_array().expect("tasks")
}

/// Returns the names of tasks with the sizes of their keys.
fn cuts(proposal: &Value) -> Vec<(&str, usize)> {
    let cut = |task: &'_ Value| strings(&task["key"]).len();
    tasks(proposal).iter().map(|task| (task["task"].as_str().expect("a name"), cut(task))).collect()
}

/// Gives the parameters of a stage file the domains of another one.
fn take_domains(stage: &Path, from: &Path) {
    let mut domains = BTreeMap::new();
    for task in json(from)["tasks"].as_array().expect("tasks") {
        for parameter in task["parameters"].as_array().into_iter().flatten() {
            domains.insert(parameter["name"].as_str().expect("a name").to_owned(), parameter.clone());
        }
    }
    let mut written = json(stage);
    for task in written["tasks"].as_array_mut().expect("tasks") {
        let parameters = task.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            if parameter.get("type").is_some() {
                *parameter = domains[parameter["name"].as_str().expect("a name")].clone();
            }
        }
    }
    fs::write(stage, written.to_string()).expect("written");
}

/// Shortens the study to 2 trajectories on both tiles.
fn shorten(study: &Path) {
    let shorter = |line: &str| match line.split(' ').next() {
        Some("trajectories") => "trajectories = 2".to_owned(),
        Some("tiles") => "tiles = [\"../tiles/*.png\"]".to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text(study).lines().map(shorter).collect();
    fs::write(study, lines.join("\n")).expect("written");
}

/// Returns executions of operations by the last part of their names.
fn executed(results: &Path) -> BTreeMap<String, u64> {
    let record = json(&results.join("run.json"));
    let operations = record["operations"].as_array().expect("a list").clone();
    let run = |of: &Value| {
        let name = of["name"].as_str().expect("a name").rsplit('.').next().unwrap_or_default().to_owned();
        (name, of["runs"].as_u64().expect("a count"))
    };
    operations.iter().map(run).collect()
}

/// Tasks of the example and of the proposal whose keys are equal.
const SAME_KEYS: [(&str, &str, usize); 6] = [
    ("deconvolve", "hematoxylin", 0),
    ("threshold", "mask_1", 3),
    ("clean", "edt", 6),
    ("distance", "heights", 7),
    ("watershed", "labels_1", 10),
    ("features", "result", 14),
];

/// The example as one function: cut as by hand, or finer, with the same responses and executions.
#[test]
fn function_is_cut_as_the_example_was_by_hand() {
    let Some(scripts) = Scripts::new("function_is_cut_as_the_example_was_by_hand", "128") else { return };
    let proposal = scripts.written("segment.py", "cut", &[]);
    let found: BTreeMap<&str, usize> = cuts(&proposal).into_iter().collect();
    for (_, task, key) in SAME_KEYS {
        assert_eq!(found.get(task), Some(&key), "{task}: {found:?}");
    }
    assert!(proposal["compared"].as_u64() > Some(20), "{proposal}");
    assert_eq!(proposal["results"], 150);

    let cut = scripts.path().join("cut");
    let hand = scripts.path().join("hand");
    fs::create_dir(&hand).expect("created");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/python-nuclei"), &hand);
    take_domains(&cut.join("stage.json"), &hand.join("segmentation.json"));
    pleach(&cut, &["workflow", "check", "workflow.json", "--python", scripts.python()]).done();
    for folder in [&cut, &hand] {
        shorten(&folder.join("study.toml"));
        let run =
            ["run", "study.toml", "--out", "results", "--quiet", "--reuse", "dataflow", "--workers", "2"];
        pleach(folder, &[&run[..], &["--python", scripts.python()]].concat()).done();
    }
    let of = |folder: &Path, file: &str| text(&folder.join("results").join(file));
    assert_eq!(of(&cut, "samples.csv"), of(&hand, "samples.csv"));
    assert_eq!(of(&cut, "responses.csv"), of(&hand, "responses.csv"));
    let (of_cut, of_hand) = (executed(&cut.join("results")), executed(&hand.join("results")));
    for (task, same, _) in SAME_KEYS {
        assert_eq!(of_cut[&format!("compute_{same}")], of_hand[task], "{task}: {of_cut:?} {of_hand:?}");
    }
    let runs = of(&cut, "responses.csv").lines().count() as u64 - 1;
    let all: u64 = of_cut.iter().filter(|(name, _)| name.starts_with("compute_")).map(|(_, runs)| runs).sum();
    assert!(all < runs * tasks(&proposal).len() as u64, "{all} of {runs}: {of_cut:?}");

    let plain = ["plain.py", "--script", "segment.py", "--function", "segment", "--folder", "cut"];
    let files = ["--sets", "cut/results/samples.csv", "--out", "plain.csv"];
    scripts.run_python(&[&plain[..], &files, &["tiles/tissue_01.png", "tiles/tissue_02.png"]].concat());
    assert_eq!(of(&cut, "responses.csv"), text(&scripts.path().join("plain.csv")));
}

/// Compares the keys of a proposal with the parameters that outputs depend on, and results with the function.
fn check_by_brute_force(
    scripts: &Scripts,
    script: &str,
    function: &str,
    values: &Value,
    more: &[&str],
) -> Value {
    let out = format!("{function}{}", more.len());
    let proposal = scripts.written(script, &out, more);
    fs::write(scripts.path().join("proposal.json"), proposal.to_string()).expect("written");
    let module = format!("{out}/{script}");
    let found = scripts.run_python(&[
        "brute.py",
        "--script",
        script,
        "--function",
        function,
        "--module",
        &module,
        "--proposal",
        "proposal.json",
        "--values",
        &values.to_string(),
        "--tile",
        "tiles/tissue_01.png",
    ]);
    // The function prints, too.
    let found: Value = serde_json::from_str(found.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!(found["different"], document!([]), "{script}");
    for task in tasks(&proposal) {
        let mut key = strings(&task["key"]);
        let mut brute = strings(&found["keys"][task["task"].as_str().expect("a name")]);
        key.sort_unstable();
        brute.sort_unstable();
        assert_eq!(key, brute, "{script}: {task}");
    }
    let workflow = format!("{out}/workflow.json");
    pleach(scripts.path(), &["workflow", "check", &workflow, "--python", scripts.python()]).done();
    proposal
}

#[test]
fn keys_are_those_that_brute_force_finds() {
    let Some(scripts) = Scripts::new("keys_are_those_that_brute_force_finds", "96") else { return };
    let values = document!({
        "low": [40, 200], "high": [200, 400], "width": [1, 5], "power": [1.0, 1.5], "exclude": [false, true],
    });
    let proposal = check_by_brute_force(&scripts, "versions.py", "measure", &values, &[]);
    assert_eq!(cuts(&proposal), [("dark", 1), ("mask_1", 3), ("total", 4), ("result", 5)]);
    assert_eq!(strings(&proposal["constants"]), ["weights"]);

    let values =
        document!({ "steps": [1, 3], "level": [120.0, 180.0], "attempts": [0, 2], "min_size": [1, 60] });
    let proposal = check_by_brute_force(&scripts, "control.py", "count", &values, &[]);
    assert_eq!(cuts(&proposal), [("gray", 1), ("labels", 3), ("result", 4), ("response", 4)]);
    assert!(proposal["warnings"].to_string().contains("line 24: return before the end"), "{proposal}");

    let values =
        document!({ "sigma": [0.5, 2.0], "offset": [0.0, 20.0], "radius": [0, 2], "clear": [false, true] });
    let proposal = check_by_brute_force(&scripts, "labels.py", "find", &values, &[]);
    let cut = [("smooth", 1), ("mask", 2), ("labels_1", 3), ("labels_2", 4), ("response", 4)];
    assert_eq!(cuts(&proposal), cut);
    let stage = json(&scripts.path().join("find0/stage.json"));
    assert_eq!(stage["tasks"][4]["reads"], document!(["labels_2"]));
}

#[test]
fn keys_of_names_that_share_memory_are_those_of_brute_force() {
    let Some(scripts) = Scripts::new("keys_of_names_that_share_memory_are_those_of_brute_force", "64") else {
        return;
    };
    let values = document!({
        "level": [30, 90], "scale": [1.0, 2.0], "rows": [1, 70], "noise": [1.0, 3.0], "shift": [2, 90], "gain": [0.5, 2.0],
    });
    let proposal = check_by_brute_force(&scripts, "aliases.py", "blend", &values, &[]);
    let cut = [("image", 0), ("mask", 2), ("other", 2), ("columns", 1), ("norm", 2), ("result", 6)];
    assert_eq!(cuts(&proposal), cut);
}

#[test]
fn files_that_the_script_imports_are_copied() {
    let Some(scripts) = Scripts::new("files_that_the_script_imports_are_copied", "64") else { return };
    let write = |file: &str, script: &str| fs::write(scripts.path().join(file), script).expect("written");
    fs::create_dir(scripts.path().join("own")).expect("created");
    write("own/__init__.py", "from own import inner\n");
    write("own/inner.py", "import shades\n");
    write("shades.py", "def gray(tile):\n    return tile.mean(axis=2)\n");
    let script = "import own\nimport shades\n\n\ndef f(tile, level=100):\n    gray = shades.gray(tile)\n    \
                  return {'area': float((gray > level).sum())}\n";
    write("area.py", script);
    scripts.written("area.py", "cut", &[]);
    let folder = scripts.path().join("cut");
    assert_eq!(text(&folder.join("own/inner.py")), "import shades\n");
    let run = ["run", "study.toml", "--out", "results", "--quiet", "--python", scripts.python()];
    pleach(&folder, &run).done();
    assert_eq!(text(&folder.join("results/failed.csv")).lines().count(), 1);
}

#[test]
fn decisions_of_the_user_are_kept() {
    let Some(scripts) = Scripts::new("decisions_of_the_user_are_kept", "96") else { return };
    let values = document!({ "sigma": [0.5, 2.0], "offset": [0.0, 20.0], "radius": [0, 2] });
    let more = ["--join", "smooth", "--constant", "clear"];
    let proposal = check_by_brute_force(&scripts, "labels.py", "find", &values, &more);
    assert_eq!(cuts(&proposal), [("mask", 2), ("labels", 3), ("response", 3)]);
    assert_eq!(strings(&proposal["constants"]), ["clear"]);
    let module = text(&scripts.path().join("find4/labels.py"));
    assert!(module.contains("def compute_labels(mask, *, radius, clear=True):"), "{module}");
    // The script runs as before.
    let whole = scripts.run_python(&["labels.py", "tiles/tissue_01.png"]);
    assert_eq!(scripts.run_python(&["find4/labels.py", "tiles/tissue_01.png"]), whole);
    assert!(whole.trim().parse::<f64>().is_ok_and(|count| count > 0.0), "{whole}");
}

/// A study of the written folder runs, with the number of the function as its response.
#[test]
fn written_study_runs() {
    let Some(scripts) = Scripts::new("written_study_runs", "96") else { return };
    let shown = scripts.instrument(&["control.py", "--tile", "tiles/tissue_01.png", "--out", "a/cut"]);
    assert_eq!(shown.code, 2, "the parent folder is missing: {shown:?}");
    fs::create_dir_all(scripts.path().join("a/cut")).expect("created");
    let shown = scripts.instrument(&["control.py", "--tile", "tiles/tissue_01.png", "--out", "a/cut"]).done();
    assert!(shown.contains("\n3 result: lines 24-29\n"), "{shown}");
    assert!(shown.contains("Ranges are proposals from the defaults:"), "{shown}");
    assert!(shown.contains("+def compute_gray(tile, *, steps):"), "{shown}");
    let folder = scripts.path().join("a/cut");
    pleach(&folder, &["run", "study.toml", "--out", "results", "--quiet", "--python", scripts.python()])
        .done();
    let plain = ["plain.py", "--script", "scalar.py", "--function", "count", "--folder", "a/cut"];
    let files = ["--sets", "a/cut/results/samples.csv", "--out", "plain.csv", "tiles/tissue_01.png"];
    let wrapped = "import contextlib, io, control\n\n\ndef count(tile, **values):\n    with contextlib.redirect_stdout(io.StringIO()):\n        \
                   return {\"result\": control.count(tile, **values)}\n\n\ncount.__signature__ = __import__(\"inspect\").signature(control.count)\n";
    fs::write(scripts.path().join("scalar.py"), wrapped).expect("written");
    scripts.run_python(&[&plain[..], &files].concat());
    assert_eq!(text(&folder.join("results/responses.csv")), text(&scripts.path().join("plain.csv")));
}
