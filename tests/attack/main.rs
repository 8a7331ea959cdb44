//! Attacks on the servers of real processes: clients that do not read, and submissions that block or use memory.

#[path = "../support/pleach.rs"]
mod pleach;
mod processes;
mod readers;
#[path = "../support/study.rs"]
mod study;

use parking_lot::Mutex;
use processes::{Manager, Worker, memory_kb};
use readers::{Probe, under_attack};
use serde_json::Value;
use std::fs;
use study::Study;

/// 200 MB: more than a process uses under any number of clients that do not read.
const MAX_KB: u64 = 200_000;

/// 1 s: probes wait up to 100 ms on an idle machine, and tests share theirs.
const MAX_MS: f64 = 1000.0;

/// One attack at a time: the readers of two attacks would compete for processors.
static ATTACK: Mutex<()> = Mutex::new(());

#[expect(clippy::print_stdout, reason = "the figures are for readers of the output")]
fn is_answered(what: &str, pid: u32, sources: u8, probe: &Probe) {
    let waits = under_attack(probe, sources);
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    let (resident, most) = memory_kb(pid);
    println!(
        "{what}, 1,000 slow readers of {sources} addresses: {} probes, p50 {:.1} ms, p99 {:.1} ms; resident {} MB, at most {} MB",
        waits.len(),
        at(0.5),
        at(0.99),
        resident / 1000,
        most / 1000
    );
    assert!(at(0.99) < MAX_MS, "{what}: a probe waited for {} ms", at(0.99));
    assert!(most <= MAX_KB, "{what}: {most} kB");
}

#[test]
fn manager_under_slow_readers_answers_probes() {
    let _alone = ATTACK.lock();
    let manager = Manager::new();
    let probe = Probe { address: manager.http, tls: Some(manager.trust("ca")) };
    for sources in [1, 50] {
        is_answered("manager", manager.pid(), sources, &probe);
    }
}

#[test]
fn worker_under_slow_readers_answers_probes() {
    let _alone = ATTACK.lock();
    let manager = Manager::new();
    let worker = Worker::of(&manager);
    let probe = Probe { address: worker.metrics, tls: None };
    for sources in [1, 50] {
        is_answered("worker", worker.pid(), sources, &probe);
    }
}

/// Submits the study and returns its submission as the client sent it.
fn submitted(manager: &Manager, study: &Study) -> Value {
    manager.submit(study);
    let kept = fs::read(manager.path("state/studies/1/submission.json")).expect("a study");
    serde_json::from_slice::<Value>(&kept).expect("JSON")["content"]["submission"].take()
}

#[test]
fn input_that_is_no_regular_file_is_refused_at_once() {
    let (manager, study) = (Manager::new(), Study::of_tissue(64));
    let mut submission = submitted(&manager, &study);
    let good = submission.to_string();
    let fifo = manager.path("fifo").display().to_string();
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .expect("a FIFO");
    for (path, found) in [(fifo.as_str(), "a pipe (FIFO)"), ("/dev/zero", "a device")] {
        submission["inputs"][0]["path"] = path.into();
        let (status, answer) = manager.post("/api/v1/studies", submission.to_string().as_bytes());
        let expected = format!("inputs: path {path}: {found} is not allowed; a regular file is");
        assert!(status == 422 && answer.contains(&expected), "{status} {answer}");
    }
    assert_eq!(manager.post("/api/v1/studies", good.as_bytes()).0, 201);
}

#[test]
fn long_submission_takes_no_more_than_twice_its_length() {
    const ROWS: usize = 24_000;
    let (manager, study) = (Manager::new(), Study::of_tissue(64));
    let mut submission = submitted(&manager, &study);
    // A foreign build is refused right after parsing. Planning would add memory of its own to the measurement.
    submission["build"] = "another".into();
    let row = submission["evaluations"][0].to_string();
    submission["evaluations"] = Value::Null;
    let rows = vec![row; ROWS].join(",");
    let body = submission.to_string().replace(r#""evaluations":null"#, &format!(r#""evaluations":[{rows}]"#));
    drop(rows);
    let (before, _) = memory_kb(manager.pid());
    let (status, answer) = manager.post("/api/v1/studies", body.as_bytes());
    assert!(status == 422 && answer.contains("submitted by pleach another"), "{status} {answer}");
    let (_, most) = memory_kb(manager.pid());
    let (grown, body) = ((most - before) * 1024, body.len() as u64);
    println!("a submission of {body} bytes took {grown} bytes");
    assert!(grown <= 2 * body, "{grown} bytes for a submission of {body}");
}
