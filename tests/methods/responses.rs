//! Several responses of one study: the indices of each, from the same runs, equal those of a study with that response alone.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::runs::{number, responses, run};
use crate::study::Study;
use crate::tables::rows;

const METRIC: &str = "metric = \"dice\"";
const MOAT: &str = "kind = \"moat\"\ntrajectories = 2\nlevels = 20\n";

/// Metrics of both tables of the workflow, in the order of neither.
const METRICS: [&str; 4] = ["nuclei", "dice", "mean-area", "pixel-difference"];
const ALL: &str = "metric = [\"nuclei\", \"dice\", \"mean-area\", \"pixel-difference\"]";

#[test]
fn each_response_has_the_indices_that_it_has_alone() {
    let study = Study::of_tissue(96);
    for (name, method) in [("moat", MOAT), ("correlation", "kind = \"correlation\"\nsamples = 40\n")] {
        let out = |of: &str| format!("{name}-{of}");
        study.edit(&[(MOAT, method), (METRIC, ALL)]);
        run(&study, &out("all"), &[]);
        let both = rows(&study.path(&out("all")).join("responses.csv"));
        let header = text(&study.path(&out("all")).join("responses.csv"));
        assert!(
            header.starts_with("evaluation,tile,nuclei,dice,mean-area,pixel-difference,jaccard,"),
            "{header}"
        );
        let document = json(&study.path(&out("all")).join("indices.json"));
        let listed = rows(&study.path(&out("all")).join("indices.csv"));
        for (place, metric) in METRICS.into_iter().enumerate() {
            study.edit(&[(MOAT, method), (METRIC, &format!("metric = \"{metric}\""))]);
            run(&study, &out(metric), &[]);
            let alone = rows(&study.path(&out(metric)).join("responses.csv"));
            assert_eq!(alone.len(), both.len());
            for (one, all) in alone.iter().zip(&both) {
                assert_eq!(one[metric], all[metric], "{metric}: {all:?}");
            }
            let mut found = match place {
                0 => document.clone(),
                _ => document["additional_responses"][place - 1].clone(),
            };
            found.as_object_mut().expect("an object").remove("additional_responses");
            assert_eq!(found, json(&study.path(&out(metric)).join("indices.json")), "{metric}");
            let of_it = listed.iter().filter(|row| row["response"] == metric);
            let of_it = of_it.cloned().map(|mut row| {
                row.remove("response");
                row
            });
            let expected = rows(&study.path(&out(metric)).join("indices.csv"));
            assert_eq!((of_it.collect::<Vec<_>>(), expected.len()), (expected, 15), "{metric}");
        }
        assert_eq!(listed.len(), 4 * 15);
        let page = text(&study.path(&out("all")).join("report.html"));
        for metric in METRICS {
            for title in ["Summary", "Sensitivity", "Response"] {
                assert!(page.contains(&format!(">{title}: {metric}</h2>")), "{title}, {metric}");
            }
        }
    }
}

#[test]
fn the_summary_lists_each_response_and_every_strategy_gives_the_same() {
    let study = Study::of_tissue(64);
    study.edit(&[(METRIC, ALL)]);
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out"]).done();
    let mut rest = printed.as_str();
    for metric in METRICS {
        let title = format!("parameters by their influence on {metric}\n");
        rest = rest.split_once(&title).unwrap_or_else(|| panic!("{title} in {printed}")).1;
    }
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    let expected = responses(&study, "out");
    for way in [["--strategy", "none"], ["--strategy", "stage"], ["--reuse", "tree"], ["--reuse", "dataflow"]]
    {
        let out = format!("by-{}", way[1]);
        run(&study, &out, &way);
        assert_eq!(responses(&study, &out), expected, "{way:?}");
    }
    // A study of several responses finds the cached results of a study of one.
    run(&study, "first", &["--cache", "kept"]);
    let again = run(&study, "again", &["--cache", "kept"]);
    assert_eq!((number(&again, "/tasks_executed"), responses(&study, "again")), (0, expected));
}

#[test]
fn metrics_that_cannot_be_analyzed_are_refused() {
    let study = Study::of_tissue(64);
    for (metric, said) in [
        (
            "[]",
            "response.metric: an empty list is not allowed; allowed: one or more of \"dice\", \"jaccard\",",
        ),
        ("[\"dice\", \"dice\"]", "response.metric: \"dice\" twice is not allowed; allowed: each metric once"),
        ("[\"dice\", \"f1\"]", "response.metric: \"f1\" is not allowed; allowed: \"dice\", \"jaccard\","),
        ("[\"dice\", 1]", "response.metric: 1 has the wrong type; allowed: a list of texts"),
        ("1", "response.metric: 1 has the wrong type; allowed: a text"),
    ] {
        study.edit(&[(METRIC, &format!("metric = {metric}"))]);
        for command in [&["run", "study.toml", "--out", "out"][..], &["plan", "study.toml"]] {
            let answer = pleach(study.folder(), command);
            assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
            assert!(answer.stderr.contains(said) && answer.stderr.lines().count() == 1, "{answer:?}");
        }
        assert!(!study.path("out").exists(), "nothing was begun");
    }
}
