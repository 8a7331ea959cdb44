//! `pleach simulate`: the shipped examples give the same results every time, predictions hold, and invalid files are
//! refused.

#[path = "../support/pleach.rs"]
mod pleach;
mod refusals;

use pleach::pleach;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the burst examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/burst")
}

/// A copy of the examples, small enough for a test. Tests replace parts of its files.
struct Copied(tempfile::TempDir);

impl Copied {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("tiles")).expect("a folder");
        fs::copy(examples().join("tiles/tissue.png"), folder.path().join("tiles/tissue.png"))
            .expect("a tile");
        let study = fs::read_to_string(examples().join("study.toml")).expect("the study");
        fs::write(folder.path().join("study.toml"), study.replace("trajectories = 10", "trajectories = 8"))
            .expect("a folder");
        let copied = Self(folder);
        copied.edit("burst.toml", &[]);
        copied.edit("spot.toml", &[]);
        copied
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn edit(&self, name: &str, edits: &[(&str, &str)]) {
        let text = fs::read_to_string(examples().join(name)).expect("an example");
        let edited = edits.iter().fold(text, |text, (old, new)| {
            assert!(text.contains(old), "{old} is not in {name}");
            text.replacen(old, new, 1)
        });
        fs::write(self.folder().join(name), edited).expect("a folder");
    }

    /// Replaces the tile by one of so many pixels a side, so that message times are negligible.
    fn replace_tile(&self, size: &str) {
        fs::remove_file(self.folder().join("tiles/tissue.png")).expect("a tile");
        pleach(self.folder(), &["tissue", "--out", "tiles", "--size", size, "--count", "1", "--seed", "3"])
            .done();
    }

    fn simulate(&self, name: &str, options: &[&str]) -> Value {
        let args: Vec<&str> = ["simulate", name, "--json"].iter().chain(options).copied().collect();
        serde_json::from_str(&pleach(self.folder(), &args).done()).expect("JSON")
    }
}

fn policy<'a>(document: &'a Value, name: &str) -> &'a Value {
    let policies = document["policies"].as_array().expect("policies");
    policies.iter().find(|policy| policy["policy"] == name).unwrap_or_else(|| panic!("{name} in {document}"))
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} in {value}"))
}

/// All files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let named = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(path).expect("a file"))
    };
    entries.map(named).collect()
}

#[test]
fn deadline_aware_policies_meet_half_the_time() {
    let copied = Copied::new();
    let document = copied.simulate("burst.toml", &[]);
    let base = policy(&document, "base-alone");
    let deadline = number(&document, "deadline_seconds");
    assert!((deadline - number(base, "makespan_seconds") / 2.0).abs() < 1e-6);
    assert_eq!((number(base, "cost"), &base["in_time"]), (0.0, &Value::Bool(false)));
    for name in ["deadline", "trtma"] {
        let policy = policy(&document, name);
        assert_eq!(policy["in_time"], true, "{policy}");
        assert!(number(policy, "cost") > 0.0 && number(policy, "most_workers") > 0.0, "{policy}");
        // The prediction at submission is near the makespan: start-up and task times vary.
        let ratio = number(policy, "predicted_seconds") / number(policy, "makespan_seconds");
        assert!((0.8..1.25).contains(&ratio), "{ratio}: {policy}");
    }
    // Worker costs stay within the budget. Egress costs are not predicted.
    let budget = policy(&document, "budget");
    let workers = number(budget, "cost") - number(budget, "egress_cost");
    assert!(workers <= number(&document, "budget"), "{budget}");
    // Workers are busy most of the time, and most of the reuse is kept.
    for policy in document["policies"].as_array().expect("policies") {
        assert!((0.5..=1.0).contains(&number(policy, "utilization")), "{policy}");
        assert!((0.5..=1.0).contains(&number(policy, "reuse_kept")), "{policy}");
        assert_eq!((number(policy, "interruptions"), number(policy, "lost_seconds")), (0.0, 0.0));
    }
    // No larger number of workers is slower by 5 % or more.
    let front = document["front"].as_array().expect("a front");
    let makespans: Vec<f64> = front.iter().map(|outcome| number(outcome, "makespan_seconds")).collect();
    assert!(
        makespans.len() > 4 && makespans.windows(2).all(|pair| pair[1] < 1.05 * pair[0]),
        "{makespans:?}"
    );
}

