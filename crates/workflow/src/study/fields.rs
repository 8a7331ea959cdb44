//! Typed access to the fields of a TOML document, with errors that name the field.

use super::{FieldProblem, StudyError};
use crate::text;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A parsed study file.
pub(super) struct Document {
    file: PathBuf,
    table: Table,
}

impl Document {
    pub(super) fn read(file: &Path) -> Result<Self, StudyError> {
        let text =
            text::read(file).map_err(|cause| StudyError::Unreadable { file: file.to_owned(), cause })?;
        let table = text.parse().map_err(|error: toml::de::Error| {
            let (line, column, message) = text::toml_mistake(&text, &error);
            StudyError::Malformed { file: file.to_owned(), line, column, message }
        })?;
        Ok(Self { file: file.to_owned(), table })
    }

    pub(super) fn root(&self) -> Section<'_> {
        Section { file: &self.file, path: String::new(), table: &self.table }
    }
}

/// One table of the document and its dotted path.
pub(super) struct Section<'a> {
    file: &'a Path,
    path: String,
    table: &'a Table,
}

impl<'a> Section<'a> {
    fn field(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn fail<T>(&self, key: &str, problem: FieldProblem) -> Result<T, StudyError> {
        Err(StudyError::Field {
            file: self.file.to_owned(),
            field: self.field(key),
            problem: Box::new(problem),
        })
    }

    /// Returns an error about the section as a whole.
    pub(super) fn fail_here<T>(&self, problem: FieldProblem) -> Result<T, StudyError> {
        Err(StudyError::Field {
            file: self.file.to_owned(),
            field: self.path.clone(),
            problem: Box::new(problem),
        })
    }

    pub(super) fn not_allowed<T>(&self, key: &str, value: &str, allowed: &str) -> Result<T, StudyError> {
        self.fail(key, FieldProblem::NotAllowed { value: value.to_owned(), allowed: allowed.to_owned() })
    }

    fn wrong_type<T>(&self, key: &str, value: &Value, wanted: &'static str) -> Result<T, StudyError> {
        let shown = match value {
            Value::Table(_) => "a section".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::String(text) => format!("the text \"{text}\""),
            other => other.to_string(),
        };
        self.fail(key, FieldProblem::WrongType { found: shown, wanted })
    }

    /// Returns all keys, in the order of the file.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.keys().map(String::as_str)
    }

    /// Returns whether the key exists.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Rejects every key that is not listed.
    pub(super) fn allow(&self, known: &[&str]) -> Result<(), StudyError> {
        match self.table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                self.fail(key, FieldProblem::Unknown(known.iter().map(|k| (*k).to_owned()).collect()))
            }
            None => Ok(()),
        }
    }

    pub(super) fn optional_section(&self, key: &str) -> Result<Option<Section<'a>>, StudyError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(Section { file: self.file, path: self.field(key), table })),
            Some(other) => self.wrong_type(key, other, "a section"),
        }
    }

    /// Reads the sections of an array of tables. Their paths are numbered from 1.
    pub(super) fn sections(&self, key: &str) -> Result<Option<Vec<Section<'a>>>, StudyError> {
        let wanted = "sections [[phase]]";
        match self.table.get(key) {
            None => Ok(None),
            Some(list @ Value::Array(items)) => {
                let mut sections = Vec::with_capacity(items.len());
                for (number, item) in items.iter().enumerate() {
                    let Value::Table(table) = item else { return self.wrong_type(key, list, wanted) };
                    let path = format!("{}[{}]", self.field(key), number + 1);
                    sections.push(Section { file: self.file, path, table });
                }
                Ok(Some(sections))
            }
            Some(other) => self.wrong_type(key, other, wanted),
        }
    }

    pub(super) fn section(&self, key: &str) -> Result<Section<'a>, StudyError> {
        match self.optional_section(key)? {
            Some(section) => Ok(section),
            None => self.fail(key, FieldProblem::Missing("this section")),
        }
    }

    pub(super) fn optional_text(&self, key: &str) -> Result<Option<String>, StudyError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => self.wrong_type(key, other, "a text"),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<String, StudyError> {
        match self.optional_text(key)? {
            Some(text) => Ok(text),
            None => self.fail(key, FieldProblem::Missing("a text")),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, StudyError> {
        match self.table.get(key) {
            None => self.fail(key, FieldProblem::Missing("a list of texts")),
            Some(Value::Array(items)) => {
                let mut texts = Vec::new();
                for item in items {
                    match item {
                        Value::String(text) => texts.push(text.clone()),
                        other => return self.wrong_type(key, other, "a list of texts"),
                    }
                }
                Ok(texts)
            }
            Some(other) => self.wrong_type(key, other, "a list of texts"),
        }
    }

    /// Reads one text, or a list of texts.
    pub(super) fn text_or_texts(&self, key: &str) -> Result<Vec<String>, StudyError> {
        match self.table.get(key) {
            Some(Value::Array(_)) => self.texts(key),
            _ => Ok(vec![self.text(key)?]),
        }
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<bool>, StudyError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Boolean(on)) => Ok(Some(*on)),
            Some(other) => self.wrong_type(key, other, "true or false"),
        }
    }

    /// Reads an integer in `low..=high`.
    pub(super) fn integer(&self, key: &str, low: u64, high: u64) -> Result<Option<u64>, StudyError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => match u64::try_from(*number) {
                Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
                // TOML integers end at 2^63 - 1, so the message omits an upper bound beyond it.
                _ if high > i64::MAX as u64 => {
                    self.not_allowed(key, &number.to_string(), &format!("{low} or more"))
                }
                _ => self.not_allowed(key, &number.to_string(), &format!("{low} to {high}")),
            },
            Some(other) => self.wrong_type(key, other, "a whole number"),
        }
    }

    /// Reads a required integer in `low..=high`.
    pub(super) fn needed_integer(&self, key: &str, low: u64, high: u64) -> Result<u64, StudyError> {
        match self.integer(key, low, high)? {
            Some(number) => Ok(number),
            None => self.fail(key, FieldProblem::Missing("a whole number")),
        }
    }

    fn as_number(&self, key: &str, value: &Value, wanted: &'static str) -> Result<f64, StudyError> {
        match value {
            Value::Float(number) => Ok(*number),
            // Parameter values are far below 2^53. A larger one is rounded like any literal.
            Value::Integer(number) => Ok(*number as f64),
            other => self.wrong_type(key, other, wanted),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, StudyError> {
        self.table.get(key).map(|value| self.as_number(key, value, "a number")).transpose()
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, StudyError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| self.as_number(key, item, "a list of numbers"))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(other) => self.wrong_type(key, other, "a list of numbers"),
        }
    }

    /// Resolves a path relative to the study file.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    /// Resolves a pattern relative to the study file. The folder's name is escaped, so that only the user's text is a
    /// pattern. Returns `None` if the name is not UTF-8.
    pub(super) fn pattern(&self, pattern: &str) -> Option<String> {
        let folder = glob::Pattern::escape(self.folder().to_str()?);
        Some(Path::new(&folder).join(pattern).to_str()?.to_owned())
    }

    /// Returns a path relative to the folder of the study file.
    pub(super) fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(self.folder()).unwrap_or(path)
    }

    fn folder(&self) -> &'a Path {
        self.file.parent().unwrap_or(Path::new(""))
    }
}
