//! Simulated workers around a [`Manager`], and a model of what must be true of every effect: what was granted
//! to whom, what is over, what may be let go of. The model knows the plan and nothing of the manager's state.

use crate::shapes::failure;
use pleach_dispatch::manager::{Effect, Manager};
use pleach_dispatch::message::BucketWork;
use pleach_dispatch::plan::{ExecutionPlan, InstancePlan};
use pleach_dispatch::{InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// What a worker would say about an instance it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Granted {
    pub(crate) worker: WorkerId,
    pub(crate) lease: LeaseId,
    pub(crate) instance: InstanceId,
}

/// One manager, its workers, and the model.
pub(crate) struct Cluster {
    pub(crate) manager: Manager,
    plan: ExecutionPlan,
    /// Workers that are there, and how many buckets each still waits for.
    wanted: BTreeMap<WorkerId, u32>,
    /// Granted to workers that are there, and not reported.
    pub(crate) granted: Vec<Granted>,
    /// Reports that no longer count: made already, or by workers that have left.
    pub(crate) stale: Vec<Granted>,
    leases: BTreeSet<LeaseId>,
    pub(crate) done: BTreeSet<InstanceId>,
    pub(crate) failed: BTreeSet<InstanceId>,
    released: BTreeSet<RegionKey>,
    pub(crate) complete: bool,
}

impl Cluster {
    pub(crate) fn new(plan: ExecutionPlan) -> Self {
        let mut cluster = Self {
            manager: Manager::new(plan.clone()).expect("a plan that keeps the rules"),
            plan,
            wanted: BTreeMap::new(),
            granted: Vec::new(),
            stale: Vec::new(),
            leases: BTreeSet::new(),
            done: BTreeSet::new(),
            failed: BTreeSet::new(),
            released: BTreeSet::new(),
            complete: false,
        };
        cluster.perform(&[]);
        cluster
    }

    pub(crate) fn workers(&self) -> Vec<WorkerId> {
        self.wanted.keys().copied().collect()
    }

    pub(crate) fn join(&mut self) -> WorkerId {
        let worker = self.manager.handle_join();
        assert!(self.wanted.insert(worker, 0).is_none(), "{worker} joined twice");
        self.perform(&[]);
        worker
    }

    pub(crate) fn ask(&mut self, worker: WorkerId, buckets: u32) {
        if let Some(wanted) = self.wanted.get_mut(&worker) {
            *wanted += buckets;
        }
        self.manager.handle_request(worker, buckets);
        self.perform(&[]);
    }

    pub(crate) fn leave(&mut self, worker: WorkerId) {
        self.wanted.remove(&worker);
        let (gone, left) = self.granted.iter().partition(|granted| granted.worker == worker);
        self.granted = left;
        self.stale.extend::<Vec<Granted>>(gone);
        self.manager.handle_leave(worker);
        self.perform(&[]);
    }

    /// Delivers a report that counts.
    pub(crate) fn report(&mut self, report: Granted, succeeds: bool) {
        self.granted.retain(|granted| *granted != report);
        self.stale.push(report);
        let Granted { worker, lease, instance } = report;
        if succeeds {
            assert!(self.manager.handle_done(worker, lease, instance), "{report:?} did not count");
        } else {
            let cause = failure("t1");
            assert!(self.manager.handle_failed(worker, lease, instance, &cause), "{report:?} did not count");
        }
        let expected = if succeeds { vec![(instance, None)] } else { self.struck_by(instance) };
        self.perform(&expected);
    }

    /// Delivers a report that must be ignored.
    pub(crate) fn ignored(&mut self, report: Granted, succeeds: bool) {
        let Granted { worker, lease, instance } = report;
        let counted = if succeeds {
            self.manager.handle_done(worker, lease, instance)
        } else {
            self.manager.handle_failed(worker, lease, instance, &failure("t1"))
        };
        assert!(!counted, "{report:?} counted");
        self.perform(&[]);
    }

