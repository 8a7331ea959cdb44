//! Mistakes in the workflow file and between stages.

use crate::files::{Files, embedded, refused};
use crate::registry::{registry, shipped};
use pleach_workflow::{Workflow, stage_file};
use serde_json::json;

#[test]
fn invalid_stages_are_refused() {
    refused(
        |f| f.workflow()["stages"] = json!([]),
        "workflow.json#/stages: the list of stages is empty; at least one is needed",
    );
    refused(
        |f| f.comparison()["stage"] = json!("segmentation"),
        r#"workflow.json#/stages/2: two stages are named "segmentation"; names must be unique"#,
    );
    // Normalization reads a mask that segmentation computes from the normalized tile.
    refused(
        |f| f.normalization()["inputs"][0] = json!({ "region": "mask", "type": "mask" }),
        "workflow.json#/stages/1: stages depend on each other in a cycle: segmentation -> normalization -> segmentation",
    );
    refused(
        |f| {
            f.normalization()["inputs"] =
                json!([{ "region": "tile", "type": "bgr8" }, { "region": "reference", "type": "mask" }])
        },
        "workflow.json#/stages/1: stages depend on each other in a cycle: segmentation -> normalization -> segmentation",
    );
    refused(
        |f| f.comparison()["inputs"][0]["region"] = json!("masks"),
        r#"comparison.json#/inputs/0/region: region "masks" has no writer; known are tile, reference, normalized, mask, metrics, object_metrics"#,
    );
    refused(
        |f| f.comparison()["inputs"][0]["type"] = json!("gray8"),
        r#"comparison.json#/inputs/0/region: region "mask" holds mask, but gray8 is required by stage "comparison""#,
    );
    refused(
        |f| f.comparison()["outputs"][0]["region"] = json!("mask"),
        r#"comparison.json#/outputs/0/region: region "mask" already has a writer, stage "segmentation"; one writer is allowed"#,
    );
    refused(
        |f| f.comparison()["outputs"][0]["region"] = json!("tile"),
        r#"comparison.json#/outputs/0/region: region "tile" already has a writer, the workflow's inputs; one writer is allowed"#,
    );
    refused(
        |f| f.comparison()["outputs"][0]["region"] = json!("reference"),
        r#"comparison.json#/outputs/0/region: region "reference" already has a writer, the reference; one writer is allowed"#,
    );
    refused(
        |f| f.workflow()["inputs"].as_array_mut().unwrap().push(json!({ "region": "tile", "type": "bgr8" })),
        r#"workflow.json#/inputs/1/region: region "tile" already has a writer, the workflow's inputs; one writer is allowed"#,
    );
}

#[test]
fn invalid_switches_are_refused() {
    let stage = |f: &mut Files, key: &str, value| f.workflow()["stages"][0][key] = value;
    refused(
        |f| stage(f, "bypass", json!({})),
        r#"workflow.json#/stages/0/bypass: stage "normalization" can be switched off, but "bypass" names no replacement for its output "normalized""#,
    );
    refused(
        |f| stage(f, "bypass", json!({ "normalized": "mask" })),
        r#"workflow.json#/stages/0/bypass/normalized: region "mask" cannot replace "normalized"; allowed are the inputs of the workflow: tile"#,
    );
    refused(
        |f| stage(f, "bypass", json!({ "normalized": "tile", "a/b": "tile" })),
        r#"workflow.json#/stages/0/bypass/a~1b: "bypass" names "a/b"; outputs of stages with a "switch" are allowed"#,
    );
    refused(
        |f| stage(f, "switch", json!(null)),
        r#"workflow.json#/stages/0/bypass/normalized: "bypass" names "normalized"; outputs of stages with a "switch" are allowed"#,
    );
    refused(
        |f| stage(f, "switch", json!("tiles")),
        r#"workflow.json#/stages/0/switch: two keys of [input] are named "tiles"; names must be unique"#,
    );
    refused(
        |f| {
            f.workflow()["inputs"].as_array_mut().unwrap().push(json!({ "region": "gray", "type": "gray8" }));
            stage(f, "bypass", json!({ "normalized": "gray" }))
        },
        r#"workflow.json#/stages/0/bypass/normalized: region "gray" holds gray8, but bgr8 is required by the bypass of "normalized""#,
    );
}

