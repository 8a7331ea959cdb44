//! Responses without variation: every method reports it, and no output contains NaN or infinity.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;

const METHOD: &str = "[method]\nkind = \"moat\"\ntrajectories = 2\nlevels = 20\n";
const METRIC: &str = "metric = \"dice\"\n";

/// All parameters but the two largest object sizes. No object is that large, so these two have no effect.
const HELD: [(&str, &str); 13] = [
    ("B", "220"),
    ("G", "220"),
    ("R", "220"),
    ("T1", "5"),
    ("T2", "4"),
    ("MorphRecon", "8"),
    ("G1", "80"),
    ("G2", "45"),
    ("FillHoles", "4"),
    ("minSize", "11"),
    ("minSizePl", "30"),
    ("minSizeSeg", "21"),
    ("Watershed", "8"),
];

fn with(study: &Study, method: &str) {
    let held = HELD.map(|(name, value)| format!("[parameters.{name}]\nfixed = {value}\n")).concat();
    let sizes =
        ["maxSize", "maxSizeSeg"].map(|name| format!("[parameters.{name}]\nvalues = [100000, 200000]\n"));
    let metric = "metric = [\"dice\", \"nuclei\"]\n";
    study.edit(&[(METHOD, method), (METRIC, &format!("{metric}{held}{}", sizes.concat()))]);
}

#[test]
fn every_method_reports_a_response_without_variation() {
    let study = Study::of_tissue(64);
    for (kind, fields) in [
        ("moat", "trajectories = 3\n"),
        ("vbd", "samples = 4\nsecond_order = true\n"),
        ("correlation", "samples = 20\n"),
    ] {
        with(&study, &format!("[method]\nkind = \"{kind}\"\n{fields}"));
        let printed = pleach(study.folder(), &["run", "study.toml", "--out", kind]).done();
        for response in ["dice", "nuclei"] {
            assert!(printed.contains(&format!("{response} did not vary: ")), "{kind}: {printed}");
        }
        let indices = json(&study.path(kind).join("indices.json"));
        assert_eq!(
            (&indices["no_variation"], indices["method"].as_str()),
            (&true.into(), Some(kind)),
            "{indices}"
        );
        assert_eq!(indices["additional_responses"][0]["no_variation"], true, "{indices}");
        let page = text(&study.path(kind).join("report.html"));
        assert!(page.contains("did not change at all"), "{kind}");
        for file in ["indices.csv", "indices.json", "responses.csv", "run.json"] {
            let file = text(&study.path(kind).join(file)).to_lowercase();
            assert!(!file.contains("nan") && !file.contains("inf"), "{kind}: {file}");
        }
        assert!(!page.contains("NaN"), "{kind}");
    }
}

#[test]
fn screening_of_a_constant_response_has_no_survivors() {
    let study = Study::of_tissue(64);
    for rule in ["threshold = 0.1", "most_influential = 1", "cumulative_share = 0.5"] {
        let first = format!("[[phase]]\nkind = \"moat\"\ntrajectories = 2\nsurvivors = {{ {rule} }}\n");
        with(&study, &format!("{first}[[phase]]\nkind = \"vbd\"\nsamples = 4\n"));
        let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]);
        assert_eq!(answer.code, 2, "{answer:?}");
        let said = format!(
            "study.toml: phase[1].survivors: {rule}: dice did not change with any parameter: influential \
             parameters cannot be determined; results of the phase are in out/phase-1-moat\n"
        );
        assert!(answer.stderr.ends_with(&said), "{answer:?}");
        assert!(!study.path("out/phase-2-vbd").exists());
    }
}

#[test]
fn constant_response_never_meets_the_stopping_rule() {
    let study = Study::of_tissue(64);
    with(&study, "[method]\nkind = \"vbd\"\nsamples = 4\nuntil = { ci_width = 0.5, max_evaluations = 40 }\n");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out"]).done();
    assert!(
        printed.contains("maximum interval width of dice after 32 evaluations: not known, not converged"),
        "{printed}"
    );
    let rounds = &json(&study.path("out/run.json"))["convergence"]["rounds"];
    assert_eq!(
        rounds,
        &serde_json::json!([
            { "evaluations": 16, "max_ci_width": null },
            { "evaluations": 32, "max_ci_width": null },
        ])
    );
}
