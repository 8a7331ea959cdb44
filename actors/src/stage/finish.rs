//! End of tasks and instances: outputs to keep, to store and to report.

use super::execution::TaskKeys;
use super::live_outputs::RegionInfo;
use super::{StageActor, StageEvent};
use crate::storage::RegionUnavailable;
use crate::task::{OutputSource, TaskResult};
use crate::task_results::StoredTask;
use crate::transport::clock::{Clock, SystemClock};
use pleach_dispatch::InstanceId;
use pleach_dispatch::SlotKind;
use pleach_dispatch::message::{
    MissingInput, Report, ReportedEnd, ReuseSource, TaskOutcome, TaskProvenance, TaskReport, TaskSource,
};
use pleach_dispatch::stage::{Effect, OutputId, TaskRequest};
use pleach_regions::{CachedRegion, DataRegion, RegionIdentity, RegionKey, TaskKey, provenance_id};
use std::sync::Arc;
use std::time::Duration;

/// A region to store, with its identity if known.
type Put = (RegionKey, Arc<DataRegion>, Option<RegionIdentity>);

impl StageActor {
    /// Returns the root input of the bucket. All its instances read the same regions.
    pub(super) fn root_input(&self) -> Option<RegionKey> {
        let (key, _) = *self.inputs.first()?;
        let content = self.content_of(key);
        Some(self.outputs.results().root_input(key, content, self.study.study))
    }

    /// Returns whether the identity of an output is the digest of its content. Otherwise it is its provenance, even if the
    /// directory needs the digest.
    fn is_by_content(&self, task: usize, output: usize) -> bool {
        let by_policy = self.worth.as_ref().is_some_and(|worth| worth.digests[task][output]);
        by_policy || self.around.prior.cache.is_some()
    }

    /// Handles the end of a task that has run, or whose outputs were read from a spill tier or the task cache.
    pub(super) fn end_run(
        &mut self,
        call: &TaskRequest,
        keys: Option<TaskKeys>,
        (shared, found): (bool, Option<StoredTask>),
        result: TaskResult,
    ) {
        let TaskResult { seconds, digest_seconds, .. } = result;
        let digests = result.digests.iter().flatten().count() as u32;
        let from = found.map(|found| found.origin);
        let is_same = keys.is_some_and(|keys| from == Some(keys.origin));
        let source = result.source;
        let done = match source {
            OutputSource::Cache => TaskOutcome::Reused(ReuseSource::Cache),
            OutputSource::Below if keys.is_some_and(|keys| self.is_from_before(&keys.key)) => {
                TaskOutcome::Reused(ReuseSource::Before)
            }
            OutputSource::Below if is_same => TaskOutcome::Reused(ReuseSource::Dataflow),
            OutputSource::Below => TaskOutcome::Reused(ReuseSource::Value),
            OutputSource::Run => {
                let predicted_seconds = self.learn(call, &result);
                self.observe(call.task, &result);
                keys.iter().for_each(|keys| self.outputs.results().record_run(self.study.study, &keys.key));
                TaskOutcome::Ran { seconds, predicted_seconds, digests, digest_seconds }
            }
        };
        let below = keys.filter(|_| source == OutputSource::Below);
        let ran_for = below.and_then(|keys| self.outputs.results().ran_for(&keys.key, self.study));
        self.report_run(call, done, (ran_for, result.device), result.cache_seconds);
        let shared = keys.filter(|_| shared);
        let is_ok = result.outputs.is_ok();
        match result.outputs {
            Ok(outputs) => {
                self.keep(call, keys, shared.is_some(), outputs, &result.digests, seconds);
                // Spilled results are listed already.
                if let Some(keys) = shared.filter(|_| source != OutputSource::Below) {
                    self.announce(call, keys, &result.digests, seconds);
                }
                self.run.handle_done(call.node);
            }
            Err(RegionUnavailable::Failed(cause)) => self.run.handle_failed(call.node, &cause),
            Err(RegionUnavailable::Lacks(key)) => self.run.handle_missing_input(call.node, key),
        }
        // After the outputs are in the result cache, because the resumed tasks look them up there.
        match shared {
            Some(keys) if is_ok => self.outputs.results().end(&keys.key),
            Some(keys) => self.abandon(keys.key),
            None => {}
        }
    }

    /// Returns whether an earlier plan of the study has run a task.
    fn is_from_before(&self, key: &TaskKey) -> bool {
        self.outputs.results().is_from_before(self.study.study, key)
    }

    /// Keeps the wanted outputs of a finished task, in the result cache if other buckets may reuse them.
    pub(super) fn keep(
        &mut self,
        call: &TaskRequest,
        keys: Option<TaskKeys>,
        shared: bool,
        outputs: Vec<Option<DataRegion>>,
        digests: &[Option<pleach_regions::Digest>],
        seconds: f64,
    ) {
        let by_content: Vec<bool> =
            (0..call.requested.len()).map(|output| self.is_by_content(call.task, output)).collect();
        let known = |output: usize| {
            let TaskKeys { key, origin } = keys?;
            let digest = digests.get(output).copied().flatten().filter(|_| by_content[output]);
            let identity =
                digest.map_or_else(|| provenance_id(&key, output), |digest| RegionIdentity(digest.0));
            Some(RegionInfo { identity, origin: provenance_id(&origin, output) })
        };
        let wanted = outputs.into_iter().enumerate().map(|(output, region)| {
            let region = Arc::new(region.filter(|_| call.requested[output])?);
            Some((OutputId { node: call.node, output }, region, known(output)))
        });
        if let Some(TaskKeys { key, origin }) = keys.filter(|_| shared) {
            let shelved = wanted.map(|output| {
                let (_, region, known) = output?;
                Some(CachedRegion { identity: known?.identity, region })
            });
            let outputs = shelved.collect();
            let source = self.root_input();
            let ran_for = (self.study, self.run.first_instance(call.node));
            let mut results = self.outputs.results();
            let outputs = results.shelve((key, origin), source, outputs, seconds, ran_for);
            drop(results);
            let id = |output| OutputId { node: call.node, output };
            self.outputs.add_shelved(outputs, id, |output| provenance_id(&origin, output));
        } else {
            wanted.flatten().for_each(|(output, region, known)| self.outputs.add(output, region, known));
        }
    }

