//! Reader of TOML fields. Errors name the file, the field, its value and the allowed values. Fields that the
//! caller did not request are unknown.
//!
//! This module does not interpret values.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::{Table, Value};

/// Error in a file, with its position.
#[derive(Debug, Error)]
pub enum FieldError {
    /// The file cannot be read, is too long or is not UTF-8.
    #[error("{}: failed to read: {cause}", file.display())]
    Unreadable {
        /// Path of the file.
        file: PathBuf,
        /// Error of the operating system, or of the size and encoding checks.
        cause: std::io::Error,
    },
    /// The file is not valid TOML.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Malformed {
        /// Path of the file.
        file: PathBuf,
        /// Line of the error, from 1.
        line: usize,
        /// Column of the error in characters, from 1.
        column: usize,
        /// Message of the parser and the allowed syntax, on one line.
        message: String,
    },
    /// A field is missing, unknown, or has a value that is not allowed.
    #[error("{}: {field}: {problem}", file.display())]
    Field {
        /// Path of the file.
        file: PathBuf,
        /// Name of the field after the names of its tables, such as `pool 1.cores`.
        field: String,
        /// Kind of the problem.
        problem: Box<FieldProblem>,
    },
}

/// Kinds of invalid fields.
#[derive(Debug, Error)]
pub enum FieldProblem {
    /// A required field is missing.
    #[error("missing; {allowed}")]
    Missing {
        /// Description of the allowed values.
        allowed: String,
    },
    /// The table has no field of this name.
    #[error("unknown; known are {}", known.join(", "))]
    Unknown {
        /// Names of the table's allowed fields.
        known: Vec<String>,
    },
    /// The value has the wrong type, is out of range, or is taken by another table.
    #[error("{value} is not allowed; {allowed}")]
    Value {
        /// Value as displayed. Texts are quoted.
        value: String,
        /// Description of the allowed values.
        allowed: String,
    },
}

/// Parsed file.
#[derive(Debug)]
pub struct Document {
    file: PathBuf,
    table: Table,
}

impl Document {
    /// # Errors
    /// [`FieldError`] if the file cannot be read or is not valid TOML.
    pub fn read(file: &Path) -> Result<Self, FieldError> {
        let unreadable = |cause| FieldError::Unreadable { file: file.to_owned(), cause };
        let text = pleach_workflow::text::read(file).map_err(unreadable)?;
        let table = text.parse().map_err(|error: toml::de::Error| {
            let (line, column, message) = pleach_workflow::text::toml_mistake(&text, &error);
            FieldError::Malformed { file: file.to_owned(), line, column, message }
        })?;
        Ok(Self { file: file.to_owned(), table })
    }

    /// Returns the top-level table.
    pub fn root(&self) -> Section<'_> {
        Section { file: &self.file, path: String::new(), table: &self.table, requested: RefCell::default() }
    }
}

