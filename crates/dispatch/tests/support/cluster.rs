//! Simulated workers around a [`Manager`]. An independent model of leases, completion and releases checks every effect.

use crate::failures::failure;
use crate::regions::{far_bytes, is_needed, reports, stored, uses};
use crate::solo::{STUDY, manager_of};
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::message::{BucketWork, GrantReason};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, PlannedInstance, ReuseScope};
use pleach_dispatch::study::{Effect as Event, NewBuckets, Study};
use pleach_dispatch::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A granted instance, with the worker and the lease of its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Granted {
    pub(crate) worker: WorkerId,
    pub(crate) lease: LeaseId,
    pub(crate) instance: InstanceId,
}

/// Unanswered requests of a worker.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    buckets: u32,
    /// A bucket of a later stage than this one.
    after: Option<u32>,
}

/// One manager, its workers, and the model.
pub(crate) struct Cluster {
    pub(crate) manager: Manager,
    plan: ExecutionPlan,
    /// Buckets of the plan, then those that reopened, returned and replanned instances were moved to.
    buckets: Vec<Vec<InstanceId>>,
    /// Workers that hold each stored region, until it is released.
    holders: BTreeMap<RegionKey, BTreeSet<WorkerId>>,
    /// Finished instances that were reopened, once for each time.
    pub(crate) reopened: Vec<InstanceId>,
    /// Present workers.
    wanted: BTreeMap<WorkerId, Wanted>,
    /// Granted to present workers and not reported.
    pub(crate) granted: Vec<Granted>,
    /// Reports that no longer count: sent before, or by workers that have left.
    pub(crate) stale: Vec<Granted>,
    leases: BTreeSet<LeaseId>,
    /// Instances that were finished before or are not needed.
    pub(crate) closed: BTreeSet<InstanceId>,
    pub(crate) done: BTreeSet<InstanceId>,
    /// Failed instances, each with the instance whose failure it shares.
    pub(crate) failed: BTreeMap<InstanceId, InstanceId>,
    released: BTreeSet<RegionKey>,
    pub(crate) complete: bool,
    pub(crate) stopping: bool,
    pub(crate) stopped: bool,
}

impl Cluster {
    pub(crate) fn new(plan: ExecutionPlan) -> Self {
        Self::resume(plan, &BTreeSet::new())
    }

    /// Creates a cluster for a plan whose `finished` instances have been reported before.
    pub(crate) fn resume(plan: ExecutionPlan, finished: &BTreeSet<InstanceId>) -> Self {
        let is_closed = |id: &InstanceId| !is_needed(&plan, finished, *id);
        let closed = (0..plan.instances.len() as u32).map(InstanceId).filter(is_closed).collect();
        let mut cluster = Self {
            manager: manager_of(plan.clone(), finished).expect("a plan that keeps the rules"),
            buckets: plan.buckets.iter().map(|bucket| bucket.instances.clone()).collect(),
            holders: BTreeMap::new(),
            reopened: Vec::new(),
            plan,
            wanted: BTreeMap::new(),
            granted: Vec::new(),
            stale: Vec::new(),
            leases: BTreeSet::new(),
            closed,
            done: BTreeSet::new(),
            failed: BTreeMap::new(),
            released: BTreeSet::new(),
            complete: false,
            stopping: false,
            stopped: false,
        };
        cluster.perform(&[]);
        cluster
    }

    pub(crate) fn workers(&self) -> Vec<WorkerId> {
        self.wanted.keys().copied().collect()
    }

    pub(crate) fn join(&mut self) -> WorkerId {
        let worker = self.manager.handle_join(WorkerInfo::ANY);
        assert!(self.wanted.insert(worker, Wanted::default()).is_none(), "{worker} joined twice");
        if self.stopping {
            assert_eq!(self.manager.poll_effect(), Some(Effect::Stop), "late comers are told as well");
        }
        self.perform(&[]);
        worker
    }

