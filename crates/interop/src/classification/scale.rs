//! Standard scores of features.

use super::Row;

/// Mean and standard deviation of each feature that differs between groups.
#[derive(Debug)]
pub(super) struct Scale(Vec<(usize, f64, f64)>);

impl Scale {
    /// Computes the scale of these rows, with the standard deviation of the population.
    pub(super) fn of(rows: &[Row]) -> Self {
        let count = rows.len() as f64;
        let of_column = |column: usize| {
            let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
            let variance = rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>() / count;
            // Equal numbers may differ from their mean by rounding.
            let sd = variance.sqrt();
            (sd > 1e-12 * mean.abs()).then_some((column, mean, sd))
        };
        Self((0..rows.first().map_or(0, Vec::len)).filter_map(of_column).collect())
    }

    /// Returns the number of features that differ.
    pub(super) fn features(&self) -> usize {
        self.0.len()
    }

    /// Returns the standard scores of a row.
    pub(super) fn apply(&self, row: &[f64]) -> Row {
        self.0.iter().map(|(column, mean, sd)| (row[*column] - mean) / sd).collect()
    }
}
