//! Real workflows of the development data.

use super::{Folder, descriptors, json, registry, texts};
use pleach_study::builtin;
use pleach_workflow::{Study, Workflow, operation_uses};
use std::path::PathBuf;

/// Returns the folder of Taverna workflows. `None`, with a line that names the test, if it is missing.
#[expect(clippy::print_stdout, reason = "a test that does not run prints it")]
fn data(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("PLEACH_TEST_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let folder = folder.join("workflows/taverna");
    if !folder.is_dir() {
        println!("SKIPPED {test}: {} is missing", folder.display());
        return None;
    }
    Some(folder)
}

/// Operations of each stage, in order.
fn operations(folder: &Folder) -> Vec<String> {
    let uses = operation_uses(&folder.path("out/workflow.json")).expect("a workflow");
    uses.into_iter().map(|of| of.operation).collect()
}

#[test]
fn segmentation_workflows_import() {
    let Some(data) = data("segmentation_workflows_import") else { return };
    let folder = Folder::new();
    let imported = folder.import(&data.join("seg_example_fgo-bucket-star.t2flow"), "{}").expect("imported");
    assert_eq!(imported.summary, "workflow Workflow2: 19 inputs, 3 processors, 22 links");
    assert_eq!(operations(&folder), ["NormalizationComp", "Segmentation", "DiffMaskComp"]);
    let workflow = json(&imported, "workflow.json");
    assert_eq!(workflow["inputs"][0]["region"], "input_img");
    assert_eq!(workflow["reference"]["region"], "input_ref_img");
    assert_eq!(workflow["reference"]["output"], "segmented_rt");
    let segmentation = json(&imported, "segmentation.json");
    let parameters = segmentation["tasks"][0]["parameters"].as_array().expect("parameters");
    assert_eq!(parameters.len(), 15);
    let swept = parameters.iter().find(|of| of["name"] == "maxSizeSeg").expect("a parameter");
    assert_eq!(
        *swept,
        serde_json::json!({ "name": "maxSizeSeg", "argument": "max_size_seg", "type": "integer", "default": 1000, "values": [1000, 111] })
    );
    assert_eq!(texts(&segmentation["tasks"][0]["reads"]), ["normalized_rt"]);
    let sets = imported.files.iter().find(|(name, _)| name == "parameter-sets.csv").expect("a table");
    assert_eq!(sets.1, "maxSizeSeg,fillHolesConnectivity\n1000,4\n1000,5\n111,4\n111,5\n");

    let folder = Folder::new();
    let imported = folder.import(&data.join("seg_example_adios.t2flow"), "{}").expect("imported");
    assert_eq!(imported.summary, "workflow Workflow2: 19 inputs, 4 processors, 24 links");
    assert_eq!(operations(&folder), ["convert2rt", "norm", "seg", "diff"]);
    let norm = json(&imported, "norm-stage.json");
    let mean = norm["tasks"][0]["parameters"][0].clone();
    assert_eq!(
        mean,
        serde_json::json!({ "name": "target_mean.0", "argument": "target_mean_0", "type": "real", "fixed": -0.632356 })
    );
}

#[test]
fn other_workflows_import_or_are_refused_with_element_and_line() {
    let Some(data) = data("other_workflows_import_or_are_refused_with_element_and_line") else { return };
    let refused = [
        (
            "as",
            ":33: processor ",
            ["\"Concatenate_two_strings\" (localworker, line ", "\"Echo_List\" (localworker, line "],
        ),
        ("beanshell-deps", ":2", ["\"A_C_workflow\" (beanshell, line ", "\"B_system\" (beanshell, line "]),
        ("fasta_pscan_and_dbfetch", ":2", ["\"pscan\" (soaplab, line ", "\"dbfetch\" (rest, line "]),
        ("helloanyone", ":", ["\"Concatenate_two_strings\" (localworker, line ", "is not allowed"]),
        (
            "iterationstrategies",
            ":",
            ["\"ColoursLisr\" (localworker, line ", "\"ShapeAnimals\" (localworker, line "],
        ),
        ("merge_fun", ":2", ["\"Echo_List\" (localworker, line ", "is not allowed"]),
    ];
    let mut lines = Vec::new();
    for (name, _, parts) in refused {
        let file = data.join(format!("{name}.t2flow"));
        let said = Folder::new().import(&file, "{}").expect_err("refused");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{name}: {said}");
        // The line of the message is that of the first processor.
        let first = said.split("line ").nth(1).and_then(|rest| rest.split(')').next()).expect("a line");
        assert!(said.starts_with(&format!("{}:{first}: processor \"", file.display())), "{said}");
        lines.push(first.to_owned());
    }
    // The name of a processor is on the line of the message.
    for ((name, _, parts), line) in refused.iter().zip(lines) {
        let text = std::fs::read_to_string(data.join(format!("{name}.t2flow"))).expect("a file");
        let line: usize = line.parse().expect("a number");
        let near: String = text.lines().skip(line - 1).take(2).collect();
        assert!(near.contains("<processor>"), "{name}: {parts:?}: {near}");
    }
    let folder = Folder::new();
    let imported =
        folder.import(&data.join("valid_component_imagemagickconvert.t2flow"), "{}").expect("imported");
    assert_eq!(imported.summary, "workflow Imagemagick_convert_: 3 inputs, 1 processors, 5 links");
    assert_eq!(operations(&folder), ["convert"]);
}

/// Map of the segmentation workflow to the operations of `nuclei`.
fn nuclei_map() -> String {
    let calls = descriptors::CALLS;
    format!(
        r#"{{
  "calls": {{
    "NormalizationComp": {{ "operation": "nuclei.normalize", "arguments": {{ "target_mean": null, "target_std": null }} }},
    "Segmentation": {{ "descriptor": "segmentation_desc" }},
    "DiffMaskComp": "compare.masks",
    {calls}
  }},
  "parameters": {{ "fillHolesConnectivity": {{ "values": [4, 8] }}, "maxSizeSeg": {{ "values": [1000, 900] }} }},
  "responses": {{ "diff": ["dice", "jaccard"] }}
}}"#
    )
}