#[test]
fn infeasible_deadline_with_spot_workers_is_reported() {
    let copied = Copied::new();
    // Each worker runs for 2 minutes on average and receives a notice 30 s before its end.
    copied.edit(
        "spot.toml",
        &[
            ("interruptions_per_hour = 4", "interruptions_per_hour = 30"),
            ("notice_seconds = 120", "notice_seconds = 30"),
            ("startup_seconds = 180", "startup_seconds = 60"),
        ],
    );
    let document = copied.simulate("spot.toml", &[]);
    let fixed = policy(&document, "fixed");
    assert!(number(fixed, "interruptions") > 0.0 && number(fixed, "asked") > 8.0, "{fixed}");
    let late = policy(&document, "too-late");
    assert_eq!(late["in_time"], false);
    assert!(number(late, "fastest_seconds") > 200.0 && number(late, "fastest_cost") > 0.0, "{late}");
    let words = pleach(copied.folder(), &["simulate", "spot.toml"]).done();
    let told = words.lines().find(|line| line.starts_with("too-late: ")).expect("it is told");
    assert!(told.contains("the deadline of 200 s cannot be met: the fastest possible is about "), "{told}");
}

#[test]
fn without_notice_work_is_lost_and_the_study_still_ends() {
    let copied = Copied::new();
    copied.edit(
        "spot.toml",
        &[
            ("interruptions_per_hour = 4", "interruptions_per_hour = 30"),
            ("notice_seconds = 120", "notice_seconds = 0"),
            ("startup_seconds = 180", "startup_seconds = 60"),
        ],
    );
    let document = copied.simulate("spot.toml", &[]);
    let fixed = policy(&document, "fixed");
    assert!(number(fixed, "lost_seconds") > 0.0 && number(fixed, "interruptions") > 0.0, "{fixed}");
}

#[test]
fn same_seed_gives_the_same_bytes() {
    let copied = Copied::new();
    let said = |out: &str, seed: &str| {
        let args = ["simulate", "spot.toml", "--json", "--out", out, "--seed", seed];
        let document = pleach(copied.folder(), &args).done();
        (document, files(&copied.folder().join(out)))
    };
    let (first, pictures) = said("a", "7");
    assert_eq!((&first, &pictures), (&said("b", "7").0, &files(&copied.folder().join("b"))));
    let names: Vec<&str> = pictures.keys().map(String::as_str).collect();
    for name in ["cost-makespan", "workers", "slots-base-alone", "slots-fixed", "slots-trtma"] {
        for ending in ["svg", "png"] {
            assert!(names.contains(&format!("{name}.{ending}").as_str()), "{name}.{ending} in {names:?}");
        }
    }
    let svg = |name: &str| String::from_utf8(pictures[name].clone()).expect("UTF-8");
    for name in ["cost-makespan.svg", "workers.svg", "slots-deadline.svg"] {
        let svg = svg(name);
        assert!(roxmltree::Document::parse(&svg).is_ok() && !svg.contains("NaN"), "{name}");
        assert!(svg.contains("nuclei-moat"), "{name}");
    }
    assert_ne!(first, said("c", "8").0);
}

#[test]
fn measured_costs_of_a_run_replace_declared_costs() {
    let copied = Copied::new();
    copied.replace_tile("512");
    let one = [
        (
            "# As if it had so many tiles of 32768 by 32768 pixels.\ntiles = 8\ntile_pixels = 1073741824\n",
            "run = \"nuclei-moat/run.json\"",
        ),
        ("nodes = 8\ncores = 2", "nodes = 1\ncores = 1"),
    ];
    for reuse in ["tree", "dataflow", "value"] {
        let options = ["--reuse", reuse, "--workers", "1", "--quiet", "--overwrite"];
        pleach(copied.folder(), &[&["run", "study.toml"], &options[..]].concat()).done();
        let run = fs::read_to_string(copied.folder().join("nuclei-moat/run.json")).expect("a run");
        let run: Value = serde_json::from_str(&run).expect("JSON");
        let took = number(&run, "execution_seconds");
        let scope = ("reuse = \"tree\"", &*format!("reuse = \"{reuse}\""));
        copied.edit("burst.toml", &[&one[..], &[scope]].concat());
        let document = copied.simulate("burst.toml", &[]);
        let alone = policy(&document, "base-alone");
        let base = number(alone, "makespan_seconds");
        if reuse != "tree" {
            // One slot executes the distinct tasks one after the other, in the run and in the simulation.
            assert_eq!(alone["executed_tasks"], run["tasks_executed"], "{reuse}");
            // The slot idles between messages only: its busy seconds are those of the distinct tasks.
            let busy = number(alone, "utilization") * base;
            assert!((number(alone, "bound_seconds") / busy - 1.0).abs() < 0.001, "{reuse}: {alone}");
        }
        // A replan may share slightly more or less.
        assert!((base / took - 1.0).abs() < 0.1, "{reuse}: {base} {took}");
    }
    refuse_other_values(&copied);
    // Measurements of another study are refused.
    let other = fs::read_to_string(copied.folder().join("study.toml")).expect("a study");
    fs::write(copied.folder().join("study.toml"), other.replace("\"nuclei-moat\"", "\"other\""))
        .expect("a file");
    let answer = pleach(copied.folder(), &["simulate", "burst.toml"]);
    assert_eq!(answer.code, 2);
    let expected = "run.json: study: \"nuclei-moat\" is not allowed; the run of \"other\" is needed";
    assert!(answer.stderr.contains(expected), "{answer:?}");
}

