//! A worker with accelerators and its buckets, driven by a virtual clock. The worker and the buckets are the real state
//! machines. Messages take no time.

use crate::shapes::{key, stage, task};
use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget, OutputConsumption};
use pleach_dispatch::message::{BucketWork, GrantReason, InstanceWork};
use pleach_dispatch::plan::{OutputPlan, ReuseScope};
use pleach_dispatch::stage::{self, BucketExecution, DeviceTask, NodeId};
use pleach_dispatch::worker::{Effect, Worker, WorkerSlots};
use pleach_dispatch::{BucketId, InstanceId, LeaseId, PlanId, SlotId, SlotKind};
use pleach_workflow::{Stage, TaskInput};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

/// A task of a pipeline: seconds on a core, gain, and the tasks that it reads.
#[derive(Clone, Debug)]
pub(crate) struct PipelineTask {
    pub(crate) name: &'static str,
    pub(crate) core_ms: f64,
    pub(crate) device_ms: f64,
    pub(crate) reads: &'static [usize],
}

impl PipelineTask {
    pub(crate) fn gain(&self) -> f64 {
        self.core_ms / self.device_ms
    }
}

/// The example of Region Templates (`runtime/examples/PipelineTasks`): milliseconds on a core and on a GPU.
pub(crate) const PIPELINE: [PipelineTask; 10] = [
    PipelineTask { name: "RBC", core_ms: 394.1, device_ms: 29.91, reads: &[] },
    PipelineTask { name: "Open", core_ms: 152.2, device_ms: 16.54, reads: &[0] },
    PipelineTask { name: "Recon", core_ms: 1748.3, device_ms: 318.9, reads: &[1] },
    PipelineTask { name: "Area", core_ms: 129.5, device_ms: 28.1, reads: &[2] },
    PipelineTask { name: "Distance", core_ms: 1587.3, device_ms: 229.9, reads: &[3] },
    PipelineTask { name: "CCL", core_ms: 355.5, device_ms: 62.0, reads: &[4] },
    PipelineTask { name: "Deconv", core_ms: 1096.9, device_ms: 78.15, reads: &[] },
    PipelineTask { name: "PixelStats", core_ms: 151.7, device_ms: 8.97, reads: &[5] },
    PipelineTask { name: "Gradient", core_ms: 1723.1, device_ms: 96.83, reads: &[5, 6] },
    PipelineTask { name: "Sobel", core_ms: 294.2, device_ms: 17.89, reads: &[5, 6] },
];

/// A run of a pipeline on one worker.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) tasks: Vec<PipelineTask>,
    pub(crate) slots: WorkerSlots,
    pub(crate) instances: u32,
    /// Maximum of instances at once.
    pub(crate) in_flight: u32,
    /// By task: estimated gain.
    pub(crate) gains: Vec<f64>,
    /// True durations differ from the estimates by up to this share, at random.
    pub(crate) spread: f64,
    pub(crate) seed: u64,
    /// Milliseconds of the transfers of a task to and from an accelerator.
    pub(crate) transfer_ms: f64,
    /// Share of the transfers that a task saves whose input is on its accelerator.
    pub(crate) saved: f64,
    /// The upload of the next task, half of its transfers, begins when the worker hints it.
    pub(crate) prefetch: bool,
    /// The download, half of the transfers, ends beside the next task.
    pub(crate) downloads: bool,
    /// The manager answers whether it has more instances.
    pub(crate) answers: bool,
    /// Number of tasks on accelerators between two that end with an error of the device. The third error of a slot closes it.
    pub(crate) fails_every: Option<u32>,
}

impl Setup {
    pub(crate) fn new(tasks: &[PipelineTask], slots: WorkerSlots, instances: u32, in_flight: u32) -> Self {
        Self {
            gains: tasks.iter().map(PipelineTask::gain).collect(),
            tasks: tasks.to_vec(),
            slots,
            instances,
            in_flight,
            spread: 0.0,
            seed: 1,
            transfer_ms: 0.0,
            saved: 0.5,
            prefetch: false,
            downloads: false,
            answers: true,
            fails_every: None,
        }
    }

