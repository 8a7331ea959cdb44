//! Mistakes within one stage descriptor.

use crate::files::{Files, refused};
use crate::registry::shipped;
use pleach_regions::ElementType;
use pleach_workflow::{Registry, Workflow};
use serde_json::json;

#[test]
fn unknown_operations_are_refused() {
    refused(
        |f| f.task(2)["operation"] = json!("nuclei.reconstruckt"),
        r#"segmentation.json#/tasks/1/operation: operation "nuclei.reconstruckt" is unknown; known are compare.masks, compare.objects, nuclei.background, nuclei.candidate-area, nuclei.candidates, nuclei.final-area, nuclei.normalize, nuclei.nuclei, nuclei.reconstruct, nuclei.separate"#,
    );
    refused(
        |f| f.task(2)["version"] = json!(3),
        r#"segmentation.json#/tasks/1/version: operation "nuclei.reconstruct" has no version 3; known are 1"#,
    );
}

#[test]
fn empty_registry_refuses_every_operation() {
    let error = Workflow::load(&shipped(), &Registry::default()).expect_err("nothing to run it with");
    assert_eq!(error.pointer, "/tasks/0/operation");
    assert_eq!(error.problem.to_string(), r#"operation "nuclei.normalize" is unknown; known are none"#);
}

/// Every element type of data regions may be declared, and must match the type of the written region.
#[test]
fn every_element_type_is_accepted_and_checked() {
    for element in ElementType::ALL.into_iter().filter(|element| *element != ElementType::Table) {
        let said = format!(
            r#"comparison.json#/outputs/0/region: region "metrics" holds table, but {element} is required by the outputs of stage "comparison""#
        );
        refused(|f| f.comparison()["outputs"][0]["type"] = json!(element.name()), &said);
    }
}

#[test]
fn invalid_tasks_and_regions_are_refused() {
    refused(
        |f| f.segmentation()["tasks"] = json!([]),
        "segmentation.json#/tasks: the list of tasks is empty; at least one is needed",
    );
    refused(
        |f| f.task(2)["task"] = json!("t1"),
        r#"segmentation.json#/tasks/1/task: two tasks are named "t1"; names must be unique"#,
    );
    // t4 reads a region that t6 computes from t4's output.
    refused(
        |f| f.task(4)["reads"][0] = json!("seg_nonoverlap"),
        "segmentation.json#/tasks/4: tasks depend on each other in a cycle: t5 -> t6 -> t4 -> t5",
    );
    refused(
        |f| f.task(4)["reads"][0] = json!("bw1_t"),
        "segmentation.json#/tasks/3: tasks depend on each other in a cycle: t4 -> t4",
    );
    refused(
        |f| f.task(4)["reads"][0] = json!("bw2"),
        r#"segmentation.json#/tasks/3/reads/0: region "bw2" has no writer; known are normalized, rbc, background, rc, recon, diff, bw1, bw1_t, seg_open, seg_nonoverlap, mask"#,
    );
    refused(
        |f| f.task(6)["writes"][0] = json!("rbc"),
        r#"segmentation.json#/tasks/5/writes/0: region "rbc" already has a writer, task "t1"; one writer is allowed"#,
    );
    refused(
        |f| f.task(6)["writes"][0] = json!("normalized"),
        r#"segmentation.json#/tasks/5/writes/0: region "normalized" already has a writer, the stage's inputs; one writer is allowed"#,
    );
    refused(
        |f| f.task(4)["reads"][0] = json!("rc"),
        r#"segmentation.json#/tasks/3/reads/0: region "rc" holds gray8, but mask is required by input "bw1" of operation "nuclei.candidate-area""#,
    );
    refused(
        |f| f.task(5)["reads"] = json!(["diff", "bw1_t", "rbc"]),
        r#"segmentation.json#/tasks/4/reads: operation "nuclei.nuclei" reads 4 regions (diff, bw1_t, rbc, background); 3 given"#,
    );
    refused(
        |f| f.task(4)["writes"] = json!(["bw1_t", "more"]),
        r#"segmentation.json#/tasks/3/writes: operation "nuclei.candidate-area" writes 1 region (bw1_t); 2 given"#,
    );
    refused(
        |f| f.comparison()["outputs"] = json!([]),
        "comparison.json#/outputs: the list of outputs is empty; at least one is needed",
    );
    refused(
        |f| f.comparison()["outputs"][0]["region"] = json!("metric"),
        r#"comparison.json#/outputs/0/region: output "metric" has no writer in this stage"#,
    );
    refused(
        |f| f.segmentation()["tasks"][6]["writes"][0] = json!("masks"),
        r#"segmentation.json#/outputs/0/region: output "mask" has no writer in this stage"#,
    );
    refused(
        |f| f.comparison()["outputs"][0]["type"] = json!("mask"),
        r#"comparison.json#/outputs/0/region: region "metrics" holds table, but mask is required by the outputs of stage "comparison""#,
    );
}

#[test]
fn invalid_arguments_are_refused() {
    refused(
        |f| f.task(3)["parameters"][0]["name"] = json!("G3"),
        r#"segmentation.json#/tasks/2/parameters/0: operation "nuclei.candidates" has no argument "G3"; it has G1, FillHoles"#,
    );
    refused(
        |f| f.task(3)["parameters"][0]["argument"] = json!("G9"),
        r#"segmentation.json#/tasks/2/parameters/0: operation "nuclei.candidates" has no argument "G9"; it has G1, FillHoles"#,
    );
    refused(
        |f| f.normalization()["tasks"][0]["parameters"] = json!([{ "name": "G3" }]),
        r#"normalization.json#/tasks/0/parameters/0: operation "nuclei.normalize" has no argument "G3"; it has none"#,
    );
    refused(
        |f| drop(f.task(3)["parameters"].as_array_mut().unwrap().pop()),
        r#"segmentation.json#/tasks/2/parameters: argument "FillHoles" of operation "nuclei.candidates" has no parameter"#,
    );
    refused(
        |f| drop(f.task(3).as_object_mut().unwrap().remove("parameters")),
        r#"segmentation.json#/tasks/2/parameters: argument "G1" of operation "nuclei.candidates" has no parameter"#,
    );
    refused(
        |f| f.task(7)["parameters"][1]["argument"] = json!("minSizeSeg"),
        r#"segmentation.json#/tasks/6/parameters/1: argument "minSizeSeg" is given twice"#,
    );
    refused(
        |f| f.task(3)["parameters"][0]["type"] = json!("real"),
        r#"segmentation.json#/tasks/2/parameters/0: parameter "G1" is of type real, but operation "nuclei.candidates" requires type integer"#,
    );
}

#[test]
fn invalid_parameters_are_refused() {
    let g1 = |f: &mut Files, key: &str, value| f.task(3)["parameters"][0][key] = value;
    let without =
        |f: &mut Files, key: &str| drop(f.task(3)["parameters"][0].as_object_mut().unwrap().remove(key));
    refused(
        |f| g1(f, "range", json!([80, 5])),
        r#"segmentation.json#/tasks/2/parameters/0/range: parameter "G1": range [80, 5] is empty; the first number must be below the second"#,
    );
    refused(
        |f| g1(f, "range", json!([5, 5])),
        r#"segmentation.json#/tasks/2/parameters/0/range: parameter "G1": range [5, 5] is empty; the first number must be below the second"#,
    );
    refused(
        |f| g1(f, "range", json!([5.5, 80])),
        r#"segmentation.json#/tasks/2/parameters/0/range: parameter "G1": 5.5 is not an integer; the parameter allows integers"#,
    );
    refused(
        |f| g1(f, "range", json!([5])),
        r#"segmentation.json#/tasks/2/parameters/0/range: parameter "G1": "range" holds 1 number; [smallest, largest] is allowed"#,
    );
    refused(
        |f| g1(f, "range", json!([5, 10, 20])),
        r#"segmentation.json#/tasks/2/parameters/0/range: parameter "G1": "range" holds 3 numbers; [smallest, largest] is allowed"#,
    );
    refused(
        |f| g1(f, "step", json!(7)),
        r#"segmentation.json#/tasks/2/parameters/0/step: parameter "G1": step 7 does not divide the range from 5 to 80; a positive divisor of 75 is allowed"#,
    );
    refused(
        |f| g1(f, "step", json!(0)),
        r#"segmentation.json#/tasks/2/parameters/0/step: parameter "G1": step 0 does not divide the range from 5 to 80; a positive divisor of 75 is allowed"#,
    );
    refused(
        |f| g1(f, "step", json!(2.5)),
        r#"segmentation.json#/tasks/2/parameters/0/step: parameter "G1": 2.5 is not an integer; the parameter allows integers"#,
    );
    refused(
        |f| g1(f, "range", json!([0, 1_000_000_000])),
        r#"segmentation.json#/tasks/2/parameters/0/step: parameter "G1": 200000001 values are too many; up to 1000000 are allowed"#,
    );
    refused(
        |f| g1(f, "default", json!(80.5)),
        r#"segmentation.json#/tasks/2/parameters/0/default: parameter "G1": 80.5 is not an integer; the parameter allows integers"#,
    );
    refused(
        |f| g1(f, "values", json!([5, 80])),
        r#"segmentation.json#/tasks/2/parameters/0: parameter "G1" needs exactly one of "range", "values" and "fixed""#,
    );
    refused(
        |f| {
            without(f, "range");
            without(f, "step")
        },
        r#"segmentation.json#/tasks/2/parameters/0: parameter "G1" needs exactly one of "range", "values" and "fixed""#,
    );
    refused(
        |f| {
            without(f, "range");
            g1(f, "values", json!([5]))
        },
        r#"segmentation.json#/tasks/2/parameters/0/step: parameter "G1" has a "step" but no "range""#,
    );
    refused(
        |f| f.task(2)["parameters"][0]["values"] = json!([]),
        r#"segmentation.json#/tasks/1/parameters/0/values: parameter "MorphRecon": the list of values is empty; at least one is needed"#,
    );
    refused(
        |f| f.task(2)["parameters"][0]["values"] = json!([4, 8, 4]),
        r#"segmentation.json#/tasks/1/parameters/0/values: parameter "MorphRecon": value 4 is listed twice"#,
    );
    refused(
        |f| f.task(2)["parameters"][0]["values"] = json!([4, 7.5]),
        r#"segmentation.json#/tasks/1/parameters/0/values: parameter "MorphRecon": 7.5 is not an integer; the parameter allows integers"#,
    );
    refused(
        |f| {
            without(f, "range");
            without(f, "step");
            g1(f, "fixed", json!(1.5))
        },
        r#"segmentation.json#/tasks/2/parameters/0/fixed: parameter "G1": 1.5 is not an integer; the parameter allows integers"#,
    );
    refused(
        |f| without(f, "default"),
        r#"segmentation.json#/tasks/2/parameters/0: parameter "G1" is defined without "default""#,
    );
    refused(
        |f| without(f, "type"),
        r#"segmentation.json#/tasks/2/parameters/0: parameter "G1" is defined without "type""#,
    );
    refused(
        |f| f.task(3)["parameters"][1] = json!({ "name": "FillHoles" }),
        r#"segmentation.json#/tasks/2/parameters/1: parameter "FillHoles" is not defined by an earlier task; give "type", "default" and "range""#,
    );
    refused(
        |f| f.task(7)["parameters"][2] = f.task(3)["parameters"][1].clone(),
        r#"segmentation.json#/tasks/6/parameters/2: parameter "FillHoles" is already defined at segmentation.json#/tasks/2/parameters/1; name it here without a definition"#,
    );
    refused(
        |f| f.task(7)["parameters"][2]["step"] = json!(4),
        r#"segmentation.json#/tasks/6/parameters/2: parameter "FillHoles" is already defined at segmentation.json#/tasks/2/parameters/1; name it here without a definition"#,
    );
}

#[test]
fn values_of_wrong_json_type_are_refused() {
    refused(
        |f| f.task(2)["version"] = json!("1"),
        r#"segmentation.json#/tasks/1/version: invalid type: string "1", expected a whole number, 0 or more"#,
    );
    refused(
        |f| f.task(2)["version"] = json!(-1),
        "segmentation.json#/tasks/1/version: invalid value: integer `-1`, expected a whole number, 0 or more",
    );
    refused(
        |f| f.task(2)["version"] = json!(1.5),
        "segmentation.json#/tasks/1/version: invalid type: floating point `1.5`, expected a whole number, 0 or more",
    );
    refused(
        |f| f.task(2)["reads"] = json!("normalized"),
        r#"segmentation.json#/tasks/1/reads: invalid type: string "normalized", expected a list"#,
    );
    refused(
        |f| f.task(2)["reads"] = json!([7]),
        "segmentation.json#/tasks/1/reads/0: invalid type: integer `7`, expected a string",
    );
    refused(
        |f| f.task(2)["color"] = json!("red"),
        "segmentation.json#/tasks/1/color: unknown key `color`, expected one of `task`, `description`, `operation`, `version`, `parameters`, `reads`, `writes`",
    );
    refused(
        |f| drop(f.task(2).as_object_mut().unwrap().remove("writes")),
        "segmentation.json#/tasks/1: missing key `writes`",
    );
    refused(
        |f| f.task(2)["parameters"][0]["type"] = json!("int"),
        "segmentation.json#/tasks/1/parameters/0/type: unknown value `int`, expected `integer` or `real`",
    );
    refused(
        |f| f.task(2)["parameters"][0]["default"] = json!("8"),
        r#"segmentation.json#/tasks/1/parameters/0/default: invalid type: string "8", expected a number"#,
    );
    refused(
        |f| f.segmentation()["inputs"][0]["type"] = json!("rgb8"),
        "segmentation.json#/inputs/0/type: unknown value `rgb8`, expected one of `bgr8`, `gray8`, `mask`, `labels`, `table`, `array-u8`, `array-u16`, `array-i32`, `array-f32`, `array-f64`, `ragged-u8`, `ragged-u16`, `ragged-i32`, `ragged-f32`, `ragged-f64`, `points`, `polygons`, `objects`, `scalar`",
    );
    refused(
        |f| f.segmentation()["outputs"][0]["tier"] = json!("ram"),
        "segmentation.json#/outputs/0/tier: unknown value `ram`, expected one of `ssd`, `hdd`, `lustre`, `s3`",
    );
    refused(
        |f| f.segmentation()["outputs"][0]["durable"] = json!("yes"),
        r#"segmentation.json#/outputs/0/durable: invalid type: string "yes", expected a boolean"#,
    );
    refused(
        |f| *f.segmentation() = json!(7),
        "segmentation.json: invalid type: integer `7`, expected a stage object",
    );
    refused(
        |f| f.segmentation()["tasks"] = json!({ "t1": {} }),
        "segmentation.json#/tasks: invalid type: an object, expected a list",
    );
    refused(
        |f| f.task(2)["description"] = json!(["two", "texts"]),
        "segmentation.json#/tasks/1/description: invalid type: a list, expected a string",
    );
    refused(
        |f| *f.task(2) = json!("t2"),
        r#"segmentation.json#/tasks/1: invalid type: string "t2", expected a task object"#,
    );
    refused(
        |f| f.task(4)["reads"][0] = json!("two\nlines"),
        r#"segmentation.json#/tasks/3/reads/0: region "two lines" has no writer; known are normalized, rbc, background, rc, recon, diff, bw1, bw1_t, seg_open, seg_nonoverlap, mask"#,
    );
}
