//! The studies in `examples/` and in the documents can be planned unchanged beside a folder of tiles.

use crate::pleach::pleach;
use crate::study::Study;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn every_example_study_can_be_planned() {
    let study = Study::of_tissue(64);
    let mut found = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).expect("a folder") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        study.write(&name, fs::read(&file).expect("a file"));
        let plan = pleach(study.folder(), &["plan", &name, "--json"]).done();
        let plan: Value = serde_json::from_str(&plan).expect("a JSON document");
        found.push((name, plan["parts"].clone()));
    }
    let evaluations = |name: &str, part: usize| {
        let (_, parts) = found.iter().find(|(found, _)| found == name).expect("an example");
        parts[part]["evaluations"].clone()
    };
    assert_eq!(evaluations("two-phases.toml", 0), json!({ "least": 160, "most": 160 }));
    assert_eq!(evaluations("two-phases.toml", 1), json!({ "least": 640, "most": 640 }));
    assert_eq!(evaluations("until-narrow.toml", 0), json!({ "least": 320, "most": 3840 }));
}

/// Studies of the built-in workflow in a document's code blocks, without the indentation of lists.
fn studies_of(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).expect("UTF-8");
    let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("toml\n"));
    let plain = |block: &str| block.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    let blocks = blocks.map(plain);
    blocks.filter(|block| block.contains("[study]") && block.contains("workflow = \"nuclei\"")).collect()
}

#[test]
fn studies_in_documents_can_be_planned() {
    let study = Study::of_tissue(64);
    for document in ["README.md", "docs/getting-started.md", "docs/studies.md"] {
        let found = studies_of(document);
        assert_eq!(found.len(), 1, "{document}");
        study.write("documented.toml", &found[0]);
        let plan = pleach(study.folder(), &["plan", "documented.toml", "--json"]).done();
        let plan: Value = serde_json::from_str(&plan).expect("a JSON document");
        assert_eq!(plan["plans"][0]["strategy"], json!("ranges"), "{document}");
    }
}

#[test]
fn demo_runs_from_a_tile_to_its_report() {
    let folder = tempfile::tempdir().expect("a folder");
    pleach(folder.path(), &["tissue", "--out", "mine", "--size", "64", "--count", "1"]).done();
    let answer = pleach(folder.path(), &["demo", "mine/tissue_01.png", "mine/nothing.png"]);
    assert_eq!((answer.code, answer.stderr.contains("mine/nothing.png: ")), (2, true), "{answer:?}");
    assert!(!folder.path().join("demo").exists(), "nothing is written");
    let answer = pleach(folder.path(), &["demo", "mine/tissue_01.png"]);
    assert!(answer.stdout.ends_with("The report: demo/results/report.html\n"), "{answer:?}");
    assert!(folder.path().join("demo/results/report.html").is_file());
    let run = fs::read(folder.path().join("demo/results/run.json")).expect("a file");
    let run: Value = serde_json::from_slice(&run).expect("a JSON document");
    assert_eq!(run["evaluations"], json!(160));
    // The study file is one to begin with: it names the tile, and runs by itself.
    let plan = pleach(folder.path(), &["plan", "demo/study.toml", "--json"]).done();
    assert!(plan.contains("\"trtma\"") || plan.contains("\"ranges\""), "{plan}");
}
