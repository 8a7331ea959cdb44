//! Growing samples until the intervals are narrow enough: results equal those of a sample with the final size from the
//! start.

use crate::interrupted::{end, start, wait_for};
use crate::pleach::pleach;
use crate::results::{json, text};
use crate::runs::{number, responses, run};
use crate::study::Study;
use crate::tables::rows;
use serde_json::Value;
use std::fs;

const MOAT: &str = "kind = \"moat\"\ntrajectories = 2\nlevels = 20\n";
const METRIC: &str = "metric = \"dice\"\n";

/// Fixed parameters, at their defaults.
const HELD: [(&str, &str); 10] = [
    ("B", "220"),
    ("G", "220"),
    ("R", "220"),
    ("T1", "5"),
    ("FillHoles", "4"),
    ("Watershed", "8"),
    ("maxSizeSeg", "1000"),
    ("minSizePl", "20"),
    ("minSizeSeg", "20"),
    ("maxSize", "1000"),
];
const VARIED: usize = 5;

/// A study with this method and few varying parameters.
fn study_of(study: &Study, method: &str) {
    let held = HELD.map(|(name, value)| format!("[parameters.{name}]\nfixed = {value}\n")).concat();
    study.edit(&[(MOAT, method), (METRIC, &format!("{METRIC}{held}"))]);
}

/// Twice the largest half-width of these columns of `indices.csv`. Returns `None` if a value is missing.
fn widest(study: &Study, out: &str, columns: &[&str]) -> Option<f64> {
    let table = rows(&study.path(out).join("indices.csv"));
    let halves: Option<Vec<f64>> =
        table.iter().flat_map(|row| columns.iter().map(|column| row[*column].parse().ok())).collect();
    halves.map(|halves| 2.0 * halves.into_iter().fold(0.0, f64::max))
}

/// A method with an extensible sample.
struct Case {
    name: &'static str,
    /// The method section without its size.
    fields: &'static str,
    size: &'static str,
    first: usize,
    /// Evaluations per trajectory, base sample or point.
    rows: usize,
    intervals: &'static [&'static str],
}

const CASES: [Case; 5] = [
    Case {
        name: "vbd",
        fields: "kind = \"vbd\"\n",
        size: "samples",
        first: 6,
        rows: VARIED + 2,
        intervals: &["first_conf", "total_conf"],
    },
    Case {
        name: "vbd-halton",
        fields: "kind = \"vbd\"\nbase = \"halton\"\nsecond_order = true\n",
        size: "samples",
        first: 4,
        rows: 2 * VARIED + 2,
        intervals: &["first_conf", "total_conf"],
    },
    Case {
        name: "moat",
        fields: "kind = \"moat\"\n",
        size: "trajectories",
        first: 3,
        rows: VARIED + 1,
        intervals: &["mu_star_conf"],
    },
    Case {
        name: "moat-sobol",
        fields: "kind = \"moat\"\nbase = \"sobol\"\n",
        size: "trajectories",
        first: 4,
        rows: VARIED + 1,
        intervals: &["mu_star_conf"],
    },
    Case {
        name: "correlation",
        fields: "kind = \"correlation\"\nsampler = \"mc\"\n",
        size: "samples",
        first: 12,
        rows: 1,
        intervals: &["pearson_conf", "spearman_conf", "pcc_conf", "prcc_conf"],
    },
];

