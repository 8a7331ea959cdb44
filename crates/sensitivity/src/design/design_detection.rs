//! Detects the structure that a method needs in bare parameter sets, or the first row that violates it.
//!
//! Parameter sets are columns of numbers, one per parameter, read back from a sample of pleach or of another
//! program. [`Trajectories::recover_rows`](crate::design::trajectory::Trajectories::recover_rows) finds trajectories. This
//! module finds row blocks and search curves. Responses are not used.

use crate::design::curves::Curves;
use crate::design::groups::Groups;
use crate::design::marginal::probability;
use crate::design::saltelli_blocks::{Role, RowBlocks};
use pleach_workflow::{Domain, Parameter};
use std::f64::consts::{PI, TAU};
use std::ops::RangeInclusive;
use thiserror::Error;

/// Parameter sets as columns: one column per parameter, one number per row.
#[derive(Clone, Copy, Debug)]
pub struct ParameterColumns<'a> {
    /// The parameters, varying or not.
    pub parameters: &'a [Parameter],
    /// The values of each parameter, all of the same length.
    pub columns: &'a [Vec<f64>],
}

impl ParameterColumns<'_> {
    /// Number of parameter sets.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    fn value(&self, column: usize, row: usize) -> f64 {
        self.columns[column][row]
    }
}

/// Mismatch between the rows and the design that a method needs. Evaluations count from 1.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StructureError {
    /// No parameter varies.
    #[error("no parameter varies; at least one needs a range or two values")]
    NothingVaries,
    /// The number of rows is no multiple of the block length.
    #[error(
        "{rows} evaluations do not form complete blocks of Saltelli's design; a block of {varying} varying \
         parameters or groups has {} evaluations, or {} with second order",
        varying + 2,
        2 * varying + 2
    )]
    BrokenBlock {
        /// Rows given.
        rows: usize,
        /// Parameters or groups that vary.
        varying: usize,
    },
    /// The rows follow neither a first-order nor a second-order design.
    #[error("{rows} evaluations do not form complete blocks of {length}, {} second order", if *second_order { "with" } else { "without" })]
    OtherBlock {
        /// Rows given.
        rows: usize,
        /// Rows of a block.
        length: usize,
        /// Whether the caller asked for second order.
        second_order: bool,
    },
    /// A row does not match its position in a block.
    #[error(
        "evaluation {evaluation}: {name} is {found} instead of {expected}: in Saltelli's design the row is \
         {role}, of the block that starts at evaluation {start}"
    )]
    NotInBlock {
        /// Its number.
        evaluation: usize,
        /// The parameter.
        name: String,
        /// Its value.
        found: f64,
        /// Value of the design at this position.
        expected: f64,
        /// Role of the row, in words.
        role: String,
        /// Number of the first evaluation of its block.
        start: usize,
    },
    /// The rows do not split into curves of equal length.
    #[error(
        "{rows} evaluations do not form {varying} search curves of equal length, one per varying \
             parameter"
    )]
    BrokenCurve {
        /// Rows given.
        rows: usize,
        /// Parameters that vary.
        varying: usize,
    },
    /// The curves are too short for the harmonics.
    #[error(transparent)]
    Curves(#[from] crate::statistics::error::AnalysisError),
    /// A row deviates from its curve.
    #[error(
        "evaluation {evaluation}: {name} is {found}, which is not on the search curve of {curve}; eFAST \
         requires its own sample in its original order"
    )]
    NotOnCurve {
        /// Its number.
        evaluation: usize,
        /// The parameter.
        name: String,
        /// Its value.
        found: f64,
        /// Parameter of the curve.
        curve: String,
    },
}

/// Finds the row blocks of Saltelli's design. `second_order` states whether they have rows for second-order
/// indices. `None` detects this. Values are compared exactly, so a table must be written with all digits.
///
/// # Errors
/// [`StructureError`] with the first evaluation that does not fit.
pub fn row_blocks(
    sets: ParameterColumns<'_>,
    groups: &Groups,
    second_order: Option<bool>,
) -> Result<RowBlocks, StructureError> {
    let groups = groups.varying(sets.parameters);
    let (varying, rows) = (groups.len(), sets.rows());
    if varying == 0 {
        return Err(StructureError::NothingVaries);
    }
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    let mut failed: Option<(usize, StructureError)> = None;
    // With few levels both designs may fit. Only an explicit request adds rows for second-order indices.
    for with_second in [false, true] {
        if second_order.is_some_and(|wanted| wanted != with_second) {
            continue;
        }
        let length = if with_second { 2 * varying + 2 } else { varying + 2 };
        if rows == 0 || !rows.is_multiple_of(length) {
            continue;
        }
        let blocks = RowBlocks::new(names.clone(), rows / length, with_second);
        let columns: Vec<&[usize]> = groups.iter().map(|group| group.columns.as_slice()).collect();
        match first_beside(sets, &blocks, &columns) {
            None => return Ok(blocks),
            Some((row, error)) => {
                // Reports the design that fits more rows, which is the likely intention.
                if failed.as_ref().is_none_or(|(before, _)| row > *before) {
                    failed = Some((row, error));
                }
            }
        }
    }
    Err(match (failed, second_order) {
        (Some((_, error)), _) => error,
        (None, None) => StructureError::BrokenBlock { rows, varying },
        (None, Some(second_order)) => {
            let length = if second_order { 2 * varying + 2 } else { varying + 2 };
            StructureError::OtherBlock { rows, length, second_order }
        }
    })
}

