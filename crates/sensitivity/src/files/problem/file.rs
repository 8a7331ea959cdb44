//! Parses SALib's parameter files: one line per parameter, `name lower upper [group [distribution]]`.
//!
//! The first line determines the separator of all lines: a semicolon, else a tab, else a comma, else blanks.
//! A line that begins with `#` is a comment. The group `NA` means no group, as in SALib.

use super::{ParameterError, imported, of_parameters, range};
use crate::files::import::Imported;
use pleach_workflow::text::quoted;
use std::collections::HashSet;
use thiserror::Error;

/// Error of a parameter file. Lines count from 1. The caller names the file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// The file has no parameters.
    #[error("no parameters; a line such as \"x1 0.0 1.0\" per parameter is needed")]
    NoParameters,
    /// A line with too many or too few fields.
    #[error(
        "line {line} has {found} fields; name, lower and upper bound are needed, group and distribution may follow"
    )]
    Fields {
        /// The line.
        line: usize,
        /// Its fields.
        found: usize,
    },
    /// A bound is not a finite number.
    #[error("line {line}, {column}: \"{}\" is not a finite number{}", quoted(text, 80), hint(text))]
    BadNumber {
        /// The line.
        line: usize,
        /// Name of the bound.
        column: &'static str,
        /// The text found.
        text: String,
    },
    /// An invalid parameter.
    #[error("line {line}: {problem}")]
    Parameter {
        /// The line.
        line: usize,
        /// Error of the parameter.
        problem: ParameterError,
    },
}

fn hint(text: &str) -> &'static str {
    if text.contains(',') { "; a decimal point is needed" } else { "" }
}

/// Parses a parameter file. Accepts a byte-order mark and CRLF.
///
/// # Errors
/// [`FileError`] with line, column, value, and the allowed values.
pub fn parse_file(text: &str) -> Result<Imported, FileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line.trim()));
    let lines: Vec<(usize, &str)> =
        lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
    let Some((_, first)) = lines.first() else { return Err(FileError::NoParameters) };
    let separator = [';', '\t', ','].into_iter().find(|&separator| first.contains(separator));
    let mut names = HashSet::new();
    let mut parameters = Vec::with_capacity(lines.len());
    for &(number, line) in &lines {
        let fields: Vec<&str> = match separator {
            Some(separator) => line.split(separator).map(str::trim).collect(),
            None => line.split_whitespace().collect(),
        };
        let [name, low, high, more @ ..] = &fields[..] else {
            return Err(FileError::Fields { line: number, found: fields.len() });
        };
        if more.len() > 2 {
            return Err(FileError::Fields { line: number, found: fields.len() });
        }
        let bound = |column, text: &str| match text.parse() {
            Ok(bound) if f64::is_finite(bound) => Ok(bound),
            _ => Err(FileError::BadNumber { line: number, column, text: text.to_owned() }),
        };
        let bounds = [bound("lower bound", low)?, bound("upper bound", high)?];
        let fail = |problem| FileError::Parameter { line: number, problem };
        if name.is_empty() || !names.insert(*name) {
            return Err(fail(ParameterError::Name((*name).to_owned())));
        }
        let distribution = more.get(1).copied().unwrap_or("unif");
        let range = range(distribution, &bounds).map_err(fail)?;
        let group = more.first().filter(|group| !matches!(**group, "" | "NA"));
        parameters.push(imported((*name).to_owned(), range, group.map(|group| (*group).to_owned())));
    }
    Ok(of_parameters(parameters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::import::ImportedRange;
    use pleach_workflow::Distribution;

    fn error(text: &str) -> String {
        parse_file(text).unwrap_err().to_string()
    }

    #[test]
    fn any_separator_will_do() {
        let plain = parse_file("\u{feff}# comment\r\nx1 0.0 1.0\r\n\r\nx2 -1 1e1\r\n").unwrap();
        for text in ["x1,0,1\nx2, -1, 10\n", "x1;0;1\nx2;-1;10", "x1\t0\t1\nx2\t-1\t10\n"] {
            assert_eq!(parse_file(text).unwrap(), plain);
        }
        let named = parse_file("a b,0,1,g\nc,1,2,g,logunif\nd,1,2,NA,norm\n").unwrap();
        let groups: Vec<_> = named.parameters.iter().map(|parameter| parameter.group.as_deref()).collect();
        assert_eq!(groups, [Some("g"), Some("g"), None]);
        assert_eq!(named.parameters[0].name, "a b");
        let normal = Distribution::Normal { mean: 1.0, deviation: 2.0 };
        assert_eq!(named.parameters[2].range, ImportedRange::Distributed(normal));
    }

    #[test]
    fn errors_name_line_column_and_value() {
        assert!(error("\u{feff}\r\n# nothing\n").starts_with("no parameters"));
        assert!(error("x1 0 1\nx2 0\n").starts_with("line 2 has 2 fields; name, lower and upper bound"));
        assert!(error("x1 0 1 g unif more\n").starts_with("line 1 has 6 fields"));
        assert_eq!(error("x1 0 1\n\nx2 zero 1"), "line 3, lower bound: \"zero\" is not a finite number");
        assert_eq!(
            error("x1;0;1,5"),
            "line 1, upper bound: \"1,5\" is not a finite number; a decimal point is needed"
        );
        assert!(error("x1 0 inf").contains("upper bound: \"inf\" is not a finite number"));
        assert_eq!(error("x1 2 1"), "line 1: the lower bound 2 is above the upper bound 1");
        assert!(error("x1 0 1\nx1 0 1").starts_with("line 2: the name \"x1\" is not allowed"));
        assert!(error("x1 0 1 g gamma").contains("distribution \"gamma\" is not allowed"));
        assert!(error("x1 0 1 g truncnorm").contains("2 numbers for distribution"));
    }
}
