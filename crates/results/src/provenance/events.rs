//! Events of an execution, as bytes of a block. Numbers are differences to those before them in the block, so that most
//! take one byte, and a block can be read without the others.

use super::bytes::{Cursor, put, put_difference, put_text};
use pleach_dispatch::SlotKind;
use pleach_dispatch::directory::MemberId;
use pleach_dispatch::message::{ReuseSource, TaskOutcome, TaskReport, TaskSource};
use pleach_dispatch::study::{InstanceEnd, InstanceReport, WorkerReports};
use pleach_dispatch::{InstanceId, LeaseId};
use std::collections::{BTreeSet, HashMap};

/// Event codes.
const WORKER: u8 = 0;
const REPORT: u8 = 1;
const REOPENED: u8 = 2;
const LOST: u8 = 3;

/// Bits of a task's first byte: index of the task (4), instance equal to that of the report (1), outcome (3).
const TASK_BITS: u8 = 4;

/// Index that stands for a larger one, which follows.
const LARGE_TASK: u8 = (1 << TASK_BITS) - 1;

const OWN_INSTANCE: u8 = 1 << TASK_BITS;

const OUTCOME_SHIFT: u8 = TASK_BITS + 1;

/// Code of a skipped task.
const SKIPPED: u8 = 6;

/// Code of an execution on an accelerator.
const ACCELERATED: u8 = 7;

/// Levels of reuse, by their code less 1. Code 0 is an execution on a core.
const LEVELS: [ReuseSource; 5] =
    [ReuseSource::Dataflow, ReuseSource::Value, ReuseSource::Cache, ReuseSource::Before, ReuseSource::Peer];

/// Writer of events into one block.
#[derive(Debug, Default)]
pub(super) struct EventWriter {
    pub(super) bytes: Vec<u8>,
    workers: HashMap<String, u64>,
    lease: u64,
    instance: u64,
    started: u64,
}

impl EventWriter {
    /// Returns the number of a worker in this block.
    fn worker(&mut self, name: &str) -> u64 {
        if let Some(number) = self.workers.get(name) {
            return *number;
        }
        let number = self.workers.len() as u64;
        self.bytes.push(WORKER);
        put_text(&mut self.bytes, name);
        self.workers.insert(name.to_owned(), number);
        number
    }

    fn put_instance(&mut self, instance: u32) {
        put_difference(&mut self.bytes, instance.into(), self.instance);
        self.instance = instance.into();
    }

    fn put_lease(&mut self, lease: LeaseId) {
        put_difference(&mut self.bytes, lease.0, self.lease);
        self.lease = lease.0;
    }

    pub(super) fn report(&mut self, all: &WorkerReports<'_>) {
        let worker = self.worker(all.worker);
        // Before the events, because an event has no other event within it.
        let holder = |task: &TaskReport| match task.provenance.source {
            Some(TaskSource::Holder(member)) => all.members.get(&member).map(String::as_str),
            _ => None,
        };
        all.tasks().filter_map(holder).for_each(|name| _ = self.worker(name));
        all.reports.iter().for_each(|report| self.instance(worker, report, all.members));
    }

    fn instance(&mut self, worker: u64, report: &InstanceReport<'_>, members: &HashMap<MemberId, String>) {
        let end = match report.end {
            InstanceEnd::Finished => 0,
            InstanceEnd::Failed => 1,
            InstanceEnd::MissingInput => 2,
            InstanceEnd::Late => 3,
            InstanceEnd::Returned => 4,
        };
        self.bytes.push(REPORT | end << 4);
        put(&mut self.bytes, worker);
        self.put_lease(report.lease);
        self.put_instance(report.instance.0);
        put(&mut self.bytes, report.tasks.len() as u64);
        report.tasks.iter().for_each(|task| self.task(task, report.instance, members));
    }

