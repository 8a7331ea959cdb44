//! Python environments: the interpreter, and its description of a package without importing it.

use crate::error::ExternalError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that describes an environment. It runs in the environment's interpreter.
const DESCRIBE: &str =
    concat!(include_str!("../python/distributions.py"), "\n\n", include_str!("../python/describe.py"));

/// An interpreter with the distributions that it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The interpreter.
    pub interpreter: PathBuf,
}

/// A distribution in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Distribution {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Digest of the list of its files with their digests, or of its sources if it is editable.
    pub(crate) record: String,
    /// Source folder of a distribution that is installed as editable.
    pub(crate) source: Option<PathBuf>,
    /// Top-level modules.
    pub(crate) tops: Vec<String>,
}

/// Description of a package in an environment.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Description {
    pub(crate) implementation: String,
    pub(crate) version: String,
    pub(crate) platform: String,
    /// The required distributions and all that they require.
    #[serde(default)]
    pub(crate) distributions: Vec<Distribution>,
    /// Required distributions that are not installed.
    #[serde(default)]
    pub(crate) missing: Vec<String>,
    /// For each module: the files of the package that it imports, by module.
    #[serde(default)]
    pub(crate) modules: BTreeMap<String, BTreeMap<String, PathBuf>>,
    /// Syntax errors of modules.
    #[serde(default)]
    pub(crate) mistakes: Vec<String>,
}

/// Answer of an interpreter that is too old.
#[derive(Deserialize)]
struct Answered {
    #[serde(default)]
    too_old: Option<String>,
}

#[derive(Serialize)]
struct InstalledRequest<'a> {
    distribution: &'a str,
}

/// The manifest of a distribution, or why there is none.
#[derive(Deserialize)]
struct Installed {
    manifest: Option<PathBuf>,
    #[serde(default)]
    mistake: String,
}

#[derive(Serialize)]
struct Request<'a> {
    folder: &'a Path,
    requires: &'a [String],
    modules: &'a [&'a str],
}

impl Environment {
    /// Finds the interpreter of an environment: the folder of a virtual environment, or an interpreter.
    ///
    /// # Errors
    /// Returns [`ExternalError::NoPython`] if there is none.
    pub fn at(path: &Path) -> Result<Self, ExternalError> {
        let interpreter = if path.is_dir() { path.join("bin/python") } else { path.to_owned() };
        // A link is not resolved: its folder is how an interpreter finds its environment.
        if !interpreter.is_file() {
            return Err(ExternalError::NoPython { path: path.to_owned() });
        }
        let interpreter = std::path::absolute(&interpreter).unwrap_or(interpreter);
        Ok(Self { interpreter })
    }

    /// Finds the environment of the shell: `VIRTUAL_ENV`, or `python3` of `PATH`.
    ///
    /// # Errors
    /// Returns [`ExternalError::NoPython`] if there is none.
    pub fn of_shell() -> Result<Self, ExternalError> {
        if let Some(active) = std::env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty()) {
            return Self::at(Path::new(&active));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|file| file.is_file());
        found
            .map(|interpreter| Self { interpreter })
            .ok_or_else(|| ExternalError::NoPython { path: PathBuf::from("python3") })
    }

    /// Returns the name and version of the interpreter, such as `CPython 3.11.2`.
    ///
    /// # Errors
    /// Returns an [`ExternalError`] if the interpreter fails or is too old.
    pub fn version(&self) -> Result<String, ExternalError> {
        let found = self.describe(Path::new("."), &[], &[])?;
        Ok(format!("{} {}", found.implementation, found.version))
    }

    /// Returns the manifest of an installed distribution: `pleach.toml` in the package that its entry point of the group
    /// `pleach.operations` names. No module is imported.
    ///
    /// # Errors
    /// Returns an [`ExternalError`] if the interpreter fails or is too old, or if there is no such manifest.
    pub(crate) fn manifest_of(&self, distribution: &str) -> Result<PathBuf, ExternalError> {
        let found: Installed = self.ask(&InstalledRequest { distribution })?;
        found.manifest.ok_or_else(|| ExternalError::Distribution {
            interpreter: self.interpreter.clone(),
            distribution: distribution.to_owned(),
            mistake: found.mistake,
        })
    }

    /// Describes the environment and the imports of these modules of a folder.
    ///
    /// # Errors
    /// Returns an [`ExternalError`] if the interpreter fails or is too old, or if a distribution is missing.
    pub(crate) fn describe(
        &self,
        folder: &Path,
        requires: &[String],
        modules: &[&str],
    ) -> Result<Description, ExternalError> {
        let description: Description = self.ask(&Request { folder, requires, modules })?;
        if !description.missing.is_empty() {
            let interpreter = self.interpreter.clone();
            return Err(ExternalError::Missing { interpreter, distributions: description.missing });
        }
        if let Some(mistake) = description.mistakes.first() {
            return Err(ExternalError::Syntax { folder: folder.to_owned(), mistake: mistake.clone() });
        }
        Ok(description)
    }

    /// Runs the program that describes an environment. Returns its answer.
    fn ask<A: DeserializeOwned>(&self, request: &impl Serialize) -> Result<A, ExternalError> {
        let failed = |cause: String| ExternalError::Describe { interpreter: self.interpreter.clone(), cause };
        let mut command = Command::new(&self.interpreter);
        command.args(["-I", "-c", DESCRIBE]).env_clear().envs(plain_variables());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let request = serde_json::to_vec(request);
        if let Some(stdin) = child.stdin.take() {
            // An interpreter that is too old ends before it reads.
            let _ = request.map(|request| std::io::Write::write_all(&mut &stdin, &request));
        }
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().last().unwrap_or("no message");
            return Err(failed(format!("{}: {last}", output.status)));
        }
        let invalid = |error: serde_json::Error| failed(error.to_string());
        let answer: Answered = serde_json::from_slice(&output.stdout).map_err(invalid)?;
        if let Some(version) = answer.too_old {
            return Err(ExternalError::TooOld { interpreter: self.interpreter.clone(), version });
        }
        serde_json::from_slice(&output.stdout).map_err(invalid)
    }
}

/// Returns the variables of an interpreter: those that it needs, and one thread for each numeric library, since each slot of a
/// worker is one thread.
pub(crate) fn plain_variables() -> BTreeMap<String, String> {
    let inherited = ["PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ"];
    let inherited = inherited.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let fixed = [
        ("PYTHONNOUSERSITE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONUTF8", "1"),
        ("OMP_NUM_THREADS", "1"),
        ("OPENBLAS_NUM_THREADS", "1"),
        ("MKL_NUM_THREADS", "1"),
        ("NUMEXPR_NUM_THREADS", "1"),
    ];
    inherited.chain(fixed.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}
