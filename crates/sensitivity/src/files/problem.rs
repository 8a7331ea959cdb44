//! Reads SALib inputs: a `problem` in JSON, and SALib's parameter files.
//!
//! A problem has `names` and `bounds`, and may have `num_vars`, `groups` and `dists`, as SALib 1.6's `sample`
//! functions take them. Bounds of a `unif` and `logunif` parameter are `[low, high]`, of `norm` `[mean,
//! deviation]`, of `lognorm` those of the natural logarithm, of `truncnorm` `[low, high, mean, deviation]`,
//! of `triang` `[low, high, peak]` or `[high, peak]` with the peak as a fraction of the range. A parameter
//! file ([`parse_file`]) has one line per parameter: name, bounds, and optionally group and distribution.
//! `weibull` is not supported. SALib's `ProblemSpec` also holds functions to evaluate and results, which are
//! ignored.

mod file;

use crate::files::import::{Imported, ImportedParameter, ImportedRange};
pub use file::{FileError, parse_file};
use pleach_workflow::text::quoted;
use pleach_workflow::{Distribution, DomainError};
use serde_json::Value;
use std::collections::HashSet;
use thiserror::Error;

/// Error of a problem. The caller names the file.
#[derive(Debug, Error)]
pub enum ProblemError {
    /// Not JSON.
    #[error("line {}, column {}: invalid JSON: {}", .0.line(), .0.column(), json_error(.0))]
    Malformed(serde_json::Error),
    /// JSON that is not an object.
    #[error("a problem is an object, such as {{\"num_vars\": 1, \"names\": [\"x\"], \"bounds\": [[0, 1]]}}")]
    NoObject,
    /// An unknown key.
    #[error(
        "\"{}\" is not a key of a problem; allowed are num_vars, names, bounds, groups, dists",
        quoted(key, 80)
    )]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A required key is missing.
    #[error("{key}: missing; {expected} is needed")]
    Missing {
        /// The key.
        key: &'static str,
        /// Expected value.
        expected: &'static str,
    },
    /// A value of the wrong type.
    #[error("{at}: {} is not {expected}", quoted(found, 80))]
    WrongType {
        /// Its location, such as `bounds[2]`.
        at: String,
        /// The value found.
        found: String,
        /// Expected value.
        expected: &'static str,
    },
    /// Lists of different lengths.
    #[error("{key} has {found} entries; {expected} are needed, one per name")]
    Count {
        /// The key.
        key: &'static str,
        /// Number of its entries, or the value of `num_vars`.
        found: usize,
        /// Number of names.
        expected: usize,
    },
    /// An invalid parameter.
    #[error("{at}: {problem}")]
    Parameter {
        /// Its location.
        at: String,
        /// The problem.
        problem: ParameterError,
    },
    /// No parameters.
    #[error("names: empty; at least one name is needed")]
    NoParameters,
}

/// Error of a single parameter.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ParameterError {
    /// An empty or duplicate parameter name.
    #[error("the name \"{}\" is not allowed; names must be unique and not empty", quoted(.0, 80))]
    Name(String),
    /// An unknown distribution.
    #[error(
        "distribution \"{}\" is not allowed; allowed are unif, logunif, norm, lognorm, truncnorm, triang",
        quoted(.0, 80)
    )]
    Distribution(String),
    /// More or fewer numbers than the distribution takes.
    #[error("{found} numbers for distribution {name}; {expected} are needed")]
    Numbers {
        /// The distribution.
        name: String,
        /// Numbers found.
        found: usize,
        /// Numbers taken.
        expected: &'static str,
    },
    /// Bounds in the wrong order.
    #[error("the lower bound {low} is above the upper bound {high}")]
    Reversed {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// A peak outside the range.
    #[error("the peak {peak} is not allowed; a fraction of the range, 0 to 1, is allowed")]
    Peak {
        /// The peak.
        peak: f64,
    },
    /// Numbers that form no valid range.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line").next().unwrap_or_default().to_owned()
}

