//! Image operations: the [`Operation`] trait and the registry that finds them by name.
//!
//! An operation is a pure function from immutable data regions and parameter values to new data regions. The
//! runtime executes it on the device slot that it grants.

mod accelerated;
mod declared;
mod joining;

use crate::value::{Value, ValueType};
use pleach_regions::{DataRegion, ElementType, ShapeError, WrongElement};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

pub use accelerated::{Accelerated, AcceleratedError};
pub use declared::{DeclaredOperation, check_arguments, check_count};
pub use joining::is_joining;
pub(crate) use joining::{JOINING_VERSION, Joining};

/// Values that an operation accepts. Planning and execution reject a study with other values.
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
    /// Returns the type of the values.
    #[must_use]
    pub fn value_type(self) -> ValueType {
        match self {
            Self::Integers { .. } | Self::OneOf(_) => ValueType::Integer,
            Self::Reals { .. } => ValueType::Real,
        }
    }

    /// Returns whether the operation can run with `value`.
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

/// A parameter of an operation, as passed by a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument {
    /// Name within the operation. A task may bind a parameter of another name to it.
    pub name: &'static str,
    /// Values that the operation accepts.
    pub accepts: Accepts,
}

/// An input or output of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name within the operation, used in messages.
    pub name: &'static str,
    /// Element type.
    pub element: ElementType,
}

