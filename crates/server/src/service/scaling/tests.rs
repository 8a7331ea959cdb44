//! Scaling decisions of the manager for given workers and studies.

use super::*;
use pleach_dispatch::scaling::PartitionForecast;
use std::fs;

const POOLS: &str = "\
[[pool]]
name = \"base\"
cores = 2
price_per_hour = 0
startup_seconds = 0
min = 2
max = 2

[[pool]]
name = \"spot\"
cores = 2
price_per_hour = 3.6
startup_seconds = 100
max = 10
";

fn worker(name: &str, state: WorkerState, leases: usize, bytes: u64) -> WorkerView {
    WorkerView {
        name: name.to_owned(),
        host: None,
        state,
        slots: 2,
        accelerators: 0,
        closed_slots: Vec::new(),
        leases,
        bytes,
        transfers: None,
        memory_bytes: 0,
        spill_bytes: 0,
        lacking: Vec::new(),
        code: Default::default(),
        lease_end_seconds: None,
        duplicate: None,
    }
}

fn view(workers: Vec<WorkerView>) -> ManagerView {
    ManagerView { workers, ..ManagerView::default() }
}

fn base() -> Vec<WorkerView> {
    ["base-1", "base-2"].map(|name| worker(name, WorkerState::Active, 1, 0)).to_vec()
}

fn study(id: u32, work_seconds: f64, deadline: Option<f64>, budget: Option<f64>) -> StudyNeed {
    StudyNeed { id, work_seconds, run_seconds: 0.0, deadline, budget }
}

/// Takes a step in which these studies run.
fn step(scaler: &Scaler, view: &ManagerView, studies: &[StudyNeed], now: f64) -> ScalingStatus {
    scaler.step(view, studies, &studies.iter().map(|study| study.id).collect(), now)
}

fn scaler(folder: &tempfile::TempDir) -> Scaler {
    let file = folder.path().join("pools.toml");
    fs::write(&file, POOLS).unwrap();
    Scaler::new(Some(Pools::read(&file).unwrap()), folder.path().join("spent.json"))
}

#[test]
fn scaler_requests_workers_and_lists_surplus_ones() {
    let folder = tempfile::tempdir().unwrap();
    let scaler = scaler(&folder);
    // The 4 slots take 3,000 s. In nine tenths of 2,000 s they do 7,200 s of work, and 2 more workers that join after
    // 100 s do 3,400 s each.
    let studies = [study(1, 12_000.0, Some(3_000.0), None)];
    let first = step(&scaler, &view(base()), &studies, 1_000.0);
    assert_eq!((first.workers_desired, first.reason.as_deref()), (Some(4), Some("deadline")));
    assert_eq!((first.pools[1].desired, first.pools[1].starting), (2, 0));
    assert!(first.predicted_remaining_seconds.unwrap() < 1_800.0 && first.fastest.is_none());
    // The desired workers start, then run, and their cost counts from their connection.
    let second = step(&scaler, &view(base()), &studies, 1_010.0);
    assert_eq!((second.pools[1].desired, second.pools[1].starting), (2, 2));
    assert_eq!(second.cost_so_far, Some(0.0));
    let spot = |name: &str, leases, bytes| worker(name, WorkerState::Active, leases, bytes);
    let mut three = base();
    three.extend([spot("spot-1", 2, 10), spot("spot-2", 1, 99), spot("spot-3", 1, 10)]);
    three.push(worker("spot-4", WorkerState::Draining, 0, 0));
    let third = step(&scaler, &view(three.clone()), &studies, 1_020.0);
    assert_eq!((third.pools[1].running, third.pools[1].starting, third.pools[1].draining), (3, 0, 1));
    // One worker more than desired: among those with the fewest leases, the one with the fewest bytes leaves.
    assert_eq!(third.drain_order, ["spot-3"]);
    assert_eq!(third.cost_so_far, Some(0.0));
    let fourth = step(&scaler, &view(three.clone()), &studies, 1_025.0);
    assert!((fourth.cost_so_far.unwrap() - 4.0 * 5.0 * 0.001).abs() < 1e-9);
    // After the end of the study and the stabilization window, only the base pool is desired.
    assert_eq!(step(&scaler, &view(three.clone()), &[], 1_030.0).reason.as_deref(), Some("stabilized"));
    let over = step(&scaler, &view(three), &[], 2_000.0);
    assert_eq!((over.workers_desired, over.drain_order.len()), (Some(2), 3));
    assert_eq!((over.reason.as_deref(), over.predicted_remaining_seconds), (Some("idle"), None));
}

