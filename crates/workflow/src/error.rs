//! Errors of a descriptor. Every message names the file, the location, the value and the allowed values.

use crate::bounds::BoundsProblem;
use crate::domain_error::DomainError;
use crate::value::ValueType;
use pleach_regions::ElementType;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A mistake in a descriptor, with its location.
#[derive(Debug, Error)]
#[error("{}", one_line(format_args!("{}: {problem}", place(file, pointer))))]
pub struct DescriptorError {
    /// The descriptor file.
    pub file: PathBuf,
    /// JSON pointer (RFC 6901) to the invalid value. Empty for the whole document.
    pub pointer: String,
    /// The problem, boxed to keep results small.
    pub problem: Box<Problem>,
}

/// The kinds of mistakes in descriptors.
#[derive(Debug, Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("failed to read: {0}")]
    Unreadable(std::io::Error),
    /// The file is not JSON, a value has the wrong JSON type, or a key is unknown or missing.
    #[error("{0}")]
    Malformed(String),
    /// No linked operation has this name.
    #[error("operation \"{name}\" is unknown; known are {}", list(known))]
    UnknownOperation {
        /// Name given.
        name: String,
        /// Names of all linked operations.
        known: Vec<&'static str>,
    },
    /// The operation exists, but not in this version.
    #[error("operation \"{name}\" has no version {version}; known are {}", list(known))]
    UnknownVersion {
        /// Name given.
        name: String,
        /// Version given.
        version: u32,
        /// Versions linked.
        known: Vec<u32>,
    },
    /// Tasks or stages wait for each other.
    #[error("{what} depend on each other in a cycle: {}", members.join(" -> "))]
    Cycle {
        /// "tasks" or "stages".
        what: &'static str,
        /// Names along the cycle, with the first repeated at the end.
        members: Vec<String>,
    },
    /// A region is read but never written.
    #[error("region \"{region}\" has no writer; known are {}", list(known))]
    DanglingRead {
        /// Name of the region.
        region: String,
        /// Regions that exist at this location.
        known: Vec<String>,
    },
    /// A region has two writers.
    #[error("region \"{region}\" already has a writer, {first}; one writer is allowed")]
    DuplicateWriter {
        /// Name of the region.
        region: String,
        /// The earlier writer.
        first: String,
    },
    /// A stage input cannot have its bounds.
    #[error("region \"{region}\": {problem}")]
    Bounds {
        /// Name of the region.
        region: String,
        /// The problem.
        problem: BoundsProblem,
    },
    /// A stage declares an output without a task that writes it.
    #[error("output \"{region}\" has no writer in this stage")]
    UnwrittenOutput {
        /// Name of the region.
        region: String,
    },
    /// The two ends of a connection have different element types.
    #[error("region \"{region}\" holds {found}, but {wanted} is required by {reader}")]
    TypesDiffer {
        /// Name of the region.
        region: String,
        /// Type of the region.
        found: ElementType,
        /// Type that the reader expects.
        wanted: ElementType,
        /// Reader of the region.
        reader: String,
    },
    /// An operation gets a different number of regions than it has ports.
    #[error("operation \"{operation}\" {verb} {} ({}); {found} given", count(ports.len(), "region"), list(ports))]
    PortCount {
        /// The operation.
        operation: String,
        /// "reads" or "writes".
        verb: &'static str,
        /// Declared ports.
        ports: Vec<&'static str>,
        /// Number of given regions.
        found: usize,
    },
    /// A task gives an argument that its operation does not have.
    #[error("operation \"{operation}\" has no argument \"{argument}\"; it has {}", list(known))]
    UnknownArgument {
        /// The operation.
        operation: String,
        /// Name of the argument.
        argument: String,
        /// Arguments of the operation.
        known: Vec<&'static str>,
    },
    /// A task omits an argument.
    #[error("argument \"{argument}\" of operation \"{operation}\" has no parameter")]
    MissingArgument {
        /// The operation.
        operation: String,
        /// The omitted argument.
        argument: &'static str,
    },
    /// A task gives an argument twice.
    #[error("argument \"{argument}\" is given twice")]
    DuplicateArgument {
        /// The argument.
        argument: String,
    },
    /// A parameter's type differs from the type of the operation's argument.
    #[error(
        "parameter \"{parameter}\" is of type {found}, but operation \"{operation}\" requires type {wanted}"
    )]
    ParameterType {
        /// The parameter.
        parameter: String,
        /// The operation.
        operation: String,
        /// Declared type.
        found: ValueType,
        /// Type of the argument.
        wanted: ValueType,
    },
    /// The domain of a parameter is invalid.
    #[error("parameter \"{parameter}\": {error}")]
    Domain {
        /// The parameter.
        parameter: String,
        /// The cause.
        error: DomainError,
    },
    /// The section has none or several of `range`, `values` and `fixed`.
    #[error("parameter \"{parameter}\" needs exactly one of \"range\", \"values\" and \"fixed\"")]
    DomainKind {
        /// The parameter.
        parameter: String,
    },
    /// A range does not consist of two numbers.
    #[error("parameter \"{parameter}\": \"range\" holds {}; [smallest, largest] is allowed", count(*found, "number"))]
    RangeLength {
        /// The parameter.
        parameter: String,
        /// Numbers given.
        found: usize,
    },
    /// A step without a range.
    #[error("parameter \"{parameter}\" has a \"step\" but no \"range\"")]
    StepWithoutRange {
        /// The parameter.
        parameter: String,
    },
    /// A parameter is used by name, but has no definition.
    #[error(
        "parameter \"{parameter}\" is not defined by an earlier task; give \"type\", \"default\" and \"range\""
    )]
    UndefinedParameter {
        /// The parameter.
        parameter: String,
    },
    /// A definition lacks its type or its default.
    #[error("parameter \"{parameter}\" is defined without \"{missing}\"")]
    IncompleteParameter {
        /// The parameter.
        parameter: String,
        /// The missing key.
        missing: &'static str,
    },
    /// A parameter is defined twice.
    #[error("parameter \"{parameter}\" is already defined at {first}; name it here without a definition")]
    RedefinedParameter {
        /// The parameter.
        parameter: String,
        /// Location of the first definition.
        first: String,
    },
    /// A parameter that a task reads is listed as unread.
    #[error(
        "parameter \"{parameter}\" is defined at {first}; unread parameters must have names of their own"
    )]
    ReadParameter {
        /// The parameter.
        parameter: String,
        /// Location of its definition.
        first: String,
    },
    /// An unread parameter names an argument.
    #[error(
        "unread parameter \"{parameter}\" names an argument; only name, type, default and a domain are allowed"
    )]
    UnreadArgument {
        /// The parameter.
        parameter: String,
    },
    /// Two items of one kind share a name.
    #[error("two {what} are named \"{name}\"; names must be unique")]
    DuplicateName {
        /// Kind of thing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A loop repeats its tasks too often, or never.
    #[error("loop \"{name}\" repeats its tasks at most {found} times; 1 to {most} are allowed")]
    Iterations {
        /// The loop.
        name: String,
        /// Iterations given.
        found: u32,
        /// Iterations allowed.
        most: u32,
    },
    /// A condition compares with no number or with two.
    #[error("the condition on \"{region}\" needs exactly one of \"below\" and \"at_least\"")]
    ConditionKind {
        /// The compared region.
        region: String,
    },
    /// A choice gives a region that none of its tasks writes.
    #[error(
        "no task of choice \"{choice}\" writes region \"{region}\"; a region that its tasks write is needed in \"then\" or \"else\""
    )]
    GivesOutside {
        /// The region.
        region: String,
        /// The choice.
        choice: String,
    },
    /// A choice gives one region under two names.
    #[error("region \"{region}\" is given twice; once is allowed")]
    GivenTwice {
        /// The region.
        region: String,
    },
    /// A required list is empty.
    #[error("the list of {what} is empty; at least one is needed")]
    Empty {
        /// Kind of thing.
        what: &'static str,
    },
    /// A list is longer than allowed.
    #[error("the list of {what} has {found} entries; up to {most} are allowed")]
    TooMany {
        /// Kind of thing.
        what: &'static str,
        /// Entries given.
        found: usize,
        /// Entries allowed.
        most: usize,
    },
    /// The parameters of a workflow have more values than allowed.
    #[error(
        "the parameters up to \"{parameter}\" have more than {most} values together; a \"step\" reduces them"
    )]
    TooManyValues {
        /// The parameter that exceeds the limit.
        parameter: String,
        /// Values allowed.
        most: usize,
    },
    /// An optional stage names no replacement for a region that other stages read.
    #[error(
        "stage \"{stage}\" can be switched off, but \"bypass\" names no replacement for its output \"{region}\""
    )]
    NoBypass {
        /// The stage.
        stage: String,
        /// The output.
        region: String,
    },
    /// The replacement is no input of the workflow.
    #[error(
        "region \"{instead}\" cannot replace \"{region}\"; allowed are the inputs of the workflow: {}",
        list(known)
    )]
    BadBypass {
        /// The output to replace.
        region: String,
        /// The name given instead.
        instead: String,
        /// Inputs of the workflow.
        known: Vec<String>,
    },
    /// `bypass` without `switch`, or for a name that is no output.
    #[error("\"bypass\" names \"{region}\"; outputs of stages with a \"switch\" are allowed")]
    StrayBypass {
        /// The given name.
        region: String,
    },
    /// No stage without a switch writes the region of the response or the reference.
    #[error("no stage writes region \"{region}\" in every study; known are {}", list(known))]
    NoSuchRegion {
        /// The region.
        region: String,
        /// Outputs of the stages that cannot be switched off.
        known: Vec<String>,
    },
}

/// Formats a message on one line, even if it quotes names with line breaks.
pub(crate) fn one_line(message: impl Display) -> String {
    message.to_string().replace(char::is_control, " ")
}

fn place(file: &Path, pointer: &str) -> String {
    let mark = if pointer.is_empty() { "" } else { "#" };
    format!("{}{mark}{pointer}", file.display())
}

fn list<T: Display>(known: &[T]) -> String {
    match known {
        [] => "none".to_owned(),
        known => known.iter().map(T::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Formats a count with its noun, in the singular for 1.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
