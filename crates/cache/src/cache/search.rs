//! Search for entries by operation, values, study and user.
//!
//! The result is for users, and no computation depends on it. A search reads every trace, or those of one operation.

use super::Cache;
use crate::label::UserTag;
use crate::{CacheKey, KeyComponents, StudyLabel, Trace};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Conditions of a search. Those that are empty hold for every entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Name of the operation.
    pub operation: Option<String>,
    /// Names of arguments with their values. An entry must have all of them.
    pub arguments: Vec<(String, String)>,
    /// Name of the study, or its number on the manager.
    pub study: Option<String>,
    /// Name of the user.
    pub user: Option<String>,
}

/// A found entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key.
    pub key: CacheKey,
    /// Its trace, with values, run time and label.
    pub trace: Trace,
    /// Bytes of its records: the trace, and its outputs in the cache. Entries with equal outputs share these.
    pub bytes: u64,
    /// Outputs whose content is in the cache, inside the trace or as a region.
    pub stored_outputs: usize,
    /// Time of writing, in seconds since 1970.
    pub written_seconds: u64,
    /// Time of the last use of an entry in the same segment, in seconds since 1970.
    pub used_seconds: u64,
}

impl Query {
    fn matches(&self, trace: &Trace) -> bool {
        let components = &trace.components;
        if is_identity(components) {
            return false;
        }
        let has = |wanted: &(String, String)| components.arguments.iter().any(|found| same(found, wanted));
        let of_label = |wanted: &Option<String>, matches: fn(&StudyLabel, &str) -> bool| {
            let Some(wanted) = wanted else { return true };
            trace.label.as_ref().is_some_and(|label| matches(label, wanted))
        };
        self.operation.as_ref().is_none_or(|operation| *operation == components.operation)
            && self.arguments.iter().all(has)
            && of_label(&self.study, |label, wanted| {
                label.study == wanted || label.id.is_some_and(|id| id.to_string() == wanted)
            })
            && of_label(&self.user, |label, wanted| label.user == wanted)
    }
}

/// Compares numbers by value, so that 11 finds 11.0.
fn same(found: &(String, String), wanted: &(String, String)) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let equal_numbers =
        || number(&found.1).zip(number(&wanted.1)).is_some_and(|(found, wanted)| found == wanted);
    found.0 == wanted.0 && (found.1 == wanted.1 || equal_numbers())
}

/// Prefix of the operation in an entry that describes an operation instead of a task. No operation has it in its name.
const IDENTITY: &str = "identity of ";

fn is_identity(components: &KeyComponents) -> bool {
    components.operation.starts_with(IDENTITY)
}

/// Returns the key of the entry that describes an operation, and its components.
fn identity_entry(operation: &str, components: &[(String, String)]) -> (CacheKey, KeyComponents) {
    let operation = format!("{IDENTITY}{operation}");
    let key = KeyComponents { operation: operation.clone(), ..KeyComponents::default() }.key();
    (key, KeyComponents { operation, arguments: components.to_vec(), ..KeyComponents::default() })
}

impl Cache {
    /// Stores the components behind the digest in an operation's name, so that a later miss can be explained.
    pub fn describe_operation(
        &self,
        operation: &str,
        components: &[(String, String)],
        label: Option<&StudyLabel>,
    ) {
        let (key, components) = identity_entry(operation, components);
        let trace = Trace { outputs: Vec::new(), seconds: 0.0, components, label: label.cloned() };
        self.insert(key, &trace);
    }

    /// Returns the components behind the digest in an operation's name. `None` if it has not been stored, or was evicted.
    #[must_use]
    pub fn operation_components(&self, operation: &str) -> Option<Vec<(String, String)>> {
        let (key, _) = identity_entry(operation, &[]);
        Some(self.lookup(&key)?.components.arguments)
    }

    /// Returns the entries that match, the last written first. Corrupt ones are skipped. Changes no time of last use.
    #[must_use]
    pub fn search(&self, query: &Query) -> Vec<Entry> {
        let mut entries = Vec::new();
        for found in self.traces(query.operation.as_deref()) {
            if !query.matches(&found.trace) {
                continue;
            }
            let stored = found.trace.outputs.iter();
            let stored =
                stored.filter(|output| output.region().is_some() || self.contains_region(&output.digest));
            let outputs = found.trace.outputs.iter();
            let regions = outputs.filter_map(|output| self.region_record_bytes(&output.digest));
            entries.push(Entry {
                key: found.key,
                bytes: found.record_bytes + regions.sum::<u64>(),
                stored_outputs: stored.count(),
                written_seconds: found.written_seconds,
                used_seconds: found.used_seconds,
                trace: found.trace,
            });
        }
        // The key breaks ties between entries of the same second.
        entries.sort_unstable_by_key(|entry: &Entry| (Reverse(entry.written_seconds), entry.key));
        entries
    }

    /// Returns the bytes of each user's entries on disk, the largest first. Users whose traces are gone, and entries without a
    /// user, have no name.
    #[must_use]
    pub fn users(&self) -> Vec<(Option<String>, u64)> {
        let names = self.traces(None).filter_map(|found| found.trace.label).map(|label| label.user);
        let names: HashMap<UserTag, String> = names.map(|user| (UserTag::new(&user), user)).collect();
        let mut unnamed_bytes = 0;
        let mut users = Vec::new();
        for (tag, bytes) in self.bytes_of_users() {
            match names.get(&tag).filter(|name| !name.is_empty()) {
                Some(name) => users.push((Some(name.clone()), bytes)),
                None => unnamed_bytes += bytes,
            }
        }
        users.extend((unnamed_bytes > 0).then_some((None, unnamed_bytes)));
        users.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        users
    }
}
