//! Tables of a tier list. The reader removes fields one by one, and the remaining fields are unknown.
//!
//! This module does not interpret values.

use super::error::{Problem, TierListError};
use std::path::Path;
use toml::{Table, Value};

/// Returns the tables of a file in order.
pub(super) fn tables(file: &Path, text: &str) -> Result<Vec<Table>, TierListError> {
    let mut document: Table = text.parse().map_err(|error: toml::de::Error| {
        let (line, column, message) = pleach_workflow::text::toml_mistake(text, &error);
        TierListError::Malformed { file: file.to_owned(), line, column, message }
    })?;
    let tiers = document.remove("tier");
    if let Some(field) = document.keys().next() {
        return Err(TierListError::UnknownTable { file: file.to_owned(), field: field.clone() });
    }
    let all = match tiers {
        Some(Value::Array(all)) => all,
        Some(_) => return Err(TierListError::UnknownTable { file: file.to_owned(), field: "tier".into() }),
        None => Vec::new(),
    };
    let tables: Vec<Table> = all
        .into_iter()
        .filter_map(|tier| if let Value::Table(table) = tier { Some(table) } else { None })
        .collect();
    if tables.is_empty() {
        return Err(TierListError::NoTier { file: file.to_owned() });
    }
    Ok(tables)
}

/// Fields of one tier.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    file: Option<&'a Path>,
    number: usize,
    table: Table,
    requested: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(file: &'a Path, number: usize, table: Table) -> Self {
        Self { file: Some(file), number, table, requested: Vec::new() }
    }

    /// Creates the fields of a tier named on the command line. There are none.
    pub(super) fn of_arguments(number: usize) -> Self {
        Self { file: None, number, table: Table::new(), requested: Vec::new() }
    }

    /// Removes and returns a text field.
    pub(super) fn text(
        &mut self,
        field: &'static str,
        allowed: &'static str,
    ) -> Result<Option<String>, TierListError> {
        self.requested.push(field);
        match self.table.remove(field) {
            None => Ok(None),
            // Paths and names cannot contain NUL, which system calls reject.
            Some(Value::String(text)) if !text.contains('\0') => Ok(Some(text)),
            Some(other) => Err(self.wrong(field, &shown(&other), allowed)),
        }
    }

    /// Removes and returns an integer field.
    pub(super) fn number(
        &mut self,
        field: &'static str,
        allowed: &'static str,
    ) -> Result<Option<i64>, TierListError> {
        self.requested.push(field);
        match self.table.remove(field) {
            None => Ok(None),
            Some(Value::Integer(number)) => Ok(Some(number)),
            Some(other) => Err(self.wrong(field, &shown(&other), allowed)),
        }
    }

    /// Removes and returns a Boolean field.
    pub(super) fn flag(&mut self, field: &'static str) -> Result<Option<bool>, TierListError> {
        self.requested.push(field);
        match self.table.remove(field) {
            None => Ok(None),
            Some(Value::Boolean(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong(field, &shown(&other), "true and false are allowed")),
        }
    }

    /// Rejects fields that were not removed.
    pub(super) fn end(&self) -> Result<(), TierListError> {
        let Some(field) = self.table.keys().next() else { return Ok(()) };
        let problem = Problem::Unknown { allowed: self.requested.join(", ") };
        Err(self.error(field, problem))
    }

    pub(super) fn error(&self, field: &str, problem: Problem) -> TierListError {
        let file = self.file.map_or_else(|| "command line".to_owned(), |file| file.display().to_string());
        TierListError::Field {
            file,
            number: self.number,
            field: field.to_owned(),
            problem: Box::new(problem),
        }
    }

    pub(super) fn missing(&self, field: &str, allowed: &'static str) -> TierListError {
        self.error(field, Problem::Missing { allowed })
    }

    pub(super) fn wrong(&self, field: &str, value: &str, allowed: &'static str) -> TierListError {
        self.error(field, Problem::Value { value: value.to_owned(), allowed })
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
