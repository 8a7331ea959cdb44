//! Operations through the trait.

use pleach_pathology::registry;
use pleach_regions::DataRegion;
use pleach_workflow::{OperationError, Value};

/// Runs an operation. Numbers become arguments of its types.
#[expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]
pub(crate) fn run(
    name: &str,
    inputs: &[&DataRegion],
    arguments: &[f64],
) -> Result<Vec<DataRegion>, OperationError> {
    let registry = registry();
    let operation = registry.get(name, 1).unwrap();
    let typed = |(number, argument): (&f64, &pleach_workflow::Argument)| {
        Value::from_f64(*number, argument.accepts.value_type()).unwrap()
    };
    let arguments: Vec<Value> = arguments.iter().zip(operation.arguments()).map(typed).collect();
    operation.run(inputs, &arguments)
}