    fn task(&mut self, task: &TaskReport, instance: InstanceId, members: &HashMap<MemberId, String>) {
        let provenance = task.provenance;
        let is_own = provenance.instance == instance.0;
        let outcome = match task.done {
            TaskOutcome::Ran { .. } => match provenance.device {
                SlotKind::Core => 0,
                SlotKind::Accelerator => ACCELERATED,
            },
            TaskOutcome::Reused(level) => {
                1 + LEVELS.iter().position(|other| *other == level).unwrap_or_default() as u8
            }
            TaskOutcome::Skipped => SKIPPED,
        };
        let small = u8::try_from(task.task).ok().filter(|task| *task < LARGE_TASK);
        let own = if is_own { OWN_INSTANCE } else { 0 };
        self.bytes.push(small.unwrap_or(LARGE_TASK) | own | outcome << OUTCOME_SHIFT);
        if small.is_none() {
            put(&mut self.bytes, task.task.into());
        }
        if !is_own {
            put_difference(&mut self.bytes, provenance.instance.into(), instance.0.into());
        }
        match (task.done, provenance.source) {
            (TaskOutcome::Ran { seconds, .. }, _) => {
                put_difference(&mut self.bytes, provenance.started_micros, self.started);
                self.started = provenance.started_micros;
                put(&mut self.bytes, (seconds * 1e6).round() as u64);
            }
            (TaskOutcome::Reused(ReuseSource::Peer), source) => {
                let holder = match source {
                    Some(TaskSource::Holder(member)) => members.get(&member),
                    _ => None,
                };
                let holder = holder.and_then(|name| self.workers.get(name));
                put(&mut self.bytes, holder.map_or(0, |number| number + 1));
            }
            (TaskOutcome::Reused(ReuseSource::Dataflow | ReuseSource::Value), source) => match source {
                // 0 is no source, so that differences start at 1.
                Some(TaskSource::Instance(source)) => {
                    put(&mut self.bytes, 1);
                    put_difference(&mut self.bytes, source.0.into(), provenance.instance.into());
                }
                _ => put(&mut self.bytes, 0),
            },
            (TaskOutcome::Reused(_) | TaskOutcome::Skipped, _) => {}
        }
    }

    pub(super) fn reopened(&mut self, instance: InstanceId) {
        self.bytes.push(REOPENED);
        self.put_instance(instance.0);
    }

    pub(super) fn lost(&mut self, worker: &str, lease: LeaseId, instances: &BTreeSet<InstanceId>) {
        let worker = self.worker(worker);
        self.bytes.push(LOST);
        put(&mut self.bytes, worker);
        self.put_lease(lease);
        put(&mut self.bytes, instances.len() as u64);
        instances.iter().for_each(|instance| self.put_instance(instance.0));
    }
}

/// A recorded event. Workers are numbers in the reader's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Report { worker: usize, lease: u64, instance: u32, end: InstanceEnd, tasks: Vec<TaskEvent> },
    Reopened(u32),
    Lost { worker: usize, lease: u64, instances: Vec<u32> },
}

/// A task of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskEvent {
    pub(super) task: u32,
    /// First instance of the bucket that needs the task.
    pub(super) instance: u32,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Executed {
        started_micros: u64,
        micros: u64,
        device: SlotKind,
    },
    Reused {
        level: ReuseSource,
        /// Instance that the task ran for.
        from: Option<u32>,
        /// Worker that had the result.
        holder: Option<usize>,
    },
    /// Its guard decided that it does not run.
    Skipped,
}

/// Names of workers, in the order of their first event.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerNames(pub(super) Vec<String>);

impl WorkerNames {
    fn number(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|other| other == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }
}

/// Reader of the events of one block.
struct EventReader<'a> {
    cursor: Cursor<'a>,
    /// Numbers of this block's workers in the reader's list.
    workers: Vec<usize>,
    lease: u64,
    instance: u64,
    started: u64,
}

/// Calls `handle` for each event of a block. Returns whether the block is valid to its end.
pub(super) fn read(block: &[u8], names: &mut WorkerNames, mut handle: impl FnMut(Event)) -> bool {
    let mut reader =
        EventReader { cursor: Cursor(block), workers: Vec::new(), lease: 0, instance: 0, started: 0 };
    while !reader.cursor.0.is_empty() {
        match reader.event(names) {
            Some(Some(event)) => handle(event),
            Some(None) => {}
            None => return false,
        }
    }
    true
}

