//! Draws samples into a file or into memory.
//!
//! Rows of points and of Saltelli's design are generated while they are written. Memory holds only the
//! points: 8 bytes per parameter and row, or 16 bytes per parameter and base sample of Saltelli's design.
//! Trajectories, search curves and grids are held completely, at 16 bytes per value.

use crate::error::{DesignError, DrawError};
use crate::method::{ExternalMethod, MethodRequest};
use crate::problem::Problem;
use pleach_planner::memory_limit;
use pleach_sensitivity::sampling::fast::Fast;
use pleach_sensitivity::sampling::morris::{
    BasePointSource, Morris, SpreadSearch, TrajectoryPlan, TrajectorySelection,
};
use pleach_sensitivity::sampling::saltelli::Saltelli;
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_sensitivity::sampling::{MAX_EVALUATIONS, fast, footprint, morris, saltelli};
use pleach_sensitivity::table::EVALUATION_COLUMN;
use pleach_tables::{FileError, Writer};
use pleach_workflow::{Domain, Parameter, Value, ValueType};
use std::path::Path;

/// Draws the samples of a method into a file and returns their number.
///
/// # Errors
/// [`DrawError`] if the method cannot draw samples of these parameters or the file cannot be written.
pub fn draw(problem: &Problem, wanted: &MethodRequest<'_>, seed: u64, out: &Path) -> Result<u64, DrawError> {
    let columns = problem.parameters.len() + 1;
    check_room(problem, wanted, |rows| Writer::bytes(out, rows, columns))?;
    let mut rows = Rows::create(problem, out)?;
    each_row(problem, wanted, seed, |row| rows.push(row))?;
    Ok(rows.finish()?)
}

/// Draws the samples of a method into memory: a value of each parameter per row.
///
/// # Errors
/// [`DrawError`] if the method cannot draw samples of these parameters.
pub fn rows(problem: &Problem, wanted: &MethodRequest<'_>, seed: u64) -> Result<Vec<Vec<Value>>, DrawError> {
    let count = problem.parameters.len();
    check_room(problem, wanted, |rows| footprint::rows_bytes(rows, count))?;
    let mut drawn = Vec::new();
    each_row(problem, wanted, seed, |row| drawn.push(row))?;
    Ok(drawn)
}

fn each_row(
    problem: &Problem,
    wanted: &MethodRequest<'_>,
    seed: u64,
    mut push: impl FnMut(Vec<Value>),
) -> Result<(), DrawError> {
    let (parameters, groups) = (&problem.parameters, problem.groups()?);
    let fail = |cause: DesignError| DrawError::Design { file: problem.file.clone(), cause };
    match wanted.method {
        ExternalMethod::Moat { trajectories, levels, base, candidates } => {
            let morris = Morris { trajectories, levels, seed };
            let base = base.map_or(BasePointSource::Random, BasePointSource::Points);
            let choice = candidates.map_or(TrajectorySelection::All, |candidates| {
                TrajectorySelection::Spread { search: SpreadSearch::Ruano, candidates, batch: trajectories }
            });
            let plan = TrajectoryPlan { morris, base, choice };
            let design =
                morris::sample_plan(parameters, &groups, &plan).map_err(|error| fail(error.into()))?;
            design.evaluations.into_iter().for_each(&mut push);
        }
        ExternalMethod::Vbd { second_order, base, .. } => {
            let (samples, second_order) = (wanted.samples()?, second_order.unwrap_or(false));
            let saltelli = Saltelli { samples, second_order, base, seed };
            saltelli::draw_groups(parameters, &groups, &saltelli, &mut push)
                .map_err(|error| fail(error.into()))?;
        }
        ExternalMethod::Columns(_) => {
            let (sampler, samples) = wanted.sampler()?;
            sampler.draw(parameters, samples, seed, &mut push).map_err(|error| fail(error.into()))?;
        }
        ExternalMethod::Fast { harmonics } => {
            let samples = wanted.samples()?;
            let (design, _) = fast::sample(parameters, &Fast { samples, harmonics, seed })
                .map_err(|error| fail(error.into()))?;
            design.evaluations.into_iter().for_each(&mut push);
        }
    }
    Ok(())
}

