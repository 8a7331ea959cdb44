//! Reads the block `variables`: names and distributions.

use super::DakotaError;
use super::entries::{Block, Entry};
use super::fields::Fields;
use crate::files::import::{ImportedParameter, ImportedRange};
use pleach_workflow::{Distribution, Domain, DomainError, ValueType};
use std::collections::HashSet;

/// Supported kinds of variables, with Dakota's name prefix for variables without a name.
const KINDS: [(&str, &str); 7] = [
    ("continuous_design", "cdv_"),
    ("uniform_uncertain", "uuv_"),
    ("loguniform_uncertain", "luuv_"),
    ("normal_uncertain", "nuv_"),
    ("triangular_uncertain", "tuv_"),
    ("discrete_design_range", "ddriv_"),
    ("discrete_design_set", "dds"),
];

/// Returns all variables in their order in the file, and notes on contradictions.
pub(super) fn read(block: &Block) -> Result<(Vec<ImportedParameter>, Vec<String>), DakotaError> {
    let starts: Vec<usize> =
        (0..block.entries.len()).filter(|&at| kind(&block.entries[at]).is_some()).collect();
    let first = starts.first().copied().unwrap_or(block.entries.len());
    if let Some(Entry { line, keyword, .. }) = block.entries[..first].first() {
        let of = "the block \"variables\"".to_owned();
        let known = KINDS.map(|(name, _)| name).join(", ");
        return Err(DakotaError::UnknownKeyword { line: *line, keyword: keyword.clone(), of, known });
    }
    let (mut parameters, mut notes) = (Vec::new(), Vec::new());
    for (place, &start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(block.entries.len());
        if let Some((name, prefix)) = kind(&block.entries[start]) {
            let (head, fields) = (&block.entries[start], &block.entries[start + 1..end]);
            if name == "discrete_design_set" {
                sets(head, fields, &mut parameters)?;
            } else {
                notes.extend(variables(name, prefix, head, fields, &mut parameters)?);
            }
        }
    }
    if parameters.is_empty() {
        return Err(DakotaError::NoVariables { line: block.line });
    }
    let mut names = HashSet::new();
    for parameter in &parameters {
        if parameter.name.trim().is_empty() || !names.insert(parameter.name.as_str()) {
            return Err(DakotaError::BadName { line: block.line, name: parameter.name.clone() });
        }
    }
    Ok((parameters, notes))
}

fn kind(entry: &Entry) -> Option<(&'static str, &'static str)> {
    KINDS.into_iter().find(|(name, _)| *name == entry.keyword)
}

/// Adds the variables of one kind. `head` declares their number. Returns a note if that number is wrong.
fn variables(
    kind: &str,
    prefix: &str,
    head: &Entry,
    entries: &[Entry],
    parameters: &mut Vec<ImportedParameter>,
) -> Result<Option<String>, DakotaError> {
    let own: &[&str] = match kind {
        "normal_uncertain" => &["means", "std_deviations"],
        "triangular_uncertain" => &["modes"],
        _ => &[],
    };
    let mut known = vec!["lower_bounds", "upper_bounds", "descriptors", "initial_point"];
    known.extend(own);
    known.extend(["scale_types", "scales"]);
    let fields = Fields::new(head.line, kind.to_owned(), entries, &known)?;
    let said = count(head)?;
    let count = listed(entries).unwrap_or(said);
    let names = names(&fields, prefix, count)?;
    let initial = optional_reals(&fields, "initial_point", count)?;
    let range = ranges(kind, &fields, count)?;
    for (place, name) in names.into_iter().enumerate() {
        let range = range(place);
        check(head.line, &name, &range)?;
        let initial = initial.as_ref().map(|initial| initial[place]);
        parameters.push(ImportedParameter { name, range, initial, partitions: None, group: None });
    }
    let note = || {
        format!("line {}: {kind} = {said}, but its lists have {count} entries; the lists are used", head.line)
    };
    Ok((count != said).then(note))
}

/// Range of each variable of one kind, by its place.
type Ranges = Box<dyn Fn(usize) -> ImportedRange>;

