//! The manager's side: messages of workers, and the manager's effects.

use super::{Due, ManagerMessage, STUDY, SharingCluster, TICK_US, WorkerMessage};
use crate::event::{Event, ManagerReply};
use pleach_dispatch::directory::MemberChange;
use pleach_dispatch::manager::{Effect, WorkerInfo};
use pleach_dispatch::study::Effect as Happened;
use std::collections::BTreeSet;

impl SharingCluster {
    pub(super) fn join(&mut self, number: usize) {
        if let Ok(ManagerReply::Joined(worker)) = self.apply(Event::Join { facts: WorkerInfo::ANY }) {
            self.nodes[number].member = Some(worker);
            self.by_worker.insert(worker, number);
        }
    }

    pub(super) fn submit(&mut self) -> Result<(), String> {
        self.apply(Event::Submit { study: STUDY, plan: 0, finished: BTreeSet::new() }).map(drop)
    }

    pub(super) fn tick(&mut self) -> Result<(), String> {
        self.at(self.now_us + TICK_US, Due::Tick);
        self.apply(Event::Tick).map(drop)
    }

    /// Removes a lost worker, and publishes its loss to the directories.
    pub(super) fn missed(&mut self, number: usize) -> Result<(), String> {
        if let Some(worker) = self.nodes[number].member.take() {
            self.by_worker.remove(&worker);
            self.apply(Event::Leave { worker, lost: true })?;
        }
        if self.options.shared {
            let change = MemberChange { left: vec![self.nodes[number].id], ..MemberChange::default() };
            for to in 0..self.nodes.len() {
                self.send_to(to, ManagerMessage::Members(change.clone()));
            }
        }
        Ok(())
    }

    pub(super) fn manager_receives(&mut self, number: usize, message: WorkerMessage) -> Result<(), String> {
        // A lost worker's last messages have arrived before its loss.
        let Some(worker) = self.nodes[number].member else { return Ok(()) };
        match message {
            WorkerMessage::Request(buckets, after) => {
                self.apply(Event::Request { worker, buckets, after })?;
            }
            WorkerMessage::Query(path) => {
                self.apply(Event::Query { worker, path_us: path.as_micros() as u64 })?;
            }
            WorkerMessage::Spare(lease, instances, path) => {
                self.stats.steals += u64::from(!instances.is_empty());
                let path_us = path.as_micros() as u64;
                self.apply(Event::Spare { worker, study: STUDY, lease, instances, path_us })?;
            }
            WorkerMessage::Call(call) => self.send_to(number, ManagerMessage::SyncAck(call)),
            WorkerMessage::Done(lease, instance, tasks) => {
                self.stats.finished += 1;
                self.apply(Event::Done { worker, study: STUDY, lease, instance })?;
                if !self.is_over {
                    self.apply(Event::Ran { worker, study: STUDY, instance, tasks })?;
                }
            }
            WorkerMessage::Back(lease, instances) => {
                self.stats.steals += u64::from(!instances.is_empty());
                self.apply(Event::Back { worker, study: STUDY, lease, instances })?;
            }
        }
        Ok(())
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
            Effect::Revoke { worker, lease, .. } => (worker, ManagerMessage::Revoke(lease)),
            Effect::Share { worker, lease, longer_than, .. } => {
                (worker, ManagerMessage::Share(lease, longer_than))
            }
            Effect::QueryAnswer { worker, found } => (worker, ManagerMessage::QueryAnswer(found)),
            Effect::Introduce { worker, .. } => (worker, ManagerMessage::Introduce),
            Effect::Over { worker, .. } => (worker, ManagerMessage::Over),
            Effect::Study(_, Happened::Complete) => {
                self.is_over = true;
                return;
            }
            _ => return,
        };
        if let Some(number) = self.by_worker.get(&worker) {
            self.send_to(*number, message);
        }
    }

    fn send_to(&mut self, number: usize, message: ManagerMessage) {
        let at = self.arrival_us(self.nodes.len(), number);
        self.at(at, Due::ToNode(number, message));
    }

    pub(super) fn send_to_manager(&mut self, number: usize, message: WorkerMessage) {
        let at = self.arrival_us(number, self.nodes.len());
        self.at(at, Due::ToManager(number, message));
    }
}
