//! eFAST: search curves in the tables, indices equal to a plain Fourier transform, and the content of the files.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::rows;
use std::f64::consts::TAU;

const MOAT: &str = "kind = \"moat\"\ntrajectories = 2\nlevels = 20\n";
const METRIC: &str = "metric = \"dice\"\n";

/// Varying parameters. All others are fixed at their defaults.
const VARIED: [&str; 3] = ["T2", "G1", "minSize"];

const SAMPLES: usize = 65;
const HARMONICS: usize = 4;

/// The frequency of a parameter on its own curve.
const HIGH: usize = (SAMPLES - 1) / (2 * HARMONICS);

/// A study with this method and few varying parameters.
fn study_of(method: &str) -> Study {
    let study = Study::of_tissue(96);
    let held = ["B", "G", "R", "T1", "G2", "FillHoles", "MorphRecon", "Watershed", "minSizePl"];
    let held = held.iter().chain(&["minSizeSeg", "maxSizeSeg", "maxSize"]);
    let defaults = ["220", "220", "220", "5", "40", "4", "8", "8", "20", "20", "1000", "1000"];
    let fixed: String =
        held.zip(defaults).map(|(name, value)| format!("[parameters.{name}]\nfixed = {value}\n")).collect();
    study.edit(&[(MOAT, method), (METRIC, &format!("{METRIC}{fixed}"))]);
    study
}

/// The power of a series at a frequency.
fn power(series: &[f64], frequency: usize) -> f64 {
    let part = |of: fn(f64) -> f64| {
        let term =
            |(at, value): (usize, &f64)| value * of(TAU * (frequency * at) as f64 / series.len() as f64);
        series.iter().enumerate().map(term).sum::<f64>() / series.len() as f64
    };
    part(f64::cos).powi(2) + part(f64::sin).powi(2)
}

/// First-order and total index of a curve, as Saltelli, Tarantola and Chan (1999) define them.
fn by_hand(curve: &[f64]) -> [f64; 2] {
    let sum = |frequencies: &mut dyn Iterator<Item = usize>| -> f64 {
        frequencies.map(|frequency| power(curve, frequency)).sum()
    };
    let variance = sum(&mut (1..=(SAMPLES - 1) / 2));
    let alone = sum(&mut (1..=HARMONICS).map(|harmonic| harmonic * HIGH));
    let others = sum(&mut (1..=HIGH / 2));
    [alone / variance, 1.0 - others / variance]
}

#[test]
fn the_tables_hold_the_curves_and_their_indices() {
    let study = study_of("kind = \"fast\"\nsamples = 65\n");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out"]).done();
    assert!(printed.starts_with("parameters by their influence on dice\n"), "{printed}");
    assert!(printed.contains("first") && printed.contains("total"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");

    let samples = rows(&study.path("out/samples.csv"));
    assert_eq!(samples.len(), SAMPLES * VARIED.len());
    for (name, curve) in VARIED.iter().zip(samples.chunks(SAMPLES)) {
        // Each parameter oscillates fast on its own curve and slowly on the others.
        let swing = |of: &str| {
            let values: Vec<f64> = curve.iter().map(|row| row[of].parse().expect("a number")).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let centered: Vec<f64> = values.iter().map(|value| value - mean).collect();
            let strongest =
                (1..=(SAMPLES - 1) / 2).max_by(|a, b| power(&centered, *a).total_cmp(&power(&centered, *b)));
            strongest.expect("frequencies")
        };
        assert_eq!(swing(name), HIGH, "{name}");
        let others = VARIED.iter().filter(|other| other != &name);
        assert!(others.map(|other| swing(other)).all(|frequency| frequency <= HIGH / HARMONICS), "{name}");
    }

    let dice: Vec<f64> = rows(&study.path("out/responses.csv"))
        .iter()
        .map(|row| row["dice"].parse().expect("a number"))
        .collect();
    let means: Vec<f64> = dice.chunks(2).map(|tiles| tiles[0].midpoint(tiles[1])).collect();
    let indices = json(&study.path("out/indices.json"));
    assert_eq!((&indices["method"], &indices["evaluations_used"]), (&"efast".into(), &means.len().into()));
    let listed = rows(&study.path("out/indices.csv"));
    assert_eq!(listed.len(), VARIED.len());
    let entries = indices["parameters"].as_array().expect("a list");
    for (((name, curve), row), entry) in VARIED.iter().zip(means.chunks(SAMPLES)).zip(&listed).zip(entries) {
        assert_eq!((row["parameter"].as_str(), entry["name"].as_str()), (*name, Some(*name)));
        for (index, expected) in ["first", "total"].into_iter().zip(by_hand(curve)) {
            let found: f64 = row[index].parse().expect("a number");
            assert!((found - expected).abs() < 1e-9, "{name}: {index} {found}, {expected} by hand");
            assert_eq!(entry[index]["value"].as_f64(), Some(found));
            assert!(row[&format!("{index}_conf")].parse::<f64>().is_ok_and(|half| half >= 0.0));
        }
    }
    let page = text(&study.path("out/report.html"));
    for words in ["eFAST", "search curves of 3 parameters, 65 points each", "otal index T"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("Morris one-at-a-time") && !page.contains("NaN"));
}

#[test]
fn curves_may_be_the_last_phase() {
    let study = study_of(MOAT);
    let phases = "[[phase]]\nkind = \"moat\"\ntrajectories = 2\nsurvivors = { most_influential = 2 }\n\
                  [[phase]]\nkind = \"fast\"\nsamples = 66\n";
    let text_of = text(&study.path("study.toml")).replace(&format!("[method]\n{MOAT}"), phases);
    study.write("study.toml", text_of);
    pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]).done();
    assert_eq!(rows(&study.path("out/phase-2-fast/samples.csv")).len(), 2 * 66);
    assert_eq!(rows(&study.path("out/phase-2-fast/indices.csv")).len(), 2);
    let page = text(&study.path("out/report.html"));
    assert!(page.contains("Phase 2: decomposition of the variance") && page.contains("eFAST"));
}

#[test]
fn curves_that_cannot_be_are_refused() {
    for (fields, words) in [
        ("samples = 64\n", "method.samples: 64 is not allowed; allowed: 65 to 10000000"),
        ("", "method.samples: missing"),
        ("samples = 65\nsampler = \"lhs\"\n", "method.sampler: unknown; known are kind, samples, until"),
        (
            "samples = 65\nuntil = { ci_width = 0.1, max_evaluations = 1000 }\n",
            "method.until: a search curve cannot be extended: a longer curve has different points",
        ),
    ] {
        let study = study_of(&format!("kind = \"fast\"\n{fields}"));
        let refused = pleach(study.folder(), &["run", "study.toml", "--out", "out"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused.stderr.contains(words) && refused.stderr.lines().count() == 1,
            "{refused:?}, not {words}"
        );
        assert!(!study.path("out").exists(), "nothing was begun");
    }
}
