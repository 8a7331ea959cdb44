//! Stand-in of an operation whose device fails: the CPU variant works, and the device variant meets the fault of its argument.

use crate::operations::{IDS, TOKEN, TOKEN_PORT, VERSION, token, wait};
use pleach_accelerate::{Device, DeviceError, DeviceOutput};
use pleach_regions::DataRegion;
use pleach_workflow::{
    Accelerated, AcceleratedError, Accepts, Argument, Operation, OperationError, Port, Value,
    check_arguments, check_count,
};

/// Name of the operation.
pub const FAULTY_OPERATION: &str = "emulation.faulty";

/// Faults: none, the device is lost, out of memory, an error of a call, another result, a task that hangs.
const FAULTS: Accepts = Accepts::Integers { low: 0, high: 5 };

/// An hour is longer than any time limit of a task on a device.
const HANG_SECONDS: f64 = 3600.0;

/// Declared seconds on a core: short, as the tests of faults are.
const CORE_SECONDS: f64 = 0.01;

/// Declared and true gain: above those of the other stand-ins, so that accelerators take the operation first.
const GAIN: f64 = 20.0;

/// The stand-in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faulty;

impl Operation for Faulty {
    fn name(&self) -> &'static str {
        FAULTY_OPERATION
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn arguments(&self) -> &[Argument] {
        const ARGUMENTS: [Argument; 2] =
            [Argument { name: "execution", accepts: IDS }, Argument { name: "fault", accepts: FAULTS }];
        &ARGUMENTS
    }

    fn inputs(&self) -> &[Port] {
        &[TOKEN_PORT]
    }

    fn outputs(&self) -> &[Port] {
        &[TOKEN_PORT]
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        CORE_SECONDS
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        TOKEN.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        check_count("inputs", self.inputs().len(), inputs.len())?;
        check_arguments(self.arguments(), arguments)?;
        wait(CORE_SECONDS);
        Ok(token())
    }

    fn accelerated(&self) -> Option<&dyn Accelerated> {
        Some(self)
    }
}

impl Accelerated for Faulty {
    fn gain(&self) -> f64 {
        GAIN
    }

    fn device_bytes(&self, pixels: u64) -> u64 {
        pixels
    }

    fn run_on(
        &self,
        device: &mut dyn Device,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DeviceOutput>, AcceleratedError> {
        check_count("inputs", self.inputs().len(), inputs.len())?;
        check_arguments(self.arguments(), arguments)?;
        let name = device.name().to_owned();
        let factor = device.emulation().unwrap_or(1.0);
        wait(CORE_SECONDS / (GAIN * factor));
        Err(match arguments[1] {
            Value::Integer(1) => {
                DeviceError::Lost { device: name, cause: "emulated fault".to_owned() }.into()
            }
            Value::Integer(2) => {
                let memory_bytes = device.memory_bytes();
                let (bytes, used_bytes) = (memory_bytes.saturating_add(1), device.used_bytes());
                DeviceError::OutOfMemory { device: name, bytes, used_bytes, memory_bytes }.into()
            }
            Value::Integer(3) => {
                let cause = "emulated fault".to_owned();
                DeviceError::Call { device: name, call: "emulated call", cause }.into()
            }
            Value::Integer(4) => return Ok(vec![DeviceOutput::Host(DataRegion::Scalar(1.0))]),
            Value::Integer(5) => {
                wait(HANG_SECONDS);
                return Ok(DeviceOutput::on_host(token()));
            }
            _ => return Ok(DeviceOutput::on_host(token())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_accelerate::EmulatedDevice;

    #[test]
    fn fault_is_that_of_the_argument() {
        let input = DataRegion::Scalar(0.0);
        let mut device = EmulatedDevice::new(2.0, None);
        let mut cause = |fault: i64| {
            let arguments = [Value::Integer(1), Value::Integer(fault)];
            assert_eq!(Faulty.run(&[&input], &arguments).unwrap(), token());
            match Faulty.run_to_host(&mut device, &[&input], &arguments) {
                Ok(outputs) => {
                    if outputs == token() {
                        "none"
                    } else {
                        "result"
                    }
                }
                Err(AcceleratedError::Device(error)) => error.cause(),
                Err(AcceleratedError::Operation(error)) => panic!("{error}"),
            }
        };
        assert_eq!([0, 1, 2, 3, 4].map(&mut cause), ["none", "lost", "memory", "other", "result"]);
    }
}
