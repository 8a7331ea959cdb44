//! Reader of TOML files: typed access to fields. Errors name the file, the field, its value and the allowed values.
//!
//! Study files, tier lists, worker pools and bursts are read with it. This module does not interpret values, and the
//! caller may word a [`FieldProblem`] itself.

use crate::text;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::{Table, Value};

/// Error in a file, with its position.
#[derive(Debug, Error)]
pub enum FieldError {
    /// The file cannot be read.
    #[error("{}: failed to read: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The file is not valid TOML.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// A field is invalid.
    #[error("{}: {field}: {problem}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// Path of the field.
        field: String,
        /// The problem, boxed to keep results small.
        problem: Box<FieldProblem>,
    },
}

/// Kinds of invalid fields.
#[derive(Debug, Error)]
pub enum FieldProblem {
    /// A required field is missing. Holds the allowed values.
    #[error("missing; {0}")]
    Missing(String),
    /// The field does not exist. Holds the fields of the section.
    #[error("unknown; known are {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// The value has another type, or is outside the range.
    #[error("{} is not allowed; {allowed}", shown(found))]
    WrongValue {
        /// Value in the file.
        found: Value,
        /// Allowed values.
        allowed: String,
    },
    /// The value is no integer, or outside the range.
    #[error("{} is not allowed; a whole number from {low} to {high} is allowed", shown(found))]
    WrongInteger {
        /// Value in the file.
        found: Value,
        /// Least allowed value.
        low: u64,
        /// Greatest allowed value.
        high: u64,
    },
    /// The caller rejects the value.
    #[error("{value} is not allowed; {allowed}")]
    NotAllowed {
        /// The value, in the caller's words.
        value: String,
        /// Allowed values.
        allowed: String,
    },
}

fn shown(value: &Value) -> String {
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// A parsed file.
#[derive(Debug)]
pub struct Document {
    file: PathBuf,
    table: Table,
}

impl Document {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// [`FieldError`] if the file cannot be read or is not valid TOML.
    pub fn read(file: &Path) -> Result<Self, FieldError> {
        let unreadable = |cause| FieldError::Unreadable { file: file.to_owned(), cause };
        let text = text::read(file).map_err(unreadable)?;
        let table = text.parse().map_err(|error: toml::de::Error| {
            let (line, column, message) = text::toml_mistake(&text, &error);
            FieldError::Malformed { file: file.to_owned(), line, column, message }
        })?;
        Ok(Self { file: file.to_owned(), table })
    }

    /// Changes the document in memory. Errors still name the file.
    pub fn edit(&mut self, edit: impl FnOnce(&mut Table)) {
        edit(&mut self.table);
    }

    /// Returns the whole document as a section.
    pub fn root(&self) -> Section<'_> {
        Section::new(&self.file, String::new(), &self.table)
    }
}

/// A table of a document.
///
/// # Errors
/// A function that reads a field fails with [`FieldProblem::WrongValue`] or [`FieldProblem::WrongInteger`] for values
/// of other types or outside the range, those of required fields with [`FieldProblem::Missing`]. `allowed` describes
/// the allowed values.
#[derive(Debug)]
pub struct Section<'a> {
    file: &'a Path,
    /// Beginning of the paths of its fields.
    prefix: String,
    table: &'a Table,
    /// Fields that the caller has asked for.
    asked: RefCell<Vec<String>>,
}

/// Result of reading a field. `None` if the field is missing.
pub type FieldResult<T> = Result<Option<T>, FieldError>;

impl<'a> Section<'a> {
    fn new(file: &'a Path, prefix: String, table: &'a Table) -> Self {
        Self { file, prefix, table, asked: RefCell::default() }
    }

    /// Returns the position of a field: the file, and the path of the field.
    pub fn at(&self, key: &str) -> (PathBuf, String) {
        (self.file.to_owned(), format!("{}{key}", self.prefix))
    }

    fn error(&self, key: &str, problem: FieldProblem) -> FieldError {
        let (file, field) = self.at(key);
        FieldError::Field { file, field, problem: Box::new(problem) }
    }

    /// Fails with [`FieldProblem::Missing`].
    pub fn missing<T, E: From<FieldError>>(&self, key: &str, allowed: &str) -> Result<T, E> {
        Err(self.error(key, FieldProblem::Missing(allowed.to_owned())).into())
    }

    /// Fails with [`FieldProblem::NotAllowed`].
    pub fn not_allowed<T, E: From<FieldError>>(&self, key: &str, value: &str, allowed: &str) -> Result<T, E> {
        let (value, allowed) = (value.to_owned(), allowed.to_owned());
        Err(self.error(key, FieldProblem::NotAllowed { value, allowed }).into())
    }

