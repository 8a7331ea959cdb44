//! Manifest of a package: `pleach.toml`, the declarations of its operations.
//!
//! Reading a manifest runs no code of the package. Strings that operations return for the lifetime of the process are interned
//! (`intern.rs`).

mod code_files;
mod command;
mod device;
mod file_format;
mod memory_text;
mod requirement;
mod written;

pub use code_files::CodeFiles;
pub use command::CommandTemplate;
pub(crate) use command::Piece;
pub use device::Device;
pub use file_format::FileFormat;
pub use requirement::Requirement;

use crate::intern::interned;
use crate::process::MAX_DESCRIPTORS;
use memory_text::MemoryText;
use pleach_regions::ElementType;
use pleach_workflow::toml_fields::{FieldError, FieldProblem};
use pleach_workflow::{Accepts, Argument, Port, text};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use written::{WrittenArgument, WrittenManifest, WrittenOperation, WrittenPort};

/// Name of the manifest in a package.
pub const MANIFEST_FILE: &str = "pleach.toml";

/// 10 minutes: maximum duration of a task whose manifest sets none. A task on a tile takes seconds.
const TIMEOUT: Duration = Duration::from_mins(10);

/// 64 MB: resident bytes of a process with numpy and a few libraries, measured with scikit-image.
const RESIDENT_BYTES: u64 = 64_000_000;

/// 64 bytes a pixel: eight images of doubles, which a chain of numpy expressions holds at once.
const BYTES_A_PIXEL: u64 = 64;

/// Estimated nanoseconds a pixel of an operation without `cost`: several passes of numpy over the image.
const NANOSECONDS_A_PIXEL: f64 = 50.0;

/// A checked manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The file.
    pub file: PathBuf,
    /// The folder of the file, absolute, with the modules of the package.
    pub folder: PathBuf,
    /// Installed distribution that has the manifest and the modules. `None` for a manifest beside its modules.
    pub distribution: Option<String>,
    /// Distributions that the modules import, with the allowed versions.
    pub requires: Vec<Requirement>,
    /// Environment of the operations. `None` for the environment of the command.
    pub python: Option<PathBuf>,
    /// The operations, in the order of the file.
    pub operations: Vec<Declaration>,
}

/// Declaration of an operation.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Name without digest, such as `python:nuclei.threshold` or `exec:threshold`.
    pub name: &'static str,
    /// Version.
    pub version: u32,
    /// The program that runs it.
    pub program: Program,
    /// Inputs, in order.
    pub inputs: Vec<ExternalPort>,
    /// Outputs, in order.
    pub outputs: Vec<ExternalPort>,
    /// Arguments, in order.
    pub arguments: Vec<ExternalArgument>,
    /// Fixed arguments, as JSON by name.
    pub constants: BTreeMap<String, serde_json::Value>,
    /// Files whose content is part of the identity, relative to the folder.
    pub files: Vec<PathBuf>,
    /// Additional environment variables of the process.
    pub variables: BTreeMap<String, String>,
    /// Seconds of a run, apart from pixels.
    pub seconds: f64,
    /// Nanoseconds of a run for each pixel.
    pub nanoseconds_a_pixel: f64,
    /// Resident bytes of an idle process.
    pub resident_bytes: u64,
    /// Bytes of a run for each pixel.
    pub bytes_a_pixel: u64,
    /// Maximum bytes of a process. `None` for twice the estimate.
    pub memory_limit: Option<u64>,
    /// Maximum duration of a task.
    pub timeout: Duration,
    /// Degree of reproducibility.
    pub determinism: Determinism,
    /// Device that it runs on.
    pub device: Device,
    /// Bytes of a task on its accelerator.
    pub device_bytes: u64,
    /// Maximum tiles of a call, for functions that take several. `None` for functions of one tile.
    pub batch: Option<usize>,
    /// The entry as text, for the identity.
    pub entry: String,
}

/// Program of an operation.
#[derive(Clone, Debug)]
pub enum Program {
    /// A function in Python.
    Python {
        /// `MODULE:FUNCTION`.
        function: String,
        /// `MODULE:FUNCTION`, called once a process. Its result is the first argument of the function.
        setup: Option<String>,
    },
    /// A command, with placeholders of ports and arguments.
    Command(CommandTemplate),
}

/// Reproducibility of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Determinism {
    /// Equal inputs and arguments give equal bits.
    #[default]
    Bits,
    /// As `Bits`, with a seed that the operation gets as argument.
    Seeded,
    /// Results differ between runs.
    None,
}

/// A port, with its form in the external program.
#[derive(Clone, Debug)]
pub struct ExternalPort {
    /// Name and element type.
    pub port: Port,
    /// Channels in the order R, G, B.
    pub is_rgb: bool,
    /// A third dimension is z instead of channels.
    pub is_volume: bool,
    /// Format of the file, for commands.
    pub format: Option<FileFormat>,
}

