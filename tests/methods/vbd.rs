//! Variance-based decomposition: the design in the tables, the content of the files, and reuse from a cache.

use crate::pleach::{Answer, pleach};
use crate::results::{json, text};
use crate::runs::{number, responses, run};
use crate::study::Study;
use crate::tables::{Row, rows};
use serde_json::Value;
use std::collections::BTreeSet;

const MOAT: &str = "kind = \"moat\"\ntrajectories = 2\nlevels = 20\n";
const METRIC: &str = "metric = \"dice\"\n";

/// Parameters of the application that survive screening in the papers.
const VARIED: [&str; 8] = ["T2", "MorphRecon", "G1", "minSize", "maxSize", "G2", "minSizePl", "minSizeSeg"];
/// The other parameters, fixed at their defaults.
const HELD: [(&str, &str); 7] = [
    ("B", "220"),
    ("G", "220"),
    ("R", "220"),
    ("T1", "5"),
    ("FillHoles", "4"),
    ("Watershed", "8"),
    ("maxSizeSeg", "1000"),
];
const EVALUATIONS_A_SAMPLE: usize = VARIED.len() + 2;

/// Makes the study a decomposition with these fields.
fn decompose(study: &Study, fields: &str) {
    let held = HELD.map(|(name, value)| format!("[parameters.{name}]\nfixed = {value}\n")).concat();
    study.edit(&[(MOAT, &format!("kind = \"vbd\"\n{fields}\n")), (METRIC, &format!("{METRIC}{held}"))]);
}

/// Parameters that differ between two rows of a table.
fn differing(one: &Row, other: &Row) -> BTreeSet<String> {
    one.keys().filter(|&name| name != "evaluation" && one[name] != other[name]).cloned().collect()
}

/// First-order and total indices of the mean over two tiles, by the estimators of Saltelli et al. (2010).
fn sobol(responses: &[Row], rows_a_sample: usize) -> Vec<[f64; 2]> {
    let dice = |row: &Row| row["dice"].parse::<f64>().expect("a number");
    let means: Vec<f64> =
        responses.chunks(2).map(|tiles| tiles.iter().map(dice).sum::<f64>() / 2.0).collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let centered: Vec<f64> = means.iter().map(|value| value - mean).collect();
    let blocks: Vec<&[f64]> = centered.chunks(rows_a_sample).collect();
    let ends: Vec<f64> = blocks.iter().flat_map(|block| [block[0], block[rows_a_sample - 1]]).collect();
    let middle = ends.iter().sum::<f64>() / ends.len() as f64;
    let variance = ends.iter().map(|end| (end - middle).powi(2)).sum::<f64>() / ends.len() as f64;
    let of = |parameter: usize| {
        let mean = |term: &dyn Fn(f64, f64, f64) -> f64| {
            let terms =
                blocks.iter().map(|block| term(block[0], block[rows_a_sample - 1], block[1 + parameter]));
            terms.sum::<f64>() / blocks.len() as f64 / variance
        };
        [mean(&|a, b, mixed| b * (mixed - a)), mean(&|a, _, mixed| (a - mixed).powi(2) / 2.0)]
    };
    (0..VARIED.len()).map(of).collect()
}

