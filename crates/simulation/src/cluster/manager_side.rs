//! What the shell around the manager does: it passes on what arrives, and performs what follows.

use super::{Cluster, Due, Hear, Say};
use crate::audit::Breach;
use crate::event::{Answer, Event};
use pleach_dispatch::StudyId;
use pleach_dispatch::manager::Effect;
use pleach_dispatch::study::Effect as Happened;

impl Cluster {
    /// Tells the manager something and performs what follows.
    pub(super) fn tell(&mut self, event: Event) -> Result<(), Breach> {
        self.tell_and_hear(event).map(|_| ())
    }

    fn tell_and_hear(&mut self, event: Event) -> Result<Answer, Breach> {
        let (answer, effects) = self.observed.tell(self.now_us, event)?;
        for effect in effects {
            self.perform(effect);
        }
        Ok(answer)
    }

    pub(super) fn submit(&mut self, number: usize) -> Result<(), Breach> {
        if !self.submitted.insert(number) || !self.is_up {
            return Ok(());
        }
        let (study, finished) = (StudyId::whole(number as u32), self.journal[number].clone());
        self.tell(Event::Submit { study, plan: number, finished })
    }

    /// Something arrives, if the connection still holds.
    pub(super) fn arrives(&mut self, node: usize, link: u32, say: Say) -> Result<(), Breach> {
        let sender = &self.nodes[node];
        if sender.link != link || !sender.connected || !self.is_up {
            return Ok(());
        }
        if matches!(say, Say::Join) {
            let facts = self.facts(node);
            let Answer::Joined(worker) = self.tell_and_hear(Event::Join { facts })? else { return Ok(()) };
            self.nodes[node].worker = Some(worker);
            self.workers.insert(worker, node);
            return match self.nodes[node].end_us {
                Some(at_us) => self.tell(Event::LeaseEnd { worker, at_us }),
                None => Ok(()),
            };
        }
        let Some(worker) = self.nodes[node].worker else { return Ok(()) };
        match say {
            Say::Join => Ok(()),
            Say::Request(buckets) => self.tell(Event::Request { worker, buckets, after: None }),
            Say::Done(study, lease, instance, tasks) => {
                if let Some((_, unheard)) = self.nodes[node].unheard.get_mut(&lease) {
                    unheard.remove(&instance);
                    if unheard.is_empty() {
                        self.nodes[node].unheard.remove(&lease);
                    }
                }
                self.tell(Event::Done { worker, study, lease, instance })?;
                if tasks.is_empty() || !self.tells_times {
                    return Ok(());
                }
                self.tell(Event::Ran { worker, study, instance, tasks })
            }
            Say::Lacking(study, lease, instance, keys) => {
                self.tell(Event::Lacking { worker, study, lease, instance, keys })
            }
            Say::Back(study, lease, instances) => {
                self.figures.shared += u64::from(!instances.is_empty());
                self.tell(Event::Back { worker, study, lease, instances })
            }
            Say::Copied(study, key) => self.tell(Event::Copied { worker, study, key }),
            Say::Adopt(study, lease, instances) => {
                let adopted = self.tell_and_hear(Event::Adopt { worker, study, lease, instances })?;
                if let Answer::Kept(kept) = adopted {
                    self.send(node, Hear::Kept(lease, kept));
                }
                Ok(())
            }
            Say::Holds(study, keys) => {
                let held = self.tell_and_hear(Event::Holds { worker, study, keys })?;
                if let Answer::Needless(keys) = held {
                    keys.into_iter().for_each(|key| _ = self.nodes[node].held.remove(&(study, key)));
                }
                Ok(())
            }
            Say::Drain => self.tell(Event::Drain { worker }),
            Say::Leave => {
                self.workers.remove(&worker);
                self.nodes[node].worker = None;
                self.nodes[node].connected = false;
                self.tell(Event::Leave { worker, lost: false })
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Assign { worker, study, lease, work, .. } => {
                let instances = work.instances.iter().map(|instance| instance.id).collect();
                self.send_to(worker, Hear::Assign(study, lease, instances, work.elsewhere));
            }
            Effect::Revoke { worker, lease, .. } => {
                self.figures.twins += 1;
                self.send_to(worker, Hear::Revoke(lease));
            }
            Effect::Share { worker, lease, .. } => self.send_to(worker, Hear::Share(lease)),
            // Nobody here asks for second copies.
            Effect::Replicated { .. } => {}
            Effect::Copy { worker, study, key, from, .. } => {
                self.send_to(worker, Hear::Copy(study, key, from))
            }
            Effect::Drain(worker) => self.send_to(worker, Hear::Drain),
            Effect::Dismiss(worker) => self.send_to(worker, Hear::Dismiss),
            Effect::Replan(study) => {
                if self.schedule.replan && self.to_replan.insert(study) {
                    self.at(self.now_us + self.replan_after_us, Due::Replan(study));
                }
            }
            Effect::Study(study, Happened::Finished(instance)) => {
                self.figures.finished += 1;
                self.journal[study.index()].insert(instance);
            }
            Effect::Study(_, Happened::Failed { .. }) => self.figures.failed += 1,
            Effect::Study(study, Happened::Complete) => _ = self.over.insert(study.index()),
            // Knowing a study costs nothing here, and regions that are of no use are not in the way.
            Effect::Introduce { .. } | Effect::Over { .. } | Effect::Study(..) => {}
            Effect::Stop | Effect::Stopped => {}
        }
    }

    fn send_to(&mut self, worker: pleach_dispatch::WorkerId, hear: Hear) {
        if let Some(&node) = self.workers.get(&worker) {
            self.send(node, hear);
        }
    }
}
