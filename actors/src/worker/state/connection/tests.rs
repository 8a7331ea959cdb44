//! Tests of the connection to the manager: collected reports and their acknowledgment.

use super::*;
use crate::transport::in_memory::{MemoryEnd, pair};
use pleach_dispatch::message::{ReportedEnd, TaskFailure};

const STUDY: PlanId = PlanId::first_round(1);
const OTHER: PlanId = PlanId::first_round(2);

fn report(instance: u32) -> Report {
    report_of(instance, 0)
}

/// Returns a report of at least this length.
fn report_of(instance: u32, bytes: usize) -> Report {
    let cause = TaskFailure { at: String::new(), cause: "x".repeat(bytes) };
    let end = ReportedEnd::Failed(cause);
    Report { lease: LeaseId(7), instance: InstanceId(instance), end, tasks: Vec::new() }
}

fn ended(instances: impl IntoIterator<Item = u32>) -> Vec<(LeaseId, InstanceId)> {
    instances.into_iter().map(|instance| (LeaseId(7), InstanceId(instance))).collect()
}

/// Returns a connection of a worker that may reconnect, and the manager's end of its link.
fn connected() -> (ManagerConnection, MemoryEnd) {
    let (worker, manager) = pair();
    (ManagerConnection::new(true).with_link(Box::new(worker.link), worker.incoming), manager)
}

/// Returns the messages that have arrived: the instances of reports, or another message as text.
fn arrived(manager: &mut MemoryEnd) -> Vec<String> {
    let mut messages = Vec::new();
    while let Ok(frame) = manager.incoming.try_recv() {
        messages.push(match codec::decode::<ToManager>(&frame).unwrap() {
            ToManager::Reports { study, reports } => {
                let instances: Vec<u32> = reports.iter().map(|report| report.instance.0).collect();
                format!("{study}: {instances:?}")
            }
            message => format!("{message:?}"),
        });
    }
    messages
}

#[test]
fn reports_within_five_milliseconds_are_one_message() {
    let (mut connection, mut manager) = connected();
    let start = Instant::now();
    let at = |micros| start + Duration::from_micros(micros);
    assert_eq!(connection.report(STUDY, report(0), at(0)), Ok(None), "nothing was sent before");
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [0]")]);
    assert_eq!(connection.report(STUDY, report(1), at(500)), Ok(Some(Duration::from_micros(4500))));
    assert_eq!(connection.report(STUDY, report(2), at(900)), Ok(None), "the timer runs");
    assert!(arrived(&mut manager).is_empty() && connection.has_unacknowledged());
    assert_eq!(connection.flush(at(5000)), Ok(()));
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [1, 2]")]);
    // A report that follows later is sent at once.
    assert_eq!(connection.report(STUDY, report(3), at(10_001)), Ok(None));
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [3]")]);
    // The manager counts messages.
    assert_eq!(connection.acknowledge(2), ended(0..3));
    assert_eq!(connection.acknowledge(3), ended([3]));
    assert!(!connection.has_unacknowledged());
}

#[test]
fn full_message_is_sent() {
    let (mut connection, mut manager) = connected();
    let now = Instant::now();
    for instance in 0..300 {
        connection.report(STUDY, report(instance), now).unwrap();
    }
    let all: Vec<u32> = (1..257).collect();
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [0]"), format!("{STUDY}: {all:?}")]);
}

#[test]
fn reports_precede_other_messages_and_other_studies() {
    let (mut connection, mut manager) = connected();
    let now = Instant::now();
    for (study, instance) in [(STUDY, 0), (STUDY, 1), (STUDY, 2), (OTHER, 3)] {
        connection.report(study, report(instance), now).unwrap();
    }
    connection.send(&ToManager::Drain).unwrap();
    let expected = [format!("{STUDY}: [0]"), format!("{STUDY}: [1, 2]"), format!("{OTHER}: [3]")];
    assert_eq!(arrived(&mut manager), [expected.as_slice(), &["Drain".to_owned()]].concat());
}

