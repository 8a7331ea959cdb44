//! Workflows, parameters, operations and study files (hop 1 of a study).
//!
//! Data only: this crate validates what users write and says what is wrong with it. It samples nothing, plans
//! nothing, runs nothing, and opens no image.

mod operation;
mod parameter;
mod value;

pub use operation::{Accepts, Argument, Operation, OperationError, Port, Registry};
pub use parameter::{Domain, DomainError, Parameter};
pub use value::{NotFinite, ParseValueError, Real, Value, ValueType};
