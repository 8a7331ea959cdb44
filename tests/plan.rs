//! `pleach plan`: the published study planned to the last task, and a plan that touches nothing.

#[path = "support/data.rs"]
mod data;
#[path = "support/pleach.rs"]
mod pleach;
#[path = "support/study.rs"]
mod study;

use data::data;
use pleach::pleach;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use study::Study;

/// Plans, as `--json` prints them.
fn plans(folder: &Path, args: &[&str]) -> Vec<Value> {
    let printed = pleach(folder, &[&["plan"], args, &["--json"]].concat()).done();
    let document: Value = serde_json::from_str(&printed).expect("one JSON document");
    let keys: Vec<&String> = document.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["plans"]);
    document["plans"].as_array().expect("a list").clone()
}

fn stage<'a>(plan: &'a Value, name: &str) -> &'a Value {
    let stages = plan["per_stage"].as_array().expect("a list");
    stages.iter().find(|stage| stage["stage"] == name).expect("a stage of this name")
}

/// In hundredths of a percent, as `reuse.md` prints it.
fn percent(fraction: &Value) -> f64 {
    (fraction.as_f64().expect("a fraction") * 1e4).round() / 100.0
}

/// The plan of the authors' own parameter sets; `None` without test data.
fn published(test: &str, options: &[&str]) -> Option<Value> {
    let table = data(test)?.join("sensitivity/rtf_moat/parameter_sets_458.csv");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = table.display().to_string();
    let fixed = ["tests/fixtures/rtf-log/study.toml", "--table", &table];
    let plans = plans(repository, &[&fixed, options].concat());
    assert_eq!(plans.len(), 1);
    plans.into_iter().next()
}

#[test]
fn the_published_study_has_2149_tasks() {
    let test = "the_published_study_has_2149_tasks";
    let Some(plan) = published(test, &["--max-bucket-size", "458"]) else { return };
    let segmentation = stage(&plan, "segmentation");
    assert_eq!(segmentation["instances"], 458);
    assert_eq!(segmentation["tasks_after_stage_merging"], 3206);
    // Buckets below one task each lose nothing of the tree: level 1 has 173 nodes.
    assert_eq!((&segmentation["tasks"], &segmentation["buckets"]), (&2149.into(), &173.into()));
    assert_eq!(percent(&plan["reuse_fraction"]), 32.97);
    assert_eq!(plan["reuse_fraction"], segmentation["reuse_fraction"]);
    assert_eq!((&plan["evaluations"], &plan["runs"]), (&458.into(), &458.into()));
}

#[test]
fn the_published_study_in_buckets() {
    let test = "the_published_study_in_buckets";
    // Of `reuse.md`: MaxBucketSize, RTMA's reuse and buckets, Naive's reuse.
    let rows = [
        ("2", 23.46, 285, 16.16),
        ("4", 30.26, 205, 25.20),
        ("7", 32.47, 176, 27.85),
        ("8", 32.97, 173, 30.19),
    ];
    for (size, rtma, buckets, naive) in rows {
        let Some(plan) = published(test, &["--strategy", "rtma", "--max-bucket-size", size]) else { return };
        assert_eq!(
            (percent(&plan["reuse_fraction"]), &stage(&plan, "segmentation")["buckets"]),
            (rtma, &buckets.into())
        );
        let Some(plan) = published(test, &["--strategy", "naive", "--max-bucket-size", size]) else { return };
        assert_eq!(percent(&plan["reuse_fraction"]), naive, "MaxBucketSize {size}");
        let size: u64 = size.parse().expect("a size");
        assert_eq!(stage(&plan, "segmentation")["buckets"], 458_u64.div_ceil(size));
    }
}

#[test]
fn every_name_that_scripts_rely_on() {
    let study = Study::of_tissue(64);
    let plan = &plans(study.folder(), &["study.toml"])[0];
    for name in [
        "strategy",
        "reuse",
        "evaluations",
        "runs",
        "buckets",
        "per_stage",
        "reuse_fraction",
        "cost_reuse_fraction",
        "max_bucket_cost",
        "min_bucket_cost",
        "predicted_makespan_seconds",
        "bound_seconds",
        "predicted_peak_bytes",
        "planning_seconds",
    ] {
        assert!(plan.get(name).is_some_and(|value| !value.is_null()), "{name} in {plan}");
    }
    let stages = plan["per_stage"].as_array().expect("a list");
    assert_eq!(stages.len(), 3);
    for stage in stages {
        for name in [
            "stage",
            "instances_without_reuse",
            "instances",
            "tasks_after_stage_merging",
            "tasks",
            "reuse_fraction",
            "cost_reuse_fraction",
            "buckets",
        ] {
            assert!(stage.get(name).is_some_and(|value| !value.is_null()), "{name} in {stage}");
        }
    }
    let seconds = |name: &str| plan[name].as_f64().expect("seconds");
    assert!(
        seconds("predicted_makespan_seconds") >= seconds("bound_seconds") && seconds("bound_seconds") > 0.0
    );
    assert!(seconds("max_bucket_cost") >= seconds("min_bucket_cost"));
}

#[test]
fn all_strategies_side_by_side() {
    let study = Study::of_tissue(64);
    let all = plans(study.folder(), &["study.toml", "--strategy", "all"]);
    let names: Vec<_> = all.iter().map(|plan| plan["strategy"].as_str().expect("a name")).collect();
    assert_eq!(names, ["none", "stage", "naive", "rtma"]);
    let tasks: Vec<_> =
        all.iter().map(|plan| stage(plan, "segmentation")["tasks"].as_u64().expect("tasks")).collect();
    assert!(tasks[0] >= tasks[1] && tasks[1] > tasks[2] && tasks[2] >= tasks[3], "{tasks:?}");
    for (plan, name) in all.iter().zip(names) {
        let mut alone = plans(study.folder(), &["study.toml", "--strategy", name]);
        alone[0]["planning_seconds"] = plan["planning_seconds"].clone();
        assert_eq!(&alone[0], plan);
    }
    let shown = pleach(study.folder(), &["plan", "study.toml", "--strategy", "all"]).done();
    let heads: Vec<_> = shown.lines().filter(|line| line.contains("32 evaluations, 64 runs")).collect();
    assert_eq!(heads.len(), 4, "{shown}");
}

#[test]
fn nothing_is_written_and_no_tile_is_decoded() {
    let study = Study::of_tissue(64);
    let whole = plans(study.folder(), &["study.toml"]);
    for name in ["tiles/tissue_01.png", "tiles/tissue_02.png"] {
        let bytes = fs::read(study.path(name)).expect("a tile");
        study.write(name, &bytes[..bytes.len() / 2]);
    }
    let before = files(study.folder());
    let mut cut = plans(study.folder(), &["study.toml"]);
    cut[0]["planning_seconds"] = whole[0]["planning_seconds"].clone();
    assert_eq!(cut, whole);
    assert_eq!(files(study.folder()), before);
}

#[test]
fn connectivities_that_cannot_be_run_can_be_planned() {
    let study = Study::of_tissue(64);
    study.edit(&[("metric = \"dice\"\n", "metric = \"dice\"\n[parameters.MorphRecon]\nrange = [4, 8]\n")]);
    assert_eq!(plans(study.folder(), &["study.toml"])[0]["evaluations"], 32);
}

fn files(folder: &Path) -> BTreeSet<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { [path].into() }).collect()
}
