//! The JSON of descriptors before validation: one struct per JSON object.
//!
//! The module `validate` turns these into a checked [`Workflow`](crate::Workflow).

mod bounds;
mod flow;
pub(crate) mod manifests;
pub(crate) mod outline;

use crate::error::{DescriptorError, Problem};
use crate::text;
use crate::value::ValueType;
use pleach_regions::ElementType;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use bounds::InputDescriptor;
pub(crate) use flow::{ChoiceDescriptor, ConditionDescriptor, EntryDescriptor, LoopDescriptor};

/// A workflow file: stages and their connections.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a workflow object")]
pub(crate) struct WorkflowDescriptor {
    pub(crate) workflow: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) inputs: Vec<RegionDescriptor>,
    #[serde(default)]
    pub(crate) reference: Option<ReferenceDescriptor>,
    pub(crate) stages: Vec<StageEntry>,
    pub(crate) response: ResponsesDescriptor,
    /// Parameters that no task reads.
    #[serde(default)]
    pub(crate) unread: Vec<ParameterDescriptor>,
    /// Manifests of external operations, relative to this file. The command loads them before the descriptors.
    #[serde(default)]
    #[expect(dead_code, reason = "read by manifests.rs, before the registry is complete")]
    pub(crate) operations: Vec<PathBuf>,
}

/// Name and element type of a region.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a region object")]
pub(crate) struct RegionDescriptor {
    pub(crate) region: String,
    #[serde(rename = "type")]
    pub(crate) element: ElementType,
}

/// A region that a stage provides to other stages, with its durability and spill tier.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a region object")]
pub(crate) struct OutputDescriptor {
    pub(crate) region: String,
    #[serde(rename = "type")]
    pub(crate) element: ElementType,
    #[serde(default)]
    pub(crate) durable: Option<bool>,
    #[serde(default)]
    pub(crate) tier: Option<TierKind>,
}

/// The region that results are compared with: `output` of the run at default values, or a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a reference object")]
pub(crate) struct ReferenceDescriptor {
    pub(crate) region: String,
    #[serde(rename = "type")]
    pub(crate) element: ElementType,
    pub(crate) output: String,
}

/// One stage of a workflow: its descriptor, and an optional switch with the replacements for its outputs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a stage object")]
pub(crate) struct StageEntry {
    pub(crate) descriptor: PathBuf,
    #[serde(default)]
    pub(crate) switch: Option<String>,
    #[serde(default)]
    pub(crate) bypass: BTreeMap<String, String>,
}

/// The tables that a study may take its responses from, written as one object or as a list.
#[derive(Clone, Debug)]
pub(crate) enum ResponsesDescriptor {
    One(ResponseDescriptor),
    Several(Vec<ResponseDescriptor>),
}

impl ResponsesDescriptor {
    /// Returns each response with its JSON pointer.
    pub(crate) fn each(&self) -> impl Iterator<Item = (String, &ResponseDescriptor)> {
        let (list, one) = match self {
            Self::One(response) => (std::slice::from_ref(response), true),
            Self::Several(list) => (list.as_slice(), false),
        };
        let place = move |index| if one { "/response".to_owned() } else { format!("/response/{index}") };
        list.iter().enumerate().map(move |(index, response)| (place(index), response))
    }
}

/// Implemented by hand: a derived choice between the two forms loses the location of a mistake.
impl<'de> Deserialize<'de> for ResponsesDescriptor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;
        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = ResponsesDescriptor;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a response object or a list of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(ResponsesDescriptor::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(ResponsesDescriptor::Several)
            }
        }
        deserializer.deserialize_any(OneOrSeveral)
    }
}

/// A table of responses, with the aggregation of each column over tiles.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a response object")]
pub(crate) struct ResponseDescriptor {
    pub(crate) region: String,
    pub(crate) metrics: Vec<MetricDescriptor>,
}

/// One column of the response table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a metric object")]
pub(crate) struct MetricDescriptor {
    pub(crate) metric: String,
    pub(crate) over_tiles: Aggregate,
}

/// Aggregation of the responses of one evaluation over its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Arithmetic mean over tiles.
    Mean,
    /// Sum over tiles.
    Sum,
}

