//! Suspect instances: isolation under constant load, and the crash limit.

use super::{Granted, Step, World, choose};
use pleach_dispatch::{InstanceId, WorkerId};
use std::collections::BTreeSet;

impl World {
    /// Loses `times` workers with the first instance of the first study, which makes it suspect.
    pub(crate) fn lose_with_the_first(&mut self, times: usize) {
        for _ in 0..times {
            let lost = self.join_good(1);
            self.ask(lost, 1);
            assert!(self.granted().iter().any(|granted| granted.instance == InstanceId(0)));
            self.leave(lost, true);
        }
    }

    /// Keeps workers under constant load: they request more each second, before they are done. Asserts that the first
    /// instance gets a worker long before the end of the study.
    pub(crate) fn keep_busy(&mut self, workers: &[(WorkerId, u32)], order: &[usize]) {
        let has_first = |granted: &Granted| granted.instance == InstanceId(0);
        let alone = self.join_good(1);
        self.ask(alone, 1);
        assert!(self.granted().iter().any(has_first), "who has nothing gets it");
        workers.iter().for_each(|(worker, slots)| self.ask(*worker, *slots));
        self.leave(alone, true);
        // 20 s: the time until an instance counts as overdue, the instances that the least busy worker still has then,
        // and a margin.
        for which in order.iter().take(20) {
            if self.granted().iter().any(has_first) {
                return;
            }
            self.step(Step::Tick { milliseconds: 1000 });
            for (worker, _) in workers {
                let own: Vec<Granted> =
                    self.granted().into_iter().filter(|granted| granted.worker == *worker).collect();
                if !own.iter().any(has_first) {
                    self.ask(*worker, 1);
                }
                if let Some(report) = choose(&own, *which) {
                    self.report(report, true);
                }
            }
        }
        assert!(self.granted().iter().any(has_first), "left to the end");
    }

    /// Finishes the study with one worker at a time. `poison` crashes every worker that starts it.
    pub(crate) fn finish_with_poison(&mut self, poison: usize, slots: u32) {
        let plan = &self.plans[0];
        let poison = InstanceId((poison % plan.instances.len()) as u32);
        let all = plan.instances.len() as u64;
        let mut killed = 0;
        let mut worker = None;
        for _ in 0..50 * all {
            if self.audit.studies().next().is_none() {
                break;
            }
            let at_work = match worker {
                Some(worker) => worker,
                None => *worker.insert(self.join_good(slots)),
            };
            self.ask(at_work, 1);
            let granted = self.granted();
            assert!(!granted.is_empty(), "there is work, and none is given");
            for granted in granted {
                if granted.instance == poison {
                    killed += 1;
                    self.leave(at_work, true);
                    worker = None;
                    break;
                }
                self.report(granted, true);
            }
        }
        let reads: BTreeSet<InstanceId> = self.failed.iter().map(|(_, instance)| *instance).collect();
        assert_eq!(killed, 5, "given up after so many workers");
        assert!(reads.contains(&poison));
        // The instances that fail with it are its direct and indirect readers.
        let plan = &self.plans[0];
        let mut struck = BTreeSet::from([poison]);
        for (id, instance) in plan.instances.enumerate() {
            if instance.parents.iter().any(|parent| struck.contains(parent)) {
                struck.insert(id);
            }
        }
        assert_eq!(reads, struck);
        assert!(self.finished + reads.len() as u64 >= all, "everything else is done");
    }
}
