//! Operations with the declarations of the nuclei operations and no computation.

use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Accepts, Argument, Operation, OperationError, Port, Registry, Value};
use std::sync::Arc;

struct Declared {
    name: &'static str,
    arguments: Vec<Argument>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl Operation for Declared {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    fn cost_seconds(&self, _pixels: u64) -> f64 {
        0.0
    }

    fn memory_bytes(&self, _pixels: u64) -> u64 {
        0
    }

    fn run(&self, _inputs: &[&DataRegion], _arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        unreachable!("descriptors are checked, not run")
    }
}

const BYTE: Accepts = Accepts::Integers { low: 0, high: 255 };
const AREA: Accepts = Accepts::Integers { low: 0, high: i32::MAX as i64 };
const RATIO: Accepts = Accepts::Reals { low: 0.0, high: 1e6 };
const CONNECTIVITY: Accepts = Accepts::OneOf(&[4, 8]);

pub(crate) type Ports = [(&'static str, ElementType)];

pub(crate) fn operation(
    name: &'static str,
    arguments: &[(&'static str, Accepts)],
    inputs: &Ports,
    outputs: &Ports,
) -> Arc<dyn Operation> {
    let ports = |ports: &Ports| ports.iter().map(|&(name, element)| Port { name, element }).collect();
    let arguments = arguments.iter().map(|&(name, accepts)| Argument { name, accepts }).collect();
    Arc::new(Declared { name, arguments, inputs: ports(inputs), outputs: ports(outputs) })
}

/// Returns the operations of the nuclei workflow.
pub(crate) fn registry() -> Registry {
    use ElementType::{Bgr8, Gray8, Labels, Mask, Table};
    let thresholds = [("B", BYTE), ("G", BYTE), ("R", BYTE), ("T1", RATIO), ("T2", RATIO)];
    let select = [("diff", Gray8), ("bw1_t", Mask), ("rbc", Mask), ("background", Table)];
    let last = [("minSizeSeg", AREA), ("maxSizeSeg", AREA), ("FillHoles", CONNECTIVITY)];
    Registry::new([
        operation("nuclei.normalize", &[], &[("image", Bgr8)], &[("normalized", Bgr8)]),
        operation(
            "nuclei.background",
            &thresholds,
            &[("normalized", Bgr8)],
            &[("rbc", Mask), ("background", Table)],
        ),
        operation(
            "nuclei.reconstruct",
            &[("MorphRecon", CONNECTIVITY)],
            &[("normalized", Bgr8)],
            &[("rc", Gray8), ("recon", Gray8)],
        ),
        operation(
            "nuclei.candidates",
            &[("G1", BYTE), ("FillHoles", CONNECTIVITY)],
            &[("rc", Gray8), ("recon", Gray8)],
            &[("diff", Gray8), ("bw1", Mask)],
        ),
        operation(
            "nuclei.candidate-area",
            &[("minSize", AREA), ("maxSize", AREA)],
            &[("bw1", Mask)],
            &[("bw1_t", Mask)],
        ),
        operation("nuclei.nuclei", &[("G2", BYTE)], &select, &[("seg_open", Mask)]),
        operation(
            "nuclei.separate",
            &[("minSizePl", AREA), ("Watershed", CONNECTIVITY)],
            &[("seg_open", Mask), ("normalized", Bgr8)],
            &[("seg_nonoverlap", Mask)],
        ),
        operation("nuclei.final-area", &last, &[("seg_nonoverlap", Mask)], &[("mask", Mask)]),
        operation("compare.masks", &[], &[("mask", Mask), ("reference", Mask)], &[("metrics", Table)]),
        operation(
            "compare.objects",
            &[],
            &[("mask", Mask), ("reference", Labels)],
            &[("object_metrics", Table)],
        ),
    ])
}

/// Returns the path of the nuclei workflow.
pub(crate) fn shipped() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../pathology/descriptors/nuclei/workflow.json")
}
