//! Formats imported parameters as sections `[parameters.NAME]` of a study file.
//!
//! Names are those of the other program. The caller checks whether a workflow has these parameters.

use super::{Imported, ImportedParameter, ImportedRange};
use pleach_workflow::Distribution;
use std::fmt::Write;

/// Returns the sections, in the order of the parameters.
pub(super) fn of(imported: &Imported) -> String {
    let mut text = String::new();
    for parameter in &imported.parameters {
        // Writing to a `String` never fails.
        let _ = writeln!(text, "[parameters.{}]\n{}", key(&parameter.name), fields(parameter));
    }
    text
}

/// Returns a name as a TOML key: bare if possible, otherwise in quotes.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn fields(parameter: &ImportedParameter) -> String {
    let (low, high) = parameter.range.bounds();
    let mut fields = match &parameter.range {
        // Parameters with one value, and those that a grid keeps at their default.
        _ if parameter.rests() => return format!("fixed = {}\n", number(parameter.default())),
        ImportedRange::Reals { .. } | ImportedRange::Integers { .. } => range(low, high),
        ImportedRange::Set { values, .. } => {
            let values: Vec<String> = values.iter().map(|&value| number(value)).collect();
            format!("values = [{}]\n", values.join(", "))
        }
        ImportedRange::Distributed(distribution) => {
            let name = format!("distribution = \"{}\"\n", distribution.name());
            name + &match *distribution {
                Distribution::LogUniform { .. } => range(low, high),
                Distribution::Normal { mean, deviation } | Distribution::LogNormal { mean, deviation } => {
                    moments(mean, deviation)
                }
                Distribution::TruncatedNormal { mean, deviation, .. } => {
                    range(low, high) + &moments(mean, deviation)
                }
                Distribution::Triangular { mode, .. } => {
                    range(low, high) + &format!("mode = {}\n", number(mode))
                }
            }
        }
    };
    if let Some(initial) = parameter.initial {
        fields += &format!("default = {}\n", number(initial));
    }
    fields
}

fn range(low: f64, high: f64) -> String {
    format!("range = [{}, {}]\n", number(low), number(high))
}

fn moments(mean: f64, deviation: f64) -> String {
    format!("mean = {}\nstd = {}\n", number(mean), number(deviation))
}

/// Formats a number so that it reads back as the same. Whole numbers have no point, as integer parameters
/// require.
fn number(number: f64) -> String {
    if number.abs() < 1e15 { number.to_string() } else { format!("{number:e}") }
}