/// Returns the ranges of the variables of one kind.
fn ranges(kind: &str, fields: &Fields<'_>, count: usize) -> Result<Ranges, DakotaError> {
    if kind == "normal_uncertain" {
        return normal_ranges(fields, count);
    }
    let (lows, highs) = (reals(fields, "lower_bounds", count)?, reals(fields, "upper_bounds", count)?);
    Ok(match kind {
        "loguniform_uncertain" => Box::new(move |place| {
            let (low, high) = (lows[place], highs[place]);
            ImportedRange::Distributed(Distribution::LogUniform { low, high })
        }),
        "triangular_uncertain" => {
            let modes = reals(fields, "modes", count)?;
            Box::new(move |place| {
                let (low, mode, high) = (lows[place], modes[place], highs[place]);
                ImportedRange::Distributed(Distribution::Triangular { low, mode, high })
            })
        }
        "discrete_design_range" => {
            let lows = wholes(fields, "lower_bounds", &lows)?;
            let highs = wholes(fields, "upper_bounds", &highs)?;
            Box::new(move |place| ImportedRange::Integers { low: lows[place], high: highs[place] })
        }
        _ => Box::new(move |place| ImportedRange::Reals { low: lows[place], high: highs[place] }),
    })
}

/// Returns the normal distributions, truncated if the variables have bounds.
fn normal_ranges(fields: &Fields<'_>, count: usize) -> Result<Ranges, DakotaError> {
    let (means, deviations) = (reals(fields, "means", count)?, reals(fields, "std_deviations", count)?);
    let lows = optional_reals(fields, "lower_bounds", count)?;
    let highs = optional_reals(fields, "upper_bounds", count)?;
    if lows.is_some() != highs.is_some() {
        // With one bound only, the missing one is reported as an error: distributions here have both
        // bounds or none.
        reals(fields, "lower_bounds", count)?;
        reals(fields, "upper_bounds", count)?;
    }
    let at = |numbers: &Option<Vec<f64>>, place: usize| numbers.as_ref().map(|numbers| numbers[place]);
    Ok(Box::new(move |place| {
        let (mean, deviation) = (means[place], deviations[place]);
        ImportedRange::Distributed(match (at(&lows, place), at(&highs, place)) {
            (Some(low), Some(high)) => Distribution::TruncatedNormal { mean, deviation, low, high },
            _ => Distribution::Normal { mean, deviation },
        })
    }))
}

/// Returns the numbers of a required keyword, one per variable.
fn reals(fields: &Fields<'_>, keyword: &'static str, count: usize) -> Result<Vec<f64>, DakotaError> {
    fields.needed(keyword)?.reals(count)
}

/// Returns the numbers of a keyword, one per variable. `None` if it is missing.
fn optional_reals(fields: &Fields<'_>, keyword: &str, count: usize) -> Result<Option<Vec<f64>>, DakotaError> {
    fields.find(keyword).map(|entry| entry.reals(count)).transpose()
}

/// Returns the length of the lists (bounds, names and others) if they agree.
fn listed(entries: &[Entry]) -> Option<usize> {
    let lists = entries.iter().filter(|entry| !entry.arguments.is_empty());
    let lengths: HashSet<usize> = lists.clone().map(|entry| entry.arguments.len()).collect();
    let mut lengths = lengths.into_iter();
    match (lengths.next(), lengths.next()) {
        (Some(length), None) if lists.count() > 2 => Some(length),
        _ => None,
    }
}

/// Adds sets of numbers, such as `discrete_design_set integer = 2`.
fn sets(head: &Entry, entries: &[Entry], parameters: &mut Vec<ImportedParameter>) -> Result<(), DakotaError> {
    let is_type = |entry: &Entry| matches!(entry.keyword.as_str(), "integer" | "real");
    let starts: Vec<usize> = (0..entries.len()).filter(|&at| is_type(&entries[at])).collect();
    if starts.first() != Some(&0) {
        let of = head.keyword.clone();
        return match entries.first() {
            Some(Entry { line, keyword, .. }) => Err(DakotaError::UnknownKeyword {
                line: *line,
                keyword: keyword.clone(),
                of,
                known: "integer, real".to_owned(),
            }),
            None => Err(DakotaError::MissingKeyword { line: head.line, keyword: "integer", of }),
        };
    }
    for (place, &start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(entries.len());
        set(&entries[start], &entries[start + 1..end], parameters)?;
    }
    Ok(())
}