    /// Adds a task that did not run to the next report. `source` is the execution that a reused result stems from.
    pub(super) fn report(
        &mut self,
        call: &TaskRequest,
        done: TaskOutcome,
        source: Option<TaskSource>,
        cache_seconds: f64,
    ) {
        self.report_run(call, done, (source, SlotKind::Core), cache_seconds);
    }

    /// Adds a task to the next report. `source` is the execution that a reused result stems from, and `device` the kind of slot
    /// of an execution.
    pub(super) fn report_run(
        &mut self,
        call: &TaskRequest,
        done: TaskOutcome,
        (source, device): (Option<TaskSource>, SlotKind),
        cache_seconds: f64,
    ) {
        let (task, stage) = (call.task as u32, self.number);
        let instance = self.run.first_instance(call.node).0;
        let started_micros = match done {
            TaskOutcome::Ran { seconds, .. } => started_micros(SystemClock.now(), seconds),
            TaskOutcome::Reused(_) | TaskOutcome::Skipped => 0,
        };
        let provenance = TaskProvenance { instance, started_micros, source, device };
        self.ran.push(TaskReport { task, stage, done, cache_seconds, provenance });
    }

    /// Applies the effects of a task's end.
    pub(super) fn follow(&mut self) {
        self.abandon_withdrawn();
        // Stored after the bucket has dropped its own outputs, so that no region is counted twice.
        let mut puts = Vec::new();
        while let Some(effect) = self.run.poll_effect() {
            self.perform(effect, &mut puts);
        }
        // Skipped without outputs: the bucket may be finished and its inputs released.
        if self.worth.is_some()
            && !puts.is_empty()
            && let Some(source) = self.root_input()
        {
            let mut results = self.outputs.results();
            puts.iter().for_each(|(key, _, _)| results.made(*key, source));
        }
        for (key, region, identity) in puts {
            // A repeated insert holds the same bytes: the instance ran again after its worker was lost.
            let _ = self.around.ram.insert_known(key, region, identity);
        }
    }

    /// Returns the outputs of an instance that must outlive this worker, or none if no other place can store them.
    fn durable(&self, instance: InstanceId) -> Vec<RegionKey> {
        let Some(by_default) = self.around.durable else { return Vec::new() };
        let outputs = self.work[&instance].outputs.iter().zip(&self.stage.outputs);
        let kept = outputs.filter(|(plan, output)| plan.stored && output.durable.unwrap_or(by_default));
        kept.map(|(plan, _)| plan.key).collect()
    }

    fn perform(&mut self, effect: Effect, puts: &mut Vec<Put>) {
        let (study, lease, worker) = (self.study, self.lease, self.around.worker.clone());
        match effect {
            Effect::Done { instance, outputs } => {
                let mut results = Vec::new();
                for (plan, output) in self.work[&instance].outputs.iter().zip(outputs) {
                    let region = self.outputs.region(output);
                    // A report without it would count the instance, and its result would be missing.
                    assert!(
                        region.is_some(),
                        "{instance} is done, and its output {output:?} is not in memory"
                    );
                    let Some(region) = region else { continue };
                    if plan.stored {
                        let identity = self.outputs.info(output).map(|known| known.identity);
                        puts.push((plan.key, Arc::clone(region), identity));
                    }
                    if plan.reported
                        && let Ok(table) = region.table()
                    {
                        results.push(table.clone());
                    }
                }
                let tasks = std::mem::take(&mut self.ran);
                let end = ReportedEnd::Done { results, shared: Vec::new() };
                let report = Report { lease, instance, end, tasks };
                let keys = self.durable(instance);
                worker.do_send(match keys.is_empty() {
                    false => StageEvent::Stored(study, report, keys),
                    true => StageEvent::Report(study, report),
                });
            }
            Effect::Failed { instance, cause } => {
                let tasks = std::mem::take(&mut self.ran);
                let report = Report { lease, instance, end: ReportedEnd::Failed(cause), tasks };
                worker.do_send(StageEvent::Report(study, report));
            }
            Effect::Lacking { instance, key } => {
                let tasks = std::mem::take(&mut self.ran);
                let missing = MissingInput { study, lease, instance, key, tasks };
                worker.do_send(StageEvent::MissingInput(missing));
            }
            Effect::Drop(output) => self.outputs.remove(output),
            Effect::Over => {
                let tasks = std::mem::take(&mut self.ran);
                let outputs = self.work.values().flat_map(|instance| &instance.outputs);
                let stored = outputs.filter(|output| output.stored).map(|output| output.key).collect();
                worker.do_send(StageEvent::Over { study, lease, tasks, stored });
            }
        }
    }
}

/// Returns the start of a task that ended just now, in µs since 1970.
fn started_micros(now: Duration, seconds: f64) -> u64 {
    let ran = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    now.saturating_sub(ran).as_micros() as u64
}
