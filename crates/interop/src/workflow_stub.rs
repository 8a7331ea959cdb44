//! Source of operations that a workflow names and a program lacks: in Rust, or in Python with a manifest.
//!
//! The source compiles and declares ports and arguments. Each operation fails until its author writes its body.

mod python;
mod rust;

use pleach_regions::ElementType;
use pleach_workflow::{DescriptorError, OperationUse, Registry, ValueType, operation_uses};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Language of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StubLanguage {
    /// A program with implementations of `Operation`.
    Rust,
    /// Functions and a manifest.
    Python,
}

/// Reason why no source can be written.
#[derive(Debug, Error)]
pub enum StubError {
    /// The descriptor is invalid.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// A file cannot be read a second time.
    #[error("{}: failed to read: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The program has all operations.
    #[error("{}: all {count} operations are known; source is written for unknown ones", file.display())]
    NothingMissing {
        /// The descriptor.
        file: PathBuf,
        /// Number of operations.
        count: usize,
    },
    /// The name of an argument cannot be that of an argument in Python.
    #[error(
        "{}: {pointer}/parameters: argument \"{argument}\" of operation \"{operation}\" is no name in Python; letters, digits \
         and \"_\" are allowed, and no keyword",
        file.display()
    )]
    ArgumentName {
        /// The stage file.
        file: PathBuf,
        /// JSON pointer to the task.
        pointer: String,
        /// The operation.
        operation: String,
        /// The argument.
        argument: String,
    },
    /// Two tasks use one operation in different ways.
    #[error(
        "{place}/{key}: operation \"{operation}\" has {found} here and {first} in task \"{task}\"; equal numbers are allowed"
    )]
    UsesDiffer {
        /// The stage file, and the JSON pointer to the task.
        place: String,
        /// `reads`, `writes` or `parameters`.
        key: &'static str,
        /// The operation.
        operation: String,
        /// Number of this task.
        found: usize,
        /// Number of the earlier task.
        first: usize,
        /// The earlier task.
        task: String,
    },
}

/// An operation to write.
#[derive(Clone, Debug)]
pub(crate) struct StubOperation {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) description: String,
    /// Stage of its first use.
    pub(crate) stage: String,
    pub(crate) inputs: Vec<StubPort>,
    pub(crate) outputs: Vec<StubPort>,
    pub(crate) arguments: Vec<StubArgument>,
}

/// A port of an operation.
#[derive(Clone, Debug)]
pub(crate) struct StubPort {
    /// Name as an identifier.
    pub(crate) name: String,
    pub(crate) element: ElementType,
    /// No descriptor declares the type.
    pub(crate) is_assumed: bool,
}

/// An argument of an operation.
#[derive(Clone, Debug)]
pub(crate) struct StubArgument {
    /// Name as descriptors pass it.
    pub(crate) name: String,
    /// Name as an identifier.
    pub(crate) identifier: String,
    pub(crate) is_integer: bool,
    pub(crate) bounds: Option<[f64; 2]>,
}

/// Source of operations.
#[derive(Debug)]
pub struct Stub {
    /// Name and text of each file.
    pub files: Vec<(String, String)>,
    /// Names of the operations, as the files declare them.
    pub operations: Vec<String>,
}

/// Returns the source of the operations that a workflow or stage file names and `registry` lacks.
///
/// # Errors
/// [`StubError`] for an invalid descriptor, one without unknown operations, or tasks that use an operation differently.
pub fn stub(file: &Path, registry: &Registry, language: StubLanguage) -> Result<Stub, StubError> {
    let uses = operation_uses(file)?;
    let operations = missing(file, &uses, registry)?;
    match language {
        StubLanguage::Rust => {
            let names = operations.iter().map(|operation| operation.name.clone()).collect();
            Ok(Stub { files: vec![("src/main.rs".to_owned(), rust::source(&operations))], operations: names })
        }
        StubLanguage::Python => python::files(file, &uses, &operations),
    }
}

/// Type of a region whose type no descriptor declares: any numbers, one for each pixel.
const ASSUMED: ElementType = ElementType::ArrayF32;

