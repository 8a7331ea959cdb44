//! Types and values of ports, which the region templates framework writes as JSON into the ports' descriptions.

use super::super::error::{Place, WorkflowImportError, WorkflowImportProblem, failed};
use super::xml::FlowPort;
use pleach_workflow::ValueType;
use serde_json::Value;
use std::path::Path;

/// Content of a port.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PortContent {
    /// A parameter with the values that it takes. Several are a sweep.
    Parameter(ValueType, Vec<f64>),
    /// Numbers that belong together, with the lists that they take.
    Array(Vec<Vec<f64>>),
    /// A data region, with the files that the port names.
    Region(Vec<String>),
    /// The port has no type.
    Untyped,
}

/// The allowed annotations, for messages.
const ALLOWED: &str =
    "{\"type\": \"integer\", \"float\", \"floatarray\" or \"rt\", \"values\": [...]} is allowed";

/// Reads the annotation of a port.
pub(super) fn content(file: &Path, port: &FlowPort) -> Result<PortContent, WorkflowImportError> {
    let Some(text) = port.texts.iter().find(|text| text.starts_with('{')) else {
        return Ok(PortContent::Untyped);
    };
    read(text).ok_or_else(|| {
        let problem = WorkflowImportProblem::Element {
            element: "port",
            name: port.name.clone(),
            found: text.clone(),
            allowed: ALLOWED.to_owned(),
        };
        failed(file, Place::Line(port.line), problem)
    })
}

/// Reads an annotation. Returns `None` if it is neither JSON of the known types nor the short form of arrays.
fn read(text: &str) -> Option<PortContent> {
    let Ok(json) = serde_json::from_str::<Value>(text) else {
        return short_array(text);
    };
    let values = match json.get("values").or(json.get("value")) {
        None => Vec::new(),
        Some(Value::Array(values)) => values.clone(),
        Some(one) => vec![one.clone()],
    };
    let numbers = |list: &[Value]| list.iter().map(number).collect::<Option<Vec<f64>>>();
    match json.get("type")?.as_str()? {
        "integer" | "int" | "uchar" => Some(PortContent::Parameter(ValueType::Integer, numbers(&values)?)),
        "float" | "double" | "real" => Some(PortContent::Parameter(ValueType::Real, numbers(&values)?)),
        "floatarray" | "float_array" | "array" => Some(PortContent::Array(arrays(&values)?)),
        "rt" | "dr" => {
            let files: Option<Vec<String>> =
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            Some(PortContent::Region(files?))
        }
        _ => None,
    }
}

/// Returns the arrays of an annotation: a list of lists, one list, or `{"type": …, "value": [...]}`.
fn arrays(values: &[Value]) -> Option<Vec<Vec<f64>>> {
    let array = |value: &Value| -> Option<Vec<f64>> {
        let list = value.as_array().or_else(|| value.get("values").or(value.get("value"))?.as_array())?;
        list.iter().map(number).collect()
    };
    if !values.is_empty() && values.iter().all(|value| number(value).is_some()) {
        return Some(vec![values.iter().filter_map(number).collect()]);
    }
    let arrays: Vec<Vec<f64>> = values.iter().map(array).collect::<Option<_>>()?;
    let is_even = arrays.windows(2).all(|pair| pair[0].len() == pair[1].len());
    is_even.then_some(arrays)
}

/// Reads `{array, float, [1, 2]}`, a form without quotation marks in files of the framework.
fn short_array(text: &str) -> Option<PortContent> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut parts = inner.splitn(3, ',').map(str::trim);
    if parts.next()? != "array" || !["float", "double"].contains(&parts.next()?) {
        return None;
    }
    let list: Vec<f64> = serde_json::from_str(parts.next()?).ok()?;
    Some(PortContent::Array(vec![list]))
}

/// Returns a number, which the framework also writes as a text.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_of_both_versions_are_read() {
        let integers = |values: &[f64]| Some(PortContent::Parameter(ValueType::Integer, values.to_vec()));
        assert_eq!(read(r#"{"type":"integer", "values":[1000, 111]}"#), integers(&[1000.0, 111.0]));
        assert_eq!(read(r#"{"type":"integer", "value":"80"}"#), integers(&[80.0]));
        assert_eq!(
            read(r#"{"type":"float","values":[]}"#),
            Some(PortContent::Parameter(ValueType::Real, vec![]))
        );
        let array = || Some(PortContent::Array(vec![vec![1.0, -2.5]]));
        assert_eq!(read(r#"{"type":"floatarray", "values":[[1, -2.5]]}"#), array());
        assert_eq!(read(r#"{"type":"array", "value":{"type":"float", "value":["1", "-2.5"]}}"#), array());
        assert_eq!(read("{array, float, [1, -2.5]}"), array());
        let region = PortContent::Region(vec!["a.tiff".to_owned()]);
        assert_eq!(read(r#"{"type":"rt", "values":["a.tiff"]}"#), Some(region));
    }

    #[test]
    fn other_annotations_are_refused() {
        for text in [
            r#"{"type":"integer", "values":["x"]}"#,
            r#"{"type":"text", "values":["x"]}"#,
            r#"{"values":[1]}"#,
            r#"{"type":"floatarray", "values":[[1, 2], [3]]}"#,
            r#"{"type":"float", "value":"inf"}"#,
            "{array, text, [1]}",
            "{remark}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
