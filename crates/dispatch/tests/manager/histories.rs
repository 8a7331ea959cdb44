//! Long histories of random events. The model in `cluster` checks the manager after each event.

use crate::cluster::{Cluster, Granted};
use crate::plans::plans;
use pleach_dispatch::{InstanceId, WorkerId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Event of a cluster. Numbers select among the present workers, or among the reports that can be sent.
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
    /// A report that was sent before, or by a worker that has left.
    Late {
        which: usize,
        succeeds: bool,
    },
    /// A report by a worker that does not hold the lease.
    Forged {
        which: usize,
    },
    /// A worker cannot fetch an instance's inputs.
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
    fn one_worker_completes_a_study_after_any_history(plan in plans(), events in vec(events(), 0..120)) {
        let instances = plan.instances.len();
        let mut cluster = Cluster::new(plan);
        for event in events {
            happen(&mut cluster, event);
        }
        // All workers leave, and then one joins.
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

    /// A study that is stopped at any point and resumed with its reported instances ends with all results.
    #[test]
    fn stopped_study_is_resumed_with_all_results(
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
        // Instances without reported outputs are never known as finished. Naming them as finished changes
        // nothing.
        let mut finished = cluster.reported();
        let needless = plan.instances.enumerate().zip(also);
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
        let reports = |id: &InstanceId| plan.instances.at(*id).outputs.iter().any(|output| output.reported);
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
            // A worker requests one more bucket for each finished one.
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
