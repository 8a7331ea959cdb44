//! Why a key is not there: the task instance of the same operation whose components differ in fewest places.
//!
//! An answer for people. Every trace of the operation is read for it; nothing is computed from what it says.

use crate::{Cache, CacheKey, KeyComponents, Trace};
use pleach_regions::Digest;
use std::cmp::Reverse;
use std::fmt;

/// The trace that comes nearest.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// Its key.
    pub key: CacheKey,
    /// The trace.
    pub trace: Trace,
    /// In what it differs; nothing when it is the very one that was asked for.
    pub differences: Vec<Difference>,
}

/// One component that differs: what is `found` in the cache, and what is `wanted`. None where one side has no such name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The operation's version.
    Version {
        /// In the cache.
        found: u32,
        /// Asked for.
        wanted: u32,
    },
    /// The value of an argument.
    Argument {
        /// Its name.
        name: String,
        /// In the cache.
        found: Option<String>,
        /// Asked for.
        wanted: Option<String>,
    },
    /// The identity of an input.
    Input {
        /// Its name.
        name: String,
        /// In the cache.
        found: Option<Digest>,
        /// Asked for.
        wanted: Option<Digest>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn side<T: fmt::Display>(value: &Option<T>) -> String {
            value.as_ref().map_or_else(|| "nothing".to_owned(), T::to_string)
        }
        match self {
            Self::Version { found, wanted } => write!(f, "version {wanted}, stored is {found}"),
            Self::Argument { name, found, wanted } => {
                write!(f, "{name} = {}, stored is {}", side(wanted), side(found))
            }
            Self::Input { name, found, wanted } => {
                write!(f, "input {name} is {}, stored is {}", side(wanted), side(found))
            }
        }
    }
}

impl Cache {
    /// The stored trace of the same operation that differs from `wanted` in fewest components; of several the one written
    /// last, then that of the lowest key. None where there is no trace of the operation.
    #[must_use]
    pub fn nearest(&self, wanted: &KeyComponents) -> Option<Nearest> {
        let of_operation = self
            .traces_of(&wanted.operation)
            .filter(|(_, _, trace)| trace.components.operation == wanted.operation);
        let compared = of_operation.map(|(key, written_seconds, trace)| {
            let differences = differences(&trace.components, wanted);
            ((differences.len(), Reverse(written_seconds), key), Nearest { key, trace, differences })
        });
        compared.min_by_key(|(order, _)| *order).map(|(_, nearest)| nearest)
    }
}

/// In what two component lists of one operation differ, by name.
fn differences(found: &KeyComponents, wanted: &KeyComponents) -> Vec<Difference> {
    let mut differences = Vec::new();
    if found.version != wanted.version {
        differences.push(Difference::Version { found: found.version, wanted: wanted.version });
    }
    let arguments = named_differences(&found.arguments, &wanted.arguments);
    differences.extend(arguments.map(|(name, found, wanted)| Difference::Argument { name, found, wanted }));
    let inputs = named_differences(&found.inputs, &wanted.inputs);
    differences.extend(inputs.map(|(name, found, wanted)| Difference::Input { name, found, wanted }));
    differences
}

/// Names with different values in two lists: those of `wanted` in order, then those of `found` alone.
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