/// Table of a file, with its path.
#[derive(Debug)]
pub struct Section<'a> {
    file: &'a Path,
    path: String,
    table: &'a Table,
    requested: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    fn field(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn error(&self, key: &str, problem: FieldProblem) -> FieldError {
        FieldError::Field { file: self.file.to_owned(), field: self.field(key), problem: Box::new(problem) }
    }

    /// Returns the error for a value that is not allowed.
    pub fn wrong(&self, key: &str, value: &str, allowed: &str) -> FieldError {
        self.error(key, FieldProblem::Value { value: value.to_owned(), allowed: allowed.to_owned() })
    }

    /// Returns the error for a missing field.
    pub fn missing(&self, key: &str, allowed: &str) -> FieldError {
        self.error(key, FieldProblem::Missing { allowed: allowed.to_owned() })
    }

    fn get(&self, key: &'static str) -> Option<&'a Value> {
        let mut asked = self.requested.borrow_mut();
        if !asked.contains(&key) {
            asked.push(key);
        }
        self.table.get(key)
    }

    /// Returns a text field. `None` if it is missing.
    pub fn text(&self, key: &'static str, allowed: &str) -> Result<Option<&'a str>, FieldError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, &shown(other), allowed)),
        }
    }

    /// Returns a required text field.
    pub fn needed_text(&self, key: &'static str, allowed: &str) -> Result<&'a str, FieldError> {
        self.text(key, allowed)?.ok_or_else(|| self.missing(key, allowed))
    }

    /// Returns a number in `low` to `high`. `allowed` describes the range in errors. `None` if it is missing.
    pub fn number(
        &self,
        key: &'static str,
        [low, high]: [f64; 2],
        allowed: &str,
    ) -> Result<Option<f64>, FieldError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = match value {
            Value::Float(number) => Some(*number),
            // Above 2^53, integers are rounded like float literals.
            Value::Integer(number) => Some(*number as f64),
            _ => None,
        };
        let within = number.filter(|number| (low..=high).contains(number));
        within.map(Some).ok_or_else(|| self.wrong(key, &shown(value), allowed))
    }

    /// Returns a required number.
    pub(crate) fn needed_number(
        &self,
        key: &'static str,
        range: [f64; 2],
        allowed: &str,
    ) -> Result<f64, FieldError> {
        self.number(key, range, allowed)?.ok_or_else(|| self.missing(key, allowed))
    }

    /// Returns an integer in `low` to `high`. `None` if it is missing.
    pub fn count(&self, key: &'static str, low: u32, high: u32) -> Result<Option<u32>, FieldError> {
        self.get(key).map(|value| self.counted(key, value, low, high)).transpose()
    }

    /// Returns an integer field whose name comes from the file.
    pub fn count_of(&self, key: &str, low: u32, high: u32) -> Result<Option<u32>, FieldError> {
        self.table.get(key).map(|value| self.counted(key, value, low, high)).transpose()
    }

    fn counted(&self, key: &str, value: &Value, low: u32, high: u32) -> Result<u32, FieldError> {
        let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
        let within = number.filter(|number| (low..=high).contains(number));
        let allowed = || format!("a whole number from {low} to {high} is allowed");
        within.ok_or_else(|| self.wrong(key, &shown(value), &allowed()))
    }

    /// Returns a required integer.
    pub fn needed_count(&self, key: &'static str, low: u32, high: u32) -> Result<u32, FieldError> {
        let allowed = || format!("a whole number from {low} to {high} is needed");
        self.count(key, low, high)?.ok_or_else(|| self.missing(key, &allowed()))
    }

    /// Returns a subtable. `None` if it is missing.
    pub fn section(&self, key: &'static str) -> Result<Option<Section<'a>>, FieldError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(Section {
                file: self.file,
                path: self.field(key),
                table,
                requested: RefCell::default(),
            })),
            Some(other) => Err(self.wrong(key, &shown(other), &format!("a table [{key}] is allowed"))),
        }
    }

    /// Returns an array of tables, numbered from 1 in errors.
    pub fn sections(&self, key: &'static str) -> Result<Vec<Section<'a>>, FieldError> {
        let wrong = |value: &Value| self.wrong(key, &shown(value), &format!("tables [[{key}]] are allowed"));
        let list = match self.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(wrong(other)),
        };
        let section = |(number, value): (usize, &'a Value)| {
            let Value::Table(table) = value else { return Err(wrong(value)) };
            let path = format!("{} {}", self.field(key), number + 1);
            Ok(Section { file: self.file, path, table, requested: RefCell::default() })
        };
        list.iter().enumerate().map(section).collect()
    }

    /// Resolves a path relative to the file's folder.
    pub fn path(&self, text: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(text)
    }

    /// Rejects fields that the caller did not request.
    pub fn end(&self) -> Result<(), FieldError> {
        self.end_with(self.requested.borrow().iter().copied())
    }

    /// Rejects fields that are not `known`.
    pub fn end_with<'k>(&self, known: impl Iterator<Item = &'k str>) -> Result<(), FieldError> {
        let known: Vec<String> = known.map(str::to_owned).collect();
        match self.table.keys().find(|key| !known.contains(key)) {
            Some(key) => Err(self.error(key, FieldProblem::Unknown { known })),
            None => Ok(()),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}
