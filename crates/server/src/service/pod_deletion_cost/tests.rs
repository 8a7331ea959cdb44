//! Changes of deletion costs for given workers and scaling decisions.

use super::*;

fn worker(name: &str, state: WorkerState) -> WorkerView {
    WorkerView {
        name: name.to_owned(),
        host: None,
        state,
        slots: 1,
        accelerators: 0,
        closed_slots: Vec::new(),
        leases: 0,
        bytes: 0,
        transfers: None,
        memory_bytes: 0,
        spill_bytes: 0,
        lacking: Vec::new(),
        code: Default::default(),
        lease_end_seconds: None,
        duplicate: None,
    }
}

fn active(names: &[&str]) -> Vec<WorkerView> {
    names.iter().map(|name| worker(name, WorkerState::Active)).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn all(wanted: Vec<(String, i32)>, costs: &mut Costs) -> Vec<(String, i32)> {
    wanted.iter().for_each(|(name, cost)| costs.record(name, *cost));
    wanted
}

#[test]
fn first_worker_to_drain_gets_the_lowest_deletion_cost() {
    let (mut costs, now) = (Costs::default(), Instant::now());
    let workers = active(&["a", "b", "c"]);
    let wanted = costs.changes(&names(&["b", "a"]), &workers, now);
    assert_eq!(all(wanted, &mut costs), [("b".to_owned(), LEAST), ("a".to_owned(), LEAST + 1)]);
    assert_eq!(costs.changes(&names(&["b", "a"]), &workers, now), []);
    // Worker a is desired again, and b is removed second.
    let wanted = costs.changes(&names(&["c", "b"]), &workers, now);
    let expected = [("c".to_owned(), LEAST), ("b".to_owned(), LEAST + 1), ("a".to_owned(), 0)];
    assert_eq!(all(wanted, &mut costs), expected);
    assert_eq!(costs.names_with(&[]), ["b", "c"]);
    // A change that the cluster has not received is sent again.
    assert_eq!(costs.changes(&[], &workers, now), costs.changes(&[], &workers, now));
    let wanted = costs.changes(&[], &workers, now);
    all(wanted, &mut costs);
    assert_eq!((costs.changes(&[], &workers, now), costs.0.len()), (Vec::new(), 0));
}

#[test]
fn draining_worker_keeps_its_cost_until_it_is_gone() {
    let (mut costs, now) = (Costs::default(), Instant::now());
    let wanted = costs.changes(&names(&["a"]), &active(&["a"]), now);
    all(wanted, &mut costs);
    let draining = [worker("a", WorkerState::Draining)];
    assert_eq!(costs.changes(&[], &draining, now + 2 * AWAY), []);
    assert_eq!(costs.changes(&[], &[], now + 3 * AWAY), []);
    // The worker reconnects and leaves again: the time of its absence starts from 0.
    assert_eq!(costs.changes(&[], &draining, now + 4 * AWAY), []);
    assert_eq!(costs.changes(&[], &[], now + 5 * AWAY), []);
    let last = costs.changes(&[], &[], now + 6 * AWAY);
    assert_eq!(all(last, &mut costs), [("a".to_owned(), 0)]);
    assert_eq!(costs.changes(&[], &[], now + 9 * AWAY), []);
}

#[test]
fn restarted_manager_resets_earlier_deletion_costs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pod-costs.json");
    assert_eq!(kept(&file), Vec::<String>::new());
    publish(&file, br#"["a", "b"]"#).unwrap();
    let mut costs = Costs(kept(&file).into_iter().map(|name| (name, Sent::default())).collect());
    let wanted = costs.changes(&names(&["b"]), &active(&["a", "b"]), Instant::now());
    assert_eq!(wanted, [("b".to_owned(), LEAST), ("a".to_owned(), 0)]);
}
