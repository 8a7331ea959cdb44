//! Declaration of an operation in the form of the trait `Operation`.

use crate::identity::Identity;
use crate::intern::interned;
use crate::manifest::{self, Declaration, Determinism};
use crate::process::Limits;
use pleach_accelerate::{Device, DeviceOutput};
use pleach_regions::{DataRegion, WrongElement};
use pleach_workflow::{
    Accelerated, AcceleratedError, Argument, Meter, Operation, OperationError, Port, Value,
};
use std::time::Duration;

/// 256 MB: least memory that a task may use beyond an idle process without an explicit limit. Estimates of small tiles would
/// kill tasks that load a library.
const LEAST_LIMIT: u64 = 256_000_000;

/// Ratio of the memory limit to the estimate, without an explicit limit.
const LIMIT_RATIO: u64 = 2;

/// Gain of an operation that no core can run. It exceeds those of operations that a core can run as well (1 to 100 in the
/// literature), so an accelerator takes this operation first, and cores take the others.
const GAIN: f64 = 1000.0;

/// Name, ports, arguments and estimates of an operation.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// `NAME@DIGEST`.
    name: &'static str,
    plain_name: &'static str,
    version: u32,
    arguments: Vec<Argument>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    seconds: f64,
    nanoseconds_a_pixel: f64,
    bytes_a_pixel: u64,
    is_deterministic: bool,
    components: Vec<(String, String)>,
    timeout: Duration,
    memory_limit: Option<u64>,
    needs_accelerator: bool,
    /// Bytes of a task on its accelerator.
    device_bytes: u64,
}

impl Declared {
    pub(crate) fn new(declaration: &Declaration, identity: &Identity) -> Self {
        Self {
            name: interned(&format!("{}@{}", declaration.name, identity.digest())),
            plain_name: declaration.name,
            version: declaration.version,
            arguments: declaration.arguments.iter().map(|argument| argument.argument).collect(),
            inputs: declaration.inputs.iter().map(|port| port.port).collect(),
            outputs: declaration.outputs.iter().map(|port| port.port).collect(),
            seconds: declaration.seconds,
            nanoseconds_a_pixel: declaration.nanoseconds_a_pixel,
            bytes_a_pixel: declaration.bytes_a_pixel,
            is_deterministic: declaration.determinism != Determinism::None,
            components: identity.0.clone().into_iter().collect(),
            timeout: declaration.timeout,
            memory_limit: declaration.memory_limit,
            needs_accelerator: declaration.device == manifest::Device::Accelerator,
            device_bytes: declaration.device_bytes,
        }
    }

    pub(crate) fn plain_name(&self) -> &'static str {
        self.plain_name
    }

    pub(crate) fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Returns the bytes of a run: the outputs in this process, and the memory of the other process beyond its idle state.
    pub(crate) fn memory_bytes(&self, pixels: u64) -> u64 {
        let outputs: u64 = self.outputs.iter().map(|port| port.element.bytes(pixels)).sum();
        outputs.saturating_add(self.bytes_a_pixel.saturating_mul(pixels))
    }

    /// Returns the limits of a call in a process with `idle_bytes` before it, for one task or several with these pixels. The time
    /// of each task counts, and `memory.limit` is that of the process.
    pub(crate) fn limits(&self, pixels: &[u64], idle_bytes: u64) -> Limits {
        let estimates = pixels.iter().map(|pixels| self.memory_bytes(*pixels));
        let estimate = estimates.fold(0, u64::saturating_add);
        let beyond = estimate.saturating_mul(LIMIT_RATIO).max(LEAST_LIMIT);
        let bytes = self.memory_limit.unwrap_or(idle_bytes.saturating_add(beyond));
        Limits { timeout: self.timeout.saturating_mul(pixels.len() as u32), bytes }
    }

    /// Returns the seed of a task: a number that equal arguments share.
    pub(crate) fn seed(&self, arguments: &[Value]) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.name.as_bytes());
        for argument in arguments {
            hasher.update(&argument.as_f64().to_bits().to_le_bytes());
        }
        let mut bytes = [0; 8];
        hasher.finalize_xof().fill(&mut bytes);
        // Below 2^32, the largest seed of numpy's older generators.
        u64::from_le_bytes(bytes) >> 32
    }

    /// Checks the number and types of inputs and arguments.
    pub(crate) fn check(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<(), OperationError> {
        let counts = [
            ("inputs", self.inputs.len(), inputs.len()),
            ("arguments", self.arguments.len(), arguments.len()),
        ];
        for (what, wanted, found) in counts {
            if wanted != found {
                return Err(OperationError::Arity { what, wanted, found });
            }
        }
        for (port, input) in self.inputs.iter().zip(inputs) {
            if input.element() != port.element {
                return Err(WrongElement { expected: port.element, found: input.element() }.into());
            }
        }
        for (argument, value) in self.arguments.iter().zip(arguments) {
            let Argument { name, accepts } = *argument;
            if !accepts.contains(*value) {
                return Err(OperationError::BadArgument { argument: name, value: *value, accepts });
            }
        }
        Ok(())
    }
}

