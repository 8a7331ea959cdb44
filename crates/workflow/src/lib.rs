//! Workflows, parameters, operations and study files (hop 1 of a study).
//!
//! Data only: this crate validates users' files and reports errors in them. It does not sample, plan, run, or open
//! images.

mod bounds;
mod core_measurement;
mod descriptor;
mod distribution;
mod domain_error;
mod error;
mod operation;
mod parameter;
mod study;
pub mod text;
pub mod toml_fields;
mod validate;
mod value;
mod workflow;

pub use bounds::{BoundsProblem, InputBounds, UnitSelector};
pub use descriptor::TierKind;
pub use descriptor::manifests::{DISTRIBUTION, manifests_of_study, manifests_of_workflow};
pub use descriptor::outline::{ArgumentUse, OperationUse, RegionUse, is_stage, operation_uses};
pub use distribution::Distribution;
pub use domain_error::DomainError;
pub use error::{DescriptorError, Problem};
pub use operation::{
    Accelerated, AcceleratedError, Accepts, Argument, DeclaredOperation, Meter, Operation, OperationError,
    Port, Registry, check_arguments, check_count, is_joining, plain_name,
};
pub use parameter::{Domain, Parameter};
pub use study::{
    AnnotationPart, AnnotationRules, AnnotationUnit, Annotations, AppliedImages, BasePoints, BothEmpty,
    CALIBRATION_COLUMNS, Durability, FitScope, GivenDataMethod, Method, MethodSpec, Normalization,
    ParameterSpace, Phase, ProgramParameter, ReferenceSource, SlideTile, Slides, StainFit, StainStatistics,
    StoppingRule, Study, StudyError, StudyProblem, StudyTile, SurvivorRule, Survivors, TileWeights, Tiling,
    TissueRule, Units, UnitsError, VOLUME_METADATA, VolumeBlock, VolumeInfo, Volumes, core_of,
};
pub use validate::stage_file;

/// JSON Schema (draft 7) of study files, for editors that complete them.
pub const STUDY_SCHEMA: &str = include_str!("../../../docs/study.schema.json");

pub use value::{NotFinite, ParseValueError, Real, Value, ValueType};
pub use workflow::{
    Aggregate, Comparison, Condition, Decision, Guard, InputOrigin, JOIN, OptionalStage, ReferenceDecl,
    RegionDecl, ResponseTable, Stage, StageInput, StageOutput, Task, TaskInput, Workflow, guard_value,
    split_label,
};