#[test]
fn infeasible_goal_returns_the_feasible_option() {
    let folder = tempfile::tempdir().unwrap();
    let scaler = scaler(&folder);
    let late = step(&scaler, &view(base()), &[study(1, 1e6, Some(900.0), None)], 1_000.0);
    let fastest = late.fastest.unwrap();
    assert_eq!((late.reason.as_deref(), late.workers_desired), (Some("infeasible"), Some(12)));
    // 24 slots: 20 of them start after 100 s, for 0.001 per worker and second.
    assert!((fastest.seconds.unwrap() - (1e6 + 2_000.0) / 24.0).abs() < 1e-6);
    assert!((fastest.cost.unwrap() - 10.0 * 0.001 * (1e6 + 2_000.0) / 24.0).abs() < 0.02);
    let poor = step(&scaler, &view(base()), &[study(2, 12_000.0, Some(3_000.0), Some(0.5))], 1_200.0);
    assert_eq!(poor.reason.as_deref(), Some("budget"));
    assert!(poor.predicted_cost.unwrap() <= 0.5 && poor.without_budget.unwrap().cost.unwrap() > 0.5);
}

#[test]
fn predicted_cost_includes_the_end_of_workers_after_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pools.toml");
    let driver = "[pool.provision]\ndriver = \"process\"\ntoken = \"token\"\nidle_seconds = 60\n";
    fs::write(&file, format!("{POOLS}{driver}")).unwrap();
    let scaler = Scaler::new(Some(Pools::read(&file).unwrap()), folder.path().join("spent.json"));
    let needs = [study(1, 12_000.0, Some(3_000.0), None)];
    let cost = |scaler: &Scaler, now| {
        let status = step(scaler, &view(base()), &needs, now);
        let seconds = status.predicted_remaining_seconds.unwrap();
        (status.predicted_cost.unwrap(), f64::from(status.pools[1].desired) * seconds * 0.001)
    };
    let (cost_with_idle, until_done) = cost(&scaler, 1_000.0);
    assert!((cost_with_idle - until_done - 2.0 * 60.0 * 0.001).abs() < 0.01, "{cost_with_idle} {until_done}");
    // A worker ends 10 s after the work, which counts from then on.
    scaler.record(&ProvisionRecord::Intended { name: "spot-1".to_owned(), pool: "spot".to_owned() }, 1_001.0);
    scaler.record(&ProvisionRecord::Started { name: "spot-1".to_owned(), handle: "1".to_owned() }, 1_001.0);
    let mut joined = base();
    joined.push(worker("spot-1", WorkerState::Active, 1, 0));
    step(&scaler, &view(joined.clone()), &needs, 1_002.0);
    step(&scaler, &view(joined), &[study(1, 0.0, Some(3_000.0), None)], 1_010.0);
    scaler.record(&ProvisionRecord::Ended { name: "spot-1".to_owned() }, 1_020.0);
    let (cost_as_measured, until_done) = cost(&scaler, 1_030.0);
    assert!(
        (cost_as_measured - until_done - 2.0 * 10.0 * 0.001).abs() < 0.01,
        "{cost_as_measured} {until_done}"
    );
}

#[test]
fn cost_of_open_studies_survives_a_manager_restart() {
    let folder = tempfile::tempdir().unwrap();
    let workers = view(vec![worker("spot-1", WorkerState::Active, 1, 0)]);
    let studies = [study(1, 1e5, None, Some(5.0)), study(2, 1e5, None, Some(5.0))];
    let before = scaler(&folder);
    step(&before, &workers, &studies, 0.0);
    assert_eq!(step(&before, &workers, &studies, 1_000.0).cost_so_far, Some(1.0));
    before.store(1_000.0);
    let next = scaler(&folder);
    let spent = step(&next, &workers, &studies, 5_000.0).cost_so_far.unwrap();
    assert!((spent - 1.0).abs() < 1e-9, "{spent}");
    assert_eq!(step(&next, &workers, &studies[1..], 5_000.0).cost_so_far, Some(0.5));
}