fn set(head: &Entry, entries: &[Entry], parameters: &mut Vec<ImportedParameter>) -> Result<(), DakotaError> {
    let known = [
        "elements_per_variable",
        "num_set_values",
        "elements",
        "set_values",
        "descriptors",
        "initial_point",
        "categorical",
    ];
    let fields = Fields::new(head.line, format!("discrete_design_set {}", head.keyword), entries, &known)?;
    let count = count(head)?;
    let integers = head.keyword == "integer";
    let names = names(&fields, if integers { "ddsiv_" } else { "ddsrv_" }, count)?;
    let elements = match fields.find("set_values") {
        Some(entry) => entry,
        None => fields.needed("elements")?,
    };
    let sizes = match fields.find("elements_per_variable").or_else(|| fields.find("num_set_values")) {
        Some(entry) => entry.integers(count)?,
        // Without sizes, variables share the elements equally.
        None => vec![(elements.arguments.len() / count) as u64; count],
    };
    let total = sizes.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size)).unwrap_or(u64::MAX);
    let all = elements.reals(usize::try_from(total).unwrap_or(usize::MAX))?;
    let initial = fields.find("initial_point").map(|entry| entry.reals(count)).transpose()?;
    let mut rest = &all[..];
    for (place, (name, size)) in names.into_iter().zip(sizes).enumerate() {
        // The sum of the sizes is the length of `all`, so the minimum never takes effect.
        let (values, after) = rest.split_at((size as usize).min(rest.len()));
        rest = after;
        let range = ImportedRange::Set { integers, values: values.to_vec() };
        check(head.line, &name, &range)?;
        let initial = initial.as_ref().map(|initial| initial[place]);
        parameters.push(ImportedParameter { name, range, initial, partitions: None, group: None });
    }
    Ok(())
}

/// Returns the number of variables of a kind, at least one.
fn count(head: &Entry) -> Result<usize, DakotaError> {
    match head.integer()? {
        number @ 1..=100_000 => Ok(number as usize),
        number => {
            let (keyword, text) = (head.keyword.clone(), number.to_string());
            Err(DakotaError::BadNumber { line: head.line, keyword, text, expected: "1 to 100000" })
        }
    }
}

fn names(fields: &Fields<'_>, prefix: &str, count: usize) -> Result<Vec<String>, DakotaError> {
    match fields.find("descriptors") {
        Some(entry) => entry.texts(count),
        None => Ok((1..=count).map(|number| format!("{prefix}{number}")).collect()),
    }
}

fn wholes(fields: &Fields<'_>, keyword: &'static str, numbers: &[f64]) -> Result<Vec<i64>, DakotaError> {
    let line = fields.needed(keyword)?.line;
    let whole = |&number: &f64| match pleach_workflow::Value::from_f64(number, ValueType::Integer) {
        Some(pleach_workflow::Value::Integer(whole)) => Ok(whole),
        _ => {
            let (keyword, text) = (keyword.to_owned(), number.to_string());
            Err(DakotaError::BadNumber { line, keyword, text, expected: "a whole number" })
        }
    };
    numbers.iter().map(whole).collect()
}

/// Checks that a range has at least one value. Equal bounds are one value.
fn check(line: usize, name: &str, range: &ImportedRange) -> Result<(), DakotaError> {
    let (low, high) = range.bounds();
    if low > high {
        let empty = matches!(range, ImportedRange::Set { .. });
        let name = name.to_owned();
        return Err(if empty {
            DakotaError::BadRange { line, name, problem: DomainError::NoValues }
        } else {
            DakotaError::Reversed { line, name, low, high }
        });
    }
    let problem = match range {
        ImportedRange::Distributed(distribution) => distribution.check().err(),
        ImportedRange::Set { integers, values } => {
            let value_type = if *integers { ValueType::Integer } else { ValueType::Real };
            Domain::set(value_type, values).err()
        }
        ImportedRange::Reals { .. } | ImportedRange::Integers { .. } => None,
    };
    match problem {
        Some(problem) => Err(DakotaError::BadRange { line, name: name.to_owned(), problem }),
        None => Ok(()),
    }
}