impl EventReader<'_> {
    fn event(&mut self, names: &mut WorkerNames) -> Option<Option<Event>> {
        let code = self.cursor.byte()?;
        Some(Some(match code & 0xf {
            WORKER => {
                let name = self.cursor.text()?;
                self.workers.push(names.number(name));
                return Some(None);
            }
            REPORT => {
                let end = match code >> 4 {
                    0 => InstanceEnd::Finished,
                    1 => InstanceEnd::Failed,
                    2 => InstanceEnd::MissingInput,
                    4 => InstanceEnd::Returned,
                    _ => InstanceEnd::Late,
                };
                let (worker, lease, instance) = (self.worker()?, self.lease()?, self.instance()?);
                let count = self.cursor.count()?;
                let tasks = (0..count).map(|_| self.task(instance)).collect::<Option<Vec<_>>>()?;
                Event::Report { worker, lease, instance, end, tasks }
            }
            REOPENED => Event::Reopened(self.instance()?),
            LOST => {
                let (worker, lease) = (self.worker()?, self.lease()?);
                let count = self.cursor.count()?;
                let instances = (0..count).map(|_| self.instance()).collect::<Option<Vec<_>>>()?;
                Event::Lost { worker, lease, instances }
            }
            _ => return None,
        }))
    }

    fn worker(&mut self) -> Option<usize> {
        let number = self.cursor.number()?;
        self.workers.get(usize::try_from(number).ok()?).copied()
    }

    fn lease(&mut self) -> Option<u64> {
        self.lease = self.cursor.difference(self.lease)?;
        Some(self.lease)
    }

    fn instance(&mut self) -> Option<u32> {
        self.instance = self.cursor.difference(self.instance)?;
        self.instance.try_into().ok()
    }

    fn task(&mut self, instance: u32) -> Option<TaskEvent> {
        let first = self.cursor.byte()?;
        let task = match first & LARGE_TASK {
            LARGE_TASK => self.cursor.small()?,
            task => task.into(),
        };
        let instance = match first & OWN_INSTANCE {
            0 => self.cursor.difference(instance.into())?.try_into().ok()?,
            _ => instance,
        };
        let outcome = match first >> OUTCOME_SHIFT {
            code @ (0 | ACCELERATED) => {
                self.started = self.cursor.difference(self.started)?;
                let device = if code == ACCELERATED { SlotKind::Accelerator } else { SlotKind::Core };
                Outcome::Executed { started_micros: self.started, micros: self.cursor.number()?, device }
            }
            SKIPPED => Outcome::Skipped,
            code => {
                let level = *LEVELS.get(usize::from(code) - 1)?;
                let (mut from, mut holder) = (None, None);
                match level {
                    ReuseSource::Peer => {
                        let number = usize::try_from(self.cursor.number()?).ok()?;
                        holder = number.checked_sub(1).and_then(|number| self.workers.get(number)).copied();
                    }
                    ReuseSource::Dataflow | ReuseSource::Value if self.cursor.number()? > 0 => {
                        from = Some(self.cursor.difference(instance.into())?.try_into().ok()?);
                    }
                    _ => {}
                }
                Outcome::Reused { level, from, holder }
            }
        };
        Some(TaskEvent { task, instance, outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::message::TaskProvenance;
    use proptest::prelude::*;

    fn task() -> impl Strategy<Value = (TaskReport, u8)> {
        (0u32..20, 0u32..9, 0u8..8, any::<u32>(), 0u64..1 << 50, 0u32..1 << 30).prop_map(
            |(task, instance, outcome, from, started, micros)| {
                let seconds = f64::from(micros) * 1e-6;
                let (done, source) = match outcome {
                    0 | ACCELERATED => (
                        TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 },
                        None,
                    ),
                    SKIPPED => (TaskOutcome::Skipped, None),
                    level => {
                        let source = match from % 3 {
                            0 => None,
                            1 => Some(TaskSource::Instance(InstanceId(from))),
                            _ => Some(TaskSource::Holder(MemberId(u64::from(from % 2)))),
                        };
                        (TaskOutcome::Reused(LEVELS[usize::from(level) - 1]), source)
                    }
                };
                let started_micros = if matches!(outcome, 0 | ACCELERATED) { started } else { 0 };
                let device = if outcome == ACCELERATED { SlotKind::Accelerator } else { SlotKind::Core };
                let provenance = TaskProvenance { instance, started_micros, source, device };
                (TaskReport { task, stage: 0, done, cache_seconds: 0.0, provenance }, outcome)
            },
        )
    }

    proptest! {
        #[test]
        fn reports_are_read_back(
            reports in prop::collection::vec((0usize..3, any::<u64>(), 0u32..9, prop::collection::vec(task(), 0..4)), 0..8),
            lost in prop::collection::btree_set(0u32..99, 0..5),
        ) {
            let members = HashMap::from([(MemberId(0), "held".to_owned())]);
            let mut writer = EventWriter::default();
            let mut expected = Vec::new();
            for (worker, lease, instance, tasks) in &reports {
                let (worker, lease, instance) = (["a", "b", "c"][*worker], LeaseId(*lease), InstanceId(*instance));
                let tasks: Vec<TaskReport> = tasks.iter().map(|(task, _)| *task).collect();
                let reports = &[InstanceReport { lease, instance, end: InstanceEnd::Late, tasks: &tasks }];
                writer.report(&WorkerReports { worker, members: &members, reports });
                writer.reopened(instance);
                expected.push((worker, lease, instance, tasks));
            }
            let gone: BTreeSet<InstanceId> = lost.iter().map(|id| InstanceId(*id)).collect();
            writer.lost("c", LeaseId(7), &gone);
            let mut names = WorkerNames(vec!["before".to_owned()]);
            let mut events = Vec::new();
            prop_assert!(read(&writer.bytes, &mut names, |event| events.push(event)));
            prop_assert_eq!(events.len(), 2 * expected.len() + 1);
            for (place, (worker, lease, instance, tasks)) in expected.iter().enumerate() {
                prop_assert_eq!(&events[2 * place + 1], &Event::Reopened(instance.0));
                let Event::Report { worker: by, lease: under, instance: of, end, tasks: found } = &events[2 * place]
                else { panic!("no report") };
                prop_assert_eq!((names.0[*by].as_str(), *under, *of), (*worker, lease.0, instance.0));
                prop_assert_eq!(*end, InstanceEnd::Late);
                prop_assert_eq!(found.len(), tasks.len());
                for (found, task) in found.iter().zip(tasks) {
                    prop_assert_eq!((found.task, found.instance), (task.task, task.provenance.instance));
                    let expected = match (task.done, task.provenance.source) {
                        (TaskOutcome::Ran { seconds, .. }, _) => Outcome::Executed {
                            started_micros: task.provenance.started_micros,
                            micros: (seconds * 1e6).round() as u64,
                            device: task.provenance.device,
                        },
                        (TaskOutcome::Reused(level @ ReuseSource::Peer), Some(TaskSource::Holder(MemberId(0)))) => {
                            let holder = names.0.iter().position(|name| name == "held");
                            Outcome::Reused { level, from: None, holder }
                        }
                        (
                            TaskOutcome::Reused(level @ (ReuseSource::Dataflow | ReuseSource::Value)),
                            Some(TaskSource::Instance(from)),
                        ) => Outcome::Reused { level, from: Some(from.0), holder: None },
                        (TaskOutcome::Reused(level), _) => Outcome::Reused { level, from: None, holder: None },
                        (TaskOutcome::Skipped, _) => Outcome::Skipped,
                    };
                    prop_assert_eq!(found.outcome, expected);
                }
            }
            let Some(Event::Lost { worker, lease, instances }) = events.last() else { panic!("no loss") };
            prop_assert_eq!((names.0[*worker].as_str(), *lease), ("c", 7));
            prop_assert_eq!(instances, &lost.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn noise_is_read_or_refused(noise in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&noise, &mut WorkerNames::default(), |_| {});
        }
    }
}
