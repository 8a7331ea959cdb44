//! The stage actor: executes one bucket, task by task, as its worker grants slots.
//!
//! With reuse between buckets, the actor looks up a granted task in the worker's task results first. If another bucket is
//! running the same task, the task waits and the slot returns to the worker. On a cluster, the actor looks the task up in
//! the result directory then (`look_up`).

mod context;
mod cost_learning;
mod devices;
mod execution;
mod finish;
mod guard;
mod live_outputs;
mod look_up;
mod sizes;
mod task_keys;
mod transfer;
mod withdrawal;

use crate::storage::GetRegion;
use crate::task::{StoredOutputs, TaskResult};
use crate::task_results::{ResumeTask, TaskResults};
use actix::prelude::*;
pub use context::{ResolvedStage, StageContext};
use cost_learning::paths;
pub use devices::PrefetchTask;
use execution::{Execution, JobResult, LoadedInput, RemoteFetches, TaskJob, TaskKeys};
use live_outputs::LiveOutputs;
use pleach_dispatch::memory_model::{BucketDemand, TailDemand};
use pleach_dispatch::message::{
    BucketWork, InstanceWork, MissingInput, Report, ReuseSource, TaskOutcome, TaskReport,
};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::{
    BucketExecution, DeclaredCosts, InputLocation, KeyPolicy, NodeId, Offer, OutputId, TaskRequest,
};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, SlotId};
use pleach_regions::{DataRegion, RegionKey, TaskKey, provenance_id};
use pleach_workflow::{Operation, Stage, Task};
pub(crate) use sizes::input_bytes;
use sizes::{inputs, missing_bytes, task_bytes};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use tracing::{Span, trace_span};
pub use withdrawal::{InstanceSelection, TakeInstances, TakeSpare};

/// Grants a slot to one task.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct SlotGranted {
    /// The slot.
    pub slot: SlotId,
    /// The task.
    pub node: NodeId,
}

/// Event that a stage actor sends to its worker.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum StageEvent {
    /// Present demand of the stage, sent at its start and after each grant.
    Demand {
        /// The stage.
        lease: LeaseId,
        /// Present demand.
        demand: BucketDemand,
        /// Present offers, on a worker with accelerators.
        offers: Vec<Offer>,
    },
    /// A slot is free again.
    SlotFree {
        /// The slot.
        slot: SlotId,
        /// Number of the download if the slot was freed before, when the device had computed.
        download: Option<u64>,
        /// The stage that had the slot.
        lease: LeaseId,
        /// Present demand of the stage.
        demand: BucketDemand,
        /// Present offers, on a worker with accelerators.
        offers: Vec<Offer>,
    },
    /// Report on an instance of a study.
    Report(PlanId, Report),
    /// Report on an instance of a study, sent once these regions are in a tier that all workers share.
    Stored(PlanId, Report, Vec<RegionKey>),
    /// An instance misses an input.
    MissingInput(MissingInput),
    /// Every instance of the bucket has been reported or returned.
    Over {
        /// The study.
        study: PlanId,
        /// The bucket.
        lease: LeaseId,
        /// Tasks done since the last report.
        tasks: Vec<TaskReport>,
        /// Outputs of its instances that it may have stored.
        stored: Vec<RegionKey>,
    },
}

/// A bucket with at most this number of open tasks runs long paths first on a cluster, so that its last tasks are short. By
/// simulation (`benches/RESULTS.md`), limits of 16 to 100,000 differ little, and smaller buckets need less memory depth-first.
pub(crate) const TAIL_TASKS: usize = 40;

/// Actor that executes one bucket.
pub struct StageActor {
    study: PlanId,
    lease: LeaseId,
    number: u32,
    stage: Arc<Stage>,
    operations: Vec<Arc<dyn Operation>>,
    pixels: u64,
    work: HashMap<InstanceId, InstanceWork>,
    run: BucketExecution,
    /// Declared bytes of each task on images of this bucket's size.
    declared_bytes: Vec<u64>,
    scope: ReuseScope,
    /// Regions that the bucket reads, each once, with their bytes.
    inputs: Vec<(RegionKey, u64)>,
    outputs: LiveOutputs,
    /// Tasks that get keys. `None` without reuse between buckets.
    worth: Option<KeyPolicy>,
    /// The inputs of the bucket have been loaded, so their content is known as far as it can be.
    inputs_loaded: bool,
    /// Tasks that are being looked up in the result directory.
    resolving: HashMap<NodeId, (TaskRequest, TaskKeys)>,
    /// Looked-up tasks that wait for a slot to run.
    claims: HashMap<NodeId, TaskKeys>,
    /// Tasks that run although another worker has their outputs, because the transfer takes longer.
    recomputed: HashSet<NodeId>,
    /// Stage inputs loaded for the guard of a task that is not decided yet.
    guard_inputs: HashMap<RegionKey, Arc<DataRegion>>,
    /// Tasks done since the last report.
    ran: Vec<TaskReport>,
    around: StageContext,
}