    pub(crate) fn ask(&mut self, worker: WorkerId, buckets: u32) {
        if let Some(wanted) = self.wanted.get_mut(&worker) {
            wanted.buckets += buckets;
        }
        self.manager.handle_request(worker, buckets, None);
        self.perform(&[]);
    }

    /// Requests a bucket of a later stage. Replaces an earlier such request.
    pub(crate) fn ask_after(&mut self, worker: WorkerId, stage: u32) {
        if let Some(wanted) = self.wanted.get_mut(&worker) {
            wanted.after = Some(stage);
        }
        self.manager.handle_request(worker, 1, Some(stage));
        self.perform(&[]);
    }

    pub(crate) fn leave(&mut self, worker: WorkerId) {
        self.wanted.remove(&worker);
        let (gone, left) = self.granted.iter().partition(|granted| granted.worker == worker);
        self.granted = left;
        self.stale.extend::<Vec<Granted>>(gone);
        self.manager.handle_leave(worker, false);
        let back: Vec<InstanceId> =
            self.stale.iter().filter(|gone| gone.worker == worker).map(|gone| gone.instance).collect();
        let reopened = self.lost_with(worker);
        for instance in &reopened {
            self.done.remove(instance);
            for key in uses(self.plan.instances.at(*instance)) {
                self.released.remove(&key);
            }
        }
        self.granted_apart(&reopened);
        let again = self.reopened.len();
        let orphans = self.orphans(back.into_iter().chain(reopened.iter().copied()).collect());
        self.perform(&orphans);
        let mut told = self.reopened[again..].to_vec();
        told.sort_unstable();
        assert_eq!(told, reopened, "what is to be done again");
    }

    /// Removes a worker from all holders. Returns the producers of lost regions, then those of their lost inputs.
    fn lost_with(&mut self, worker: WorkerId) -> Vec<InstanceId> {
        let mut lost = Vec::new();
        self.holders.retain(|key, holders| {
            let held = holders.remove(&worker);
            lost.extend((held && holders.is_empty()).then_some(*key));
            !holders.is_empty()
        });
        let mut reopened = BTreeSet::new();
        while let Some(key) = lost.pop() {
            let Some(producer) = self.producer(key).filter(|producer| self.done.contains(producer)) else {
                continue;
            };
            if reopened.insert(producer) {
                let inputs = self.plan.instances.at(producer).inputs.iter();
                lost.extend(inputs.filter(|key| !self.holders.contains_key(key)));
            }
        }
        reopened.into_iter().collect()
    }

    /// Returns the instance that stores a region.
    fn producer(&self, key: RegionKey) -> Option<InstanceId> {
        let stores = |instance: PlannedInstance<'_>| stored(instance).any(|stored| stored == key);
        self.plan.instances.iter().position(stores).map(|number| InstanceId(number as u32))
    }

    /// Moves instances into buckets of their own, unless no other instance of their bucket is open.
    fn granted_apart(&mut self, instances: &[InstanceId]) {
        for number in 0..self.buckets.len() {
            let (moved, left): (Vec<InstanceId>, Vec<InstanceId>) =
                self.buckets[number].iter().partition(|id| instances.contains(id));
            if moved.is_empty() || left.iter().all(|id| self.is_over(*id)) {
                continue;
            }
            self.buckets[number] = left;
            self.buckets.push(moved);
        }
    }

    /// Returns the instances, no longer leased, that share the failure of a parent, and their descendants.
    fn orphans(&self, back: Vec<InstanceId>) -> Vec<(InstanceId, Option<InstanceId>)> {
        let mut orphans = BTreeMap::new();
        for id in back.into_iter().filter(|id| !self.is_over(*id) && !self.is_granted(*id)) {
            let parents = self.plan.instances.at(id).parents.iter();
            if let Some(origin) = parents.filter_map(|parent| self.failed.get(parent)).next() {
                for (id, _) in self.struck_by(id) {
                    orphans.entry(id).or_insert(Some(*origin));
                }
            }
        }
        orphans.into_iter().collect()
    }

