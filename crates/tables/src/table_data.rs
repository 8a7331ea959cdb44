//! Content of a table: columns of numbers and of labels.

/// Request for a column, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRequest {
    /// A column of numbers.
    Numbers(usize),
    /// A column of labels, with few distinct texts.
    Labels(usize),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// One number per row. NaN if missing. All other numbers are finite.
    Numbers(Vec<f64>),
    /// One text per row, stored as an index.
    Labels {
        /// Distinct texts in order of occurrence.
        texts: Vec<String>,
        /// Index of each row's text.
        of: Vec<u32>,
    },
}

/// The requested columns, in the order of the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct TableData {
    /// The columns, all of the same length.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: usize,
    /// Line of the first row, if every row is on the line after its predecessor.
    pub first_line: Option<usize>,
}

impl TableData {
    /// Returns the location of a row (from 0) in the file: its line, if known, or its number from 1.
    #[must_use]
    pub fn row_label(&self, row: usize) -> String {
        match self.first_line {
            Some(first) => format!("line {}", first + row),
            None => format!("row {}", row + 1),
        }
    }

    /// Takes the numbers of the request at this position. Empty for a label request.
    #[must_use]
    pub fn take_numbers(&mut self, place: usize) -> Vec<f64> {
        match self.columns.get_mut(place) {
            Some(Column::Numbers(numbers)) => std::mem::take(numbers),
            Some(Column::Labels { .. }) | None => Vec::new(),
        }
    }
}

/// Texts with few distinct values, stored as indices.
#[derive(Default)]
pub(crate) struct LabelColumn {
    texts: Vec<String>,
    known: std::collections::HashMap<String, u32>,
    of: Vec<u32>,
}

impl LabelColumn {
    pub(crate) fn push(&mut self, text: &str) {
        let number = match self.known.get(text) {
            Some(&number) => number,
            None => {
                // Fits: tables have fewer than 2³² rows.
                let number = self.texts.len() as u32;
                self.texts.push(text.to_owned());
                self.known.insert(text.to_owned(), number);
                number
            }
        };
        self.of.push(number);
    }

    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    pub(crate) fn finish(self) -> Column {
        Column::Labels { texts: self.texts, of: self.of }
    }
}
