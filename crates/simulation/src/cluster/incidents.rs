//! Incidents, and their effects on connections.

use super::node::Node;
use super::{BACKOFF_US, Cluster, DueEvent, HOLD_US, IDLE_US, WorkerMessage};
use crate::audit::Violation;
use crate::event::Event;
use crate::scenario::Incident;
use pleach_dispatch::{InstanceId, PlanId};

impl Cluster {
    pub(super) fn incident(&mut self, incident: Incident) -> Result<(), Violation> {
        match incident {
            Incident::Join(spec) => {
                self.nodes.push(Node::new(spec));
                self.at(self.now_us, DueEvent::Connect(self.nodes.len() - 1));
            }
            Incident::Crash { node } => {
                if node < self.nodes.len() {
                    self.crash(node);
                }
            }
            Incident::Partition { node, milliseconds } => {
                if let Some(cut) = self.nodes.get_mut(node).filter(|node| node.up) {
                    cut.cut_until_us = cut.cut_until_us.max(self.now_us + 1000 * milliseconds);
                    let (lost_us, link) = (self.now_us + IDLE_US, cut.link);
                    if cut.cut_until_us >= lost_us {
                        self.at(lost_us, DueEvent::LinkLost(node, link));
                    }
                }
            }
            Incident::LeaseEnd { node, milliseconds } => {
                let end_us = self.now_us + 1000 * milliseconds;
                let Some(here) = self.nodes.get_mut(node).filter(|node| node.up) else { return Ok(()) };
                // An earlier limit stays in force: a later notice does not extend it.
                if here.end_us.is_some_and(|known| known <= end_us) {
                    return Ok(());
                }
                here.end_us = Some(end_us);
                let worker = here.worker.filter(|_| self.is_up);
                self.at(end_us, DueEvent::LeaseEnd(node, end_us));
                if let Some(worker) = worker {
                    self.apply(Event::LeaseEnd { worker, at_us: end_us })?;
                }
            }
            Incident::Drain { node } => {
                if let Some(worker) = self.nodes.get(node).and_then(|node| node.worker).filter(|_| self.is_up)
                {
                    self.apply(Event::Drain { worker })?;
                }
            }
            Incident::Restart { milliseconds } => {
                if self.is_up {
                    self.is_up = false;
                    self.end_replans();
                    for node in 0..self.nodes.len() {
                        self.disconnect(node);
                    }
                    self.at(self.now_us + 1000 * milliseconds, DueEvent::ManagerUp);
                }
            }
            Incident::Cancel { study } => {
                if self.is_up && self.submitted.contains(&study) && self.ended.insert(study) {
                    self.apply(Event::Cancel { study: PlanId::first_round(study as u32) })?;
                }
            }
            Incident::CrashingInstance { study, instance } => {
                self.poison.insert((study, InstanceId(instance)));
            }
        }
        Ok(())
    }

    /// Ends a node at its time limit. The node reports that if it can. Running instances and sole copies are lost.
    pub(super) fn lease_ends(&mut self, node: usize, end_us: u64) {
        let here = &self.nodes[node];
        // An earlier limit has replaced this one, or the node has ended already.
        if !here.up || here.end_us != Some(end_us) {
            return;
        }
        let in_vain = here.runs.values().filter(|run| run.current.is_some() && run.end_us == Some(end_us));
        self.figures.begun_in_vain += in_vain.count() as u64;
        self.say(node, WorkerMessage::Leave);
        self.end(node);
    }

    /// Crashes a node. Its peers notice at the idle timeout of their connections.
    pub(super) fn crash(&mut self, node: usize) {
        if self.nodes[node].up {
            self.end(node);
            let link = self.nodes[node].link;
            self.at(self.now_us + IDLE_US, DueEvent::LinkLost(node, link));
        }
    }

    /// Closes a connection on both ends.
    pub(super) fn link_lost(&mut self, node: usize, link: u32) -> Result<(), Violation> {
        // The node has reconnected since, or its connection is closed already.
        if self.nodes[node].link != link || !self.nodes[node].connected {
            return Ok(());
        }
        let worker = self.nodes[node].worker;
        self.disconnect(node);
        let Some(worker) = worker else { return Ok(()) };
        self.workers.remove(&worker);
        self.figures.lost += 1;
        self.apply(Event::Leave { worker, lost: true })
    }

    fn disconnect(&mut self, node: usize) {
        let here = &mut self.nodes[node];
        (here.connected, here.worker, here.requested) = (false, None, 0);
        let wait = self.random.exponential(BACKOFF_US as f64) as u64;
        self.at(self.now_us + wait, DueEvent::Connect(node));
    }

    /// Restarts the manager with its journal.
    pub(super) fn manager_up(&mut self) -> Result<(), Violation> {
        self.is_up = true;
        self.epoch += 1;
        self.workers.clear();
        self.apply(Event::Start { epoch: self.epoch })?;
        // Hold before Submit: instances with a lease of the earlier manager must not be granted again.
        self.apply(Event::Hold)?;
        let open: Vec<usize> = self.submitted.difference(&self.ended).copied().collect();
        for number in open {
            let (study, finished) = (PlanId::first_round(number as u32), self.journal[number].clone());
            self.apply(Event::Submit { study, plan: number, finished })?;
        }
        self.at(self.now_us + HOLD_US, DueEvent::Resume);
        Ok(())
    }
}