    /// Returns the buckets of one stage with open instances but no granted one, and their open instances.
    fn unstarted(&self, stage: u32) -> Vec<(usize, Vec<InstanceId>)> {
        let open = |bucket: &Vec<InstanceId>| -> Vec<InstanceId> {
            bucket.iter().copied().filter(|id| !self.is_over(*id)).collect()
        };
        let buckets = self.buckets.iter().enumerate().map(|(number, bucket)| (number, open(bucket)));
        let is_open = |open: &Vec<InstanceId>| {
            open.first().is_some_and(|id| self.stage(*id) == stage)
                && open.iter().all(|id| !self.is_granted(*id))
        };
        buckets.filter(|(_, bucket)| is_open(bucket)).collect()
    }

    /// Rebuilds the unstarted buckets of a stage that `chosen` selects, into buckets of `size` instances.
    pub(crate) fn replan(&mut self, stage: u32, chosen: u64, size: usize) {
        // A completed study accepts any replan without an effect.
        if self.complete {
            return;
        }
        let unstarted = self.unstarted(stage);
        let listed = self.manager.study(STUDY).into_iter().flat_map(Study::unstarted);
        let listed = listed.filter(|(_, open)| open.iter().any(|id| self.stage(*id) == stage));
        let listed: Vec<_> = listed.map(|(id, open)| (id, open.clone())).collect();
        let known: Vec<_> = unstarted
            .iter()
            .map(|(number, open)| (BucketId(*number as u32), open.iter().copied().collect()))
            .collect();
        assert_eq!(listed, known);
        let chosen = unstarted.into_iter().enumerate().filter(|(place, _)| chosen >> (place % 64) & 1 == 1);
        let (numbers, instances): (Vec<usize>, Vec<Vec<InstanceId>>) =
            chosen.map(|(_, bucket)| bucket).unzip();
        let incomplete = instances.first().map(|bucket| bucket[1..].to_vec()).unwrap_or_default();
        let instances: Vec<InstanceId> = instances.concat();
        let new: Vec<Vec<InstanceId>> = instances.chunks(size).map(<[_]>::to_vec).collect();
        let pixels = self.plan.buckets[0].pixels;
        let plans = |buckets: &[Vec<InstanceId>]| -> Vec<BucketPlan> {
            buckets.iter().map(|bucket| BucketPlan { instances: bucket.clone(), pixels }).collect()
        };
        // Duplicate instances and empty buckets are refused.
        if let Some(first) = instances.first() {
            assert!(NewBuckets::new(plans(&[instances.clone(), vec![*first]])).is_err());
        }
        assert!(NewBuckets::new(plans(&[vec![]])).is_err());
        let mut replanned = |buckets: &[Vec<InstanceId>]| {
            let new = NewBuckets::new(plans(buckets)).expect("each instance once");
            let merged = self.manager.handle_replanned(STUDY, new).expect("buckets of one stage each");
            (merged.moved, merged.outdated)
        };
        // A bucket that has another open instance by now stays, and so does a leased instance.
        if !incomplete.is_empty() {
            assert_eq!(replanned(std::slice::from_ref(&incomplete)), (0, incomplete.len()));
        }
        let granted = self.granted.first().map(|granted| vec![granted.instance]);
        let outdated = usize::from(granted.is_some());
        let with_granted: Vec<_> = new.iter().cloned().chain(granted).collect();
        assert_eq!(replanned(&with_granted), (instances.len(), outdated));
        for number in numbers {
            // Finished instances stay in their bucket, since they may be reopened.
            let over = self.buckets[number].iter().copied().filter(|id| self.is_over(*id)).collect();
            self.buckets[number] = over;
        }
        self.buckets.extend(new);
        self.perform(&[]);
    }

    fn is_granted(&self, instance: InstanceId) -> bool {
        self.granted.iter().any(|granted| granted.instance == instance)
    }

