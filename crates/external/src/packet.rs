//! Packets between pleach and a Python process. `python/worker.py` has the other side.

use pleach_workflow::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The operations of a process. It travels in a memory file, since it may be longer than a packet.
#[derive(Debug, Serialize)]
pub(crate) struct Start<'a> {
    pub(crate) contract: u32,
    /// Folder of the package.
    pub(crate) folder: &'a Path,
    /// Files of the package that the operations import, by module.
    pub(crate) files: &'a BTreeMap<String, PathBuf>,
    /// Top-level modules of the required distributions.
    pub(crate) allowed: Vec<&'a str>,
    /// Source folders of required distributions that are installed as editable.
    pub(crate) sources: &'a [PathBuf],
    pub(crate) operations: Vec<StartOperation<'a>>,
    /// `MODULE:FUNCTION`, called once.
    pub(crate) setup: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct StartOperation<'a> {
    pub(crate) name: &'static str,
    /// `MODULE:FUNCTION`.
    pub(crate) function: &'a str,
    pub(crate) inputs: Vec<StartPort>,
    pub(crate) outputs: Vec<StartPort>,
    pub(crate) arguments: Vec<StartArgument<'a>>,
    pub(crate) constants: &'a BTreeMap<String, serde_json::Value>,
    pub(crate) seeded: bool,
    /// The function gets lists of inputs, with an item for each tile.
    pub(crate) batch: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct StartPort {
    pub(crate) name: &'static str,
    pub(crate) element: &'static str,
    pub(crate) channels: &'static str,
    pub(crate) axes: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct StartArgument<'a> {
    pub(crate) name: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) choices: &'a BTreeMap<i64, String>,
}

/// A packet to the process.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Request<'a> {
    /// Load the operations.
    Start,
    /// Run a task. The answer has its number, so that an answer to an earlier task is not taken for it.
    /// Shapes are those of the inputs of the first tile, then of the next.
    Run {
        task: u64,
        operation: usize,
        arguments: Vec<Number>,
        tiles: usize,
        shapes: &'a [&'a [u64]],
        seed: u64,
    },
}

/// An argument as JSON.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Integer(i64),
    Real(f64),
}

impl From<&Value> for Number {
    fn from(value: &Value) -> Self {
        match value {
            Value::Integer(number) => Self::Integer(*number),
            Value::Real(real) => Self::Real(real.get()),
        }
    }
}

/// A packet from the process.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Answer {
    /// The operations are loaded.
    Ready { contract: u32 },
    /// The operations cannot be loaded.
    Refused(Raised),
    /// The task has outputs.
    Done {
        task: u64,
        /// Those of the outputs of the first tile, then of the next.
        shapes: Vec<Vec<u64>>,
        /// Lengths of the outputs.
        bytes: Vec<u64>,
        /// Images in the order R, G, B, which is not that of the region.
        reversed: Vec<bool>,
        #[serde(default)]
        peak_bytes: u64,
        reusable: bool,
    },
    /// The task has failed.
    Failed {
        task: u64,
        #[serde(flatten)]
        raised: Raised,
        reusable: bool,
    },
}

/// An exception.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Raised {
    /// Its class.
    #[serde(rename = "type")]
    pub(crate) class: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) traceback: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_the_form_that_the_process_reads() {
        let arguments = vec![Number::Integer(3), Number::Real(0.1)];
        let shapes = [&[2, 3, 3][..]];
        let run = Request::Run { task: 5, operation: 1, arguments, tiles: 1, shapes: &shapes, seed: 7 };
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"run","task":5,"operation":1,"arguments":[3,0.1],"tiles":1,"shapes":[[2,3,3]],"seed":7}"#
        );
        assert_eq!(serde_json::to_string(&Request::Start).unwrap(), r#"{"kind":"start"}"#);
        let failed = r#"{"kind":"failed","task":5,"type":"ValueError","text":"t","reusable":true}"#;
        assert!(
            matches!(serde_json::from_str(failed).unwrap(), Answer::Failed { task: 5, raised, reusable: true } if raised.class == "ValueError")
        );
    }
}
