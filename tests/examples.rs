//! The studies in `examples/`: each can be planned as it is, beside a folder of tiles.

#[path = "support/pleach.rs"]
mod pleach;
#[path = "support/study.rs"]
mod study;

use pleach::pleach;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use study::Study;

#[test]
fn each_can_be_planned() {
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
