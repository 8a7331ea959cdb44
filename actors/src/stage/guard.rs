//! Guards of tasks: decides by the values of other tasks whether a task with a slot runs or is skipped.
//!
//! A region that passes a skipped task keeps its identities, so the key of a later task names the regions that were in fact
//! computed: the history of values of paper 004, without the iterations and branches that did not run.

use super::StageActor;
use super::execution::{Execution, RemoteFetches};
use super::live_outputs::RegionInfo;
use crate::storage::{GetRegion, RegionUnavailable};
use crate::task::TaskResult;
use actix::prelude::*;
use pleach_dispatch::SlotId;
use pleach_dispatch::message::{TaskFailure, TaskOutcome};
use pleach_dispatch::stage::{InputLocation, OutputId, TaskRequest};
use pleach_regions::{DataRegion, input_id};
use pleach_workflow::{Decision, guard_value};
use std::sync::Arc;

/// A region that passes a skipped task.
pub(super) struct PassedRegion {
    output: usize,
    region: Arc<DataRegion>,
    info: Option<RegionInfo>,
}

/// Flow of control at a task.
pub(super) enum Flow {
    Run,
    Skip(Vec<PassedRegion>),
}

/// Reason for a guard without a decision.
pub(super) enum Undecided {
    /// A value, or a region that passes, is not in memory.
    NotLoaded(InputLocation),
    Failed(TaskFailure),
}

impl StageActor {
    /// Decides whether a task runs.
    pub(super) fn flow(&self, call: &TaskRequest) -> Result<Flow, Undecided> {
        let task = &self.stage.tasks[call.task];
        let Some(guard) = &task.guard else { return Ok(Flow::Run) };
        let fail = |cause: String| Undecided::Failed(TaskFailure { at: task.name.clone(), cause });
        let missing = || fail("a region that decides whether the task runs is missing".to_owned());
        let location = |read: usize| read.checked_sub(guard.operands).and_then(|at| call.guard.get(at));
        let value = |read: usize| {
            let region = self.guard_region(*location(read).ok_or_else(missing)?)?.ok_or_else(missing)?;
            guard_value(&region).map_err(|error| fail(error.to_string()))
        };
        let Decision::Skip(passes) = guard.decide(value)? else { return Ok(Flow::Run) };
        let mut passed = Vec::new();
        for (output, pass) in passes.iter().enumerate().filter(|(output, _)| call.requested[*output]) {
            let found = match pass {
                Some(read) => {
                    let from = *location(*read).ok_or_else(missing)?;
                    self.guard_region(from)?.map(|region| (region, self.info_of(from)))
                }
                None => None,
            };
            match found {
                Some((region, info)) => passed.push(PassedRegion { output, region, info }),
                // Only tasks that are skipped as well read it, but every instance has its outputs.
                None if self
                    .stage
                    .outputs
                    .iter()
                    .any(|out| (out.task, out.output) == (call.task, output)) =>
                {
                    return Err(missing());
                }
                None => {}
            }
        }
        Ok(Flow::Skip(passed))
    }

    /// Returns a region that a guard reads. `None` if no task has written it.
    fn guard_region(&self, location: InputLocation) -> Result<Option<Arc<DataRegion>>, Undecided> {
        match location {
            InputLocation::Task(output) => match self.outputs.region(output) {
                Some(region) => Ok(Some(Arc::clone(region))),
                None if self.outputs.remote(output).is_some() => Err(Undecided::NotLoaded(location)),
                None => Ok(None),
            },
            InputLocation::Stage { instance, input } => {
                let Some(key) = self.work.get(&instance).map(|work| work.inputs[input]) else {
                    return Ok(None);
                };
                let loaded = self.guard_inputs.get(&key).cloned().or_else(|| self.around.ram.get(key));
                loaded.map(Some).ok_or(Undecided::NotLoaded(location))
            }
        }
    }

