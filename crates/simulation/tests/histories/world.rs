//! A manager, its audit, and passive workers: their possible messages are known, and steps choose among them.

mod copies;
mod suspected;

use copies::Copying;
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use pleach_simulation::audit::Audit;
use pleach_simulation::event::{Event, ManagerReply, ran};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Submit {
        plan: usize,
    },
    Cancel {
        which: usize,
    },
    /// `lacks`: bits of the stages that the worker cannot run. `memory`: bytes, 3 suffice for any plan.
    Join {
        slots: u32,
        lacks: u8,
        memory: u64,
    },
    Ask {
        worker: usize,
        buckets: u32,
    },
    AskAfter {
        worker: usize,
        stage: u32,
    },
    Report {
        which: usize,
        succeeds: bool,
    },
    /// A duplicate report, or a report of a worker that has left.
    Late {
        which: usize,
        succeeds: bool,
    },
    /// A report in another worker's name.
    Forged {
        which: usize,
    },
    Lacks {
        which: usize,
        keys: u8,
    },
    Back {
        which: usize,
        chosen: u64,
    },
    Replan {
        which: usize,
        chosen: u64,
        size: usize,
    },
    Drain {
        worker: usize,
    },
    Copied {
        which: usize,
        succeeds: bool,
    },
    /// A worker requests replicas of the stored outputs of an instance.
    Replicate {
        which: usize,
    },
    /// A worker drops a replica.
    Dropped {
        worker: usize,
        which: usize,
    },
    Leave {
        worker: usize,
        lost: bool,
    },
    Tick {
        milliseconds: u64,
    },
    /// A worker reports `tasks` task timings for an instance of a study.
    Ran {
        worker: usize,
        which: usize,
        tasks: u32,
        seconds: f64,
    },
    /// A worker learns its time limit.
    LeaseEnd {
        worker: usize,
        milliseconds: u64,
    },
    /// The manager is killed and restarts. Workers selected by `bring` reattach.
    Restart {
        bring: u64,
        early: bool,
    },
}

/// An instance that was granted to a worker and is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Granted {
    study: PlanId,
    lease: LeaseId,
    worker: WorkerId,
    instance: InstanceId,
}

pub(crate) struct World {
    manager: Manager,
    audit: Audit,
    plans: Vec<ExecutionPlan>,
    now: Duration,
    epoch: u32,
    submitted: BTreeMap<PlanId, usize>,
    next_study: u32,
    facts: BTreeMap<WorkerId, WorkerInfo>,
    stale: Vec<Granted>,
    /// Pending fetches of regions.
    copies: Vec<Copying>,
    dismissed: BTreeSet<WorkerId>,
    /// Replan that takes until the next one.
    slow_replan: Option<(PlanId, Vec<BucketPlan>)>,
    failed: BTreeSet<(PlanId, InstanceId)>,
    finished: u64,
}

fn choose<T: Clone>(among: &[T], which: usize) -> Option<T> {
    (!among.is_empty()).then(|| among[which % among.len()].clone())
}

impl World {
    pub(crate) fn new(plans: Vec<ExecutionPlan>) -> Self {
        Self {
            manager: Manager::new(0),
            audit: Audit::default(),
            plans,
            now: Duration::ZERO,
            epoch: 0,
            submitted: BTreeMap::new(),
            next_study: 0,
            facts: BTreeMap::new(),
            stale: Vec::new(),
            copies: Vec::new(),
            dismissed: BTreeSet::new(),
            slow_replan: None,
            failed: BTreeSet::new(),
            finished: 0,
        }
    }

    /// Applies an event to the manager, and audits its effects.
    fn apply(&mut self, event: Event) -> ManagerReply {
        let answer = event.apply(&mut self.manager, &self.plans, self.now);
        let effects: Vec<Effect> = std::iter::from_fn(|| self.manager.poll_effect()).collect();
        if let Err(breach) = self.audit.check(self.now, &event, &answer, &effects, &self.plans, &self.manager)
        {
            panic!("{breach}\nafter {event:?}\nwith {effects:#?}");
        }
        for effect in effects {
            match effect {
                Effect::Copy { worker, study, key, .. } => {
                    self.copies.push(Copying { worker, study, key });
                }
                Effect::Dismiss(worker) => _ = self.dismissed.insert(worker),
                Effect::Study(study, pleach_dispatch::study::Effect::Failed { instance, .. }) => {
                    self.failed.insert((study, instance));
                }
                Effect::Study(_, pleach_dispatch::study::Effect::Finished(_)) => self.finished += 1,
                _ => {}
            }
        }
        answer
    }

