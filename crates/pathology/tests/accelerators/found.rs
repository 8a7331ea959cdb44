//! Devices for the tests, and runs on them.

use pleach_accelerate::{Device, DeviceSpec, find};
use pleach_pathology::registry;
use pleach_regions::DataRegion;
use pleach_workflow::{AcceleratedError, Argument, Operation, Value};
use std::sync::Arc;

/// Opens all devices. Says so if there is none.
#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
pub(crate) fn devices(test: &str, memory_limit: Option<u64>) -> Vec<Box<dyn Device>> {
    let found = find(&DeviceSpec::All, memory_limit).unwrap();
    if found.devices.is_empty() {
        eprintln!("SKIPPED {test}: no OpenCL device is present: {:?}", found.remarks);
    }
    found.devices
}

/// Returns operation `name`, version 1.
pub(crate) fn operation(name: &str) -> Arc<dyn Operation> {
    Arc::clone(registry().get(name, 1).unwrap())
}

/// Returns numbers as arguments of an operation's types.
pub(crate) fn arguments(operation: &dyn Operation, numbers: &[f64]) -> Vec<Value> {
    let typed = |(number, argument): (&f64, &Argument)| {
        Value::from_f64(*number, argument.accepts.value_type()).unwrap()
    };
    numbers.iter().zip(operation.arguments()).map(typed).collect()
}

/// Runs the device variant of an operation.
pub(crate) fn run_on(
    device: &mut dyn Device,
    name: &str,
    inputs: &[&DataRegion],
    numbers: &[f64],
) -> Result<Vec<DataRegion>, AcceleratedError> {
    let operation = operation(name);
    operation.accelerated().unwrap().run_to_host(device, inputs, &arguments(&*operation, numbers))
}

/// Describes the first difference of the device's outputs from those of the CPU. `None` if all bits are equal.
pub(crate) fn difference(
    device: &mut dyn Device,
    name: &str,
    inputs: &[&DataRegion],
    numbers: &[f64],
) -> Option<String> {
    let operation = operation(name);
    let wanted = operation.run(inputs, &arguments(&*operation, numbers)).unwrap();
    let found = run_on(device, name, inputs, numbers).unwrap();
    if found == wanted {
        return None;
    }
    let differs = |(found, wanted): (&DataRegion, &DataRegion)| match found.raster(found.element()) {
        Ok(raster) => {
            let wanted = wanted.raster(wanted.element()).unwrap().data();
            let at = raster.data().iter().zip(wanted).position(|(a, b)| a != b);
            at.map_or("no byte differs".to_owned(), |at| {
                format!("byte {at} is {}, not {}", raster.data()[at], wanted[at])
            })
        }
        Err(_) => format!("{found:?}, not {wanted:?}"),
    };
    let outputs: Vec<String> = found.iter().zip(&wanted).map(differs).collect();
    Some(format!("{name}{numbers:?} on {}: {}", device.name(), outputs.join("; ")))
}
