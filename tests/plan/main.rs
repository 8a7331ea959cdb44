//! `pleach plan`: the published study is planned to the exact number of tasks, and planning changes no file.

mod accelerators;
mod buckets;
#[path = "../support/data.rs"]
mod data;
mod granularity;
#[expect(dead_code, reason = "it is part of tests of several packages")]
#[path = "../support/pipeline.rs"]
mod pipeline;
#[path = "../support/pleach.rs"]
mod pleach;
#[path = "../support/study.rs"]
mod study;

use data::data;
use pleach::pleach;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use study::Study;

/// The plans in the output of `--json`.
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

/// The fraction in percent with two decimals, as `reuse.md` prints it.
fn percent(fraction: &Value) -> f64 {
    (fraction.as_f64().expect("a fraction") * 1e4).round() / 100.0
}

fn seconds(plan: &Value, name: &str) -> f64 {
    plan[name].as_f64().expect("a number")
}

/// The plan of the authors' parameter sets. Returns `None` without test data.
fn published(test: &str, options: &[&str]) -> Option<Value> {
    let table = data(test)?.join("sensitivity/rtf_moat/parameter_sets_458.csv");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = table.display().to_string();
    let fixed = ["tests/fixtures/rtf-log/study.toml", "--any-values", "--parameter-sets", &table];
    let plans = plans(repository, &[&fixed, options].concat());
    assert_eq!(plans.len(), 1);
    plans.into_iter().next()
}

#[test]
fn the_published_study_has_2149_tasks() {
    let test = "the_published_study_has_2149_tasks";
    let Some(plan) = published(test, &["--strategy", "rtma", "--reuse", "tree", "--max-bucket-size", "458"])
    else {
        return;
    };
    let segmentation = stage(&plan, "segmentation");
    assert_eq!(segmentation["instances"], 458);
    assert_eq!(segmentation["tasks_after_stage_merging"], 3206);
    // One bucket per first task loses no reuse of the tree: level 1 has 173 nodes.
    assert_eq!((&segmentation["tasks"], &segmentation["buckets"]), (&2149.into(), &173.into()));
    assert_eq!(percent(&plan["reuse_fraction"]), 32.97);
    assert_eq!(plan["reuse_fraction"], segmentation["reuse_fraction"]);
    assert_eq!((&plan["evaluations"], &plan["runs"]), (&458.into(), &458.into()));
}

#[test]
fn published_study_has_published_rtma_and_naive_reuse() {
    let test = "published_study_has_published_rtma_and_naive_reuse";
    // From `reuse.md`: MaxBucketSize, RTMA's reuse and buckets, Naive's reuse.
    let rows = [
        ("2", 23.46, 285, 16.16),
        ("4", 30.26, 205, 25.20),
        ("7", 32.47, 176, 27.85),
        ("8", 32.97, 173, 30.19),
    ];
    for (size, rtma, buckets, naive) in rows {
        let Some(plan) =
            published(test, &["--strategy", "rtma", "--reuse", "tree", "--max-bucket-size", size])
        else {
            return;
        };
        assert_eq!(
            (percent(&plan["reuse_fraction"]), &stage(&plan, "segmentation")["buckets"]),
            (rtma, &buckets.into())
        );
        let Some(plan) =
            published(test, &["--strategy", "naive", "--reuse", "tree", "--max-bucket-size", size])
        else {
            return;
        };
        assert_eq!(percent(&plan["reuse_fraction"]), naive, "MaxBucketSize {size}");
        let size: u64 = size.parse().expect("a size");
        assert_eq!(stage(&plan, "segmentation")["buckets"], 458_u64.div_ceil(size));
    }
}

#[test]
fn plan_document_has_the_documented_fields() {
    let study = Study::of_tissue(64);
    let plan = &plans(study.folder(), &["study.toml"])[0];
    let names = "strategy reuse evaluations runs buckets per_stage reuse_fraction cost_reuse_fraction max_bucket_cost \
                 min_bucket_cost bucket_cost_hrv bucket_overhead_seconds predicted_makespan_seconds lower_bound_seconds \
                 transfers predicted_peak_bytes planning_seconds";
    for name in names.split(' ') {
        assert!(plan.get(name).is_some_and(|value| !value.is_null()), "{name} in {plan}");
    }
    let stages = plan["per_stage"].as_array().expect("a list");
    assert_eq!(stages.len(), 3);
    for stage in stages {
        let names = "stage instances_without_reuse instances tasks_after_stage_merging tasks reuse_fraction \
                     cost_reuse_fraction buckets max_bucket_cost min_bucket_cost bucket_cost_hrv transferred";
        for name in names.split(' ') {
            assert!(stage.get(name).is_some_and(|value| !value.is_null()), "{name} in {stage}");
        }
    }
    let seconds = |name: &str| seconds(plan, name);
    assert!(
        seconds("predicted_makespan_seconds") >= seconds("lower_bound_seconds")
            && seconds("lower_bound_seconds") > 0.0
    );
    assert!(seconds("max_bucket_cost") >= seconds("min_bucket_cost"));
    assert_eq!(plan["bucket_cost_hrv"], stage(plan, "segmentation")["bucket_cost_hrv"]);
    assert_eq!(seconds("bucket_overhead_seconds"), 0.0);
}