#[test]
fn the_tables_hold_the_design_and_its_indices() {
    let study = Study::of_tissue(64);
    for (fields, rows_a_sample) in [
        ("samples = 3", EVALUATIONS_A_SAMPLE),
        ("samples = 2\nsecond_order = true\nbase = \"mc\"", 2 * VARIED.len() + 2),
    ] {
        decompose(&study, fields);
        let record = run(&study, "out", &[]);
        let samples = rows(&study.path("out/samples.csv"));
        assert_eq!(samples.len() % rows_a_sample, 0);
        assert_eq!(number(&record, "/evaluations"), samples.len() as u64);
        for block in samples.chunks(rows_a_sample) {
            let (a, b) = (&block[0], &block[rows_a_sample - 1]);
            assert!(HELD.iter().all(|(name, value)| &a[*name] == value && &b[*name] == value), "{a:?}");
            for (place, mixed) in block[1..rows_a_sample - 1].iter().enumerate() {
                // First A with each parameter of B, then B with each parameter of A.
                let (most, one) = if place < VARIED.len() { (a, b) } else { (b, a) };
                let name = VARIED[place % VARIED.len()];
                assert_eq!(mixed[name], one[name]);
                assert!(differing(mixed, most).iter().all(|differs| differs == name), "{name}");
            }
        }
        assert_eq!(rows(&study.path("out/responses.csv")).len(), 2 * samples.len());

        let indices = json(&study.path("out/indices.json"));
        assert_eq!((&indices["method"], &indices["response"]), (&"vbd".into(), &"dice".into()));
        assert_eq!(indices["samples_used"].as_u64(), Some((samples.len() / rows_a_sample) as u64));
        let expected = sobol(&rows(&study.path("out/responses.csv")), rows_a_sample);
        let listed = rows(&study.path("out/indices.csv"));
        for ((name, [first, total]), (row, entry)) in VARIED
            .iter()
            .zip(expected)
            .zip(listed.iter().zip(indices["parameters"].as_array().expect("a list")))
        {
            assert_eq!((row["parameter"].as_str(), entry["name"].as_str()), (*name, Some(*name)));
            for (found, expected) in [("first", first), ("total", total)] {
                let stated = entry[found]["value"].as_f64().expect("a number");
                assert!((stated - expected).abs() < 1e-9, "{name}: {found} {stated}, {expected} by hand");
                assert_eq!(row[found].parse::<f64>().ok(), Some(stated));
            }
        }
        assert_eq!(listed.len(), VARIED.len());
        let pairs = indices["pairs"].as_array().map(Vec::len);
        let second = fields.contains("second_order");
        assert_eq!(pairs, second.then_some(VARIED.len() * (VARIED.len() - 1) / 2));
        let page = text(&study.path("out/report.html"));
        for (words, there) in [
            ("Saltelli’s design for variance-based decomposition", true),
            ("No sensitivity indices.", false),
            ("Share of the variance of each parameter", true),
            ("Second-order indices", second),
            ("scrambled Sobol’ points", !second),
            ("independent random points", second),
            ("and the second with the value from the first", second),
            ("Morris one-at-a-time", false),
            ("Sensitivity", true),
        ] {
            assert_eq!(page.contains(words), there, "{words}");
        }
        // The same parameter sets from a table have the same responses, and the method is the table.
        run(&study, "table", &["--parameter-sets", "out/samples.csv"]);
        assert_eq!(responses(&study, "table"), responses(&study, "out"));
        assert_eq!(json(&study.path("table/indices.json"))["method"], "table");
        assert!(!text(&study.path("table/report.html")).contains("Saltelli"));
        for out in ["out", "table"] {
            std::fs::remove_dir_all(study.path(out)).expect("removed");
        }
    }
}

