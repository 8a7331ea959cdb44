//! Workers that share task results: the real manager, and on each simulated worker the real worker, bucket execution and
//! result directory.
//!
//! The shells follow the actors: a task with a slot is looked up in the worker's results, then in the directory; short tasks
//! are looked up ahead; a task found elsewhere is done without its outputs, which the first task that runs and reads them
//! fetches. Messages take a latency drawn from a range, in order on each link. Each worker sends one region at a time and
//! receives one at a time. The tile is present, digests and the directory's computations take no time.
//! The same options give the same simulation, event by event.

mod fetch;
mod manager_side;
mod node;
mod nuclei;
mod results;
mod stage;
mod study;
mod transfer;
mod withdrawal;

use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::recorder::RecordedManager;
use node::{Activity, Node};
use pleach_dispatch::directory::{DirectoryMessage, Member, MemberChange, MemberId, NodeDigest};
use pleach_dispatch::message::{BucketWork, GrantReason, TaskReport};
use pleach_dispatch::stage::OutputId;
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use pleach_regions::{RegionIdentity, TaskKey};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
pub use study::{SharedStudy, SharedTask, StudyCost};

/// Node of all workers: no simulated message is forged.
const NODE: NodeDigest = NodeDigest([0; 16]);

/// Options of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharingOptions {
    /// Workers of one slot.
    pub workers: usize,
    /// Planned ranges of instances for each worker.
    pub ranges: usize,
    /// Seed of latencies.
    pub seed: u64,
    /// Whether workers share results through the directory.
    pub shared: bool,
    /// Whether a stage looks up another task while it waits for a claimer.
    pub takes_others: bool,
    /// Maximum of buckets of a worker while they wait for claimers.
    pub waiting_buckets: usize,
    /// With at most this number of open tasks in a bucket, the longest path is first.
    pub tail_tasks: usize,
    /// Whether workers continue instances of each other with longer paths, near the end.
    pub steals_paths: bool,
    /// Range of a message's one-way latency in microseconds.
    pub latency_us: (u64, u64),
    /// Bytes per second that a worker sends, and that it receives.
    pub bytes_per_second: f64,
    /// Maximum of a worker's results in memory.
    pub result_bytes: u64,
    /// Workers that lose power, and the time after the submission in microseconds.
    pub lost: Option<(usize, u64)>,
    /// Whether fetched outputs are announced before the task that reads them has run, and those of tasks with several
    /// outputs as well.
    pub announces_early: bool,
    /// Whether receivers of an output send it on to others that wait for its holder.
    pub broadcasts: bool,
    /// Whether tasks run again where that is faster than the transfer of their outputs.
    pub recomputes: bool,
    /// Records all events.
    pub logged: bool,
}

/// About 8 instances of 5 open tasks: few enough that their outputs fit into memory.
const TAIL_TASKS: usize = 40;

impl SharingOptions {
    /// Round trips of 0.2–2 ms, 10 Gbit/s, no loss, no eviction.
    #[must_use]
    pub fn new(workers: usize, seed: u64) -> Self {
        Self {
            workers,
            ranges: 1,
            seed,
            shared: true,
            takes_others: true,
            waiting_buckets: 1,
            tail_tasks: TAIL_TASKS,
            steals_paths: true,
            latency_us: (100, 1000),
            bytes_per_second: 1.25e9,
            result_bytes: u64::MAX,
            lost: None,
            announces_early: true,
            broadcasts: true,
            recomputes: true,
            logged: false,
        }
    }
}

/// Statistics of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharingStats {
    /// Seconds from the submission to the end.
    pub makespan_seconds: f64,
    /// Seconds of all runs of tasks.
    pub run_seconds: f64,
    /// Runs of tasks.
    pub runs: u64,
    /// Runs of tasks that had run before, by key.
    pub repeated: u64,
    /// Seconds of these runs.
    pub repeated_seconds: f64,
    /// Bytes fetched from other workers.
    pub bytes_moved: u64,
    /// Look-ups in the directory.
    pub look_ups: u64,
    /// Look-ups that waited for another worker.
    pub waited: u64,
    /// Look-ups without an answer, or with too long a wait.
    pub unanswered: u64,
    /// Returns of instances to the manager.
    pub steals: u64,
    /// Largest result cache of a worker, in bytes.
    pub max_result_bytes: u64,
    /// Minimum and maximum of the workers' seconds of runs.
    pub share_seconds: (f64, f64),
    /// Slot-seconds by use: fetches, look-ups, waits for claims, no work.
    pub idle_seconds: [f64; 4],
    /// Finished instances. Some may be finished twice after a loss.
    pub finished: u64,
}