/// Joins the uses of each unknown operation.
fn missing(file: &Path, uses: &[OperationUse], registry: &Registry) -> Result<Vec<StubOperation>, StubError> {
    let elements = elements(uses, registry);
    let port = |name: &String| StubPort {
        name: identifier(name),
        element: elements.get(name).copied().unwrap_or(ASSUMED),
        is_assumed: !elements.contains_key(name),
    };
    let mut operations: Vec<(StubOperation, &str)> = Vec::new();
    for of in uses.iter().filter(|of| registry.get(&of.operation, of.version).is_none()) {
        let known = operations
            .iter_mut()
            .find(|(known, _)| known.name == of.operation && known.version == of.version);
        let Some((known, task)) = known else {
            let arguments = of.arguments.iter().map(|argument| StubArgument {
                name: argument.name.clone(),
                identifier: identifier(&argument.name),
                is_integer: argument.value_type == Some(ValueType::Integer),
                // One value bounds nothing: a study may vary the parameter.
                bounds: argument.bounds.filter(|[low, high]| low < high),
            });
            let operation = StubOperation {
                name: of.operation.clone(),
                version: of.version,
                description: of.description.clone(),
                stage: of.stage.clone(),
                inputs: unique(of.reads.iter().map(|region| port(&region.name)).collect()),
                outputs: unique(of.writes.iter().map(|region| port(&region.name)).collect()),
                arguments: arguments.collect(),
            };
            operations.push((operation, &of.task));
            continue;
        };
        let counts = [
            ("reads", of.reads.len(), known.inputs.len()),
            ("writes", of.writes.len(), known.outputs.len()),
            ("parameters", of.arguments.len(), known.arguments.len()),
        ];
        if let Some(&(key, found, first)) = counts.iter().find(|(_, found, first)| found != first) {
            let place = format!("{}: {}", of.file.display(), of.pointer);
            let (operation, task) = (of.operation.clone(), (*task).to_owned());
            return Err(StubError::UsesDiffer { place, key, operation, found, first, task });
        }
        for argument in &of.arguments {
            let known = known.arguments.iter_mut().find(|known| known.name == argument.name);
            if let (Some(known), Some([low, high])) = (known, argument.bounds) {
                let [least, most] = known.bounds.unwrap_or([low, high]);
                known.bounds = Some([least.min(low), most.max(high)]);
            }
        }
    }
    if operations.is_empty() {
        return Err(StubError::NothingMissing { file: file.to_owned(), count: uses.len() });
    }
    Ok(operations.into_iter().map(|(operation, _)| operation).collect())
}

/// Returns the known types of regions: those that stages declare, and those of the ports of known operations.
fn elements(uses: &[OperationUse], registry: &Registry) -> BTreeMap<String, ElementType> {
    let mut elements = BTreeMap::new();
    for of in uses {
        let known = registry.get(&of.operation, of.version);
        let inputs = known.map(|operation| operation.inputs()).unwrap_or_default();
        let outputs = known.map(|operation| operation.outputs()).unwrap_or_default();
        let regions = of.reads.iter().zip(inputs).chain(of.writes.iter().zip(outputs));
        for (region, port) in regions {
            elements.entry(region.name.clone()).or_insert(port.element);
        }
        for region in of.reads.iter().chain(&of.writes) {
            if let Some(element) = region.element {
                elements.insert(region.name.clone(), element);
            }
        }
    }
    elements
}

/// Returns the ports with names that differ: a task may read a region twice.
fn unique(mut ports: Vec<StubPort>) -> Vec<StubPort> {
    for place in 1..ports.len() {
        let (before, rest) = ports.split_at_mut(place);
        let mut number = 1;
        let name = rest[0].name.clone();
        while before.iter().any(|port| port.name == rest[0].name) {
            number += 1;
            rest[0].name = format!("{name}_{number}");
        }
    }
    ports
}

/// Returns a name as an identifier of Rust and Python: letters, digits and `_`.
fn identifier(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let plain: String = name.chars().map(plain).collect();
    if plain.chars().next().is_none_or(|first| first.is_ascii_digit()) {
        return format!("n{plain}");
    }
    if KEYWORDS.contains(&plain.as_str()) { format!("{plain}_") } else { plain }
}

/// Words that neither language allows as names of variables, those that regions and parameters may have.
const KEYWORDS: [&str; 26] = [
    "as", "break", "class", "def", "else", "fn", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "let", "loop", "match", "mod", "move", "not", "or", "ref", "self", "type", "use", "with",
];

/// Returns a name in lower case with `_` between words, as in `segment_nuclei` for `segmentNuclei`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    let mut before = None;
    for letter in name.chars() {
        let is_start = letter.is_ascii_uppercase() && before.is_some_and(|b: char| b.is_ascii_lowercase());
        if is_start {
            text.push('_');
        }
        text.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
        before = Some(letter);
    }
    identifier(&text)
}

/// Returns the last part of an operation's name.
fn last_part(operation: &str) -> &str {
    operation.rsplit(['.', ':', '/']).next().unwrap_or(operation)
}