/// An argument.
#[derive(Clone, Debug)]
pub struct ExternalArgument {
    /// Name and accepted values.
    pub argument: Argument,
    /// Texts that the program gets instead of the numbers. Empty for numbers.
    pub choices: BTreeMap<i64, String>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Returns a [`FieldError`] with the file, the field, its value and the allowed values.
    pub fn load(file: &Path) -> Result<Self, FieldError> {
        let unreadable = |cause| FieldError::Unreadable { file: file.to_owned(), cause };
        let content = text::read(file).map_err(unreadable)?;
        let written: WrittenManifest = toml::from_str(&content).map_err(|error| {
            let (line, column) = text::place(content.as_bytes(), error.span().map_or(0, |span| span.start));
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            FieldError::Malformed { file: file.to_owned(), line, column, message }
        })?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().map_err(unreadable)?;
        let reader = Reader { file };
        if written.operation.is_empty() {
            return reader.fail("operation", "an empty list", "at least one [[operation]] is required");
        }
        let mut operations: Vec<Declaration> = Vec::new();
        for (index, operation) in written.operation.iter().enumerate() {
            let declaration = reader.operation(&format!("operation[{index}]"), operation)?;
            if operations.iter().any(|o| (o.name, o.version) == (declaration.name, declaration.version)) {
                let field = format!("operation[{index}].name");
                return reader.fail(&field, declaration.name, "a name and version occur once");
            }
            operations.push(declaration);
        }
        let python = written.package.python.map(|python| folder.join(python));
        Ok(Self {
            file: file.to_owned(),
            folder,
            distribution: None,
            requires: requirement::read(&reader, &written.package.requires)?,
            python,
            operations,
        })
    }
}

/// Checks the parts of a manifest.
struct Reader<'a> {
    file: &'a Path,
}

