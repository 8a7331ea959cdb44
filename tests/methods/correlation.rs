//! Correlations: points in the tables, coefficients equal to an independent computation, and the content of the files.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::rows;
use std::collections::BTreeSet;

const MOAT: &str = "kind = \"moat\"\ntrajectories = 2\nlevels = 20\n";

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

/// Pearson's coefficient by its definition.
fn pearson(one: &[f64], other: &[f64]) -> f64 {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let (at, to) = (mean(one), mean(other));
    let product: f64 = one.iter().zip(other).map(|(x, y)| (x - at) * (y - to)).sum();
    let spread = |of: &[f64], mean: f64| of.iter().map(|x| (x - mean).powi(2)).sum::<f64>().sqrt();
    product / spread(one, at) / spread(other, to)
}

/// Ranks, with the mean rank for ties.
fn ranks(of: &[f64]) -> Vec<f64> {
    let below = |x: f64| of.iter().filter(|y| **y < x).count() as f64;
    let equal = |x: f64| of.iter().filter(|y| **y == x).count() as f64;
    of.iter().map(|x| below(*x) + equal(*x).midpoint(1.0)).collect()
}

#[test]
fn coefficients_are_those_of_the_tables() {
    let study = Study::of_tissue(96);
    let mut designs = BTreeSet::new();
    for sampler in ["", "sampler = \"halton\"\n", "sampler = \"mc\"\n"] {
        study.edit(&[(MOAT, &format!("kind = \"correlation\"\nsamples = 40\n{sampler}"))]);
        let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out"]).done();
        assert!(printed.starts_with("correlations of dice with parameters\n"), "{printed}");
        assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
        let samples = rows(&study.path("out/samples.csv"));
        let dice: Vec<f64> =
            rows(&study.path("out/responses.csv")).iter().map(|row| number(&row["dice"])).collect();
        let dice: Vec<f64> = dice.chunks(2).map(|tiles| tiles[0].midpoint(tiles[1])).collect();
        assert_eq!((samples.len(), dice.len()), (40, 40));
        let indices = json(&study.path("out/indices.json"));
        assert_eq!((&indices["method"], &indices["evaluations_used"]), (&"correlation".into(), &40.into()));
        let listed = rows(&study.path("out/indices.csv"));
        assert_eq!(listed.len(), 15);
        for (row, entry) in listed.iter().zip(indices["parameters"].as_array().expect("a list")) {
            let name = &row["parameter"];
            assert_eq!(entry["name"], **name);
            let values: Vec<f64> = samples.iter().map(|sample| number(&sample[name])).collect();
            let expected = [pearson(&values, &dice), pearson(&ranks(&values), &ranks(&dice))];
            for (kind, expected) in ["pearson", "spearman"].into_iter().zip(expected) {
                let found = number(&row[kind]);
                assert!((found - expected).abs() < 1e-9, "{name}: {kind} {found}, {expected} by hand");
            }
            for kind in ["pearson", "spearman", "pcc", "prcc"] {
                assert_eq!(entry[kind]["value"].as_f64(), Some(number(&row[kind])));
                assert!(number(&row[kind]).abs() <= 1.0 && number(&row[&format!("{kind}_conf")]) >= 0.0);
            }
        }
        let page = text(&study.path("out/report.html"));
        assert!(page.contains("Correlations") && page.contains("PRCC") && !page.contains("Morris"));
        designs.insert(text(&study.path("out/samples.csv")));
        std::fs::remove_dir_all(study.path("out")).expect("removed");
    }
    assert_eq!(designs.len(), 3);
}

#[test]
fn too_few_evaluations_omit_partial_coefficients_with_note() {
    let study = Study::of_tissue(64);
    study.edit(&[(MOAT, "kind = \"correlation\"\nsamples = 8\n")]);
    pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]).done();
    let indices = json(&study.path("out/indices.json"));
    if indices["parameters"].as_array().is_some_and(|parameters| !parameters.is_empty()) {
        assert!(indices["parameters"][0]["pcc"]["value"].is_null(), "{indices}");
        assert_eq!(indices["notes"].as_array().map(Vec::len), Some(2), "{indices}");
    } else {
        // If the sample misses a level of a parameter, the note reports that instead.
        assert!(indices["note"].as_str().is_some_and(|note| note.contains("has one value")), "{indices}");
    }
    study.edit(&[(MOAT, "kind = \"correlation\"\nsamples = 2\n")]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "few"]);
    assert!(
        refused.stderr.contains("method.samples: 2 is not allowed; allowed: 3 to 10000000"),
        "{refused:?}"
    );
    study.edit(&[(MOAT, "kind = \"correlation\"\nsamples = 9\nsampler = \"morris\"\n")]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "few"]);
    assert!(
        refused
            .stderr
            .contains("method.sampler: \"morris\" is not allowed; allowed: \"sobol\", \"mc\", \"lhs\"")
    );
}