/// Parses a problem in JSON. Accepts a byte-order mark and CRLF.
///
/// # Errors
/// [`ProblemError`] with key, location, value, and the allowed values.
pub fn parse(text: &str) -> Result<Imported, ProblemError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Value::Object(object) = serde_json::from_str(text).map_err(ProblemError::Malformed)? else {
        return Err(ProblemError::NoObject);
    };
    // SALib itself adds the keys `outputs` and `sample_scaled`. They do not change a sample.
    let known = ["num_vars", "names", "bounds", "groups", "dists", "outputs", "sample_scaled"];
    if let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(ProblemError::UnknownKey { key: key.clone() });
    }
    let list = |key: &'static str| match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_type(key.to_owned(), other, "a list")),
    };
    let needed = |key, expected| list(key)?.ok_or(ProblemError::Missing { key, expected });
    let names = texts("names", needed("names", "a list of names")?)?;
    if names.is_empty() {
        return Err(ProblemError::NoParameters);
    }
    let paired = |key, found: usize| match found == names.len() {
        true => Ok(()),
        false => Err(ProblemError::Count { key, found, expected: names.len() }),
    };
    match object.get("num_vars") {
        None => {}
        Some(number) => match number.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => paired("num_vars", number)?,
            None => return Err(wrong_type("num_vars".to_owned(), number, "a whole number")),
        },
    }
    let bounds = needed("bounds", "a list of bounds")?;
    paired("bounds", bounds.len())?;
    let labels = |key| match list(key)? {
        None => Ok::<_, ProblemError>(None),
        Some(items) => {
            paired(key, items.len())?;
            Ok(Some(texts(key, items)?))
        }
    };
    let (groups, distributions) = (labels("groups")?, labels("dists")?);

    let mut seen = HashSet::new();
    let mut parameters = Vec::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        let fail = |key, problem| ProblemError::Parameter { at: format!("{key}[{place}]"), problem };
        if name.trim().is_empty() || !seen.insert(name) {
            return Err(fail("names", ParameterError::Name(name.clone())));
        }
        let numbers = numbers(place, &bounds[place])?;
        let distribution = distributions.as_ref().map_or("unif", |all| all[place].as_str());
        let range = range(distribution, &numbers).map_err(|problem| {
            let key = if matches!(problem, ParameterError::Distribution(_)) { "dists" } else { "bounds" };
            fail(key, problem)
        })?;
        parameters.push(imported(name.clone(), range, groups.as_ref().map(|all| all[place].clone())));
    }
    Ok(of_parameters(parameters))
}

fn imported(name: String, range: ImportedRange, group: Option<String>) -> ImportedParameter {
    ImportedParameter { name, range, initial: None, partitions: None, group }
}

fn of_parameters(parameters: Vec<ImportedParameter>) -> Imported {
    Imported { method: None, sampler: None, seed: None, samples: None, parameters, notes: Vec::new() }
}

fn wrong_type(at: String, value: &Value, expected: &'static str) -> ProblemError {
    ProblemError::WrongType { at, found: value.to_string(), expected }
}

fn texts(key: &str, items: &[Value]) -> Result<Vec<String>, ProblemError> {
    let text = |(place, item): (usize, &Value)| match item {
        Value::String(text) => Ok(text.clone()),
        other => Err(wrong_type(format!("{key}[{place}]"), other, "a text")),
    };
    items.iter().enumerate().map(text).collect()
}

fn numbers(place: usize, item: &Value) -> Result<Vec<f64>, ProblemError> {
    let Value::Array(items) = item else {
        return Err(wrong_type(format!("bounds[{place}]"), item, "a list of numbers"));
    };
    let number = |(within, item): (usize, &Value)| {
        item.as_f64().ok_or_else(|| wrong_type(format!("bounds[{place}][{within}]"), item, "a number"))
    };
    items.iter().enumerate().map(number).collect()
}

