//! Benchmarks sampling, as points and as designs, at the sizes that `benches/salib.py` draws with SALib.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::sampling::morris::{
    self, BasePointSource, Morris, SpreadSearch, TrajectoryPlan, TrajectorySelection,
};
use pleach_sensitivity::sampling::saltelli::{self, Saltelli};
use pleach_sensitivity::sampling::sampler::Sampler;
use pleach_workflow::{BasePoints, Domain, Parameter, Value, ValueType};
use std::hint::black_box;

/// Real parameters with ranges [0, 1], [0, 2], ….
fn reals(count: u32) -> Vec<Parameter> {
    let parameter = |number: u32| Parameter {
        name: format!("x{number}"),
        value_type: ValueType::Real,
        default: Value::from_f64(0.5, ValueType::Real).expect("finite"),
        domain: Domain::Continuous { low: 0.0, high: f64::from(number + 1) },
    };
    (0..count).map(parameter).collect()
}

fn points(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("points/100000x15");
    group.sample_size(10);
    for name in ["mc", "lhs", "halton", "halton-plain", "hammersley", "sobol"] {
        let Some(Sampler::Points(sequence)) = Sampler::named(name, 100_000, 4) else { continue };
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| black_box(sequence.points(100_000, 15, 500)));
        });
    }
    group.finish();
}

fn designs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("designs");
    group.sample_size(10);
    let (fifteen, eight) = (reals(15), reals(8));
    for name in ["mc", "lhs", "halton", "sobol"] {
        let Some(sampler) = Sampler::named(name, 100_000, 4) else { continue };
        group.bench_function(format!("{name}/100000x15"), |bencher| {
            bencher.iter(|| black_box(sampler.sample(&fifteen, 100_000, 500)));
        });
    }
    group.bench_function("lhs-maximin/100x15", |bencher| {
        let sampler = Sampler::named("lhs-maximin", 100, 4).expect("a known name");
        bencher.iter(|| black_box(sampler.sample(&fifteen, 100, 500)));
    });
    let morris = Morris { trajectories: 1000, levels: 20, seed: 500 };
    group.bench_function("morris/1000x15", |bencher| {
        bencher.iter(|| black_box(morris::sample(&fifteen, &morris)));
    });
    let ruano = TrajectoryPlan {
        morris: Morris { trajectories: 10, ..morris },
        base: BasePointSource::Random,
        choice: TrajectorySelection::Spread { search: SpreadSearch::Ruano, candidates: 500, batch: 10 },
    };
    group.bench_function("ruano/10 of 500x15", |bencher| {
        bencher.iter(|| black_box(morris::sample_plan(&fifteen, &Groups::alone(&fifteen), &ruano)));
    });
    for second_order in [false, true] {
        let base = BasePoints::Sobol;
        let saltelli = Saltelli { samples: 65_536, second_order, base, seed: 500 };
        let order = if second_order { "second" } else { "first" };
        group.bench_function(format!("saltelli/65536x8, {order} order"), |bencher| {
            bencher.iter(|| black_box(saltelli::sample(&eight, &saltelli)));
        });
    }
    group.finish();
}

criterion_group!(benches, points, designs);
criterion_main!(benches);
