//! Benchmarks every operation of the nuclei workflow on one synthetic tile of 1024 × 1024 px, at default parameters.
//!
//! The comparison reads the tile's own label map as reference.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pleach_pathology::tissue;
use pleach_regions::{DataRegion, LabelMap};
use pleach_workflow::{Operation, Registry, Value, ValueType};
use std::hint::black_box;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;

const SIZE_PX: u32 = 1024;

/// Default parameters of each task, in the order of its operation's arguments.
const TASKS: [(&str, &[f64]); 9] = [
    ("nuclei.normalize", &[]),
    ("nuclei.background", &[220.0, 220.0, 220.0, 5.0, 4.0]),
    ("nuclei.reconstruct", &[8.0]),
    ("nuclei.candidates", &[80.0, 4.0]),
    ("nuclei.candidate-area", &[11.0, 1000.0]),
    ("nuclei.nuclei", &[45.0]),
    ("nuclei.separate", &[30.0, 8.0]),
    ("nuclei.final-area", &[21.0, 1000.0, 4.0]),
    ("compare.objects", &[]),
];

fn find(registry: &Registry, name: &str) -> Arc<dyn Operation> {
    Arc::clone(registry.get(name, 1).expect("a linked operation"))
}

fn operations(criterion: &mut Criterion) {
    let registry = pleach_pathology::registry();
    let tile = tissue::generate(1, 0, SIZE_PX).expect("a legal size");
    let labels = tile.labels.data.iter().map(|label| u32::from(*label)).collect();
    let labels = LabelMap::new(SIZE_PX, SIZE_PX, labels).expect("the tile's size");
    let mut regions = vec![("tile", DataRegion::Bgr8(tile.image)), ("reference", DataRegion::Labels(labels))];
    let mut group = criterion.benchmark_group("operations");
    group.throughput(Throughput::Elements(u64::from(SIZE_PX) * u64::from(SIZE_PX)));
    for (name, numbers) in TASKS {
        let operation = find(&registry, name);
        let arguments: Vec<Value> = operation
            .arguments()
            .iter()
            .zip(numbers)
            .map(|(argument, number)| match argument.accepts.value_type() {
                ValueType::Integer => Value::Integer(*number as i64),
                ValueType::Real => Value::from_f64(*number, ValueType::Real).expect("finite"),
            })
            .collect();
        // Port names find the regions. The tile replaces the image that only normalization reads.
        let newest = |port: &str| {
            let alias = match port {
                "image" => "tile",
                other => other,
            };
            regions.iter().rev().find(|(region, _)| *region == alias).map(|(_, region)| region)
        };
        let inputs: Option<Vec<&DataRegion>> =
            operation.inputs().iter().map(|port| newest(port.name)).collect();
        let inputs = inputs.unwrap_or_else(|| panic!("{name} reads what an earlier task wrote"));
        let outputs = operation.run(&inputs, &arguments).expect("runs");
        group.bench_function(name, |bencher| {
            bencher.iter(|| operation.run(black_box(&inputs), black_box(&arguments)).expect("runs"));
        });
        let written: Vec<_> = operation.outputs().iter().map(|port| port.name).zip(outputs).collect();
        regions.extend(written);
    }
    group.finish();
}

criterion_group!(benches, operations);
criterion_main!(benches);
