//! A faulty worker in the result directory: it announces results that it has no claim of, or sends other content than it
//! has announced. The other workers refuse both and compute the tasks themselves, so no result differs. Nor does it if the
//! link to a sound worker is slow.

use crate::cluster::{Cluster, connected, patient, soon};
use crate::faulty::{Conduct, Faulty, record};
use crate::outcome::{Sets, check, request};
use crate::sharing_worker::Worker;
use crate::toy::{input_key, number, plan};
use crate::worker;
use actix::prelude::*;
use pleach_actors::directory::DirectoryMetrics;
use pleach_actors::exchange::Exchange;
use pleach_actors::manager::{GetView, ManagerActor, ServiceHooks, StartPlan};
use pleach_actors::transport::hello::Hello;
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::{Peer, Server};
use pleach_actors::transport::{Link, codec};
use pleach_actors::worker::LinkUp;
use pleach_dispatch::PlanId;
use pleach_dispatch::directory::TaskRecord;
use pleach_dispatch::message::{ToManager, ToWorker};
use pleach_dispatch::plan::{ExecutionPlan, GrantOrder, ReuseScope};
use pleach_dispatch::stage::task_key::{TaskInputId, key};
use pleach_dispatch::study::StudyOutcome;
use pleach_regions::{DataRegion, TaskKey, provenance_id};
use pleach_workflow::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

/// Two sound workers, a faulty one, and their manager.
struct Group<'a> {
    cluster: &'a Cluster,
    manager: Addr<ManagerActor>,
    server: Server,
    peers: Receiver<Peer>,
    workers: Vec<Worker>,
}

impl<'a> Group<'a> {
    async fn new(cluster: &'a Cluster) -> Self {
        let service = ServiceHooks {
            number: 7,
            epoch: 1,
            // The store had it when it was looked up.
            find_file: Arc::new(|_| Some("/no/such/folder/file".into())),
            check_file: Arc::new(|_, _, _| true),
            clock: cluster.clock(),
            network: cluster.network.handle().clone(),
            by_data: true,
        };
        let (server, peers) = cluster.listen(cluster.setup());
        let manager = ManagerActor::for_service(service).start();
        let mut group = Self { cluster, manager, server, peers, workers: Vec::new() };
        for (name, incarnation) in [("w1", 1), ("w2", 2)] {
            let worker = Worker::start(cluster, name, incarnation);
            let far = group.connect(name).await;
            worker.actor.do_send(LinkUp { link: Box::new(far.link), incoming: far.incoming });
            group.workers.push(worker);
        }
        group
    }

    async fn connect(&mut self, name: &str) -> Peer {
        let connector = self.cluster.connector(name, Role::Worker);
        let far = soon(connector.connect(self.server.address(), Role::Manager, Hello::default())).await;
        let near = soon(self.peers.recv()).await.expect("it has come in");
        self.manager.do_send(connected(near, name));
        far.unwrap_or_else(|refusal| panic!("{name}: {refusal}"))
    }

    /// Joins a faulty worker that requests no work. Returns it once all three know each other, with its exchange and its
    /// link to the manager.
    async fn faulty(&mut self, conduct: Conduct, content: DataRegion) -> (Faulty, Exchange, Peer) {
        let exchange = worker::Worker::new(self.cluster, "w3", None).exchange;
        let faulty = Faulty::new(3, &exchange, conduct, content);
        let mut far = self.connect("w3").await;
        let port = Some(exchange.address().port());
        let join = ToManager::Join {
            slots: 1,
            accelerators: 0,
            device_bytes: 0,
            incarnation: 3,
            exchange_port: port,
            before: None,
        };
        far.link.send(codec::encode(&join).expect("a message")).expect("the link is there");
        let mut known = 0;
        let mut all = pleach_dispatch::directory::MemberChange::default();
        while known < 3 {
            let frame = soon(far.incoming.recv()).await.expect("the link is there");
            if let ToWorker::Members(change) = codec::decode(&frame).expect("a message") {
                all.joined.extend(change.joined);
                known = all.joined.len();
            }
        }
        faulty.set_members(all);
        for worker in &self.workers {
            while soon(worker.directory()).await.members < 3 {
                tokio::task::yield_now().await;
            }
        }
        (faulty, exchange, far)
    }

    /// Executes the study.
    async fn execute(&self, plan: ExecutionPlan) -> StudyOutcome {
        let (done, outcome) = oneshot::channel();
        let study = request(plan, done);
        let begun = self.manager.send(StartPlan { id: PlanId::first_round(1), study }).await;
        begun.expect("the manager lives");
        soon(outcome).await.expect("the manager lives")
    }

