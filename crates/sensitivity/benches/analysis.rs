//! Benchmarks each method on Sobol's G function of eight parameters: a study of common size, with 100
//! resamples (MOAT: 1000).

#[path = "analysis/study.rs"]
mod study;

use criterion::{Criterion, criterion_group, criterion_main};

fn analyses(criterion: &mut Criterion) {
    for method in study::METHODS {
        let size = match method {
            "moat" => 100,
            "vbd" | "vbd-second" => 8192,
            _ => 1024,
        };
        let mut analysis = study::analysis(method, size, 8).expect("a method and sizes that it takes");
        criterion.bench_function(&format!("{method} {size} x 8"), |bencher| bencher.iter(&mut analysis));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = analyses
}
criterion_main!(benches);
