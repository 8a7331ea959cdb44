//! Workers with cores and accelerators: the real manager, and on each simulated node the real worker and bucket executions, which
//! place each task by the worker's schedule policy.
//!
//! A task takes seconds by the kind of its slot, times log-normal factors of its tile and its own. Estimates are the means.
//! Messages take a latency drawn from a range, in order on each link. Messages within a node take no time. Regions are present
//! wherever a task reads them: files, memory and transfers between nodes are not simulated. The manager gets no ticks, so that
//! it neither steals nor runs a lease twice, and each task runs once.
//! The same options give the same simulation, event by event.

mod manager_side;
mod node;
mod study;

use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::recorder::RecordedManager;
use node::Node;
use pleach_dispatch::message::{BucketWork, GrantReason, TaskReport};
use pleach_dispatch::worker::WorkerSlots;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, SlotId, WorkerId};
use std::collections::BTreeMap;
use std::time::Duration;
pub use study::{HybridStudy, InvalidHybridStudy, PipelineTask, TaskSeconds};

const STUDY: PlanId = PlanId::first_round(0);

/// Time of the submission. All workers have joined and wait.
const SUBMIT_US: u64 = 1_000_000;

/// Options of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridOptions {
    /// The nodes, each with one worker.
    pub nodes: Vec<WorkerSlots>,
    /// Maximum of buckets of a node with accelerators at once. `None` for the worker's default, 2.5 for each slot.
    pub max_buckets: Option<u32>,
    /// Seed of latencies and task times.
    pub seed: u64,
    /// Coefficient of variation of the factor of a tile, and of that of a task.
    pub variation: f64,
    /// Seconds of the transfers of a task on an accelerator. A task that runs where the task ended that made it ready saves
    /// half: its inputs are there.
    pub transfer_seconds: f64,
    /// Range of a message's one-way latency in microseconds.
    pub latency_us: (u64, u64),
    /// Audits all effects of the manager.
    pub audited: bool,
    /// Records all events.
    pub logged: bool,
}

impl HybridOptions {
    /// Equal task times, no transfers, and round trips of 0.2–2 ms.
    #[must_use]
    pub fn new(nodes: Vec<WorkerSlots>, seed: u64) -> Self {
        Self {
            nodes,
            max_buckets: None,
            seed,
            variation: 0.0,
            transfer_seconds: 0.0,
            latency_us: (100, 1000),
            audited: false,
            logged: false,
        }
    }
}

/// Runs and seconds of tasks on one kind of slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KindRuns {
    /// Runs of tasks.
    pub runs: u64,
    /// Their seconds, transfers included.
    pub seconds: f64,
}

/// Runs of a task of a stage by kind of slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskRuns {
    /// On cores.
    pub cores: KindRuns,
    /// On accelerators.
    pub accelerators: KindRuns,
}

/// Statistics of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HybridStats {
    /// Seconds from the submission to the end.
    pub makespan_seconds: f64,
    /// Runs of all tasks with slots.
    pub total: TaskRuns,
    /// By stage and task of it: its runs with slots.
    pub tasks: Vec<Vec<TaskRuns>>,
    /// Tasks without time, which end without a slot.
    pub ends: u64,
    /// Tasks that ran on the accelerator where the task ended that made them ready. Counted with transfers only.
    pub local: u64,
    /// Messages between the manager and workers.
    pub messages: u64,
    /// Finished instances.
    pub finished: u64,
}

#[derive(Debug)]
enum WorkerMessage {
    Request(u32, Option<u32>),
    Call(u64),
    Done(LeaseId, InstanceId, Vec<TaskReport>),
}

#[derive(Debug)]
enum ManagerMessage {
    Introduce,
    Assign(LeaseId, Box<BucketWork>, GrantReason),
    SyncAck(u64),
    Over,
}

#[derive(Debug)]
enum Due {
    Submit,
    ToManager(usize, WorkerMessage),
    ToNode(usize, ManagerMessage),
    /// The task in a slot of a node ends.
    Ended(usize, SlotId),
}

