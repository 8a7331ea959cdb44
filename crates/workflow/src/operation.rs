//! The one way in for image operations: the [`Operation`] trait and the registry that finds them by name.
//!
//! An operation is a pure function from immutable data regions and parameter values to new data regions.
//! Nothing here runs one: the runtime does, on whichever device slot it grants.

use crate::value::{Value, ValueType};
use pleach_regions::{DataRegion, ElementType, ShapeError, WrongElement};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Values an operation can run with. A study with others is refused, whether it is to be planned or run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accepts {
    /// Whole numbers `low..=high`.
    Integers {
        /// Smallest.
        low: i64,
        /// Largest.
        high: i64,
    },
    /// Exactly these whole numbers.
    OneOf(&'static [i64]),
    /// Reals `low..=high`.
    Reals {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
    },
}

impl Accepts {
    /// The type of the values.
    #[must_use]
    pub fn value_type(self) -> ValueType {
        match self {
            Self::Integers { .. } | Self::OneOf(_) => ValueType::Integer,
            Self::Reals { .. } => ValueType::Real,
        }
    }

    /// Whether the operation can run with `value`.
    #[must_use]
    pub fn contains(self, value: Value) -> bool {
        match (self, value) {
            (Self::Integers { low, high }, Value::Integer(number)) => (low..=high).contains(&number),
            (Self::OneOf(allowed), Value::Integer(number)) => allowed.contains(&number),
            (Self::Reals { low, high }, Value::Real(real)) => (low..=high).contains(&real.get()),
            _ => false,
        }
    }
}

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integers { low, high } => write!(f, "an integer from {low} to {high}"),
            Self::Reals { low, high } => write!(f, "a number from {low} to {high}"),
            Self::OneOf(allowed) => {
                f.write_str("one of")?;
                allowed.iter().try_for_each(|number| write!(f, " {number}"))
            }
        }
    }
}

/// A parameter of an operation, as a task hands it over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument {
    /// Name within the operation; a task may bind another parameter name to it.
    pub name: &'static str,
    /// Values it can run with.
    pub accepts: Accepts,
}

/// An input or output of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name within the operation, used in messages.
    pub name: &'static str,
    /// What passes through it.
    pub element: ElementType,
}

/// Why an operation gave no result.
#[derive(Debug, Error)]
pub enum OperationError {
    /// An input holds something else than its port says.
    #[error(transparent)]
    WrongElement(#[from] WrongElement),
    /// Inputs that must have one size do not.
    #[error("inputs are {0} x {1} px and {2} x {3} px, and must be of one size")]
    SizesDiffer(u32, u32, u32, u32),
    /// A buffer came back with a length that its shape does not have.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The number of inputs or arguments is not the declared one.
    #[error("{found} {what} given, {wanted} declared")]
    Arity {
        /// "inputs" or "arguments".
        what: &'static str,
        /// Declared.
        wanted: usize,
        /// Given.
        found: usize,
    },
    /// An argument the operation does not accept.
    #[error("{argument} = {value}; {accepts} is allowed")]
    BadArgument {
        /// The argument's name.
        argument: &'static str,
        /// What was given.
        value: Value,
        /// What is allowed.
        accepts: Accepts,
    },
    /// A library the operation stands on failed.
    #[error("{library}: {cause}")]
    Library {
        /// Which one.
        library: &'static str,
        /// What it said.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A pure image operation. Implementations hold no state that a run could change; a device variant or a program
/// run as an external process is another implementation behind the same declaration.
pub trait Operation: Send + Sync {
    /// Name that descriptors use, such as `nuclei.reconstruct`.
    fn name(&self) -> &'static str;

    /// Raised whenever the output changes for any input: part of every task's identity.
    fn version(&self) -> u32;

    /// Parameters, in the order [`Operation::run`] takes them.
    fn arguments(&self) -> &[Argument];

    /// Inputs, in order.
    fn inputs(&self) -> &[Port];

    /// Outputs, in order.
    fn outputs(&self) -> &[Port];

    /// The operation, by name and version, that does the same on the window of a tile whose core alone counts: it reads
    /// that core after all that this one reads (see [`core_of`](crate::core_of)). None where there is none.
    fn within_core(&self) -> Option<(&'static str, u32)> {
        None
    }

    /// Estimated seconds on one core of a typical machine for an image of `pixels` pixels.
    fn cost_seconds(&self, pixels: u64) -> f64;

    /// Estimated bytes in use while running on an image of `pixels` pixels: outputs and scratch, not inputs.
    fn memory_bytes(&self, pixels: u64) -> u64;

    /// Runs once. `inputs` and `arguments` are in declared order and of the declared types.
    ///
    /// # Errors
    /// [`OperationError`]; the same inputs give the same answer, an error included.
    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError>;
}

/// The operations a process has linked in, by name and version.
#[derive(Clone, Default)]
pub struct Registry {
    operations: BTreeMap<(&'static str, u32), Arc<dyn Operation>>,
}

impl Registry {
    /// A registry of these operations; a later one of equal name and version replaces an earlier one.
    #[must_use]
    pub fn new(operations: impl IntoIterator<Item = Arc<dyn Operation>>) -> Self {
        let operations = operations.into_iter().map(|op| ((op.name(), op.version()), op)).collect();
        Self { operations }
    }

    /// The same with one more; it replaces one of equal name and version.
    #[must_use]
    pub fn with(mut self, operation: impl Operation + 'static) -> Self {
        self.operations.insert((operation.name(), operation.version()), Arc::new(operation));
        self
    }

    /// Finds an operation.
    #[must_use]
    pub fn get(&self, name: &str, version: u32) -> Option<&Arc<dyn Operation>> {
        self.operations.iter().find(|((n, v), _)| *n == name && *v == version).map(|(_, op)| op)
    }

    /// Versions known of an operation, ascending; none when the name is unknown.
    #[must_use]
    pub fn versions(&self, name: &str) -> Vec<u32> {
        self.operations.keys().filter(|(n, _)| *n == name).map(|(_, version)| *version).collect()
    }

    /// Names of all operations, ascending.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.operations.keys().map(|(name, _)| *name).collect();
        names.dedup();
        names
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.operations.keys()).finish()
    }
}