#[test]
fn invalid_response_and_reference_are_refused() {
    refused(
        |f| f.response(0)["region"] = json!("metric"),
        r#"workflow.json#/response/0/region: no stage writes region "metric" in every study; known are mask, metrics, object_metrics"#,
    );
    refused(
        |f| f.response(0)["region"] = json!("mask"),
        r#"workflow.json#/response/0/region: region "mask" holds mask, but table is required by the response"#,
    );
    refused(
        |f| f.response(0)["metrics"] = json!([]),
        "workflow.json#/response/0/metrics: the list of metrics is empty; at least one is needed",
    );
    refused(
        |f| f.response(0)["metrics"][1]["metric"] = json!("dice"),
        r#"workflow.json#/response/0/metrics/1/metric: two metrics are named "dice"; names must be unique"#,
    );
    refused(
        |f| f.response(0)["metrics"][1]["over_tiles"] = json!("median"),
        "workflow.json#/response/0/metrics/1/over_tiles: unknown value `median`, expected `mean` or `sum`",
    );
    // Comparison reads the reference, so it cannot provide it.
    refused(
        |f| f.workflow()["reference"]["output"] = json!("metrics"),
        "workflow.json#/stages/2: stages depend on each other in a cycle: comparison -> comparison",
    );
    let no_reader = |f: &mut Files| {
        f.comparison()["inputs"].as_array_mut().unwrap().pop();
        f.comparison()["tasks"][0]["reads"][1] = json!("mask");
    };
    refused(
        |f| {
            no_reader(f);
            f.workflow()["reference"]["output"] = json!("metrics")
        },
        r#"workflow.json#/reference/output: region "metrics" holds table, but mask is required by the reference"#,
    );
    // A study can switch off normalization, so no output of it can be the reference.
    refused(
        |f| f.workflow()["reference"]["output"] = json!("normalized"),
        r#"workflow.json#/reference/output: no stage writes region "normalized" in every study; known are mask, metrics, object_metrics"#,
    );
}

#[test]
fn invalid_response_lists_are_refused() {
    refused(
        |f| f.workflow()["response"] = json!([]),
        "workflow.json#/response: the list of responses is empty; at least one is needed",
    );
    refused(
        |f| f.workflow()["response"] = json!("metrics"),
        r#"workflow.json#/response: invalid type: string "metrics", expected a response object or a list of them"#,
    );
    refused(
        |f| f.response(1)["region"] = json!("objects"),
        r#"workflow.json#/response/1/region: no stage writes region "objects" in every study; known are mask, metrics, object_metrics"#,
    );
    // A study names a metric without its table, so names must be unique.
    refused(
        |f| f.response(1)["metrics"][2]["metric"] = json!("dice"),
        r#"workflow.json#/response/1/metrics/2/metric: two metrics are named "dice"; names must be unique"#,
    );
    // A single response needs no list.
    let mut files = Files::shipped();
    *files.workflow() = {
        let mut workflow = files.workflow().clone();
        workflow["response"] = workflow["response"][0].take();
        workflow
    };
    assert_eq!(files.load().expect("one response").alternatives.len(), 0);
    refused(
        |f| {
            f.workflow()["response"] = f.workflow()["response"][0].take();
            f.workflow()["response"]["metrics"] = json!([])
        },
        "workflow.json#/response/metrics: the list of metrics is empty; at least one is needed",
    );
}

#[test]
fn a_mask_passes_for_a_label_map_and_not_the_other_way_round() {
    // In the shipped workflow, the reference is a mask and the object comparison reads it as labels.
    let mut files = Files::shipped();
    files.object_comparison()["inputs"][1]["type"] = json!("mask");
    files.load().expect("the operation labels the mask");
    let labels = |f: &mut Files| {
        f.workflow()["inputs"].as_array_mut().unwrap().push(json!({ "region": "drawn", "type": "labels" }))
    };
    refused(
        |f| {
            labels(f);
            f.comparison()["inputs"][1] = json!({ "region": "drawn", "type": "mask" });
            f.comparison()["tasks"][0]["reads"][1] = json!("drawn")
        },
        r#"comparison.json#/inputs/1/region: region "drawn" holds labels, but mask is required by stage "comparison""#,
    );
    refused(
        |f| {
            labels(f);
            f.comparison()["inputs"][1] = json!({ "region": "drawn", "type": "labels" });
            f.comparison()["tasks"][0]["reads"][1] = json!("drawn")
        },
        r#"comparison.json#/tasks/0/reads/1: region "drawn" holds labels, but mask is required by input "reference" of operation "compare.masks""#,
    );
}