/// Workers transfer outputs over a fast network, and run the tasks again where it is slow. Neither happens in one process.
#[test]
fn bandwidth_decides_between_transfers_and_repeated_tasks() {
    let study = Study::of_tissue(256);
    let predicted = |options: &[&str]| {
        let plan = plans(study.folder(), &[&["study.toml", "--workers", "4"], options].concat()).remove(0);
        ["transfers", "bytes", "recomputed_tasks"]
            .map(|name| plan["transfers"][name].as_u64().expect("a number"))
    };
    assert_eq!(predicted(&[]), [0, 0, 0]);
    let [transfers, bytes, again] = predicted(&["--bandwidth", "1GB"]);
    assert!(transfers > 0 && bytes >= 256 * 256 * transfers && again == 0, "{transfers} {bytes} {again}");
    let [transfers, bytes, again] = predicted(&["--bandwidth", "100kB"]);
    assert!(transfers == 0 && bytes == 0 && again > 0, "{transfers} {bytes} {again}");
    // Nothing is shared between the buckets of trees.
    assert_eq!(predicted(&["--bandwidth", "1GB", "--reuse", "tree"]), [0, 0, 0]);
    let refused = pleach(study.folder(), &["plan", "study.toml", "--bandwidth", "fast"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--bandwidth"), "{refused:?}");
}

#[test]
fn published_study_in_trtma_buckets_is_near_published() {
    let test = "published_study_in_trtma_buckets_is_near_published";
    // From `reuse.md`: MaxBuckets, the most expensive bucket, and reuse by task counts (`crates/reuse/tests/laws/oracle.rs` has
    // the exact numbers). Costs are seconds here and differ between tasks, so both results are only near those numbers.
    let rows = [
        ("24", 94.0, 32.1),
        ("48", 49.0, 32.1),
        ("96", 26.0, 30.8),
        ("192", 15.0, 25.0),
        ("384", 14.0, 11.0),
    ];
    let Some(stages) = published(test, &["--strategy", "stage"]) else { return };
    let task_seconds = seconds(&stages, "max_bucket_cost") / 7.0;
    for (buckets, dearest, reuse) in rows {
        let options = ["--strategy", "trtma", "--reuse", "tree", "--max-buckets", buckets];
        let Some(plan) = published(test, &options) else { return };
        let found = (percent(&plan["reuse_fraction"]), seconds(&plan, "max_bucket_cost") / task_seconds);
        assert!((found.0 - reuse).abs() <= 1.5, "MaxBuckets {buckets}: {found:?}");
        // In tasks of mean cost. The most shared tasks are expensive, so buckets cost less.
        assert!((dearest * 0.85..=dearest + 1.0).contains(&found.1), "MaxBuckets {buckets}: {found:?}");
        assert!(stage(&plan, "segmentation")["buckets"].as_u64() <= buckets.parse().ok());
        assert_eq!(plan["max_buckets"].to_string(), buckets);
    }
}

/// Strategy and reuse scope of every plan of `--strategy all --reuse all`.
const WAYS: [(&str, Option<&str>); 20] = [
    ("none", None),
    ("stage", None),
    ("naive", Some("tree")),
    ("naive", Some("dataflow")),
    ("naive", Some("value")),
    ("sca", Some("tree")),
    ("sca", Some("dataflow")),
    ("sca", Some("value")),
    ("rtma", Some("tree")),
    ("rtma", Some("dataflow")),
    ("rtma", Some("value")),
    ("trtma", Some("tree")),
    ("trtma", Some("dataflow")),
    ("trtma", Some("value")),
    ("ranges", Some("tree")),
    ("ranges", Some("dataflow")),
    ("ranges", Some("value")),
    ("hrb", Some("tree")),
    ("hrb", Some("dataflow")),
    ("hrb", Some("value")),
];

fn ways(plans: &[Value]) -> Vec<(&str, Option<&str>)> {
    plans.iter().map(|plan| (plan["strategy"].as_str().expect("a name"), plan["reuse"].as_str())).collect()
}

#[test]
fn plan_compares_all_strategies_and_reuse_scopes() {
    let study = Study::of_tissue(64);
    let options = ["study.toml", "--workers", "2", "--max-bucket-size", "5"];
    let asked = |more: &[&str]| plans(study.folder(), &[&options, more].concat());
    let all = asked(&["--strategy", "all", "--reuse", "all"]);
    assert_eq!(ways(&all), WAYS);
    let number = |plan: &Value, name: &str| stage(plan, "segmentation")[name].as_u64().expect("a number");
    let tasks: Vec<u64> = all.iter().map(|plan| number(plan, "tasks")).collect();
    let (merged, tree, dataflow) = (tasks[1], [tasks[2], tasks[5], tasks[8], tasks[11]], tasks[3]);
    assert!(tasks[0] >= merged && tree.iter().all(|tree| merged > *tree && *tree > dataflow), "{tasks:?}");
    // With dataflow reuse each task is executed once in any partition. A plan cannot predict value reuse.
    for (plan, (_, reuse)) in all.iter().zip(WAYS) {
        let shared = reuse.is_some_and(|reuse| reuse != "tree");
        assert_eq!(number(plan, "tasks") == dataflow, shared, "{plan}");
        assert_eq!(number(plan, "transferred") > 0, shared, "{plan}");
        let by_task = stage(plan, "segmentation")["transferred_tasks"].as_object().expect("by task");
        let sum: u64 = by_task.values().filter_map(Value::as_u64).sum();
        assert_eq!(sum, number(plan, "transferred"), "{plan}");
        let (makespan, bound) =
            (seconds(plan, "predicted_makespan_seconds"), seconds(plan, "lower_bound_seconds"));
        assert!(makespan >= bound * (1.0 - 1e-12) && bound > 0.0, "{plan}");
        let (reuse, by_cost) = (seconds(plan, "reuse_fraction"), seconds(plan, "cost_reuse_fraction"));
        assert!(
            (reuse > 0.0) == reuse_is_possible(plan) && (by_cost > 0.0) == reuse_is_possible(plan),
            "{plan}"
        );
    }
    // Less sharing executes tasks more than once, so a narrower reuse scope never has a lower bound.
    let bounds: Vec<f64> = all.iter().map(|plan| seconds(plan, "lower_bound_seconds")).collect();
    assert!(bounds[0] > bounds[1] && bounds[1] > bounds[2] && bounds[2] > bounds[3], "{bounds:?}");
    assert!(bounds[2..].chunks(3).all(|of| of == &bounds[2..5]), "{bounds:?}");
    for (plan, (strategy, reuse)) in all.iter().zip(WAYS) {
        let mut alone = asked(&["--strategy", strategy, "--reuse", reuse.unwrap_or("tree")]);
        alone[0]["planning_seconds"] = plan["planning_seconds"].clone();
        assert_eq!((alone.len(), &alone[0]), (1, plan));
    }
}

#[test]
fn planned_dataflow_tasks_equal_executed_tasks() {
    // The tile is large enough that every task costs more than a lookup of another bucket's output.
    let study = Study::of_tissue(256);
    for strategy in ["naive", "trtma", "ranges", "hrb"] {
        let options = ["--strategy", strategy, "--reuse", "dataflow", "--workers", "1"];
        let plan = &plans(study.folder(), &[&["study.toml"], &options[..]].concat())[0];
        let run = ["run", "study.toml", "--out", strategy, "--json"];
        let run = pleach(study.folder(), &[&run, &options[..]].concat()).done();
        let run: Value = serde_json::from_str(&run).expect("one JSON document");
        let stages = plan["per_stage"].as_array().expect("a list").iter();
        let tasks: u64 = stages.map(|stage| stage["tasks"].as_u64().expect("tasks")).sum();
        let reference = plan["reference_tasks"].as_u64().expect("tasks");
        assert_eq!(run["tasks_executed"], tasks + reference, "{plan} {run}");
    }
}

#[test]
fn the_best_order_of_tasks_shares_more_and_costs_less() {
    let test = "the_best_order_of_tasks_shares_more_and_costs_less";
    let tree = ["--strategy", "rtma", "--reuse", "tree", "--max-bucket-size", "458", "--task-order"];
    let Some(given) = published(test, &[&tree[..], &["declared"]].concat()) else { return };
    let Some(best) = published(test, &[&tree[..], &["best"]].concat()) else { return };
    assert_eq!(percent(&given["reuse_fraction"]), 32.97);
    // With the declared costs of the operations, t2 to t4 precede t1, which has five thresholds.
    assert_eq!(percent(&best["reuse_fraction"]), 38.21);
    assert!(seconds(&best, "cost_reuse_fraction") > 1.5 * seconds(&given, "cost_reuse_fraction"));
    assert!(seconds(&best, "lower_bound_seconds") < seconds(&given, "lower_bound_seconds"));
    // Dataflow reuse does not depend on the task order.
    let graph = ["--strategy", "rtma", "--reuse", "dataflow", "--max-bucket-size", "458", "--task-order"];
    let of = |order| published(test, &[&graph[..], &[order]].concat()).expect("data is there");
    assert_eq!(of("declared")["reuse_fraction"], of("best")["reuse_fraction"]);
}

#[test]
fn less_memory_makes_more_buckets() {
    let study = Study::of_tissue(64);
    study.edit(&[("trajectories = 2", "trajectories = 10"), ("normalize = true", "normalize = false")]);
    let buckets = |memory: &[&str]| {
        let plan = &plans(study.folder(), &[&["study.toml", "--workers", "2"], memory].concat())[0];
        (
            plan["max_buckets"].as_u64().expect("a limit"),
            plan["predicted_peak_bytes"].as_u64().expect("bytes"),
        )
    };
    let (usual, peak) = buckets(&[]);
    assert_eq!(usual, 6);
    assert_eq!(buckets(&["--memory", "1GB"]).0, usual);
    // From the memory of the largest buckets to one where none fits.
    let by_memory = (1..=64).rev().step_by(2).map(|part| format!("{}B", peak * part / 64));
    let limits: Vec<(String, u64)> =
        by_memory.map(|memory| (memory.clone(), buckets(&["--memory", &memory]).0)).collect();
    assert!(limits.iter().all(|(_, limit)| *limit >= usual), "{limits:?}");
    let (less, _) = limits.iter().find(|(_, limit)| *limit > usual).expect("memory that is short");
    // An explicit limit is kept.
    assert_eq!(buckets(&["--memory", less, "--max-buckets", "3"]).0, 3);
}

fn reuse_is_possible(plan: &Value) -> bool {
    !["none", "stage"].contains(&plan["strategy"].as_str().expect("a name"))
}

#[test]
fn table_has_a_row_per_plan_and_stages_for_a_single_plan() {
    let study = Study::of_tissue(64);
    let show = |options: &[&str]| pleach(study.folder(), &[&["plan", "study.toml"], options].concat()).done();
    let all = show(&["--strategy", "all", "--reuse", "all", "--workers", "256"]);
    let rows: Vec<Vec<&str>> = all.lines().map(|line| line.split_whitespace().collect()).collect();
    for (strategy, reuse) in WAYS {
        let starts = |row: &&Vec<&str>| match reuse {
            Some(reuse) => row.starts_with(&[strategy, reuse]),
            None => row.starts_with(&[strategy]),
        };
        assert_eq!(rows.iter().filter(starts).count(), 1, "{strategy} {reuse:?} in {all}");
    }
    assert!(all.starts_with("nuclei-moat: 32 evaluations, 64 runs, on 256 workers\n"), "{all}");
    assert!(all.lines().all(|line| line.chars().count() <= 100), "{all}");
    let one = show(&[]);
    assert!(one.starts_with("ranges, value: 32 evaluations, 64 runs;"), "{one}");
    for text in
        ["  normalization ", "  segmentation ", "  comparison ", "max s", "HRV", "value counts as dataflow"]
    {
        assert!(one.contains(text), "{text} in {one}");
    }
    let tree = show(&["--reuse", "tree"]);
    assert!(tree.starts_with("trtma, tree: 32 evaluations"), "{tree}");
    assert!(!tree.contains("value counts"));
    assert!(show(&["--strategy", "trtma"]).starts_with("trtma, value: 32 evaluations"));
}

#[test]
fn strategy_beyond_its_limit_is_excluded_with_a_note() {
    // The study has 448 evaluations and needs no data.
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = "tests/fixtures/rtf-log/study.toml";
    let shown = pleach(repository, &["plan", file, "--any-values", "--strategy", "all"]).done();
    let note = shown.lines().find(|line| line.starts_with("sca: omitted: ")).expect("a note");
    assert!(note.contains("SCA takes at most 200"), "{note}");
    let all = plans(repository, &[file, "--any-values", "--strategy", "all", "--reuse", "tree"]);
    assert_eq!(
        ways(&all).iter().map(|way| way.0).collect::<Vec<_>>(),
        ["none", "stage", "naive", "rtma", "trtma", "ranges", "hrb"]
    );
    let alone = pleach(repository, &["plan", file, "--any-values", "--strategy", "sca"]);
    assert_eq!((alone.code, alone.stdout.as_str()), (2, ""));
    assert!(alone.stderr.contains("SCA takes at most 200"), "{alone:?}");
}

#[test]
fn a_plot_has_a_line_for_every_plan() {
    let study = Study::of_tissue(64);
    let options = ["study.toml", "--strategy", "all", "--reuse", "all", "--workers", "2"];
    let plain = plans(study.folder(), &options);
    let mut plotted = plans(study.folder(), &[&options[..], &["--plot", "scaling.SVG"]].concat());
    for (plotted, plain) in plotted.iter_mut().zip(&plain) {
        plotted["planning_seconds"] = plain["planning_seconds"].clone();
    }
    assert_eq!(plotted, plain);
    let text = fs::read_to_string(study.path("scaling.SVG")).expect("a picture");
    let picture = roxmltree::Document::parse(&text).expect("well-formed");
    let titles: Vec<&str> = picture
        .descendants()
        .filter(|node| node.has_tag_name("title"))
        .filter_map(|node| node.text())
        .collect();
    for (strategy, reuse) in WAYS {
        let name = reuse.map_or(strategy.to_owned(), |reuse| format!("{strategy}, {reuse}"));
        assert_eq!(titles.iter().filter(|title| **title == name).count(), 1, "{name} in {titles:?}");
    }
    assert!(titles.iter().filter(|title| title.starts_with("bound: ")).count() >= 2, "{titles:?}");
    assert_eq!(
        files(study.folder()).iter().filter(|file| file.display().to_string().contains("caling")).count(),
        1
    );
}

#[test]
fn a_plot_can_be_pixels() {
    let study = Study::of_tissue(64);
    plans(study.folder(), &["study.toml", "--plot", "scaling.png"]);
    plans(study.folder(), &["study.toml", "--plot", "scaling.svg"]);
    let text = fs::read_to_string(study.path("scaling.svg")).expect("a picture");
    let drawing = roxmltree::Document::parse(&text).expect("well-formed");
    let size = ["width", "height"].map(|side| {
        drawing.root_element().attribute(side).and_then(|side| side.parse::<u32>().ok()).expect("a size")
    });
    let picture = image::open(study.path("scaling.png")).expect("a picture").to_rgba8();
    assert_eq!([picture.width(), picture.height()], size.map(|side| 2 * side));
    // The page is opaque, with lines in a curve's color and dark type in the title.
    assert!(picture.pixels().all(|pixel| pixel.0[3] == 255));
    let dark = |pixel: &image::Rgba<u8>| pixel.0[..3].iter().all(|channel| *channel < 90);
    assert!(picture.enumerate_pixels().any(|(_, y, pixel)| y < 60 && dark(pixel)), "a title");
    let spread = |[r, g, b, _]: [u8; 4]| r.max(g).max(b) - r.min(g).min(b);
    let colored = picture.pixels().filter(|pixel| spread(pixel.0) > 80);
    assert!(colored.count() > 500);
}

#[test]
fn a_plot_that_cannot_be_written_is_refused() {
    let study = Study::of_tissue(64);
    let before = files(study.folder());
    for name in ["scaling.pdf", "scaling.gif", "scaling", ".svg"] {
        let refused = pleach(study.folder(), &["plan", "study.toml", "--plot", name]);
        let allowed = format!(
            "error: invalid value '{name}' for '--plot <FILE.svg|.png>': a file that ends in .svg or .png is allowed\n"
        );
        assert_eq!((refused.code, refused.stdout.as_str(), refused.stderr), (2, "", allowed));
    }
    let nowhere = pleach(study.folder(), &["plan", "study.toml", "--plot", "missing/scaling.svg"]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (2, ""));
    assert!(
        nowhere.stderr.starts_with("error: --plot missing/scaling.svg: failed to write: "),
        "{nowhere:?}"
    );
    assert_eq!(files(study.folder()), before);
}

#[test]
fn plan_writes_nothing_and_decodes_no_tile() {
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
fn values_that_no_operation_accepts_are_planned_on_request_only() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = "tests/fixtures/rtf-log/study.toml";
    let refused = pleach(repository, &["plan", file]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("operation nuclei.reconstruct accepts one of 4 8"), "{refused:?}");
    assert_eq!(plans(repository, &[file, "--any-values"])[0]["evaluations"], 448);
}

fn files(folder: &Path) -> BTreeSet<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { [path].into() }).collect()
}