    /// Returns the stage: the pipeline and a task that ends the instance, which takes no time and no slot.
    fn stage(&self) -> Stage {
        let read = |&task: &usize| TaskInput::Task { task, output: 0 };
        let mut tasks: Vec<_> = (self.tasks.iter())
            .map(|own| match own.reads {
                [] => task(own.name, &[], &[TaskInput::StageInput(0)], 1),
                reads => task(own.name, &[], &reads.iter().map(read).collect::<Vec<_>>(), 1),
            })
            .collect();
        let is_read = |task: &usize| self.tasks.iter().any(|other| other.reads.contains(task));
        let ends: Vec<_> = (0..self.tasks.len()).filter(|task| !is_read(task)).collect();
        tasks.push(task("end", &[], &ends.iter().map(read).collect::<Vec<_>>(), 1));
        stage(0, 1, tasks, &[(self.tasks.len(), 0)])
    }

    fn estimates(&self) -> Vec<DeviceTask> {
        let estimate = |(task, gain): (&PipelineTask, &f64)| DeviceTask {
            on_core: true,
            on_accelerator: *gain > 0.0,
            gain: (gain * 1000.0).round() as u32,
            core_time: Duration::from_secs_f64(task.core_ms / 1000.0),
            device_bytes: 1,
            trial: None,
        };
        let own = self.tasks.iter().zip(&self.gains).map(estimate);
        own.chain([DeviceTask::for_cores(Duration::ZERO)]).collect()
    }
}

/// Result of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    /// Executions of each task of each instance that ended without an error, by kind.
    pub(crate) ran: BTreeMap<(u32, usize), Vec<SlotKind>>,
    /// Seconds of tasks on accelerators.
    pub(crate) device_seconds: f64,
    /// Tasks on an accelerator that had made them ready.
    pub(crate) local: u32,
    /// Hints of the worker.
    pub(crate) hints: u32,
    /// Tasks on the accelerator that they were hinted for.
    pub(crate) prefetched: u32,
    /// Downloads beside the slot.
    pub(crate) downloads: u64,
    /// Tasks that ran while outputs of the task before were downloaded.
    pub(crate) overlapped: u32,
    /// Closed slots.
    pub(crate) closed: u32,
}

/// Message between the worker and a bucket.
enum Local {
    Begin(LeaseId),
    Granted(LeaseId, SlotId, NodeId),
}

/// What ends in a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Task,
    /// Of a task whose outputs remain to be downloaded.
    Kernels,
    Download,
}

struct Running {
    lease: LeaseId,
    node: NodeId,
    level: usize,
}

pub(crate) struct Clock<'a> {
    setup: &'a Setup,
    stage: Stage,
    worker: Worker,
    now: Duration,
    /// Ends: time, number of the start, slot.
    ends: BinaryHeap<Reverse<(Duration, u64, SlotId, End)>>,
    started: u64,
    buckets: BTreeMap<LeaseId, BucketExecution>,
    running: BTreeMap<SlotId, Running>,
    /// By accelerator: the task whose outputs are being downloaded, when that ends, and its number.
    downloading: BTreeMap<SlotId, (Running, Duration, u64)>,
    /// By accelerator: its last task.
    last: BTreeMap<SlotId, (LeaseId, NodeId)>,
    /// By accelerator: the hinted task, and when its upload began.
    hints: BTreeMap<SlotId, ((LeaseId, NodeId), Duration)>,
    /// By slot: the part of the upload of its granted task that has passed.
    uploaded: BTreeMap<SlotId, Duration>,
    after: BTreeMap<(LeaseId, NodeId), NodeId>,
    local: VecDeque<Local>,
    calls: VecDeque<u64>,
    asked: u32,
    next: u32,
    on_devices: u32,
    errors: BTreeMap<SlotId, u32>,
    random: u64,
    outcome: Outcome,
}

