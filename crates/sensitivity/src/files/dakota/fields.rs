//! Typed access to keywords, with errors that name line and keyword.

use super::DakotaError;
use super::entries::{Argument, Entry};

/// Keywords of one method or of one kind of variables.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    /// Line of the keyword that begins them, for errors.
    pub(super) line: usize,
    /// Their description in error messages.
    pub(super) of: String,
    entries: Vec<&'a Entry>,
}

impl<'a> Fields<'a> {
    /// Collects keywords. An unknown or repeated keyword is an error.
    pub(super) fn new(
        line: usize,
        of: String,
        entries: &'a [Entry],
        known: &[&str],
    ) -> Result<Self, DakotaError> {
        for (place, entry) in entries.iter().enumerate() {
            let keyword = || entry.keyword.clone();
            if !known.contains(&entry.keyword.as_str()) {
                let (line, known) = (entry.line, known.join(", "));
                return Err(DakotaError::UnknownKeyword { line, keyword: keyword(), of, known });
            }
            if entries[..place].iter().any(|before| before.keyword == entry.keyword) {
                return Err(DakotaError::Twice { line: entry.line, keyword: keyword(), of });
            }
        }
        Ok(Self { line, of, entries: entries.iter().collect() })
    }

    /// Returns the entry of a keyword. `None` if it is missing.
    pub(super) fn find(&self, keyword: &str) -> Option<&'a Entry> {
        self.entries.iter().copied().find(|entry| entry.keyword == keyword)
    }

    /// Returns the entry of a required keyword.
    pub(super) fn needed(&self, keyword: &'static str) -> Result<&'a Entry, DakotaError> {
        self.find(keyword).ok_or_else(|| {
            let of = self.of.clone();
            DakotaError::MissingKeyword { line: self.line, keyword, of }
        })
    }
}

impl Entry {
    fn bad(&self, argument: &Argument, expected: &'static str) -> DakotaError {
        let (Argument::Number(text) | Argument::Text(text)) = argument;
        let (keyword, text) = (self.keyword.clone(), text.clone());
        DakotaError::BadNumber { line: self.line, keyword, text, expected }
    }

    fn counted(&self, expected: usize) -> Result<&[Argument], DakotaError> {
        let found = self.arguments.len();
        if found == expected {
            return Ok(&self.arguments);
        }
        Err(DakotaError::WrongCount { line: self.line, keyword: self.keyword.clone(), found, expected })
    }

    /// Returns the arguments as `expected` finite numbers. Any other count or argument is an error.
    pub(super) fn reals(&self, expected: usize) -> Result<Vec<f64>, DakotaError> {
        let real = |argument: &Argument| match argument {
            Argument::Number(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            Argument::Text(_) => None,
        };
        let arguments = self.counted(expected)?.iter();
        arguments
            .map(|argument| real(argument).ok_or_else(|| self.bad(argument, "a finite number")))
            .collect()
    }

    /// Returns the arguments as `expected` whole numbers of 0 or more.
    pub(super) fn integers(&self, expected: usize) -> Result<Vec<u64>, DakotaError> {
        let whole = |argument: &Argument| match argument {
            Argument::Number(text) => text.parse().ok(),
            Argument::Text(_) => None,
        };
        let arguments = self.counted(expected)?.iter();
        arguments
            .map(|argument| whole(argument).ok_or_else(|| self.bad(argument, "a whole number of 0 or more")))
            .collect()
    }

    /// Returns the only argument, a whole number of 0 or more.
    pub(super) fn integer(&self) -> Result<u64, DakotaError> {
        Ok(self.integers(1)?[0])
    }

    /// Returns the arguments as `expected` texts.
    pub(super) fn texts(&self, expected: usize) -> Result<Vec<String>, DakotaError> {
        let text = |argument: &Argument| match argument {
            Argument::Text(text) => Ok(text.clone()),
            Argument::Number(_) => Err(self.bad(argument, "a text in quotes")),
        };
        self.counted(expected)?.iter().map(text).collect()
    }
}
