//! Parameter sets: drawn with a seed, pinned or limited by the study, or read from a table.

use crate::model::{check_moat, nuclei_ranges};
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::{Row, rows};
use crate::{FINDINGS, check_responses, findings, run, segment};
use std::collections::{BTreeMap, BTreeSet};

/// The largest step of a sampled value: half of its levels.
fn jump(low: f64, high: f64, name: &str) -> f64 {
    let step = match name {
        "B" | "G" | "R" => 10.0,
        "T1" | "T2" => 0.5,
        "MorphRecon" | "FillHoles" | "Watershed" => 4.0,
        "maxSize" | "maxSizeSeg" => 50.0,
        "G1" | "minSizePl" => 5.0,
        _ => 2.0,
    };
    (((high - low) / step + 1.0) / 2.0).floor() * step
}

#[test]
fn trajectories_step_every_parameter_once_by_half_its_levels() {
    let study = Study::of_tissue(64);
    study.edit(&[("trajectories = 2", "trajectories = 5")]);
    run(&study, "out", &[]);
    let samples = rows(&study.path("out/samples.csv"));
    assert_eq!(samples.len(), 5 * 16);
    let value = |row: &Row, name: &str| row[name].parse::<f64>().expect("a number");
    for trajectory in samples.chunks(16) {
        for (name, (low, high)) in nuclei_ranges() {
            let values: Vec<f64> = trajectory.iter().map(|row| value(row, &name)).collect();
            assert!(values.iter().all(|value| (low..=high).contains(value)), "{name}: {values:?}");
            let steps: Vec<f64> =
                values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step != 0.0).collect();
            assert_eq!(steps.len(), 1, "{name} steps once a trajectory");
            assert!((steps[0].abs() - jump(low, high, &name)).abs() < 1e-9, "{name} steps by {}", steps[0]);
        }
    }
    assert_eq!(
        samples.iter().map(|row| row["evaluation"].parse().ok()).collect::<Vec<_>>(),
        (1..=80).map(Some).collect::<Vec<_>>()
    );
}

#[test]
fn a_seed_gives_the_same_samples_and_another_seed_others() {
    let (one, other) = (Study::of_tissue(64), Study::of_tissue(64));
    assert_eq!(findings(&one, "out", &[]), findings(&other, "out", &[]));
    other.edit(&[("seed = 500", "seed = 501")]);
    run(&other, "out-501", &[]);
    assert_ne!(text(&one.path("out/samples.csv")), text(&other.path("out-501/samples.csv")));
}

