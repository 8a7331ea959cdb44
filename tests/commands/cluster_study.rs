//! `pleach cluster --study`: responses and indices against single calls, shared clusterings, and refused studies.

use crate::clustering::diamond;
use crate::data;
use crate::pleach::{answer, pleach};
use crate::tables::{Row, rows};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Parameters with an effect on the diamond, and `seed`, which has none with fixed delays and hrb.
const SCREENING: &str = r#"
[study]
name = "diamond"
seed = 3

[method]
kind = "moat"
trajectories = 4
levels = 4

[parameters.queue]
range = [0, 60]
[parameters.workers]
range = [1, 4]
[parameters.bandwidth]
values = [1000000, 2000000, 3000000, 4000000]
[parameters.jobs]
range = [1, 2]
[parameters.run-time-variance]
range = [0, 3]
[parameters.clustering]
range = [0, 30]
[parameters.seed]
range = [0, 3]
"#;

fn study(folder: &Path, text: &str) {
    diamond(folder);
    fs::write(folder.join("study.toml"), text).expect("written");
}

fn called(folder: &Path, args: &[&str]) -> String {
    pleach(folder, &[&["cluster", "diamond.dax", "--study", "study.toml"][..], args].concat()).done()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().expect("a number")
}

/// Returns the document of one execution with the parameters of a row as options.
fn single(folder: &Path, row: &Row, args: &[&str]) -> Value {
    let mut words: Vec<String> = ["cluster", "diamond.dax", "--json"].map(str::to_owned).to_vec();
    for (parameter, value) in row.iter().filter(|(name, _)| *name != "evaluation") {
        words.extend([format!("--{parameter}"), value.clone()]);
    }
    words.extend(args.iter().map(|word| (*word).to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    serde_json::from_str(&pleach(folder, &words).done()).expect("JSON")
}

/// Returns μ* of a parameter from the rows of trajectories: consecutive rows of one differ in one parameter.
fn mean_effect(samples: &[Row], responses: &[Row], parameter: &str, range: f64, steps: usize) -> f64 {
    let mut effects = Vec::new();
    for first in (0..samples.len()).step_by(steps + 1) {
        for row in first..first + steps {
            let step = number(&samples[row + 1], parameter) - number(&samples[row], parameter);
            if step != 0.0 {
                let change = number(&responses[row + 1], "makespan") - number(&responses[row], "makespan");
                effects.push((change / step * range).abs());
            }
        }
    }
    effects.iter().sum::<f64>() / effects.len() as f64
}

#[test]
fn responses_and_indices_are_those_of_single_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    study(folder, SCREENING);
    let text = called(folder, &["--results", "results"]);
    assert!(text.contains("moat, 32 evaluations of 7 varying parameters; seed 3\n"), "{text}");
    assert!(text.contains("results in results; open results/report.html\n"), "{text}");
    let samples = rows(&folder.join("results/samples.csv"));
    let responses = rows(&folder.join("results/responses.csv"));
    assert_eq!((samples.len(), responses.len()), (32, 32));
    for (sample, response) in samples.iter().zip(&responses) {
        let found = single(folder, sample, &["--method", "hrb"]);
        let record = &found["workflows"][0]["clusterings"][1];
        for (column, field) in [
            ("makespan", "makespan_seconds"),
            ("gain", "gain"),
            ("job-count", "jobs"),
            ("moved-bytes", "moved_bytes"),
        ] {
            assert_eq!(record[field].as_f64(), Some(number(response, column)), "{column} of {sample:?}");
        }
    }
    let indices = rows(&folder.join("results/indices.csv"));
    let of_makespan: Vec<&Row> = indices.iter().filter(|row| row["response"] == "makespan").collect();
    assert_eq!(of_makespan.len(), 7);
    let ranges = [
        ("queue", 60.0),
        ("workers", 3.0),
        ("bandwidth", 3e6),
        ("jobs", 1.0),
        ("run-time-variance", 3.0),
        ("clustering", 30.0),
        ("seed", 3.0),
    ];
    for (row, (parameter, range)) in of_makespan.iter().zip(ranges) {
        assert_eq!(row["parameter"], parameter);
        let expected = mean_effect(&samples, &responses, parameter, range, 7);
        let found = number(row, "mu_star");
        assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{parameter}: {found}, {expected}");
        // hrb joins no tasks of the diamond with two jobs, so the clustering delay may never count.
        if parameter != "clustering" {
            assert_eq!(found == 0.0, parameter == "seed", "{parameter}: {found}");
        }
    }
    let conclusion = text.lines().find(|line| line.starts_with("makespan: ")).expect("a conclusion");
    assert!(conclusion.starts_with("makespan: significant effects: queue"), "{text}");
    assert!(text.contains("clustering, seed\n\ngain: "), "{text}");
    let page = fs::read_to_string(folder.join("results/report.html")).expect("a page");
    for expected in ["diamond: 6 tasks on 4 levels", "<strong>queue</strong>", "Makespan over each parameter"]
    {
        assert!(page.contains(expected), "{expected}");
    }
}

/// A full grid of two queue delays, numbers of jobs and variances. The jobs depend on the latter two only, and executions without
/// clustering not on the number of jobs.
const GRID: &str = r#"
[method]
kind = "correlation"
sampler = "factorial"

[parameters.queue]
type = "real"
range = [0, 60]
[parameters.jobs]
type = "integer"
values = [1, 2]
[parameters.run-time-variance]
range = [0, 3]
"#;

#[test]
fn evaluations_share_clusterings_and_simulations() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    study(folder, GRID);
    let text = called(folder, &[]);
    let reuse = "hrb: 4 clusterings computed, 4 reused; 12 simulations computed, 4 reused\n";
    assert!(text.contains(reuse), "{text}");
    // Neither the run times nor the queue change the order of hc.
    let text = called(folder, &["--method", "hc"]);
    assert!(text.contains("hc: 2 clusterings computed, 6 reused; 12 simulations computed"), "{text}");
    let text = called(folder, &["--vertical", "only"]);
    assert!(text.contains("only: 1 clustering computed, 7 reused; 8 simulations computed, 8"), "{text}");
    let document: Value = serde_json::from_str(&called(folder, &["--json"])).expect("JSON");
    assert_eq!(document["reuse"]["clusterings_without_reuse"], 8);
    assert_eq!(document["reuse"]["simulations"], 12);
    assert_eq!(document["clustering"], "hrb");
    // The folder has the name of the study file, and `pleach analyze` reads it.
    let files = ["--samples", "study/samples.csv", "--responses", "study/responses.csv"];
    let words = ["analyze", "study.toml", "--out", "again", "--report", "page.html"];
    pleach(folder, &[&words[..], &files, &["--response", "makespan"]].concat()).done();
    let rows_of = |file: &str| {
        let rows = rows(&folder.join(file)).into_iter();
        rows.filter(|row| row["response"] == "makespan").collect::<Vec<_>>()
    };
    assert_eq!(rows_of("again/indices.csv"), rows_of("study/indices.csv"));
    let page = fs::read_to_string(folder.join("page.html")).expect("a page");
    let (_, body) = page.split_once("</head>").expect("a body");
    assert!(body.contains("Makespan over each parameter") && !body.contains(" tile"), "{body}");
}