/// Error of an operation.
#[derive(Debug, Error)]
pub enum OperationError {
    /// The element type of an input differs from that of its port.
    #[error(transparent)]
    WrongElement(#[from] WrongElement),
    /// Inputs that must have the same size differ.
    #[error("inputs are {0} x {1} px and {2} x {3} px; inputs must have equal sizes")]
    SizesDiffer(u32, u32, u32, u32),
    /// The length of a buffer does not fit its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The number of inputs or arguments differs from the declaration.
    #[error("{found} {what} given, {wanted} declared")]
    Arity {
        /// "inputs" or "arguments".
        what: &'static str,
        /// Declared.
        wanted: usize,
        /// Given.
        found: usize,
    },
    /// The operation does not accept an argument.
    #[error("{argument} = {value}; {accepts} is allowed")]
    BadArgument {
        /// The argument's name.
        argument: &'static str,
        /// The value.
        value: Value,
        /// The accepted values.
        accepts: Accepts,
    },
    /// A library used by the operation failed.
    #[error("{library}: {cause}")]
    Library {
        /// The library.
        library: &'static str,
        /// Error.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A program outside this process failed.
    #[error("{cause}")]
    External {
        /// Error.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Runs a closure and returns its peak bytes above the start. `None` if memory is not measured.
pub type Meter = fn(&mut dyn FnMut()) -> Option<u64>;

/// Separator of name and digest: the operation `python:nuclei.threshold` is registered as `python:nuclei.threshold@DIGEST`.
const DIGEST_MARK: char = '@';

/// Returns the name of an operation without the digest of its code and environment.
#[must_use]
pub fn plain_name(operation: &str) -> &str {
    operation.split_once(DIGEST_MARK).map_or(operation, |(name, _)| name)
}

/// A pure image operation. Implementations hold no state that a run could change. A device variant or a program run
/// as an external process is another implementation behind the same declaration.
///
/// To write one:
///
/// - [`name`](Self::name) and [`version`](Self::version) identify it in descriptors and in caches. Results of equal inputs, arguments,
///   name and version are computed once, on all workers and in later studies.
/// - Stages of a workflow connect outputs to inputs of equal element types. A response is read from an output of type `table`.
/// - Tasks run on several threads at once, each with the same `&self`. Large images arrive as tiles.
/// - An error or a panic fails the evaluation on that tile, with the task's name, and no other.
/// - [`cost_seconds`](Self::cost_seconds) and [`memory_bytes`](Self::memory_bytes) may be rough: measured times replace the first, and
///   memory that is estimated too low lets a worker exceed its budget.
///
/// A program registers it with [`Registry::with`] (`examples/own-operation`).
pub trait Operation: Send + Sync {
    /// Returns the name that descriptors use, such as `nuclei.reconstruct`.
    fn name(&self) -> &'static str;

    /// Returns the version, which is part of every task's identity. It must change whenever the output changes for any
    /// input.
    fn version(&self) -> u32;

    /// Returns the parameters, in the order of [`Operation::run`].
    fn arguments(&self) -> &[Argument];

    /// Returns the inputs, in order.
    fn inputs(&self) -> &[Port];

    /// Returns the outputs, in order.
    fn outputs(&self) -> &[Port];

    /// Returns the name and version of the operation that does the same on the window of a tile and counts its core
    /// only. That operation reads the core after all inputs of this one (see [`core_of`](crate::core_of)). Returns
    /// `None` if no such operation exists.
    fn within_core(&self) -> Option<(&'static str, u32)> {
        None
    }

    /// Returns the name and version of the operation that does the same and counts only some pixels, and the objects whose
    /// centroid is one of them. That operation reads a mask of these pixels after all inputs of this one. Returns `None`
    /// if no such operation exists.
    fn within_regions(&self) -> Option<(&'static str, u32)> {
        None
    }

    /// Returns the name and version of the operation that does the same with fitted values. That operation reads them
    /// after all inputs of this one, as a table (see [`StainFit`](crate::StainFit)). Returns `None` if no such operation
    /// exists.
    fn with_stain(&self) -> Option<(&'static str, u32)> {
        None
    }

    /// Returns the estimated seconds on one core of a typical machine for an image of `pixels` pixels.
    fn cost_seconds(&self, pixels: u64) -> f64;

    /// Returns the estimated bytes in use while running on an image of `pixels` pixels: outputs and scratch, not
    /// inputs.
    fn memory_bytes(&self, pixels: u64) -> u64;

    /// Runs the operation once. `inputs` and `arguments` are in declared order and of the declared types.
    ///
    /// # Errors
    /// Returns an [`OperationError`]. Equal inputs give equal results, errors included.
    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError>;

    /// Runs the operation and returns its peak bytes, measured by `meter`. An operation that runs in another process measures
    /// there.
    fn run_metered(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
        meter: Meter,
    ) -> (Result<Vec<DataRegion>, OperationError>, Option<u64>) {
        let mut result = None;
        let peak_bytes = meter(&mut || result = Some(self.run(inputs, arguments)));
        let unmeasured =
            || OperationError::External { cause: "the memory meter did not run the task".into() };
        (result.unwrap_or_else(|| Err(unmeasured())), peak_bytes)
    }

    /// Returns whether equal inputs and arguments give equal results, so that later studies may reuse them.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Returns the components behind the digest in the name, by component: versions, files. Empty for an operation of the
    /// program.
    fn components(&self) -> &[(String, String)] {
        &[]
    }

    /// Returns whether the operation runs in another process, which it waits for.
    fn is_external(&self) -> bool {
        false
    }

    /// Returns the variant for accelerators. `None` if the operation runs on cores only.
    fn accelerated(&self) -> Option<&dyn Accelerated> {
        None
    }

    /// Returns whether the operation runs in an accelerator slot only, never on a core. An operation that runs as an external
    /// process declares it.
    fn needs_accelerator(&self) -> bool {
        false
    }
}

/// The operations linked into a process, by name and version.
#[derive(Clone, Default)]
pub struct Registry {
    operations: BTreeMap<(&'static str, u32), Arc<dyn Operation>>,
}

impl Registry {
    /// Creates a registry of these operations. A later one replaces an earlier one of equal name and version.
    #[must_use]
    pub fn new(operations: impl IntoIterator<Item = Arc<dyn Operation>>) -> Self {
        let operations = operations.into_iter().map(|op| ((op.name(), op.version()), op)).collect();
        Self { operations }
    }

    /// Adds an operation, or replaces the one of equal name and version.
    #[must_use]
    pub fn with(mut self, operation: impl Operation + 'static) -> Self {
        self.operations.insert((operation.name(), operation.version()), Arc::new(operation));
        self
    }

    /// Adds operations, or replaces those of equal names and versions.
    #[must_use]
    pub fn extended(mut self, operations: impl IntoIterator<Item = Arc<dyn Operation>>) -> Self {
        self.operations.extend(operations.into_iter().map(|op| ((op.name(), op.version()), op)));
        self
    }

    /// Removes an operation. `name` has its digest, if it has one.
    #[must_use]
    pub fn without(mut self, name: &str, version: u32) -> Self {
        self.operations.retain(|(known, of), _| (*known, *of) != (name, version));
        self
    }

    /// Removes the operations that need an accelerator, for a process without any.
    #[must_use]
    pub fn on_cores(mut self) -> Self {
        self.operations.retain(|_, operation| !operation.needs_accelerator());
        self
    }

    /// Finds an operation. A name without digest finds the only operation of that name, whatever its digest.
    #[must_use]
    pub fn get(&self, name: &str, version: u32) -> Option<&Arc<dyn Operation>> {
        let of_version = || self.operations.iter().filter(|((_, of), _)| *of == version);
        let exact = of_version().find(|((known, _), _)| *known == name).map(|(_, operation)| operation);
        exact.or_else(|| {
            let mut digested = of_version().filter(|((known, _), _)| plain_name(known) == name);
            let first = digested.next().map(|(_, operation)| operation);
            first.filter(|_| digested.next().is_none()).or_else(|| joining::get(name, version))
        })
    }

    /// Returns the known versions of an operation, ascending. Empty for an unknown name.
    #[must_use]
    pub fn versions(&self, name: &str) -> Vec<u32> {
        let named = self.operations.keys().filter(|(known, _)| *known == name || plain_name(known) == name);
        named.map(|(_, version)| *version).collect()
    }

    /// Returns the names of all operations, ascending, with digests.
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
