//! Reads responses from a file: one value per response and evaluation, or an empty field if the evaluation
//! failed.
//!
//! Rows are in the order of the samples unless a column `evaluation` names the evaluation of each row. A
//! table that also has a column `tile`, such as a study's responses.csv, holds several rows per evaluation.
//! The reader aggregates them over tiles.

use crate::error::{ResponsesError, ResponsesProblem};
use crate::problem::Problem;
use crate::samples::{SampleTable, evaluation_column, evaluation_number};
use pleach_tables::{Column, ColumnRequest, Table, TableData};
use pleach_workflow::Aggregate;
use std::path::Path;

/// Column with the tile of a response.
const TILE: &str = "tile";

/// Column that Dakota adds to its tables. It holds no response.
const DAKOTA_INTERFACE: &str = "interface";

/// One response of all evaluations.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseColumn {
    /// Name of the response: the header of its column. In a table without a header, `y` for a single column, or
    /// `y1`, `y2`, ….
    pub name: String,
    /// One value per evaluation, in the order of the samples. `None` for a failed evaluation.
    pub values: Vec<Option<f64>>,
}

/// Reads the responses to the samples: the columns `only`, or all columns that are no parameters if `only` is
/// empty.
///
/// # Errors
/// [`ResponsesError`] with the file, row and column of a missing, duplicate or non-numeric value.
pub fn read(
    problem: &Problem,
    samples: &SampleTable,
    file: &Path,
    only: &[String],
) -> Result<Vec<ResponseColumn>, ResponsesError> {
    let table = Table::open(file)?;
    let fail = |problem| ResponsesError::Mismatch { file: file.to_owned(), problem };
    let layout = Layout::of(problem, &table, only).map_err(fail)?;
    let mut wanted: Vec<ColumnRequest> =
        layout.responses.iter().map(|(column, _)| ColumnRequest::Numbers(*column)).collect();
    wanted.extend(layout.evaluation.map(ColumnRequest::Numbers));
    wanted.extend(layout.tile.map(ColumnRequest::Labels));
    let mut content = table.read(&wanted)?;
    let count = layout.responses.len();
    let columns: Vec<Vec<f64>> = (0..count).map(|place| content.take_numbers(place)).collect();
    let columns = match layout.evaluation {
        None => {
            if content.rows != samples.rows {
                let table = samples.file.clone();
                let problem = ResponsesProblem::RowCount { rows: content.rows, table, samples: samples.rows };
                return Err(fail(problem));
            }
            columns.into_iter().map(|column| samples.in_order(column)).collect()
        }
        Some(_) => {
            let numbers = content.take_numbers(count);
            let places = places(samples, numbers, &content).map_err(fail)?;
            // The labels were requested last, so they are the last column.
            let tiles = layout.tile.and_then(|_| content.columns.pop());
            match tiles {
                Some(Column::Labels { texts, of }) => {
                    let tiles = Tiles { count: texts.len(), of, names: texts };
                    let names = layout.responses.iter().map(|(_, name)| name.as_str());
                    let over: Vec<Aggregate> = names.map(|name| over_tiles(problem, name)).collect();
                    let rows = Rows { places: &places, evaluations: samples.rows, content: &content };
                    together(&columns, &rows, &tiles, &over).map_err(fail)?
                }
                _ => apart(&columns, &places, samples.rows, &content).map_err(fail)?,
            }
        }
    };
    let names = layout.responses.into_iter().map(|(_, name)| name);
    let value = |number: f64| (!number.is_nan()).then_some(number);
    let measured = names
        .zip(columns)
        .map(|(name, column)| ResponseColumn { name, values: column.into_iter().map(value).collect() });
    Ok(measured.collect())
}

/// Columns of a table by content.
struct Layout {
    responses: Vec<(usize, String)>,
    evaluation: Option<usize>,
    tile: Option<usize>,
}