#[test]
fn equal_studies_give_equal_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let drawn = GRID.replace("sampler = \"factorial\"", "samples = 40");
    study(
        folder,
        &format!("{drawn}[parameters.weibull]\nrange = [0.5, 2]\n[parameters.seed]\nrange = [0, 9]\n"),
    );
    let calls = [("one", "1"), ("several", "4")];
    for (results, threads) in calls {
        let words =
            ["cluster", "diamond.dax", "--study", "study.toml", "--method", "best", "--results", results];
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
        answer(command.current_dir(folder).args(words).env("RAYON_NUM_THREADS", threads)).done();
    }
    let names = |results: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(folder.join(results)).expect("results");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    let files = ["indices.csv", "indices.json", "report.html", "responses.csv", "samples.csv"];
    assert_eq!(names("one"), files.map(str::to_owned).into());
    for file in files {
        let content = |results: &str| fs::read(folder.join(results).join(file)).expect("a file");
        assert!(content("one") == content("several"), "{file}");
    }
    let responses = rows(&folder.join("one/responses.csv"));
    let makespans: BTreeSet<&str> = responses.iter().map(|row| row["makespan"].as_str()).collect();
    assert!(makespans.len() > 30, "each seed draws other delays: {makespans:?}");
}

#[test]
fn each_workflow_and_clustering_has_responses() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    study(folder, GRID);
    fs::copy(folder.join("diamond.dax"), folder.join("other.dax")).expect("copied");
    let words = ["cluster", "diamond.dax", "other.dax", "--study", "study.toml", "--max-seconds", "50"];
    let call = |args: &[&str]| pleach(folder, &[&words[..], &["--max-bytes", "1GB"], args].concat()).done();
    call(&["--method", "all", "--vertical", "prior", "--results", "all"]);
    call(&["--method", "best", "--vertical", "prior", "--results", "best"]);
    let (all, best) = (rows(&folder.join("all/responses.csv")), rows(&folder.join("best/responses.csv")));
    let methods = ["hc", "hrb", "hifb", "hdb", "dfjs", "afjs"];
    for (all, best) in all.iter().zip(&best) {
        assert_eq!(all.len(), 1 + 2 * (1 + 2 * methods.len()));
        for workflow in ["diamond", "other"] {
            let of = |method: &str| number(all, &format!("{workflow} {method}: makespan"));
            let each = methods.map(|method| of(&format!("{method}-prior")));
            let least = each.into_iter().fold(of("none"), f64::min);
            assert_eq!(number(best, &format!("{workflow}: makespan")), least);
            assert_eq!(number(best, &format!("{workflow}: gain")), 1.0 - least / of("none"));
        }
    }
}