impl<'a> Clock<'a> {
    fn new(setup: &'a Setup) -> Self {
        let mut worker = Worker::new(setup.slots, MemoryBudget::UNLIMITED).with_max_buckets(setup.in_flight);
        worker.handle_study(PlanId::first_round(0), 1, 0);
        if setup.prefetch {
            worker.enable_prefetch();
        }
        Self {
            setup,
            stage: setup.stage(),
            worker,
            now: Duration::ZERO,
            ends: BinaryHeap::new(),
            started: 0,
            buckets: BTreeMap::new(),
            running: BTreeMap::new(),
            downloading: BTreeMap::new(),
            last: BTreeMap::new(),
            hints: BTreeMap::new(),
            uploaded: BTreeMap::new(),
            after: BTreeMap::new(),
            local: VecDeque::new(),
            calls: VecDeque::new(),
            asked: 0,
            next: 0,
            on_devices: 0,
            errors: BTreeMap::new(),
            random: setup.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            outcome: Outcome::default(),
        }
    }

    /// Runs all instances.
    pub(crate) fn run(setup: &'a Setup) -> Outcome {
        let mut clock = Self::new(setup);
        clock.follow();
        while let Some(Reverse((now, _, slot, end))) = clock.ends.pop() {
            clock.now = now;
            clock.worker.handle_time(now);
            match end {
                End::Task => clock.end(slot),
                End::Kernels => clock.end_kernels(slot),
                End::Download => clock.end_download(slot),
            }
            clock.follow();
        }
        assert!(clock.buckets.is_empty(), "no task runs, and {} buckets are open", clock.buckets.len());
        assert_eq!(clock.next, setup.instances, "instances were left at the manager");
        clock.outcome.seconds = clock.now.as_secs_f64();
        clock.outcome
    }

    fn demand(run: &BucketExecution) -> BucketDemand {
        run.demand_without_bytes()
    }

    fn follow(&mut self) {
        loop {
            while let Some(effect) = self.worker.poll_effect() {
                match effect {
                    Effect::Grant { lease, slot, node } => {
                        // The next hint for the slot may follow before the task starts.
                        self.end_hint(lease, slot, node);
                        self.local.push_back(Local::Granted(lease, slot, node));
                    }
                    Effect::Prefetch { lease, slot, node } => self.prefetch(lease, slot, node),
                    Effect::Request { buckets, after: None } => self.asked += buckets,
                    Effect::Request { .. } => {}
                    Effect::Call { call } => self.calls.push_back(call),
                    effect => panic!("{effect:?}"),
                }
            }
            // Messages of the manager first: a stage loads its inputs before its first demand.
            if self.assign() {
                continue;
            }
            // The answer follows the instances that the worker has asked for.
            if let Some(call) = self.calls.pop_front().filter(|_| self.setup.answers) {
                self.worker.handle_sync_ack(call);
                continue;
            }
            match self.local.pop_front() {
                Some(Local::Begin(lease)) => self.begin(lease),
                Some(Local::Granted(lease, slot, node)) => self.start(lease, slot, node),
                None => return,
            }
        }
    }

    /// Assigns the next instance, if the worker has asked for one. Returns false without one.
    fn assign(&mut self) -> bool {
        if self.asked == 0 || self.next == self.setup.instances {
            return false;
        }
        self.asked -= 1;
        let number = self.next;
        self.next += 1;
        let lease = LeaseId(u64::from(number));
        self.worker.handle_assigned(lease, 0, BucketId(number), GrantReason::Request);
        let instance = InstanceWork {
            id: InstanceId(number),
            parameters: Vec::new(),
            inputs: vec![key(number)],
            outputs: vec![OutputPlan { key: key(1_000_000 + number), stored: true, reported: false }],
            stays: false,
        };
        let (drain, sharing) = (OutputConsumption::default(), ReuseScope::Dataflow);
        let work = BucketWork {
            bucket: BucketId(number),
            stage: 0,
            pixels: 1,
            drain,
            sharing,
            own_tile: None,
            instances: vec![instance],
            elsewhere: Vec::new(),
        };
        let bytes = self.stage.tasks.iter().map(|task| pleach_dispatch::memory_model::TaskMemory {
            scratch: 0,
            outputs: vec![0; task.writes.len()],
        });
        let mut run = BucketExecution::new(&self.stage, &work, bytes.collect(), None).expect("fits");
        let slots = self.setup.slots;
        run.set_device_tasks(&self.stage, self.setup.estimates(), slots.cores, slots.accelerators);
        self.buckets.insert(lease, run);
        self.local.push_back(Local::Begin(lease));
        true
    }

