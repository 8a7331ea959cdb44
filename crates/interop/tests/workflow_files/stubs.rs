//! Source of operations.

use super::{Folder, registry};
use pleach_interop::workflow_stub::{StubLanguage, stub};
use std::path::PathBuf;

/// The example in the repository: a stage, and the program that was generated for it.
fn example() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-operation/stub"))
}

/// The test of `examples/own-operation` compiles the program, and calls its operations.
#[test]
fn rust_source_is_that_of_the_example() {
    let source = stub(&example().join("stage.json"), &registry(), StubLanguage::Rust).expect("source");
    assert_eq!(source.operations, ["example.dark-fraction", "nscale.smooth", "measure"]);
    let [(name, text)] = source.files.as_slice() else { panic!("one file") };
    assert_eq!(name, "src/main.rs");
    let path = example().join("main.rs");
    if std::env::var_os("PLEACH_WRITE_DOCS").is_some() {
        std::fs::write(&path, text).expect("written");
    }
    assert_eq!(*text, std::fs::read_to_string(path).expect("the program"), "PLEACH_WRITE_DOCS=1 writes it");
}

#[test]
fn python_source_has_manifest_module_and_descriptors() {
    let folder = Folder::new();
    let stage = std::fs::read_to_string(example().join("stage.json")).expect("a stage");
    folder.write("stage.json", &stage);
    let workflow = r#"{ "workflow": "w", "inputs": [{ "region": "tile", "type": "bgr8" }],
        "stages": [{ "descriptor": "stage.json" }], "response": { "region": "result", "metrics": [] } }"#;
    let workflow = folder.write("workflow.json", workflow);
    let source = stub(&workflow, &registry(), StubLanguage::Python).expect("source");
    let names: Vec<&str> = source.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pleach.toml", "darkness.py", "stage.json", "workflow.json"]);
    let names = ["python:darkness.dark_fraction", "python:darkness.smooth", "python:darkness.measure"];
    assert_eq!(source.operations, names);
    let text = |wanted: &str| &source.files.iter().find(|(name, _)| name == wanted).expect("a file").1;
    let manifest = text("pleach.toml");
    let entry = "[[operation]]\nname = \"python:darkness.smooth\"\nversion = 2\n\
                 inputs = [{ name = \"tile\", type = \"bgr8\", channels = \"rgb\" }]\n\
                 outputs = [{ name = \"smoothed\", type = \"array-f32\" }]\n\
                 arguments = [{ name = \"mean_0\", type = \"real\", low = 0.25, high = 4.0 }]\n\
                 # Types assumed, equal in the writer and all readers: smoothed\n";
    assert!(manifest.contains(entry), "{manifest}");
    // A fixed value bounds nothing.
    assert!(
        manifest.contains("{ name = \"level\", type = \"real\", low = -1000000000.0, high = 1000000000.0 }"),
        "{manifest}"
    );
    let module = text("darkness.py");
    assert!(module.contains("\n\ndef measure(darkness, smoothed, level):\n"), "{module}");
    assert!(text("stage.json").contains("\"operation\": \"python:darkness.smooth\""));
    assert_eq!(text("stage.json").lines().count(), stage.lines().count(), "the stage keeps its lines");
    assert!(text("workflow.json").starts_with("{\n  \"operations\": [\"pleach.toml\"], \"workflow\""));
    // A stage whose operations have names of functions stays as it is.
    let own = folder.write("own.json", text("stage.json"));
    let source = stub(&own, &registry(), StubLanguage::Python).expect("source");
    assert_eq!(source.files.len(), 2);
    // Python calls a function by the names of its arguments.
    let keyword = folder.write("keyword.json", &stage.replace("\"level\"", "\"lambda\""));
    let said = stub(&keyword, &registry(), StubLanguage::Python).expect_err("refused").to_string();
    let wanted = "keyword.json: /tasks/2/parameters: argument \"lambda\" of operation \"measure\" is no name in Python; letters, \
                  digits and \"_\" are allowed, and no keyword";
    assert!(said.ends_with(wanted), "{said}");
}

#[test]
fn source_is_refused_without_unknown_operations() {
    let folder = Folder::new();
    let known = r#"{ "stage": "s", "inputs": [{ "region": "tile", "type": "bgr8" }], "outputs": [],
        "tasks": [{ "task": "n", "operation": "nuclei.normalize", "version": 1, "reads": ["tile"], "writes": ["x"] }] }"#;
    let file = folder.write("known.json", known);
    let said = stub(&file, &registry(), StubLanguage::Rust).expect_err("refused").to_string();
    assert!(
        said.ends_with("known.json: all 1 operations are known; source is written for unknown ones"),
        "{said}"
    );
    let twice = r#"{ "stage": "s", "inputs": [{ "region": "tile", "type": "bgr8" }], "outputs": [],
        "tasks": [{ "task": "a", "operation": "x", "version": 1, "reads": ["tile"], "writes": ["y"] },
                  { "task": "b", "operation": "x", "version": 1, "reads": ["tile", "y"], "writes": ["z"] }] }"#;
    let file = folder.write("twice.json", twice);
    let said = stub(&file, &registry(), StubLanguage::Rust).expect_err("refused").to_string();
    let wanted = "/tasks/1/reads: operation \"x\" has 2 here and 1 in task \"a\"; equal numbers are allowed";
    assert!(said.ends_with(wanted), "{said}");
}
