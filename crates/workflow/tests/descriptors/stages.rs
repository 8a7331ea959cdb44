//! Mistakes within one stage descriptor.

use crate::files::{Files, refused};
use serde_json::json;

#[test]
fn operations() {
    refused(|f| f.task(2)["operation"] = json!("nuclei.reconstruckt"), "?");
    refused(|f| f.task(2)["version"] = json!(3), "?");
}

#[test]
fn tasks_and_regions() {
    refused(|f| f.segmentation()["tasks"] = json!([]), "?");
    refused(|f| f.task(2)["task"] = json!("t1"), "?");
    // t4 reads what t6 makes of it.
    refused(|f| f.task(4)["reads"][0] = json!("seg_nonoverlap"), "?");
    refused(|f| f.task(4)["reads"][0] = json!("bw1_t"), "?");
    refused(|f| f.task(4)["reads"][0] = json!("bw2"), "?");
    refused(|f| f.task(6)["writes"][0] = json!("rbc"), "?");
    refused(|f| f.task(6)["writes"][0] = json!("normalized"), "?");
    refused(|f| f.task(4)["reads"][0] = json!("rc"), "?");
    refused(|f| f.task(5)["reads"] = json!(["diff", "bw1_t", "rbc"]), "?");
    refused(|f| f.task(4)["writes"] = json!(["bw1_t", "more"]), "?");
    refused(|f| f.comparison()["outputs"] = json!([]), "?");
    refused(|f| f.comparison()["outputs"][0]["region"] = json!("metric"), "?");
    refused(|f| f.segmentation()["tasks"][6]["writes"][0] = json!("masks"), "?");
    refused(|f| f.comparison()["outputs"][0]["type"] = json!("mask"), "?");
}

#[test]
fn arguments() {
    refused(|f| f.task(3)["parameters"][0]["name"] = json!("G3"), "?");
    refused(|f| f.task(3)["parameters"][0]["argument"] = json!("G9"), "?");
    refused(|f| f.normalization()["tasks"][0]["parameters"] = json!([{ "name": "G3" }]), "?");
    refused(|f| drop(f.task(3)["parameters"].as_array_mut().unwrap().pop()), "?");
    refused(|f| drop(f.task(3).as_object_mut().unwrap().remove("parameters")), "?");
    refused(|f| f.task(7)["parameters"][1]["argument"] = json!("minSizeSeg"), "?");
    refused(|f| f.task(3)["parameters"][0]["type"] = json!("real"), "?");
}

#[test]
fn parameters() {
    let g1 = |f: &mut Files, key: &str, value| f.task(3)["parameters"][0][key] = value;
    let without =
        |f: &mut Files, key: &str| drop(f.task(3)["parameters"][0].as_object_mut().unwrap().remove(key));
    refused(|f| g1(f, "range", json!([80, 5])), "?");
    refused(|f| g1(f, "range", json!([5, 5])), "?");
    refused(|f| g1(f, "range", json!([5.5, 80])), "?");
    refused(|f| g1(f, "range", json!([5])), "?");
    refused(|f| g1(f, "range", json!([5, 10, 20])), "?");
    refused(|f| g1(f, "step", json!(7)), "?");
    refused(|f| g1(f, "step", json!(0)), "?");
    refused(|f| g1(f, "step", json!(2.5)), "?");
    refused(|f| g1(f, "range", json!([0, 1_000_000_000])), "?");
    refused(|f| g1(f, "default", json!(80.5)), "?");
    refused(|f| g1(f, "values", json!([5, 80])), "?");
    refused(
        |f| {
            without(f, "range");
            without(f, "step")
        },
        "?",
    );
    refused(
        |f| {
            without(f, "range");
            g1(f, "values", json!([5]))
        },
        "?",
    );
    refused(|f| f.task(2)["parameters"][0]["values"] = json!([]), "?");
    refused(|f| f.task(2)["parameters"][0]["values"] = json!([4, 8, 4]), "?");
    refused(|f| f.task(2)["parameters"][0]["values"] = json!([4, 7.5]), "?");
    refused(
        |f| {
            without(f, "range");
            without(f, "step");
            g1(f, "fixed", json!(1.5))
        },
        "?",
    );
    refused(|f| without(f, "default"), "?");
    refused(|f| without(f, "type"), "?");
    refused(|f| f.task(3)["parameters"][1] = json!({ "name": "FillHoles" }), "?");
    refused(|f| f.task(7)["parameters"][2] = f.task(3)["parameters"][1].clone(), "?");
    refused(|f| f.task(7)["parameters"][2]["step"] = json!(4), "?");
}

#[test]
fn json() {
    refused(|f| f.task(2)["version"] = json!("1"), "?");
    refused(|f| f.task(2)["version"] = json!(-1), "?");
    refused(|f| f.task(2)["version"] = json!(1.5), "?");
    refused(|f| f.task(2)["reads"] = json!("normalized"), "?");
    refused(|f| f.task(2)["reads"] = json!([7]), "?");
    refused(|f| f.task(2)["colour"] = json!("red"), "?");
    refused(|f| drop(f.task(2).as_object_mut().unwrap().remove("writes")), "?");
    refused(|f| f.task(2)["parameters"][0]["type"] = json!("int"), "?");
    refused(|f| f.task(2)["parameters"][0]["default"] = json!("8"), "?");
    refused(|f| f.segmentation()["inputs"][0]["type"] = json!("rgb8"), "?");
    refused(|f| *f.segmentation() = json!(7), "?");
    refused(|f| f.segmentation()["tasks"] = json!({ "t1": {} }), "?");
    refused(|f| f.task(2)["description"] = json!(["two", "texts"]), "?");
    refused(|f| *f.task(2) = json!("t2"), "?");
    refused(|f| f.task(4)["reads"][0] = json!("two\nlines"), "?");
}
