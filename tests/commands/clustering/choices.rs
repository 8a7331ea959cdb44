//! Choices of `pleach cluster` over parameters, seeds, levels and workflows.

use super::options::groups;
use super::{diamond, line};
use crate::pleach::pleach;
use pleach_clustering::choose::{EstimateSpread, NamedMethod, dynamic_portfolio, estimates};
use pleach_clustering::simulate::Platform;
use pleach_clustering::{Clustering, Method, Options, Size, Workflow, cluster};
use serde_json::Value;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

fn document(folder: &Path, args: &[&str]) -> Value {
    let text = pleach(folder, &[&["cluster"], args, &["--json"]].concat()).done();
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Each row has the makespans of a call with its values.
#[test]
fn rows_of_a_sensitivity_table_are_those_of_single_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    groups(folder.path());
    let args = ["groups.dag", "--method", "best", "--vertical", "none"];
    let varied = [
        "--sensitivity",
        "workers=2,3",
        "--sensitivity",
        "queue=5",
        "--sensitivity",
        "bandwidth=15MB,1GB",
        "--sensitivity",
        "data=1,10",
    ];
    let found = document(folder.path(), &[&args[..], &varied].concat());
    let rows = found["workflows"][0]["sensitivity"].as_array().expect("rows").clone();
    assert_eq!(rows.len(), 8);
    let values = ["data_factor", "workers", "bytes_per_second", "queue_seconds"];
    let key = |row: &Value| values.map(|name| number(&row[name]));
    assert_eq!(key(&rows[1]), [1.0, 2.0, 1e9, 5.0]);
    assert_eq!(key(&rows[6]), [10.0, 3.0, 15e6, 5.0]);
    for (row, [data, workers, bandwidth]) in [(0, ["1", "2", "15MB"]), (6, ["10", "3", "15MB"])] {
        // Without --jobs, levels have as many jobs as there are workers.
        let options =
            ["--workers", workers, "--jobs", workers, "--scale-data", data, "--bandwidth", bandwidth];
        let single = document(folder.path(), &[&args[..], &options, &["--queue", "5"]].concat());
        let single = &single["workflows"][0];
        let row = &rows[row];
        assert_eq!(row["makespan_unclustered_seconds"], single["makespan_unclustered_seconds"]);
        let best = &single["clusterings"][single["shown"].as_u64().expect("a position") as usize];
        let of_row = &row["clusterings"][row["best"].as_u64().expect("a position") as usize];
        for name in ["method", "makespan_seconds", "gain"] {
            assert_eq!(of_row[name], best[name]);
        }
        assert_eq!(row["rule"]["reason"], single["rule"]["reason"]);
        assert!((number(&row["rule"]["regret"]) - number(&single["rule"]["regret"])).abs() < 1e-12);
    }
    let text = pleach(folder.path(), &[&["cluster"], &args[..], &varied].concat()).done();
    let (_, table) = text.split_once("sensitivity to data, workers, bandwidth, queue\n").expect("a table");
    assert_eq!(table.lines().count(), 9);
    assert_eq!(line(table, &["data"])[4], "gain");
    let fixed = ["groups.dag", "--sensitivity", "workers=2,3", "--jobs", "4"];
    let fixed = document(folder.path(), &fixed);
    let rows = &fixed["workflows"][0]["sensitivity"];
    let three = document(folder.path(), &["groups.dag", "--workers", "3", "--jobs", "4"]);
    assert_eq!(
        rows[1]["clusterings"][0]["makespan_seconds"],
        three["workflows"][0]["clusterings"][1]["makespan_seconds"]
    );
}

#[test]
fn several_seeds_have_a_mean_with_its_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    groups(folder.path());
    let args = ["groups.dag", "--method", "hc", "--jobs", "3", "--workers", "3"];
    let makespan = |seed: u64| {
        let found = document(folder.path(), &[&args[..], &["--seed", &seed.to_string()]].concat());
        number(&found["workflows"][0]["clusterings"][1]["makespan_seconds"])
    };
    let makespans: Vec<f64> = (4..8).map(makespan).collect();
    let mean = makespans.iter().sum::<f64>() / 4.0;
    let variance = makespans.iter().map(|makespan| (makespan - mean).powi(2)).sum::<f64>() / 3.0;
    assert!(variance > 0.0);
    let seeds = [&args[..], &["--seed", "4", "--seeds", "4"]].concat();
    let found = document(folder.path(), &seeds);
    let clustering = &found["workflows"][0]["clusterings"][1];
    assert_eq!(number(&clustering["makespan_seconds"]), makespans[0]);
    assert_eq!(clustering["seeds"]["count"], 4);
    assert!((number(&clustering["seeds"]["mean_makespan_seconds"]) - mean).abs() < 1e-9);
    let half_width = 1.959_964 * (variance / 4.0).sqrt();
    assert!((number(&clustering["seeds"]["half_width_seconds"]) - half_width).abs() < 1e-9);
    let text = pleach(folder.path(), &[&["cluster"], &seeds[..]].concat()).done();
    let baseline = number(&found["workflows"][0]["makespan_unclustered_seconds"]);
    let percent = |fraction: f64| format!("{:.1} %", 100.0 * fraction);
    let expected = format!(
        "hc: gain {} ± {} on average of 4 seeds\n",
        percent(1.0 - mean / baseline),
        percent(half_width / baseline)
    );
    assert!(text.contains(&expected), "{expected} in\n{text}");
    // Other methods have no seeds.
    let balanced = document(folder.path(), &["groups.dag", "--seeds", "4"]);
    assert!(balanced["workflows"][0]["clusterings"][1].get("seeds").is_none());
}

