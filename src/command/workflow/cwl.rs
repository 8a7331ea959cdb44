//! `pleach workflow show --cwl`: one run of a workflow as a tool of the Common Workflow Language, version 1.2.

use crate::exit::{CommandError, CommandResult};
use pleach_regions::ElementType;
use pleach_workflow::{Domain, Value, ValueType, Workflow};
use serde_json::{Map, json};
use std::path::{Path, absolute};

/// File of the mask in the working folder of the tool.
const MASK: &str = "mask.png";

/// Stage switch of the stain normalization in built-in workflows.
const NORMALIZE: &str = "normalize";

/// Returns the tool. It calls `pleach segment` with a tile and a value for each parameter that is not fixed, and gives the mask.
///
/// # Errors
/// Returns an input error for a workflow that `pleach segment` does not run.
pub(super) fn tool(file: &Path, workflow: &Workflow) -> CommandResult<serde_json::Value> {
    let mut outputs = workflow.stages.iter().flat_map(|stage| &stage.outputs);
    if !outputs.any(|output| output.region.element == ElementType::Mask) {
        return Err(CommandError::Input(format!(
            "{}: no stage has an output of type {}; --cwl takes the workflows of pleach segment, which writes a mask",
            file.display(),
            ElementType::Mask
        )));
    }
    let mut inputs = Map::new();
    inputs.insert("tile".into(), json!({ "type": "File", "doc": "PNG, JPEG or TIFF" }));
    if workflow.stages.iter().flat_map(|stage| &stage.switch).any(|switch| switch.name == NORMALIZE) {
        let bound = json!({ "prefix": "--normalize" });
        let doc = "Normalize the stain first";
        inputs.insert(
            NORMALIZE.into(),
            json!({ "type": "boolean", "default": false, "doc": doc, "inputBinding": bound }),
        );
    }
    let mut arguments = vec![json!({ "valueFrom": "$(inputs.tile.path)" })];
    for parameter in &workflow.parameters {
        if matches!(parameter.domain, Domain::Fixed { .. }) {
            continue;
        }
        let (kind, default) = match (parameter.value_type, parameter.default) {
            (ValueType::Integer, Value::Integer(default)) => ("long", json!(default)),
            (_, default) => ("double", json!(default.as_f64())),
        };
        let doc = super::values(&parameter.domain);
        // Tile and parameters of one name would be one input.
        let name = format!("set_{}", parameter.name);
        arguments.push(
            json!({ "prefix": "--set", "valueFrom": format!("{}=$(inputs['{name}'])", parameter.name) }),
        );
        inputs.insert(name, json!({ "type": kind, "default": default, "doc": doc }));
    }
    let place = if file.exists() { absolute(file).map_err(CommandError::defect)? } else { file.to_owned() };
    arguments.push(json!({ "prefix": "--workflow", "valueFrom": place.display().to_string() }));
    arguments.push(json!({ "prefix": "--out", "valueFrom": MASK }));
    Ok(json!({
        "cwlVersion": "v1.2",
        "class": "CommandLineTool",
        "label": workflow.name,
        "doc": workflow.description,
        "baseCommand": ["pleach", "segment"],
        "inputs": inputs,
        "arguments": arguments,
        "outputs": { "mask": { "type": "File", "outputBinding": { "glob": MASK } } },
    }))
}
