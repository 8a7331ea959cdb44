//! Reads parameter sets from a file: one column of numbers per parameter, in the order of evaluations.

use crate::error::{EvaluationNumberError, SampleTableError, SampleTableProblem, ValueProblem};
use crate::problem::Problem;
use pleach_sensitivity::design_detection::ParameterColumns;
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::sampling::MAX_EVALUATIONS;
use pleach_sensitivity::table::EVALUATION_COLUMN;
use pleach_tables::{ColumnRequest, Table, TableData};
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use std::path::{Path, PathBuf};

/// Dakota's name of the column that numbers evaluations.
const DAKOTA_EVALUATION: &str = "%eval_id";

/// Parameter sets of a file.
#[derive(Debug)]
pub struct SampleTable {
    pub(crate) file: PathBuf,
    /// Parameters with a column, in the order of the problem. They include all varying parameters.
    pub(crate) parameters: Vec<Parameter>,
    /// Groups of these parameters.
    pub(crate) groups: Groups,
    /// One column per parameter.
    pub(crate) columns: Vec<Vec<f64>>,
    /// Number of parameter sets, at least 1. Each is one row of the file and one evaluation.
    pub rows: usize,
    /// Numbers of the evaluations, ascending. `None` if they are 1, 2, ….
    numbers: Option<Vec<u64>>,
    /// For each row of the file, its index in ascending order of evaluations. `None` if the rows are in that
    /// order.
    order: Option<Vec<u32>>,
}

/// Returns the index of the column that numbers evaluations.
pub(super) fn evaluation_column(names: &[String]) -> Option<usize> {
    names.iter().position(|name| name == EVALUATION_COLUMN || name == DAKOTA_EVALUATION)
}

impl SampleTable {
    /// Reads the parameter sets of a problem.
    ///
    /// # Errors
    /// [`SampleTableError`] with the file, row and column of a missing or invalid value.
    pub fn read(problem: &Problem, file: &Path) -> Result<Self, SampleTableError> {
        let table = Table::open(file)?;
        let (places, found) = columns_of(problem, file, &table)?;
        let named = |name: &String| problem.parameters.iter().any(|parameter| parameter.name == *name);
        let numbered =
            table.names().and_then(|names| evaluation_column(names).filter(|&column| !named(&names[column])));
        let mut wanted: Vec<ColumnRequest> =
            found.iter().map(|&column| ColumnRequest::Numbers(column)).collect();
        wanted.extend(numbered.map(ColumnRequest::Numbers));
        let mut content = table.read(&wanted)?;
        let fail = |problem| SampleTableError::Mismatch { file: file.to_owned(), problem };
        if content.rows == 0 {
            return Err(fail(SampleTableProblem::NoRows));
        }
        if content.rows as u64 > MAX_EVALUATIONS {
            return Err(fail(SampleTableProblem::TooManyRows { rows: content.rows }));
        }
        let mut columns = Vec::with_capacity(places.len());
        for (column, &place) in places.iter().enumerate() {
            let numbers = content.take_numbers(column);
            check(&problem.parameters[place], &numbers, &content).map_err(fail)?;
            columns.push(numbers);
        }
        let (numbers, order) = match numbered {
            None => (None, None),
            Some(_) => numbers_of(content.take_numbers(places.len()), &content).map_err(fail)?,
        };
        if let Some(order) = &order {
            for column in &mut columns {
                *column = ordered(column, order);
            }
        }
        let groups = problem.groups_of(&places)?;
        let parameters = places.iter().map(|&place| problem.parameters[place].clone()).collect();
        Ok(Self { file: file.to_owned(), parameters, groups, columns, rows: content.rows, numbers, order })
    }

    /// Creates the table of parameter sets that [`sampling::rows`](crate::sampling::rows) has drawn.
    ///
    /// # Errors
    /// [`SampleTableError::NothingVaries`] without varying parameters.
    pub fn of_rows(problem: &Problem, rows: &[Vec<Value>]) -> Result<Self, SampleTableError> {
        if !problem.parameters.iter().any(|parameter| parameter.domain.varies()) {
            return Err(SampleTableError::NothingVaries { file: problem.file.clone() });
        }
        let places: Vec<usize> = (0..problem.parameters.len()).collect();
        let column = |place: &usize| rows.iter().map(|row| row[*place].as_f64()).collect();
        Ok(Self {
            file: problem.file.clone(),
            parameters: problem.parameters.clone(),
            groups: problem.groups_of(&places)?,
            columns: places.iter().map(column).collect(),
            rows: rows.len(),
            numbers: None,
            order: None,
        })
    }