impl Layout {
    fn of(problem: &Problem, table: &Table, only: &[String]) -> Result<Self, ResponsesProblem> {
        let names: Vec<String> = match table.names() {
            Some(names) => names.to_vec(),
            None if table.width() == 1 => vec!["y".to_owned()],
            None => (1..=table.width()).map(|number| format!("y{number}")).collect(),
        };
        let is_parameter = |name: &str| problem.parameters.iter().any(|parameter| parameter.name == name);
        let evaluation = evaluation_column(&names).filter(|&column| !is_parameter(&names[column]));
        let tile = names
            .iter()
            .position(|name| name == TILE && !is_parameter(name))
            // Without evaluation numbers, rows of several tiles cannot be assigned to evaluations.
            .filter(|_| evaluation.is_some());
        let about = |column: usize| {
            Some(column) == evaluation
                || Some(column) == tile
                || names[column] == DAKOTA_INTERFACE
                || is_parameter(&names[column])
        };
        let mut responses = Vec::new();
        for name in only {
            match names.iter().position(|known| known == name) {
                Some(column) if !about(column) => responses.push((column, name.clone())),
                _ => {
                    return Err(ResponsesProblem::NoResponse { name: name.clone(), columns: names });
                }
            }
        }
        if only.is_empty() {
            responses
                .extend((0..names.len()).filter(|&column| !about(column)).map(|c| (c, names[c].clone())));
        }
        match responses.is_empty() {
            true => Err(ResponsesProblem::NoColumn { columns: names }),
            false => Ok(Self { responses, evaluation, tile }),
        }
    }
}

/// Returns the index of each row's evaluation in the sample.
fn places(
    samples: &SampleTable,
    numbers: Vec<f64>,
    content: &TableData,
) -> Result<Vec<u32>, ResponsesProblem> {
    let mut places = Vec::with_capacity(numbers.len());
    for (row, number) in numbers.into_iter().enumerate() {
        let evaluation = evaluation_number(number, row, content)?;
        let Some(place) = samples.index_of(evaluation) else {
            let (row, table, (first, last)) = (content.row_label(row), samples.file.clone(), samples.span());
            return Err(ResponsesProblem::UnknownEvaluation { row, evaluation, table, first, last });
        };
        // The cast is lossless: a sample has at most 10,000,000 rows.
        places.push(place as u32);
    }
    Ok(places)
}

/// Sorts columns with one row per evaluation. Evaluations without a row failed.
fn apart(
    columns: &[Vec<f64>],
    places: &[u32],
    evaluations: usize,
    content: &TableData,
) -> Result<Vec<Vec<f64>>, ResponsesProblem> {
    let mut seen = vec![false; evaluations];
    for (row, &place) in places.iter().enumerate() {
        if std::mem::replace(&mut seen[place as usize], true) {
            return Err(ResponsesProblem::DuplicateEvaluation { row: content.row_label(row) });
        }
    }
    let sorted = |column: &Vec<f64>| {
        let mut sorted = vec![f64::NAN; evaluations];
        places.iter().zip(column).for_each(|(&place, &number)| sorted[place as usize] = number);
        sorted
    };
    Ok(columns.iter().map(sorted).collect())
}

/// Tiles of a table, with the tile of each row.
struct Tiles {
    count: usize,
    of: Vec<u32>,
    names: Vec<String>,
}

/// Evaluations of a table, with the evaluation of each row.
struct Rows<'a> {
    places: &'a [u32],
    evaluations: usize,
    content: &'a TableData,
}

fn over_tiles(problem: &Problem, name: &str) -> Aggregate {
    problem.metrics.iter().find(|(known, _)| known == name).map_or(Aggregate::Mean, |(_, over)| *over)
}

/// Aggregates columns over tiles. An evaluation without a value on any of the table's tiles failed. A tile on
/// which every evaluation failed has no rows and does not count.
fn together(
    columns: &[Vec<f64>],
    rows: &Rows<'_>,
    tiles: &Tiles,
    over: &[Aggregate],
) -> Result<Vec<Vec<f64>>, ResponsesProblem> {
    let mut seen = vec![false; rows.evaluations * tiles.count];
    let mut found = vec![0_u32; rows.evaluations];
    for (row, (&place, &tile)) in rows.places.iter().zip(&tiles.of).enumerate() {
        if std::mem::replace(&mut seen[place as usize * tiles.count + tile as usize], true) {
            let (row, tile) = (rows.content.row_label(row), tiles.names[tile as usize].clone());
            return Err(ResponsesProblem::DuplicateTile { row, tile });
        }
        found[place as usize] += 1;
    }
    let put = |(column, over): (&Vec<f64>, &Aggregate)| {
        // A missing value is NaN and makes the sum NaN.
        let mut sums = vec![0.0; rows.evaluations];
        rows.places.iter().zip(column).for_each(|(&place, &number)| sums[place as usize] += number);
        for (sum, &found) in sums.iter_mut().zip(&found) {
            *sum = match over {
                _ if found as usize != tiles.count => f64::NAN,
                Aggregate::Mean => *sum / tiles.count as f64,
                Aggregate::Sum => *sum,
            };
        }
        sums
    };
    Ok(columns.iter().zip(over).map(put).collect())
}
