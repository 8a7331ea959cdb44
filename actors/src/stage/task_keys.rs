//! Task keys computed from inputs: for the result cache, for spilled results and for the task cache.

use super::StageActor;
use super::execution::TaskKeys;
use super::live_outputs::RegionInfo;
use crate::task_cache::{self, TaskLookup};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::task_key::{self, TaskInputId};
use pleach_dispatch::stage::{InputLocation, TaskRequest};
use pleach_regions::{RegionIdentity, RegionKey};
use std::sync::Arc;

impl StageActor {
    /// Returns the keys of a task, by the known content of its inputs and by their provenance.
    pub(super) fn keys(&self, call: &TaskRequest) -> Option<TaskKeys> {
        let reads = self.reads(call)?;
        let task = &self.stage.tasks[call.task];
        let key = task_key::key(task, &call.arguments, reads.iter().map(|(read, _)| *read));
        let origin = task_key::key(task, &call.arguments, reads.iter().map(|(_, origin)| *origin));
        Some(TaskKeys { key, origin })
    }

    /// Returns the identity of a stage input, if known.
    pub(super) fn content_of(&self, key: RegionKey) -> Option<RegionIdentity> {
        let prior = || self.around.prior.identities.get(&key).copied();
        // The provenance of a region is its key, on every worker. Its identity is known on some only, unless it is the digest
        // of its content.
        if self.around.directory.is_some() && self.scope == ReuseScope::Dataflow {
            return prior();
        }
        let of_files = || self.around.input_identities.lock().get(&key).copied();
        self.around.ram.identity(key).or_else(prior).or_else(of_files)
    }

    /// Returns each input by known content and by provenance.
    fn reads(&self, call: &TaskRequest) -> Option<Vec<(TaskInputId, TaskInputId)>> {
        let mut reads = Vec::with_capacity(call.inputs.len());
        for input in &call.inputs {
            reads.push(match *input {
                InputLocation::Stage { instance, input } => {
                    let key = self.work.get(&instance)?.inputs[input];
                    let identity = self.content_of(key);
                    (identity.map_or(TaskInputId::Stored(key), TaskInputId::Output), TaskInputId::Stored(key))
                }
                InputLocation::Task(output) => {
                    let RegionInfo { identity, origin } = self.outputs.info(output)?;
                    (TaskInputId::Output(identity), TaskInputId::Output(origin))
                }
            });
        }
        Some(reads)
    }

    /// Returns the lookup of a task in the task cache. `None` without a cache, or if the content of an input is unknown.
    pub(super) fn cache_lookup(&self, call: &TaskRequest, keys: Option<TaskKeys>) -> Option<TaskLookup> {
        let cache = Arc::clone(self.around.prior.cache.as_ref()?);
        let inputs: Option<Vec<RegionIdentity>> = self
            .reads(call)?
            .into_iter()
            .map(|(read, _)| match read {
                TaskInputId::Output(identity) => Some(identity),
                // A region key holds for one run only, so the task cache must not store it.
                TaskInputId::Stored(_) => None,
            })
            .collect();
        let components = task_cache::components(&*self.operations[call.task], &call.arguments, &inputs?);
        let (requested, label) = (call.requested.clone(), self.around.prior.label.clone());
        Some(TaskLookup { cache, key: keys?.key, components, requested, label })
    }
}
