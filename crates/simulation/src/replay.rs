//! Replay of a log, event by event: the event, its effects, and any violation.

use crate::audit::Violation;
use crate::event::{Event, ManagerReply};
use crate::log::Log;
use crate::recorder::RecordedManager;
use pleach_dispatch::InstanceId;
use pleach_dispatch::manager::Effect;
use pleach_dispatch::study::Effect as Happened;
use serde::Serialize;
use std::collections::BTreeSet;

/// One replayed event of a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Number, counted from 1.
    pub number: usize,
    /// Seconds since the beginning.
    pub seconds: f64,
    /// The event.
    pub event: Event,
    /// The manager's reply, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The effects, as text.
    pub effects: Vec<String>,
    /// The violation, if any: the replay ends with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breach: Option<String>,
}

/// Iterator over the steps of a log.
#[derive(Debug)]
pub struct Replay<'a> {
    log: &'a Log,
    manager: RecordedManager,
    next: usize,
    ended: bool,
}

impl<'a> Replay<'a> {
    /// Creates a replay before its first event.
    #[must_use]
    pub fn new(log: &'a Log) -> Self {
        Self { log, manager: log.manager(), next: 0, ended: false }
    }
}

impl Iterator for Replay<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let said = self.log.events.get(self.next).filter(|_| !self.ended)?;
        self.next += 1;
        let told = self.manager.apply(said.at_us, said.event.clone());
        let (answer, effects, breach): (_, _, Option<Violation>) = match told {
            Ok((answer, effects)) => (in_words(&answer), effects.iter().map(effect_in_words).collect(), None),
            Err(breach) => (None, Vec::new(), Some(breach)),
        };
        // After a violation the manager's state is unreliable, so later events would show follow-up errors only.
        self.ended = breach.is_some();
        Some(Step {
            number: self.next,
            seconds: said.at_us as f64 / 1e6,
            event: said.event.clone(),
            answer,
            effects,
            breach: breach.map(|breach| breach.to_string()),
        })
    }
}

fn in_words(answer: &ManagerReply) -> Option<String> {
    match answer {
        ManagerReply::Nothing | ManagerReply::Counted(true) | ManagerReply::Accepted(true) => None,
        ManagerReply::Joined(worker) => Some(format!("joined as {worker}")),
        ManagerReply::Counted(false) => Some("report rejected".to_owned()),
        ManagerReply::Kept(kept) => Some(format!("continues with {}", list(kept.iter().copied()))),
        ManagerReply::Needless(keys) => Some(format!("{} regions are not needed", keys.len())),
        ManagerReply::Accepted(false) => Some("refused".to_owned()),
    }
}

/// Formats ids as ranges: `1-3 7`.
fn list(ids: impl Iterator<Item = InstanceId>) -> String {
    let ids: BTreeSet<u32> = ids.map(|id| id.0).collect();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => parts.push((id, id)),
        }
    }
    let part = |(first, last): (u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.into_iter().map(part).collect::<Vec<_>>().join(" ")
    }
}

