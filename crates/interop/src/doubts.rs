//! Warnings about a sample that depend only on its values: bounds that it does not cover, and parameters that
//! it cannot distinguish.
//!
//! Values outside the bounds are errors. `samples` reports them when it reads the sample.

use crate::analysis::DesignForm;
use crate::samples::SampleTable;
use pleach_workflow::{Domain, Parameter};

/// Minimum number of evaluations for a check of the coverage. Smaller samples often miss half of the range by
/// chance: of samples of 10 uniform values, 1 in 100 covers less than half.
const MIN_ROWS: usize = 10;

/// Minimum share of a parameter's range that a sample must cover to represent the bounds.
const MIN_COVERAGE: f64 = 0.5;

/// Correlation above which two columns count as one: only 2 % of their variance is their own.
const MAX_CORRELATION: f64 = 0.99;

/// Maximum number of parameters whose columns are compared pairwise. With more, the comparison takes longer
/// than the analysis.
const MAX_COMPARED: usize = 300;

/// Maximum number of names in a line. The line counts the remaining names.
const MAX_NAMES: usize = 6;

/// Returns one line per kind of warning. Checks for columns that vary together only in given data: designs
/// may couple parameters on purpose.
pub fn doubts(samples: &SampleTable, form: &DesignForm) -> Vec<String> {
    if samples.rows < MIN_ROWS {
        return Vec::new();
    }
    let varying: Vec<(&Parameter, &[f64])> = samples
        .parameters
        .iter()
        .zip(&samples.columns)
        .filter(|(parameter, _)| parameter.domain.varies())
        .map(|(parameter, column)| (parameter, column.as_slice()))
        .collect();
    let is_given = matches!(form, DesignForm::Columns(_));
    let together = if is_given { together(&varying) } else { None };
    uncovered(&varying).into_iter().chain(together).collect()
}

/// Returns a line with the parameters whose range the sample covers by less than half. `None` without such
/// parameters.
fn uncovered(varying: &[(&Parameter, &[f64])]) -> Option<String> {
    let share = |(parameter, column): &(&Parameter, &[f64])| {
        let (low, high) = parameter.domain.bounds();
        let least = column.iter().copied().fold(f64::INFINITY, f64::min);
        let most = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let share = (most - least) / (high - low);
        // The bounds of a distribution may be orders of magnitude apart and are no range to cover.
        (share.is_finite() && !is_distributed(parameter) && share < MIN_COVERAGE)
            .then(|| format!("{} ({:.0} %)", parameter.name, 100.0 * share))
    };
    let names: Vec<String> = varying.iter().filter_map(share).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the sample covers less than half of the range of {} of {} parameters: {}",
            names.len(),
            varying.len(),
            listed(&names)
        )
    })
}

fn is_distributed(parameter: &Parameter) -> bool {
    matches!(parameter.domain, Domain::Distributed { .. })
}

/// Returns a line with the pairs of columns that are equal except for scale and rounding. `None` without such
/// pairs.
fn together(varying: &[(&Parameter, &[f64])]) -> Option<String> {
    if varying.len() > MAX_COMPARED {
        return None;
    }
    let centered: Vec<Vec<f64>> = varying.iter().map(|(_, column)| centered(column)).collect();
    let mut names = Vec::new();
    for (place, (one, _)) in varying.iter().enumerate() {
        for (other, (another, _)) in varying.iter().enumerate().skip(place + 1) {
            let product: f64 = centered[place].iter().zip(&centered[other]).map(|(a, b)| a * b).sum();
            if product.abs() > MAX_CORRELATION {
                names.push(format!("{} and {}", one.name, another.name));
            }
        }
    }
    (!names.is_empty())
        .then(|| format!("columns vary together, so their effects cannot be separated: {}", listed(&names)))
}

/// Returns the deviations from the mean, scaled to length 1. All 0 for a constant column.
fn centered(column: &[f64]) -> Vec<f64> {
    let mean = column.iter().sum::<f64>() / column.len() as f64;
    let length = column.iter().map(|value| (value - mean).powi(2)).sum::<f64>().sqrt();
    let scaled = |value: &f64| if length > 0.0 { (value - mean) / length } else { 0.0 };
    column.iter().map(scaled).collect()
}

fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