impl Reader<'_> {
    fn fail<T>(&self, field: &str, value: impl ToString, allowed: &str) -> Result<T, FieldError> {
        let problem = FieldProblem::NotAllowed { value: value.to_string(), allowed: allowed.to_owned() };
        let (file, field) = (self.file.to_owned(), field.to_owned());
        Err(FieldError::Field { file, field, problem: Box::new(problem) })
    }

    fn operation(&self, at: &str, written: &WrittenOperation) -> Result<Declaration, FieldError> {
        let python = self.python(at, written)?;
        let is_command = python.is_none();
        let ports = |key: &str, ports: &[WrittenPort]| {
            let each = ports.iter().enumerate();
            each.map(|(index, port)| self.port(&format!("{at}.{key}[{index}]"), port, is_command))
                .collect::<Result<Vec<_>, _>>()
        };
        let (inputs, outputs) = (ports("inputs", &written.inputs)?, ports("outputs", &written.outputs)?);
        if outputs.is_empty() {
            return self.fail(&format!("{at}.outputs"), "an empty list", "at least one output is required");
        }
        let arguments = written.arguments.iter().enumerate();
        let arguments: Vec<ExternalArgument> = arguments
            .map(|(index, argument)| self.argument(&format!("{at}.arguments[{index}]"), argument))
            .collect::<Result<_, _>>()?;
        let names = arguments.iter().map(|argument| argument.argument.name);
        let seed = (written.determinism == Determinism::Seeded).then_some("seed");
        self.names_differ(at, names.chain(written.constants.keys().map(String::as_str)).chain(seed))?;
        self.names_differ(at, inputs.iter().chain(&outputs).map(|port| port.port.name))?;
        let constants = self.constants(at, &written.constants)?;
        let program = match python {
            Some(program) => program,
            None => {
                let (inputs, outputs, arguments, constants) = (&inputs, &outputs, &arguments, &constants);
                let interface = command::Interface { inputs, outputs, arguments, constants };
                Program::Command(command::read(self, at, written, &interface)?)
            }
        };
        Ok(Declaration {
            name: interned(&written.name),
            version: written.version,
            program,
            inputs,
            outputs,
            arguments,
            constants,
            files: self.files(at, &written.files)?,
            variables: written.env.clone(),
            seconds: self.cost(&format!("{at}.cost.seconds"), written.cost.seconds, 0.0)?,
            nanoseconds_a_pixel: self.cost(
                &format!("{at}.cost.ns_a_pixel"),
                written.cost.ns_a_pixel,
                NANOSECONDS_A_PIXEL,
            )?,
            resident_bytes: self
                .memory(&format!("{at}.memory.resident"), written.memory.resident.as_ref())?
                .unwrap_or(RESIDENT_BYTES),
            bytes_a_pixel: written.memory.bytes_a_pixel.unwrap_or(BYTES_A_PIXEL),
            memory_limit: self.memory(&format!("{at}.memory.limit"), written.memory.limit.as_ref())?,
            timeout: self.timeout(at, written.timeout_seconds)?,
            determinism: written.determinism,
            device: written.device,
            device_bytes: device::bytes(self, at, written)?,
            batch: self.batch(at, written)?,
            entry: entry(written),
        })
    }

    fn cost(&self, field: &str, value: Option<f64>, default: f64) -> Result<f64, FieldError> {
        match value.unwrap_or(default) {
            value if value.is_finite() && value >= 0.0 => Ok(value),
            value => self.fail(field, value, "a number of at least 0 is allowed"),
        }
    }

    fn memory(&self, field: &str, memory: Option<&MemoryText>) -> Result<Option<u64>, FieldError> {
        let Some(memory) = memory else { return Ok(None) };
        match memory.bytes() {
            None => self.fail(field, memory, "a size as in \"200MB\" is allowed"),
            bytes => Ok(bytes),
        }
    }

    fn timeout(&self, at: &str, seconds: Option<f64>) -> Result<Duration, FieldError> {
        match seconds {
            None => Ok(TIMEOUT),
            Some(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(Duration::from_secs_f64(seconds)),
            Some(seconds) => {
                let field = format!("{at}.timeout_seconds");
                self.fail(&field, seconds, "more than 0 and at most 1000000 s are allowed")
            }
        }
    }

    fn batch(&self, at: &str, written: &WrittenOperation) -> Result<Option<usize>, FieldError> {
        let Some(batch) = written.batch else { return Ok(None) };
        let field = format!("{at}.batch");
        if !written.command.is_empty() || written.inputs.is_empty() {
            return self.fail(&field, batch, "only functions in Python with inputs take several tiles");
        }
        let most = MAX_DESCRIPTORS / written.inputs.len().max(written.outputs.len());
        if !(2..=most).contains(&batch) {
            let allowed =
                format!("2 to {most} tiles are allowed ({MAX_DESCRIPTORS} inputs or outputs a call)");
            return self.fail(&field, batch, &allowed);
        }
        Ok(Some(batch))
    }

    /// Returns the program of an operation in Python. `None` for a command.
    fn python(&self, at: &str, written: &WrittenOperation) -> Result<Option<Program>, FieldError> {
        let field = format!("{at}.name");
        if let Some(name) = written.name.strip_prefix("exec:") {
            if !is_identifier(name, "-.") {
                let allowed = "letters, digits, \"-\", \".\" and \"_\" are allowed";
                return self.fail(&field, &written.name, allowed);
            }
            return Ok(None);
        }
        let allowed = "python:MODULE.FUNCTION and exec:NAME are allowed";
        let Some(path) = written.name.strip_prefix("python:") else {
            return self.fail(&field, &written.name, allowed);
        };
        let function = match (&written.function, path.rsplit_once('.')) {
            (Some(function), _) => function.clone(),
            (None, Some((module, function))) => format!("{module}:{function}"),
            (None, None) => return self.fail(&field, &written.name, allowed),
        };
        for (field, function) in [("function", Some(&function)), ("setup", written.setup.as_ref())] {
            let Some(function) = function else { continue };
            let parts = function.split_once(':');
            let fits = |(module, function): (&str, &str)| {
                let is_path = |path: &str| path.split('.').all(|part| is_identifier(part, ""));
                is_path(module) && is_path(function) && module != "__main__"
            };
            if !parts.is_some_and(fits) {
                let allowed =
                    "MODULE:FUNCTION is allowed, of a module in the manifest's folder, not __main__";
                return self.fail(&format!("{at}.{field}"), function, allowed);
            }
        }
        if !written.command.is_empty() {
            return self.fail(&format!("{at}.command"), "a list", "only exec: operations have a command");
        }
        Ok(Some(Program::Python { function, setup: written.setup.clone() }))
    }

    fn port(&self, at: &str, written: &WrittenPort, is_command: bool) -> Result<ExternalPort, FieldError> {
        if !is_identifier(&written.name, "-") {
            return self.fail(
                &format!("{at}.name"),
                &written.name,
                "letters, digits, \"-\" and \"_\" are allowed",
            );
        }
        let element = written.element;
        let is_rgb = match written.channels.as_deref() {
            None | Some("bgr") => false,
            Some("rgb") if element == ElementType::Bgr8 => true,
            Some(channels) => {
                let allowed = "\"bgr\" and \"rgb\" are allowed, for bgr8";
                return self.fail(&format!("{at}.channels"), channels, allowed);
            }
        };
        let is_volume = match written.axes.as_deref() {
            None | Some("yxc") => false,
            Some("zyx") => true,
            Some(axes) => return self.fail(&format!("{at}.axes"), axes, "\"yxc\" and \"zyx\" are allowed"),
        };
        if let Some(format) = written.format
            && !is_command
        {
            return self.fail(
                &format!("{at}.format"),
                format!("{format:?}"),
                "only exec: operations have formats",
            );
        }
        let port = Port { name: interned(&written.name), element };
        Ok(ExternalPort { port, is_rgb, is_volume, format: written.format })
    }

    fn argument(&self, at: &str, written: &WrittenArgument) -> Result<ExternalArgument, FieldError> {
        if !is_identifier(&written.name, "") {
            return self.fail(&format!("{at}.name"), &written.name, "letters, digits and \"_\" are allowed");
        }
        let mut choices = BTreeMap::new();
        for (key, text) in &written.choices {
            let Ok(number) = key.parse::<i64>() else {
                return self.fail(&format!("{at}.choices"), key, "whole numbers are allowed as keys");
            };
            choices.insert(number, text.clone());
        }
        let numbers =
            if choices.is_empty() { written.values.clone() } else { choices.keys().copied().collect() };
        let accepts = match (written.value_type.as_deref(), written.low, written.high) {
            (None | Some("integer"), None, None) if !numbers.is_empty() => {
                Accepts::OneOf(crate::intern::interned_numbers(&numbers))
            }
            (Some("integer"), Some(low), Some(high))
                if numbers.is_empty() && low <= high && low.fract() == 0.0 && high.fract() == 0.0 =>
            {
                Accepts::Integers { low: low as i64, high: high as i64 }
            }
            (Some("real"), Some(low), Some(high))
                if numbers.is_empty() && low <= high && low.is_finite() && high.is_finite() =>
            {
                Accepts::Reals { low, high }
            }
            _ => {
                let allowed = "type = \"real\" or \"integer\" with low and high, type = \"integer\" with values, or \
                               choices = { 1 = \"text\" } are allowed";
                return self.fail(at, format!("argument \"{}\"", written.name), allowed);
            }
        };
        Ok(ExternalArgument { argument: Argument { name: interned(&written.name), accepts }, choices })
    }

    fn constants(
        &self,
        at: &str,
        written: &BTreeMap<String, toml::Value>,
    ) -> Result<BTreeMap<String, serde_json::Value>, FieldError> {
        let mut constants = BTreeMap::new();
        for (name, value) in written {
            match serde_json::to_value(value) {
                Ok(json) if is_json(value) => constants.insert(name.clone(), json),
                _ => {
                    let field = format!("{at}.constants.{name}");
                    let allowed = "numbers, texts, booleans and lists of them are allowed";
                    return self.fail(&field, value, allowed);
                }
            };
        }
        Ok(constants)
    }

    /// Returns the files, which must be inside the folder.
    fn files(&self, at: &str, written: &[PathBuf]) -> Result<Vec<PathBuf>, FieldError> {
        for file in written {
            if !file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
                let allowed = "paths within the manifest's folder are allowed";
                return self.fail(&format!("{at}.files"), file.display(), allowed);
            }
        }
        Ok(written.to_vec())
    }

    fn names_differ<'a>(&self, at: &str, names: impl Iterator<Item = &'a str>) -> Result<(), FieldError> {
        let mut known = Vec::new();
        for name in names {
            if known.contains(&name) {
                return self.fail(at, format!("the name \"{name}\" twice"), "each name is allowed once");
            }
            known.push(name);
        }
        Ok(())
    }
}

/// Returns the part of an entry that can change results. Estimates and limits cannot.
fn entry(written: &WrittenOperation) -> String {
    let WrittenOperation { name, version, function, setup, command, .. } = written;
    let WrittenOperation { inputs, outputs, arguments, constants, env, determinism, device, .. } = written;
    let program = (name, version, function, setup, command);
    let entry = format!("{:?}", (program, inputs, outputs, arguments, constants, env, determinism, device));
    // A function of several tiles is another program than one of a single tile. Their number changes no result.
    if written.batch.is_some() { entry + " batch" } else { entry }
}

/// Returns whether JSON has such a value.
fn is_json(value: &toml::Value) -> bool {
    match value {
        toml::Value::Float(number) => number.is_finite(),
        toml::Value::Datetime(_) => false,
        toml::Value::Array(items) => items.iter().all(is_json),
        toml::Value::Table(items) => items.iter().all(|(_, item)| is_json(item)),
        _ => true,
    }
}

/// Returns whether a name has only ASCII letters, digits, `_` and `more`, and begins with no digit.
fn is_identifier(name: &str, more: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || more.contains(c);
    name.chars().all(allowed) && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}
