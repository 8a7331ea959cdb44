//! Task results of earlier studies: lookup and storage, task by task, on the threads that run tasks.
//!
//! Every task leaves a trace. Outputs are stored if reading them is faster than recomputing them. Without its outputs, a
//! trace still contains their digests, which suffices to find later tasks.

use parking_lot::Mutex;
use pleach_cache::{Cache, CacheKey, KeyComponents, Output, StudyLabel, Trace};
use pleach_regions::{DataRegion, Digest, ElementType, RegionIdentity, RegionKey, TaskKey};
use pleach_workflow::{Operation, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Bytes per second of a lookup with verification and decoding, or of encoding and writing, on an average disk.
const KEPT_BYTES_PER_SECOND: f64 = 150e6;

/// Identities of the content of input files, by region. An entry lasts as long as its study reads the region.
pub(crate) type InputIdentities = Mutex<HashMap<RegionKey, RegionIdentity>>;

/// Cache entry of one task.
#[derive(Clone)]
pub struct TaskLookup {
    /// The cache.
    pub cache: Arc<Cache>,
    /// Key of the task, computed only from the content of its inputs.
    pub key: TaskKey,
    /// Components of the key.
    pub components: KeyComponents,
    /// Outputs with readers.
    pub requested: Vec<bool>,
    /// Label of new entries.
    pub label: Option<Arc<StudyLabel>>,
}

impl fmt::Debug for TaskLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLookup").field("components", &self.components).finish_non_exhaustive()
    }
}

/// A task run by an earlier study.
#[derive(Debug)]
pub(crate) struct CachedTask {
    /// Wanted outputs.
    pub(crate) outputs: Vec<Option<DataRegion>>,
    /// Digests of all outputs.
    pub(crate) digests: Vec<Digest>,
}

/// Returns the components of a task's key as text.
#[must_use]
pub fn components(
    operation: &dyn Operation,
    arguments: &[Value],
    inputs: &[RegionIdentity],
) -> KeyComponents {
    let values = operation.arguments().iter().zip(arguments);
    let inputs = operation.inputs().iter().zip(inputs);
    KeyComponents {
        operation: operation.name().to_owned(),
        version: operation.version(),
        arguments: values.map(|(argument, value)| (argument.name.to_owned(), value.to_string())).collect(),
        inputs: inputs.map(|(port, identity)| (port.name.to_owned(), Digest(identity.0))).collect(),
    }
}

impl TaskLookup {
    /// Returns the wanted outputs, if all are stored and have the types that the operation declares.
    pub(crate) fn find(&self, operation: &dyn Operation) -> Option<CachedTask> {
        let trace = self.cache.lookup(&CacheKey(self.key.0))?;
        if trace.outputs.len() != self.requested.len() || operation.outputs().len() != self.requested.len() {
            return None;
        }
        let all = || trace.outputs.iter().zip(&self.requested).zip(operation.outputs());
        // Checked first, so that no output is read if another is missing.
        // In object storage, a load may take longer than the task.
        let is_worth = |output: &Output, element| {
            !self.cache.is_remote() || self.is_worth_caching(element, output.bytes, trace.seconds)
        };
        let is_kept = |output: &Output, element| {
            output.region().is_some()
                || self.cache.contains_region(&output.digest) && is_worth(output, element)
        };
        if !all().all(|((output, wanted), port)| !wanted || is_kept(output, port.element)) {
            return None;
        }
        let mut outputs = Vec::with_capacity(self.requested.len());
        for ((output, wanted), port) in all() {
            outputs.push(match wanted {
                true => {
                    let region = output.region().or_else(|| self.cache.load(&output.digest));
                    // A missing region or another type is a miss: the task runs again.
                    Some(region.filter(|region| region.element() == port.element)?)
                }
                false => None,
            });
        }
        let digests = trace.outputs.iter().map(|output| output.digest).collect();
        Some(CachedTask { outputs, digests })
    }

    /// Returns whether a region of `bytes` in memory that took `seconds` to compute can be loaded from the cache faster.
    fn is_worth_caching(&self, element: ElementType, bytes: u64, seconds: f64) -> bool {
        seconds > self.cache.load_seconds(encoded_bytes(element, bytes))
    }

    /// Stores the outputs of a task that ran for `seconds`. Stores nothing if a digest is missing.
    pub(crate) fn store(
        &self,
        operation: &dyn Operation,
        outputs: &[DataRegion],
        digests: &[Option<Digest>],
        seconds: f64,
    ) {
        let Some(digests) = digests.iter().copied().collect::<Option<Vec<Digest>>>() else { return };
        if digests.len() != outputs.len() {
            return;
        }
        let traced: Vec<Output> =
            outputs.iter().zip(&digests).map(|(region, digest)| Output::new(region, *digest)).collect();
        let user = self.label.as_ref().map_or("", |label| &label.user);
        for ((region, digest), output) in outputs.iter().zip(&digests).zip(&traced) {
            if output.region().is_none() && self.is_worth_caching(region.element(), region.bytes(), seconds) {
                self.cache.store(digest, region, user);
            }
        }
        let (components, label) = (self.components.clone(), self.label.as_deref().cloned());
        // Written after the outputs, so that a reader of the trace finds them.
        let trace = Trace { outputs: traced, seconds, components, label };
        self.cache.insert(CacheKey(self.key.0), &trace);
        if !operation.components().is_empty() {
            let name = operation.name();
            self.cache.describe_operation(name, operation.components(), self.label.as_deref());
        }
    }
}

/// Returns whether a region of `bytes` in memory that took `seconds` to compute can be read from disk faster.
pub(crate) fn is_worth_caching(element: ElementType, bytes: u64, seconds: f64) -> bool {
    seconds > encoded_bytes(element, bytes) / KEPT_BYTES_PER_SECOND
}

fn encoded_bytes(element: ElementType, bytes: u64) -> f64 {
    // A mask is stored with 1 bit per pixel and takes 1 byte in memory.
    let packed = if element == ElementType::Mask { 8 } else { 1 };
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let bytes = (bytes / packed) as f64;
    bytes
}