    /// Sums a counter of the sound workers' directories.
    async fn sum(&self, counter: impl Fn(&DirectoryMetrics) -> u64) -> u64 {
        let mut sum = 0;
        for worker in &self.workers {
            sum += counter(&soon(worker.directory()).await);
        }
        sum
    }

    fn runs(&self) -> usize {
        self.workers.iter().map(|worker| worker.watch.runs.load(Ordering::SeqCst)).sum()
    }
}

fn sets() -> Sets {
    (0..24).map(|n| (0, [n % 2, n % 4, n % 8, n, n % 3])).collect()
}

fn shared_plan() -> ExecutionPlan {
    ExecutionPlan { sharing: ReuseScope::Dataflow, ..plan(&sets(), 4) }
}

/// Returns the keys of the first stage's tasks, with the values that they compute.
fn tasks(plan: &ExecutionPlan) -> HashMap<TaskKey, f64> {
    let mut tasks = HashMap::new();
    for (_, set) in sets() {
        let mut read = TaskInputId::Stored(input_key(0));
        for (level, task) in plan.stages[0].tasks.iter().enumerate() {
            let task_key = key(task, &[Value::Integer(set[level])], [read].into_iter());
            let value = set[..=level].iter().fold(1.0, |x, add| 31.0 * x + *add as f64);
            tasks.insert(task_key, value);
            read = TaskInputId::Output(provenance_id(&task_key, 0));
        }
    }
    tasks
}

/// Distinct computations of the study: each runs once if all results are shared.
fn distinct() -> usize {
    let prefixes = |levels: usize| {
        let mut all: Vec<Vec<i64>> = sets().iter().map(|(_, set)| set[..levels].to_vec()).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    (1..=5).map(prefixes).sum()
}

#[test]
fn planted_results_are_refused_counted_and_not_used() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        let mut group = Group::new(&cluster).await;
        // Its announced digest is right for its content, which is wrong for every task.
        let wrong = number(666.0);
        let digest = wrong.digest();
        let (faulty, exchange, _link) = group.faulty(Conduct::Honest, wrong).await;
        let plan = shared_plan();
        let planted: Vec<(TaskKey, TaskRecord)> =
            tasks(&plan).into_keys().map(|key| (key, record(key, &[true], digest))).collect();
        faulty.plant(&planted);
        // Two announcements of each task at each of the two others.
        while group.sum(|directory| directory.stats.unclaimed).await < 4 * planted.len() as u64 {
            tokio::task::yield_now().await;
        }
        assert!(group.sum(|directory| directory.stats.impersonated).await > 0);
        assert_eq!(group.sum(|directory| directory.entries as u64).await, 0);
        let outcome = group.execute(plan).await;
        check(&sets(), &outcome);
        assert_eq!(faulty.sent(), 0, "no worker asked for a planted result");
        // A task whose look-up a busy machine does not answer in time runs again, and those that the first worker runs while the
        // second one gets a bucket of its tile. Without shared results, each of both runs nearly all.
        let unanswered = group.sum(|directory| directory.stats.unanswered).await as usize;
        let (runs, most) = (group.runs(), distinct() + distinct() / 4 + unanswered);
        assert!((distinct()..=most).contains(&runs), "{runs} runs, {unanswered} unanswered");
        exchange.close().await;
    });
}

/// The worker has computed the right digests under its claims, and sends other content.
#[test]
fn result_with_other_content_is_computed_again() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        let mut group = Group::new(&cluster).await;
        let (faulty, exchange, _link) = group.faulty(Conduct::Honest, number(666.0)).await;
        let plan = shared_plan();
        let claimed: Vec<(TaskKey, TaskRecord)> = tasks(&plan)
            .into_iter()
            .map(|(key, value)| (key, record(key, &[true], number(value).digest())))
            .collect();
        let count = claimed.len();
        faulty.claim(claimed);
        while faulty.announced() < count {
            tokio::task::yield_now().await;
        }
        let outcome = group.execute(plan).await;
        check(&sets(), &outcome);
        let rejected = group.sum(|directory| directory.stats.rejected).await;
        assert!(rejected > 0 && faulty.sent() > 0, "{rejected} rejected, {} sent", faulty.sent());
        // Each of the stage's six buckets asks for an output once.
        assert!(faulty.sent() <= 6 * count, "{} requests, {count} results", faulty.sent());
        assert!(group.runs() <= 2 * distinct(), "{} runs", group.runs());
        exchange.close().await;
    });
}

