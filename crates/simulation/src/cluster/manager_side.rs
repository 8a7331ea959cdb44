//! The shell around the manager: delivers messages and performs effects.

use super::{Cluster, ManagerMessage, WorkerMessage};
use crate::audit::Violation;
use crate::event::{Event, ManagerReply};
use pleach_dispatch::PlanId;
use pleach_dispatch::manager::Effect;
use pleach_dispatch::study::Effect as Happened;

impl Cluster {
    /// Applies an event to the manager and performs its effects.
    pub(super) fn apply(&mut self, event: Event) -> Result<(), Violation> {
        self.apply_with_reply(event).map(|_| ())
    }

    fn apply_with_reply(&mut self, event: Event) -> Result<ManagerReply, Violation> {
        let (answer, effects) = self.observed.apply(self.now_us, event)?;
        for effect in effects {
            self.perform(effect);
        }
        Ok(answer)
    }

    pub(super) fn submit(&mut self, number: usize) -> Result<(), Violation> {
        if !self.submitted.insert(number) || !self.is_up {
            return Ok(());
        }
        let (study, finished) = (PlanId::first_round(number as u32), self.journal[number].clone());
        self.apply(Event::Submit { study, plan: number, finished })
    }

    /// Delivers a message to the manager, if its connection still exists.
    pub(super) fn arrives(&mut self, node: usize, link: u32, say: WorkerMessage) -> Result<(), Violation> {
        let sender = &self.nodes[node];
        // The message was in flight when its connection closed or the manager stopped.
        if sender.link != link || !sender.connected || !self.is_up {
            return Ok(());
        }
        if matches!(say, WorkerMessage::Join) {
            let facts = self.facts(node);
            let ManagerReply::Joined(worker) = self.apply_with_reply(Event::Join { facts })? else {
                return Ok(());
            };
            self.nodes[node].worker = Some(worker);
            self.workers.insert(worker, node);
            return match self.nodes[node].end_us {
                // The manager may have missed the notice: it came before the node joined, or to an earlier worker id.
                Some(at_us) => self.apply(Event::LeaseEnd { worker, at_us }),
                None => Ok(()),
            };
        }
        let Some(worker) = self.nodes[node].worker else { return Ok(()) };
        match say {
            WorkerMessage::Join => Ok(()),
            WorkerMessage::Request(buckets) => self.apply(Event::Request { worker, buckets, after: None }),
            WorkerMessage::Done(study, lease, instance, tasks) => {
                // The manager has the report now, so the node does not repeat it after a reconnection.
                if let Some((_, unheard)) = self.nodes[node].unheard.get_mut(&lease) {
                    unheard.remove(&instance);
                    if unheard.is_empty() {
                        self.nodes[node].unheard.remove(&lease);
                    }
                }
                self.apply(Event::Done { worker, study, lease, instance })?;
                if tasks.is_empty() || !self.tells_times {
                    return Ok(());
                }
                self.apply(Event::Ran { worker, study, instance, tasks })?;
                self.learn_bucket_overheads(study)?;
                Ok(())
            }
            WorkerMessage::Lacking(study, lease, instance, keys) => {
                self.apply(Event::Lacking { worker, study, lease, instance, keys })
            }
            WorkerMessage::Back(study, lease, instances) => {
                self.figures.shared += u64::from(!instances.is_empty());
                self.apply(Event::Back { worker, study, lease, instances })
            }
            WorkerMessage::Copied(study, key) => self.apply(Event::Copied { worker, study, key }),
            WorkerMessage::Adopt(study, lease, instances) => {
                let adopted = self.apply_with_reply(Event::Adopt { worker, study, lease, instances })?;
                if let ManagerReply::Kept(kept) = adopted {
                    self.send(node, ManagerMessage::Kept(lease, kept));
                }
                Ok(())
            }
            WorkerMessage::Holds(study, keys) => {
                let held = self.apply_with_reply(Event::Holds { worker, study, keys })?;
                if let ManagerReply::Needless(keys) = held {
                    keys.into_iter().for_each(|key| _ = self.nodes[node].regions.remove(&(study, key)));
                }
                Ok(())
            }
            WorkerMessage::Drain => self.apply(Event::Drain { worker }),
            WorkerMessage::Leave => {
                self.workers.remove(&worker);
                self.nodes[node].worker = None;
                self.nodes[node].connected = false;
                self.apply(Event::Leave { worker, lost: false })
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Assign { worker, study, lease, work, reason } => {
                self.figures.leases += 1;
                let instances = work.instances.iter().map(|instance| instance.id).collect();
                let assigned = ManagerMessage::Assign(study, lease, reason, instances, work.elsewhere);
                self.send_to(worker, assigned);
            }
            Effect::Revoke { worker, lease, .. } => {
                self.figures.twins += 1;
                self.send_to(worker, ManagerMessage::Revoke(lease));
            }
            // Simulated workers do not query.
            Effect::QueryAnswer { .. } => {}
            Effect::Share { worker, lease, .. } => self.send_to(worker, ManagerMessage::Share(lease)),
            // Simulated workers never request replicas.
            Effect::Replicated { .. } => {}
            Effect::Copy { worker, study, key, from, .. } => {
                self.send_to(worker, ManagerMessage::Copy(study, key, from))
            }
            Effect::Drain(worker) => self.send_to(worker, ManagerMessage::Drain),
            Effect::Dismiss(worker) => self.send_to(worker, ManagerMessage::Dismiss),
            Effect::Replan(study) => {
                self.schedule_replan(study);
            }
            Effect::Study(study, Happened::Finished(instance)) => {
                self.figures.finished += 1;
                // Recorded at once: the simulated journal has no delay, so a restart loses no counted instance.
                self.journal[study.index()].insert(instance);
            }
            Effect::Study(_, Happened::Failed { .. }) => self.figures.failed += 1,
            Effect::Study(study, Happened::Complete) => _ = self.ended.insert(study.index()),
            // Simulated workers need no facts of a study, and their memory has no limit.
            // The shared results of simulated workers take no messages.
            Effect::TileShared { .. } => {}
            Effect::Introduce { .. } | Effect::Over { .. } | Effect::Study(..) => {}
            Effect::Stop | Effect::Stopped => {}
        }
    }

    fn send_to(&mut self, worker: pleach_dispatch::WorkerId, hear: ManagerMessage) {
        if let Some(&node) = self.workers.get(&worker) {
            self.send(node, hear);
        }
    }
}