#[derive(Debug)]
enum WorkerMessage {
    Request(u32, Option<u32>),
    /// The path of the next task.
    Query(Duration),
    Spare(LeaseId, Vec<InstanceId>, Duration),
    Call(u64),
    Done(LeaseId, InstanceId, Vec<TaskReport>),
    Back(LeaseId, Vec<InstanceId>),
}

#[derive(Debug)]
enum ManagerMessage {
    Assign(LeaseId, Box<BucketWork>, GrantReason),
    Revoke(LeaseId),
    Share(LeaseId, Duration),
    QueryAnswer(bool),
    SyncAck(u64),
    Members(MemberChange),
    Introduce,
    Over,
}

#[derive(Debug)]
enum Due {
    Submit,
    Tick,
    NodeTick(usize),
    ToManager(usize, WorkerMessage),
    ToNode(usize, ManagerMessage),
    Directory(usize, DirectoryMessage),
    /// A request for an output of a job arrives at the first of the remaining holders.
    Asked {
        node: usize,
        job: u64,
        output: OutputId,
        holders: Vec<MemberId>,
    },
    /// The output arrives, or no holder has it.
    Fetched {
        node: usize,
        job: u64,
        output: OutputId,
        is_there: bool,
    },
    /// A holder has sent an output.
    Sent {
        holder: usize,
        identity: RegionIdentity,
        to: usize,
    },
    Ran(usize, u64),
    Kill(usize),
    Missed(usize),
}

/// Interval of the manager's ticks, as in its actor.
const TICK_US: u64 = 100_000;

/// Interval of the directory's ticks, as in its actor.
const NODE_TICK_US: u64 = 250_000;

/// Time of the submission. All workers have joined and wait.
const SUBMIT_US: u64 = 1_000_000;

/// Time until the manager misses a lost worker: the idle timeout of a connection.
const MISSED_US: u64 = 2_100_000;

/// The simulated cluster.
#[derive(Debug)]
pub struct SharingCluster {
    study: SharedStudy,
    options: SharingOptions,
    manager: RecordedManager,
    nodes: Vec<Node>,
    by_member: HashMap<MemberId, usize>,
    by_worker: BTreeMap<pleach_dispatch::WorkerId, usize>,
    random: Random,
    now_us: u64,
    queue: EventQueue<Due>,
    /// Last arrival on each link. The manager has the number of nodes.
    links: HashMap<(usize, usize), u64>,
    jobs: u64,
    ran: HashMap<TaskKey, u32>,
    share_seconds: Vec<f64>,
    is_over: bool,
    stats: SharingStats,
    log: Vec<String>,
}

const STUDY: PlanId = PlanId::first_round(0);

impl SharingCluster {
    /// Creates a cluster for a study, with one range of instances for each worker.
    ///
    /// # Panics
    /// Never, except if the manager is not able to begin.
    #[must_use]
    pub fn new(study: SharedStudy, options: SharingOptions) -> Self {
        let plan = study.plan(options.ranges * options.workers);
        let nodes: Vec<Node> = (0..options.workers).map(|number| Node::new(number, &options)).collect();
        let mut cluster = Self {
            by_member: nodes.iter().enumerate().map(|(number, node)| (node.id, number)).collect(),
            by_worker: BTreeMap::new(),
            manager: RecordedManager::new(vec![plan], options.logged, false),
            study,
            options,
            share_seconds: vec![0.0; nodes.len()],
            nodes,
            random: Random::new(options.seed),
            now_us: 0,
            queue: EventQueue::default(),
            links: HashMap::new(),
            jobs: 0,
            ran: HashMap::new(),
            is_over: false,
            stats: SharingStats::default(),
            log: Vec::new(),
        };
        cluster.join_all();
        cluster.at(SUBMIT_US, Due::Submit);
        cluster.at(TICK_US, Due::Tick);
        if let Some((lost, after_us)) = options.lost {
            // Spread over the plan's ranges.
            let step = options.workers / lost.max(1);
            (0..lost).for_each(|number| cluster.at(SUBMIT_US + after_us, Due::Kill(number * step)));
        }
        cluster
    }

    fn join_all(&mut self) {
        let all: Vec<Member> = self
            .nodes
            .iter()
            .map(|node| Member { id: node.id, address: node.address(), node: NODE })
            .collect();
        let change = MemberChange { is_complete: true, joined: all, left: Vec::new() };
        for number in 0..self.nodes.len() {
            self.join(number);
            if self.options.shared {
                self.nodes[number].directory.handle_members(&change, Duration::ZERO);
            }
            let wait = self.random.word() % NODE_TICK_US;
            self.at(wait, Due::NodeTick(number));
            self.follow(number);
        }
    }