    fn granted(&self) -> Vec<Granted> {
        let each = |(study, lease, worker, open): (PlanId, LeaseId, WorkerId, &BTreeSet<InstanceId>)| {
            let granted = move |instance: &InstanceId| Granted { study, lease, worker, instance: *instance };
            open.iter().map(granted).collect::<Vec<_>>()
        };
        self.audit.granted().flat_map(each).collect()
    }

    fn workers(&self) -> Vec<WorkerId> {
        self.audit.workers().collect()
    }

    pub(crate) fn join_good(&mut self, slots: u32) -> WorkerId {
        self.join(WorkerInfo { slots, ..WorkerInfo::ANY })
    }

    fn join(&mut self, facts: WorkerInfo) -> WorkerId {
        let ManagerReply::Joined(worker) = self.apply(Event::Join { facts: facts.clone() }) else {
            panic!("who joins gets a number");
        };
        self.facts.insert(worker, facts);
        worker
    }

    pub(crate) fn ask(&mut self, worker: WorkerId, buckets: u32) {
        self.apply(Event::Request { worker, buckets, after: None });
    }

    fn report(&mut self, granted: Granted, succeeds: bool) -> ManagerReply {
        self.stale.push(granted);
        let Granted { study, lease, worker, instance } = granted;
        self.apply(if succeeds {
            Event::Done { worker, study, lease, instance }
        } else {
            Event::Failed { worker, study, lease, instance }
        })
    }

    pub(crate) fn step(&mut self, step: Step) {
        let (workers, granted) = (self.workers(), self.granted());
        match step {
            Step::Submit { plan } => {
                let (study, plan) = (PlanId::first_round(self.next_study), plan % self.plans.len());
                self.next_study += 1;
                self.submitted.insert(study, plan);
                self.apply(Event::Submit { study, plan, finished: BTreeSet::new() });
            }
            Step::Cancel { which } => {
                if let Some(study) = choose(&self.audit.studies().collect::<Vec<_>>(), which) {
                    self.apply(Event::Cancel { study });
                }
            }
            Step::Join { slots, lacks, memory } => {
                // Most workers can run all operations.
                let some =
                    (0..4).filter(|stage| lacks >> stage & 1 == 0).map(|stage| (format!("test.s{stage}"), 1));
                let operations = (lacks > 150).then(|| some.collect());
                let memory_bytes = if memory == 3 { u64::MAX } else { memory };
                let host = (lacks % 4 > 0).then(|| IpAddr::from([10, 0, 0, lacks % 4]));
                self.join(WorkerInfo { slots, memory_bytes, operations, host, ..WorkerInfo::default() });
            }
            Step::Ask { worker, buckets } => {
                if let Some(worker) = choose(&workers, worker) {
                    self.ask(worker, buckets);
                }
            }
            Step::AskAfter { worker, stage } => {
                if let Some(worker) = choose(&workers, worker) {
                    self.apply(Event::Request { worker, buckets: 1, after: Some(stage) });
                }
            }
            Step::Report { which, succeeds } => {
                if let Some(granted) = choose(&granted, which) {
                    assert_eq!(self.report(granted, succeeds), ManagerReply::Counted(true));
                }
            }
            Step::Late { which, succeeds } => {
                if let Some(old) = choose(&self.stale, which)
                    && !granted.contains(&old)
                {
                    assert_eq!(self.report(old, succeeds), ManagerReply::Counted(false));
                }
            }
            Step::Forged { which } => {
                if let Some(granted) = choose(&granted, which) {
                    let worker = WorkerId(granted.worker.0 + 1);
                    self.report(Granted { worker, ..granted }, true);
                }
            }
            Step::Lacks { which, keys } => {
                if let Some(Granted { study, lease, worker, instance }) = choose(&granted, which) {
                    let plan = &self.plans[self.submitted[&study]];
                    let inputs = plan.instances.at(instance).inputs.iter().enumerate();
                    let keys =
                        inputs.filter(|(number, _)| keys >> (number % 8) & 1 == 1).map(|(_, key)| *key);
                    let keys = keys.collect();
                    self.apply(Event::Lacking { worker, study, lease, instance, keys });
                }
            }
            Step::Back { which, chosen } => {
                if let Some(Granted { study, lease, worker, .. }) = choose(&granted, which) {
                    let of_lease = granted.iter().filter(|granted| granted.lease == lease).enumerate();
                    let some = of_lease.filter(|(place, _)| chosen >> (place % 64) & 1 == 1);
                    let instances = some.map(|(_, granted)| granted.instance).collect();
                    self.apply(Event::Back { worker, study, lease, instances });
                }
            }
            Step::Replan { which, chosen, size } => self.replan(which, chosen, size),
            Step::Drain { worker } => {
                if let Some(worker) = choose(&workers, worker) {
                    self.apply(Event::Drain { worker });
                }
            }
            Step::Copied { which, succeeds } => {
                if let Some(copy) = choose(&self.copies, which) {
                    self.copy(copy, succeeds);
                }
            }
            Step::Replicate { which } => {
                if let Some(Granted { study, lease, worker, instance }) = choose(&granted, which) {
                    let outputs = self.plans[self.submitted[&study]].instances.at(instance).outputs;
                    let stored = outputs.iter().filter(|output| output.stored);
                    let mut regions: Vec<(RegionKey, u64)> = stored.map(|output| (output.key, 1)).collect();
                    // A region that the instance did not produce: the manager must ignore it.
                    regions.push((RegionKey([which as u8; 16]), 1));
                    self.apply(Event::Replicate { worker, study, lease, instance, regions });
                }
            }
            Step::Dropped { worker, which } => {
                let studies: Vec<PlanId> = self.audit.studies().collect();
                if let (Some(worker), Some(study)) = (choose(&workers, worker), choose(&studies, which))
                    && let Some(key) = choose(&self.audit.regions_of(study, worker), which / 7)
                {
                    self.apply(Event::Dropped { worker, study, key });
                }
            }
            Step::Leave { worker, lost } => {
                if let Some(worker) = choose(&workers, worker) {
                    self.leave(worker, lost);
                }
            }
            Step::Tick { milliseconds } => {
                self.now += Duration::from_millis(milliseconds);
                self.apply(Event::Tick);
            }
            Step::Ran { worker, which, tasks, seconds } => {
                let studies: Vec<PlanId> = self.audit.studies().collect();
                let (Some(worker), Some(study)) = (choose(&workers, worker), choose(&studies, which)) else {
                    return;
                };
                let plan = &self.plans[self.submitted[&study]];
                // Occasionally an instance that does not exist.
                let instance = InstanceId((which / 7 % (plan.instances.len() + 1)) as u32);
                let stage = plan.instances.get(instance).map_or(0, |instance| instance.stage as u32);
                let tasks = (0..tasks).map(|task| ran(stage, task % 2, seconds)).collect();
                self.apply(Event::Ran { worker, study, instance, tasks });
            }
            Step::LeaseEnd { worker, milliseconds } => {
                if let Some(worker) = choose(&workers, worker) {
                    let end = self.now + Duration::from_millis(milliseconds);
                    self.apply(Event::LeaseEnd { worker, at_us: end.as_micros() as u64 });
                }
            }
            Step::Restart { bring, early } => self.restart(bring, early),
        }
    }

