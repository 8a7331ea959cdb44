//! Proposes the cuts of a function in Python into operations.
//!
//! The analysis is a Python program. It runs in the user's interpreter, reads the script without running it, and runs its function
//! only if a tile is given.

use crate::environment::{Environment, plain_variables};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thiserror::Error;

/// The program, in the order of its definitions.
const PROGRAM: &str = concat!(
    include_str!("../../python/distributions.py"),
    include_str!("../../python/instrument/calls.py"),
    include_str!("../../python/instrument/facts.py"),
    include_str!("../../python/instrument/flow.py"),
    include_str!("../../python/instrument/cuts.py"),
    include_str!("../../python/instrument/trace.py"),
    include_str!("../../python/instrument/write.py"),
    include_str!("../../python/instrument/main.py"),
);

/// Conversions of regions, the same as those of worker processes.
const REGIONS: &str = include_str!("../../python/regions.py");

/// Reads the program from stdin, since it is longer than an argument may be. An old interpreter cannot parse the program.
const START: &str = "import sys
if sys.version_info < (3, 10):
    sys.stdout.write('{\"old\": \"%d.%d.%d\"}' % sys.version_info[:3])
    sys.exit(0)
exec(sys.stdin.buffer.read(int(sys.argv[1])))";

/// Function to cut, and the user's decisions.
#[derive(Clone, Debug)]
pub struct InstrumentRequest<'a> {
    /// The script.
    pub script: &'a Path,
    /// The function. `None` for the only one that no other function calls.
    pub function: Option<&'a str>,
    /// Parameters that keep their defaults.
    pub constants: &'a [String],
    /// Tasks to join with the readers of their outputs.
    pub joins: &'a [String],
    /// Tile to run the function on.
    pub tile: Option<TracedTile<'a>>,
    /// Folder of the files, which the study names the tile relative to.
    pub out: Option<&'a Path>,
}

/// Pixels of a tile.
#[derive(Clone, Copy, Debug)]
pub struct TracedTile<'a> {
    /// Its file.
    pub file: &'a Path,
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// R, G, B of each pixel, row by row.
    pub rgb: &'a [u8],
}

/// Proposed cut of a function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Proposal {
    /// The script.
    pub script: String,
    /// The function.
    pub function: String,
    /// Its input, the tile.
    pub input: String,
    /// Parameters of the study.
    pub parameters: Vec<ProposedParameter>,
    /// Parameters that keep their defaults.
    pub constants: Vec<String>,
    /// Number of statements.
    pub statements: usize,
    /// Trajectories of the MOAT study that numbers of results refer to.
    pub trajectories: u32,
    /// Runs of the function for a tile of that study.
    pub results: u64,
    /// Seconds of a run at the defaults. `None` without a tile.
    pub seconds: Option<f64>,
    /// Tasks in order.
    pub tasks: Vec<ProposedTask>,
    /// Reasons for cuts that are not proposed.
    pub joined: Vec<String>,
    /// Measured time of the study, and the joins that lower it. `None` without a tile.
    pub advice: Option<JoinAdvice>,
    /// Number of parameter sets that the tasks and the function were compared at, with equal bits.
    pub compared: usize,
    /// Doubts, each with its line.
    pub warnings: Vec<String>,
    /// Unified diff from the script to the module.
    pub diff: String,
    /// Files by name. Empty if they cannot be written, for a reason among the warnings.
    #[serde(skip_serializing)]
    pub files: BTreeMap<String, String>,
    /// Files beside the script that it imports.
    #[serde(skip_serializing)]
    pub copied: Vec<PathBuf>,
}

/// Parameter with its proposed domain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProposedParameter {
    /// Its name.
    pub name: String,
    /// `real`, `integer`, `choice` or `flag`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its default. For a choice the number of the text.
    pub default: serde_json::Number,
    /// Lowest and highest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[serde_json::Number; 2]>,
    /// All values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<i64>>,
    /// Texts of a choice, numbered from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
}

