//! What stands for a task, by what it reads: for the shelf, for what has fallen off it, and for what earlier studies kept.

use super::StageActor;
use super::call::Keys;
use super::held::Known;
use crate::recall::{self, Recall};
use crate::results::{self, Reads};
use pleach_dispatch::stage::{Input, TaskCall};
use pleach_regions::Identity;
use std::sync::Arc;

impl StageActor {
    /// What stands for a task: by what its inputs are known to be, and by how they came about.
    pub(super) fn keys(&self, call: &TaskCall) -> Option<Keys> {
        let reads = self.reads(call)?;
        let task = &self.stage.tasks[call.task];
        let key = results::key(task, &call.arguments, reads.iter().map(|(read, _)| *read));
        let origin = results::key(task, &call.arguments, reads.iter().map(|(_, origin)| *origin));
        Some(Keys { key, origin })
    }

    /// For each input: what it is known to hold, and how it came about.
    fn reads(&self, call: &TaskCall) -> Option<Vec<(Reads, Reads)>> {
        let mut reads = Vec::with_capacity(call.inputs.len());
        for input in &call.inputs {
            reads.push(match *input {
                Input::Stage { instance, input } => {
                    let key = self.work.get(&instance)?.inputs[input];
                    let identity = self.around.ram.identity(key);
                    let identity = identity.or_else(|| self.around.past.identities.get(&key).copied());
                    (identity.map_or(Reads::Stored(key), Reads::Output), Reads::Stored(key))
                }
                Input::Task(output) => {
                    let Known { identity, origin } = self.held.known(output)?;
                    (Reads::Output(identity), Reads::Output(origin))
                }
            });
        }
        Some(reads)
    }

    /// The task as earlier studies may have run it; `None` where there is no cache, or something that it reads is known
    /// by its name alone.
    pub(super) fn recall(&self, call: &TaskCall, keys: Option<Keys>) -> Option<Recall> {
        let cache = Arc::clone(self.around.past.cache.as_ref()?);
        let inputs: Option<Vec<Identity>> = self
            .reads(call)?
            .into_iter()
            .map(|(read, _)| match read {
                Reads::Output(identity) => Some(identity),
                Reads::Stored(_) => None,
            })
            .collect();
        let components = recall::components(&*self.operations[call.task], &call.arguments, &inputs?);
        Some(Recall { cache, key: keys?.key, components, wanted: call.wanted.clone() })
    }
}