#[test]
fn manager_without_pools_predicts_and_desires_nothing() {
    let scaler = Scaler::new(None, "nowhere".into());
    let shown = step(&scaler, &view(base()), &[study(1, 1_000.0, Some(10.0), None)], 0.0);
    assert_eq!((shown.workers_desired, shown.workers_active), (None, 2));
    assert_eq!((shown.predicted_remaining_seconds, shown.predicted_cost), (Some(250.0), None));
    assert_eq!(
        step(&scaler, &view(Vec::new()), &[study(1, 1.0, None, None)], 0.0).predicted_remaining_seconds,
        None
    );
    assert_eq!(step(&scaler, &view(base()), &[], 0.0).predicted_remaining_seconds, None);
}

/// A study with 1,000 s of work on the 4 slots of 2 workers takes 250 s. With a second study of the same work, which
/// gets equal turns, it takes 500 s.
#[test]
fn deadline_margin_is_negative_for_studies_that_end_late() {
    let one = [study(1, 1_000.0, Some(1_300.0), None)];
    let scaler = Scaler::new(None, "nowhere".into());
    let margins = |workers, studies: &[StudyNeed]| scaler.margins(&view(workers), studies, 1_000.0);
    assert_eq!(margins(base(), &one), BTreeMap::from([(1, 50.0)]));
    let two = [study(1, 1_000.0, Some(1_300.0), None), study(2, 1_000.0, None, None)];
    assert_eq!(margins(base(), &two), BTreeMap::from([(1, -200.0)]));
    // Draining workers and workers that are only desired contribute nothing.
    let draining = base().into_iter().map(|worker| WorkerView { state: WorkerState::Draining, ..worker });
    assert_eq!(margins(draining.collect(), &one), BTreeMap::from([(1, f64::NEG_INFINITY)]));
    // Past the deadline with work left, the margin is negative.
    assert_eq!(margins(base(), &[study(3, 400.0, Some(900.0), None)]), BTreeMap::from([(3, -200.0)]));
    assert_eq!(margins(base(), &[study(4, 400.0, None, None)]), BTreeMap::new());
}

/// A study with tree reuse whose work grows with the slots needs more workers than its present work does.
#[test]
fn reuse_lost_with_more_slots_needs_more_workers() {
    let folder = tempfile::tempdir().unwrap();
    let studies = [study(1, 12_000.0, Some(3_000.0), None)];
    let desired = |growth: Option<f64>| {
        let scaler = scaler(&folder);
        step(&scaler, &view(base()), &studies, 1_000.0);
        let slots = scaler.partitions.slots();
        assert_eq!(slots, [1, 2, 5, 11, 25]);
        let of =
            |(place, slots): (usize, &u32)| (*slots, 100.0 * (1.0 + growth.unwrap_or(0.0) * place as f64));
        let forecast = PartitionForecast::new(slots.iter().enumerate().map(of), 100.0, 12_000.0);
        scaler.partitions.set(1, growth.map(|_| forecast));
        // A new decision, because the previous one may be held.
        scaler.state.lock().previous = None;
        let status = step(&scaler, &view(base()), &studies, 1_000.0);
        let need = scaler.need(&studies, 1_000.0, |_| 0.0);
        let pools = pools(
            scaler.pools.as_ref().unwrap(),
            &view(base()).workers.iter().collect::<Vec<_>>(),
            None,
            1_000.0,
        );
        assert_eq!(status.workers_desired, Some(decide(&need, &pools, None, 1_000.0).desired.iter().sum()));
        (status.workers_desired.unwrap(), status.work_by_slots.len())
    };
    // For the 8 slots of 4 workers, the work grows by a quarter.
    assert_eq!(desired(None), (4, 0));
    assert_eq!(desired(Some(0.0)), (4, 5));
    assert!(desired(Some(0.1)).0 > 4);
}
