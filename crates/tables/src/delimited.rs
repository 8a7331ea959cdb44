//! Text tables: CSV, and numbers separated by blanks. This module opens files, `pleach-sensitivity` parses them.

use crate::table_data::{Column, ColumnRequest, LabelColumn, TableData};
use crate::{Format, MAX_ROWS, TableProblem};
use pleach_sensitivity::table::{Numbers, Separation, TableError};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// An open text table.
pub(crate) struct Delimited(Numbers<BufReader<File>>);

/// 256 KiB read at once: a small fraction of a second on any disk.
const BUFFER_BYTES: usize = 1 << 18;

enum Filling {
    Numbers(Vec<f64>),
    Labels(LabelColumn),
}

impl Delimited {
    pub(crate) fn open(file: &Path, format: Format) -> Result<Self, TableProblem> {
        let separation = match format {
            Format::Csv | Format::Parquet => Separation::Marks,
            Format::Text => Separation::MarksOrBlanks,
        };
        let file = BufReader::with_capacity(BUFFER_BYTES, File::open(file)?);
        Ok(Self(Numbers::open(file, separation).map_err(simple)?))
    }

    pub(crate) fn names(&self) -> Option<&[String]> {
        self.0.header()
    }

    pub(crate) fn width(&self) -> usize {
        self.0.width()
    }

    pub(crate) fn read(mut self, wanted: &[ColumnRequest]) -> Result<TableData, TableProblem> {
        let mut filling: Vec<Filling> = wanted
            .iter()
            .map(|wanted| match wanted {
                ColumnRequest::Numbers(_) => Filling::Numbers(Vec::new()),
                ColumnRequest::Labels(_) => Filling::Labels(LabelColumn::default()),
            })
            .collect();
        let (mut rows, mut first_line) = (0, None);
        while self.0.advance().map_err(simple)? {
            if rows == MAX_ROWS {
                return Err(TableProblem::TooManyRows);
            }
            let line = self.0.line();
            // Lines are in step with rows until a line is empty or a field spans lines. Then messages count rows.
            first_line = if rows == 0 { Some(line) } else { first_line.filter(|first| first + rows == line) };
            rows += 1;
            for (wanted, filling) in wanted.iter().zip(&mut filling) {
                match (wanted, filling) {
                    (ColumnRequest::Numbers(column), Filling::Numbers(numbers)) => match self
                        .0
                        .number(*column)
                    {
                        Ok(number) => numbers.push(number.unwrap_or(f64::NAN)),
                        Err(problem) => {
                            let (column, problem) = (self.name(*column), problem.to_string());
                            return Err(TableProblem::NoNumber { row: line, is_line: true, column, problem });
                        }
                    },
                    (ColumnRequest::Labels(column), Filling::Labels(labels)) => {
                        labels.push(self.0.field(*column))
                    }
                    _ => {}
                }
            }
        }
        let finish = |filling| match filling {
            Filling::Numbers(numbers) => Column::Numbers(numbers),
            Filling::Labels(labels) => labels.finish(),
        };
        Ok(TableData { columns: filling.into_iter().map(finish).collect(), rows, first_line })
    }

    fn name(&self, column: usize) -> String {
        let named = self.0.header().and_then(|names| names.get(column));
        named.map_or_else(|| (column + 1).to_string(), |name| pleach_workflow::text::quoted(name, 80))
    }
}

/// Maps an error of the system to the same variant as for other formats, so that the message states it once.
fn simple(error: TableError) -> TableProblem {
    match error {
        TableError::Unreadable(error) => TableProblem::Unreadable(error),
        other => TableProblem::Text(other),
    }
}
