//! Short histories of the manager, effect by effect.

use crate::failures::failure;
use crate::plans::{chain, ids, output_key, tile_key};
use crate::shapes;
use crate::solo::{STUDY, manager_of};
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::message::GrantReason;
use pleach_dispatch::plan::{ExecutionPlan, GrantOrder, PlanError};
use pleach_dispatch::study::{Effect as Event, Study};
use pleach_dispatch::{BucketId, InstanceId, LeaseId, WorkerId};
use std::collections::BTreeSet;

/// Returns the effects as short texts, such as `w0 <- 1 2 under 0` for a grant.
fn effects(manager: &mut Manager) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(effect) = manager.poll_effect() {
        lines.push(match effect {
            Effect::Assign { worker, lease, work, reason, .. } => {
                let ids: Vec<String> = work.instances.iter().map(|i| i.id.0.to_string()).collect();
                let reason = match reason {
                    GrantReason::Request => "",
                    GrantReason::LaterRequest => ", later",
                    GrantReason::Short => ", short",
                };
                format!("w{} <- {} under {}{reason}", worker.0, ids.join(" "), lease.0)
            }
            Effect::Study(_, Event::Release(keys)) => {
                let name = |key| match (0..3).find(|tile| tile_key(*tile) == key) {
                    Some(_) => "tile".to_owned(),
                    None => (0..100).find(|id| output_key(*id, 0) == key).expect("an output").to_string(),
                };
                format!("release {}", keys.into_iter().map(name).collect::<Vec<_>>().join(" "))
            }
            Effect::Study(_, Event::Finished(instance)) => format!("finished {}", instance.0),
            Effect::Study(_, Event::Reopened(instance)) => format!("reopened {}", instance.0),
            Effect::Study(_, Event::Failed { instance, origin, .. }) => {
                format!("failed {} by {}", instance.0, origin.0)
            }
            Effect::Study(_, Event::Complete) => "complete".to_owned(),
            Effect::Stop => "stop".to_owned(),
            Effect::Stopped => "stopped".to_owned(),
            Effect::Introduce { .. } | Effect::Over { .. } | Effect::Replan(_) => continue,
            effect => format!("{effect:?}"),
        });
        manager.sanity_check().expect("sane");
    }
    lines
}

fn manager(instances: &[(usize, Option<u32>)], buckets: &[&[u32]]) -> Manager {
    manager_of(chain(instances, buckets), &BTreeSet::new()).expect("a plan that keeps the rules")
}

/// As [`manager`], with grants in the order of release.
fn released(instances: &[(usize, Option<u32>)], buckets: &[&[u32]]) -> Manager {
    let plan = ExecutionPlan { order: GrantOrder::Release, ..chain(instances, buckets) };
    manager_of(plan, &BTreeSet::new()).expect("a plan that keeps the rules")
}

fn unfinished(manager: &Manager) -> usize {
    manager.study(STUDY).map_or(0, Study::unfinished)
}

fn done(manager: &mut Manager, worker: WorkerId, lease: u64, instance: u32) -> Vec<String> {
    assert!(manager.handle_done(worker, STUDY, LeaseId(lease), InstanceId(instance)));
    effects(manager)
}

