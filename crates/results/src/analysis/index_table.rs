//! Indices of any method as a table: one row per parameter, one column per number. CSV files and the terminal
//! show it.

use super::{Analysis, ParameterCorrelation, tables};
use pleach_sensitivity::correlation::Coefficient;
use pleach_sensitivity::estimate::Estimate;
use pleach_sensitivity::indices::Indices;
use pleach_sensitivity::warnings::Warning;
use pleach_study::Defect;

/// Indices of one response as a table.
#[derive(Debug)]
pub struct IndexTable {
    /// Names of the columns, as in CSV headers.
    pub columns: Vec<String>,
    /// One row per parameter in the order of the parameters: its name and one number per column. `None` if a
    /// number is not defined.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// Index of the column that ranks the parameters by its absolute value.
    pub main: usize,
}

impl Analysis {
    /// Returns the name of the response.
    pub fn response(&self) -> &str {
        match self {
            Self::Indices(indices) => indices.response(),
            Self::Correlations(found) => &found.response,
            Self::Regression(found) => &found.response,
            Self::None { response, .. } => response,
        }
    }

    /// Returns the warnings about the indices.
    pub fn warnings(&self) -> Vec<Warning> {
        match self {
            Self::Indices(indices) => indices.warnings(),
            Self::Correlations(found) => found.warnings(),
            Self::Regression(found) => Indices::Src(found.src.clone()).warnings(),
            Self::None { .. } => Vec::new(),
        }
    }
}

impl IndexTable {
    /// Creates the table of an analysis. `None` if there are no indices.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        Some(match analysis {
            Analysis::None { .. } => return None,
            Analysis::Indices(indices) => of_indices(indices)?,
            Analysis::Correlations(found) => {
                let rows =
                    found.parameters.iter().map(|p| (p.name.as_str(), p.each().map(|of| *of).to_vec()));
                estimates(&ParameterCorrelation::KINDS, rows, 3)
            }
            Analysis::Regression(found) => {
                let both = found.src.parameters.iter().zip(&found.srrc.parameters);
                let rows =
                    both.map(|(src, srrc)| (src.name.as_str(), vec![src.coefficient, srrc.coefficient]));
                estimates(&["src", "srrc"], rows, 0)
            }
        })
    }

    /// Returns the rows in descending order of the main column's absolute value.
    pub fn ranked(&self) -> Vec<&(String, Vec<Option<f64>>)> {
        let mut ranked: Vec<_> = self.rows.iter().collect();
        let size = |row: &(String, Vec<Option<f64>>)| row.1[self.main].unwrap_or(0.0).abs();
        ranked.sort_by(|a, b| size(b).total_cmp(&size(a)));
        ranked
    }

    /// Returns the table as CSV.
    pub(super) fn csv(&self) -> Result<Vec<u8>, Defect> {
        let header = std::iter::once("parameter").chain(self.columns.iter().map(String::as_str));
        tables::csv(&header.collect::<Vec<_>>(), self.records())
    }

    /// Returns the rows of the CSV. Undefined numbers are empty.
    pub fn records(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        let shown = |number: &Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
        self.rows.iter().map(move |(name, numbers)| {
            std::iter::once(name.clone()).chain(numbers.iter().map(shown)).collect()
        })
    }
}

/// Creates a table of estimates. A column with the half-width of the interval follows each estimate. `main`
/// is the index of the ranking estimate.
fn estimates<'a>(
    names: &[&str],
    rows: impl Iterator<Item = (&'a str, Vec<Estimate>)>,
    main: usize,
) -> IndexTable {
    let columns = names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}_conf")]).collect();
    let row = |(name, of): (&str, Vec<Estimate>)| {
        (name.to_owned(), of.iter().flat_map(|of| [of.value, of.conf]).collect())
    };
    IndexTable { columns, rows: rows.map(row).collect(), main: 2 * main }
}

fn coefficients(name: &str, parameters: &[Coefficient]) -> IndexTable {
    estimates(&[name], parameters.iter().map(|p| (p.name.as_str(), vec![p.coefficient])), 0)
}

/// Appends a column of counts.
fn with_counts(mut listed: IndexTable, name: &str, counts: impl Iterator<Item = usize>) -> IndexTable {
    listed.columns.push(name.to_owned());
    for ((_, numbers), count) in listed.rows.iter_mut().zip(counts) {
        numbers.push(Some(count as f64));
    }
    listed
}

fn of_indices(indices: &Indices) -> Option<IndexTable> {
    Some(match indices {
        Indices::Moat(found) => {
            let columns = ["mu", "mu_conf", "mu_star", "mu_star_conf", "sigma", "sigma_conf", "effect"];
            let rows = found.parameters.iter().map(|p| {
                let spread = [p.mu_conf, Some(p.mu_star), p.mu_star_conf, p.sigma, p.sigma_conf];
                let numbers = std::iter::once(Some(p.mu)).chain(spread).chain([Some(p.effect)]);
                (p.name.clone(), numbers.collect())
            });
            IndexTable { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect(), main: 2 }
        }
        Indices::Vbd(found) => {
            let rows = found.parameters.iter().map(|p| (p.name.as_str(), vec![p.first, p.total]));
            let listed = estimates(&["first", "total"], rows, 1);
            with_counts(listed, "failed", found.parameters.iter().map(|p| p.failed))
        }
        Indices::Efast(found) => {
            let rows = found.parameters.iter().map(|p| (p.name.as_str(), vec![p.first, p.total]));
            let listed = estimates(&["first", "total"], rows, 1);
            with_counts(listed, "failed", found.parameters.iter().map(|p| p.failed))
        }
        Indices::Pawn(found) => {
            let names = ["median", "mean", "minimum", "maximum", "deviation", "cv"];
            let rows = found
                .parameters
                .iter()
                .map(|p| (p.name.as_str(), vec![p.median, p.mean, p.minimum, p.maximum, p.deviation, p.cv]));
            estimates(&names, rows, 0)
        }
        Indices::Delta(found) => {
            let plain = |p: &pleach_sensitivity::delta::DeltaParameter| p.plain;
            let rows = found.parameters.iter().map(|p| (p.name.as_str(), vec![p.delta, p.first]));
            let mut listed = estimates(&["delta", "first"], rows, 0);
            listed.columns.push("plain".to_owned());
            for ((_, numbers), parameter) in listed.rows.iter_mut().zip(&found.parameters) {
                numbers.push(plain(parameter));
            }
            // Without resamples, only the plain estimate is defined.
            if found.parameters.iter().all(|p| p.delta.value.is_none()) {
                listed.main = 4;
            }
            listed
        }
        Indices::RbdFast(found) => coefficients("first", &found.parameters),
        Indices::Pearson(found) | Indices::Spearman(found) | Indices::Pcc(found) | Indices::Prcc(found) => {
            coefficients("coefficient", &found.parameters)
        }
        Indices::Src(found) | Indices::Srrc(found) => coefficients("coefficient", &found.parameters),
        _ => return None,
    })
}