    /// Returns the parameter sets as input for design detection.
    pub(crate) fn sets(&self) -> ParameterColumns<'_> {
        ParameterColumns { parameters: &self.parameters, columns: &self.columns }
    }

    /// Returns the varying parameters with their values.
    pub fn varying(&self) -> impl Iterator<Item = (&Parameter, &[f64])> {
        let all = self.parameters.iter().zip(&self.columns);
        all.filter(|(parameter, _)| parameter.domain.varies())
            .map(|(parameter, values)| (parameter, &values[..]))
    }

    /// Returns the index of an evaluation with this number.
    pub(crate) fn index_of(&self, number: u64) -> Option<usize> {
        match &self.numbers {
            Some(numbers) => numbers.binary_search(&number).ok(),
            None => usize::try_from(number.checked_sub(1)?).ok().filter(|place| *place < self.rows),
        }
    }

    /// Returns the first and the last number of the evaluations.
    pub(crate) fn span(&self) -> (u64, u64) {
        let numbers = self.numbers.as_ref().and_then(|numbers| numbers.first().zip(numbers.last()));
        numbers.map_or((1, self.rows as u64), |(first, last)| (*first, *last))
    }

    /// Reorders numbers from the order of the file's rows to the order of evaluations.
    pub(crate) fn in_order(&self, numbers: Vec<f64>) -> Vec<f64> {
        match &self.order {
            Some(order) => ordered(&numbers, order),
            None => numbers,
        }
    }

    /// Checks that no evaluation is missing. Methods with a design need all of its rows.
    ///
    /// # Errors
    /// [`SampleTableProblem::Incomplete`] with the first missing evaluation.
    pub(crate) fn check_complete(&self) -> Result<(), SampleTableError> {
        let Some(numbers) = &self.numbers else { return Ok(()) };
        let gap = numbers.iter().zip(1..).find(|(number, expected)| *number != expected);
        let missing = gap.map_or(0, |(_, expected)| expected);
        let problem = SampleTableProblem::Incomplete { missing };
        Err(SampleTableError::Mismatch { file: self.file.clone(), problem })
    }
}

fn ordered(numbers: &[f64], order: &[u32]) -> Vec<f64> {
    let mut sorted = vec![f64::NAN; numbers.len()];
    for (number, &place) in numbers.iter().zip(order) {
        sorted[place as usize] = *number;
    }
    sorted
}

/// Returns the indices of the parameters that have a column, and the indices of these columns.
fn columns_of(
    problem: &Problem,
    file: &Path,
    table: &Table,
) -> Result<(Vec<usize>, Vec<usize>), SampleTableError> {
    let fail = |problem| SampleTableError::Mismatch { file: file.to_owned(), problem };
    let all: Vec<usize> = (0..problem.parameters.len()).collect();
    let varying: Vec<usize> =
        all.iter().copied().filter(|&place| problem.parameters[place].domain.varies()).collect();
    if varying.is_empty() {
        return Err(SampleTableError::NothingVaries { file: problem.file.clone() });
    }
    let Some(names) = table.names() else {
        let places = match table.width() {
            width if width == all.len() => all,
            width if width == varying.len() => varying,
            columns => {
                let (parameters, varying) = (all.len(), varying.len());
                return Err(fail(SampleTableProblem::ColumnCount { columns, parameters, varying }));
            }
        };
        return Ok((places.clone(), (0..places.len()).collect()));
    };
    let mut found = (Vec::new(), Vec::new());
    for place in all {
        let parameter = &problem.parameters[place];
        match names.iter().position(|name| *name == parameter.name) {
            Some(column) => {
                found.0.push(place);
                found.1.push(column);
            }
            None if !parameter.domain.varies() => {}
            None => {
                let (name, header) = (parameter.name.clone(), names.to_vec());
                return Err(fail(SampleTableProblem::NoColumn { name, header }));
            }
        }
    }
    Ok(found)
}