    fn leave(&mut self, worker: WorkerId, lost: bool) {
        let gone: Vec<Granted> =
            self.granted().into_iter().filter(|granted| granted.worker == worker).collect();
        self.stale.extend(gone);
        self.apply(Event::Leave { worker, lost });
    }

    /// Rebuilds some of the unstarted buckets of a stage. Half of the replans are applied only at the next one, like
    /// those that take long.
    fn replan(&mut self, which: usize, chosen: u64, size: usize) {
        let Some(study) = choose(&self.audit.studies().collect::<Vec<_>>(), which) else { return };
        let plan = &self.plans[self.submitted[&study]];
        let stage = which / 7 % plan.stages.len();
        let of_stage = |open: &&BTreeSet<InstanceId>| {
            open.first().is_some_and(|first| plan.instances.at(*first).stage == stage)
        };
        let unstarted = self.manager.study(study).expect("a study that is there").unstarted();
        let open = unstarted.map(|(_, open)| open).filter(of_stage).enumerate();
        let some = open.filter(|(place, _)| chosen >> (place % 64) & 1 == 1).flat_map(|(_, open)| open);
        let some: Vec<InstanceId> = some.copied().collect();
        let buckets =
            some.chunks(size).map(|ids| BucketPlan { instances: ids.to_vec(), pixels: 64 }).collect();
        let due = if chosen >> 63 == 0 {
            self.slow_replan.replace((study, buckets))
        } else {
            self.slow_replan.take().into_iter().for_each(|(study, buckets)| self.replanned(study, buckets));
            Some((study, buckets))
        };
        if let Some((study, buckets)) = due {
            self.replanned(study, buckets);
        }
    }

