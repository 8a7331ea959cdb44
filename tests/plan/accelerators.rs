//! Makespans of cores and accelerators together, predicted from the times of a run on both.

use crate::pipeline::{KERNELS, pipeline};
use crate::pleach::{Answer, pleach};
use crate::study::Study;
use serde_json::{Value, json};

/// Evaluations: enough that the last ones do not matter.
const EVALUATIONS: u32 = 400;

/// Seconds of all stand-ins on one core, 1 s each.
const WORK_SECONDS: f64 = EVALUATIONS as f64 * KERNELS.len() as f64;

/// Writes the record of a run: each stand-in took 1 s on a core and 0.5 s on an accelerator, and each bucket had this overhead.
fn write_run(study: &Study, overhead_seconds: f64) {
    let operation = |(name, ..): &(&str, f64, f64)| {
        json!({
            "name": format!("emulation.{name}"), "runs": 20, "seconds": 15.0,
            "accelerator": { "runs": 10, "seconds": 5.0 }
        })
    };
    let others = ["queue", "faulty", "after", "end"]
        .map(|name| json!({ "name": format!("emulation.{name}"), "runs": 10, "seconds": 0.0 }));
    let operations: Vec<Value> = KERNELS.iter().map(operation).chain(others).collect();
    let run = json!({
        "study": "pipeline", "workers": 2, "execution_seconds": 100.0, "operations": operations,
        "bucket_overhead_seconds": overhead_seconds
    });
    study.write("run.json", run.to_string());
}

fn plan(study: &Study, options: &[&str]) -> Answer {
    pleach(study.folder(), &[&["plan", "study.toml", "--reuse", "tree"], options].concat())
}

/// Returns the predicted makespan and the lower bound of a plan, in seconds.
fn predicted(study: &Study, options: &[&str]) -> (f64, f64) {
    let printed = plan(study, &[options, &["--run", "run.json", "--json"]].concat()).done();
    let plan: Value = serde_json::from_str(&printed).expect("JSON");
    let plan = &plan["plans"][0];
    let seconds = |name: &str| plan[name].as_f64().expect("a number");
    (seconds("predicted_makespan_seconds"), seconds("lower_bound_seconds"))
}

/// Returns the makespan of base nodes with these lines, and of one worker of a pool beside them.
fn simulated(study: &Study, base: &str, pool: &str) -> [f64; 2] {
    study.write(
        "burst.toml",
        format!(
            "[study]\nfile = \"study.toml\"\nrun = \"run.json\"\nreuse = \"tree\"\n[base]\nnodes = 1\n{base}\n\
             [[pool]]\nname = \"cloud\"\n{pool}\nprice_per_hour = 1\nstartup_seconds = 0\nmax = 1\n\
             [[policy]]\nkind = \"fixed\"\nworkers = {{ cloud = 1 }}\n"
        ),
    );
    let printed = pleach(study.folder(), &["simulate", "burst.toml", "--json"]).done();
    let document: Value = serde_json::from_str(&printed).expect("JSON");
    [0, 1].map(|policy| document["policies"][policy]["makespan_seconds"].as_f64().expect("a number"))
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.02, "{found} instead of {expected}");
}

/// With a gain of 2, an accelerator does the work of two cores.
#[test]
fn makespan_on_both_kinds_follows_from_measured_gains() {
    let study = pipeline(EVALUATIONS, |_, declared| declared, |_| 0);
    write_run(&study, 0.0);
    for (cores, accelerators) in [("1", "0"), ("2", "1"), ("4", "2")] {
        let (makespan, bound) = predicted(&study, &["--workers", cores, "--accelerators", accelerators]);
        let number = |text: &str| text.parse::<f64>().expect("a number");
        assert_near(makespan, WORK_SECONDS / (number(cores) + 2.0 * number(accelerators)));
        assert!(bound <= makespan, "{bound} {makespan}");
    }
    let printed = plan(&study, &["--run", "run.json", "--workers", "2", "--accelerators", "1"]).done();
    assert!(printed.contains("on 2 workers and 1 accelerator (lower bound"), "{printed}");
    // Accelerators do not shorten the overhead of a bucket. An overhead on the command line precedes the measured one.
    write_run(&study, 50.0);
    let options = ["--workers", "2", "--accelerators", "1", "--max-buckets", "2"];
    assert_near(predicted(&study, &options).0, WORK_SECONDS / 4.0 + 50.0);
    assert_near(predicted(&study, &[&options[..], &["--overhead", "0"]].concat()).0, WORK_SECONDS / 4.0);
}

#[test]
fn simulated_nodes_have_the_speed_of_both_kinds() {
    let study = pipeline(EVALUATIONS, |_, declared| declared, |_| 0);
    write_run(&study, 0.0);
    let [alone, with_cloud] = simulated(&study, "cores = 2", "cores = 2");
    assert_near(alone, WORK_SECONDS / 2.0);
    assert_near(with_cloud, WORK_SECONDS / 4.0);
    let [alone, with_cloud] = simulated(&study, "cores = 2\naccelerators = 1", "cores = 2\naccelerators = 2");
    assert_near(alone, WORK_SECONDS / 4.0);
    assert_near(with_cloud, WORK_SECONDS / 10.0);
}

/// Without a run, gains are the declared ones.
#[test]
fn declared_gains_count_without_measured_ones() {
    let study = pipeline(8, |_, declared| declared, |_| 0);
    let makespan = |options: &[&str]| {
        let printed = plan(&study, &[options, &["--json", "--workers", "16"]].concat()).done();
        let plan: Value = serde_json::from_str(&printed).expect("JSON");
        plan["plans"][0]["predicted_makespan_seconds"].as_f64().expect("a number")
    };
    assert!(makespan(&["--accelerators", "1"]) < 0.9 * makespan(&[]));
}

#[test]
fn records_that_are_no_run_of_the_study_are_refused() {
    let study = pipeline(8, |_, declared| declared, |_| 0);
    write_run(&study, 0.0);
    study.write(
        "other.json",
        r#"{ "study": "other", "workers": 1, "execution_seconds": 1, "operations": [] }"#,
    );
    study.write("text.json", "no JSON");
    for (run, expected) in [
        ("other.json", "other.json: study: \"other\" is not allowed; the run of \"pipeline\" is needed"),
        ("text.json", "text.json: expected ident at line 1 column 2; the run.json of a study is needed"),
        ("none.json", "none.json: failed to read: No such file"),
    ] {
        let answer = plan(&study, &["--run", run]);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(expected), "{answer:?}");
    }
    let answer = plan(&study, &["--run", "run.json", "--accelerators", "-1"]);
    assert_eq!(answer.code, 2, "{answer:?}");
}