#[test]
fn later_stages_come_first_then_the_plans_order() {
    // The same chain on two tiles: 0 -> 2, 1 -> 3.
    let mut manager = manager(&[(0, None), (0, None), (1, Some(0)), (1, Some(1))], &[&[0], &[1], &[2], &[3]]);
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    assert_eq!(done(&mut manager, worker, 0, 0), ["finished 0"]);
    manager.handle_request(worker, 2, None);
    // Instance 2 comes before 1, which has waited longer: 2 releases the output of 0.
    assert_eq!(effects(&mut manager), ["w0 <- 2 under 1", "w0 <- 1 under 2"]);
    assert_eq!(done(&mut manager, worker, 1, 2), ["finished 2", "release 0"]);
    assert_eq!(done(&mut manager, worker, 2, 1), ["finished 1", "release tile"]);
    manager.handle_request(worker, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 3 under 3"]);
    assert_eq!(done(&mut manager, worker, 3, 3), ["finished 3", "release 1", "complete"]);
    assert_eq!(unfinished(&manager), 0);
}

#[test]
fn buckets_in_the_order_of_release_wait_for_a_free_slot() {
    // 0 -> 2, 1 -> 3.
    let instances = [(0, None), (0, None), (1, Some(0)), (1, Some(1))];
    let mut manager = released(&instances, &[&[0], &[1], &[2], &[3]]);
    let worker = manager.handle_join(WorkerInfo::ANY);
    // The worker has one slot: neither a bucket in advance nor one of a later stage.
    manager.handle_request(worker, 2, None);
    manager.handle_request(worker, 1, Some(0));
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    // Bucket 1 was ready before bucket 2.
    assert_eq!(done(&mut manager, worker, 0, 0), ["finished 0", "w0 <- 1 under 1"]);
    assert_eq!(done(&mut manager, worker, 1, 1)[1..], ["release tile", "w0 <- 2 under 2, later"]);
    manager.handle_request(worker, 1, None);
    assert_eq!(effects(&mut manager), [""; 0]);
    assert_eq!(done(&mut manager, worker, 2, 2), ["finished 2", "release 0", "w0 <- 3 under 3"]);
    assert_eq!(done(&mut manager, worker, 3, 3), ["finished 3", "release 1", "complete"]);
}

#[test]
fn released_bucket_goes_to_the_idle_worker_with_the_fewest_bytes_to_transfer() {
    // 0 -> 1, and 0 -> 2. The second worker has the input of both.
    let mut manager = released(&[(0, None), (1, Some(0)), (1, Some(0))], &[&[0], &[1], &[2]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(second, 1, None);
    assert_eq!(effects(&mut manager), ["w1 <- 0 under 0"]);
    manager.handle_request(first, 1, None);
    manager.handle_request(second, 1, None);
    assert_eq!(
        done(&mut manager, second, 0, 0),
        ["finished 0", "release tile", "w1 <- 1 under 1", "w0 <- 2 under 2"]
    );
}

#[test]
fn a_bucket_waits_for_the_parents_of_all_its_instances() {
    let mut manager = manager(&[(0, None), (0, None), (1, Some(0)), (1, Some(1))], &[&[0], &[1], &[2, 3]]);
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 3, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0", "w0 <- 1 under 1"]);
    assert_eq!(done(&mut manager, worker, 0, 0), ["finished 0"]);
    // The third request was remembered.
    assert_eq!(done(&mut manager, worker, 1, 1), ["finished 1", "release tile", "w0 <- 2 3 under 2"]);
}

#[test]
fn workers_that_wait_are_served_in_turn() {
    let mut manager = manager(&[(0, None), (0, None), (0, None), (0, None)], &[&[0], &[1], &[2], &[3]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(second, 3, None);
    manager.handle_request(first, 1, None);
    assert_eq!(
        effects(&mut manager),
        ["w1 <- 0 under 0", "w1 <- 1 under 1", "w1 <- 2 under 2", "w0 <- 3 under 3"]
    );

    let mut manager =
        self::manager(&[(0, None), (1, Some(0)), (1, Some(0)), (1, Some(0))], &[&[0], &[1], &[2], &[3]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 3, None);
    manager.handle_request(second, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    // Each worker gets one bucket in turn: the second does not wait until the first has all its requested
    // buckets.
    assert_eq!(
        done(&mut manager, first, 0, 0),
        ["finished 0", "release tile", "w0 <- 1 under 1", "w1 <- 2 under 2", "w0 <- 3 under 3"]
    );
}

#[test]
fn ready_bucket_goes_to_the_idle_worker_with_its_inputs() {
    // 0 -> 2, 1 -> 3. Each worker computes the input of one reader.
    let mut manager = manager(&[(0, None), (0, None), (1, Some(0)), (1, Some(1))], &[&[0], &[1], &[2], &[3]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 1, None);
    manager.handle_request(second, 2, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0", "w1 <- 1 under 1"]);
    // The second worker has waited longer. The first one holds the input of the ready bucket and is idle as
    // well.
    manager.handle_request(first, 1, None);
    assert_eq!(done(&mut manager, first, 0, 0), ["finished 0", "w0 <- 2 under 2"]);
    assert_eq!(done(&mut manager, second, 1, 1), ["finished 1", "release tile", "w1 <- 3 under 3"]);

    // A worker without an idle slot that requests more does not keep an idle worker waiting.
    let mut manager = self::manager(&[(0, None), (0, None), (1, Some(0))], &[&[0], &[1], &[2]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 2, None);
    manager.handle_request(second, 1, None);
    manager.handle_request(first, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0", "w0 <- 1 under 1"]);
    assert_eq!(done(&mut manager, first, 0, 0), ["finished 0", "w1 <- 2 under 2"]);
}

#[test]
fn leaving_gives_back_only_what_is_unfinished() {
    let mut manager = manager(&[(0, None), (0, None), (0, None)], &[&[0, 1, 2]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 1, None);
    manager.handle_request(second, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 1 2 under 0"]);
    assert_eq!(done(&mut manager, first, 0, 1), ["finished 1"]);
    manager.handle_leave(first, false);
    assert_eq!(effects(&mut manager), ["w1 <- 0 2 under 1"]);
    // Late reports under an ended lease do not count, nor do reports by a worker that never had the lease.
    assert!(!manager.handle_done(first, STUDY, LeaseId(0), InstanceId(0)));
    assert!(!manager.handle_failed(first, STUDY, LeaseId(0), InstanceId(2), &failure("t1")));
    assert!(!manager.handle_done(first, STUDY, LeaseId(1), InstanceId(0)));
    assert!(!manager.handle_done(second, STUDY, LeaseId(1), InstanceId(1)));
    assert!(!manager.handle_done(second, STUDY, LeaseId(1), InstanceId(99)));
    manager.handle_request(first, 5, None);
    manager.handle_leave(first, false);
    assert_eq!(effects(&mut manager), [""; 0]);
    assert_eq!(done(&mut manager, second, 1, 2), ["finished 2"]);
    assert_eq!(done(&mut manager, second, 1, 0), ["finished 0", "release tile", "complete"]);
}

#[test]
fn failure_fails_only_its_descendants() {
    // 0 -> 2 -> 4 and 1 -> 3 -> 5. Instances 2 and 3 share a bucket.
    let instances = [(0, None), (0, None), (1, Some(0)), (1, Some(1)), (2, Some(2)), (2, Some(3))];
    let mut manager = manager(&instances, &[&[0], &[1], &[2, 3], &[4], &[5]]);
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 3, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0", "w0 <- 1 under 1"]);
    assert_eq!(done(&mut manager, worker, 1, 1), ["finished 1"]);
    assert!(manager.handle_failed(worker, STUDY, LeaseId(0), InstanceId(0), &failure("t1")));
    assert_eq!(
        effects(&mut manager),
        [
            "failed 0 by 0",
            "release tile",
            "failed 2 by 0",
            "release 0",
            "failed 4 by 0",
            "release 2",
            // The rest of the bucket no longer waits.
            "w0 <- 3 under 2",
        ]
    );
}

#[test]
fn output_read_only_by_failed_instances_is_released() {
    // 2 reads from 0 and from 1. 0 fails while 1 still runs.
    let mut plan = chain(&[(0, None), (0, None), (1, Some(1))], &[&[0], &[1], &[2]]);
    plan.stages[1] = shapes::stage(0, 2, Vec::new(), &[(0, 0)]);
    plan.instances.edit(|all| {
        all[2].inputs = vec![output_key(0, 0), output_key(1, 0)];
        all[2].parents = ids([0, 1]);
        all[0].outputs[0].stored = true;
    });
    let mut manager = manager_of(plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 2, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0", "w0 <- 1 under 1"]);
    assert!(manager.handle_failed(worker, STUDY, LeaseId(0), InstanceId(0), &failure("t1")));
    assert_eq!(effects(&mut manager), ["failed 0 by 0", "failed 2 by 0", "release 0"]);
    assert_eq!(done(&mut manager, worker, 1, 1), ["finished 1", "release 1 tile", "complete"]);
}

#[test]
fn an_empty_plan_is_complete_at_once() {
    let mut manager =
        manager_of(ExecutionPlan::default(), &BTreeSet::new()).expect("nothing to be wrong with");
    assert_eq!(effects(&mut manager), ["complete"]);
}

#[test]
fn plans_that_break_the_rules_are_refused() {
    let two = [(0, None), (1, Some(0))];
    let refusal = |plan: ExecutionPlan| {
        let error = manager_of(plan, &BTreeSet::new()).expect_err("a broken rule");
        (error, error.to_string())
    };
    let case = |error, text: &str| (error, text.to_owned());
    let nowhere = case(PlanError::NotInOneBucket(InstanceId(1)), "instance 1 is not in exactly one bucket");
    assert_eq!(refusal(chain(&two, &[&[0]])), nowhere);
    assert_eq!(refusal(chain(&two, &[&[0], &[1], &[1]])), nowhere);
    let bad = case(PlanError::BadBucket(BucketId(1)), "bucket 1 is empty or mixes stages");
    assert_eq!(refusal(chain(&two, &[&[0], &[], &[1]])), bad);
    let bad = case(PlanError::BadBucket(BucketId(0)), "bucket 0 is empty or mixes stages");
    assert_eq!(refusal(chain(&two, &[&[0, 1]])), bad);
    let dangling = case(PlanError::Dangling(InstanceId(2)), "instance 2 names something that is not there");
    assert_eq!(refusal(chain(&two, &[&[0], &[1], &[2]])), dangling);
    let dangling = case(PlanError::Dangling(InstanceId(1)), "instance 1 names something that is not there");
    let mut plan = chain(&two, &[&[0], &[1]]);
    plan.instances.edit(|all| all[1].inputs.clear());
    assert_eq!(refusal(plan), dangling);
    let mut plan = chain(&two, &[&[0], &[1]]);
    plan.stages.pop();
    assert_eq!(refusal(plan), dangling);
    let parent =
        case(PlanError::BadParent(InstanceId(0)), "instance 0 waits for one that cannot come before it");
    assert_eq!(refusal(chain(&[(1, Some(1)), (0, None)], &[&[0], &[1]])), parent);
    let parent =
        case(PlanError::BadParent(InstanceId(1)), "instance 1 waits for one that cannot come before it");
    // A parent of the same stage: two such buckets could deadlock.
    assert_eq!(refusal(chain(&[(0, None), (0, Some(0))], &[&[0], &[1]])), parent);
    assert_eq!(refusal(chain(&[(0, None), (0, Some(7))], &[&[0], &[1]])), parent);
}

#[test]
fn later_stage_request_is_served_after_idle_workers() {
    // 0 -> 2, 1 -> 3, and 4 alone.
    let instances = [(0, None), (0, None), (1, Some(0)), (1, Some(1)), (0, None)];
    let mut manager = manager(&instances, &[&[0], &[1], &[2], &[3], &[4]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 2, None);
    manager.handle_request(first, 1, Some(0));
    // 4 is ready, but its stage is not later.
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0", "w0 <- 1 under 1"]);
    assert_eq!(done(&mut manager, first, 0, 0), ["finished 0", "w0 <- 2 under 2, later"]);
    // A second request for a later stage replaces the first. No stage follows stage 1.
    manager.handle_request(first, 1, Some(0));
    manager.handle_request(first, 1, Some(1));
    manager.handle_request(second, 1, None);
    assert_eq!(effects(&mut manager), ["w1 <- 4 under 3"]);
    manager.handle_request(second, 1, None);
    assert_eq!(done(&mut manager, first, 1, 1), ["finished 1", "w1 <- 3 under 4"]);
    // The second worker leaves. No worker is idle, so its bucket goes to the request for a later stage.
    manager.handle_request(first, 1, Some(0));
    manager.handle_leave(second, false);
    assert_eq!(effects(&mut manager), ["w0 <- 3 under 5, later"]);
}

#[test]
fn stopping_study_grants_nothing_and_ends_without_workers() {
    let mut manager = manager(&[(0, None), (0, None)], &[&[0], &[1]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    manager.handle_stop();
    manager.handle_stop();
    assert_eq!(effects(&mut manager), ["stop"]);
    manager.handle_request(second, 1, None);
    manager.handle_leave(second, false);
    // A worker that joins now must stop as well.
    let third = manager.handle_join(WorkerInfo::ANY);
    assert_eq!(effects(&mut manager), ["stop"]);
    manager.handle_leave(third, false);
    // Reports of running instances still count.
    assert_eq!(done(&mut manager, first, 0, 0), ["finished 0"]);
    manager.handle_leave(first, false);
    assert_eq!(effects(&mut manager), ["stopped"]);
}

#[test]
fn stopping_study_completes_with_its_last_running_task() {
    let mut manager = manager(&[(0, None)], &[&[0]]);
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    manager.handle_stop();
    assert_eq!(done(&mut manager, worker, 0, 0), ["stop", "finished 0", "release tile", "complete"]);
    manager.handle_leave(worker, false);
    manager.handle_stop();
    assert_eq!(effects(&mut manager), [""; 0]);
}

#[test]
fn without_workers_a_study_stops_at_once() {
    let mut manager = manager(&[(0, None)], &[&[0]]);
    manager.handle_stop();
    assert_eq!(effects(&mut manager), ["stop", "stopped"]);
}

#[test]
fn resumed_study_runs_open_instances_and_their_ancestors() {
    // 0 -> 1 -> 2, 0 -> 3, and 4 -> 5. The last instance of each chain reports.
    let instances = [(0, None), (1, Some(0)), (2, Some(1)), (1, Some(0)), (0, None), (1, Some(4))];
    let plan = chain(&instances, &[&[0], &[4], &[1, 3], &[5], &[2]]);
    let mut manager = manager_of(plan.clone(), &ids([3, 5]).into_iter().collect()).expect("valid");
    assert_eq!(unfinished(&manager), 3);
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 9, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    // Of the bucket of 1 and 3, only 1 is granted. The tile is released with 0, now its only reader.
    assert_eq!(done(&mut manager, worker, 0, 0), ["finished 0", "release tile", "w0 <- 1 under 1"]);
    assert_eq!(done(&mut manager, worker, 1, 1), ["finished 1", "release 0", "w0 <- 2 under 2"]);
    assert_eq!(done(&mut manager, worker, 2, 2), ["finished 2", "release 1", "complete"]);

    let finished = ids([2, 3, 5]).into_iter().collect();
    let mut manager = manager_of(plan.clone(), &finished).expect("valid");
    assert_eq!(effects(&mut manager), ["complete"]);

    // An instance without reported outputs or readers runs again: no record shows that it has run.
    let mut plan = plan;
    plan.instances.edit(|all| all[5].outputs[0].reported = false);
    let manager = manager_of(plan, &finished).expect("valid");
    assert_eq!(unfinished(&manager), 2);
}

#[test]
fn lost_outputs_are_recomputed_as_far_back_as_needed() {
    // One chain of three stages, and a second reader of its first output.
    let mut manager =
        manager(&[(0, None), (1, Some(0)), (2, Some(1)), (1, Some(0))], &[&[0], &[1], &[2], &[3]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    assert_eq!(done(&mut manager, first, 0, 0), ["finished 0", "release tile"]);
    manager.handle_request(second, 1, None);
    assert_eq!(effects(&mut manager), ["w1 <- 1 under 1"]);
    // The second worker has read the output of 0 and holds it beside its own. The loss of the first worker
    // reopens nothing.
    assert_eq!(done(&mut manager, second, 1, 1), ["finished 1"]);
    manager.handle_leave(first, false);
    assert_eq!(effects(&mut manager), [""; 0]);
    // The loss of the second worker reopens 1 for its reader 2, and 0 for its readers 1 and 3.
    let third = manager.handle_join(WorkerInfo::ANY);
    manager.handle_leave(second, false);
    assert_eq!(effects(&mut manager), ["reopened 0", "reopened 1"]);
    manager.handle_request(third, 4, None);
    assert_eq!(effects(&mut manager), ["w2 <- 0 under 2"]);
    assert_eq!(
        done(&mut manager, third, 2, 0),
        ["finished 0", "release tile", "w2 <- 1 under 3", "w2 <- 3 under 4"]
    );
    assert_eq!(done(&mut manager, third, 4, 3), ["finished 3"]);
    assert_eq!(done(&mut manager, third, 3, 1), ["finished 1", "release 0", "w2 <- 2 under 5"]);
    // Outputs without a further reader are not recomputed.
    assert_eq!(done(&mut manager, third, 5, 2), ["finished 2", "release 1", "complete"]);
}

#[test]
fn instance_with_missing_input_is_granted_after_recompute() {
    let mut manager = manager(&[(0, None), (1, Some(0)), (1, Some(0))], &[&[0], &[1, 2]]);
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    manager.handle_request(first, 1, None);
    manager.handle_request(second, 1, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    assert_eq!(done(&mut manager, first, 0, 0), ["finished 0", "release tile", "w1 <- 1 2 under 1"]);
    // The second worker has fetched the input for one of its two instances when the first worker leaves.
    manager.handle_leave(first, false);
    assert_eq!(effects(&mut manager), ["reopened 0"]);
    assert!(manager.handle_missing_input(second, STUDY, LeaseId(1), InstanceId(2), &[]));
    assert!(
        !manager.handle_missing_input(second, STUDY, LeaseId(1), InstanceId(2), &[]),
        "it is granted no longer"
    );
    assert_eq!(done(&mut manager, second, 1, 1), ["finished 1"]);
    manager.handle_request(second, 2, None);
    assert_eq!(effects(&mut manager), ["w1 <- 0 under 2"]);
    assert_eq!(done(&mut manager, second, 2, 0), ["finished 0", "release tile", "w1 <- 2 under 3"]);
    assert_eq!(done(&mut manager, second, 3, 2), ["finished 2", "release 0", "complete"]);
}