/// Rejects designs that do not fit into memory. Leaves designs beyond [`MAX_EVALUATIONS`] to the sampler,
/// which rejects them.
/// `written` returns the bytes that hold the rows.
fn check_room(
    problem: &Problem,
    wanted: &MethodRequest<'_>,
    written: impl Fn(u64) -> u64,
) -> Result<(), DrawError> {
    let parameters = &problem.parameters;
    let places = (0..parameters.len()).filter(|&place| parameters[place].domain.varies());
    let places: Vec<usize> = places.collect();
    if places.is_empty() {
        return Ok(());
    }
    let varying: Vec<&Parameter> = places.iter().map(|&place| &parameters[place]).collect();
    let groups = problem.groups_of(&places)?.names().len();
    let count = varying.len() as u64;
    let (rows, needed, option) = match wanted.method {
        ExternalMethod::Moat { trajectories, candidates, .. } => {
            let rows = u64::from(trajectories) * (groups as u64 + 1);
            let needed = footprint::trajectories_bytes(parameters, groups, trajectories, candidates);
            (rows, needed, "--trajectories")
        }
        ExternalMethod::Vbd { second_order, .. } => {
            let (samples, blocks) =
                (wanted.samples()?.into(), if second_order == Some(true) { 2 } else { 1 });
            let rows = u64::saturating_mul(samples, blocks * groups as u64 + 2);
            (rows, footprint::points_bytes(samples, 2 * varying.len()), "--samples")
        }
        ExternalMethod::Columns(_) => {
            let (sampler, samples) = wanted.sampler()?;
            match sampler {
                Sampler::Points(_) => {
                    let samples = samples.into();
                    (samples, footprint::points_bytes(samples, varying.len()), "--samples")
                }
                Sampler::Factorial { levels } => {
                    let levels = |parameter: &&Parameter| match &parameter.domain {
                        Domain::Levels { values } => values.len() as u64,
                        _ => levels.into(),
                    };
                    let rows = varying.iter().map(levels).fold(1, u64::saturating_mul);
                    (rows, footprint::rows_bytes(rows, parameters.len()), "--levels")
                }
                // A design of resolution IV has twice the smallest power of 2 that holds all parameters.
                Sampler::Fraction(_) => {
                    let rows = 2 * count.next_power_of_two();
                    (rows, footprint::rows_bytes(rows, parameters.len()), "--levels")
                }
            }
        }
        ExternalMethod::Fast { .. } => {
            let rows = count.saturating_mul(wanted.samples()?.into());
            (rows, footprint::rows_bytes(rows, parameters.len()), "--samples")
        }
    };
    if rows > MAX_EVALUATIONS {
        return Ok(());
    }
    let needed = needed.saturating_add(written(rows));
    let work = format!("{rows} evaluations of {} parameters", parameters.len());
    let advice = format!("fewer {option} or parameters, or more memory, are needed");
    memory_limit::check_room(needed, &work, &advice)
        .map_err(|cause| DrawError::Memory { file: problem.file.clone(), cause: Box::new(cause) })
}

/// Writer of rows. The first error stops it, and `finish` returns that error.
struct Rows {
    writer: Writer,
    numbered: bool,
    written: u64,
    failed: Option<FileError>,
}

impl Rows {
    fn create(problem: &Problem, out: &Path) -> Result<Self, FileError> {
        let mut columns: Vec<(String, ValueType)> = problem
            .parameters
            .iter()
            .map(|parameter| (parameter.name.clone(), parameter.value_type))
            .collect();
        // A parameter with the name of the column takes precedence.
        let numbered = !columns.iter().any(|(name, _)| name == EVALUATION_COLUMN);
        if numbered {
            columns.insert(0, (EVALUATION_COLUMN.to_owned(), ValueType::Integer));
        }
        let writer = Writer::create(out, &columns)?;
        Ok(Self { writer, numbered, written: 0, failed: None })
    }

    fn push(&mut self, row: Vec<Value>) {
        if self.failed.is_some() {
            return;
        }
        self.written += 1;
        // The cast is lossless: designs have at most 10,000,000 rows.
        let number = self.numbered.then_some(Value::Integer(self.written as i64));
        self.failed = self.writer.row(number.into_iter().chain(row)).err();
    }

    fn finish(self) -> Result<u64, FileError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish().map(|()| self.written),
        }
    }
}
