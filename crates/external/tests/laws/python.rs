//! Python packages that tests write, and the environment of `scripts/install-python` that runs them.

use pleach_external::{Environment, ExternalError, ExternalOperation, Pool};
use pleach_regions::DataRegion;
use pleach_workflow::{OperationError, Value, plain_name};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Begins each module: `mark` notes the number of the process in a file.
const PRELUDE: &str = r#"
import os
import sys
HERE = os.path.dirname(os.path.abspath(__file__))
def mark(name="runs"):
    with open(os.path.join(HERE, name), "a") as stream:
        stream.write(f"{os.getpid()}\n")
def marks(name="runs"):
    try:
        with open(os.path.join(HERE, name)) as stream:
            return len(stream.readlines())
    except FileNotFoundError:
        return 0
def pid():
    return os.getpid()
"#;

/// Returns the environment that `scripts/install-python` installs, or the reason why it cannot.
fn install() -> Result<PathBuf, String> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let script = || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-python");
        let output = Command::new(script).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
        }
    };
    FOLDER.get_or_init(script).clone()
}

/// Returns the environment of tests. If it cannot be installed, prints that the test is skipped and returns `None`.
#[expect(clippy::print_stdout, reason = "a test that does not run prints it")]
pub(crate) fn environment(test: &str) -> Option<PathBuf> {
    match install() {
        Ok(folder) => Some(folder),
        Err(why) => {
            println!("SKIPPED {test}: no Python environment can be installed: {why}");
            None
        }
    }
}

/// Returns the entry of the function `m.NAME`, which returns a number, with further lines.
pub(crate) fn entry(function: &str, lines: &str) -> String {
    let output =
        if lines.contains("outputs") { "" } else { r#"outputs = [{ name = "out", type = "scalar" }]"# };
    format!("[[operation]]\nname = \"python:m.{function}\"\nversion = 1\n{output}\n{lines}\n")
}

/// A package in a temporary folder, with a pool of its own.
pub(crate) struct Package {
    pub(crate) folder: TempDir,
    pub(crate) environment: PathBuf,
    pub(crate) pool: Arc<Pool>,
    operations: Vec<ExternalOperation>,
}

impl Package {
    /// Writes a package of this manifest and module `m`, without loading it. `None` if tests of Python are skipped.
    pub(crate) fn written(test: &str, manifest: &str, module: &str) -> Option<Self> {
        let environment = environment(test)?;
        let folder = tempfile::tempdir().unwrap();
        let package = Self { folder, environment, pool: Pool::new(), operations: Vec::new() };
        package.write("pleach.toml", manifest);
        package.write("m.py", &format!("{PRELUDE}\n{module}"));
        Some(package)
    }

    /// Writes and loads a package. `None` if tests of Python are skipped.
    pub(crate) fn new(test: &str, manifest: &str, module: &str) -> Option<Self> {
        let mut package = Self::written(test, manifest, module)?;
        package.operations = package.load().unwrap();
        Some(package)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, content: &str) {
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), content).unwrap();
    }

    pub(crate) fn load(&self) -> Result<Vec<ExternalOperation>, ExternalError> {
        self.load_with(&self.environment)
    }

    pub(crate) fn load_with(&self, environment: &Path) -> Result<Vec<ExternalOperation>, ExternalError> {
        assert!(Environment::at(&self.environment).is_ok());
        pleach_external::load(&self.path("pleach.toml"), Some(environment), &self.pool)
    }

    /// Returns the loaded operation of the function `m.NAME`.
    pub(crate) fn operation(&self, function: &str) -> &ExternalOperation {
        let name = format!("python:m.{function}");
        self.operations.iter().find(|found| plain_name(found.operation.name()) == name).unwrap()
    }

    pub(crate) fn run(
        &self,
        function: &str,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DataRegion>, OperationError> {
        self.operation(function).operation.run(inputs, arguments)
    }

    /// Runs a function without inputs that returns a number.
    pub(crate) fn number(&self, function: &str) -> Result<f64, String> {
        match self.run(function, &[], &[]).map_err(|error| error.to_string())?[..] {
            [DataRegion::Scalar(number)] => Ok(number),
            ref other => panic!("{other:?}"),
        }
    }

    /// Runs a function that fails, and returns its error.
    pub(crate) fn failure(&self, function: &str) -> String {
        self.number(function).unwrap_err()
    }

    /// Returns the processes that have called `mark`, in order.
    pub(crate) fn marks(&self, file: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        // The last line may be half written.
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.parse().ok()).collect()
    }
}

/// Returns whether a process has ended. A zombie has.
pub(crate) fn has_ended(process: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Polls until `condition` holds, and returns the time that it took.
pub(crate) fn until(condition: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "the condition does not come true");
        std::thread::park_timeout(Duration::from_millis(2));
    }
    start.elapsed()
}