/// Checks that all numbers are valid values of a parameter.
fn check(parameter: &Parameter, numbers: &[f64], content: &TableData) -> Result<(), SampleTableProblem> {
    let at =
        |row: usize, problem: ValueProblem| Err(invalid_value(parameter, content.row_label(row), problem));
    if let Some(row) = numbers.iter().position(|number| number.is_nan()) {
        return at(row, ValueProblem::Missing);
    }
    if parameter.value_type == ValueType::Integer
        && let Some(row) = numbers.iter().position(|number| number.fract() != 0.0)
    {
        return at(row, ValueProblem::NoInteger(numbers[row]));
    }
    check_bounds(parameter, numbers, content)?;
    if let Domain::Fixed { value } = parameter.domain
        && let Some(row) = numbers.iter().position(|number| *number != value.as_f64())
    {
        return at(row, ValueProblem::NotFixed { given: numbers[row], fixed: value });
    }
    Ok(())
}

fn invalid_value(parameter: &Parameter, row: String, problem: ValueProblem) -> SampleTableProblem {
    SampleTableProblem::Value { row, column: parameter.name.clone(), problem }
}

/// Tolerance beyond the bounds as a share of the range, for values printed with 3 digits. A value farther
/// outside belongs to another parameter, unit or problem.
const ROUNDING_SHARE: f64 = 1e-3;

/// Rejects values outside the bounds. The error has their count and the farthest value.
fn check_bounds(
    parameter: &Parameter,
    numbers: &[f64],
    content: &TableData,
) -> Result<(), SampleTableProblem> {
    let (low, high) = parameter.domain.bounds();
    if !parameter.domain.varies() {
        return Ok(());
    }
    let width = if (high - low).is_finite() { high - low } else { 0.0 };
    let slack = ROUNDING_SHARE * width;
    let beyond = |number: f64| (low - number).max(number - high);
    let outside = || numbers.iter().enumerate().filter(|(_, number)| beyond(**number) > slack);
    let Some((row, &farthest)) = outside().max_by(|one, other| beyond(*one.1).total_cmp(&beyond(*other.1)))
    else {
        return Ok(());
    };
    let (outside, values) = (outside().count(), numbers.len());
    let problem = ValueProblem::OutOfBounds { farthest, low, high, outside, values };
    Err(invalid_value(parameter, content.row_label(row), problem))
}

/// Numbers of the evaluations, ascending, and for each row its index among them. Each is `None` where
/// [`SampleTable`] has `None`.
type Numbering = (Option<Vec<u64>>, Option<Vec<u32>>);

fn numbers_of(numbers: Vec<f64>, content: &TableData) -> Result<Numbering, SampleTableProblem> {
    let mut rows: Vec<(u64, u32)> = Vec::with_capacity(numbers.len());
    for (row, number) in (0..).zip(numbers) {
        rows.push((evaluation_number(number, row as usize, content)?, row));
    }
    let sorted = rows.iter().zip(1..).all(|((number, _), expected)| *number == expected);
    if sorted {
        return Ok((None, None));
    }
    rows.sort_unstable();
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (evaluation, row) = pair[1];
        let row = content.row_label(row as usize);
        return Err(SampleTableProblem::DuplicateEvaluation { row, evaluation });
    }
    let mut order = vec![0; rows.len()];
    for (place, (_, row)) in (0..).zip(&rows) {
        order[*row as usize] = place;
    }
    let complete = rows.iter().zip(1..).all(|((number, _), expected)| *number == expected);
    let numbers = (!complete).then(|| rows.iter().map(|(number, _)| *number).collect());
    Ok((numbers, Some(order)))
}

/// Converts a number to that of an evaluation.
pub(super) fn evaluation_number(
    number: f64,
    row: usize,
    content: &TableData,
) -> Result<u64, EvaluationNumberError> {
    if number >= 1.0 && number.fract() == 0.0 && number < 1e15 {
        return Ok(number as u64);
    }
    Err(EvaluationNumberError { row: content.row_label(row), given: number })
}