    /// The instance and all that read from it, directly or not, and are not over yet.
    fn struck_by(&self, origin: InstanceId) -> Vec<(InstanceId, Option<InstanceId>)> {
        let mut struck = BTreeSet::from([origin]);
        for (id, instance) in (0u32..).map(InstanceId).zip(&self.plan.instances) {
            if instance.parents.iter().any(|parent| struck.contains(parent)) && !self.failed.contains(&id) {
                struck.insert(id);
            }
        }
        struck.into_iter().map(|id| (id, Some(origin))).collect()
    }

    /// Checks every effect of an event against the model; `expected` are the instances that end with it, and
    /// the origin of their failure.
    fn perform(&mut self, expected: &[(InstanceId, Option<InstanceId>)]) {
        self.manager.sanity_check().expect("sane");
        let mut ended = Vec::new();
        while let Some(effect) = self.manager.poll_effect() {
            assert!(!self.complete, "{effect:?} after the end");
            match effect {
                Effect::Assign { worker, lease, work } => self.assigned(worker, lease, &work),
                Effect::Finished(instance) => {
                    assert!(self.done.insert(instance), "{instance} is finished twice");
                    ended.push((instance, None));
                }
                Effect::Failed { instance, origin, cause } => {
                    assert!(self.failed.insert(instance), "{instance} failed twice");
                    assert_eq!(cause, failure("t1"));
                    ended.push((instance, Some(origin)));
                }
                Effect::Release(keys) => keys.into_iter().for_each(|key| self.let_go(key)),
                Effect::Complete => self.complete = true,
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, expected);
        assert!(self.done.is_disjoint(&self.failed));
        let open = self.plan.instances.len() - self.done.len() - self.failed.len();
        assert_eq!(self.manager.unfinished(), open);
        assert_eq!(self.complete, open == 0);
        if self.complete {
            let used: BTreeSet<RegionKey> = self.plan.instances.iter().flat_map(uses).collect();
            assert_eq!(self.released, used, "released in the end");
        }
    }

    fn assigned(&mut self, worker: WorkerId, lease: LeaseId, work: &BucketWork) {
        let wanted = self.wanted.get_mut(&worker).expect("a worker that is there");
        *wanted = wanted.checked_sub(1).expect("a worker that asked");
        assert!(self.leases.insert(lease), "{lease} is used twice");
        let ids: Vec<InstanceId> = work.instances.iter().map(|instance| instance.id).collect();
        let bucket = self.plan.buckets.iter().find(|bucket| bucket.instances.contains(&ids[0]));
        let open: BTreeSet<InstanceId> =
            bucket.expect("a bucket").instances.iter().copied().filter(|id| !self.is_over(*id)).collect();
        assert_eq!(
            ids.iter().copied().collect::<BTreeSet<_>>(),
            open,
            "what is open of the bucket, all of it"
        );
        assert_eq!(ids.len(), open.len());
        for instance in &work.instances {
            let plan = &self.plan.instances[instance.id.index()];
            assert!(
                plan.parents.iter().all(|parent| self.done.contains(parent)),
                "{} came too early",
                instance.id
            );
            assert!(self.granted.iter().all(|granted| granted.instance != instance.id), "granted twice");
            assert!(instance.inputs.iter().all(|key| !self.released.contains(key)), "an input is gone");
            assert_eq!((&instance.inputs, &instance.parameters), (&plan.inputs, &plan.parameters));
            assert_eq!((&instance.outputs, work.stage as usize), (&plan.outputs, plan.stage));
            self.granted.push(Granted { worker, lease, instance: instance.id });
        }
    }

    fn let_go(&mut self, key: RegionKey) {
        assert!(self.released.insert(key), "{key} is released twice");
        for (id, instance) in (0u32..).map(InstanceId).zip(&self.plan.instances) {
            let used = uses(instance).any(|used| used == key);
            assert!(!used || self.is_over(id), "{key} is released, and {id} still uses it");
        }
    }

    fn is_over(&self, instance: InstanceId) -> bool {
        self.done.contains(&instance) || self.failed.contains(&instance)
    }
}

/// Regions an instance reads, or stores for others.
fn uses(instance: &InstancePlan) -> impl Iterator<Item = RegionKey> {
    let stored = instance.outputs.iter().filter(|output| output.stored).map(|output| output.key);
    instance.inputs.iter().copied().chain(stored)
}
