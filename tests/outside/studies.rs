//! Study files: those of `pleach run`, and those without a workflow.

use crate::Outside;
use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;

/// `pleach sample` draws the sample that `pleach run` evaluates, and the long table of responses gives the same indices.
#[test]
fn a_study_that_ran_can_be_analyzed_again() {
    let study = Study::of_tissue(64);
    let moat = "kind = \"moat\"\ntrajectories = 2\nlevels = 20\n";
    for (method, kind) in [
        (moat, "moat"),
        ("kind = \"vbd\"\nsamples = 2\nbase = \"halton\"\n", "vbd"),
        ("kind = \"correlation\"\nsamples = 12\nsampler = \"mc\"\n", "correlation"),
        ("kind = \"regression\"\nsamples = 40\n", "regression"),
        ("kind = \"pawn\"\nsamples = 24\n", "pawn"),
        ("kind = \"delta\"\nsamples = 24\nsampler = \"sobol\"\n", "delta"),
        ("kind = \"fast\"\nsamples = 65\n", "fast"),
        ("kind = \"rbd-fast\"\nsamples = 42\n", "rbd-fast"),
    ] {
        study.edit(&[(moat, method)]);
        pleach(study.folder(), &["run", "study.toml", "--out", kind, "--quiet"]).done();
        let drawn = format!("{kind}.csv");
        pleach(study.folder(), &["sample", "study.toml", "--out", &drawn]).done();
        assert_eq!(text(&study.path(&drawn)), text(&study.path(&format!("{kind}/samples.csv"))), "{kind}");
        let responses = format!("{kind}/responses.csv");
        let arguments = [
            "analyze",
            "study.toml",
            "--samples",
            &drawn,
            "--responses",
            &responses,
            "--response",
            "dice",
            "--json",
        ];
        let found: serde_json::Value =
            serde_json::from_str(&pleach(study.folder(), &arguments).done()).unwrap();
        assert_eq!(
            found["responses"][0]["indices"],
            json(&study.path(&format!("{kind}/indices.json"))),
            "{kind}"
        );
    }
}

const OWN: &str = "[study]\nseed = 11\n[method]\nkind = \"moat\"\ntrajectories = 12\nlevels = 8\n\
                   [parameters.width]\nrange = [0.5, 2.5]\n[parameters.count]\ntype = \"integer\"\nrange = [1, 6]\n\
                   [parameters.mode]\nvalues = [4, 8]\n[parameters.rate]\ndistribution = \"log-uniform\"\nrange = [0.01, 10]\n\
                   [parameters.depth]\nfixed = 3\n";

#[test]
fn a_file_of_parameters_needs_no_workflow() {
    let outside = Outside::ishigami();
    outside.write("own.toml", OWN);
    outside.done("sample own.toml --out x.csv");
    let table = outside.read("x.csv");
    // Columns follow the order of the file, and integers are written as such.
    assert!(table.starts_with("evaluation,width,count,mode,rate,depth\n1,"), "{table}");
    let rows = outside.samples("x.csv");
    assert_eq!(rows.len(), 12 * 5);
    assert!(rows.iter().all(|row| row[1].fract() == 0.0 && (1.0..=6.0).contains(&row[1]) && row[4] == 3.0));
    assert!(rows.iter().all(|row| [4.0, 8.0].contains(&row[2]) && (0.0099..=10.0).contains(&row[3])));
    outside.write("y.csv", rows.iter().map(|row| format!("{}\n", row[0] + 2.0 * row[2])).collect::<String>());
    let found = outside.json("analyze own.toml --samples x.csv --responses y.csv");
    let mu: Vec<f64> = (0..4).map(|parameter| crate::number(&found, parameter, "mu")).collect();
    for (found, expected) in mu.iter().zip([2.0, 0.0, 8.0, 0.0]) {
        assert!((found - expected).abs() < 1e-9, "{mu:?}");
    }
    // Command line options override the study file.
    let said = outside.done("sample own.toml --method vbd --samples 4 --seed 2 --out v.parquet");
    assert_eq!(said, "v.parquet: 24 evaluations of 4 varying parameters for method vbd, seed 2\n");
    assert!(
        outside.done("sample own.toml --trajectories 3 --out x.csv").starts_with("x.csv: 15 evaluations")
    );
}

#[test]
fn groups_move_together() {
    let outside = Outside::ishigami();
    let grouped = crate::ISHIGAMI.replace("\"bounds\"", "\"groups\": [\"A\", \"B\", \"A\"], \"bounds\"");
    outside.write("g.json", grouped);
    for (method, rows) in [("vbd --samples 8", 8 * 4), ("moat", 10 * 3)] {
        outside.done(&format!("sample g.json --method {method} --out x.csv"));
        assert_eq!(outside.samples("x.csv").len(), rows);
        outside.respond("x.csv", "y.csv");
        let kind = method.split(' ').next().unwrap();
        let found =
            outside.json(&format!("analyze g.json --method {kind} --samples x.csv --responses y.csv"));
        let names = found.pointer("/responses/0/indices/parameters").unwrap().as_array().unwrap();
        assert_eq!(names.iter().map(|p| &p["name"]).collect::<Vec<_>>(), ["A", "B"]);
    }
}