impl fmt::Debug for StageActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageActor")
            .field("lease", &self.lease)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl StageActor {
    /// Creates an actor for one bucket.
    ///
    /// # Errors
    /// Returns an error if the bucket does not fit the stage.
    pub fn new(
        (study, lease): (PlanId, LeaseId),
        runnable: ResolvedStage,
        work: BucketWork,
        mut around: StageContext,
    ) -> Result<Self, pleach_dispatch::stage::InvalidBucket> {
        if work.sharing != ReuseScope::Value {
            // Keys of the cache consist of content only, which the other scopes do not digest.
            around.prior.cache = None;
        }
        let ResolvedStage { stage, operations, readers } = &runnable;
        let declared_bytes: Vec<u64> = operations.iter().map(|op| op.memory_bytes(work.pixels)).collect();
        let bytes = task_bytes(stage, operations, &declared_bytes, work.pixels, &around.estimates);
        let inputs = inputs(stage, &work);
        let run = BucketExecution::new(stage, &work, bytes, around.active_paths)?;
        let costs = DeclaredCosts::new(operations, readers, work.pixels);
        let worth = KeyPolicy::new(work.sharing, stage, &costs, work.pixels, around.prior.cache.is_some());
        let (worth, run) = match (worth, &around.directory) {
            (Some(worth), Some(_)) => {
                let levels = worth.keyed.clone();
                let paths = paths(stage, operations, &work, &around.costs);
                let run = run.with_gate(levels).with_paths(paths, TAIL_TASKS);
                (Some(worth.for_cluster(work.sharing, stage, &costs)), run)
            }
            (worth, _) => (worth, run),
        };
        let ResolvedStage { stage, operations, .. } = runnable;
        let (number, pixels, scope) = (work.stage, work.pixels, work.sharing);
        let work = work.instances.into_iter().map(|instance| (instance.id, instance)).collect();
        let outputs = LiveOutputs::new(Arc::clone(&around.ledger), Arc::clone(&around.results));
        Ok(Self {
            study,
            lease,
            number,
            stage,
            operations,
            pixels,
            work,
            run,
            declared_bytes,
            scope,
            inputs,
            outputs,
            worth,
            inputs_loaded: false,
            resolving: HashMap::new(),
            claims: HashMap::new(),
            recomputed: HashSet::new(),
            guard_inputs: HashMap::new(),
            ran: Vec::new(),
            around,
        })
    }

    /// Returns the regions that the bucket reads, each once, with their bytes.
    pub fn inputs(&self) -> &[(RegionKey, u64)] {
        &self.inputs
    }

    fn demand(&self) -> BucketDemand {
        let (local_bytes, missing_bytes) = input_bytes(&self.around.ram, &self.inputs);
        let foreseen = self.run.demand(missing_bytes);
        BucketDemand {
            tail: TailDemand { waits: !self.resolving.is_empty(), ..foreseen.tail },
            held_bytes: self.outputs.bytes(),
            local_bytes,
            next_time: self.next_time(),
            ..foreseen
        }
    }

    /// Begins a task that has a slot, unless its guard skips it.
    fn begin(&mut self, slot: SlotId, call: TaskRequest, ctx: &mut Context<Self>) {
        match self.stage.tasks[call.task].guard {
            Some(_) => self.begin_guarded(slot, call, ctx),
            None => self.begin_unguarded(slot, call, ctx),
        }
    }

    /// Begins a task that has a slot: takes its outputs from the task results, waits for another bucket that computes them,
    /// looks it up in the result directory, or runs it.
    fn begin_unguarded(&mut self, slot: SlotId, call: TaskRequest, ctx: &mut Context<Self>) {
        if self.is_keyed(call.task) {
            // The first task of a bucket loads the inputs for the other tasks: the grant admitted them. It has its key, and is
            // the same task as that of another bucket, only afterwards.
            if call.brings_inputs && missing_bytes(&self.around.ram, &self.inputs) > 0 {
                return self.load_inputs(slot, call, ctx);
            }
            self.inputs_loaded = true;
        }
        let keys = self.worth.is_some().then(|| self.keys(&call)).flatten();
        let shared = keys.filter(|_| self.is_keyed(call.task));
        let is_claimed = self.take_claim(call.node, shared.map(|keys| keys.key));
        let Some(TaskKeys { key, origin }) = shared else {
            return self.start(slot, call, Execution::Run { keys, shared: false, found: None }, ctx);
        };
        if is_claimed {
            return self.start(slot, call, Execution::Run { keys, shared: true, found: None }, ctx);
        }
        // Locked from the lookup until `begin`, so that two buckets cannot both run the task.
        let mut results = self.outputs.results();
        if let Some((outputs, from)) = results.shelf.acquire(&key, &call.requested) {
            let reused = self.reuse_source(&results, from, TaskKeys { key, origin });
            let ran_for = results.ran_for(&key, self.study);
            // Released first: `end` locks the results again.
            drop(results);
            let how = Execution::Found { outputs, origin, reused, ran_for };
            if !self.given_fetches(&call).is_empty() {
                return self.start(slot, call, how, ctx);
            }
            return self.end(slot, &call, how, None, None);
        }
        if results.is_running(&key) {
            results.wait(key, ctx.address().recipient(), call.node);
            drop(results);
            self.run.suspend(call.node);
            return self.report_slot_free(slot);
        }
        let found = results.find_stored(&key, &call.requested);
        results.begin(key);
        drop(results);
        let is_looked_up = self.looks_up() && !self.recomputed.contains(&call.node);
        if let (Some(keys), true, None) = (shared, is_looked_up, &found) {
            return self.look_up_started(slot, call, keys, ctx);
        }
        self.start(slot, call, Execution::Run { keys, shared: true, found }, ctx);
    }

    /// Returns the source of a result in the cache of this worker, by the provenance of the task that ran.
    fn reuse_source(&self, results: &TaskResults, from: TaskKey, keys: TaskKeys) -> ReuseSource {
        match from == keys.origin {
            _ if results.is_from_before(self.study.study, &keys.key) => ReuseSource::Before,
            true => ReuseSource::Dataflow,
            false => ReuseSource::Value,
        }
    }

    /// Loads the inputs of a task, then runs it. The first task of a bucket waits for all inputs of the bucket, because its
    /// grant admitted them.
    fn start(&mut self, slot: SlotId, call: TaskRequest, how: Execution, ctx: &mut Context<Self>) {
        if let Execution::Run { keys, shared, found: None } = how
            && self.recompute_inputs(slot, &call, keys.filter(|_| shared))
        {
            return;
        }
        let storage = self.around.storage.clone();
        let brought: Vec<_> = match call.brings_inputs {
            true => self.inputs.iter().map(|(key, _)| storage.send(GetRegion(*key))).collect(),
            false => Vec::new(),
        };
        let to_run = match how {
            Execution::Run { keys, ref found, .. } => {
                let spill = self.around.spill.as_ref();
                let back = found.as_ref().map(|found| StoredOutputs::new(spill, found));
                let job = self.to_run(slot, &call, keys);
                // Decoding or reading takes longer than an inline task may.
                Some(TaskJob { short: job.short && back.is_none(), back, ..job })
            }
            Execution::Found { .. } | Execution::Skipped { .. } => None,
        };
        let given = match to_run {
            Some(_) => RemoteFetches::default(),
            None => self.given_fetches(&call),
        };
        let run = async move {
            for region in brought {
                // The task that reads the region detects a failed load.
                let _ = region.await;
            }
            match to_run {
                Some(to_run) => to_run.run(&storage).await,
                None => JobResult { result: None, fetched: given.fetch().await },
            }
        };
        // A finished actor is not stopped: granted slots may still be in its mailbox, and each must return to the worker.
        // The actor ends when the worker drops its address and the mailbox is empty.
        ctx.spawn(
            run.into_actor(self)
                .map(move |done, actor, ctx| actor.end_with_given(slot, call, how, done, ctx)),
        );
    }

    fn to_run(&self, slot: SlotId, call: &TaskRequest, keys: Option<TaskKeys>) -> TaskJob {
        let find = |input: &InputLocation| match *input {
            InputLocation::Task(output) => match self.outputs.region(output) {
                Some(region) => LoadedInput::Here(Arc::clone(region)),
                None if self.outputs.remote(output).is_some() => LoadedInput::Remote(output),
                None => LoadedInput::Missing,
            },
            InputLocation::Stage { instance, input } => {
                let work = self.work.get(&instance);
                work.map_or(LoadedInput::Missing, |work| LoadedInput::Stored(work.inputs[input]))
            }
        };
        let recall = self.cache_lookup(call, keys);
        // A trace in the task cache names the digests of all outputs.
        let digests = match (&recall, &self.worth) {
            (Some(_), _) => vec![true; call.requested.len()],
            // Workers that fetch an output verify its digest.
            (None, Some(worth)) if self.around.directory.is_some() && worth.keyed[call.task] => {
                call.requested.clone()
            }
            (None, Some(worth)) => {
                worth.digests[call.task].iter().zip(&call.requested).map(|(a, b)| *a && *b).collect()
            }
            (None, None) => Vec::new(),
        };
        let short = recall.is_none() && self.runs_inline(call, &digests);
        let task = &self.stage.tasks[call.task];
        TaskJob {
            task: self.around.slots[slot.index()].clone(),
            name: task.name.clone(),
            operation: Arc::clone(&self.operations[call.task]),
            inputs: call.inputs.iter().map(find).collect(),
            remote: self.fetches(call),
            arguments: call.arguments.clone(),
            digests,
            recall,
            back: None,
            short,
            device: self.device_call(slot, call),
            span: self.span(call, task),
        }
    }

    /// Span of a task, at trace level.
    fn span(&self, call: &TaskRequest, task: &Task) -> Span {
        trace_span!(
            parent: &self.around.span,
            "task",
            node = call.node.0,
            task = task.name,
            operation = task.operation
        )
    }

    fn report_slot_free(&mut self, slot: SlotId) {
        self.report_task_ended(slot, None);
    }

    fn report_task_ended(&mut self, slot: SlotId, download: Option<u64>) {
        self.update_device_tasks();
        let (lease, demand, offers) = (self.lease, self.demand(), self.offers());
        self.around.worker.do_send(StageEvent::SlotFree { slot, download, lease, demand, offers });
    }

    fn report_demand(&mut self) {
        self.update_device_tasks();
        let (lease, demand, offers) = (self.lease, self.demand(), self.offers());
        self.around.worker.do_send(StageEvent::Demand { lease, demand, offers });
    }

    /// Handles the end of a task: reused, run, failed, or not run because no holder sent the output `lost`.
    fn end(
        &mut self,
        slot: SlotId,
        call: &TaskRequest,
        how: Execution,
        result: Option<TaskResult>,
        lost: Option<OutputId>,
    ) {
        let download = result.as_ref().and_then(|result| result.download);
        match (how, result) {
            (Execution::Found { outputs, .. }, _) if lost.is_some() => {
                let mut results = self.outputs.results();
                let held = outputs.iter().flatten();
                held.for_each(|(held, _)| _ = results.shelf.release(&held.identity));
            }
            (Execution::Found { outputs, origin, reused, ran_for }, _) => {
                self.report(call, TaskOutcome::Reused(reused), ran_for, 0.0);
                let id = |output| OutputId { node: call.node, output };
                self.outputs.add_shelved(outputs, id, |output| provenance_id(&origin, output));
                self.run.handle_done(call.node);
            }
            (Execution::Skipped { passed }, _) => {
                if lost.is_none() {
                    self.end_skipped(call, passed);
                }
            }
            (Execution::Run { keys, shared, found }, Some(result)) => {
                self.end_run(call, keys, (shared, found), result);
            }
            (Execution::Run { keys, shared, .. }, None) => {
                debug_assert!(lost.is_some(), "a run has a result, or an input is lost");
                keys.iter().filter(|_| shared).for_each(|keys| self.abandon(keys.key));
            }
        }
        if let Some(lost) = lost {
            self.handle_lost_output(lost, call.node);
        }
        self.follow();
        // Last: the demand includes the outputs, which the worker counts from now on instead of the reservation.
        self.report_task_ended(slot, download);
    }
}

impl Actor for StageActor {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.report_demand();
    }
}

impl Handler<SlotGranted> for StageActor {
    type Result = ();

    fn handle(&mut self, SlotGranted { slot, node }: SlotGranted, ctx: &mut Self::Context) {
        let missing = missing_bytes(&self.around.ram, &self.inputs);
        match self.run.start_task(&self.stage, node, missing) {
            Some(call) => {
                self.begin(slot, call, ctx);
                // After `begin`, so that this demand counts the grant: the worker distrusts one that does not. In a future, so
                // that the task reaches its slot before the worker handles the demand.
                ctx.spawn(
                    std::future::ready(()).into_actor(self).map(|(), actor, ctx| actor.send_demand(ctx)),
                );
            }
            // The task was canceled meanwhile, so the slot returns to the worker.
            None => self.report_slot_free(slot),
        }
    }
}

impl Handler<ResumeTask> for StageActor {
    type Result = ();

    fn handle(&mut self, ResumeTask(node): ResumeTask, ctx: &mut Self::Context) {
        self.run.resume(node);
        self.send_demand(ctx);
    }
}
