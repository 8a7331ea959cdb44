//! Wording of study files: names of types in messages, and messages of invalid fields.

use super::{StudyError, StudyProblem};
use crate::toml_fields::{FieldError, FieldProblem, Section};
use toml::Value;

pub(super) const TEXT: &str = "a text";
pub(super) const TEXTS: &str = "a list of texts";
pub(super) const SWITCH: &str = "true or false";
pub(super) const NUMBER: &str = "a number";
pub(super) const NUMBERS: &str = "a list of numbers";
pub(super) const SECTION: &str = "a section";
const INTEGER: &str = "a whole number";

/// Fails with a problem of a field.
pub(super) fn fail<T>(
    section: &Section<'_>,
    key: &str,
    problem: impl Into<StudyProblem>,
) -> Result<T, StudyError> {
    let (file, field) = section.at(key);
    Err(StudyError::Field { file, field, problem: Box::new(problem.into()) })
}

pub(super) fn needed_section<'a>(parent: &Section<'a>, key: &str) -> Result<Section<'a>, FieldError> {
    parent.needed(key, parent.section(key, SECTION)?, "this section")
}

pub(super) fn needed_texts<'a>(section: &Section<'a>, key: &str) -> Result<Vec<&'a str>, FieldError> {
    section.needed(key, section.list(key, TEXTS, Value::as_str)?, TEXTS)
}

pub(super) fn needed_number(section: &Section<'_>, key: &str) -> Result<f64, FieldError> {
    section.needed(key, section.number(key, NUMBER)?, NUMBER)
}

pub(super) fn needed_integer(
    section: &Section<'_>,
    key: &str,
    low: u64,
    high: u64,
) -> Result<u64, FieldError> {
    section.needed(key, section.integer(key, low, high)?, INTEGER)
}

/// Returns the message of a problem.
pub(super) fn worded(problem: &FieldProblem) -> String {
    let wrong_type = |found: &Value, allowed: &str| {
        let found = match found {
            Value::Table(_) => "a section".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::String(text) => format!("the text \"{text}\""),
            other => other.to_string(),
        };
        format!("{found} has the wrong type; allowed: {allowed}")
    };
    match problem {
        FieldProblem::Missing(needed) => format!("missing; {needed} is needed"),
        FieldProblem::Unknown(_) => problem.to_string(),
        FieldProblem::WrongValue { found, allowed } => wrong_type(found, allowed),
        FieldProblem::WrongInteger { found: found @ Value::Integer(_), low, high } => {
            // TOML integers end at 2^63 - 1, so the message omits an upper bound beyond it.
            let is_bounded = *high <= i64::MAX as u64;
            let allowed = if is_bounded { format!("{low} to {high}") } else { format!("{low} or more") };
            format!("{found} is not allowed; allowed: {allowed}")
        }
        FieldProblem::WrongInteger { found, .. } => wrong_type(found, INTEGER),
        FieldProblem::NotAllowed { value, allowed } => format!("{value} is not allowed; allowed: {allowed}"),
    }
}

impl From<FieldError> for StudyError {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Unreadable { file, cause } => Self::Unreadable { file, cause },
            FieldError::Malformed { file, line, column, message } => {
                Self::Malformed { file, line, column, message }
            }
            FieldError::Field { file, field, problem } => {
                Self::Field { file, field, problem: Box::new(StudyProblem::Field(*problem)) }
            }
        }
    }
}
