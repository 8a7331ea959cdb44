//! Times one sampler: `sampling SAMPLER SAMPLES PARAMETERS REPETITIONS` prints the median seconds of a
//! design, for comparison with other programs.
//!
//! SAMPLER is a name of a study file (`lhs`, `halton`, …), `points:` and such a name for bare points without
//! parameter sets, `morris` (SAMPLES trajectories), `ruano` (10 of SAMPLES trajectories), `saltelli` or
//! `saltelli2` (with second order).

use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::sampling::morris::{
    self, BasePointSource, Morris, SpreadSearch, TrajectoryPlan, TrajectorySelection,
};
use pleach_sensitivity::sampling::saltelli::{self, Saltelli};
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_workflow::{BasePoints, Domain, Parameter, Value, ValueType};
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "usage: sampling SAMPLER SAMPLES PARAMETERS REPETITIONS";

/// Levels of grids and of trajectories, as in papers 000 and 001.
const LEVELS: u32 = 20;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [sampler, samples, parameters, repetitions] = &arguments[..] else { return Err(USAGE.into()) };
    let (samples, repetitions): (u32, usize) = (samples.parse()?, repetitions.parse()?);
    let parameters = reals(parameters.parse()?)?;
    // The first draw is not timed: its memory is cold.
    draw(sampler, samples, &parameters)?;
    let mut seconds = Vec::with_capacity(repetitions.max(1));
    for _ in 0..repetitions.max(1) {
        let start = Instant::now();
        draw(sampler, samples, &parameters)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    writeln!(std::io::stdout(), "{:.6}", seconds[seconds.len() / 2])?;
    Ok(())
}

fn reals(count: u32) -> Outcome<Vec<Parameter>> {
    let parameter = |number: u32| {
        let default = Value::from_f64(0.5, ValueType::Real).ok_or("0.5 is a real")?;
        let domain = Domain::range(ValueType::Real, 0.0, f64::from(number) + 1.0, None)?;
        Ok(Parameter { name: format!("x{number}"), value_type: ValueType::Real, default, domain })
    };
    (0..count).map(parameter).collect()
}

fn draw(sampler: &str, samples: u32, parameters: &[Parameter]) -> Outcome<()> {
    let seed = 500;
    let named =
        |name: &str| Sampler::named(name, samples, LEVELS).ok_or_else(|| format!("{name}: no such sampler"));
    match sampler {
        "morris" => {
            let morris = Morris { trajectories: samples, levels: LEVELS, seed };
            drop(black_box(morris::sample(parameters, &morris)?));
        }
        "ruano" => {
            let (search, batch) = (SpreadSearch::Ruano, 10);
            let plan = TrajectoryPlan {
                morris: Morris { trajectories: batch, levels: LEVELS, seed },
                base: BasePointSource::Random,
                choice: TrajectorySelection::Spread { search, candidates: samples, batch },
            };
            drop(black_box(morris::sample_plan(parameters, &Groups::alone(parameters), &plan)?));
        }
        "saltelli" | "saltelli2" => {
            let (second_order, base) = (sampler == "saltelli2", BasePoints::Sobol);
            drop(black_box(saltelli::sample(parameters, &Saltelli { samples, second_order, base, seed })?));
        }
        other => match other.strip_prefix("points:").map(named).transpose()? {
            Some(Sampler::Points(sequence)) => {
                drop(black_box(sequence.points(samples as usize, parameters.len(), seed)?));
            }
            Some(_) => return Err(format!("{other}: a grid has no points").into()),
            None => drop(black_box(named(other)?.sample(parameters, samples, seed)?)),
        },
    }
    Ok(())
}
