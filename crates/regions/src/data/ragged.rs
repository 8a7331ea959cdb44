//! Ragged arrays: rows of different lengths, such as the neighbors of each nucleus.

use crate::TypedValues;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Rows of numbers of one type, each with its own length. Empty rows are allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct RaggedArray {
    /// End of each row, in values from the first one.
    ends: Vec<u64>,
    values: TypedValues,
}

/// The ends of the rows do not match the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "ragged array: row {row} ends at {end} of {values} values; ascending ends up to the number of values are allowed"
)]
pub struct RaggedError {
    /// Index of the invalid row, or of the last one if the last end differs from the number of values.
    pub row: usize,
    /// End of that row.
    pub end: u64,
    /// Number of values.
    pub values: usize,
}

impl RaggedArray {
    /// Creates rows from `values` with these ends. Each row starts at the end of the previous one.
    ///
    /// # Errors
    /// Returns a [`RaggedError`] if a row ends before it starts, or the last row does not end at the last
    /// value.
    pub fn new(ends: Vec<u64>, values: TypedValues) -> Result<Self, RaggedError> {
        let count = values.len();
        if let Some(row) = ends.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(RaggedError { row: row + 1, end: ends[row + 1], values: count });
        }
        let end = ends.last().copied().unwrap_or(0);
        if end != count as u64 {
            return Err(RaggedError { row: ends.len().saturating_sub(1), end, values: count });
        }
        Ok(Self { ends, values })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the values of all rows.
    #[must_use]
    pub fn values(&self) -> &TypedValues {
        &self.values
    }

    /// Returns the end of each row, in values from the first one.
    #[must_use]
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// Returns the range of a row in all values. `None` if the row does not exist.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<std::ops::Range<usize>> {
        let end = *self.ends.get(row)?;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        Some(start as usize..end as usize)
    }
}

/// Serialized form of rows: their parts, so that deserialization checks them again.
#[derive(Serialize, Deserialize)]
struct Stored {
    ends: Vec<u64>,
    values: TypedValues,
}

impl TryFrom<Stored> for RaggedArray {
    type Error = RaggedError;

    fn try_from(Stored { ends, values }: Stored) -> Result<Self, RaggedError> {
        Self::new(ends, values)
    }
}

impl From<RaggedArray> for Stored {
    fn from(RaggedArray { ends, values }: RaggedArray) -> Self {
        Self { ends, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found() {
        let ragged = RaggedArray::new(vec![2, 2, 3], vec![7_i32, 8, 9].into()).unwrap();
        let rows: Vec<_> = (0..3).map(|row| ragged.row(row).unwrap()).collect();
        assert_eq!(rows, [0..2, 2..2, 2..3]);
        assert_eq!((ragged.len(), ragged.row(3)), (3, None));
        assert!(RaggedArray::new(Vec::new(), Vec::<u8>::new().into()).unwrap().is_empty());
    }

    #[test]
    fn ends_that_do_not_fit_are_refused() {
        let refusal = |ends: &[u64]| RaggedArray::new(ends.to_vec(), vec![1.0_f64, 2.0].into()).unwrap_err();
        let text = "ragged array: row 1 ends at 1 of 2 values; ascending ends up to the number of values are allowed";
        assert_eq!(refusal(&[2, 1]).to_string(), text);
        assert_eq!(refusal(&[1]).end, 1);
        assert_eq!(refusal(&[]).end, 0);
        assert_eq!(refusal(&[u64::MAX]).end, u64::MAX);
    }
}