/// Returns the first row that does not match its position in a block.
fn first_beside(
    sets: ParameterColumns<'_>,
    blocks: &RowBlocks,
    groups: &[&[usize]],
) -> Option<(usize, StructureError)> {
    let mut group_of = vec![usize::MAX; sets.parameters.len()];
    for (group, columns) in groups.iter().enumerate() {
        columns.iter().for_each(|&column| group_of[column] = group);
    }
    for row in 0..blocks.rows() {
        let (sample, role) = blocks.role(row)?;
        let a = sample * blocks.rows_per_sample();
        let b = a + blocks.rows_per_sample() - 1;
        let (Role::AWithB(swapped) | Role::BWithA(swapped)) = role else { continue };
        let (most, other) = if matches!(role, Role::AWithB(_)) { (a, b) } else { (b, a) };
        for (column, &group) in group_of.iter().enumerate() {
            let from = if group == swapped { other } else { most };
            let (found, expected) = (sets.value(column, row), sets.value(column, from));
            // Compares exactly: mixed rows copy coordinates of A and B, so rounding by a writer affects both alike.
            if found != expected {
                let name = sets.parameters[column].name.clone();
                let (this, that) = if most == a { ("A", "B") } else { ("B", "A") };
                let role = format!("{this} with {} of {that}", blocks.names()[swapped]);
                let (evaluation, start) = (row + 1, a + 1);
                return Some((
                    row,
                    StructureError::NotInBlock { evaluation, name, found, expected, role, start },
                ));
            }
        }
    }
    None
}

/// Tolerance of a position on a curve, so that files with few digits can be read.
const BESIDE: f64 = 1e-4;

/// Finds the search curves of an eFAST sample, one after the other, in the order of the varying parameters.
///
/// The phase of a curve is that of its first row, derived from a parameter without levels. If all parameters have
/// levels, values are not compared, and only the number of rows is checked.
///
/// # Errors
/// [`StructureError`] with the first evaluation that is off its curve.
pub fn curves(sets: ParameterColumns<'_>, harmonics: usize) -> Result<Curves, StructureError> {
    let varying: Vec<usize> =
        (0..sets.parameters.len()).filter(|&column| sets.parameters[column].domain.varies()).collect();
    if varying.is_empty() {
        return Err(StructureError::NothingVaries);
    }
    let rows = sets.rows();
    if rows == 0 || !rows.is_multiple_of(varying.len()) {
        return Err(StructureError::BrokenCurve { rows, varying: varying.len() });
    }
    let names = varying.iter().map(|&column| sets.parameters[column].name.clone()).collect();
    let curves = Curves::new(names, rows / varying.len(), harmonics)?;
    for curve in 0..varying.len() {
        let first = curve * curves.samples();
        // A level covers an interval of positions, so only a continuous parameter reveals the phase.
        let smooth =
            varying.iter().find(|&&column| !matches!(sets.parameters[column].domain, Domain::Levels { .. }));
        let Some(&smooth) = smooth else { break };
        let place = *places(&sets.parameters[smooth], sets.value(smooth, first)).start();
        let phase = ((place - 0.5) * PI).clamp(-PI / 2.0, PI / 2.0);
        let beside = |phase| beside_curve(sets, &curves, &varying, curve, phase);
        // A sine takes each value twice, so both phases are tried.
        let found = [phase, PI - phase].map(beside);
        if let [Some(one), Some(other)] = found {
            let (row, column) = one.max(other);
            return Err(StructureError::NotOnCurve {
                evaluation: row + 1,
                name: sets.parameters[column].name.clone(),
                found: sets.value(column, row),
                curve: curves.names()[curve].clone(),
            });
        }
    }
    Ok(curves)
}

/// Returns the first row and column that deviate from a curve of this phase.
fn beside_curve(
    sets: ParameterColumns<'_>,
    curves: &Curves,
    varying: &[usize],
    curve: usize,
    phase: f64,
) -> Option<(usize, usize)> {
    for at in 0..curves.samples() {
        let row = curve * curves.samples() + at;
        for (place, &column) in varying.iter().enumerate() {
            // The same integer arithmetic as the sampler's, so that late points are as exact as early ones.
            let turn = (curves.frequency(curve, place) * at) % curves.samples();
            let angle = TAU * turn as f64 / curves.samples() as f64 + phase;
            let expected = 0.5 + angle.sin().asin() / PI;
            let found = places(&sets.parameters[column], sets.value(column, row));
            if expected < found.start() - BESIDE || expected > found.end() + BESIDE {
                return Some((row, column));
            }
        }
    }
    None
}

