//! The manager's side: messages of workers, and the manager's effects.

use super::{Due, HybridCluster, ManagerMessage, STUDY, WorkerMessage};
use crate::event::{Event, ManagerReply};
use pleach_dispatch::manager::{Effect, WorkerInfo};
use pleach_dispatch::study::Effect as StudyEffect;
use std::collections::BTreeSet;

impl HybridCluster {
    pub(super) fn join(&mut self, number: usize) -> Result<(), String> {
        let slots = self.options.nodes[number];
        let facts = WorkerInfo {
            slots: slots.count(),
            accelerators: slots.accelerators,
            device_bytes: slots.device_bytes,
            ..WorkerInfo::ANY
        };
        match self.apply(Event::Join { facts })? {
            ManagerReply::Joined(worker) => {
                self.nodes[number].member = Some(worker);
                self.by_worker.insert(worker, number);
                Ok(())
            }
            reply => Err(format!("node {number} joins, and the manager replies {reply:?}")),
        }
    }

    pub(super) fn submit(&mut self) -> Result<(), String> {
        match self.apply(Event::Submit { study: STUDY, plan: 0, finished: BTreeSet::new() })? {
            ManagerReply::Accepted(true) => Ok(()),
            reply => Err(format!("the manager replies {reply:?} to the plan")),
        }
    }

    pub(super) fn manager_receives(&mut self, number: usize, message: WorkerMessage) -> Result<(), String> {
        let Some(worker) = self.nodes[number].member else {
            return Err(format!("node {number} has not joined, and sends {message:?}"));
        };
        match message {
            WorkerMessage::Request(buckets, after) => {
                self.apply(Event::Request { worker, buckets, after }).map(drop)
            }
            WorkerMessage::Call(call) => {
                self.send_to(number, ManagerMessage::SyncAck(call));
                Ok(())
            }
            WorkerMessage::Done(lease, instance, tasks) => {
                self.stats.finished += 1;
                // The reports of a message precede the end that it may bring.
                self.apply(Event::Ran { worker, study: STUDY, instance, tasks })?;
                self.apply(Event::Done { worker, study: STUDY, lease, instance }).map(drop)
            }
        }
    }

    fn apply(&mut self, event: Event) -> Result<ManagerReply, String> {
        let (reply, effects) = self.manager.apply(self.now_us, event).map_err(|why| why.to_string())?;
        effects.into_iter().for_each(|effect| self.perform(effect));
        Ok(reply)
    }

    fn perform(&mut self, effect: Effect) {
        let (worker, message) = match effect {
            Effect::Assign { worker, lease, work, reason, .. } => {
                (worker, ManagerMessage::Assign(lease, Box::new(work), reason))
            }
            Effect::Introduce { worker, .. } => (worker, ManagerMessage::Introduce),
            Effect::Over { worker, .. } => (worker, ManagerMessage::Over),
            Effect::Study(_, StudyEffect::Complete) => {
                self.is_over = true;
                return;
            }
            // Regions take no room, and no node leaves.
            _ => return,
        };
        if let Some(number) = self.by_worker.get(&worker) {
            self.send_to(*number, message);
        }
    }

    fn send_to(&mut self, number: usize, message: ManagerMessage) {
        let at = self.arrival_us(number, false);
        self.at(at, Due::ToNode(number, message));
    }

    pub(super) fn send_to_manager(&mut self, number: usize, message: WorkerMessage) {
        let at = self.arrival_us(number, true);
        self.at(at, Due::ToManager(number, message));
    }
}
