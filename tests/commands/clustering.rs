//! `pleach cluster`: tables, documents, written jobs and figures of workflows, generated workflows, and refused input.

mod choices;
mod options;

use crate::data;
use crate::pleach::pleach;
use pleach_clustering::simulate::{Delay, Overheads, Platform, simulate};
use pleach_clustering::{
    Clustering, Method, Options, ReadOptions, Reading, Vertical, Workflow, cluster, metrics, read,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;

/// A diamond with two chains: `start` → (`a1` → `a2`, `b1` → `b2`) → `end`. Each task writes a file of 15 MB.
pub(crate) fn diamond(folder: &Path) {
    let tasks = [
        ("start", 10.0, &["input"][..]),
        ("a1", 20.0, &["start"]),
        ("a2", 40.0, &["a1"]),
        ("b1", 30.0, &["start"]),
        ("b2", 10.0, &["b1"]),
        ("end", 5.0, &["a2", "b2"]),
    ];
    let mut dax = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<adag name=\"diamond\">\n");
    for (id, seconds, reads) in tasks {
        dax.push_str(&format!("  <job id=\"{id}\" name=\"run\" runtime=\"{seconds}\">\n"));
        let uses = reads.iter().map(|file| (*file, "input")).chain([(id, "output")]);
        for (file, link) in uses {
            dax.push_str(&format!("    <uses file=\"{file}\" link=\"{link}\" size=\"15000000\"/>\n"));
        }
        dax.push_str("  </job>\n");
    }
    for (id, .., reads) in tasks.iter().skip(1) {
        dax.push_str(&format!("  <child ref=\"{id}\">\n"));
        reads.iter().for_each(|parent| dax.push_str(&format!("    <parent ref=\"{parent}\"/>\n")));
        dax.push_str("  </child>\n");
    }
    dax.push_str("</adag>\n");
    fs::write(folder.join("diamond.dax"), dax).expect("written");
}

/// Two workers that get 15 MB/s behind a queue of 10 s.
const PLATFORM: [&str; 4] = ["--workers", "2", "--queue", "10"];

fn called(folder: &Path, args: &[&str]) -> String {
    pleach(folder, &[&["cluster"][..], args, &PLATFORM].concat()).done()
}