    fn begin(&mut self, lease: LeaseId) {
        let run = self.buckets.remove(&lease).expect("a bucket");
        let demand = Self::demand(&run);
        self.offer(lease, &run);
        self.buckets.insert(lease, run);
        self.worker.handle_demand(lease, demand);
    }

    fn offer(&mut self, lease: LeaseId, run: &BucketExecution) {
        let offers = run.offers_without_bytes();
        for offer in &offers {
            if let Some(after) = offer.after {
                self.after.insert((lease, offer.node), after);
            }
        }
        self.worker.handle_offers(lease, offers);
    }

    /// Returns a random number from -1 to 1.
    fn chance(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Begins the upload of a task, which is ready, on an accelerator that runs a different task.
    fn prefetch(&mut self, lease: LeaseId, slot: SlotId, node: NodeId) {
        let granted = |local: &Local| matches!(local, Local::Granted(_, granted, _) if *granted == slot);
        let is_busy = self.running.contains_key(&slot) || self.local.iter().any(granted);
        assert!(is_busy && self.setup.slots.kind(slot) == SlotKind::Accelerator, "{slot} runs no task");
        let offers = self.buckets[&lease].offers_without_bytes();
        assert!(offers.iter().any(|offer| offer.node == node && offer.on_accelerator), "{node} is not ready");
        let other = self.hints.iter().find(|(other, hint)| **other != slot && hint.0 == (lease, node));
        assert!(other.is_none(), "{node} of {lease} is hinted for {slot} and {other:?}");
        let before = self.hints.insert(slot, ((lease, node), self.now));
        assert!(before.is_none_or(|before| before.0 != (lease, node)), "{node} of {lease} is hinted twice");
        self.outcome.hints += 1;
    }

    /// Ends the hint of a task that has a slot. Its upload counts if it was for this slot.
    fn end_hint(&mut self, lease: LeaseId, slot: SlotId, node: NodeId) {
        let hinted =
            self.hints.get(&slot).filter(|(task, _)| *task == (lease, node)).map(|(_, since)| *since);
        self.hints.retain(|_, (task, _)| *task != (lease, node));
        self.outcome.prefetched += u32::from(hinted.is_some());
        let upload = Duration::from_secs_f64(self.setup.transfer_ms / 2000.0);
        self.uploaded.insert(slot, hinted.map_or(Duration::ZERO, |since| (self.now - since).min(upload)));
    }

    fn start(&mut self, lease: LeaseId, slot: SlotId, node: NodeId) {
        let run = self.buckets.get_mut(&lease).expect("a bucket");
        let level = run.start_task(&self.stage, node, 0).expect("ready").task;
        let demand = Self::demand(run);
        let run = self.buckets.remove(&lease).expect("a bucket");
        self.offer(lease, &run);
        self.buckets.insert(lease, run);
        let uploaded_ms = self.uploaded[&slot].as_secs_f64() * 1000.0;
        let scale = 1.0 + self.setup.spread * self.chance();
        let task = &self.setup.tasks[level];
        let ms = match self.setup.slots.kind(slot) {
            SlotKind::Core => task.core_ms,
            SlotKind::Accelerator => {
                let after = self.after.get(&(lease, node)).map(|after| (lease, *after));
                let is_local = after.is_some() && self.last.get(&slot).copied() == after;
                self.outcome.local += u32::from(is_local);
                self.last.insert(slot, (lease, node));
                let local = if is_local { self.setup.saved * self.setup.transfer_ms } else { 0.0 };
                task.device_ms + self.setup.transfer_ms - local.max(uploaded_ms)
            }
        };
        let time = Duration::from_secs_f64(ms * scale / 1000.0);
        if self.setup.slots.kind(slot) == SlotKind::Accelerator {
            self.outcome.device_seconds += time.as_secs_f64();
        }
        self.outcome.overlapped += u32::from(self.downloading.contains_key(&slot));
        let downloads = self.setup.downloads && self.setup.slots.kind(slot) == SlotKind::Accelerator;
        if downloads {
            self.push_end(self.now + time - self.download_time().mul_f64(scale), slot, End::Kernels);
        } else {
            self.push_end(self.now + time, slot, End::Task);
        }
        let before = self.running.insert(slot, Running { lease, node, level });
        assert!(before.is_none(), "{slot} runs two tasks");
        self.worker.handle_demand(lease, demand);
    }

    fn push_end(&mut self, time: Duration, slot: SlotId, end: End) {
        self.started += 1;
        self.ends.push(Reverse((time, self.started, slot, end)));
    }

    fn download_time(&self) -> Duration {
        Duration::from_secs_f64(self.setup.transfer_ms / 2000.0)
    }

    /// Begins the download of a task, once that of the task before has ended.
    fn end_kernels(&mut self, slot: SlotId) {
        if let Some(&(_, until, _)) = self.downloading.get(&slot) {
            return self.push_end(until, slot, End::Kernels);
        }
        let until = self.now + self.download_time();
        let running = self.running.remove(&slot).expect("running");
        self.outcome.downloads += 1;
        self.downloading.insert(slot, (running, until, self.outcome.downloads));
        self.push_end(until, slot, End::Download);
        self.worker.handle_slot_computed(slot, self.outcome.downloads);
    }

    fn end_download(&mut self, slot: SlotId) {
        let (running, _, number) = self.downloading.remove(&slot).expect("a download");
        let (lease, demand, is_over) = self.finish(slot, running);
        self.worker.handle_downloaded(slot, number, lease, demand);
        if is_over {
            self.worker.handle_bucket_finished(lease);
        }
    }

    fn end(&mut self, slot: SlotId) {
        let running = self.running.remove(&slot).expect("running");
        let (lease, demand, is_over) = self.finish(slot, running);
        self.worker.handle_slot_free(slot, lease, demand);
        if is_over {
            self.worker.handle_bucket_finished(lease);
        }
    }

    /// Ends a task in its bucket. Returns the bucket's demand, and whether it was the last task.
    fn finish(&mut self, slot: SlotId, running: Running) -> (LeaseId, BucketDemand, bool) {
        let Running { lease, node, level } = running;
        let mut run = self.buckets.remove(&lease).expect("a bucket");
        let kind = self.setup.slots.kind(slot);
        self.on_devices += u32::from(kind == SlotKind::Accelerator);
        let fails = self.setup.fails_every.is_some_and(|every| self.on_devices.is_multiple_of(every));
        if kind == SlotKind::Accelerator && fails {
            run.handle_device_failed(node);
            let errors = self.errors.entry(slot).or_default();
            *errors += 1;
            if *errors == 3 {
                self.worker.handle_slot_closed(slot);
                self.hints.remove(&slot);
                self.outcome.closed += 1;
            }
        } else {
            self.outcome.ran.entry((lease.0 as u32, level)).or_default().push(kind);
            run.handle_done(node);
        }
        // The last task of the stage only ends the instance.
        let last = self.setup.tasks.len();
        let next = run.demand_without_bytes().next;
        if let Some(next) = next.filter(|next| run.request(&self.stage, *next).task == last) {
            run.start_task(&self.stage, next, 0).expect("ready");
            run.handle_done(next);
        }
        let mut is_over = false;
        while let Some(effect) = run.poll_effect() {
            is_over |= effect == stage::Effect::Over;
        }
        let demand = Self::demand(&run);
        self.offer(lease, &run);
        if !is_over {
            self.buckets.insert(lease, run);
        }
        (lease, demand, is_over)
    }
}