/// A proposed task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProposedTask {
    /// Its name.
    pub task: String,
    /// Its function in the module.
    pub function: String,
    /// Its statements, as `lines 3-5, 8`.
    pub lines: String,
    /// Inputs.
    pub reads: Vec<ProposedRegion>,
    /// Outputs.
    pub writes: Vec<ProposedRegion>,
    /// Parameters that it reads.
    pub parameters: Vec<String>,
    /// Parameters that its outputs depend on.
    pub key: Vec<String>,
    /// Maximum number of distinct results for a tile of the study.
    pub results: u64,
    /// Seconds at the defaults. `None` without a tile.
    pub seconds: Option<f64>,
}

/// A value between tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProposedRegion {
    /// Its name.
    pub region: String,
    /// Its element type, `unknown` without a tile.
    #[serde(rename = "type")]
    pub element: String,
    /// Measured bytes.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// Times of the study for one tile, from measured times and sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JoinAdvice {
    /// Seconds of the proposal, with transfers.
    pub seconds: f64,
    /// Tasks to join.
    pub joins: Vec<String>,
    /// Seconds with these joins.
    pub joined_seconds: f64,
}

/// Errors of a proposal.
#[derive(Debug, Error)]
pub enum InstrumentError {
    /// The interpreter fails.
    #[error("{}: failed to analyze {}: {cause}", interpreter.display(), script.display())]
    Interpreter {
        /// The interpreter.
        interpreter: PathBuf,
        /// The script.
        script: PathBuf,
        /// Its last line, or the system's error.
        cause: String,
    },
    /// The interpreter is too old.
    #[error("{}: Python {version}; 3.10 or later is allowed", interpreter.display())]
    TooOld {
        /// The interpreter.
        interpreter: PathBuf,
        /// Its version.
        version: String,
    },
    /// The script cannot be cut.
    #[error("{}{}: {text}", script.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Refused {
        /// The script.
        script: PathBuf,
        /// Line of the reason.
        line: Option<u64>,
        /// The reason and the allowed code.
        text: String,
    },
}

#[derive(Serialize)]
struct Request<'a> {
    script: &'a Path,
    function: Option<&'a str>,
    constants: &'a [String],
    joins: &'a [String],
    tile: Option<Shape<'a>>,
    out: Option<&'a Path>,
    regions: &'a str,
}

#[derive(Serialize)]
struct Shape<'a> {
    path: &'a Path,
    height: u32,
    width: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Proposal(Box<Proposal>),
    Refusal { line: Option<u64>, text: String },
    Old(String),
}

/// Proposes the cuts of a function.
///
/// # Errors
/// Returns an [`InstrumentError`] that names the script, the line and the reason.
pub fn instrument(
    environment: &Environment,
    request: &InstrumentRequest<'_>,
) -> Result<Proposal, InstrumentError> {
    let (interpreter, script) = (environment.interpreter.clone(), request.script.to_owned());
    let answer = match run(environment, request) {
        Ok(answer) => answer,
        Err(cause) => return Err(InstrumentError::Interpreter { interpreter, script, cause }),
    };
    match answer {
        Answer::Proposal(proposal) => Ok(*proposal),
        Answer::Refusal { line, text } => Err(InstrumentError::Refused { script, line, text }),
        Answer::Old(version) => Err(InstrumentError::TooOld { interpreter, version }),
    }
}

fn run(environment: &Environment, request: &InstrumentRequest<'_>) -> Result<Answer, String> {
    let InstrumentRequest { script, function, constants, joins, tile, out } = *request;
    let shape = tile.map(|tile| Shape { path: tile.file, height: tile.height, width: tile.width });
    let written = Request { script, function, constants, joins, tile: shape, out, regions: REGIONS };
    let mut written = serde_json::to_vec(&written).map_err(|error| error.to_string())?;
    written.push(b'\n');
    let mut command = Command::new(&environment.interpreter);
    command.args(["-I", "-c", START, &PROGRAM.len().to_string()]).env_clear().envs(plain_variables());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // An interpreter that is too old ends before it reads.
        let parts = [PROGRAM.as_bytes(), &written, tile.map_or(&[], |tile| tile.rgb)];
        let _ = parts.iter().try_for_each(|part| stdin.write_all(part));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let parsed = serde_json::from_slice(&output.stdout);
    if !output.status.success() || parsed.is_err() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, text.lines().last().unwrap_or("no message")));
    }
    parsed.map_err(|error| error.to_string())
}
