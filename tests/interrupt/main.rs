//! Interrupted studies: no journaled response is lost, and the results of a resumed study equal those of an undisturbed one.

#[path = "../support/pleach.rs"]
mod pleach;
#[path = "../support/pyramid.rs"]
mod pyramid;
#[path = "../support/results.rs"]
mod results;
#[path = "../support/study.rs"]
mod study;

mod refusals;

use pleach::pleach;
use results::{json, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use study::Study;

/// 120 s: bounds waits that would otherwise be endless, far above the longest.
const DEADLINE: Duration = Duration::from_secs(120);

/// Number of interruptions, 20 or `PLEACH_INTERRUPTIONS`.
fn interruptions() -> usize {
    std::env::var("PLEACH_INTERRUPTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

/// Reproducible random numbers (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn start(study: &Study, options: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("pleach"))
        .current_dir(study.folder())
        .args(["run", "study.toml", "--out", "out", "--quiet", "--resume"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pleach starts")
}

/// Waits until the journal has `bytes` bytes or the process has ended. Returns the exit status if it ended.
fn wait_for_journal(study: &Study, child: &mut Child, bytes: u64) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        if fs::metadata(study.path("out/journal")).is_ok_and(|journal| journal.len() >= bytes) {
            return None;
        }
        assert!(begun.elapsed() < DEADLINE, "the journal does not grow to {bytes} bytes");
        std::thread::yield_now();
    }
}

fn signal(child: &Child, name: &str) {
    // The shell's built-in `kill`: a bare system has no other.
    let status = Command::new("bash").arg("-c").arg(format!("kill -{name} {}", child.id())).status();
    assert!(status.expect("bash starts").success());
}

/// Starts the study and sends it the signal once its journal has `bytes` bytes. A run that was over before the signal is
/// removed and repeated: on a busy machine, this process may be kept waiting for as long as the study takes.
fn interrupt(study: &Study, bytes: u64, name: &str) -> ExitStatus {
    for _ in 0..10 {
        let mut child = start(study, &["--workers=1"]);
        if wait_for_journal(study, &mut child, bytes).is_none() {
            signal(&child, name);
        }
        let status = child.wait().expect("a child");
        if !status.success() {
            return status;
        }
        fs::remove_dir_all(study.path("out")).expect("removed");
    }
    panic!("each of ten runs was over before the signal");
}

/// `run.json` without times and other values that differ between runs.
fn run_record(out: &Path) -> Value {
    let mut run = json(&out.join("run.json"));
    for measured in
        ["wall_seconds", "execution_seconds", "planning_seconds", "peak_bytes_admitted", "peak_rss_bytes"]
    {
        assert!(run[measured].take().is_number(), "{measured}");
    }
    // Value reuse depends on the results present, and so on the progress before the interruption. Only the sum of executed
    // and reused tasks is fixed.
    let number = |value: &Value| value.as_u64().expect("tasks");
    let reused: u64 = run["tasks_reused"].as_object().expect("by level").values().map(number).sum();
    let tasks = number(&run["tasks_executed"].take()) + reused;
    run["tasks_reused"] = tasks.into();
    let operations = run["operations"].take();
    let names = operations.as_array().expect("a list").iter().map(|operation| operation["name"].clone());
    run["operations"] = names.filter(|name| name != "digest").collect();
    run
}

/// Outputs that must not depend on interruptions.
fn outputs(out: &Path) -> Vec<String> {
    let files = ["samples.csv", "responses.csv", "failed.csv", "indices.csv", "indices.json", "plan.json"];
    let record = run_record(out).to_string();
    files.iter().map(|name| text(&out.join(name))).chain([record]).collect()
}

/// Number of journaled runs.
fn known(study: &Study) -> usize {
    text(&study.path("out/journal")).lines().count() - 1
}

#[test]
fn a_study_interrupted_at_random_moments_comes_out_the_same() {
    let study = Study::of_tissue(128);
    study.edit(&[("trajectories = 2", "trajectories = 5")]);
    // Plans depend on the number of workers.
    let whole = ["--workers=1", "--workers=2"].map(|workers| {
        let out = workers.trim_start_matches("--");
        pleach(study.folder(), &["run", "study.toml", "--out", out, "--quiet", workers]).done();
        outputs(&study.path(out))
    });
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    // About 80 evaluations on 2 tiles, with a line of about 100 bytes each.
    let journal_bytes = 16_000;
    let mut interrupted = 0;
    for round in 0..interruptions() {
        let name = ["INT", "TERM", "KILL"][round % 3];
        let workers = ["--workers=1", "--workers=2"][round / 3 % 2];
        let mut child = start(&study, &[workers]);
        let at = 1 + random.below(journal_bytes);
        let ended = wait_for_journal(&study, &mut child, at);
        if ended.is_none() {
            signal(&child, name);
        }
        let output = child.wait_with_output().expect("a child");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        match output.status.code() {
            // The study ended before the signal or while it wrote the results.
            Some(0) => {}
            Some(5) => {
                assert!(
                    said.contains(" of 160 responses are in out/journal; --resume continues the study"),
                    "{said}"
                );
                interrupted += 1;
            }
            None if name == "KILL" => interrupted += 1,
            code => panic!("{name} in round {round}: {code:?}: {said}"),
        }
        if study.path("out/journal").exists() && study.path("out/responses.csv").exists() {
            assert!(known(&study) >= 160, "results are written when all responses are known");
        }
        let printed =
            pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume", workers]).done();
        assert!(printed.contains("results in out") || printed.contains("nothing to resume"), "{printed}");
        assert!(!study.path("out/journal").exists(), "nothing is left to resume");
        assert!(study.path("out/report.html").exists());
        let resumed = outputs(&study.path("out"));
        for (resumed, whole) in resumed.iter().zip(&whole[round / 3 % 2]) {
            assert_eq!(resumed, whole, "{name} after {at} bytes of journal, {workers}");
        }
        fs::remove_dir_all(study.path("out")).expect("removed");
    }
    assert!(interrupted * 2 >= interruptions(), "{interrupted} of {} were interrupted", interruptions());
}

#[test]
fn repeatedly_killed_study_completes() {
    let study = Study::of_tissue(128);
    pleach(study.folder(), &["run", "study.toml", "--out", "whole", "--quiet", "--workers=1"]).done();
    assert_eq!(interrupt(&study, 700, "KILL").code(), None);
    let mut known_before = known(&study);
    for _ in 0..DEADLINE.as_secs() {
        let mut child = start(&study, &["--workers=1"]);
        let journal = || fs::metadata(study.path("out/journal")).map_or(0, |journal| journal.len());
        let bytes = journal() + 700;
        if wait_for_journal(&study, &mut child, bytes).is_some() {
            assert!(child.wait().expect("a child").success());
            assert_eq!(outputs(&study.path("out")), outputs(&study.path("whole")));
            return;
        }
        signal(&child, "KILL");
        child.wait().expect("a child");
        let known = known(&study);
        assert!(known > known_before, "every attempt gets further");
        known_before = known;
    }
    panic!("it does not get there");
}

#[test]
fn a_study_of_slides_is_continued() {
    let study = Study::of_tissue(192);
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    pyramid::write_image(&study.path("tiles/s.svs"), tissue.as_raw(), 192, pyramid::AT_20);
    let cut = |halo: u32| {
        let slides = format!("slides = [\"tiles/s.svs\"]\nmagnification = 20\ntile = 64\nhalo = {halo}");
        study.edit(&[("tiles = [\"tiles/*.png\"]", slides.as_str())]);
    };
    cut(16);
    pleach(study.folder(), &["run", "study.toml", "--out", "alone", "--quiet", "--workers=1"]).done();
    assert_eq!(interrupt(&study, 4_000, "KILL").code(), None);
    // Other tiles make another study.
    cut(17);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet", "--resume"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("tiles of slides"), "{refused:?}");
    cut(16);
    pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet", "--resume", "--workers=1"])
        .done();
    assert_eq!(outputs(&study.path("out")), outputs(&study.path("alone")));
}