    /// Runs until the study has ended.
    ///
    /// # Errors
    /// Describes the broken rule, or the instances that are open after `limit_seconds`.
    pub fn run(&mut self, limit_seconds: f64) -> Result<SharingStats, String> {
        while !self.is_over {
            let Some((at, due)) = self.queue.pop() else {
                return Err("no event".to_owned());
            };
            self.now_us = at;
            if at as f64 / 1e6 > limit_seconds {
                let open = self.manager.manager().study(STUDY).map_or(0, |study| study.unfinished());
                return Err(format!("{open} instances are open after {limit_seconds} s"));
            }
            if self.options.logged {
                self.log.push(format!("{at} {due:?}"));
            }
            self.happen(due)?;
        }
        Ok(self.figures())
    }

    /// Returns the recorded events.
    #[must_use]
    pub fn log(&self) -> &[String] {
        &self.log
    }

    fn figures(&mut self) -> SharingStats {
        for number in 0..self.nodes.len() {
            self.note_activity(number);
        }
        let mut stats = self.stats.clone();
        stats.makespan_seconds = (self.now_us - SUBMIT_US) as f64 / 1e6;
        for node in &self.nodes {
            let of = node.directory.stats();
            stats.look_ups += of.look_ups;
            stats.waited += of.waited;
            stats.unanswered += of.unanswered;
            stats.max_result_bytes = stats.max_result_bytes.max(node.results.peak_bytes);
        }
        let least = self.share_seconds.iter().copied().fold(f64::MAX, f64::min);
        stats.share_seconds = (least, self.share_seconds.iter().copied().fold(0.0, f64::max));
        stats
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.now_us)
    }

    fn at(&mut self, at_us: u64, due: Due) {
        self.queue.push(at_us, due);
    }

    fn latency_us(&mut self) -> u64 {
        let (least, most) = self.options.latency_us;
        least + self.random.word() % (most - least + 1)
    }

    /// Returns the arrival of a message that is sent now.
    fn arrival_us(&mut self, from: usize, to: usize) -> u64 {
        let at = self.now_us + self.latency_us();
        let last = self.links.entry((from, to)).or_insert(0);
        *last = (*last).max(at);
        *last
    }

    fn happen(&mut self, due: Due) -> Result<(), String> {
        let is_up = |cluster: &Self, node: usize| cluster.nodes[node].up;
        match due {
            Due::Submit => self.submit()?,
            Due::Tick => self.tick()?,
            Due::NodeTick(node) if is_up(self, node) => {
                let now = self.now();
                self.nodes[node].directory.handle_time(now);
                self.nodes[node].directory.check(now)?;
                self.at(self.now_us + NODE_TICK_US, Due::NodeTick(node));
                self.follow(node);
            }
            Due::ToManager(node, message) => self.manager_receives(node, message)?,
            Due::ToNode(node, message) if is_up(self, node) => {
                self.worker_receives(node, message);
                self.follow(node);
            }
            Due::Directory(node, message) if is_up(self, node) => {
                let now = self.now();
                self.nodes[node].directory.handle_message(message, NODE, now);
                self.follow(node);
            }
            Due::Asked { node, job, output, holders } => self.asked(node, job, output, holders),
            Due::Sent { holder, identity, to } if is_up(self, holder) => self.sent(holder, identity, to),
            Due::Fetched { node, job, output, is_there } if is_up(self, node) => {
                self.fetched(node, job, output, is_there);
                self.follow(node);
            }
            Due::Ran(node, job) if is_up(self, node) => {
                self.end_job(node, job);
                self.follow(node);
            }
            Due::Kill(node) => {
                self.note_activity(node);
                self.nodes[node].up = false;
                self.end_sends(node);
                self.at(self.now_us + MISSED_US, Due::Missed(node));
            }
            Due::Missed(node) => self.missed(node)?,
            _ => {}
        }
        Ok(())
    }

    /// Adds the slot time since the last change of a worker's activity.
    fn note_activity(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        if !node.up {
            return;
        }
        let (activity, since) = node.activity;
        let seconds = (self.now_us - since.max(SUBMIT_US).min(self.now_us)) as f64 / 1e6;
        node.activity = (node.present_activity(), self.now_us);
        let index = match activity {
            Activity::Runs => return,
            Activity::Fetches => 0,
            Activity::LooksUp => 1,
            Activity::Waits => 2,
            Activity::NoWork => 3,
        };
        self.stats.idle_seconds[index] += seconds;
    }
}