    /// Delivers the report of a missing input.
    pub(crate) fn lacks(&mut self, report: Granted) {
        self.granted.retain(|granted| *granted != report);
        self.stale.push(report);
        let Granted { worker, lease, instance } = report;
        assert!(
            self.manager.handle_missing_input(worker, STUDY, lease, instance, &[]),
            "{report:?} did not count"
        );
        self.granted_apart(&[instance]);
        let orphans = self.orphans(vec![instance]);
        self.perform(&orphans);
    }

    pub(crate) fn stop(&mut self) {
        self.manager.handle_stop();
        if !self.stopping && !self.complete {
            self.stopping = true;
            assert_eq!(self.manager.poll_effect(), Some(Effect::Stop));
        }
        self.perform(&[]);
    }

    /// Delivers a report that counts.
    pub(crate) fn report(&mut self, report: Granted, succeeds: bool) {
        self.granted.retain(|granted| *granted != report);
        self.stale.push(report);
        let Granted { worker, lease, instance } = report;
        if succeeds {
            assert!(self.manager.handle_done(worker, STUDY, lease, instance), "{report:?} did not count");
            for key in uses(self.plan.instances.at(instance)) {
                if self.producer(key).is_some() {
                    self.holders.entry(key).or_default().insert(worker);
                }
            }
        } else {
            let cause = failure("t1");
            assert!(
                self.manager.handle_failed(worker, STUDY, lease, instance, &cause),
                "{report:?} did not count"
            );
        }
        let expected = if succeeds { vec![(instance, None)] } else { self.struck_by(instance) };
        self.perform(&expected);
    }

    /// Delivers a report that must be ignored.
    pub(crate) fn ignored(&mut self, report: Granted, succeeds: bool) {
        let Granted { worker, lease, instance } = report;
        let counted = if succeeds {
            self.manager.handle_done(worker, STUDY, lease, instance)
        } else {
            self.manager.handle_failed(worker, STUDY, lease, instance, &failure("t1"))
        };
        assert!(!counted, "{report:?} counted");
        self.perform(&[]);
    }

    /// Returns the finished instances with reported outputs. A later run knows them.
    pub(crate) fn reported(&self) -> BTreeSet<InstanceId> {
        self.done.iter().copied().filter(|id| reports(self.plan.instances.at(*id))).collect()
    }

    /// Returns an instance and its open descendants without a lease, with the origin of their failure.
    fn struck_by(&self, origin: InstanceId) -> Vec<(InstanceId, Option<InstanceId>)> {
        let mut struck = BTreeSet::from([origin]);
        for (id, instance) in self.plan.instances.enumerate() {
            let open = !self.is_over(id) && !self.is_granted(id);
            if open && instance.parents.iter().any(|parent| struck.contains(parent)) {
                struck.insert(id);
            }
        }
        struck.into_iter().map(|id| (id, Some(origin))).collect()
    }