#[test]
fn request_waits_behind_reports_unless_a_slot_is_idle() {
    let (mut connection, mut manager) = connected();
    let now = Instant::now();
    let request = |buckets, after| format!("{:?}", ToManager::Request { buckets, after });
    connection.request(2, None, false).unwrap();
    assert_eq!(arrived(&mut manager), [request(2, None)], "no report waits");
    connection.report(STUDY, report(0), now).unwrap();
    connection.report(STUDY, report(1), now).unwrap();
    connection.request(1, None, false).unwrap();
    connection.request(2, None, false).unwrap();
    connection.request(1, Some(3), false).unwrap();
    connection.request(1, Some(4), false).unwrap();
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [0]")]);
    connection.flush(now).unwrap();
    let requests = [request(3, None), request(1, Some(4))];
    assert_eq!(arrived(&mut manager), [&[format!("{STUDY}: [1]")], requests.as_slice()].concat());
    connection.report(STUDY, report(2), now).unwrap();
    connection.request(1, None, true).unwrap();
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [2]"), request(1, None)]);
}

#[test]
fn collected_reports_survive_the_link_and_requests_do_not() {
    let (mut connection, manager) = connected();
    let now = Instant::now();
    for instance in 0..3 {
        connection.report(STUDY, report(instance), now).unwrap();
    }
    connection.request(1, None, false).unwrap();
    drop(manager);
    assert!(connection.close());
    // Without a link nothing waits for a timer.
    assert_eq!(connection.report(STUDY, report(3), now), Ok(None));
    let (worker, mut manager) = pair();
    connection.open(Box::new(worker.link));
    connection.repeat_reports().unwrap();
    let expected = [format!("{STUDY}: [0]"), format!("{STUDY}: [1, 2]"), format!("{STUDY}: [3]")];
    assert_eq!(arrived(&mut manager), expected);
    assert_eq!(connection.acknowledge(3), ended(0..4));
}

/// The link is lost, and the worker sees it when it sends: collected reports, or the first half of them.
#[test]
fn no_report_is_lost_with_the_message_that_fails() {
    let now = Instant::now();
    for large in [false, true] {
        let (mut connection, manager) = connected();
        connection.report(STUDY, report(0), now).unwrap();
        let bytes = if large { 9 << 20 } else { 0 };
        connection.report(STUDY, report_of(1, bytes), now).unwrap();
        connection.report(STUDY, report_of(2, bytes), now).unwrap();
        drop(manager);
        assert_eq!(connection.report(OTHER, report(3), now), Err(ReportError::Disconnected));
        assert!(connection.close() && !connection.has_lost_report());
        let (worker, mut manager) = pair();
        connection.open(Box::new(worker.link));
        connection.repeat_reports().unwrap();
        let whole = [format!("{STUDY}: [1, 2]")];
        let halves = [format!("{STUDY}: [1]"), format!("{STUDY}: [2]")];
        let middle = if large { &halves[..] } else { &whole };
        let expected = [&[format!("{STUDY}: [0]")], middle, &[format!("{OTHER}: [3]")]].concat();
        assert_eq!(arrived(&mut manager), expected);
    }
}

#[test]
fn reports_that_exceed_a_frame_together_are_sent_apart() {
    let (mut connection, mut manager) = connected();
    let now = Instant::now();
    let half = codec::MAX_FRAME_BYTES / 2;
    connection.report(STUDY, report(0), now).unwrap();
    for instance in 1..4 {
        connection.report(STUDY, report_of(instance, half), now).unwrap();
    }
    connection.flush(now).unwrap();
    let expected = [0, 1, 2, 3].map(|instance| format!("{STUDY}: [{instance}]"));
    assert_eq!(arrived(&mut manager), expected);
    connection.report(STUDY, report_of(4, codec::MAX_FRAME_BYTES), now).unwrap();
    assert_eq!(connection.flush(now), Err(ReportError::TooLarge));
}

#[test]
fn worker_in_one_process_collects_reports_and_awaits_no_acknowledgment() {
    let (worker, mut manager) = pair();
    let mut connection = ManagerConnection::new(false).with_link(Box::new(worker.link), worker.incoming);
    let now = Instant::now();
    for instance in 0..3 {
        connection.report(STUDY, report(instance), now).unwrap();
    }
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [0]")]);
    connection.flush(now).unwrap();
    assert_eq!(arrived(&mut manager), [format!("{STUDY}: [1, 2]")]);
    assert!(!connection.has_unacknowledged());
}