/// The shard of a third of the tasks lists itself as holder, whatever it is told.
#[test]
fn study_completes_with_a_shard_that_lists_wrong_results() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        let mut group = Group::new(&cluster).await;
        let (faulty, exchange, _link) = group.faulty(Conduct::ListsItself, number(666.0)).await;
        let outcome = group.execute(shared_plan()).await;
        check(&sets(), &outcome);
        assert!(!faulty.asked().is_empty() && faulty.sent() > 0);
        // Each of the six buckets of both stages asks for an output once.
        assert!(faulty.sent() <= 6 * distinct(), "{} requests", faulty.sent());
        exchange.close().await;
    });
}

/// Executes the study with a sound third worker, which has the outputs of the first tasks. Returns how many of them it sent, how
/// many tasks ran again, and all runs.
async fn with_link(cluster: &Cluster, seconds: u64) -> (usize, u64, usize) {
    let mut group = Group::new(cluster).await;
    let sets: Sets = (0..24).map(|n| (0, [1, n % 4, n % 8, n, n % 3])).collect();
    let first = number(32.0);
    let digest = first.digest();
    let (sound, exchange, _link) = group.faulty(Conduct::Honest, first).await;
    for worker in &group.workers {
        for region in 0..10 {
            worker.exchange.observe_link(exchange.address(), 100 * region, Duration::from_secs(seconds));
        }
    }
    // In the order of release, a worker gets one bucket at a time, however short: both take part.
    let (sharing, order) = (ReuseScope::Dataflow, GrantOrder::Release);
    let plan = ExecutionPlan { sharing, order, ..plan(&sets, 4) };
    let read = TaskInputId::Stored(input_key(0));
    let task = key(&plan.stages[0].tasks[0], &[Value::Integer(1)], [read].into_iter());
    sound.claim(vec![(task, record(task, &[true], digest))]);
    while sound.announced() < 1 {
        tokio::task::yield_now().await;
    }
    let outcome = group.execute(plan).await;
    check(&sets, &outcome);
    let recomputed = group.workers.iter().map(|worker| worker.exchange.counts().recomputed).sum();
    let runs = group.runs();
    exchange.close().await;
    (sound.sent(), recomputed, runs)
}

#[test]
fn workers_report_their_links() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        let group = Group::new(&cluster).await;
        let other = group.workers[1].exchange.address();
        for region in 0..10 {
            group.workers[0].exchange.observe_link(other, 100 * region, Duration::from_secs(10));
        }
        let reported = async {
            loop {
                let view = group.manager.send(GetView).await.expect("the manager lives");
                let mut links = view.workers.into_iter().map(|worker| (worker.name, worker.transfers));
                if let Some((name, Some(cost))) = links.find(|(_, cost)| cost.is_some()) {
                    return (name, cost.latency_seconds.round());
                }
            }
        };
        assert_eq!(soon(reported).await, ("w1".to_owned(), 10.0));
    });
}

#[test]
fn outputs_behind_a_slow_link_are_computed_again() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        // A worker that executes all of the tile looks nothing up, so it takes some attempts.
        let mut found = None;
        for _ in 0..20 {
            let (sent, recomputed, runs) = with_link(&cluster, 0).await;
            assert_eq!(recomputed, 0);
            if sent > 0 {
                found = Some(runs);
                break;
            }
        }
        let runs = found.expect("an output that is sent");
        for _ in 0..20 {
            // Ten seconds for an output, one for its task.
            let (sent, recomputed, more_runs) = with_link(&cluster, 10).await;
            assert_eq!(sent, 0);
            if recomputed > 0 {
                assert!(more_runs > runs, "{recomputed} run again, {more_runs} and {runs} runs");
                return;
            }
        }
        panic!("no task ran again");
    });
}

/// The study would wait for the file forever.
#[test]
fn file_that_cannot_be_read_is_reported_as_missing() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        let mut group = Group::new(&cluster).await;
        let (_faulty, exchange, mut far) = group.faulty(Conduct::Honest, number(0.0)).await;
        let digest = [5; 32];
        far.link
            .send(codec::encode(&ToManager::File { digest }).expect("a message"))
            .expect("the link is there");
        let answer = async {
            while let Some(frame) = far.incoming.recv().await {
                if let ToWorker::FileMissing { digest } = codec::decode(&frame).expect("a message") {
                    return Some(digest);
                }
            }
            None
        };
        assert_eq!(soon(answer).await, Some(digest));
        exchange.close().await;
    });
}
