//! Mistakes in the workflow file and between stages.

use crate::files::{Files, embedded, refused};
use crate::registry::registry;
use pleach_workflow::{Workflow, stage_file};
use serde_json::json;

#[test]
fn stages() {
    refused(|f| f.workflow()["stages"] = json!([]), "?");
    refused(|f| f.comparison()["stage"] = json!("segmentation"), "?");
    // Normalization reads a mask that segmentation makes of its result.
    refused(|f| f.normalization()["inputs"][0] = json!({ "region": "mask", "type": "mask" }), "?");
    refused(
        |f| {
            f.normalization()["inputs"] =
                json!([{ "region": "tile", "type": "bgr8" }, { "region": "reference", "type": "mask" }])
        },
        "?",
    );
    refused(|f| f.comparison()["inputs"][0]["region"] = json!("masks"), "?");
    refused(|f| f.comparison()["inputs"][0]["type"] = json!("gray8"), "?");
    refused(|f| f.comparison()["outputs"][0]["region"] = json!("mask"), "?");
    refused(|f| f.comparison()["outputs"][0]["region"] = json!("tile"), "?");
    refused(|f| f.comparison()["outputs"][0]["region"] = json!("reference"), "?");
    refused(
        |f| f.workflow()["inputs"].as_array_mut().unwrap().push(json!({ "region": "tile", "type": "bgr8" })),
        "?",
    );
}

#[test]
fn switches() {
    let stage = |f: &mut Files, key: &str, value| f.workflow()["stages"][0][key] = value;
    refused(|f| stage(f, "bypass", json!({})), "?");
    refused(|f| stage(f, "bypass", json!({ "normalized": "mask" })), "?");
    refused(|f| stage(f, "bypass", json!({ "normalized": "tile", "a/b": "tile" })), "?");
    refused(|f| stage(f, "switch", json!(null)), "?");
    refused(|f| stage(f, "switch", json!("tiles")), "?");
    refused(
        |f| {
            f.workflow()["inputs"].as_array_mut().unwrap().push(json!({ "region": "grey", "type": "gray8" }));
            stage(f, "bypass", json!({ "normalized": "grey" }))
        },
        "?",
    );
}

#[test]
fn response_and_reference() {
    refused(|f| f.workflow()["response"]["region"] = json!("metric"), "?");
    refused(|f| f.workflow()["response"]["region"] = json!("mask"), "?");
    refused(|f| f.workflow()["response"]["metrics"] = json!([]), "?");
    refused(|f| f.workflow()["response"]["metrics"][1]["metric"] = json!("dice"), "?");
    refused(|f| f.workflow()["response"]["metrics"][1]["over_tiles"] = json!("median"), "?");
    // Comparison reads the reference, so it cannot be it.
    refused(|f| f.workflow()["reference"]["output"] = json!("metrics"), "?");
    let no_reader = |f: &mut Files| {
        f.comparison()["inputs"].as_array_mut().unwrap().pop();
        f.comparison()["tasks"][0]["reads"][1] = json!("mask");
    };
    refused(
        |f| {
            no_reader(f);
            f.workflow()["reference"]["output"] = json!("metrics")
        },
        "?",
    );
    // A study can leave normalization out, so nothing can be measured there.
    refused(|f| f.workflow()["reference"]["output"] = json!("normalized"), "?");
}

#[test]
fn files() {
    refused(|f| f.workflow()["stages"][1]["descriptor"] = json!("segmentatoin.json"), "?");
    refused(|f| drop(f.workflow().as_object_mut().unwrap().remove("response")), "?");
    refused(|f| f.workflow()["author"] = json!("me"), "?");
    refused(|f| *f.workflow() = json!("nuclei"), "?");
    let error = |text: &str| embedded(&[("workflow.json", text)]).unwrap_err().to_string();
    println!("{}", error(""));
    println!("{}", error("{\"workflow\": \"nuclei\",\n \"inputs\": [}"));
    let whole = Files::shipped().workflow().to_string();
    println!("{}", error(&format!("{whole}}}")));
    println!("{}", error("{\"workflow\": \"a\", \"workflow\": \"b\"}"));
    println!("{}", embedded(&[]).unwrap_err());
    let missing = std::path::Path::new("/nowhere/workflow.json");
    println!("{}", Workflow::load(missing, &registry()).unwrap_err());
    println!("{}", stage_file(missing, &registry()).unwrap_err());
    println!("{}", stage_file(std::path::Path::new("/"), &registry()).unwrap_err());
}
