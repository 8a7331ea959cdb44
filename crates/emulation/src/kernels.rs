//! Stand-ins of image operations that run on cores and on emulated devices: they wait.
//!
//! Each one declares a gain. Its arguments have the seconds on a core and the true gain, which the worker can only learn from
//! measured runs. Names, times and gains are those of the pipeline example of the Region Templates framework
//! (`runtime/examples/PipelineTasks`).

use crate::operations::{IDS, TOKEN, TOKEN_PORT, VERSION, token, wait};
use pleach_accelerate::{Device, DeviceError, DeviceOutput};
use pleach_regions::DataRegion;
use pleach_workflow::{
    Accelerated, AcceleratedError, Accepts, Argument, Operation, OperationError, Port, Value,
    check_arguments, check_count,
};
use std::sync::Arc;

/// A true gain from 0.05, a device that is useless for the task, to 1,000, above all gains in the literature.
const GAINS: Accepts = Accepts::Reals { low: 0.05, high: 1000.0 };

/// One minute: a stand-in is for tests and benches.
const SECONDS: Accepts = Accepts::Reals { low: 0.0, high: 60.0 };

/// Bytes on the device for each pixel: an image of four bytes a pixel, its result, and as much scratch.
const DEVICE_BYTES_PER_PIXEL: u64 = 12;

/// Declared name, seconds on a core and gain of each stand-in.
pub const KERNELS: [(&str, f64, f64); 10] = [
    ("emulation.rbc", 0.3941, 13.2),
    ("emulation.open", 0.1522, 9.2),
    ("emulation.recon", 1.7483, 5.5),
    ("emulation.area", 0.1295, 4.6),
    ("emulation.distance", 1.5873, 6.9),
    ("emulation.components", 0.3555, 5.7),
    ("emulation.deconvolution", 1.0969, 14.0),
    ("emulation.statistics", 0.1517, 16.9),
    ("emulation.gradient", 1.7231, 17.8),
    ("emulation.sobel", 0.2942, 16.4),
];

/// A stand-in.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    name: &'static str,
    seconds: f64,
    gain: f64,
}

/// Returns all stand-ins.
pub(crate) fn kernels() -> impl Iterator<Item = Arc<dyn Operation>> {
    let kernel = |(name, seconds, gain)| Arc::new(Kernel { name, seconds, gain }) as Arc<dyn Operation>;
    KERNELS.into_iter().map(kernel)
}

impl Operation for Kernel {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn arguments(&self) -> &[Argument] {
        const ARGUMENTS: [Argument; 3] = [
            Argument { name: "execution", accepts: IDS },
            Argument { name: "seconds", accepts: SECONDS },
            Argument { name: "gain", accepts: GAINS },
        ];
        &ARGUMENTS
    }

    fn inputs(&self) -> &[Port] {
        &[TOKEN_PORT]
    }

    fn outputs(&self) -> &[Port] {
        &[TOKEN_PORT]
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        self.seconds
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        TOKEN.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let (seconds, _) = self.checked(inputs, arguments)?;
        wait(seconds);
        Ok(token())
    }

    fn accelerated(&self) -> Option<&dyn Accelerated> {
        Some(self)
    }
}

impl Kernel {
    /// Returns the seconds on a core and the true gain.
    fn checked(self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<(f64, f64), OperationError> {
        check_count("inputs", self.inputs().len(), inputs.len())?;
        check_arguments(self.arguments(), arguments)?;
        Ok((arguments[1].as_f64(), arguments[2].as_f64()))
    }
}

impl Accelerated for Kernel {
    fn gain(&self) -> f64 {
        self.gain
    }

    fn device_bytes(&self, pixels: u64) -> u64 {
        pixels.saturating_mul(DEVICE_BYTES_PER_PIXEL)
    }

    fn run_on(
        &self,
        device: &mut dyn Device,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DeviceOutput>, AcceleratedError> {
        let (seconds, gain) = self.checked(inputs, arguments)?;
        let Some(factor) = device.emulation() else {
            let (device, cause) = (device.name().to_owned(), format!("{} has no kernel", self.name));
            return Err(DeviceError::Unsupported { device, cause }.into());
        };
        wait(seconds / (gain * factor));
        Ok(DeviceOutput::on_host(token()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_accelerate::EmulatedDevice;
    use pleach_workflow::Real;

    #[test]
    fn kernel_returns_a_token_on_both_devices() {
        let input = DataRegion::Scalar(0.0);
        let real = |value: f64| Value::Real(Real::try_from(value).unwrap());
        for kernel in kernels() {
            let arguments = [Value::Integer(1), real(0.001), real(10.0)];
            let on_core = kernel.run(&[&input], &arguments).unwrap();
            let variant = kernel.accelerated().unwrap();
            assert!(variant.gain() > 1.0 && variant.device_bytes(100) == 1200);
            let mut device = EmulatedDevice::new(2.0, None);
            assert_eq!(variant.run_to_host(&mut device, &[&input], &arguments).unwrap(), on_core);
            assert!(kernel.run(&[&input], &[Value::Integer(1), real(0.001), real(0.0)]).is_err());
        }
    }
}