#[test]
fn running_again_replaces_the_results() {
    let study = Study::of_tissue(64);
    study.write("out/notes.txt", "mine");
    let first = findings(&study, "out", &["--strategy", "rtma"]);
    // `--overwrite` replaces the results of the same study, with any strategy.
    study.write("out/responses.csv", "outdated");
    assert_eq!(findings(&study, "out", &["--overwrite", "--strategy", "stage", "--workers", "1"]), first);
    assert_eq!(json(&study.path("out/run.json"))["strategy"], "stage");
    assert_eq!(json(&study.path("out/plan.json"))["strategy"], "stage");
    let files: BTreeSet<_> = std::fs::read_dir(study.path("out"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    let mut expected: BTreeSet<_> = FINDINGS.iter().map(Into::into).collect();
    expected.extend(["notes.txt", "plan.json", "provenance.bin", "run.json", "report.html"].map(Into::into));
    assert_eq!(files, expected);
    assert_eq!(text(&study.path("out/notes.txt")), "mine");
}

#[test]
fn the_default_folder_is_named_after_the_study() {
    let study = Study::of_tissue(64);
    crate::pleach::pleach(study.folder(), &["run", "study.toml", "--quiet"]).done();
    assert!(study.path("nuclei-moat/report.html").is_file());
}

#[test]
fn ranges_values_and_pins_of_the_study_are_sampled() {
    let study = Study::of_tissue(96);
    let pinned = [
        "B",
        "G",
        "R",
        "T2",
        "MorphRecon",
        "FillHoles",
        "maxSize",
        "minSizePl",
        "Watershed",
        "minSizeSeg",
        "maxSizeSeg",
    ];
    let pins: String = pinned
        .iter()
        .map(|name| {
            let value = if nuclei_ranges()[*name] == (4.0, 8.0) { 8 } else { 30 };
            format!("[parameters.{name}]\nfixed = {value}\n")
        })
        .collect();
    let overridden = "[parameters.G1]\nrange = [10, 40]\nstep = 10\n[parameters.G2]\nvalues = [4, 12, 44]\n\
                      [parameters.T1]\nrange = [2, 6]\n[parameters.minSize]\nrange = [2, 5]\n";
    study.edit(&[
        ("metric = \"dice\"\n", &format!("metric = \"dice\"\n{overridden}{pins}")),
        ("levels = 20", "levels = 6"),
    ]);
    run(&study, "out", &[]);
    let samples = rows(&study.path("out/samples.csv"));
    assert_eq!(samples.len(), 2 * 5);
    for row in &samples {
        let value = |name: &str| row[name].parse::<f64>().expect("a number");
        assert!(
            [10.0, 20.0, 30.0, 40.0].contains(&value("G1")) && [4.0, 12.0, 44.0].contains(&value("G2")),
            "{row:?}"
        );
        // Six levels of a continuous range of 4 have a distance of 0.8.
        let level = (value("T1") - 2.0) / 0.8;
        assert!((0.0..=5.0).contains(&level.round()) && (level - level.round()).abs() < 1e-9, "{row:?}");
        assert!([2.0, 3.0, 4.0, 5.0].contains(&value("minSize")), "{row:?}");
        for name in pinned {
            assert_eq!(value(name), if nuclei_ranges()[name] == (4.0, 8.0) { 8.0 } else { 30.0 }, "{name}");
        }
    }
    let ranges = [("G1", (10.0, 40.0)), ("G2", (4.0, 44.0)), ("T1", (2.0, 6.0)), ("minSize", (2.0, 5.0))];
    let ranges: BTreeMap<String, (f64, f64)> = ranges.map(|(name, range)| (name.to_owned(), range)).into();
    check_moat(&study.path("out"), "dice", &ranges);
}

#[test]
fn pinned_parameters_apply_to_reference_and_tables() {
    let study = Study::of_tissue(128);
    study.edit(&[(
        "metric = \"dice\"\n",
        "metric = \"dice\"\n[parameters.G1]\nfixed = 30\n[parameters.minSize]\ndefault = 3\n",
    )]);
    let pins = Row::from([("G1".to_owned(), "30".to_owned()), ("minSize".to_owned(), "3".to_owned())]);
    let tiles = ["tiles/tissue_01.png", "tiles/tissue_02.png"];
    let reference = |tile: &str| segment(&study, tile, &pins, &["--normalize"]);
    run(&study, "out", &[]);
    assert_eq!(rows(&study.path("out/samples.csv")).len(), 2 * 15);
    check_responses(&study, "out", &tiles, &[1, 15, 30], &["--normalize"], reference);
    study.write("table.csv", "G2\n45\n20\n");
    run(&study, "table", &["--parameter-sets", "table.csv"]);
    let sampled = rows(&study.path("table/samples.csv"));
    assert!(sampled.iter().all(|row| row["G1"] == "30" && row["minSize"] == "3"), "{sampled:?}");
    let responses = rows(&study.path("table/responses.csv"));
    // The first row equals the reference.
    assert!(
        responses[..2].iter().all(|row| row["dice"] == "1" && row["pixel-difference"] == "0"),
        "{responses:?}"
    );
    check_responses(&study, "table", &tiles, &[1, 2], &["--normalize"], reference);
}

#[test]
fn samples_fed_back_give_the_same_findings() {
    let study = Study::of_tissue(96);
    let drawn = findings(&study, "drawn", &[]);
    let read = findings(&study, "read", &["--parameter-sets", "drawn/samples.csv", "--strategy", "naive"]);
    assert_eq!(read, drawn);

    // A table has no trajectories, so the responses are the same and there are no indices.
    study.edit(&[(
        "kind = \"moat\"\ntrajectories = 2\nlevels = 20",
        "kind = \"table\"\nfile = \"drawn/samples.csv\"",
    )]);
    run(&study, "table", &[]);
    for name in ["samples.csv", "responses.csv", "failed.csv"] {
        assert_eq!(text(&study.path("table").join(name)), text(&study.path("drawn").join(name)));
    }
    let indices = json(&study.path("table/indices.json"));
    assert_eq!((&indices["method"], &indices["response"]), (&"table".into(), &"dice".into()));
    assert_eq!(indices["parameters"], serde_json::json!([]));
    assert_eq!(text(&study.path("table/indices.csv")), "parameter\n");
}

#[test]
fn any_table_is_evaluated_row_by_row() {
    let study = Study::of_tissue(128);
    study
        .edit(&[("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"table\"\nfile = \"rows.csv\"")]);
    // Values outside the sampling ranges, equal rows, other column order, and arbitrary evaluation numbers.
    study.write("rows.csv", "G2,evaluation,T1\n41,9,5.0\n7,9,12.25\n41,1,5\n");
    run(&study, "out", &["--reuse", "tree"]);
    let samples = rows(&study.path("out/samples.csv"));
    let of = |name: &str| samples.iter().map(|row| row[name].as_str()).collect::<Vec<_>>();
    assert_eq!((of("evaluation"), of("G2")), (vec!["1", "2", "3"], vec!["41", "7", "41"]));
    assert_eq!((of("T1"), of("G1")), (vec!["5", "12.25", "5"], vec!["80"; 3]));
    let reference = |tile: &str| segment(&study, tile, &Row::new(), &["--normalize"]);
    let tiles = ["tiles/tissue_01.png", "tiles/tissue_02.png"];
    check_responses(&study, "out", &tiles, &[1, 2, 3], &["--normalize"], reference);
    // Equal rows are computed once.
    let run = json(&study.path("out/run.json"));
    assert_eq!(run["tasks_executed"], 2 * (1 + 7 + 7 + 7 + 3));
}

#[test]
fn trajectories_start_at_the_chosen_base_points() {
    let study = Study::of_tissue(64);
    let mut designs = BTreeSet::new();
    for (fields, words) in [
        ("", None),
        ("base = \"halton\"", Some("They start from scrambled Halton points.")),
        ("base = \"lhs\"", Some("They start from points of a Latin hypercube.")),
        ("candidates = 20", Some("They were selected from 20 candidates for")),
        ("base = \"sobol\"\ncandidates = 20", Some("They start from scrambled Sobol’ points.")),
    ] {
        study.edit(&[("levels = 20\n", &format!("levels = 20\n{fields}\n"))]);
        run(&study, "out", &[]);
        let samples = rows(&study.path("out/samples.csv"));
        assert_eq!(samples.len(), 2 * 16, "{fields}");
        for trajectory in samples.chunks(16) {
            let mut moved = BTreeSet::new();
            for step in trajectory.windows(2) {
                let names =
                    step[0].keys().filter(|name| *name != "evaluation" && step[0][*name] != step[1][*name]);
                let names: Vec<&String> = names.collect();
                assert_eq!(names.len(), 1, "{fields}");
                moved.insert(names[0].clone());
            }
            assert_eq!(moved.len(), 15, "{fields}");
        }
        let page = text(&study.path("out/report.html"));
        assert!(words.is_none_or(|words| page.contains(words)), "{fields}");
        assert_eq!(page.contains("They start from"), fields.contains("base"), "{fields}");
        assert_eq!(json(&study.path("out/indices.json"))["method"], "moat");
        designs.insert(text(&study.path("out/samples.csv")));
        std::fs::remove_dir_all(study.path("out")).expect("removed");
    }
    assert_eq!(designs.len(), 5, "each is a design of its own");
}