#[test]
fn grown_sample_equals_a_sample_of_that_size() {
    let study = Study::of_tissue(96);
    for Case { name, fields, size, first, rows: of_one, intervals } in CASES {
        let method = |samples: usize, until: &str| format!("{fields}{size} = {samples}\n{until}");
        // Fixed samples of each size that the growing sample reaches.
        let mut widths = Vec::new();
        for times in 1..=3 {
            study_of(&study, &method(first * times, ""));
            let out = format!("{name}-{times}");
            run(&study, &out, &[]);
            widths.push(widest(&study, &out, intervals));
            assert_eq!(rows(&study.path(&out).join("samples.csv")).len(), first * times * of_one);
        }
        for shorter in [1, 2] {
            let samples = |times: usize| text(&study.path(&format!("{name}-{times}/samples.csv")));
            assert!(samples(3).starts_with(&samples(shorter)), "{name}: the first samples of more are these");
        }

        // The rule is never met, and one evaluation is missing for a fourth round.
        let most = 4 * first * of_one - 1;
        study_of(
            &study,
            &method(first, &format!("until = {{ ci_width = 1e-9, max_evaluations = {most} }}\n")),
        );
        let out = format!("{name}-grown");
        let record = run(&study, &out, &["--workers", "1"]);
        for file in ["samples.csv", "responses.csv", "failed.csv", "indices.csv"] {
            let whole = text(&study.path(&format!("{name}-3")).join(file));
            assert_eq!(text(&study.path(&out).join(file)), whole, "{name}: {file}");
        }
        let mut indices = json(&study.path(&out).join("indices.json"));
        let convergence =
            indices.as_object_mut().expect("an object").remove("convergence").expect("a record");
        assert_eq!(indices, json(&study.path(&format!("{name}-3/indices.json"))));
        assert_eq!(convergence, record["convergence"]);
        assert_eq!(convergence["converged"], false);
        let rounds = convergence["rounds"].as_array().expect("rounds");
        assert_eq!(rounds.len(), 3, "{convergence}");
        for (times, (round, width)) in (1..).zip(rounds.iter().zip(&widths)) {
            assert_eq!(number(round, "/evaluations"), (times * first * of_one) as u64);
            match (round["max_ci_width"].as_f64(), width) {
                (Some(found), Some(width)) => {
                    assert!((found - width).abs() < 1e-12, "{name}: {found}, {width}")
                }
                (found, width) => assert_eq!(found, *width, "{name}"),
            }
        }
        assert!(number(&record, "/tasks_reused/earlier") > 0, "{name}: {record}");
        let page = text(&study.path(&out).join("report.html"));
        assert!(page.contains("Sample growth") && page.contains("has not converged"), "{name}");

        // The sample stops growing when the rule is met.
        let Some(second) = widths[1] else { panic!("{name}: an interval is not known") };
        let until = format!("until = {{ ci_width = {second}, max_evaluations = 1000 }}\n");
        study_of(&study, &method(first, &until));
        let out = format!("{name}-narrow");
        let printed = pleach(study.folder(), &["run", "study.toml", "--out", &out]).done();
        let rounds = if widths[0].is_some_and(|width| width <= second) { 1 } else { 2 };
        assert_eq!(responses(&study, &out), responses(&study, &format!("{name}-{rounds}")), "{name}");
        assert!(printed.contains("converged for") && !printed.contains("not narrow"), "{printed}");
        assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    }
}

#[test]
fn killed_growing_study_resumes_with_the_same_results() {
    let study = Study::of_tissue(128);
    let method = "kind = \"vbd\"\nsamples = 5\nuntil = { ci_width = 1e-9, max_evaluations = 140 }\n";
    study_of(&study, method);
    run(&study, "whole", &["--workers", "1"]);
    let outputs = |out: &str| {
        ["samples.csv", "responses.csv", "failed.csv", "indices.csv", "indices.json"]
            .map(|file| text(&study.path(out).join(file)))
    };
    // 140 evaluations on two tiles, with about 100 bytes each: interrupts in the first round, in middle rounds and in the
    // last one.
    for (bytes, signal) in [(2_000, "KILL"), (9_000, "INT"), (14_000, "KILL"), (22_000, "KILL")] {
        let mut child = start(&study, "out");
        assert_eq!(wait_for(&study, &mut child, "out/journal", bytes), None, "it ended before {bytes} bytes");
        let (code, said) = end(child, signal);
        assert!(signal == "KILL" || code == Some(5), "{said}");
        let record = run(&study, "out", &["--resume", "--workers", "1"]);
        assert_eq!(outputs("out"), outputs("whole"), "{signal} at {bytes} bytes");
        assert_eq!(record["convergence"], json(&study.path("whole/run.json"))["convergence"]);
        assert!(!study.path("out/journal").exists());
        fs::remove_dir_all(study.path("out")).expect("removed");
    }
}

#[test]
fn a_phase_may_grow() {
    let study = Study::of_tissue(96);
    let phases = "[[phase]]\nkind = \"moat\"\ntrajectories = 2\nuntil = { ci_width = 1e-9, max_evaluations = 100 }\n\
                  survivors = { most_influential = 3 }\n[[phase]]\nkind = \"vbd\"\nsamples = 4\n\
                  until = { ci_width = 1e-9, max_evaluations = 45, metric = \"nuclei\" }\n";
    study.edit(&[(&format!("[method]\n{MOAT}"), phases), (METRIC, "metric = [\"dice\", \"nuclei\"]\n")]);
    let record = run(&study, "out", &[]);
    let evaluations = |phase: usize| number(&record, &format!("/phases/{phase}/evaluations"));
    assert_eq!((evaluations(0), evaluations(1)), (96, 40));
    assert_eq!(record["phases"][1]["convergence"]["response"], "nuclei");
    let plan = pleach(study.folder(), &["plan", "study.toml", "--json"]).done();
    let plan: Value = serde_json::from_str(&plan).expect("a JSON document");
    assert_eq!(plan["parts"][0]["evaluations"], serde_json::json!({ "least": 32, "most": 96 }));
}