#[test]
fn run_and_plan_count_base_samples() {
    let study = Study::of_tissue(64);
    decompose(&study, "samples = 1");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out"]).done();
    let said = "no sensitivity indices:\n  1 base samples of response dice are complete (0 are not); vbd needs at least 2\n";
    assert!(printed.starts_with(said) && printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    decompose(&study, "samples = 16");
    let printed = pleach(study.folder(), &["plan", "study.toml", "--json"]).done();
    let plans: Value = serde_json::from_str(&printed).expect("a JSON document");
    assert_eq!(number(&plans, "/plans/0/evaluations"), 16 * EVALUATIONS_A_SAMPLE as u64);
    pleach(study.folder(), &["explain", "study.toml", "--evaluation", "160"]).done();
    let beyond = pleach(study.folder(), &["explain", "study.toml", "--evaluation", "161"]);
    assert!(beyond.stderr.contains("0 to 160 is allowed in this study"), "{beyond:?}");
}

#[test]
fn invalid_vbd_designs_are_refused() {
    let study = Study::of_tissue(64);
    let said = |answer: Answer| {
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
        assert!(!study.path("out").exists(), "nothing was begun");
        answer.stderr
    };
    let refused = |words: &str| {
        for command in [&["run", "study.toml", "--out", "out"][..], &["plan", "study.toml"]] {
            let said = said(pleach(study.folder(), command));
            assert!(said.contains(words) && said.lines().count() == 1, "{said}");
        }
    };
    // A design beyond the limit is refused before it is allocated.
    decompose(&study, "samples = 10000000");
    refused(
        "study.toml: method: samples = 10000000 need 100000000 evaluations, 10 per sample; at most 10000000 \
         are allowed, for 1000000 samples",
    );
    decompose(&study, "samples = 1000001\nbase = \"mc\"");
    refused("study.toml: method: samples = 1000001 need 10000010 evaluations");
    decompose(&study, "");
    refused("study.toml: method.samples: missing; a whole number is needed");
    decompose(&study, "samples = 4\nbase = \"niederreiter\"");
    refused(
        "study.toml: method.base: \"niederreiter\" is not allowed; allowed: \"sobol\", \"mc\", \"lhs\", \"halton\", \"hammersley\"",
    );
    let held = VARIED.map(|name| format!("[parameters.{name}]\nfixed = 8\n")).concat();
    let all = HELD.map(|(name, value)| format!("[parameters.{name}]\nfixed = {value}\n")).concat();
    let parameters = format!("{METRIC}{held}{all}");
    study.edit(&[(MOAT, "kind = \"vbd\"\nsamples = 4\n"), (METRIC, &parameters)]);
    refused("study.toml: method: no parameter varies; at least one needs a range or two values");

    // Other base points make another study, and results of two studies are not mixed.
    decompose(&study, "samples = 1");
    run(&study, "done", &[]);
    decompose(&study, "samples = 1\nbase = \"mc\"");
    let other = said(pleach(study.folder(), &["run", "study.toml", "--out", "done", "--resume"]));
    assert!(other.contains("holds plan.json of another study"), "{other}");
}

const CACHED: [&str; 4] = ["--cache", "kept", "--workers", "1"];

#[test]
fn a_decomposition_after_a_screening_reuses_what_it_can() {
    let study = Study::of_tissue(128);
    run(&study, "screening", &CACHED);
    decompose(&study, "samples = 4");
    let alone = run(&study, "alone", &["--workers", "1"]);
    let after = run(&study, "after", &CACHED);
    assert_eq!(responses(&study, "after"), responses(&study, "alone"));
    assert_eq!(text(&study.path("after/samples.csv")), text(&study.path("alone/samples.csv")));
    assert!(number(&after, "/tasks_reused/cache") > 0, "{after}");
    // At least the two normalized tiles and the results at the defaults are reused.
    let (executed, all) = (number(&after, "/tasks_executed"), number(&alone, "/tasks_executed"));
    assert!(executed + 2 * 9 <= all, "{executed} of {all}");
}

#[test]
fn a_widened_decomposition_runs_what_is_new() {
    let study = Study::of_tissue(128);
    let first = 4 * EVALUATIONS_A_SAMPLE;
    decompose(&study, "samples = 4");
    let narrow = run(&study, "narrow", &CACHED);
    decompose(&study, "samples = 8");
    // The first four samples are cached before the others run.
    for evaluation in 0..=first {
        let command =
            ["explain", "study.toml", "--json", "--cache", "kept", "--evaluation", &evaluation.to_string()];
        let explained: Value =
            serde_json::from_str(&pleach(study.folder(), &command).done()).expect("a JSON document");
        for run in explained["runs"].as_array().expect("runs") {
            for task in run["tasks"].as_array().expect("tasks") {
                assert_eq!(task["in_cache"], true, "evaluation {evaluation}: {task}");
            }
        }
    }
    let alone = run(&study, "alone", &["--workers", "1"]);
    let wide = run(&study, "wide", &CACHED);
    assert_eq!(responses(&study, "wide"), responses(&study, "alone"));
    let head = |out: &str, file: &str| -> String {
        let text = text(&study.path(out).join(file));
        text.lines().take(1 + first).map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(head("wide", "samples.csv"), text(&study.path("narrow/samples.csv")));
    assert!(responses(&study, "wide").starts_with(&responses(&study, "narrow")));
    let executed = |record: &Value| number(record, "/tasks_executed");
    assert!(executed(&narrow) > 0 && executed(&wide) > 0);
    // Each task runs at most once in both studies together, because the cache also holds tasks that other parameters do not
    // affect.
    let (both, all) = (executed(&narrow) + executed(&wide), executed(&alone));
    assert!(both <= all, "{both} of {all}");
    // The first four samples alone execute no task.
    decompose(&study, "samples = 4");
    assert_eq!(executed(&run(&study, "again", &CACHED)), 0);
}
