//! Workflow without computation, which measures the overhead of pleach itself. Each evaluation returns its
//! number.

use pleach_regions::{DataRegion, ElementType, Table};
use pleach_workflow::{Accepts, Argument, Operation, OperationError, Port, Value};

/// Descriptors of the workflow, the workflow file first.
pub(super) const DESCRIPTORS: [(&str, &str); 2] =
    [("workflow.json", include_str!("noop/workflow.json")), ("noop.json", include_str!("noop/noop.json"))];

/// Largest argument, 2^53: tables hold f64, which is exact up to there.
const LARGEST: i64 = 1 << 53;

const ARGUMENTS: [Argument; 1] =
    [Argument { name: "n", accepts: Accepts::Integers { low: 0, high: LARGEST } }];

const OUTPUTS: [Port; 1] = [Port { name: "echo", element: ElementType::Table }];

/// Operation that returns its argument.
pub(super) struct Echo;

impl Operation for Echo {
    fn name(&self) -> &'static str {
        "noop.echo"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &ARGUMENTS
    }

    fn inputs(&self) -> &[Port] {
        &[]
    }

    fn outputs(&self) -> &[Port] {
        &OUTPUTS
    }

    fn cost_seconds(&self, _pixels: u64) -> f64 {
        1e-6
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::Table.bytes(pixels)
    }

    fn run(&self, _inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let number = arguments.first().map_or(0.0, |number| number.as_f64());
        Ok(vec![DataRegion::Table(Table::new([("n", number)]))])
    }
}
