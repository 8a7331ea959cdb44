//! The example `examples/registration` with given parameter sets.

use crate::study::Study;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Resolutions of the registration. Each has one parameter.
pub(crate) const LEVELS: usize = 5;

/// The example as a study of these parameter sets.
pub(crate) fn study(sets: &[[f64; LEVELS]]) -> Study {
    let study = Study::of_tissue(64);
    fs::remove_dir_all(study.path("tiles")).expect("removed");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/registration");
    for folder in ["", "tiles/"] {
        for entry in fs::read_dir(example.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if let (true, Some(name)) = (path.is_file(), path.file_name().and_then(|name| name.to_str())) {
                study.write(&format!("{folder}{name}"), fs::read(&path).expect("a file"));
            }
        }
    }
    study.write("sets.csv", table(sets));
    let text = fs::read_to_string(study.path("study.toml")).expect("a study");
    let (before, after) = text.split_once("[method]").expect("a method");
    let (_, after) = after.split_once("[response]").expect("responses");
    study.write(
        "study.toml",
        format!("{before}[method]\nkind = \"table\"\nfile = \"sets.csv\"\n[response]{after}"),
    );
    study
}

/// The parameter sets as the file `sets.csv` of the study.
pub(crate) fn table(sets: &[[f64; LEVELS]]) -> String {
    let header: Vec<String> = (1..=LEVELS).map(|level| format!("damping-{level}")).collect();
    let mut table = header.join(",");
    for set in sets {
        let row: Vec<String> = set.iter().map(f64::to_string).collect();
        write!(table, "\n{}", row.join(",")).expect("a string");
    }
    table
}

/// The executed steps of all levels.
pub(crate) fn refinements(record: &Value) -> u64 {
    let operations = record["operations"].as_array().expect("operations");
    let names = ["registration.translate", "registration.deform"];
    let refinements =
        operations.iter().filter(|operation| names.iter().any(|name| operation["name"] == *name));
    refinements.filter_map(|operation| operation["runs"].as_u64()).sum()
}