/// Returns the interval of unit-interval positions that yield a value. Empty for a value outside the domain.
fn places(parameter: &Parameter, value: f64) -> RangeInclusive<f64> {
    let nowhere = f64::INFINITY..=f64::NEG_INFINITY;
    match &parameter.domain {
        Domain::Continuous { low, high } => {
            let place = (value - low) / (high - low);
            place..=place
        }
        Domain::Distributed { distribution } => {
            let place = probability(distribution, value);
            place..=place
        }
        Domain::Levels { values } => {
            let count = values.len() as f64;
            let level = values.iter().position(|level| level.as_f64() == value);
            level.map_or(nowhere, |level| level as f64 / count..=(level + 1) as f64 / count)
        }
        Domain::Fixed { .. } => nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::examples::{integers, reals};
    use crate::sampling::{Design, fast, saltelli};
    use pleach_workflow::BasePoints;

    fn parameters() -> Vec<Parameter> {
        vec![reals("x", -1.0, 1.0), integers("k", &[4.0, 8.0]), reals("z", 0.0, 9.0)]
    }

    fn columns(design: &Design) -> Vec<Vec<f64>> {
        let column = |place: usize| design.evaluations.iter().map(|row| row[place].as_f64()).collect();
        (0..design.names.len()).map(column).collect()
    }

    fn saltelli(second_order: bool) -> (Vec<Parameter>, Vec<Vec<f64>>, RowBlocks) {
        let parameters = parameters();
        let plan = saltelli::Saltelli { samples: 8, second_order, base: BasePoints::Sobol, seed: 3 };
        let design = saltelli::sample(&parameters, &plan).unwrap();
        let columns = columns(&design);
        let blocks = design.row_blocks().unwrap().clone();
        (parameters, columns, blocks)
    }

    #[test]
    fn row_blocks_are_those_that_were_drawn() {
        for second_order in [false, true] {
            let (parameters, columns, blocks) = saltelli(second_order);
            let sets = ParameterColumns { parameters: &parameters, columns: &columns };
            let alone = Groups::alone(&parameters);
            assert_eq!(row_blocks(sets, &alone, None), Ok(blocks.clone()));
            assert_eq!(row_blocks(sets, &alone, Some(second_order)), Ok(blocks));
            assert!(row_blocks(sets, &alone, Some(!second_order)).is_err());
        }
    }

    #[test]
    fn the_first_row_beside_its_block_is_named() {
        let (parameters, mut columns, _) = saltelli(false);
        let alone = Groups::alone(&parameters);
        // Row 18 is A with z of B in the fourth block. Its x is that of A in the same block.
        let expected = columns[0][15];
        columns[0][18] = 0.125;
        let sets = ParameterColumns { parameters: &parameters, columns: &columns };
        let said = row_blocks(sets, &alone, None).unwrap_err().to_string();
        let expected = format!(
            "evaluation 19: x is 0.125 instead of {expected}: in Saltelli's design the row is A with z of \
             B, of the block that starts at evaluation 16"
        );
        assert_eq!(said, expected);
        columns.iter_mut().for_each(|column| column.truncate(39));
        let sets = ParameterColumns { parameters: &parameters, columns: &columns };
        let said = row_blocks(sets, &alone, None).unwrap_err().to_string();
        assert!(said.starts_with("39 evaluations do not form complete blocks"), "{said}");
        assert!(
            row_blocks(sets, &alone, Some(true))
                .unwrap_err()
                .to_string()
                .contains("blocks of 8, with second order")
        );
    }

    #[test]
    fn curves_are_those_that_were_drawn() {
        let parameters = parameters();
        for seed in 0..20 {
            let plan = fast::Fast { samples: 65, harmonics: 4, seed };
            let (design, drawn) = fast::sample(&parameters, &plan).unwrap();
            let mut columns = columns(&design);
            let found = curves(ParameterColumns { parameters: &parameters, columns: &columns }, 4);
            assert_eq!(found.as_ref(), Ok(&drawn), "seed {seed}");
            columns[2][70] += 0.01;
            let said = curves(ParameterColumns { parameters: &parameters, columns: &columns }, 4)
                .unwrap_err()
                .to_string();
            assert!(said.starts_with("evaluation 71: z is ") && said.contains("search curve of k"), "{said}");
        }
    }

    #[test]
    fn rows_that_are_no_curves_are_refused() {
        let parameters = parameters();
        let columns = vec![vec![0.0; 200]; 3];
        let of = |rows: usize| {
            let columns: Vec<Vec<f64>> = columns.iter().map(|column| column[..rows].to_vec()).collect();
            curves(ParameterColumns { parameters: &parameters, columns: &columns }, 4)
                .unwrap_err()
                .to_string()
        };
        assert!(of(200).starts_with("200 evaluations do not form 3 search curves of equal length"));
        assert!(of(30).contains("samples = 10"));
        assert!(of(198).starts_with("evaluation 1: "), "{}", of(198));
    }
}