/// On a trace of short tasks without clustering, the queue delay has the largest effect. The clustering delay, of jobs of two or
/// more tasks, and the seed have none.
#[test]
fn queue_delay_leads_on_montage() {
    let Some(data) = data::data("queue_delay_leads_on_montage") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[method]\nkind = \"moat\"\ntrajectories = 4\n\
                [parameters.queue]\nrange = [0, 120]\n[parameters.bandwidth]\nrange = [5e6, 50e6]\n\
                [parameters.engine]\nrange = [0, 20]\n[parameters.clustering]\nrange = [0, 60]\n\
                [parameters.seed]\nrange = [0, 99]\n";
    fs::write(folder.path().join("study.toml"), text).expect("written");
    let trace = data.join("workflows/dax/Montage_300.xml.gz");
    let trace = trace.to_str().expect("UTF-8");
    let words = ["cluster", trace, "--study", "study.toml", "--method", "none", "--json"];
    let document: Value = serde_json::from_str(&pleach(folder.path(), &words).done()).expect("JSON");
    let found = document["responses"][0]["indices"]["parameters"].as_array().expect("parameters");
    let effect = |name: &str| {
        let named = found.iter().find(|parameter| parameter["name"] == name).expect("the parameter");
        named["mu_star"].as_f64().expect("a number")
    };
    let others = ["bandwidth", "engine"].map(effect);
    assert!(others.into_iter().all(|other| other > 0.0 && effect("queue") > 2.0 * other), "{found:?}");
    assert_eq!([effect("clustering"), effect("seed")], [0.0, 0.0]);
    assert_eq!(document["reuse"]["clusterings"], 0);
}

