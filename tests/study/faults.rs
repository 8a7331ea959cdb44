//! Failing disks under a study that spills to them: the results stay the same and the failures are recorded.

use crate::disk::Disk;
use crate::results::json;
use crate::study::Study;
use crate::{FINDINGS, findings, results};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// 150 s: bounds waits that would otherwise be endless.
const DEADLINE: Duration = Duration::from_secs(150);

#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

/// A study with a quarter of the memory that it would use.
struct Tight {
    study: Study,
    expected: Vec<String>,
    memory: String,
}

impl Tight {
    fn new() -> Self {
        let study = Study::of_tissue(512);
        study.edit(&[("normalize = true", "normalize = false"), ("trajectories = 2", "trajectories = 4")]);
        let expected = findings(&study, "plenty", &["--memory", "4GB", "--workers", "2"]);
        let run = json(&study.path("plenty/run.json"));
        let memory = (run["peak_bytes_admitted"].as_u64().expect("bytes") / 4).to_string();
        Self { study, expected, memory }
    }

    /// Starts the study at a place where the folder `disk` is visible.
    fn start(&self, way: &[String], options: &[&str]) -> Child {
        let pleach = assert_cmd::cargo::cargo_bin!("pleach").to_str().expect("UTF-8");
        let run = ["run", "study.toml", "--out", "out", "--quiet", "--workers", "2"];
        let rest = ["--overwrite", "--memory", &self.memory, "--ssd", "disk"];
        let all: Vec<&str> = way
            .iter()
            .map(String::as_str)
            .chain([pleach])
            .chain(run)
            .chain(rest)
            .chain(options.iter().copied())
            .collect();
        let mut command = Command::new(all[0]);
        command.current_dir(self.study.folder()).args(&all[1..]).spawn().expect("pleach starts")
    }

    /// Asserts that the study succeeded with the expected results. Returns its storage record.
    fn check(&self, status: ExitStatus) -> serde_json::Value {
        assert!(status.success(), "{status}");
        let out = self.study.path("out");
        let found: Vec<String> = FINDINGS.iter().map(|name| results::text(&out.join(name))).collect();
        assert_eq!(found, self.expected);
        json(&out.join("run.json"))["storage"].clone()
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn bytes(folder: &Path) -> u64 {
    files(folder).iter().filter_map(|file| fs::metadata(file).ok()).map(|meta| meta.len()).sum()
}

/// Starts a study, and waits until a folder holds 100 kB. The process continues to write meanwhile. On a busy machine it
/// may end before this process looks: then it starts again.
fn start_and_wait_for_bytes(folder: &Path, start: impl Fn() -> Child) -> Child {
    let begun = Instant::now();
    let mut ends = Vec::new();
    let mut child = start();
    while bytes(folder) < 100_000 {
        assert!(
            begun.elapsed() < DEADLINE,
            "nothing is written; ends of runs: {ends:?}; folder: {:?}; probe: {:?}",
            fs::read_dir(folder).map(Iterator::count),
            fs::write(folder.with_file_name("probe"), "")
        );
        if let Some(status) = child.try_wait().expect("a child") {
            ends.push(status.code());
            child = start();
        }
        std::thread::yield_now();
    }
    child
}

#[test]
fn full_ssd_does_not_change_results() {
    let tight = Tight::new();
    let Some(disk) = Disk::tmpfs(&tight.study.path("disk"), 64) else {
        return skipped("full_ssd_does_not_change_results", "the system does not let us mount");
    };
    let start = || tight.start(&disk.way(), &[]);
    let mut child = start_and_wait_for_bytes(&disk.seen().join("regions"), start);
    disk.fill();
    let storage = tight.check(child.wait().expect("it ends"));
    assert!(storage["demoted"]["regions"].as_u64() > Some(0), "{storage}");
}

#[test]
fn read_only_ssd_does_not_change_results() {
    let tight = Tight::new();
    let Some(disk) = Disk::ext4(&tight.study.path("disk"), 64) else {
        return skipped("read_only_ssd_does_not_change_results", "the system gives us no loop device");
    };
    let start = || tight.start(&disk.way(), &[]);
    let mut child = start_and_wait_for_bytes(&disk.seen().join("regions"), start);
    let (find, way) =
        (["findmnt", "--noheadings", "--output", "SOURCE", "disk"].map(str::to_owned), disk.way());
    let device = Command::new(&way[0]).args(way[1..].iter().chain(&find)).output().expect("a device").stdout;
    let device = String::from_utf8(device).expect("UTF-8");
    let device = device.trim().strip_prefix("/dev/").expect("a device");
    // ext4 does the same on corruption: the next write to any open file fails.
    fs::write(format!("/sys/fs/ext4/{device}/trigger_fs_error"), "1").expect("ext4");
    assert!(fs::write(disk.seen().join("file"), "").is_err(), "it can be written");
    let storage = tight.check(child.wait().expect("it ends"));
    assert!(storage["demoted"]["regions"].as_u64() > Some(0), "{storage}");
}

#[test]
fn regions_corrupted_on_an_ssd_are_recomputed() {
    let tight = Tight::new();
    fs::create_dir(tight.study.path("disk")).expect("a folder");
    let regions = tight.study.path("disk/regions");
    // Ranges read few spilled regions again, TRTMA's buckets read half of them.
    let mut child = tight.start(&[], &["--strategy", "trtma"]);
    let mut flips = 0_u64;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        for path in files(&regions) {
            let Ok(file) = fs::File::options().read(true).write(true).open(&path) else { continue };
            let length = file.metadata().map_or(0, |meta| meta.len());
            // Flips one bit per kilobyte, at other offsets in each round.
            for place in (flips % 1009..length).step_by(1009) {
                let mut byte = [0];
                if file.read_exact_at(&mut byte, place).is_ok() {
                    // The process may have removed the file meanwhile.
                    let _ = file.write_at(&[byte[0] ^ 0x10], place);
                    flips += 1;
                }
            }
        }
    };
    let storage = tight.check(status);
    assert!(flips > 0 && storage["lost"].as_u64() > Some(0), "{flips} flips: {storage}");
}
