//! The JSON Schema of study files, judged by the package `jsonschema`, against the parser.

use crate::pleach::pleach;
use crate::study::{STUDY, Study};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Validates TOML files against a schema. Prints a line for each file: its name, and `valid` or the first mistake.
const VALIDATE: &str = "
import json, sys, tomllib
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for name in sys.argv[2:]:
    mistakes = list(validator.iter_errors(tomllib.load(open(name, 'rb'))))
    print(name, 'valid' if not mistakes else mistakes[0].message)
";

/// Returns the verdict on each file. `None` if the package is missing.
fn verdicts(test: &str, files: &[PathBuf]) -> Option<Vec<String>> {
    let python = super::environment(test)?.join("bin/python");
    if !Command::new(&python)
        .args(["-c", "import jsonschema, tomllib"])
        .output()
        .is_ok_and(|of| of.status.success())
    {
        super::skipped(test, "the environment has no jsonschema, or Python is older than 3.11");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let schema = folder.path().join("schema.json");
    std::fs::write(&schema, pleach(folder.path(), &["schema"]).done()).expect("written");
    let output =
        Command::new(python).args(["-c", VALIDATE]).arg(&schema).args(files).output().expect("python runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let verdicts: Vec<String> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(_, verdict)| verdict.to_owned()).collect();
    assert_eq!(verdicts.len(), files.len(), "{text}");
    Some(verdicts)
}

/// Returns the study files of the repository, without its build folder.
fn studies(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && !name.starts_with('.') && name != "target" {
            studies(&entry, found);
        } else if name.ends_with(".toml") {
            let text = std::fs::read_to_string(&entry).expect("UTF-8");
            // Bursts name a study file in a section of the same name.
            if text.contains("[study]\n") && text.contains("[response]\n") {
                found.push(entry);
            }
        }
    }
}

#[test]
fn studies_of_the_repository_are_valid() {
    let mut files = Vec::new();
    for folder in ["examples", "src/command/workflow/new", "tests/fixtures"] {
        studies(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    assert!(files.len() >= 10, "{files:?}");
    let Some(verdicts) = verdicts("studies_of_the_repository_are_valid", &files) else { return };
    for (file, verdict) in files.iter().zip(verdicts) {
        assert_eq!(verdict, "valid", "{}", file.display());
    }
}

/// Edits of the usual study, and whether schema and parser accept them.
const EDITS: [(&str, &str, bool); 22] = [
    ("seed = 500", "seed = 500\ndurability = \"outputs\"", true),
    ("seed = 500", "durability = \"some\"", false),
    ("seed = 500", "seed = -1", false),
    ("seed = 500", "seeds = 1", false),
    ("name = \"nuclei-moat\"", "name = \"a/b\"", false),
    ("normalize = true", "annotations_outside = 0.1", true),
    ("normalize = true", "annotations_outside = 1.1", false),
    ("normalize = true", "normalise = 1", false),
    ("levels = 20", "levels = 20\nbase = \"sobol\"\ncandidates = 4", true),
    ("levels = 20", "levels = 1", false),
    ("levels = 20", "samples = 20", false),
    ("levels = 20", "until = { ci_width = 0.1, max_evaluations = 64 }", true),
    ("levels = 20", "until = { ci_width = 0.1 }", false),
    (
        "kind = \"moat\"\ntrajectories = 2\nlevels = 20",
        "kind = \"vbd\"\nsamples = 4\nsecond_order = true",
        true,
    ),
    ("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"vbd\"", false),
    (
        "kind = \"moat\"\ntrajectories = 2\nlevels = 20",
        "kind = \"pawn\"\nsamples = 10\nsampler = \"halton\"",
        true,
    ),
    (
        "kind = \"moat\"\ntrajectories = 2\nlevels = 20",
        "kind = \"pawn\"\nsamples = 10\nsampler = \"morris\"",
        false,
    ),
    ("metric = \"dice\"", "metric = [\"dice\", \"jaccard\"]\nboth_empty = \"leave-out\"", true),
    ("metric = \"dice\"", "metric = []", false),
    (
        "metric = \"dice\"",
        "metric = \"dice\"\n[parameters.G1]\nrange = [5, 80]\nstep = 5\ndefault = 10",
        true,
    ),
    (
        "metric = \"dice\"",
        "metric = \"dice\"\n[parameters.T1]\ndistribution = \"log-uniform\"\nrange = [2, 8]",
        true,
    ),
    ("metric = \"dice\"", "metric = \"dice\"\n[parameters.G1]\nstep = 5", false),
];

#[test]
fn schema_and_parser_judge_alike() {
    let study = Study::of_tissue(64);
    let mut files = Vec::new();
    for (number, (old, new, accepted)) in EDITS.into_iter().enumerate() {
        assert_eq!(STUDY.matches(old).count(), 1, "{old}");
        let name = format!("edited-{number}.toml");
        study.write(&name, STUDY.replace(old, new));
        let ended = pleach(study.folder(), &["plan", &name, "--json"]);
        assert_eq!(ended.code == 0, accepted, "{new}: {ended:?}");
        files.push(study.path(&name));
    }
    let Some(verdicts) = verdicts("schema_and_parser_judge_alike", &files) else { return };
    for ((_, new, accepted), verdict) in EDITS.iter().zip(verdicts) {
        assert_eq!(verdict == "valid", *accepted, "{new}: {verdict}");
    }
}
