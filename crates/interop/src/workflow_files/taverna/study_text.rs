//! The study file of an imported workflow, with the parameter sets that its ports sweep.

use super::super::draft::{ParameterDraft, WORKFLOW_FILE, WorkflowDraft};
use super::annotation::PortContent;
use super::sweep::Axis;
use pleach_workflow::ValueType;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const STUDY_FILE: &str = "study.toml";
const SETS_FILE: &str = "parameter-sets.csv";

/// Returns the files of the study. None without a parameter that has values.
pub(super) fn files(
    file: &Path,
    workflow: &WorkflowDraft,
    ports: &[(String, PortContent)],
    sets: Option<Axis>,
    notes: &mut Vec<String>,
) -> Vec<(String, String)> {
    let tasks = workflow.stages.iter().flat_map(|stage| &stage.tasks);
    let parameters: BTreeMap<&str, &ParameterDraft> = tasks
        .flat_map(|task| &task.parameters)
        .map(|parameter| (parameter.name.as_str(), parameter))
        .collect();
    let sets = sets.and_then(|axis| of_workflow(axis, &parameters)).or_else(|| {
        let all =
            parameters.values().filter_map(|parameter| Some((parameter.name.clone(), parameter.default?)));
        let (columns, row): (Vec<String>, Vec<f64>) = all.unzip();
        (!columns.is_empty()).then(|| Axis { columns, rows: vec![row] })
    });
    let Some(sets) = sets else {
        notes.push("no study file, because no parameter has a value".to_owned());
        return Vec::new();
    };
    notes.push(format!("{SETS_FILE}: {} parameter sets", sets.rows.len()));
    vec![
        (STUDY_FILE.to_owned(), study(file, workflow, ports)),
        (SETS_FILE.to_owned(), table(&sets, &parameters)),
    ]
}

/// Returns the axis without the parameters that the map has dropped.
fn of_workflow(axis: Axis, parameters: &BTreeMap<&str, &ParameterDraft>) -> Option<Axis> {
    let kept: Vec<usize> = (0..axis.columns.len())
        .filter(|place| parameters.contains_key(axis.columns[*place].as_str()))
        .collect();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for row in &axis.rows {
        let row: Vec<f64> = kept.iter().map(|place| row[*place]).collect();
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let columns = kept.iter().map(|place| axis.columns[*place].clone()).collect();
    (!kept.is_empty()).then_some(Axis { columns, rows })
}

fn table(sets: &Axis, parameters: &BTreeMap<&str, &ParameterDraft>) -> String {
    let mut text = format!("{}\n", sets.columns.join(","));
    for row in &sets.rows {
        let values = row.iter().zip(&sets.columns).map(|(value, column)| {
            let is_integer =
                parameters.get(column.as_str()).is_some_and(|of| of.value_type == ValueType::Integer);
            if is_integer { format!("{value:.0}") } else { format!("{value:?}") }
        });
        text += &values.collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

fn study(file: &Path, workflow: &WorkflowDraft, ports: &[(String, PortContent)]) -> String {
    let source = file.file_name().unwrap_or_default().to_string_lossy();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = workflow.name.chars().map(plain).collect();
    let quoted = |text: &str| toml_text(text);
    let mut text = format!("# Imported from {}.\n[study]\n", toml_text(&source));
    let _ = writeln!(
        text,
        "name = {}\nworkflow = \"{WORKFLOW_FILE}\"\n\n[input]",
        quoted(name.trim_start_matches('-'))
    );
    let reference = workflow.reference.as_ref().map(|((region, _), _)| region);
    let mut tiles = Vec::new();
    for (port, content) in ports {
        let PortContent::Region(files) = content else { continue };
        if reference == Some(port) {
            let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
            let _ = writeln!(text, "# Port {port} of the workflow: {}", files.join(", "));
        } else if tiles.is_empty() {
            tiles.extend(files.iter().map(|file| quoted(file)));
        }
    }
    if tiles.is_empty() {
        tiles.push("\"tiles/*.png\"".to_owned());
    }
    let _ = writeln!(text, "tiles = [{}]", tiles.join(", "));
    if reference.is_some() {
        text += "# Or a folder with the reference of each tile.\nreference = \"defaults\"\n";
    }
    let metric = workflow.responses.first().and_then(|(_, metrics)| metrics.first());
    let _ = writeln!(
        text,
        "\n# The values of the workflow's ports. A screening needs ranges instead, as in\n# [parameters.NAME]\n# range = [5, 80]\n\
         [method]\nkind = \"table\"\nfile = \"{SETS_FILE}\"\n\n[response]\nmetric = {}",
        quoted(metric.map_or("", String::as_str))
    );
    text
}

/// Returns a text as a TOML string.
fn toml_text(text: &str) -> String {
    // JSON strings without control characters are TOML strings.
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    serde_json::Value::from(plain).to_string()
}