/// Each comparison reads a mask of its own, and is a bucket of its own: they take most of the overheads.
#[test]
fn overhead_of_a_bucket_is_simulated() {
    let copied = Copied::new();
    let write = |overhead: &str| {
        let (tree, own) = ("reuse = \"tree\"", format!("reuse = \"tree\"\noverhead = {overhead}"));
        copied.edit("burst.toml", &[(tree, &own)]);
    };
    let simulated = |overhead: &str| {
        write(overhead);
        let document = copied.simulate("burst.toml", &[]);
        let comparisons = number(&document, "evaluations") * number(&document, "tiles");
        (number(policy(&document, "base-alone"), "makespan_seconds"), comparisons)
    };
    let ((free, comparisons), (queued, _)) = (simulated("0"), simulated("600"));
    let (overheads, slots) = ((queued - free) / 600.0, 16.0);
    assert!(overheads >= comparisons / slots, "{overheads} overheads of a slot");
    // Few more: a bucket for each slot and stage before, and tiles that do not fill the slots.
    assert!(overheads < comparisons / slots + 8.0, "{overheads} overheads of a slot");
    write("-1");
    let refused = pleach(copied.folder(), &["simulate", "burst.toml"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("overhead: -1 is not allowed; 0 to 1000000 is allowed"), "{refused:?}");
}

/// Records of a run by value are refused for another sample, and beside measurements of another scope.
fn refuse_other_values(copied: &Copied) {
    let study = fs::read_to_string(copied.folder().join("study.toml")).expect("a study");
    let refused = |expected: &str| {
        let answer = pleach(copied.folder(), &["simulate", "burst.toml"]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
        assert!(answer.stderr.contains(expected), "{}\nwanted: {expected}", answer.stderr);
    };
    let write = |name: &str, text: &str| fs::write(copied.folder().join(name), text).expect("a file");
    write("study.toml", &study.replace("trajectories = 8", "trajectories = 9"));
    refused(
        "run.json: records of 128 evaluations on 1 tiles are not allowed; records of 144 evaluations on 1",
    );
    write("study.toml", &study.replace("seed = 500", "seed = 501"));
    refused("run.json: records of another plan are not allowed; records of the parameter sets of this study");
    write("study.toml", &study);
    let run = fs::read_to_string(copied.folder().join("nuclei-moat/run.json")).expect("a run");
    write("nuclei-moat/run.json", &run.replace("\"reuse\": \"value\"", "\"reuse\": \"dataflow\""));
    refused("run.json: reuse: \"dataflow\" is not allowed; reuse by value needs the run.json of pleach run");
    write("nuclei-moat/run.json", &run);
    fs::remove_file(copied.folder().join("nuclei-moat/provenance.bin")).expect("records");
    refused("nuclei-moat: has no provenance.bin; ");
}

#[test]
fn a_thousand_nodes_end_a_study() {
    let copied = Copied::new();
    let edits = [("tiles = 64", "tiles = 40")];
    copied.edit("thousand.toml", &edits);
    let words = pleach(copied.folder(), &["simulate", "thousand.toml"]).done();
    let fixed = words.lines().find(|line| line.starts_with("fixed")).expect("a row");
    assert!(fixed.trim_end().ends_with("992/992"), "{words}");
}

/// Workers share equal tasks as `pleach plan` predicts. One that shares nothing repeats them.
#[test]
fn shared_tasks_take_as_long_as_the_plan_predicts() {
    let copied = Copied::new();
    copied.replace_tile("2048");
    let simulated = |reuse: &str| {
        let scope = format!("reuse = \"{reuse}\"");
        let edits = [
            ("reuse = \"tree\"", scope.as_str()),
            (
                "# As if it had so many tiles of 32768 by 32768 pixels.\ntiles = 8\ntile_pixels = 1073741824\n",
                "",
            ),
            ("variation = 0.2", "variation = 0"),
            ("nodes = 8\ncores = 2", "nodes = 4\ncores = 1"),
        ];
        copied.edit("burst.toml", &edits);
        policy(&copied.simulate("burst.toml", &[]), "base-alone").clone()
    };
    let predicted = |reuse: &str| {
        let options = ["--workers", "4", "--bandwidth", "1.25GB", "--reuse", reuse, "--json"];
        let said = pleach(copied.folder(), &[&["plan", "study.toml"], &options[..]].concat()).done();
        let document: Value = serde_json::from_str(&said).expect("JSON");
        let plan = &document["plans"][0];
        (number(plan, "predicted_makespan_seconds"), number(&plan["transfers"], "transfers"))
    };
    let (shared, (makespan, transfers)) = (simulated("dataflow"), predicted("dataflow"));
    let ratio = number(&shared, "makespan_seconds") / makespan;
    assert!((0.9..1.25).contains(&ratio), "{ratio}: {makespan} s, {shared}");
    assert!(transfers > 0.0 && number(&shared, "transfers") > 0.0, "{transfers}, {shared}");
    assert!((number(&shared, "reuse_kept") - 1.0).abs() < 1e-9, "{shared}");
    assert_eq!(number(&shared, "recomputed_tasks"), 0.0);
    let alone = simulated("tree");
    assert!(number(&alone, "makespan_seconds") > 1.1 * number(&shared, "makespan_seconds"), "{alone}");
    assert_eq!(number(&alone, "transfers"), 0.0);
}

#[test]
fn tasks_are_executed_again_beyond_slow_links() {
    let copied = Copied::new();
    let simulated = |bandwidth: &str| {
        let edits =
            [("reuse = \"tree\"", "reuse = \"dataflow\""), ("wide_bytes_per_second = 1.25e8", bandwidth)];
        copied.edit("burst.toml", &edits);
        policy(&copied.simulate("burst.toml", &[]), "fixed").clone()
    };
    let (fast, slow) = (simulated("wide_bytes_per_second = 1e12"), simulated("wide_bytes_per_second = 1e6"));
    // Some tasks are faster than the base cluster's own links.
    assert!(number(&slow, "recomputed_tasks") > 2.0 * number(&fast, "recomputed_tasks"), "{slow} {fast}");
    for field in ["transfers", "reuse_kept", "egress_cost"] {
        assert!(number(&slow, field) < number(&fast, field), "{field}: {slow} {fast}");
    }
}

#[test]
fn shared_results_of_reclaimed_workers_are_computed_again() {
    let copied = Copied::new();
    copied.edit(
        "spot.toml",
        &[
            ("reuse = \"tree\"", "reuse = \"dataflow\""),
            ("interruptions_per_hour = 4", "interruptions_per_hour = 30"),
            ("notice_seconds = 120", "notice_seconds = 0"),
            ("startup_seconds = 180", "startup_seconds = 60"),
        ],
    );
    let document = copied.simulate("spot.toml", &[]);
    let (base, fixed) = (policy(&document, "base-alone"), policy(&document, "fixed"));
    assert!(number(base, "reuse_kept") > 0.999, "{base}");
    assert!(number(fixed, "interruptions") > 0.0 && number(fixed, "reuse_kept") < 1.0, "{fixed}");
}

/// 16 cores on 8 processors take the time of 8 cores, and more with work beside the tasks.
#[test]
fn cores_of_one_machine_share_its_processors() {
    let simulated = |base: &str| {
        let copied = Copied::new();
        copied.edit(
            "burst.toml",
            &[("nodes = 8\ncores = 2", base), ("reuse = \"tree\"", "reuse = \"dataflow\"")],
        );
        number(policy(&copied.simulate("burst.toml", &[]), "base-alone"), "makespan_seconds")
    };
    let (few, all) = (simulated("nodes = 4\ncores = 2"), simulated("nodes = 8\ncores = 2"));
    let shared = simulated("nodes = 8\ncores = 2\nprocessors = 8\nmegapixel_work_ms = 0");
    assert!(all < 0.7 * few && (0.95..1.1).contains(&(shared / few)), "{all} {shared} {few}");
    // 107 s beside each task of a tile of 2^30 pixels.
    let beside = simulated("nodes = 8\ncores = 2\nprocessors = 8\nmegapixel_work_ms = 100");
    assert!(beside > 1.2 * shared, "{beside} {shared}");
}
