//! Doubts about a sample that follow from its values alone, whatever the responses: bounds that it does not cover, and
//! parameters that it does not tell apart.
//!
//! Values outside the bounds are no doubt but an error, found where samples are read.

use super::analysis::DesignForm;
use super::samples::SampleTable;
use pleach_workflow::{Domain, Parameter};

/// Evaluations from which the spread of a sample is judged: with fewer, half of the range is often left out by chance. Of
/// 10 uniform values, 1 in 100 samples covers less.
const MIN_ROWS: usize = 10;

/// The share of a parameter's range below which a sample does not stand for the bounds.
const MIN_COVERAGE: f64 = 0.5;

/// The correlation from which two columns are taken for one: of their variance, 2 % are their own.
const MAX_CORRELATION: f64 = 0.99;

/// Most parameters whose columns are compared with each other: beyond, comparing takes longer than analyzing.
const MAX_COMPARED: usize = 300;

/// Names that one line lists; more are counted.
const MAX_NAMES: usize = 6;

/// One line for each kind of doubt. In designs of methods that draw their own, parameters may move together.
pub(crate) fn doubts(samples: &SampleTable, form: &DesignForm) -> Vec<String> {
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

/// Parameters of whose range the sample leaves out half.
fn uncovered(varying: &[(&Parameter, &[f64])]) -> Option<String> {
    let share = |(parameter, column): &(&Parameter, &[f64])| {
        let (low, high) = parameter.domain.bounds();
        let least = column.iter().copied().fold(f64::INFINITY, f64::min);
        let most = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let share = (most - least) / (high - low);
        // Bounds far from each other by orders of magnitude are those of a distribution, not of a range.
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

/// Pairs of columns that are one but for rounding.
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
    (!names.is_empty()).then(|| {
        format!("columns vary together, so that their effects cannot be told apart: {}", listed(&names))
    })
}

/// Deviations from the mean, of length 1; zeros of a column with one value.
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
