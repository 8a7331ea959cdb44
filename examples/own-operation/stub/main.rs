//! pleach with operations of its own. Begun by `pleach workflow stub`: write the functions `run`.
//!
//! Each operation is a pure function of its inputs and arguments. Raise its version whenever its output changes.

use pleach::regions::{DataRegion, ElementType};
use pleach::workflow::{Accepts, Argument, Operation, OperationError, Port, Registry, Value};

/// Share of the pixels with a mean below the threshold.
struct DarkFraction;

impl Operation for DarkFraction {
    fn name(&self) -> &'static str {
        "example.dark-fraction"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[
            Argument { name: "threshold", accepts: Accepts::Integers { low: 64, high: 192 } },
        ]
    }

    fn inputs(&self) -> &[Port] {
        &[
            Port { name: "tile", element: ElementType::Bgr8 },
        ]
    }

    fn outputs(&self) -> &[Port] {
        &[
            Port { name: "darkness", element: ElementType::ArrayF32 }, // type assumed
        ]
    }

    // An estimate for the first plan. Later plans use measured times.
    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 10e-9
    }

    // Outputs and scratch, not inputs: admission control relies on it.
    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::ArrayF32.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let tile = inputs[0]; // bgr8
        let threshold = arguments[0].as_f64(); // integer from 64 to 192
        // Return darkness (array-f32).
        unwritten(self, &[tile], &[threshold])
    }
}

/// Operation nscale.smooth.
struct Smooth;

impl Operation for Smooth {
    fn name(&self) -> &'static str {
        "nscale.smooth"
    }

    fn version(&self) -> u32 {
        2
    }

    fn arguments(&self) -> &[Argument] {
        &[
            Argument { name: "mean_0", accepts: Accepts::Reals { low: 0.25, high: 4.0 } },
        ]
    }

    fn inputs(&self) -> &[Port] {
        &[
            Port { name: "tile", element: ElementType::Bgr8 },
        ]
    }

    fn outputs(&self) -> &[Port] {
        &[
            Port { name: "smoothed", element: ElementType::ArrayF32 }, // type assumed
        ]
    }

    // An estimate for the first plan. Later plans use measured times.
    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 10e-9
    }

    // Outputs and scratch, not inputs: admission control relies on it.
    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::ArrayF32.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let tile = inputs[0]; // bgr8
        let mean_0 = arguments[0].as_f64(); // real from 0.25 to 4
        // Return smoothed (array-f32).
        unwritten(self, &[tile], &[mean_0])
    }
}

/// Compares both.
struct Measure;

impl Operation for Measure {
    fn name(&self) -> &'static str {
        "measure"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[
            Argument { name: "level", accepts: Accepts::Reals { low: f64::MIN, high: f64::MAX } },
        ]
    }

    fn inputs(&self) -> &[Port] {
        &[
            Port { name: "darkness", element: ElementType::ArrayF32 }, // type assumed
            Port { name: "smoothed", element: ElementType::ArrayF32 }, // type assumed
        ]
    }

    fn outputs(&self) -> &[Port] {
        &[
            Port { name: "result", element: ElementType::Table },
        ]
    }

    // An estimate for the first plan. Later plans use measured times.
    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * 10e-9
    }

    // Outputs and scratch, not inputs: admission control relies on it.
    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::Table.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let darkness = inputs[0]; // array-f32
        let smoothed = inputs[1]; // array-f32
        let level = arguments[0].as_f64(); // real
        // Return result (table).
        unwritten(self, &[darkness, smoothed], &[level])
    }
}

/// Fails, because the operation is not written yet.
fn unwritten(
    operation: &dyn Operation,
    inputs: &[&DataRegion],
    arguments: &[f64],
) -> Result<Vec<DataRegion>, OperationError> {
    let cause = format!(
        "operation {} is not written yet; called with {} regions and the numbers {arguments:?}",
        operation.name(),
        inputs.len()
    );
    Err(OperationError::External { cause: cause.into() })
}

/// Returns the built-in operations and those of this program.
pub(crate) fn operations() -> Registry {
    pleach::builtin_operations()
        .with(DarkFraction)
        .with(Smooth)
        .with(Measure)
}

fn main() -> std::process::ExitCode {
    pleach::run(&operations())
}