/// Returns the range from SALib's `name` of a distribution and its `numbers`.
fn range(name: &str, numbers: &[f64]) -> Result<ImportedRange, ParameterError> {
    let wrong = |expected| ParameterError::Numbers { name: name.to_owned(), found: numbers.len(), expected };
    if let Some(&number) = numbers.iter().find(|number| !number.is_finite()) {
        return Err(DomainError::NotFinite(number).into());
    }
    let ordered = |low: f64, high: f64| {
        if low > high { Err(ParameterError::Reversed { low, high }) } else { Ok((low, high)) }
    };
    let distribution = match (name, numbers) {
        ("unif", &[low, high]) => {
            let (low, high) = ordered(low, high)?;
            return Ok(ImportedRange::Reals { low, high });
        }
        ("logunif", &[low, high]) => {
            let (low, high) = ordered(low, high)?;
            Distribution::LogUniform { low, high }
        }
        ("norm", &[mean, deviation]) => Distribution::Normal { mean, deviation },
        ("lognorm", &[mean, deviation]) => Distribution::LogNormal { mean, deviation },
        ("truncnorm", &[low, high, mean, deviation]) => {
            let (low, high) = ordered(low, high)?;
            Distribution::TruncatedNormal { mean, deviation, low, high }
        }
        ("triang", &[high, peak]) => triangular(0.0, high, peak)?,
        ("triang", &[low, high, peak]) => triangular(low, high, peak)?,
        ("unif" | "logunif", _) => return Err(wrong("a lower and an upper bound")),
        ("norm", _) => return Err(wrong("a mean and a deviation")),
        ("lognorm", _) => return Err(wrong("a mean and a deviation of the logarithm")),
        ("truncnorm", _) => return Err(wrong("two bounds, a mean and a deviation")),
        ("triang", _) => return Err(wrong("two bounds and a peak, or an upper bound and a peak")),
        (other, _) => return Err(ParameterError::Distribution(other.to_owned())),
    };
    Ok(ImportedRange::Distributed(distribution.check()?))
}