/// A stage descriptor: a DAG of tasks over data regions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a stage object")]
pub(crate) struct StageDescriptor {
    pub(crate) stage: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) inputs: Vec<InputDescriptor>,
    pub(crate) outputs: Vec<OutputDescriptor>,
    pub(crate) tasks: Vec<EntryDescriptor>,
}

/// One task: an operation, the parameters that it consumes, the regions that it reads and writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a task object")]
pub(crate) struct TaskDescriptor {
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) operation: String,
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) parameters: Vec<ParameterDescriptor>,
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
}

/// A parameter: defined at its first use, and only named (`{"name": "FillHoles"}`) at later uses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a parameter object")]
pub(crate) struct ParameterDescriptor {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) argument: Option<String>,
    #[serde(default, rename = "type")]
    pub(crate) value_type: Option<ValueType>,
    #[serde(default)]
    pub(crate) default: Option<f64>,
    #[serde(default)]
    pub(crate) range: Option<Vec<f64>>,
    #[serde(default)]
    pub(crate) step: Option<f64>,
    #[serde(default)]
    pub(crate) values: Option<Vec<f64>>,
    #[serde(default)]
    pub(crate) fixed: Option<f64>,
}

impl ParameterDescriptor {
    /// Returns the use of a parameter that is defined elsewhere.
    pub(crate) fn without_definition(&self) -> Self {
        let (name, argument) = (self.name.clone(), self.argument.clone());
        let (value_type, default, range, step, values, fixed) = (None, None, None, None, None, None);
        Self { name, argument, value_type, default, range, step, values, fixed }
    }
}

/// Source of descriptor files.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Files<'a> {
    /// The file system.
    Disk,
    /// Files embedded in the program, by name.
    Embedded(&'a [(&'a str, &'a str)]),
}

impl Files<'_> {
    /// Reads and parses one file.
    pub(crate) fn parse<T: DeserializeOwned>(self, file: &Path) -> Result<T, DescriptorError> {
        let fail = |pointer: String, problem| DescriptorError {
            file: file.to_owned(),
            pointer,
            problem: Box::new(problem),
        };
        let text = self.read(file).map_err(|error| fail(String::new(), Problem::Unreadable(error)))?;
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            fail(pointer(error.path()), Problem::Malformed(plain(&error.inner().to_string())))
        })?;
        deserializer
            .end()
            .map_err(|error| fail(String::new(), Problem::Malformed(plain(&error.to_string()))))?;
        Ok(value)
    }

    fn read(self, file: &Path) -> std::io::Result<String> {
        match self {
            Self::Disk => text::read(file),
            Self::Embedded(files) => files
                .iter()
                .find(|(name, _)| Path::new(name) == file)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| std::io::ErrorKind::NotFound.into()),
        }
    }
}

/// Translates the parser's message from Rust terms to JSON terms.
fn plain(message: &str) -> String {
    const WORDS: [(&str, &str); 8] = [
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected f64", "expected a number"),
        ("a sequence", "a list"),
        ("sequence,", "a list,"),
        ("map,", "an object,"),
        ("field `", "key `"),
        ("unknown variant `", "unknown value `"),
        ("EOF while parsing", "the file ends within"),
    ];
    WORDS.iter().fold(message.to_owned(), |text, (parser, plain)| text.replace(parser, plain))
}

/// Escapes a key for a JSON pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Converts a serde path to a JSON pointer: `tasks[3].reads` becomes `/tasks/3/reads`.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(format!("/{index}")),
            Segment::Map { key } => Some(format!("/{}", escaped(key))),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

/// Kinds of spill tiers, in order of speed, the fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TierKind {
    /// A folder on the node's own solid-state disk.
    Ssd,
    /// A tier on the worker's slower disk.
    Hdd,
    /// A tier that all nodes share.
    Lustre,
    /// Object storage.
    S3,
}

impl TierKind {
    /// All kinds, the fastest first.
    pub const ALL: [Self; 4] = [Self::Ssd, Self::Hdd, Self::Lustre, Self::S3];

    /// Returns the name in descriptors and in lists of tiers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ssd => "ssd",
            Self::Hdd => "hdd",
            Self::Lustre => "lustre",
            Self::S3 => "s3",
        }
    }
}
