//! Samples on their way into a file.
//!
//! Rows of points and of Saltelli's design are made as they are written, so that what is held are the points: 8 bytes for
//! each parameter and row, of Saltelli's design 16 for each parameter and base sample. Trajectories, search curves and grids
//! are held whole, 16 bytes a value.

use crate::exit::{Outcome, Stop};
use crate::outside::problem::Problem;
use crate::outside::way::{Wanted, Way};
use pleach_sensitivity::sampling::fast::Fast;
use pleach_sensitivity::sampling::morris::{Base, Choice, Morris, Plan, Search};
use pleach_sensitivity::sampling::saltelli::Saltelli;
use pleach_sensitivity::sampling::{fast, morris, saltelli};
use pleach_sensitivity::table::EVALUATION_COLUMN;
use pleach_tables::{FileError, Writer};
use pleach_workflow::{Value, ValueType};
use std::path::Path;

/// Draws the samples of a method into a file, and says how many there are.
///
/// # Errors
/// [`Stop::Input`] when there are none, or the file cannot be written.
pub(crate) fn draw(problem: &Problem, wanted: &Wanted<'_>, seed: u64, out: &Path) -> Outcome<u64> {
    let mut rows = Rows::create(problem, out)?;
    let (parameters, groups) = (&problem.parameters, problem.groups()?);
    let fault = |error: &dyn std::fmt::Display| problem.fault(format!("method: {error}"));
    match wanted.way {
        Way::Moat { trajectories, levels, base, candidates } => {
            let morris = Morris { trajectories, levels, seed };
            let base = base.map_or(Base::Random, Base::Points);
            let choice = candidates.map_or(Choice::All, |candidates| Choice::Spread {
                search: Search::Ruano,
                candidates,
                batch: trajectories,
            });
            let plan = Plan { morris, base, choice };
            let design = morris::sample_plan(parameters, &groups, &plan).map_err(|error| fault(&error))?;
            design.evaluations.into_iter().for_each(|row| rows.push(row));
        }
        Way::Vbd { second_order, base, .. } => {
            let (samples, second_order) = (wanted.samples()?, second_order.unwrap_or(false));
            let saltelli = Saltelli { samples, second_order, base, seed };
            saltelli::draw_groups(parameters, &groups, &saltelli, |row| rows.push(row))
                .map_err(|error| fault(&error))?;
        }
        Way::Columns(_) => {
            let (sampler, samples) = wanted.sampler()?;
            sampler.draw(parameters, samples, seed, |row| rows.push(row)).map_err(|error| fault(&error))?;
        }
        Way::Fast { harmonics } => {
            let samples = wanted.samples()?;
            let (design, _) = fast::sample(parameters, &Fast { samples, harmonics, seed })
                .map_err(|error| fault(&error))?;
            design.evaluations.into_iter().for_each(|row| rows.push(row));
        }
    }
    rows.finish()
}

/// Rows that are written; an error ends it.
struct Rows {
    writer: Writer,
    numbered: bool,
    written: u64,
    failed: Option<FileError>,
}

impl Rows {
    fn create(problem: &Problem, out: &Path) -> Outcome<Self> {
        let mut columns: Vec<(String, ValueType)> = problem
            .parameters
            .iter()
            .map(|parameter| (parameter.name.clone(), parameter.value_type))
            .collect();
        // A parameter of that name comes first.
        let numbered = !columns.iter().any(|(name, _)| name == EVALUATION_COLUMN);
        if numbered {
            columns.insert(0, (EVALUATION_COLUMN.to_owned(), ValueType::Integer));
        }
        let writer = Writer::create(out, &columns).map_err(refused)?;
        Ok(Self { writer, numbered, written: 0, failed: None })
    }

    fn push(&mut self, row: Vec<Value>) {
        if self.failed.is_some() {
            return;
        }
        self.written += 1;
        // Designs have at most ten million rows.
        let number = self.numbered.then_some(Value::Integer(self.written as i64));
        self.failed = self.writer.row(number.into_iter().chain(row)).err();
    }

    fn finish(self) -> Outcome<u64> {
        match self.failed {
            Some(error) => Err(refused(error)),
            None => self.writer.finish().map(|()| self.written).map_err(refused),
        }
    }
}

fn refused(error: FileError) -> Stop {
    Stop::Input(format!("--out {error}"))
}