fn triangular(low: f64, high: f64, peak: f64) -> Result<Distribution, ParameterError> {
    if low > high {
        return Err(ParameterError::Reversed { low, high });
    }
    if !(0.0..=1.0).contains(&peak) {
        return Err(ParameterError::Peak { peak });
    }
    // Rounding may leave the range by the last digit.
    Ok(Distribution::Triangular { low, mode: (low + peak * (high - low)).clamp(low, high), high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    /// The example of SALib's documentation, with optional keys.
    #[test]
    fn a_problem_of_salib() {
        let text = "\u{feff}{\"num_vars\": 5, \"names\": [\"x1\", \"x2\", \"x3\", \"x4\", \"x5\"],\r\n \"bounds\": [[-2.5, 2.5], \
                    [1, 10], [0, 2], [-1, 1, 0, 0.5], [1, 3, 0.5]], \"groups\": [\"a\", \"a\", \"b\", \"b\", \"c\"], \"dists\": \
                    [\"unif\", \"logunif\", \"norm\", \"truncnorm\", \"triang\"], \"sample_scaled\": true}";
        let found = parse(text).unwrap();
        let ranges: Vec<&ImportedRange> = found.parameters.iter().map(|parameter| &parameter.range).collect();
        let of = ImportedRange::Distributed;
        assert_eq!(
            ranges,
            [
                &ImportedRange::Reals { low: -2.5, high: 2.5 },
                &of(Distribution::LogUniform { low: 1.0, high: 10.0 }),
                &of(Distribution::Normal { mean: 0.0, deviation: 2.0 }),
                &of(Distribution::TruncatedNormal { mean: 0.0, deviation: 0.5, low: -1.0, high: 1.0 }),
                &of(Distribution::Triangular { low: 1.0, mode: 2.0, high: 3.0 }),
            ]
        );
        assert_eq!(found.groups().unwrap().names(), ["a", "b", "c"]);
        assert_eq!(found.parameters().unwrap()[2].default.as_f64(), 0.0);
        let plain = parse(r#"{"names": ["x"], "bounds": [[2, 2]], "groups": null, "dists": null}"#).unwrap();
        assert!(!plain.parameters().unwrap()[0].domain.varies());
        let logs = parse(r#"{"names": ["x"], "bounds": [[2, 0.5]], "dists": ["lognorm"]}"#).unwrap();
        assert_eq!(logs.parameters[0].range, of(Distribution::LogNormal { mean: 2.0, deviation: 0.5 }));
        assert_eq!(logs.parameters().unwrap()[0].default.as_f64(), 2.0_f64.exp());
        let short = parse(r#"{"names": ["x"], "bounds": [[4, 0.25]], "dists": ["triang"]}"#).unwrap();
        let tilted = Distribution::Triangular { low: 0.0, mode: 1.0, high: 4.0 };
        assert_eq!(short.parameters[0].range, of(tilted));
    }

    #[test]
    fn errors_name_key_place_and_value() {
        assert_eq!(
            error("{\"names\": [\"x\"],\n  oops}"),
            "line 2, column 3: invalid JSON: key must be a string"
        );
        assert!(error("[]").starts_with("a problem is an object"));
        assert!(error("{\"name\": []}").starts_with("\"name\" is not a key of a problem"));
        assert_eq!(error("{}"), "names: missing; a list of names is needed");
        assert_eq!(error(r#"{"names": []}"#), "names: empty; at least one name is needed");
        assert_eq!(error(r#"{"names": ["x", 3]}"#), "names[1]: 3 is not a text");
        assert_eq!(error(r#"{"names": ["x"]}"#), "bounds: missing; a list of bounds is needed");
        let two = |bounds: &str, more: &str| {
            error(&format!(r#"{{"names": ["x", "y"], "bounds": {bounds}{more}}}"#))
        };
        let good = "[[0, 1], [0, 1]]";
        assert_eq!(two("[[0, 1]]", ""), "bounds has 1 entries; 2 are needed, one per name");
        assert!(two(good, r#", "num_vars": 3"#).starts_with(
            "num_vars has 3 entries; 2 are needed, one per \
                                                             name"
        ));
        assert_eq!(two(good, r#", "num_vars": 2.5"#), "num_vars: 2.5 is not a whole number");
        assert_eq!(two("[[0, 1], [2, 1]]", ""), "bounds[1]: the lower bound 2 is above the upper bound 1");
        assert_eq!(two("[[0, 1], [0, \"1,5\"]]", ""), "bounds[1][1]: \"1,5\" is not a number");
        assert_eq!(two("[[0, 1], 5]", ""), "bounds[1]: 5 is not a list of numbers");
        assert_eq!(
            two("[[0, 1], [0, 1, 2]]", ""),
            "bounds[1]: 3 numbers for distribution unif; a lower and an upper bound are needed"
        );
        let of = |dists: &str| two(good, &format!(r#", "dists": {dists}"#));
        assert_eq!(
            of(r#"["unif", "weibull"]"#),
            "dists[1]: distribution \"weibull\" is not allowed; allowed are unif, logunif, norm, lognorm, truncnorm, triang"
        );
        assert!(of(r#"["unif", "logunif"]"#).starts_with("bounds[1]: log-scaled range starts at 0"));
        assert!(of(r#"["unif", "truncnorm"]"#).starts_with("bounds[1]: 2 numbers for distribution"));
        assert!(of(r#"["unif"]"#).starts_with("dists has 1 entries"));
        assert!(two("[[0, 1], [0, 1, 2]]", r#", "dists": ["unif", "triang"]"#).contains("the peak 2 is not"));
        assert!(
            error(r#"{"names": ["x", "x"], "bounds": [[0, 1], [0, 1]]}"#).starts_with("names[1]: the name")
        );
    }
}