/// Runs the tasks of a declared operation.
pub(crate) trait Runs: Send + Sync {
    /// Returns the declaration.
    fn declared(&self) -> &Declared;

    /// Returns the bytes of a process that each task starts, apart from pixels.
    fn resident_bytes(&self) -> u64 {
        0
    }

    /// Runs a task. Returns its outputs, and the peak bytes of the other process with the outputs, if they are measured.
    fn run(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> (Result<Vec<DataRegion>, OperationError>, Option<u64>);
}

/// An operation as its declaration describes it.
pub(crate) struct DeclaredOperation<R>(pub(crate) R);

impl<R: Runs> Operation for DeclaredOperation<R> {
    fn name(&self) -> &'static str {
        self.0.declared().name
    }

    fn version(&self) -> u32 {
        self.0.declared().version
    }

    fn arguments(&self) -> &[Argument] {
        &self.0.declared().arguments
    }

    fn inputs(&self) -> &[Port] {
        &self.0.declared().inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.0.declared().outputs
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        let Declared { seconds, nanoseconds_a_pixel, .. } = self.0.declared();
        seconds + nanoseconds_a_pixel * 1e-9 * pixels as f64
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.0.declared().memory_bytes(pixels).saturating_add(self.0.resident_bytes())
    }

    fn is_deterministic(&self) -> bool {
        self.0.declared().is_deterministic
    }

    fn components(&self) -> &[(String, String)] {
        &self.0.declared().components
    }

    fn accelerated(&self) -> Option<&dyn Accelerated> {
        self.needs_accelerator().then_some(self)
    }

    fn is_external(&self) -> bool {
        true
    }

    fn needs_accelerator(&self) -> bool {
        self.0.declared().needs_accelerator
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        self.0.run(inputs, arguments).0
    }

    /// The process that runs the task is measured, instead of this one, which `meter` would measure.
    fn run_metered(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
        _: Meter,
    ) -> (Result<Vec<DataRegion>, OperationError>, Option<u64>) {
        self.0.run(inputs, arguments)
    }
}

/// The external program drives the device itself. The slot keeps other tasks away from the device meanwhile.
impl<R: Runs> Accelerated for DeclaredOperation<R> {
    fn gain(&self) -> f64 {
        GAIN
    }

    fn device_bytes(&self, _: u64) -> u64 {
        self.0.declared().device_bytes
    }

    fn run_on(
        &self,
        _: &mut dyn Device,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DeviceOutput>, AcceleratedError> {
        Ok(DeviceOutput::on_host(self.0.run(inputs, arguments).0?))
    }
}

/// Returns the pixels of the largest input.
pub(crate) fn pixels(inputs: &[&DataRegion]) -> u64 {
    let of = |input: &&DataRegion| match &*input.shape() {
        [height, width, ..] => height.saturating_mul(*width),
        _ => 0,
    };
    inputs.iter().map(of).max().unwrap_or(0)
}