    /// Returns all keys, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.keys().map(String::as_str)
    }

    /// Returns whether the key exists.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Rejects every field that is not `known`, with [`FieldProblem::Unknown`].
    pub fn allow<K: AsRef<str>>(&self, known: &[K]) -> Result<(), FieldError> {
        let known: Vec<String> = known.iter().map(|key| key.as_ref().to_owned()).collect();
        match self.table.keys().find(|key| !known.contains(key)) {
            Some(key) => Err(self.error(key, FieldProblem::Unknown(known))),
            None => Ok(()),
        }
    }

    /// Rejects every field that the caller has not asked for, with [`FieldProblem::Unknown`].
    pub fn end(&self) -> Result<(), FieldError> {
        self.allow(&self.asked.borrow())
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        let mut asked = self.asked.borrow_mut();
        if !asked.iter().any(|known| known == key) {
            asked.push(key.to_owned());
        }
        self.table.get(key)
    }

    fn wrong(&self, key: &str, found: &Value, allowed: &str) -> FieldError {
        self.error(key, FieldProblem::WrongValue { found: found.clone(), allowed: allowed.to_owned() })
    }

    /// Reads a field with `read`, which returns `None` for values that are not allowed.
    pub fn value<T>(
        &self,
        key: &str,
        allowed: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> FieldResult<T> {
        let Some(value) = self.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.wrong(key, value, allowed))
    }

    /// Reads a list with `read`, which returns `None` for items that are not allowed.
    pub fn list<T>(&self, key: &str, allowed: &str, read: fn(&'a Value) -> Option<T>) -> FieldResult<Vec<T>> {
        let Some(items) = self.value(key, allowed, Value::as_array)? else { return Ok(None) };
        let item = |item| read(item).ok_or_else(|| self.wrong(key, item, allowed));
        items.iter().map(item).collect::<Result<_, _>>().map(Some)
    }

    /// Returns a required value. `value` is what another function read.
    pub fn needed<T>(&self, key: &str, value: Option<T>, allowed: &str) -> Result<T, FieldError> {
        value.map_or_else(|| self.missing(key, allowed), Ok)
    }

    /// Reads a text.
    pub fn text(&self, key: &str, allowed: &str) -> FieldResult<&'a str> {
        self.value(key, allowed, Value::as_str)
    }

    /// Returns whether a value is a text.
    pub fn is_text(&self, key: &str) -> bool {
        self.get(key).is_some_and(Value::is_str)
    }

    /// Reads a required text.
    pub fn needed_text(&self, key: &str, allowed: &str) -> Result<&'a str, FieldError> {
        self.needed(key, self.text(key, allowed)?, allowed)
    }

    /// Reads a Boolean.
    pub fn boolean(&self, key: &str, allowed: &str) -> FieldResult<bool> {
        self.value(key, allowed, Value::as_bool)
    }

    /// Reads a number.
    pub fn number(&self, key: &str, allowed: &str) -> FieldResult<f64> {
        self.value(key, allowed, number)
    }

    /// Reads a number in `low` to `high`.
    pub fn number_in(&self, key: &str, [low, high]: [f64; 2], allowed: &str) -> FieldResult<f64> {
        let within = |value| number(value).filter(|number| (low..=high).contains(number));
        self.value(key, allowed, within)
    }

    /// Reads a list of numbers.
    pub fn numbers(&self, key: &str, allowed: &str) -> FieldResult<Vec<f64>> {
        self.list(key, allowed, number)
    }

    /// Reads an integer in `low` to `high`.
    pub fn integer<N: TryFrom<u64> + Into<u64>>(&self, key: &str, low: N, high: N) -> FieldResult<N> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let (low, high): (u64, u64) = (low.into(), high.into());
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        let within = number.filter(|number| (low..=high).contains(number));
        let problem = || FieldProblem::WrongInteger { found: value.clone(), low, high };
        within.and_then(|number| N::try_from(number).ok()).map(Some).ok_or_else(|| self.error(key, problem()))
    }

    /// Reads a section.
    pub fn section(&self, key: &str, allowed: &str) -> FieldResult<Self> {
        let table = self.value(key, allowed, Value::as_table)?;
        Ok(table.map(|table| Self::new(self.file, format!("{}{key}.", self.prefix), table)))
    }

    /// Reads an array of sections. The paths of their fields begin with `key` and the number of the section, from 1,
    /// between two `marks`.
    pub fn sections(&self, key: &str, allowed: &str, marks: [&str; 2]) -> FieldResult<Vec<Self>> {
        let [before, after] = marks;
        let prefix = |number| format!("{}{key}{before}{number}{after}", self.prefix);
        let section = |(number, table)| Self::new(self.file, prefix(number), table);
        let tables = self.list(key, allowed, Value::as_table)?;
        Ok(tables.map(|tables| (1..).zip(tables).map(section).collect()))
    }

    /// Returns the folder of the file.
    pub fn folder(&self) -> &'a Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// Resolves a path relative to the file.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        // Above 2^53, integers are rounded like float literals.
        Value::Integer(number) => Some(*number as f64),
        _ => None,
    }
}