#[test]
fn a_portfolio_chooses_for_each_level() {
    let folder = tempfile::tempdir().expect("a folder");
    let workflow = groups(folder.path());
    let platform = Platform::default().with_workers(NonZeroUsize::new(3).expect("3"));
    let options = Options { size: Size::Jobs(3), seed: 2, ..Options::default() };
    let methods = [Method::None, Method::Hc, Method::Hrb, Method::Hifb, Method::Hdb]
        .map(|method| move |workflow: &Workflow| cluster(workflow, &Options { method, ..options }));
    let named: Vec<NamedMethod<'_>> = ["none", "hc", "hrb", "hifb", "hdb"]
        .into_iter()
        .zip(methods.iter().map(|method| method as &dyn Fn(&Workflow) -> Clustering))
        .collect();
    let estimated = estimates(&workflow, EstimateSpread { kind: 0.8, task: 0.4 }, 2);
    let expected =
        dynamic_portfolio(&workflow, &estimated, &named, &platform, 2).expect("jobs").expect("methods");
    let args = [
        "groups.dag",
        "--workers",
        "3",
        "--jobs",
        "3",
        "--seed",
        "2",
        "--portfolio",
        "--estimates",
        "0.8,0.4",
    ];
    let found = document(folder.path(), &args);
    let found = &found["workflows"][0]["portfolio"];
    assert_eq!(number(&found["makespan_seconds"]), expected.makespan);
    assert_eq!(number(&found["fixed"]["makespan_seconds"]), expected.fixed.makespan);
    assert_eq!(found["best"]["method"], expected.best.method);
    assert_eq!(number(&found["regret_to_fixed"]), expected.regret_to_fixed());
    assert_eq!(number(&found["regret_to_best"]), expected.regret_to_best());
    let levels = found["levels"].as_array().expect("levels");
    assert_eq!(levels.len(), 3);
    for (level, expected) in levels.iter().zip(&expected.levels) {
        assert_eq!(level["method"], expected.method);
        assert_eq!(number(&level["predicted_seconds"]), expected.predicted);
    }
    let text = pleach(folder.path(), &[&["cluster"], &args[..]].concat()).done();
    assert!(text.contains(
        "portfolio: a method for each level; run times estimated within 0.8 by kind, 0.4 by task\n"
    ));
    let (_, table) = text.split_once("portfolio: a method").expect("a table");
    assert_eq!(line(table, &["1", "12"])[3], expected.levels[0].method);
    assert!(
        table.contains("\nstatic choice by estimates: ") && table.contains("\nbest single method: "),
        "{table}"
    );
}

/// Two chains of three tasks and a single task: of 15 s in two jobs, a chain of 9 s is cut.
#[test]
fn bounded_chains_end_at_the_mean_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let seconds = [3, 3, 3, 1, 1, 1, 3];
    let tasks: String =
        (0..).zip(seconds).map(|(task, seconds)| format!("TASK t{task} run {seconds}\n")).collect();
    let edges = "EDGE t0 t1\nEDGE t1 t2\nEDGE t3 t4\nEDGE t4 t5\n";
    fs::write(folder.path().join("chains.dag"), format!("{tasks}{edges}")).expect("written");
    let jobs = |vertical: &str| {
        let args =
            ["chains.dag", "--method", "none", "--vertical", vertical, "--jobs", "2", "--out", "jobs.json"];
        let text = pleach(folder.path(), &[&["cluster"], &args[..]].concat()).done();
        assert_eq!(line(&text, &["none", vertical])[1], vertical);
        let list: Value = serde_json::from_slice(&fs::read(folder.path().join("jobs.json")).expect("a file"))
            .expect("JSON");
        let jobs = list["jobs"].as_array().expect("jobs").iter().map(|job| job["tasks"].to_string());
        let mut jobs: Vec<String> = jobs.collect();
        jobs.sort();
        jobs
    };
    assert_eq!(jobs("prior"), [r#"["t0","t1","t2"]"#, r#"["t3","t4","t5"]"#, r#"["t6"]"#]);
    assert_eq!(jobs("prior-bounded"), [r#"["t0","t1"]"#, r#"["t2"]"#, r#"["t3","t4","t5"]"#, r#"["t6"]"#]);
}

#[test]
fn the_rule_has_a_regret_over_all_workflows() {
    let folder = tempfile::tempdir().expect("a folder");
    diamond(folder.path());
    groups(folder.path());
    let args =
        ["diamond.dax", "groups.dag", "--method", "best", "--workers", "2", "--queue", "10", "--jobs", "4"];
    let found = document(folder.path(), &args);
    let regret = |workflow: usize| number(&found["workflows"][workflow]["rule"]["regret"]);
    let (one, other) = (regret(0), regret(1));
    assert!(one != other);
    assert!((number(&found["rule_regret"]["mean"]) - (one + other) / 2.0).abs() < 1e-12);
    assert_eq!(number(&found["rule_regret"]["max"]), one.max(other));
    let text = pleach(folder.path(), &[&["cluster"], &args[..]].concat()).done();
    let percent = |fraction: f64| format!("{:.1} %", 100.0 * fraction);
    let (_, table) = text.split_once("\nworkflow ").expect("a table");
    let regrets = format!(
        "regret of the rule: {} on average, at most {}\n",
        percent((one + other) / 2.0),
        percent(one.max(other))
    );
    assert!(table.ends_with(&regrets), "{regrets} in\n{table}");
    assert!(table.contains(&percent(one)) && table.contains("\ngroups "), "{table}");
    // One workflow has its regret in its own line.
    let single = pleach(folder.path(), &["cluster", "diamond.dax", "--method", "best"]).done();
    assert!(!single.contains("on average") && single.contains("by rule: "), "{single}");
}