    /// Merges new buckets with the present state of their study, which may have ended meanwhile.
    fn replanned(&mut self, study: PlanId, buckets: Vec<BucketPlan>) {
        assert_eq!(self.apply(Event::Replanned { study, buckets }), ManagerReply::Accepted(true));
    }

    /// Kills the manager and restarts it with the reports so far.
    fn restart(&mut self, bring: u64, early: bool) {
        let granted = self.granted();
        let studies: Vec<(PlanId, BTreeSet<InstanceId>)> =
            self.audit.studies().map(|study| (study, self.audit.done(study))).collect();
        let before: Vec<(WorkerId, WorkerInfo)> =
            self.workers().into_iter().map(|worker| (worker, self.facts[&worker].clone())).collect();
        let held: Vec<Vec<(PlanId, Vec<RegionKey>)>> = before
            .iter()
            .map(|(worker, _)| {
                studies.iter().map(|(study, _)| (*study, self.audit.regions_of(*study, *worker))).collect()
            })
            .collect();
        self.epoch += 1;
        // The new manager assigns worker ids from 0 again, so pending messages of old workers are dropped.
        self.stale.clear();
        self.facts.clear();
        self.copies.clear();
        self.dismissed.clear();
        self.slow_replan = None;
        self.apply(Event::Start { epoch: self.epoch });
        self.apply(Event::Hold);
        for (study, done) in studies {
            let plan = self.submitted[&study];
            let reports = |id: &InstanceId| {
                self.plans[plan].instances.at(*id).outputs.iter().any(|output| output.reported)
            };
            let finished = done.into_iter().filter(reports).collect();
            self.apply(Event::Submit { study, plan, finished });
        }
        for (place, ((old, facts), held)) in before.into_iter().zip(held).enumerate() {
            if bring >> (place % 64) & 1 == 0 {
                continue;
            }
            let worker = self.join(facts);
            // The request may arrive before or after the reattached leases.
            if early {
                self.ask(worker, 1);
            }
            let mut leases: BTreeMap<(PlanId, LeaseId), Vec<InstanceId>> = BTreeMap::new();
            for granted in granted.iter().filter(|granted| granted.worker == old) {
                leases.entry((granted.study, granted.lease)).or_default().push(granted.instance);
            }
            for ((study, lease), instances) in leases {
                self.apply(Event::Adopt { worker, study, lease, instances });
            }
            for (study, keys) in held {
                self.apply(Event::Holds { worker, study, keys });
            }
        }
        self.apply(Event::Resume);
    }

    pub(crate) fn resume(&mut self) {
        self.apply(Event::Resume);
    }

    /// Asserts that studies with a ready bucket have equal numbers of leases, up to 1.
    pub(crate) fn even_leases(&self) {
        let ready = |study: &PlanId| self.manager.study(*study).is_some_and(|study| study.has_ready());
        let studies: Vec<PlanId> = self.audit.studies().filter(ready).collect();
        let leases =
            studies.iter().filter_map(|study| self.manager.study(*study)).map(|study| study.leases());
        let leases: Vec<usize> = leases.collect();
        let (least, most) = (leases.iter().min().copied(), leases.iter().max().copied());
        // A report that ends a lease may leave a study one lease short of the others.
        assert!(most.unwrap_or(0) <= least.unwrap_or(0) + 1, "{leases:?}");
    }

    /// Reports an instance. A worker that has finished a bucket requests the next one.
    pub(crate) fn report_and_ask(&mut self, which: usize) {
        let granted = self.granted();
        // Instances are in the order of leases, so that all leases advance alike.
        let Some(report) = choose(&granted, which) else { return };
        self.report(report, true);
        if self.granted().iter().all(|other| other.lease != report.lease) {
            self.ask(report.worker, 1);
        }
    }

    pub(crate) fn leave_all_but_the_drained(&mut self) {
        self.resume();
        for worker in self.workers() {
            let lost = !self.dismissed.contains(&worker) && worker.0 % 2 == 0;
            self.leave(worker, lost);
        }
    }

    pub(crate) fn finish_with_one_worker(&mut self) {
        let last = self.join_good(1);
        let most =
            20 + 2 * self.plans.iter().map(|plan| plan.instances.len()).sum::<usize>() * self.submitted.len();
        for _ in 0..most {
            if self.audit.studies().next().is_none() {
                return;
            }
            self.ask(last, 1);
            let granted = self.granted();
            assert!(!granted.is_empty(), "there is work, and none is given");
            for granted in granted {
                self.report(granted, true);
            }
        }
        panic!("it never ends");
    }
}
