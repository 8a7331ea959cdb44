//! Workflows, parameters, operations and study files (hop 1 of a study).
//!
//! Data only: this crate validates what users write and says what is wrong with it. It samples nothing, plans
//! nothing, runs nothing, and opens no image.

mod check;
mod cores;
mod descriptor;
mod distribution;
mod error;
mod graph;
mod joined;
mod operation;
mod parameter;
mod study;
pub mod text;
mod value;
mod workflow;

pub use check::stage_file;
pub use distribution::Distribution;
pub use error::{DescriptorError, Problem};
pub use joined::JOIN;
pub use operation::{Accepts, Argument, Operation, OperationError, Port, Registry};
pub use parameter::{Domain, DomainError, Parameter};
pub use study::{
    Annotations, BasePoints, BothEmpty, Durable, FieldProblem, Method, OfPoints, Phase, Recipe, Reference,
    SlideTile, Slides, Space, Study, StudyError, SurvivorRule, Survivors, Tile, TissueRule, Until, core_of,
};
pub use value::{NotFinite, ParseValueError, Real, Value, ValueType};
pub use workflow::{
    Aggregate, Origin, Read, ReferenceDecl, RegionDecl, Response, Stage, StageInput, StageOutput, Switch,
    Task, TierKind, Workflow,
};

/// Compiles and runs the operation of the guide's chapter on workflows.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/own-workflow.md")]
struct OwnWorkflow;
