//! An operation that is a command.

use super::format;
use super::sources::Sources;
use crate::declared::{Declared, Runs, pixels};
use crate::failure::Failure;
use crate::identity::Identity;
use crate::manifest::{
    CommandTemplate, Declaration, Device, ExternalArgument, ExternalPort, FileFormat, Piece,
};
use crate::pool::Pool;
use crate::process::{Limits, ProcessGroup, SCRATCH, worded};
use pleach_files::scratch::Scratch;
use pleach_regions::DataRegion;
use pleach_workflow::{OperationError, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tracing::{info, warn};

/// A command.
#[derive(Debug)]
pub(crate) struct CommandOperation {
    declared: Declared,
    inputs: Vec<(ExternalPort, FileFormat)>,
    outputs: Vec<(ExternalPort, FileFormat)>,
    arguments: Vec<ExternalArgument>,
    words: Vec<Vec<Piece>>,
    variables: BTreeMap<String, String>,
    /// Bytes of the program apart from pixels. Each task starts one.
    resident_bytes: u64,
    on_gpu: bool,
    sources: Sources,
    pool: Arc<Pool>,
}

impl CommandOperation {
    pub(super) fn new(
        declaration: &Declaration,
        template: &CommandTemplate,
        sources: Sources,
        variables: BTreeMap<String, String>,
        identity: &Identity,
        pool: &Arc<Pool>,
    ) -> Self {
        let ports = |ports: &[ExternalPort], formats: &[FileFormat]| {
            ports.iter().cloned().zip(formats.iter().copied()).collect()
        };
        Self {
            declared: Declared::new(declaration, identity),
            inputs: ports(&declaration.inputs, &template.input_formats),
            outputs: ports(&declaration.outputs, &template.output_formats),
            arguments: declaration.arguments.clone(),
            words: template.words.clone(),
            variables,
            resident_bytes: declaration.resident_bytes,
            on_gpu: declaration.device == Device::Gpu,
            sources,
            pool: Arc::clone(pool),
        }
    }

    fn run_once(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
        limits: Limits,
    ) -> Result<Vec<DataRegion>, Failure> {
        let system = |error| Failure::System(format!("failed to create the working folder: {error}"));
        let folder = Scratch::create(&std::env::temp_dir(), SCRATCH).map_err(system)?;
        for ((port, format), region) in self.inputs.iter().zip(inputs) {
            format::write(port, *format, region, &folder.path().join(format::file_name(port, *format)))?;
        }
        self.sources.link_files(folder.path())?;
        let command = self.command(folder.path(), arguments);
        let mut group = self.pool.started(move || ProcessGroup::start(command, Stdio::null(), folder))?;
        let status = group.finish(limits);
        let output = group.output().last();
        let name = self.declared.plain_name();
        if !output.is_empty() {
            info!(operation = name, "output of {name}: {}", output.trim_end());
        }
        // Whatever the result: another version of the program or of a file may have run.
        self.sources.check()?;
        let status = status?;
        match status.code() {
            Some(0) => {}
            Some(_) => return Err(Failure::Unsuccessful { how: worded(status), output }),
            None => return Err(Failure::Died { how: worded(status), output }),
        }
        let size_px = format::size_px(inputs);
        let outputs = self.outputs.iter().map(|(port, format)| {
            let file = group.folder().join(format::file_name(port, *format));
            format::read(port, *format, &file, size_px, limits.bytes)
        });
        outputs.collect()
    }

    fn regions(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DataRegion>, OperationError> {
        self.declared.check(inputs, arguments)?;
        let limits = self.declared.limits(&[pixels(inputs)], self.resident_bytes);
        let once = |_| {
            let result = self.run_once(inputs, arguments, limits);
            if let Err(failure) = &result {
                let name = self.declared.plain_name();
                warn!(operation = name, "{name}: {failure}");
            }
            result
        };
        self.pool
            .repeated(self.on_gpu, once)
            .map_err(|failure| OperationError::External { cause: Box::new(failure) })
    }

    fn command(&self, folder: &Path, arguments: &[Value]) -> Command {
        let words = self.words.iter().map(|word| self.word(word, folder, arguments));
        let mut command = Command::new(self.sources.program());
        command.args(words).env_clear().envs(&self.variables);
        command
    }

    fn word(&self, pieces: &[Piece], folder: &Path, arguments: &[Value]) -> OsString {
        let path = |(port, format): &(ExternalPort, FileFormat)| {
            folder.join(format::file_name(port, *format)).into_os_string()
        };
        let mut word = OsString::new();
        for piece in pieces {
            word.push(match piece {
                Piece::Text(text) => OsString::from(text),
                Piece::Input(place) => path(&self.inputs[*place]),
                Piece::Output(place) => path(&self.outputs[*place]),
                Piece::Argument(place) => text(&self.arguments[*place], &arguments[*place]).into(),
                Piece::Folder => folder.as_os_str().to_owned(),
                Piece::Seed => self.declared.seed(arguments).to_string().into(),
            });
        }
        word
    }
}

/// Returns the text of a choice, or the number.
fn text(argument: &ExternalArgument, value: &Value) -> String {
    let choice = match value {
        Value::Integer(number) => argument.choices.get(number).cloned(),
        Value::Real(_) => None,
    };
    choice.unwrap_or_else(|| value.to_string())
}

impl Runs for CommandOperation {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Each task starts a program.
    fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// Memory of the program is sampled for its limit only.
    fn run(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> (Result<Vec<DataRegion>, OperationError>, Option<u64>) {
        (self.regions(inputs, arguments), None)
    }
}