fn document(folder: &Path, args: &[&str]) -> Value {
    let text = called(folder, &[args, &["--json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the words of the only line that starts with these.
#[track_caller]
fn line(text: &str, start: &[&str]) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let found: Vec<Vec<String>> = text
        .lines()
        .map(words)
        .filter(|line| line.starts_with(&start.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()))
        .collect();
    assert_eq!(found.len(), 1, "{start:?} in\n{text}");
    found.into_iter().next().unwrap_or_default()
}

/// The makespans follow from the model by hand. Without clustering: `start` ends at 10 + 1 + 10 = 21 s, `a1` at 51 s, `b1` on the
/// other worker at 21 + 10 + 1 + 30 = 62 s, `a2` at 101 s, and `end` at 101 + 10 + 1 + 5 = 117 s. With joined chains: `a1` and `a2`
/// end at 21 + 10 + 1 + 60 = 92 s, and `end` at 108 s.
#[test]
fn tables_show_levels_and_gains() {
    let folder = tempfile::tempdir().expect("a folder");
    diamond(folder.path());
    let text = called(folder.path(), &["diamond.dax", "--vertical", "only"]);
    assert!(text.starts_with("2 workers, 15.0 MB/s; delays: queue 10 s, clustering 1 s\n\n"), "{text}");
    assert!(text.contains("diamond: 6 tasks on 4 levels, 6 dependencies, 115.0 s of run time\n"), "{text}");
    assert!(text.contains("imbalance of levels: tasks, and jobs of vertical clustering only\n"), "{text}");
    assert_eq!(line(&text, &["2", "2"])[2..], ["0.283", "0", "0", "0.283", "2", "0.283", "0", "0", "0.283"]);
    assert_eq!(line(&text, &["3", "2"])[2..], ["0.849", "0", "0", "0.849", "1", "0", "0", "0", "0"]);
    assert_eq!(line(&text, &["4", "1"])[2..], ["0", "0", "0", "0", "-", "-", "-", "-", "-"]);
    assert_eq!(line(&text, &["none", "none"])[2..], ["6", "117.0", "0.0", "%", "1.000", "45.0", "MB"]);
    assert_eq!(line(&text, &["none", "only"])[2..], ["4", "108.0", "7.7", "%", "1.083", "45.0", "MB"]);
}

#[test]
fn documents_have_the_numbers_of_the_library() {
    let folder = tempfile::tempdir().expect("a folder");
    diamond(folder.path());
    let workflow = read(&folder.path().join("diamond.dax"), ReadOptions::default()).expect("a workflow");
    let two = NonZeroUsize::new(2).expect("2");
    let overheads = Overheads { queue: Delay::Fixed(10.0), clustering: Delay::Fixed(1.0), ..Overheads::NONE };
    let platform = Platform::new(two, 15e6, overheads).expect("a platform");
    let options = Options { method: Method::Hrb, vertical: Vertical::Prior, ..Options::default() };
    let expected = |clustering: &Clustering, record: &Value, workflow: &Workflow| {
        let execution = simulate(workflow, clustering, &platform, 0);
        assert_eq!(record["jobs"], clustering.jobs().len());
        assert_eq!(record["makespan_seconds"], execution.makespan);
        assert_eq!(record["moved_bytes"], execution.moved_bytes);
        assert_eq!(record["phases"]["run_seconds"], execution.phases.run);
    };
    let found = document(folder.path(), &["diamond.dax", "--method", "hrb", "--vertical", "prior"]);
    let found = &found["workflows"][0];
    assert_eq!(found["workflow"], "diamond");
    assert_eq!(found["file"], "diamond.dax");
    expected(&Clustering::single(&workflow), &found["clusterings"][0], &workflow);
    let clustering = cluster(&workflow, &options);
    expected(&clustering, &found["clusterings"][1], &workflow);
    let gain = found["clusterings"][1]["gain"].as_f64().expect("a number");
    assert!((gain - (1.0 - 108.0 / 117.0)).abs() < 1e-12, "{gain}");
    let jobs = clustering.workflow(&workflow).expect("jobs");
    for (levels, workflow) in [("levels_before", &workflow), ("levels_after", &jobs)] {
        let levels = found[levels].as_array().expect("levels");
        let metrics = metrics(workflow, Reading::Definition);
        assert_eq!(levels.len(), metrics.len());
        for (level, expected) in levels.iter().zip(metrics) {
            assert_eq!(level["level"], expected.level);
            assert_eq!(level["tasks"], expected.tasks);
            assert_eq!(level["hrv"], expected.variance.hrv);
            assert_eq!(level["hdv"], expected.variance.hdv);
            assert_eq!(level["normalized"]["prv"], expected.normalized.prv);
        }
    }
    let table = document(folder.path(), &["diamond.dax", "--reading", "table", "--weibull", "2"]);
    let hrv = metrics(&workflow, Reading::Table)[1].variance.hrv;
    assert_eq!(table["reading"], "table");
    assert_eq!(table["workflows"][0]["levels_before"][1]["hrv"], hrv);
    assert_eq!(table["platform"]["queue"]["weibull_shape"], 2.0);
}

#[test]
fn methods_are_compared_and_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    diamond(folder.path());
    fs::copy(folder.path().join("diamond.dax"), folder.path().join("again.dax")).expect("copied");
    let text = called(folder.path(), &["diamond.dax", "again.dax", "--method", "all", "--jobs", "1"]);
    for method in ["hc", "hrb", "hifb", "hdb"] {
        assert!(text.contains(&format!("\n{method} ")), "{method} in\n{text}");
    }
    assert!(text.contains("dfjs: at most ") && text.contains(" s a job, tuned by "), "{text}");
    let (_, gains) = text.split_once("gain by workflow").expect("a table of gains");
    // Both files call their workflow `diamond`: its name is that of the file.
    assert_eq!(line(gains, &["method"])[2..], ["diamond", "again"]);
    assert_eq!(line(gains, &["none", "only"])[2..], ["7.7", "%", "7.7", "%"]);
    let best = document(folder.path(), &["diamond.dax", "--method", "best"]);
    let best = &best["workflows"][0];
    let makespans: Vec<f64> = best["clusterings"]
        .as_array()
        .expect("clusterings")
        .iter()
        .map(|one| one["makespan_seconds"].as_f64().expect("a number"))
        .collect();
    let shown = best["shown"].as_u64().expect("a position") as usize;
    assert!(makespans.iter().all(|makespan| *makespan >= makespans[shown]), "{makespans:?}");
    let rule = best["rule"]["clustering"].as_u64().expect("a position") as usize;
    let regret = best["rule"]["regret"].as_f64().expect("a number");
    assert!((regret - (makespans[rule] - makespans[shown]) / makespans[0]).abs() < 1e-12, "{best}");
    assert!(
        best["rule"]["reason"].as_str().is_some_and(|reason| reason.starts_with("2 chains of tasks: ")),
        "{best}"
    );
}

/// Without a clustering delay, the jobs as a workflow take the time of the jobs.
#[test]
fn written_jobs_are_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    diamond(folder.path());
    let makespan = |args: &[&str]| {
        let document = document(folder.path(), &[args, &["--clustering", "0"]].concat());
        let clusterings = document["workflows"][0]["clusterings"].as_array().expect("clusterings").clone();
        clusterings.last().expect("a clustering")["makespan_seconds"].as_f64().expect("a number")
    };
    let expected = makespan(&["diamond.dax", "--vertical", "only", "--out", "jobs.dax.gz"]);
    assert_eq!(expected, 107.0);
    let mut packed =
        flate2::read::GzDecoder::new(fs::File::open(folder.path().join("jobs.dax.gz")).expect("a file"));
    let mut text = String::new();
    packed.read_to_string(&mut text).expect("gzip");
    assert!(text.starts_with("<?xml"), "{text}");
    assert_eq!(makespan(&["jobs.dax.gz", "--method", "none"]), expected);
    makespan(&["diamond.dax", "--vertical", "only", "--out", "jobs.json", "--format", "wfformat"]);
    assert_eq!(makespan(&["jobs.json", "--method", "none"]), expected);
    called(folder.path(), &["diamond.dax", "--vertical", "only", "--out", "list.json"]);
    let list = fs::read(folder.path().join("list.json")).expect("a file");
    let list: Value = serde_json::from_slice(&list).expect("JSON");
    let tasks: BTreeSet<String> =
        list["jobs"].as_array().expect("jobs").iter().map(|job| job["tasks"].to_string()).collect();
    let expected = [r#"["start"]"#, r#"["a1","a2"]"#, r#"["b1","b2"]"#, r#"["end"]"#].map(str::to_owned);
    assert_eq!(tasks, BTreeSet::from(expected));
    assert_eq!(list["workflow"], "diamond");
}

#[test]
fn figures_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    diamond(folder.path());
    called(folder.path(), &["diamond.dax", "--vertical", "prior", "--plot", "figures"]);
    for (name, words) in [
        ("gains", "hrb, vertical prior"),
        ("imbalance", "2: 2 → 2"),
        ("timeline", "4 jobs in "),
        ("graph", "a2 run, job "),
    ] {
        let svg = fs::read_to_string(folder.path().join(format!("figures/{name}.svg"))).expect("a figure");
        let drawing = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(drawing.root_element().tag_name().name(), "svg");
        assert!(svg.contains(words), "{name}: {words}\n{svg}");
    }
    assert_eq!(fs::read_dir(folder.path().join("figures")).expect("a folder").count(), 4);
}

#[test]
fn equal_seeds_generate_equal_workflows() {
    let folder = tempfile::tempdir().expect("a folder");
    let generate = |seed: &str, out: &str| {
        let args = ["cluster", "generate", "montage", "--tasks", "50", "--seed", seed, "--out", out];
        let text = pleach(folder.path(), &args).done();
        assert!(text.starts_with(&format!("{out}: workflow montage-")), "{text}");
        assert!(text.ends_with(&format!(" levels, seed {seed}\n")), "{text}");
        fs::read(folder.path().join(out)).expect("a file")
    };
    let first = generate("1", "a.dax.gz");
    assert_eq!(first, generate("1", "b.dax.gz"));
    assert_ne!(first, generate("2", "c.dax.gz"));
    let workflow = read(&folder.path().join("a.dax.gz"), ReadOptions::default()).expect("a workflow");
    assert!(workflow.tasks().len().abs_diff(50) <= 5, "{}", workflow.tasks().len());
}

/// Content of a file, further arguments, and the message.
#[test]
fn wrong_input_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    diamond(folder.path());
    let job = |id: &str, seconds: &str| format!("<job id=\"{id}\" name=\"run\" runtime=\"{seconds}\">\n");
    let cycle = format!(
        "<adag>\n{}</job>\n{}</job>\n<child ref=\"b\"><parent ref=\"a\"/></child>\n<child ref=\"a\"><parent ref=\"b\"/></child>\n</adag>",
        job("a", "1"),
        job("b", "1")
    );
    let negative = format!("<adag>\n{}</job>\n</adag>", job("a", "-1"));
    let size = format!("<adag>\n{}<uses file=\"f\" link=\"input\"/>\n</job>\n</adag>", job("a", "1"));
    let through_files = "FILE f 1\nTASK a k 1\nTASK b k 1\nOUTPUTS a f\nINPUTS b f\nEDGE b a\n";
    let unit = r#"{"schemaVersion":"1.5","workflow":{"specification":{"tasks":[{"id":"a"}],"files":[{"id":"f","size":1}]},"execution":{"tasks":[{"id":"a","runtimeInSeconds":1}]}}}"#;
    for (name, content) in [
        ("cycle.dax", cycle.as_bytes()),
        ("bomb.dax", b"<!DOCTYPE a [<!ENTITY b \"c\"><!ENTITY d \"&b;&b;\">]>\n<adag name=\"&d;\"/>"),
        ("nan.dag", b"TASK a k NaN\n"),
        ("files.dag", through_files.as_bytes()),
        ("unit.json", unit.as_bytes()),
        ("negative.dax", negative.as_bytes()),
        ("size.dax", size.as_bytes()),
        ("garbage.gz", b"\x1f\x8bgarbage in place of gzip"),
        ("other.json", b"{\"a\": 1}"),
    ] {
        fs::write(folder.path().join(name), content).expect("written");
    }
    for (args, message) in [
        (
            &["cycle.dax"][..],
            r#"cycle.dax: tasks depend on themselves: "a" → "b" → "a"; dependencies without a cycle are allowed"#,
        ),
        (
            &["negative.dax"],
            r#"negative.dax:2: task "a": runtime "-1"; a finite number of seconds of 0 or more is allowed, without a unit"#,
        ),
        (
            &["size.dax"],
            r#"size.dax:3: file "f": size is missing; a whole number of bytes of 0 or more is allowed, without a unit"#,
        ),
        (
            &["bomb.dax"],
            "bomb.dax:1: document type declaration; XML without a document type declaration is allowed",
        ),
        (
            &["nan.dag"],
            r#"nan.dag:1: task "a": run time "NaN"; a finite number of seconds of 0 or more is allowed, without a unit"#,
        ),
        (
            &["files.dag"],
            r#"files.dag: tasks depend on themselves through files: "a" → "b" → "a"; dependencies without a cycle are allowed"#,
        ),
        (&["unit.json"], r#"unit.json: file "f": size has no unit; sizeInBytes is allowed"#),
        (&["garbage.gz"], "garbage.gz: failed to read: invalid gzip header"),
        (&["other.json"], r#"other.json: schemaVersion "missing"; WfFormat 1.5 is allowed"#),
        (
            &["diamond.dax", "--method", "xyz"],
            "invalid value 'xyz' for '--method <METHOD>'; [possible values: none, hc, hrb, hifb, hdb, dfjs, afjs, all, best]",
        ),
        (
            &["diamond.dax", "--queue", "-1"],
            "invalid value '-1' for '--queue <SECONDS>': a number of seconds from 0 to 1000000000 is allowed",
        ),
        (
            &["diamond.dax", "--sensitivity", "jobs=1,2"],
            "invalid value 'jobs=1,2' for '--sensitivity <NAME=VALUES>': workers=N,…, bandwidth=SIZE,…, queue=SECONDS,… and \
             data=FACTOR,… are allowed",
        ),
        (
            &["diamond.dax", "--sensitivity", "workers=1,0"],
            "invalid value 'workers=1,0' for '--sensitivity <NAME=VALUES>': 1–100 numbers of 1 or more with commas are allowed",
        ),
        (
            &["diamond.dax", "--portfolio", "--estimates", "0.5"],
            "invalid value '0.5' for '--estimates <KIND,TASK>': two numbers from 0 to 10 with a comma are allowed",
        ),
        (
            &["diamond.dax", "--portfolio", "--vertical", "posterior"],
            "--portfolio: chooses for levels; --vertical none, prior and prior-bounded are allowed",
        ),
        (
            &["diamond.dax", "--max-seconds", "5"],
            "--max-seconds: --method hrb has no limits; dfjs, afjs, all and best are allowed",
        ),
        (
            &["diamond.dax", "--method", "all", "--out", "jobs.json"],
            "--out jobs.json: --method all has several clusterings; one method, or best, is allowed",
        ),
        (
            &["diamond.dax", "size.dax", "--out", "jobs.json"],
            "--out jobs.json: 2 workflows; one FILE is allowed",
        ),
        (
            &["diamond.dax", "--out", "jobs.txt"],
            "--out jobs.txt: unknown ending; .json, .dax, .xml and .dag are allowed, each also with .gz, or any with --format",
        ),
        (
            &["generate", "galaxy", "--tasks", "50", "--out", "w.dax"],
            "invalid value 'galaxy' for '<FAMILY>': family \"galaxy\": unknown; montage, cybershake, epigenomics, ligo and sipht \
             are allowed",
        ),
    ] {
        let answer = pleach(folder.path(), &[&["cluster"][..], args].concat());
        let expected = (2, String::new(), format!("error: {message}\n"));
        assert_eq!((answer.code, answer.stdout, answer.stderr), expected, "{args:?}");
    }
    let zero = pleach(folder.path(), &["cluster", "size.dax", "--assume-zero"]).done();
    assert!(zero.contains("size: 1 task on 1 level, 0 dependencies, 1.000 s of run time\n"), "{zero}");
}

/// The prototype's gains of Montage_300 within 0.01, by the program's defaults.
#[test]
fn balanced_run_times_gain_on_a_trace() {
    let Some(data) = data::data("balanced_run_times_gain_on_a_trace") else { return };
    let trace = data.join("workflows/dax/Montage_300.xml.gz");
    let text = pleach(&data, &["cluster", trace.to_str().expect("UTF-8"), "--json"]).done();
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let workflow = &document["workflows"][0];
    assert_eq!(workflow["tasks"], 300);
    assert_eq!(workflow["dependencies"], 732);
    let gain = workflow["clusterings"][1]["gain"].as_f64().expect("a number");
    assert!((gain - 0.467).abs() < 0.01, "{gain}");
    let widths: Vec<u64> = workflow["levels_before"]
        .as_array()
        .expect("levels")
        .iter()
        .filter_map(|level| level["tasks"].as_u64())
        .collect();
    assert_eq!(widths.iter().sum::<u64>(), 300);
    assert_eq!(widths.len(), 9);
}
