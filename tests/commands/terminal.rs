//! Progress on a real terminal, provided by `script` of util-linux.

use crate::study::Study;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// 120 s: bounds waits that would otherwise be endless, far above the longest.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs the study on a terminal with `columns` columns. Returns `None` without `script`.
#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
fn start(test: &str, study: &Study, columns: u32) -> Option<Child> {
    let pleach = assert_cmd::cargo::cargo_bin!("pleach");
    let run = format!(
        "stty cols {columns} rows 24; echo $$ > pid; exec '{}' run study.toml --out out --resume --workers 1",
        pleach.display()
    );
    let script = Command::new("script")
        .args(["-q", "-e", "-f", "-c", &format!("exec sh -c '{}'", run.replace('\'', "'\\''")), "/dev/null"])
        .current_dir(study.folder())
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    if script.is_err() {
        eprintln!("SKIPPED {test}: script (util-linux) is not installed");
    }
    script.ok()
}

/// Terminal output and exit status.
fn ended(child: Child) -> (String, Option<i32>) {
    let output = child.wait_with_output().expect("a child");
    (String::from_utf8(output.stdout).expect("UTF-8"), output.status.code())
}

/// Lines of all frames: those of the bar, and those below it.
fn lines(shown: &str) -> Vec<&str> {
    let frames = shown.split("\x1b[J");
    frames.flat_map(|frame| frame.split("\r\n")).map(|line| line.split('\r').next().unwrap_or(line)).collect()
}

/// Shown percentages, one per frame.
fn percentages(shown: &str) -> Vec<u32> {
    let number = |line: &str| line.split_once(" %  ")?.0.split_whitespace().next_back()?.parse().ok();
    lines(shown).into_iter().filter_map(number).collect()
}

fn study() -> Study {
    let study = Study::of_tissue(128);
    study.edit(&[("trajectories = 2", "trajectories = 4")]);
    study
}

#[test]
fn progress_fits_terminals_of_any_width() {
    let study = study();
    for columns in [40, 60, 80, 120] {
        let Some(child) = start("progress_fits_terminals_of_any_width", &study, columns) else { return };
        let (shown, status) = ended(child);
        assert_eq!(status, Some(0), "{shown}");
        let (frames, _) = shown.rsplit_once("\x1b[J").expect("frames");
        let shown_lines = lines(frames);
        assert!(shown_lines.iter().any(|line| line.contains(" evaluations")), "{columns}: {frames}");
        // Messages wrap as text does.
        for line in shown_lines.iter().filter(|line| !line.starts_with("nothing to resume")) {
            assert!(line.chars().count() < columns as usize, "{columns}: {line:?}");
        }
        let shares = percentages(&shown);
        assert!(shares.is_sorted(), "{columns}: {shares:?}");
        fs::remove_dir_all(study.path("out")).expect("a folder");
    }
}

#[test]
fn resumed_study_shows_no_less_than_before() {
    // The study lasts for many redraws and is interrupted after some of them.
    let study = Study::of_tissue(128);
    study.edit(&[("trajectories = 2", "trajectories = 24")]);
    let Some(mut child) = start("resumed_study_shows_no_less_than_before", &study, 80) else { return };
    let begun = Instant::now();
    let journal = || fs::metadata(study.path("out/journal")).map_or(0, |journal| journal.len());
    while journal() < 40_000 {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it was interrupted");
        assert!(begun.elapsed() < DEADLINE);
        std::thread::yield_now();
    }
    let interrupt = format!("kill -INT {}", fs::read_to_string(study.path("pid")).expect("a number").trim());
    assert!(Command::new("bash").args(["-c", &interrupt]).status().expect("bash").success());
    let (shown, status) = ended(child);
    assert_eq!(status, Some(5), "{shown}");
    let had = percentages(&shown).pop().expect("a percentage");
    let (shown, status) =
        ended(start("resumed_study_shows_no_less_than_before", &study, 80).expect("script"));
    assert_eq!(status, Some(0), "{shown}");
    let shares = percentages(&shown);
    assert!(had > 0 && shares[0] >= had && shares.is_sorted(), "{had}, then {shares:?}");
    assert!(!study.path("out/.progress").exists());
}