    /// Checks every effect of an event. `expected` are the instances that end with it, with the origin of their failure.
    fn perform(&mut self, expected: &[(InstanceId, Option<InstanceId>)]) {
        self.manager.sanity_check().expect("sane");
        let mut ended = Vec::new();
        while let Some(effect) = self.manager.poll_effect() {
            let is_over = matches!(effect, Effect::Over { .. });
            assert!(is_over || !self.complete && !self.stopped, "{effect:?} after the end");
            match effect {
                Effect::Assign { worker, lease, work, reason, .. } => {
                    self.assigned(worker, lease, &work, reason)
                }
                Effect::Study(_, Event::Finished(instance)) => {
                    assert!(self.done.insert(instance), "{instance} is finished twice");
                    ended.push((instance, None));
                }
                Effect::Study(_, Event::Failed { instance, origin, cause }) => {
                    assert!(self.failed.insert(instance, origin).is_none(), "{instance} failed twice");
                    assert_eq!(cause, failure("t1"));
                    ended.push((instance, Some(origin)));
                }
                Effect::Study(_, Event::Reopened(instance)) => self.reopened.push(instance),
                Effect::Study(_, Event::Release(keys)) => keys.into_iter().for_each(|key| self.let_go(key)),
                Effect::Study(_, Event::Complete) => self.complete = true,
                Effect::Introduce { .. } | Effect::Over { .. } => {}
                Effect::Replan(_) | Effect::TileShared { .. } => {}
                Effect::Stop => panic!("told to stop twice"),
                Effect::Stopped => self.stopped = true,
                effect => panic!("{effect:?}"),
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, expected);
        assert!(self.done.iter().all(|id| !self.failed.contains_key(id)));
        let mut over = self.done.iter().chain(self.failed.keys());
        assert!(over.all(|id| !self.closed.contains(id)), "needless work");
        let open = self.plan.instances.len() - self.closed.len() - self.done.len() - self.failed.len();
        assert_eq!(self.manager.study(STUDY).map_or(0, Study::unfinished), open);
        assert_eq!(self.complete, open == 0);
        assert_eq!(self.stopped, self.stopping && open > 0 && self.wanted.is_empty());
        let ready = self.ready();
        if !self.stopping {
            for (worker, wanted) in &self.wanted {
                let first = ready.first().map(|(stage, _)| stage.0);
                let suits = first.zip(wanted.after).is_some_and(|(stage, after)| after < stage);
                let waits = ready.is_empty() || wanted.buckets == 0 && !suits || self.is_patient(*worker);
                assert!(waits, "{worker} waits beside ready buckets");
            }
        }
        if self.complete {
            let open = self.plan.instances.enumerate().filter(|(id, _)| !self.closed.contains(id));
            let used: BTreeSet<RegionKey> = open.flat_map(|(_, instance)| uses(instance)).collect();
            assert_eq!(self.released, used, "released in the end");
        }
    }

    /// Returns the buckets with open instances, all of them ready, in order of rank.
    fn ready(&self) -> BTreeSet<(Reverse<u32>, BucketId)> {
        let is_ready = |bucket: &Vec<InstanceId>| {
            let mut open = bucket.iter().filter(|id| !self.is_over(**id)).peekable();
            let granted = |id: &InstanceId| self.is_granted(*id);
            let is_done = |id: &InstanceId| self.done.contains(id) || self.closed.contains(id);
            let waits = |id: &InstanceId| !self.plan.instances.at(*id).parents.iter().all(is_done);
            open.peek().is_some() && open.all(|id| !granted(id) && !waits(id))
        };
        let ready = (0u32..).map(BucketId).zip(&self.buckets).filter(|(_, bucket)| is_ready(bucket));
        ready.map(|(id, bucket)| (Reverse(self.stage(bucket[0])), id)).collect()
    }

    fn far_bytes(&self, bucket: BucketId, worker: WorkerId) -> u64 {
        let open = self.buckets[bucket.index()].iter().filter(|id| !self.is_over(**id));
        far_bytes(&self.plan, *open.min().expect("it is ready"), &self.holders, worker)
    }

    /// Beyond trees, a busy worker leaves other workers their tiles.
    fn is_patient(&self, worker: WorkerId) -> bool {
        let is_busy = || self.manager.study(STUDY).is_some_and(|study| study.leases_of(worker) > 0);
        self.plan.sharing != ReuseScope::Tree && is_busy()
    }

    fn stage(&self, instance: InstanceId) -> u32 {
        self.plan.instances.at(instance).stage as u32
    }

    fn assigned(&mut self, worker: WorkerId, lease: LeaseId, work: &BucketWork, reason: GrantReason) {
        assert!(!self.stopping, "assigned after the stop");
        let ready: Vec<_> = self.ready().into_iter().collect();
        let is_tree = self.plan.sharing == ReuseScope::Tree;
        let stage = if is_tree { ready[0].0 } else { Reverse(work.stage) };
        let of_stage = ready.iter().filter(|(of, _)| *of == stage);
        // More buckets are considered than are ready here. Among equals, the first one counts, or the next of a range.
        let key = |bucket: BucketId| (self.far_bytes(bucket, worker), bucket.0 * u32::from(is_tree));
        let nearest = of_stage.map(|(stage, bucket)| (key(*bucket), *stage)).min();
        assert_eq!(nearest, Some((key(work.bucket), Reverse(work.stage))), "later, near, in order");
        let idle = self.wanted.iter().any(|(of, wanted)| wanted.buckets > 0 && !self.is_patient(*of));
        let wanted = self.wanted.get_mut(&worker).expect("a worker that is there");
        match reason {
            GrantReason::Short => assert!(work.elsewhere.is_empty(), "{work:?} waits for inputs"),
            GrantReason::Request => wanted.buckets = wanted.buckets.checked_sub(1).expect("a request"),
            GrantReason::LaterRequest => {
                assert!(!idle, "{worker} got {work:?}, and others are idle");
                let after = wanted.after.take();
                assert!(after.is_some_and(|after| work.stage > after), "{work:?} is not after {after:?}");
            }
        }
        assert!(self.leases.insert(lease), "{lease} is used twice");
        let ids: Vec<InstanceId> = work.instances.iter().map(|instance| instance.id).collect();
        let bucket = &self.buckets[work.bucket.index()];
        let open: BTreeSet<InstanceId> = bucket.iter().copied().filter(|id| !self.is_over(*id)).collect();
        assert_eq!(
            ids.iter().copied().collect::<BTreeSet<_>>(),
            open,
            "what is open of the bucket, all of it"
        );
        let planned =
            self.plan.buckets.iter().find(|bucket| bucket.instances.contains(&ids[0])).expect("planned");
        assert_eq!((ids.len(), work.pixels), (open.len(), planned.pixels));
        // For each input, the worker holds it, the assignment names its holders, or it has no producer, such as
        // a tile.
        let told: BTreeMap<RegionKey, BTreeSet<WorkerId>> =
            work.elsewhere.iter().map(|there| (there.key, there.workers.iter().copied().collect())).collect();
        let read: BTreeSet<RegionKey> =
            work.instances.iter().flat_map(|instance| &instance.inputs).copied().collect();
        let made = read.into_iter().filter(|key| self.producer(*key).is_some());
        let wanted = made.map(|key| (key, self.holders.get(&key).cloned().unwrap_or_default()));
        assert_eq!(told, wanted.filter(|(_, holders)| !holders.contains(&worker)).collect());
        assert!(told.len() == work.elsewhere.len() && told.values().all(|workers| !workers.is_empty()));
        for instance in &work.instances {
            let plan = self.plan.instances.at(instance.id);
            assert!(self.granted.iter().all(|granted| granted.instance != instance.id), "granted twice");
            assert!(instance.inputs.iter().all(|key| !self.released.contains(key)), "an input is gone");
            assert!(plan.parameters().eq(instance.parameters.iter().copied()), "{instance:?} of {plan:?}");
            let found = (&instance.inputs[..], &instance.outputs[..], work.stage as usize);
            assert_eq!(found, (plan.inputs, plan.outputs, plan.stage));
            let waits = |reader: PlannedInstance<'_>| {
                let mut parents = reader.parents.iter();
                reader.parents.contains(&instance.id)
                    && parents
                        .any(|id| *id != instance.id && !self.done.contains(id) && !self.closed.contains(id))
            };
            assert_eq!(instance.stays, self.plan.instances.iter().any(waits), "{}", instance.id);
            self.granted.push(Granted { worker, lease, instance: instance.id });
        }
    }

    fn let_go(&mut self, key: RegionKey) {
        assert!(self.released.insert(key), "{key} is released twice");
        self.holders.remove(&key);
        for (id, instance) in self.plan.instances.enumerate() {
            let used = uses(instance).any(|used| used == key);
            assert!(!used || self.is_over(id), "{key} is released, and {id} still uses it");
        }
    }

    fn is_over(&self, instance: InstanceId) -> bool {
        let is_closed = self.closed.contains(&instance) || self.done.contains(&instance);
        is_closed || self.failed.contains_key(&instance)
    }
}
