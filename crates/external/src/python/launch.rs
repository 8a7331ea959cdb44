//! Starts the Python processes of one kind: the operations of a package with one setup.

use crate::environment::plain_variables;
use crate::error::ExternalError;
use crate::failure::Failure;
use crate::identity::{CONTRACT, Identity};
use crate::manifest::{Declaration, Determinism, ExternalPort};
use crate::memory_file;
use crate::packet::{Answer, Raised, Request, Start, StartArgument, StartOperation, StartPort};
use crate::pool::{Launch, START_LIMITS};
use crate::process::Process;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The program that runs operations. It runs in the environment's interpreter.
const WORKER: &str = concat!(
    include_str!("../../python/distributions.py"),
    include_str!("../../python/regions.py"),
    "\n\n",
    include_str!("../../python/worker.py")
);

/// Settings of a kind of process.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) interpreter: PathBuf,
    pub(super) folder: PathBuf,
    /// The modules are those of a distribution: the folder is no place to search them.
    pub(super) is_installed: bool,
    /// Files of the package that the operations import, by module.
    pub(super) files: BTreeMap<String, PathBuf>,
    /// Top-level modules of the required distributions.
    pub(super) allowed: Vec<String>,
    /// Source folders of required distributions that are installed as editable.
    pub(super) sources: Vec<PathBuf>,
    /// The operations with their functions.
    pub(super) operations: Vec<(Declaration, String)>,
    pub(super) setup: Option<String>,
    pub(super) variables: BTreeMap<String, String>,
}

/// Starter of Python processes.
#[derive(Debug)]
pub(super) struct PythonLaunch {
    setup: Setup,
    /// The files when the operations were loaded.
    content: Identity,
    /// The last refused start, and its time.
    refused: Mutex<Option<(Instant, Raised)>>,
}

/// 60 s: a refused start is not repeated. Loading libraries takes seconds, and most reasons stay, such as a missing library, but some
/// pass, such as a download in `setup`.
const REFUSED: Duration = Duration::from_mins(1);

impl PythonLaunch {
    pub(super) fn new(setup: Setup) -> Result<Self, ExternalError> {
        let content = content(&setup)?;
        Ok(Self { setup, content, refused: Mutex::default() })
    }

    fn start_document(&self) -> Result<Vec<u8>, serde_json::Error> {
        let Setup { folder, is_installed, files, allowed, sources, operations, setup, .. } = &self.setup;
        serde_json::to_vec(&Start {
            contract: CONTRACT,
            folder: if *is_installed { Path::new("") } else { folder },
            files,
            allowed: allowed.iter().map(String::as_str).collect(),
            sources,
            operations: operations
                .iter()
                .map(|(declaration, function)| described(declaration, function))
                .collect(),
            setup: setup.as_deref(),
        })
    }

    /// Returns an error if a file has changed since the operations were loaded.
    fn check_files(&self) -> Result<(), Failure> {
        let now = content(&self.setup).map_err(|error| Failure::Changed(error.to_string()))?;
        match now.differences(&self.content).first() {
            Some(difference) => Err(Failure::Changed(difference.clone())),
            None => Ok(()),
        }
    }
}

impl Launch for PythonLaunch {
    fn start(&self) -> io::Result<Process> {
        let mut command = Command::new(&self.setup.interpreter);
        // -P keeps the working folder out of the module search, -s the user's own packages. Older versions lack -P, and -c adds
        // the working folder, which is empty.
        command.args(["-s", "-c", WORKER, &std::process::id().to_string()]);
        command.env_clear().envs(plain_variables()).envs(&self.setup.variables);
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.setup.interpreter.display()))
        };
        Process::start(command).map_err(named)
    }

    fn resident_bytes(&self) -> u64 {
        let declarations = self.setup.operations.iter().map(|(declaration, _)| declaration.resident_bytes);
        declarations.max().unwrap_or(0)
    }

    fn refusal(&self) -> Option<Failure> {
        let refused = self.refused.lock();
        let recent = refused.as_ref().filter(|(at, _)| at.elapsed() < REFUSED);
        recent.map(|(_, raised)| Failure::Refused(raised.clone()))
    }

    fn prepare(&self, process: &mut Process) -> Result<(), Failure> {
        let system = |error: io::Error| Failure::System(format!("failed to start the process: {error}"));
        let document = self.start_document().map_err(|error| system(io::Error::other(error)))?;
        let document = memory_file::sealed(&document).map_err(system)?;
        if process.send(&Request::Start, &[document.as_fd()]).is_err() {
            // It has ended before it read the packet, for example by a missing library.
            return Err(process.death());
        }
        match process.answer(START_LIMITS)?.0 {
            // After the modules are loaded: the process runs these files.
            Answer::Ready { contract: CONTRACT } => self.check_files(),
            Answer::Refused(raised) => {
                *self.refused.lock() = Some((Instant::now(), raised.clone()));
                Err(Failure::Refused(raised))
            }
            other => Err(Failure::Protocol(format!("{other:?} to a start"))),
        }
    }
}

/// Returns the files of the package and of its operations by content.
fn content(setup: &Setup) -> Result<Identity, ExternalError> {
    let mut content = Identity::default();
    let own = setup.operations.iter().flat_map(|(declaration, _)| &declaration.files);
    for file in setup.files.values().chain(own) {
        content.add_file(&setup.folder, file)?;
    }
    Ok(content)
}

fn described<'a>(declaration: &'a Declaration, function: &'a str) -> StartOperation<'a> {
    let port = |port: &ExternalPort| StartPort {
        name: port.port.name,
        element: port.port.element.name(),
        channels: if port.is_rgb { "rgb" } else { "bgr" },
        axes: if port.is_volume { "zyx" } else { "yxc" },
    };
    let arguments = declaration.arguments.iter();
    StartOperation {
        name: declaration.name,
        function,
        inputs: declaration.inputs.iter().map(port).collect(),
        outputs: declaration.outputs.iter().map(port).collect(),
        arguments: arguments.map(|a| StartArgument { name: a.argument.name, choices: &a.choices }).collect(),
        constants: &declaration.constants,
        seeded: declaration.determinism == Determinism::Seeded,
        batch: declaration.batch.is_some(),
    }
}