#[test]
fn mapped_segmentation_is_nuclei() {
    let Some(data) = data("mapped_segmentation_is_nuclei") else { return };
    let folder = Folder::new();
    folder.write("segmentation_desc", &descriptors::segmentation());
    let file = data.join("seg_example_fgo-bucket-star.t2flow");
    folder.import(&file, &nuclei_map()).expect("imported");
    let workflow = Workflow::load(&folder.path("out/workflow.json"), &registry()).expect("a valid workflow");
    let nuclei = builtin::workflow("nuclei", &registry()).expect("built in").expect("valid");
    let tasks = |workflow: &Workflow| -> Vec<String> {
        let tasks = workflow.stages.iter().flat_map(|stage| &stage.tasks);
        tasks.map(|task| task.operation.clone()).filter(|name| name != "compare.objects").collect()
    };
    assert_eq!(tasks(&workflow), tasks(&nuclei));
    assert_eq!(workflow.parameters.len(), 15);
    for (name, own) in [("blue", "B"), ("fillHolesConnectivity", "FillHoles"), ("minSizePl", "minSizePl")] {
        let find = |workflow: &Workflow, name: &str| {
            workflow.parameters.iter().find(|of| of.name == name).map(|of| of.default).expect("a parameter")
        };
        assert_eq!(find(&workflow, name), find(&nuclei, own), "{name}");
    }
    // The study that the import writes is complete but for its images.
    let study = folder.path("out/study.toml");
    let text = std::fs::read_to_string(&study).expect("a study");
    let image =
        text.split("tiles = [\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a tile").to_owned();
    assert!(image.ends_with("image3.tiff"), "{text}");
    folder.write("out/tile.png", "");
    std::fs::write(&study, text.replace(&image, "tile.png")).expect("written");
    let study = Study::load(&study, &registry(), |_| None, &[]).expect("a valid study");
    assert_eq!(study.metric_name(), "dice");
    assert_eq!(study.method.kind(), "table");
}