#[test]
fn samples_that_cannot_grow_are_refused() {
    let study = Study::of_tissue(64);
    let until = "until = { ci_width = 0.1, max_evaluations = 1000 }\n";
    let with = |fields: &str| format!("kind = \"vbd\"\nsamples = 4\nuntil = {{ {fields} }}\n");
    for (method, words) in [
        (
            with("ci_width = 0, max_evaluations = 100"),
            "method.until.ci_width: 0 is not allowed; allowed: a number above 0",
        ),
        (with("ci_width = -0.5, max_evaluations = 100"), "method.until.ci_width: -0.5 is not allowed"),
        (
            with("ci_width = \"0.1\", max_evaluations = 100"),
            "method.until.ci_width: the text \"0.1\" has the wrong type; allowed: a number",
        ),
        (with("max_evaluations = 100"), "method.until.ci_width: missing; a number is needed"),
        (with("ci_width = 0.1"), "method.until.max_evaluations: missing; a whole number is needed"),
        (
            with("ci_width = 0.1, max_evaluations = 27"),
            "method.until.max_evaluations: 27 is not allowed; allowed: 28 or more, the evaluations that the sample begins with",
        ),
        (
            with("ci_width = 0.1, max_evaluations = 100, width = 1"),
            "method.until.width: unknown; known are ci_width, max_evaluations, metric",
        ),
        (
            with("ci_width = 0.1, max_evaluations = 100, metric = \"nuclei\""),
            "method.until.metric: \"nuclei\" is not allowed; allowed: a metric of [response]: \"dice\"",
        ),
        (
            "kind = \"vbd\"\nsamples = 4\nuntil = 3\n".to_owned(),
            "method.until: 3 has the wrong type; allowed: a section",
        ),
        (
            format!("kind = \"vbd\"\nsamples = 4\nbase = \"lhs\"\n{until}"),
            "method.until: a sample of \"lhs\" cannot be extended: its strata depend on the number of points; \
             \"sobol\", \"halton\" and \"mc\" can",
        ),
        (
            format!("kind = \"correlation\"\nsamples = 40\n{until}"),
            "method.until: a sample of \"lhs\" cannot be extended",
        ),
        (
            format!("kind = \"moat\"\nbase = \"hammersley\"\n{until}"),
            "method.until: a sample of \"hammersley\" cannot be extended: its first coordinates divide the range",
        ),
        (
            format!("kind = \"moat\"\ntrajectories = 4\ncandidates = 20\n{until}"),
            "method.until: trajectories chosen among candidates cannot be extended: a larger number changes the choice",
        ),
        (
            format!("kind = \"table\"\nfile = \"t.csv\"\n{until}"),
            "method.until: a table cannot be extended: its file fixes the parameter sets",
        ),
    ] {
        study_of(&study, &method);
        for command in [&["run", "study.toml", "--out", "out"][..], &["plan", "study.toml"]] {
            let answer = pleach(study.folder(), command);
            assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
            assert!(
                answer.stderr.contains(words) && answer.stderr.lines().count() == 1,
                "{answer:?}, not {words}"
            );
            assert!(!study.path("out").exists(), "nothing was begun");
        }
    }
    // The number of varying parameters of a later phase is known only after the phase before it.
    let phases = "[[phase]]\nkind = \"moat\"\ntrajectories = 2\nsurvivors = { cumulative_share = 1 }\n[[phase]]\n\
                  kind = \"vbd\"\nsamples = 4\nuntil = { ci_width = 0.1, max_evaluations = 12 }\n";
    study.edit(&[(&format!("[method]\n{MOAT}"), phases)]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("study.toml: phase[2].until.max_evaluations: 12 is not allowed; allowed: "),
        "{refused:?}"
    );
    assert!(
        study.path("out/phase-1-moat/survivors.json").exists() && !study.path("out/phase-2-vbd").exists()
    );
}