    /// Returns the identities of a region. `None` if regions have none, without reuse between buckets.
    fn info_of(&self, location: InputLocation) -> Option<RegionInfo> {
        match location {
            InputLocation::Task(output) => self.outputs.info(output),
            InputLocation::Stage { instance, input } => {
                let key = self.work.get(&instance)?.inputs[input];
                let origin = input_id(&key);
                self.worth.as_ref()?;
                Some(RegionInfo { identity: self.content_of(key).unwrap_or(origin), origin })
            }
        }
    }

    /// Begins a task with a guard: skips it, or begins it as any other task.
    pub(super) fn begin_guarded(&mut self, slot: SlotId, call: TaskRequest, ctx: &mut Context<Self>) {
        if call.brings_inputs && super::missing_bytes(&self.around.ram, &self.inputs) > 0 {
            return self.load_inputs(slot, call, ctx);
        }
        match self.flow(&call) {
            Ok(Flow::Run) => {
                self.guard_inputs.clear();
                self.begin_unguarded(slot, call, ctx);
            }
            Ok(Flow::Skip(passed)) => {
                self.guard_inputs.clear();
                let how = Execution::Skipped { passed };
                if self.given_fetches(&call).is_empty() {
                    self.end(slot, &call, how, None, None);
                } else {
                    self.start(slot, call, how, ctx);
                }
            }
            Err(Undecided::NotLoaded(location)) => self.load_for_guard(slot, call, location, ctx),
            Err(Undecided::Failed(cause)) => {
                self.run.handle_failed(call.node, &cause);
                self.follow();
                self.report_slot_free(slot);
            }
        }
    }

    /// Loads or fetches a region, and begins the task again.
    fn load_for_guard(
        &mut self,
        slot: SlotId,
        call: TaskRequest,
        location: InputLocation,
        ctx: &mut Context<Self>,
    ) {
        let run = || Execution::Run { keys: None, shared: false, found: None };
        match location {
            InputLocation::Task(output) => {
                let fetch = self.fetch_of(output).fetch().into_actor(self);
                ctx.spawn(fetch.map(move |fetched, actor, ctx| {
                    match fetched {
                        Ok(fetched) => {
                            actor.localize(fetched);
                            actor.begin_guarded(slot, call, ctx);
                        }
                        Err(lost) => actor.end(slot, &call, run(), None, Some(lost)),
                    }
                    actor.send_demand(ctx);
                }));
            }
            InputLocation::Stage { instance, input } => {
                let Some(key) = self.work.get(&instance).map(|work| work.inputs[input]) else { return };
                let load = self.around.storage.send(GetRegion(key)).into_actor(self);
                ctx.spawn(load.map(move |loaded, actor, ctx| {
                    let gone = || TaskFailure {
                        at: actor.stage.tasks[call.task].name.clone(),
                        cause: "the storage actor has ended".to_owned(),
                    };
                    match loaded.unwrap_or_else(|_| Err(RegionUnavailable::Failed(gone()))) {
                        Ok(region) => {
                            actor.guard_inputs.insert(key, region);
                            actor.begin_guarded(slot, call, ctx);
                        }
                        Err(why) => {
                            actor.end(slot, &call, run(), Some(TaskResult::not_done(why)), None);
                        }
                    }
                    actor.send_demand(ctx);
                }));
            }
        }
    }

    fn fetch_of(&self, output: OutputId) -> RemoteFetches {
        let exchange = self.around.directory.as_ref().map(|directory| directory.exchange.clone());
        let remote = self.outputs.remote(output).map(|remote| (output, remote.clone()));
        RemoteFetches::new(exchange, remote.into_iter().collect())
    }

    /// Ends a task that is skipped: the regions that pass become its outputs.
    pub(super) fn end_skipped(&mut self, call: &TaskRequest, passed: Vec<PassedRegion>) {
        self.report(call, TaskOutcome::Skipped, None, 0.0);
        for PassedRegion { output, region, info } in passed {
            self.outputs.add(OutputId { node: call.node, output }, region, info);
        }
        self.run.handle_done(call.node);
    }
}
