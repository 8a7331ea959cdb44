//! Estimates of design memory, compared with counted allocations.

#[path = "../../../tests/support/allocations.rs"]
mod allocations;

use allocations::peak_of;
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::sampling::fast::{self, Fast};
use pleach_sensitivity::sampling::footprint::{points_bytes, rows_bytes, trajectories_bytes};
use pleach_sensitivity::sampling::morris::{
    self, BasePointSource, Morris, SpreadSearch, TrajectoryPlan, TrajectorySelection,
};
use pleach_sensitivity::sampling::points::Sequence;
use pleach_sensitivity::sampling::saltelli::{self, Saltelli};
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_workflow::{BasePoints, Domain, Parameter, Value, ValueType};

fn reals(count: usize) -> Vec<Parameter> {
    let parameter = |place| Parameter {
        name: format!("x{place}"),
        value_type: ValueType::Real,
        default: Value::from_f64(0.5, ValueType::Real).expect("finite"),
        domain: Domain::Continuous { low: 0.0, high: 1.0 },
    };
    (0..count).map(parameter).collect()
}

/// An estimate is at most 100 kB below the counted bytes. For large designs it is at most twice as much.
#[track_caller]
fn near(what: &str, estimated: u64, counted: usize) {
    let counted = counted as u64;
    assert!(estimated + 100_000 >= counted, "{what}: {estimated} estimated, {counted} counted");
    assert!(
        counted < 1_000_000 || estimated <= 2 * counted,
        "{what}: {estimated} estimated, {counted} counted"
    );
}

#[test]
fn trajectories_take_what_is_estimated() {
    for (count, trajectories, candidates) in
        [(3, 2_000, None), (15, 400, None), (600, 3, None), (300, 4, Some(10)), (30, 10, Some(100))]
    {
        let parameters = reals(count);
        let morris = Morris { trajectories, levels: 20, seed: 1 };
        let choice = candidates.map_or(TrajectorySelection::All, |candidates| TrajectorySelection::Spread {
            search: SpreadSearch::Ruano,
            candidates,
            batch: trajectories,
        });
        for base in [BasePointSource::Random, BasePointSource::Points(Sequence::MonteCarlo)] {
            let (plan, groups) = (TrajectoryPlan { morris, base, choice }, Groups::alone(&parameters));
            let (design, counted) = peak_of(|| morris::sample_plan(&parameters, &groups, &plan));
            design.expect("a design");
            let what = format!("{count} parameters, {trajectories} trajectories of {candidates:?}, {base:?}");
            near(&what, trajectories_bytes(&parameters, count, trajectories, candidates), counted);
        }
    }
}

#[test]
fn saltelli_blocks_take_what_is_estimated() {
    for (count, samples) in [(3, 4_000_u32), (15, 1_000), (200, 40)] {
        let parameters = reals(count);
        let saltelli = Saltelli { samples, second_order: false, base: BasePoints::MonteCarlo, seed: 1 };
        let (design, counted) = peak_of(|| saltelli::sample(&parameters, &saltelli));
        let rows = design.expect("a design").evaluations.len() as u64;
        let points = points_bytes(samples.into(), 2 * count);
        near(&format!("{count} parameters, {samples} samples"), rows_bytes(rows, count) + points, counted);
        let groups = Groups::alone(&parameters);
        let (drawn, counted) = peak_of(|| saltelli::draw_groups(&parameters, &groups, &saltelli, drop));
        drawn.expect("drawn");
        near(&format!("{count} parameters, {samples} samples, no rows"), points, counted);
    }
}

#[test]
fn points_and_curves_take_what_is_estimated() {
    for (count, samples) in [(3, 20_000_u32), (15, 8_000), (200, 500)] {
        let parameters = reals(count);
        for name in ["mc", "lhs", "halton", "sobol"] {
            // Halton's permutations have a constant size, which exceeds that of points with many dimensions.
            if name == "halton" && count > 15 {
                continue;
            }
            let sampler = Sampler::named(name, samples, 2).expect("a sampler");
            let (design, counted) = peak_of(|| sampler.sample(&parameters, samples, 1));
            design.expect("a design");
            let estimated = points_bytes(samples.into(), count) + rows_bytes(samples.into(), count);
            near(&format!("{name}, {count} parameters, {samples} points"), estimated, counted);
        }
    }
    for (count, samples) in [(3, 5_000_u32), (60, 129)] {
        let parameters = reals(count);
        let (design, counted) =
            peak_of(|| fast::sample(&parameters, &Fast { samples, harmonics: 4, seed: 1 }));
        design.expect("a design");
        let estimated = rows_bytes(u64::from(samples) * count as u64, count);
        near(&format!("{count} parameters, curves of {samples}"), estimated, counted);
    }
}
