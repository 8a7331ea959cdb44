//! Operation with a predicted cost that makes a look-up worthwhile.

use pleach_regions::DataRegion;
use pleach_workflow::{Argument, Operation, OperationError, Port, Value};
use std::sync::Arc;

/// Another operation, declared to take 1 s.
pub(crate) struct Costly(pub(crate) Arc<dyn Operation>);

impl Operation for Costly {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn arguments(&self) -> &[Argument] {
        self.0.arguments()
    }

    fn inputs(&self) -> &[Port] {
        self.0.inputs()
    }

    fn outputs(&self) -> &[Port] {
        self.0.outputs()
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        1.0
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.0.memory_bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        self.0.run(inputs, arguments)
    }
}
