//! An operation as a declaration and functions, without a type of its own.

use super::{Argument, Operation, OperationError, Port};
use crate::value::Value;
use pleach_regions::DataRegion;

type Run = fn(&[&DataRegion], &[Value]) -> Result<Vec<DataRegion>, OperationError>;

/// An operation that consists of a declaration and functions. Inputs and arguments are checked before `run`, which can rely on the
/// declared number of inputs, and on accepted arguments of the declared number.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredOperation {
    /// Name in descriptors.
    pub name: &'static str,
    /// Version, which changes whenever the output changes for any input.
    pub version: u32,
    /// Parameters, in order.
    pub arguments: &'static [Argument],
    /// Inputs, in order.
    pub inputs: &'static [Port],
    /// Outputs, in order.
    pub outputs: &'static [Port],
    /// Returns the estimated seconds on one core for an image of so many pixels.
    pub cost_seconds: fn(u64) -> f64,
    /// Returns the estimated bytes of outputs and scratch for an image of so many pixels.
    pub memory_bytes: fn(u64) -> u64,
    /// Runs the operation.
    pub run: Run,
}

impl Operation for DeclaredOperation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn arguments(&self) -> &[Argument] {
        self.arguments
    }

    fn inputs(&self) -> &[Port] {
        self.inputs
    }

    fn outputs(&self) -> &[Port] {
        self.outputs
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        (self.cost_seconds)(pixels)
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        (self.memory_bytes)(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        check_count("inputs", self.inputs.len(), inputs.len())?;
        check_arguments(self.arguments, arguments)?;
        (self.run)(inputs, arguments)
    }
}

/// Checks the number of inputs or arguments, named by `what`.
///
/// # Errors
/// Returns [`OperationError::Arity`] if the numbers differ.
pub fn check_count(what: &'static str, wanted: usize, found: usize) -> Result<(), OperationError> {
    if wanted == found { Ok(()) } else { Err(OperationError::Arity { what, wanted, found }) }
}

/// Checks the number of arguments and their values.
///
/// # Errors
/// Returns [`OperationError::Arity`] for another number of arguments, and [`OperationError::BadArgument`] for the first one that
/// its declaration does not accept.
pub fn check_arguments(declared: &[Argument], values: &[Value]) -> Result<(), OperationError> {
    check_count("arguments", declared.len(), values.len())?;
    match declared.iter().zip(values).find(|(argument, value)| !argument.accepts.contains(**value)) {
        Some((&Argument { name, accepts }, &value)) => {
            Err(OperationError::BadArgument { argument: name, value, accepts })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Accepts;
    use crate::value::ValueType;
    use pleach_regions::ElementType;

    const DOUBLED: DeclaredOperation = DeclaredOperation {
        name: "toy.doubled",
        version: 3,
        arguments: &[Argument { name: "times", accepts: Accepts::Integers { low: 1, high: 4 } }],
        inputs: &[Port { name: "number", element: ElementType::Scalar }],
        outputs: &[Port { name: "doubled", element: ElementType::Scalar }],
        cost_seconds: |pixels| pixels as f64,
        memory_bytes: |pixels| 8 * pixels,
        run: |inputs, arguments| {
            let DataRegion::Scalar(number) = inputs[0] else { unreachable!("one type in this test") };
            Ok(vec![DataRegion::Scalar(number * 2_f64.powf(arguments[0].as_f64()))])
        },
    };

    #[test]
    fn calls_are_checked_against_the_declaration() {
        let value = |number| Value::from_f64(number, ValueType::Integer).unwrap();
        let number = DataRegion::Scalar(3.0);
        assert_eq!(DOUBLED.run(&[&number], &[value(2.0)]).unwrap(), [DataRegion::Scalar(12.0)]);
        assert_eq!((DOUBLED.cost_seconds(3), DOUBLED.memory_bytes(3)), (3.0, 24));
        let refused = |inputs: &[&DataRegion], arguments: &[Value]| {
            DOUBLED.run(inputs, arguments).unwrap_err().to_string()
        };
        assert_eq!(refused(&[], &[value(2.0)]), "0 inputs given, 1 declared");
        assert_eq!(refused(&[&number], &[]), "0 arguments given, 1 declared");
        assert_eq!(refused(&[&number], &[value(5.0)]), "times = 5; an integer from 1 to 4 is allowed");
    }
}
