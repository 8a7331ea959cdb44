//! Long histories of random events; what must be true after each, the model in `cluster` knows.

use crate::cluster::{Cluster, Granted};
use crate::plans::plans;
use pleach_dispatch::{InstanceId, WorkerId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// What may happen to a cluster; numbers choose among what there is at the time.
#[derive(Clone, Copy, Debug)]
enum Event {
    Join,
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
    Leave {
        worker: usize,
    },
    /// A report that was already made, or by a worker that has left.
    Late {
        which: usize,
        succeeds: bool,
    },
    /// A report in another worker's name.
    Forged {
        which: usize,
    },
    /// A worker cannot get what an instance reads.
    Lacks {
        which: usize,
    },
    Replan {
        stage: u32,
        chosen: u64,
        size: usize,
    },
}

fn events() -> impl Strategy<Value = Event> {
    let number = any::<usize>;
    prop_oneof![
        2 => Just(Event::Join),
        6 => (number(), 0u32..4).prop_map(|(worker, buckets)| Event::Ask { worker, buckets }),
        4 => (number(), 0u32..4).prop_map(|(worker, stage)| Event::AskAfter { worker, stage }),
        10 => (number(), prop::bool::weighted(0.9))
            .prop_map(|(which, succeeds)| Event::Report { which, succeeds }),
        2 => number().prop_map(|worker| Event::Leave { worker }),
        2 => (number(), any::<bool>()).prop_map(|(which, succeeds)| Event::Late { which, succeeds }),
        1 => number().prop_map(|which| Event::Forged { which }),
        2 => number().prop_map(|which| Event::Lacks { which }),
        2 => (0u32..3, any::<u64>(), 1usize..4)
            .prop_map(|(stage, chosen, size)| Event::Replan { stage, chosen, size }),
    ]
}

fn choose<T: Copy>(among: &[T], which: usize) -> Option<T> {
    (!among.is_empty()).then(|| among[which % among.len()])
}

fn happen(cluster: &mut Cluster, event: Event) {
    let workers = cluster.workers();
    match event {
        Event::Join => {
            cluster.join();
        }
        Event::Ask { worker, buckets } => {
            if let Some(worker) = choose(&workers, worker) {
                cluster.ask(worker, buckets);
            }
        }
        Event::AskAfter { worker, stage } => {
            if let Some(worker) = choose(&workers, worker) {
                cluster.ask_after(worker, stage);
            }
        }
        Event::Report { which, succeeds } => {
            if let Some(report) = choose(&cluster.granted, which) {
                cluster.report(report, succeeds);
            }
        }
        Event::Leave { worker } => {
            if let Some(worker) = choose(&workers, worker) {
                cluster.leave(worker);
            }
        }
        Event::Late { which, succeeds } => {
            if let Some(report) = choose(&cluster.stale, which) {
                cluster.ignored(report, succeeds);
            }
        }
        Event::Forged { which } => {
            if let Some(report) = choose(&cluster.granted, which) {
                let worker = WorkerId(report.worker.0 + 1);
                cluster.ignored(Granted { worker, ..report }, true);
            }
        }
        Event::Lacks { which } => {
            if let Some(report) = choose(&cluster.granted, which) {
                cluster.lacks(report);
            }
        }
        Event::Replan { stage, chosen, size } => cluster.replan(stage, chosen, size),
    }
}

proptest! {
    #[test]
    fn whatever_happens_one_worker_brings_it_to_an_end(plan in plans(), events in vec(events(), 0..120)) {
        let instances = plan.instances.len();
        let mut cluster = Cluster::new(plan);
        for event in events {
            happen(&mut cluster, event);
        }
        // Everybody is gone, and then one worker comes.
        for worker in cluster.workers() {
            cluster.leave(worker);
        }
        let last = cluster.join();
        for _ in 0..instances {
            if cluster.complete {
                break;
            }
            cluster.ask(last, 1);
            prop_assert!(!cluster.granted.is_empty(), "there is work, and none is given");
            while let Some(report) = cluster.granted.last().copied() {
                cluster.report(report, true);
            }
        }
        prop_assert!(cluster.complete);
        prop_assert_eq!(cluster.done.len() + cluster.failed.len(), instances);
    }

    /// What is stopped at any point and resumed with what was reported comes to the same as what was never stopped.
    #[test]
    fn what_is_stopped_is_resumed(
        plan in plans(), before in vec(events(), 0..80), after in vec(events(), 0..40), also in vec(any::<bool>(), 40),
    ) {
        let mut cluster = Cluster::new(plan.clone());
        for event in before {
            happen(&mut cluster, event);
        }
        cluster.stop();
        for event in after {
            if !cluster.stopped {
                happen(&mut cluster, event);
            }
        }
        for worker in cluster.workers() {
            cluster.leave(worker);
        }
        cluster.stop();
        prop_assert!(cluster.complete != cluster.stopped);
        // Of instances that report nothing it is never known that they were finished; naming them changes nothing.
        let mut finished = cluster.reported();
        let needless = (0u32..).map(InstanceId).zip(&plan.instances).zip(also);
        let silent = needless.filter(|((_, instance), also)| *also && instance.outputs.iter().all(|o| !o.reported));
        finished.extend(silent.map(|((id, _), _)| id));

        let mut rest = Cluster::resume(plan.clone(), &finished);
        let worker = rest.join();
        while !rest.complete {
            rest.ask(worker, 1);
            prop_assert!(!rest.granted.is_empty(), "there is work, and none is given");
            while let Some(report) = rest.granted.first().copied() {
                rest.report(report, true);
            }
        }
        let reported: BTreeSet<InstanceId> = finished.union(&rest.reported()).copied().collect();
        let reports = |id: &InstanceId| plan.instances[id.index()].outputs.iter().any(|output| output.reported);
        let all = (0..plan.instances.len() as u32).map(InstanceId).filter(reports);
        prop_assert!(all.into_iter().all(|id| reported.contains(&id)), "results of all");
    }

    #[test]
    fn without_failures_everything_is_done(plan in plans(), slots in vec(1u32..4, 1..5), order in vec(any::<usize>(), 40)) {
        let instances = plan.instances.len();
        let mut cluster = Cluster::new(plan);
        for slots in slots {
            let worker = cluster.join();
            cluster.ask(worker, slots);
        }
        for which in order.into_iter().cycle().take(instances) {
            // A worker asks again for each bucket that it has finished.
            let report = choose(&cluster.granted, which).expect("workers wait for work, and there is some");
            cluster.report(report, true);
            if cluster.granted.iter().all(|granted| granted.lease != report.lease) {
                cluster.ask(report.worker, 1);
            }
        }
        prop_assert!(cluster.complete);
        prop_assert_eq!(cluster.done.len(), instances);
    }
}