#[test]
fn workflow_file_of_wrong_structure_is_refused() {
    refused(
        |f| drop(f.workflow().as_object_mut().unwrap().remove("response")),
        "workflow.json: missing key `response`",
    );
    refused(
        |f| f.workflow()["author"] = json!("me"),
        "workflow.json#/author: unknown key `author`, expected one of `workflow`, `description`, `inputs`, `reference`, `stages`, `response`, `unread`, `operations`",
    );
    refused(
        |f| *f.workflow() = json!("nuclei"),
        r#"workflow.json: invalid type: string "nuclei", expected a workflow object"#,
    );
}

#[test]
fn non_json_text_is_refused_with_line_and_column() {
    let error = |text: &str| embedded(&[("workflow.json", text)]).expect_err("a mistake").to_string();
    assert_eq!(error(""), "workflow.json: the file ends within a value at line 1 column 0");
    let hole = "{\"workflow\": \"nuclei\",\n \"inputs\": [}";
    assert_eq!(error(hole), "workflow.json#/inputs/0: expected value at line 2 column 13");
    let twice = "{\"workflow\": \"a\",\n\"workflow\": \"b\"}";
    assert_eq!(error(twice), "workflow.json: duplicate key `workflow` at line 2 column 10");
    let more = format!("{}\n}}", Files::shipped().workflow());
    assert_eq!(error(&more), "workflow.json: trailing characters at line 2 column 1");
}

#[test]
fn missing_files_are_refused_by_name() {
    refused(
        |f| f.workflow()["stages"][1]["descriptor"] = json!("segmentatoin.json"),
        "segmentatoin.json: failed to read: entity not found",
    );
    assert_eq!(
        embedded(&[]).expect_err("no file").to_string(),
        "workflow.json: failed to read: entity not found"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("workflow.json");
    let message = format!("{}: failed to read: No such file or directory (os error 2)", missing.display());
    assert_eq!(Workflow::load(&missing, &registry()).expect_err("no file").to_string(), message);
    assert_eq!(stage_file(&missing, &registry()).expect_err("no file").to_string(), message);
    // A workflow without its stage files in the same folder.
    std::fs::copy(shipped(), &missing).expect("copied");
    let message = format!(
        "{}: failed to read: No such file or directory (os error 2)",
        folder.path().join("normalization.json").display()
    );
    assert_eq!(Workflow::load(&missing, &registry()).expect_err("no stages").to_string(), message);
    std::fs::write(&missing, [0xff, 0xfe]).expect("written");
    let message = format!(
        "{}: failed to read: line 1, column 1: byte 0xff is not UTF-8; text in UTF-8 is allowed",
        missing.display()
    );
    assert_eq!(Workflow::load(&missing, &registry()).expect_err("no text").to_string(), message);
}

#[test]
fn invalid_unread_parameters_are_refused() {
    let unread = |f: &mut Files, value| f.workflow()["unread"] = value;
    let dummy = json!({ "name": "dummy", "type": "real", "default": 0.5, "range": [0, 1] });
    refused(
        |f| unread(f, json!([{ "name": "G1" }])),
        r#"workflow.json#/unread/0: parameter "G1" is defined at segmentation.json#/tasks/2/parameters/0; unread parameters must have names of their own"#,
    );
    refused(
        |f| unread(f, json!([dummy, dummy])),
        r#"workflow.json#/unread/1: parameter "dummy" is defined at workflow.json#/unread/0; unread parameters must have names of their own"#,
    );
    refused(
        |f| unread(f, json!([{ "name": "dummy", "type": "real", "range": [0, 1] }])),
        r#"workflow.json#/unread/0: parameter "dummy" is defined without "default""#,
    );
    refused(
        |f| {
            unread(f, json!([dummy]));
            f.workflow()["unread"][0]["argument"] = json!("G1");
        },
        r#"workflow.json#/unread/0/argument: unread parameter "dummy" names an argument; only name, type, default and a domain are allowed"#,
    );
    refused(
        |f| unread(f, json!({ "name": "dummy" })),
        "workflow.json#/unread: invalid type: an object, expected a list",
    );
}
