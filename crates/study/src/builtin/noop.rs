//! Workflow without computation, which measures the overhead of pleach itself. Each evaluation returns its
//! number.

use pleach_regions::{DataRegion, ElementType, Table};
use pleach_workflow::{Accepts, Argument, DeclaredOperation, Port};

/// Descriptors of the workflow, the workflow file first.
pub(super) const DESCRIPTORS: [(&str, &str); 2] =
    [("workflow.json", include_str!("noop/workflow.json")), ("noop.json", include_str!("noop/noop.json"))];

/// Largest argument, 2^53: tables hold f64, which is exact up to there.
const LARGEST: i64 = 1 << 53;

/// Operation that returns its argument.
pub(super) const ECHO: DeclaredOperation = DeclaredOperation {
    name: "noop.echo",
    version: 1,
    arguments: &[Argument { name: "n", accepts: Accepts::Integers { low: 0, high: LARGEST } }],
    inputs: &[],
    outputs: &[Port { name: "echo", element: ElementType::Table }],
    cost_seconds: |_| 1e-6,
    memory_bytes: |pixels| ElementType::Table.bytes(pixels),
    run: |_, arguments| Ok(vec![DataRegion::Table(Table::new([("n", arguments[0].as_f64())]))]),
};