/// Describes an event in one line.
#[must_use]
pub fn event_in_words(event: &Event) -> String {
    match event {
        Event::Start { epoch } => format!("manager start {}", epoch + 1),
        Event::Hold => "grants are suspended until workers have reattached".to_owned(),
        Event::Resume => "the grace period for reattaching ends".to_owned(),
        Event::Submit { study, finished, .. } => {
            format!("{study} is submitted with {} finished instances", finished.len())
        }
        Event::Cancel { study } => format!("{study} is canceled"),
        Event::Join { facts } => format!("a worker with {} slots joins", facts.slots),
        Event::Request { worker, buckets, after: None } => format!("{worker} requests {buckets} buckets"),
        Event::Request { worker, buckets, after: Some(stage) } => {
            format!("{worker} requests {buckets} buckets after stage {stage}")
        }
        Event::Done { worker, study, lease, instance } => {
            format!("{worker} finishes {instance} of {study} under {lease}")
        }
        Event::Failed { worker, study, lease, instance } => {
            format!("{instance} of {study} fails on {worker} under {lease}")
        }
        Event::Lacking { worker, study, lease, instance, keys } => {
            format!("{worker} lacks {} regions for {instance} of {study} under {lease}", keys.len())
        }
        Event::Back { worker, study, lease, instances } => {
            let back = list(instances.iter().copied());
            format!("{worker} returns {back} of {study} under {lease}")
        }
        Event::Query { worker, path_us } => format!("{worker} asks for a path longer than {path_us} us"),
        Event::Spare { worker, study, lease, instances, path_us } => {
            let back = list(instances.iter().copied());
            format!("{worker} returns {back} of {study} under {lease}, with paths of {path_us} us")
        }
        Event::Replanned { study, buckets } => {
            format!("{study} is replanned into {} buckets", buckets.len())
        }
        Event::BucketOverhead { study, overhead_us } => {
            format!("a bucket of {study} has an overhead of {overhead_us} us")
        }
        Event::Drain { worker } => format!("{worker} is asked to drain"),
        Event::Replicate { worker, study, lease, instance, regions } => {
            let regions = regions.len();
            format!("{worker} requests replicas of {regions} regions of {instance} of {study} under {lease}")
        }
        Event::NotCopied { worker, study, key } => {
            format!("{worker} fails to fetch region {key} of {study}")
        }
        Event::Dropped { worker, study, key } => format!("{worker} drops region {key} of {study}"),
        Event::Copied { worker, study, key } => format!("{worker} fetches region {key} of {study}"),
        Event::Leave { worker, lost: false } => format!("{worker} leaves"),
        Event::Leave { worker, lost: true } => format!("{worker} is lost"),
        Event::Adopt { worker, study, lease, instances } => {
            format!("{worker} reattaches with {} of {study} under {lease}", list(instances.iter().copied()))
        }
        Event::Holds { worker, study, keys } => format!("{worker} reports {} regions of {study}", keys.len()),
        Event::LeaseEnd { worker, at_us } => {
            format!("{worker} has a time limit of {} s", *at_us as f64 / 1e6)
        }
        Event::Ran { worker, study, instance, tasks } => {
            format!("{worker} runs {} tasks for {instance} of {study}", tasks.len())
        }
        Event::Tick => "time passes".to_owned(),
        Event::Stop => "the manager stops granting".to_owned(),
    }
}

/// Describes an effect in one line.
#[must_use]
pub fn effect_in_words(effect: &Effect) -> String {
    match effect {
        Effect::Introduce { worker, study } => format!("{study} is introduced to {worker}"),
        Effect::Assign { worker, study, lease, work, .. } => {
            let ids = list(work.instances.iter().map(|instance| instance.id));
            format!("{worker} is granted {ids} of {study} under {lease}")
        }
        Effect::TileShared { worker, tile } => format!("{worker} shares tile {tile} from now on"),
        Effect::Revoke { worker, study, lease } => format!("{lease} of {study} on {worker} is revoked"),
        Effect::QueryAnswer { worker, found } => format!("{worker}: longer path found: {found}"),
        Effect::Share { worker, study, lease, .. } => {
            format!("{worker} is asked to return instances of {lease} of {study}")
        }
        Effect::Replicated { worker, study, lease, instance } => {
            format!("{instance} of {study} under {lease} of {worker} is replicated")
        }
        Effect::Copy { worker, study, key, from, .. } => {
            format!("{worker} is asked to fetch region {key} of {study} from {from}")
        }
        Effect::Study(study, Happened::Release(keys)) => {
            format!("{} regions of {study} are released", keys.len())
        }
        Effect::Study(study, Happened::Finished(instance)) => format!("{instance} of {study} is finished"),
        Effect::Study(study, Happened::Reopened(instance)) => {
            format!("{instance} of {study} is reopened")
        }
        Effect::Study(study, Happened::Failed { instance, origin, cause }) => {
            format!("{instance} of {study} fails because of {origin}: {}: {}", cause.at, cause.cause)
        }
        Effect::Study(study, Happened::Revoke { worker, lease }) => {
            format!("{lease} of {study} on {worker} is revoked")
        }
        Effect::Study(study, Happened::Complete) => format!("{study} is complete"),
        Effect::Over { worker, study } => format!("{study} ends on {worker}"),
        Effect::Replan(study) => format!("{study} needs a replan"),
        Effect::Drain(worker) => format!("{worker} drains"),
        Effect::Dismiss(worker) => format!("{worker} is dismissed"),
        Effect::Stop => "all workers are asked to stop".to_owned(),
        Effect::Stopped => "all workers have stopped".to_owned(),
    }
}