#[test]
fn impossible_studies_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    diamond(folder);
    let parameters = "queue, engine, clustering, post, weibull, bandwidth, workers, jobs, max-seconds, max-bytes, scale-data, \
                      scale-time, run-time-variance, seed";
    let moat = "[method]\nkind = \"moat\"\n";
    for (text, args, message) in [
        (
            "[parameters.queues]\nrange = [0, 1]",
            "",
            format!("parameters.queues: unknown; known are {parameters}"),
        ),
        (
            "[parameters.workers]\nrange = [0, 4]",
            "",
            "parameters.workers.range: 0 is not allowed; allowed: an integer from 1 to 1000000".to_owned(),
        ),
        (
            "[parameters.queue]\nrange = [-5, 4]",
            "",
            "parameters.queue.range: -5 is not allowed; allowed: a number from 0 to 1000000000".to_owned(),
        ),
        (
            "[parameters.bandwidth]\nrange = [\"1MB\", \"2MB\"]",
            "",
            "parameters.bandwidth.range: the text \"1MB\" has the wrong type; allowed: a list of numbers"
                .to_owned(),
        ),
        (
            "[parameters.workers]\ndistribution = \"normal\"\nmean = 20\nstd = 2",
            "",
            "parameters.workers.distribution: ".to_owned(),
        ),
        (
            "[parameters.queue]\ndistribution = \"normal\"\nmean = 1\nstd = 9\n[method]\nkind = \"pawn\"\nsamples = 40",
            "",
            "parameters.queue: evaluation ".to_owned(),
        ),
        (
            "[input]\ntiles = [\"*.png\"]",
            "",
            "input: unknown; known are study, method, parameters".to_owned(),
        ),
        ("[study]\nworkflow = \"nuclei\"", "", "study.workflow: unknown; known are name, seed".to_owned()),
        (
            "[parameters.max-seconds]\nrange = [1, 9]",
            "",
            "parameters.max-seconds: --method has no such limit; dfjs, afjs, all and best are allowed"
                .to_owned(),
        ),
        (
            "[parameters.max-seconds]\nrange = [1, 9]",
            "--method afjs",
            "parameters.max-seconds: --method afjs has two limits; max-bytes is needed too".to_owned(),
        ),
        (
            "[parameters.jobs]\nrange = [1, 9]",
            "--size 3",
            "parameters.jobs: --size takes its place; jobs, or --size, is allowed".to_owned(),
        ),
        ("[parameters.queue]\nfixed = 3", "", String::new()),
    ] {
        let method = if text.contains("[method]") { "" } else { moat };
        fs::write(folder.join("study.toml"), format!("{method}{text}\n")).expect("written");
        let words = ["cluster", "diamond.dax", "--study", "study.toml"].into_iter();
        let words: Vec<&str> = words.chain(args.split_whitespace()).collect();
        let answer = pleach(folder, &words);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{text}: {answer:?}");
        assert!(answer.stderr.starts_with(&format!("error: study.toml: {message}")), "{}", answer.stderr);
        assert!(answer.stderr.lines().count() == 1 && !folder.join("study").exists(), "{answer:?}");
    }
    fs::write(folder.join("study.toml"), format!("{moat}[parameters.queue]\nrange = [0, 1]\n"))
        .expect("written");
    for (args, message) in [
        ("--out jobs.json", "the argument '--study <STUDY>' cannot be used with '--out <FILE>'"),
        ("--results diamond.dax", "--results diamond.dax: cannot be created"),
        (
            "--run-time-variance 11",
            "invalid value '11' for '--run-time-variance <N>': a number from 0 to 10 is allowed",
        ),
    ] {
        let words = ["cluster", "diamond.dax", "--study", "study.toml"].into_iter();
        let words: Vec<&str> = words.chain(args.split_whitespace()).collect();
        let answer = pleach(folder, &words);
        assert_eq!(answer.code, 2, "{args}: {answer:?}");
        assert!(answer.stderr.contains(message), "{}", answer.stderr);
    }
    let alone = pleach(folder, &["cluster", "diamond.dax", "--results", "x"]);
    assert_eq!(alone.code, 2, "{alone:?}");
}
