//! `examples/pixel-classifier`: trained, studied, beside a plain Python loop, and its quality on annotated tiles.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::{copy, environment};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A copy of the example.
struct Example {
    folder: tempfile::TempDir,
    python: PathBuf,
}

impl Example {
    fn new(python: PathBuf) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pixel-classifier"), folder.path());
        // Unlike that of the example, the environment has pandas, and scikit-learn imports it where it is installed.
        let manifest = text(&folder.path().join("pleach.toml"));
        let named = manifest.replace("\"psutil\"]", "\"psutil\", \"pandas\"]");
        assert!(named != manifest);
        fs::write(folder.path().join("pleach.toml"), named).expect("written");
        Self { folder, python }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a program of Python in the folder.
    fn python(&self, args: &[&str]) -> Output {
        self.python_in(self.folder.path(), args)
    }

    fn python_in(&self, folder: &Path, args: &[&str]) -> Output {
        Command::new(self.python.join("bin/python"))
            .args(args)
            .current_dir(folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("OMP_NUM_THREADS", "1")
            .output()
            .expect("Python starts")
    }

    /// Trains a model of few trees on two tiles. Returns the bytes of its file.
    fn train(&self, tiles: [&str; 2]) -> Vec<u8> {
        let output = self.python(&["train.py", "--trees", "10", "--pixels", "2000", tiles[0], tiles[1]]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read(self.path("model.joblib")).expect("a model")
    }

    /// Replaces a line of the study file.
    fn edit_study(&self, key: &str, line: &str) {
        let study = text(&self.path("study.toml"));
        let old = study.lines().find(|line| line.starts_with(key)).expect("a line with the key").to_owned();
        fs::write(self.path("study.toml"), study.replace(&old, line)).expect("written");
    }

    fn run(&self, options: &[&str]) {
        let python = self.python.to_str().expect("UTF-8");
        let study = ["run", "study.toml", "--out", "results", "--quiet", "--python", python];
        pleach(self.folder.path(), &[&study[..], options].concat()).done();
    }

    /// Runs of each operation, by name.
    fn runs(&self) -> BTreeMap<String, u64> {
        let record = json(&self.path("results/run.json"));
        let operations = record["operations"].as_array().expect("a list");
        let run = |of: &serde_json::Value| {
            (of["name"].as_str().expect("a name").to_owned(), of["runs"].as_u64().expect("a count"))
        };
        operations.iter().map(run).collect()
    }
}

#[test]
fn classifier_runs_once_a_tile_and_gives_the_bits_of_a_plain_loop() {
    let Some(python) = environment("classifier_runs_once_a_tile_and_gives_the_bits_of_a_plain_loop") else {
        return;
    };
    let example = Example::new(python);
    let tissue = |out: &str, seed: &str| {
        let args = ["tissue", "--out", out, "--size", "128", "--count", "2", "--seed", seed];
        pleach(example.folder.path(), &args).done();
    };
    tissue("training", "7");
    tissue("tiles", "1");
    let model = example.train(["training/tissue_01.png", "training/tissue_02.png"]);
    assert!(model.len() < 2_000_000, "{} bytes", model.len());
    assert!(model == example.train(["training/tissue_01.png", "training/tissue_02.png"]), "equal tiles");
    assert!(model != example.train(["training/tissue_01.png", "tiles/tissue_01.png"]), "another tile");
    fs::write(example.path("model.joblib"), &model).expect("written");

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pixel-classifier");
    let tests = example.python_in(&folder, &["-W", "error", "-m", "unittest", "discover", "-s", "tests"]);
    assert!(tests.status.success(), "{}", String::from_utf8_lossy(&tests.stderr));

    example.edit_study("trajectories", "trajectories = 2");
    example.run(&["--workers", "2"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/external/loop.py");
    let plain = example.python(&[
        script.to_str().expect("UTF-8"),
        "--example",
        ".",
        "--sets",
        "results/samples.csv",
        "--out",
        "plain.csv",
        "--references",
        "tiles",
        "tiles/tissue_01.png",
        "tiles/tissue_02.png",
    ]);
    assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    let responses = text(&example.path("results/responses.csv"));
    assert_eq!(responses.lines().count(), 1 + 2 * 2 * (11 + 1), "{responses}");
    assert_eq!(responses, text(&example.path("plain.csv")));
    let executed = example.runs();
    for name in ["python:features.features", "python:probability.probability"] {
        assert_eq!(executed[name], 2, "{name} runs once for each tile: {executed:?}");
    }
    assert!(executed["python:objects.threshold"] > 10, "{executed:?}");
}

/// Mean Dice coefficient and F1 of the nuclei on two annotated tiles that the model has not seen.
#[test]
fn classifier_finds_nuclei_of_annotated_tiles() {
    let test = "classifier_finds_nuclei_of_annotated_tiles";
    let Some(python) = environment(test) else { return };
    let data = std::env::var_os("PLEACH_TEST_DATA").map_or("../shared/data".into(), PathBuf::from);
    let Ok(folder) = data.join("annotated/gbm40").canonicalize() else {
        println!("SKIPPED {test}: no test data");
        return;
    };
    let tile =
        |number: u32| folder.join(format!("gbm40_{number:02}.png")).to_str().expect("UTF-8").to_owned();
    let example = Example::new(python);
    example.train([&tile(7), &tile(8)]);
    example.edit_study("tiles", &format!("tiles = [\"{}\", \"{}\"]", tile(3), tile(9)));
    example.edit_study("reference", &format!("reference = \"{}\"", folder.display()));
    // One evaluation, of the defaults.
    fs::write(example.path("sets.csv"), "level\n0.6\n").expect("written");
    example.run(&["--parameter-sets", "sets.csv"]);
    let responses = text(&example.path("results/responses.csv"));
    let mut lines = responses.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let rows: Vec<_> = lines.collect();
    let mean = |name: &str| {
        let column = header.iter().position(|found| *found == name).expect("a column");
        let sum: f64 = rows.iter().map(|row| row[column].parse::<f64>().expect("a number")).sum();
        sum / rows.len() as f64
    };
    let (dice, f1) = (mean("dice"), mean("f1"));
    println!("mean over {} annotated tiles: Dice {dice:.3}, F1 {f1:.3}", rows.len());
    assert_eq!(rows.len(), 2);
    assert!(dice > 0.8 && f1 > 0.7, "Dice {dice}, F1 {f1}");
}
