//! Explains a cache miss: finds the task instance of the same operation with the fewest differing components.
//!
//! The result is for users, and no computation depends on it. A call reads every trace of the operation.

use super::{Cache, FoundTrace};
use crate::{CacheKey, KeyComponents, Trace};
use pleach_regions::Digest;
use std::cmp::Reverse;
use std::fmt;

/// The nearest trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// Its key.
    pub key: CacheKey,
    /// The trace.
    pub trace: Trace,
    /// The differing components, empty for an exact match.
    pub differences: Vec<Difference>,
}

/// A differing component: `found` in the cache, `expected` by the caller. `None` if one side has no such name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The digest of an external operation: its code or its environment.
    Operation {
        /// In the cache.
        found: String,
        /// Requested.
        expected: String,
    },
    /// The operation's version.
    Version {
        /// In the cache.
        found: u32,
        /// Requested.
        expected: u32,
    },
    /// The value of an argument.
    Argument {
        /// Its name.
        name: String,
        /// In the cache.
        found: Option<String>,
        /// Requested.
        expected: Option<String>,
    },
    /// The identity of an input.
    Input {
        /// Its name.
        name: String,
        /// In the cache.
        found: Option<Digest>,
        /// Requested.
        expected: Option<Digest>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn side<T: fmt::Display>(value: &Option<T>) -> String {
            value.as_ref().map_or_else(|| "nothing".to_owned(), T::to_string)
        }
        match self {
            Self::Operation { found, expected } => write!(f, "operation {expected}, stored is {found}"),
            Self::Version { found, expected } => write!(f, "version {expected}, stored is {found}"),
            Self::Argument { name, found, expected: wanted } => {
                write!(f, "{name} = {}, stored is {}", side(wanted), side(found))
            }
            Self::Input { name, found, expected: wanted } => {
                write!(f, "input {name} is {}, stored is {}", side(wanted), side(found))
            }
        }
    }
}

impl Cache {
    /// Returns the stored trace of the same operation with the fewest components differing from `expected`. Ties go to the one
    /// written last, then to the lowest key. `None` if the operation has no trace. The digest of an external operation is one of
    /// the components.
    #[must_use]
    pub fn nearest(&self, wanted: &KeyComponents) -> Option<Nearest> {
        let name = without_digest(&wanted.operation);
        // Traces are indexed by the whole name, so those of other digests are found by reading all.
        let is_external = name != wanted.operation;
        let of_operation = self
            .traces((!is_external).then_some(wanted.operation.as_str()))
            .filter(|found| without_digest(&found.trace.components.operation) == name);
        let compared = of_operation.map(|FoundTrace { key, trace, written_seconds, .. }| {
            let differences = differences(&trace.components, wanted);
            ((differences.len(), Reverse(written_seconds), key), Nearest { key, trace, differences })
        });
        compared.min_by_key(|(order, _)| *order).map(|(_, nearest)| nearest)
    }
}

/// Returns the name of an operation without the digest of its code and environment.
fn without_digest(operation: &str) -> &str {
    operation.split_once('@').map_or(operation, |(name, _)| name)
}

/// Returns the differences of two component lists of one operation, by name.
fn differences(found: &KeyComponents, wanted: &KeyComponents) -> Vec<Difference> {
    let mut differences = Vec::new();
    if found.operation != wanted.operation {
        let (found, expected) = (found.operation.clone(), wanted.operation.clone());
        differences.push(Difference::Operation { found, expected });
    }
    if found.version != wanted.version {
        differences.push(Difference::Version { found: found.version, expected: wanted.version });
    }
    let arguments = named_differences(&found.arguments, &wanted.arguments);
    differences.extend(arguments.map(|(name, found, expected)| Difference::Argument {
        name,
        found,
        expected,
    }));
    let inputs = named_differences(&found.inputs, &wanted.inputs);
    differences.extend(inputs.map(|(name, found, wanted)| Difference::Input {
        name,
        found,
        expected: wanted,
    }));
    differences
}

/// Returns the names with different values: those of `expected` in order, then those only in `found`.
fn named_differences<'a, T: Clone + PartialEq>(
    found: &'a [(String, T)],
    wanted: &'a [(String, T)],
) -> impl Iterator<Item = (String, Option<T>, Option<T>)> + 'a {
    let value = |list: &[(String, T)], name: &str| {
        list.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.clone())
    };
    let of_wanted = wanted.iter().map(move |(name, wanted)| (name, value(found, name), Some(wanted.clone())));
    let only_found = found.iter().filter(move |(name, _)| value(wanted, name).is_none());
    let of_found = only_found.map(|(name, found)| (name, Some(found.clone()), None));
    let all = of_wanted.chain(of_found).filter(|(_, found, wanted)| found != wanted);
    all.map(|(name, found, wanted)| (name.clone(), found, wanted))
}