/// The simulated cluster.
#[derive(Debug)]
pub struct HybridCluster {
    study: HybridStudy,
    options: HybridOptions,
    manager: RecordedManager,
    nodes: Vec<Node>,
    by_worker: BTreeMap<WorkerId, usize>,
    random: Random,
    now_us: u64,
    queue: EventQueue<Due>,
    /// By node: last arrival at the manager, and from it.
    links: Vec<[u64; 2]>,
    /// By instance and task: its runs, under the first instance of a bucket that needs it.
    runs: Vec<u8>,
    /// Tasks of all assigned buckets.
    assigned: u64,
    is_over: bool,
    stats: HybridStats,
    log: Vec<String>,
}

impl HybridCluster {
    /// Creates a cluster for a study.
    #[must_use]
    pub fn new(study: HybridStudy, options: HybridOptions) -> Self {
        let mut cluster = Self {
            manager: RecordedManager::new(vec![study.plan().clone()], options.audited, false),
            nodes: options.nodes.iter().map(|slots| Node::new(*slots, &options)).collect(),
            by_worker: BTreeMap::new(),
            random: Random::new(options.seed),
            now_us: 0,
            queue: EventQueue::default(),
            links: vec![[0; 2]; options.nodes.len()],
            runs: vec![0; study.plan().instances.len() * study.max_tasks()],
            assigned: 0,
            is_over: false,
            stats: HybridStats { tasks: study.no_runs(), ..HybridStats::default() },
            log: Vec::new(),
            study,
            options,
        };
        cluster.at(SUBMIT_US, Due::Submit);
        cluster
    }

    /// Runs until the study has ended.
    ///
    /// # Errors
    /// Describes the broken rule: a task that ran twice or not at all, a task on a kind of slot without a variant of it, or
    /// instances that are open when no event is left or after `limit_seconds`.
    pub fn run(&mut self, limit_seconds: f64) -> Result<HybridStats, String> {
        for number in 0..self.nodes.len() {
            self.join(number)?;
            self.follow(number)?;
        }
        while !self.is_over {
            let next = self.queue.pop().filter(|(at, _)| *at as f64 / 1e6 <= limit_seconds);
            let Some((at, due)) = next else {
                let open = self.manager.manager().study(STUDY).map_or(0, |study| study.unfinished());
                return Err(format!("{open} instances are open after {} s", self.now_us as f64 / 1e6));
            };
            self.now_us = at;
            if self.options.logged {
                self.log.push(format!("{at} {due:?}"));
            }
            self.happen(due)?;
        }
        self.check_runs()?;
        self.stats.makespan_seconds = (self.now_us - SUBMIT_US) as f64 / 1e6;
        Ok(self.stats.clone())
    }

    /// Checks that each task of each assigned bucket has run once.
    fn check_runs(&self) -> Result<(), String> {
        let runs: u64 = self.runs.iter().map(|runs| u64::from(*runs)).sum();
        let finished = self.study.plan().instances.len() as u64;
        if runs != self.assigned || self.stats.finished != finished {
            let done = self.stats.finished;
            return Err(format!(
                "{runs} tasks of {} ran, and {done} instances of {finished} are finished",
                self.assigned
            ));
        }
        Ok(())
    }

    /// Returns the recorded events.
    #[must_use]
    pub fn log(&self) -> &[String] {
        &self.log
    }

    /// Returns the number of the manager's events, and the time that it took for them.
    #[must_use]
    pub fn manager_work(&self) -> (u64, Duration) {
        self.manager.work()
    }

    fn happen(&mut self, due: Due) -> Result<(), String> {
        match due {
            Due::Submit => self.submit(),
            Due::ToManager(node, message) => self.manager_receives(node, message),
            Due::ToNode(node, message) => {
                self.worker_receives(node, message)?;
                self.follow(node)
            }
            Due::Ended(node, slot) => {
                self.end_task(node, slot)?;
                self.follow(node)
            }
        }
    }

    fn at(&mut self, at_us: u64, due: Due) {
        self.queue.push(at_us, due);
    }

    /// Returns the arrival of a message that is sent now.
    fn arrival_us(&mut self, number: usize, is_to_manager: bool) -> u64 {
        self.stats.messages += 1;
        let (least, most) = self.options.latency_us;
        let at = self.now_us + least + self.random.word() % (most - least + 1);
        let last = &mut self.links[number][usize::from(!is_to_manager)];
        *last = (*last).max(at);
        *last
    }
}
