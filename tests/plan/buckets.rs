//! Balance of buckets: their variance, the strategy that balances only, and their overhead.

use crate::pleach::pleach;
use crate::study::Study;
use crate::{WAYS, percent, plans, published, seconds, stage};
use serde_json::Value;

/// A stage in one bucket has no variance. Two buckets have that of their two costs.
#[test]
fn variance_of_buckets_is_that_of_their_costs() {
    let study = Study::of_tissue(64);
    let of = |max_buckets: &str| {
        let options = ["study.toml", "--reuse", "tree", "--max-buckets", max_buckets];
        stage(&plans(study.folder(), &options)[0], "segmentation").clone()
    };
    let one = of("1");
    assert_eq!((&one["buckets"], seconds(&one, "bucket_cost_hrv")), (&1.into(), 0.0));
    let two = of("2");
    let (most, least) = (seconds(&two, "max_bucket_cost"), seconds(&two, "min_bucket_cost"));
    assert_eq!(two["buckets"], 2);
    let expected = (most - least) / 2_f64.sqrt() / ((most + least) / 2.0);
    assert!((seconds(&two, "bucket_cost_hrv") - expected).abs() < 1e-9, "{two}");
}

/// With equal numbers of buckets, HRB balances costs before reuse, and keeps less reuse than TRTMA.
#[test]
fn published_study_in_hrb_buckets_shares_less() {
    let test = "published_study_in_hrb_buckets_shares_less";
    for buckets in ["24", "96"] {
        let of = |strategy| {
            published(test, &["--strategy", strategy, "--reuse", "tree", "--max-buckets", buckets])
        };
        let Some((hrb, trtma)) = of("hrb").zip(of("trtma")) else { return };
        assert_eq!(stage(&hrb, "segmentation")["buckets"].to_string(), buckets);
        assert_eq!(hrb["max_buckets"].to_string(), buckets);
        assert!(percent(&hrb["reuse_fraction"]) + 5.0 < percent(&trtma["reuse_fraction"]), "{hrb} {trtma}");
        assert!(seconds(&hrb, "max_bucket_cost") > seconds(&trtma, "max_bucket_cost"), "{hrb} {trtma}");
    }
}

#[test]
fn overhead_of_a_bucket_adds_to_the_makespan() {
    let study = Study::of_tissue(64);
    for (strategy, reuse) in WAYS {
        let with = |overhead: &str| {
            let way = ["--strategy", strategy, "--reuse", reuse.unwrap_or("tree"), "--overhead", overhead];
            let fixed = ["study.toml", "--workers", "2", "--max-buckets", "4", "--max-bucket-size", "4"];
            plans(study.folder(), &[&fixed[..], &way[..]].concat()).remove(0)
        };
        let (free, slow) = (with("0"), with("10"));
        assert_eq!(slow["bucket_overhead_seconds"], 10.0);
        assert_eq!(free["per_stage"], slow["per_stage"], "{strategy}: the user set the limits");
        // At least the three stages of a run follow each other. At most all executed buckets do, those of the reference
        // included. Each comparison reads a mask of its own, and is one.
        let added =
            seconds(&slow, "predicted_makespan_seconds") - seconds(&free, "predicted_makespan_seconds");
        let comparison = stage(&slow, "comparison");
        let buckets = seconds(&slow, "buckets") - seconds(comparison, "buckets")
            + seconds(comparison, "instances")
            + 6.0;
        assert!((29.0..=10.0 * buckets).contains(&added), "{strategy}: {added} s for {buckets} buckets");
        let bound = seconds(&slow, "lower_bound_seconds");
        assert!(bound >= 30.0 && bound <= seconds(&slow, "predicted_makespan_seconds") * (1.0 + 1e-12));
    }
    let text = pleach(study.folder(), &["plan", "study.toml", "--overhead", "60"]).done();
    assert!(text.contains("each bucket has an overhead of 60.00 s"), "{text}");
    let refused = pleach(study.folder(), &["plan", "study.toml", "--overhead=-1"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("a number of seconds from 0 to 1000000, auto, or the run.json of"),
        "{}",
        refused.stderr
    );
}

#[test]
fn overhead_of_a_measured_run_is_planned_with() {
    let study = Study::of_tissue(64);
    study.write("slow/run.json", r#"{ "study": "s", "bucket_overhead_seconds": 60.0 }"#);
    study.write("alone/run.json", r#"{ "study": "s" }"#);
    let with = |overhead: &str| {
        let mut plan =
            plans(study.folder(), &["study.toml", "--workers", "2", "--overhead", overhead]).remove(0);
        plan["planning_seconds"] = Value::Null;
        plan
    };
    assert_eq!(with("slow/run.json"), with("60"));
    assert_eq!(with("auto"), with("0"), "nothing is measured");
    for (file, expected) in
        [("alone/run.json", "no bucket_overhead_seconds"), ("missing.json", "No such file")]
    {
        let refused = pleach(study.folder(), &["plan", "study.toml", "--overhead", file]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(file) && refused.stderr.contains(expected), "{}", refused.stderr);
    }
}

/// A run plans with the overhead that the user gives, and its responses are those of any plan.
#[test]
fn overhead_changes_buckets_and_no_response() {
    let study = Study::of_tissue(64);
    let ran = |overhead: &str| {
        let args =
            ["run", "study.toml", "--quiet", "--workers", "2", "--out", overhead, "--overhead", overhead];
        pleach(study.folder(), &args).done();
        let read =
            |file: &str| std::fs::read_to_string(study.path(&format!("{overhead}/{file}"))).expect("results");
        let plan: Value = serde_json::from_str(&read("plan.json")).expect("JSON");
        (plan["max_buckets"].clone(), plan["bucket_overhead_seconds"].clone(), read("responses.csv"))
    };
    let (free, slow) = (ran("auto"), ran("60"));
    assert_eq!((free.0, free.1), (Value::from(6), Value::from(0.0)));
    assert_eq!((slow.0, slow.1), (Value::from(2), Value::from(60.0)));
    assert_eq!(free.2, slow.2);
}

/// Tasks of the study take milliseconds: behind a slow queue, each worker gets one bucket of a stage.
#[test]
fn small_tasks_behind_a_slow_queue_go_in_larger_buckets() {
    let study = Study::of_tissue(64);
    let limits = |strategy: &str, limit: &str| {
        ["0", "0.001", "0.1", "60"].map(|overhead| {
            let options = ["study.toml", "--workers", "2", "--strategy", strategy, "--overhead", overhead];
            plans(study.folder(), &options)[0][limit].as_u64().expect("a limit")
        })
    };
    for strategy in ["trtma", "ranges", "hrb"] {
        let found = limits(strategy, "max_buckets");
        assert!(found.is_sorted_by(|a, b| a >= b), "{strategy}: {found:?}");
        assert_eq!((found[0], found[3]), (6, 2), "{strategy}: {found:?}");
    }
    for strategy in ["naive", "rtma"] {
        let found = limits(strategy, "max_bucket_size");
        assert!(found.is_sorted(), "{strategy}: {found:?}");
        // 64 instances of the segmentation on two workers.
        assert_eq!((found[0], found[3]), (16, 32), "{strategy}: {found:?}");
    }
}
