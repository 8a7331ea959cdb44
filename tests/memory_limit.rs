//! Studies and samples beyond a memory limit are refused with exit code 2 and never abort. Those within the limit run.

#[path = "support/pleach.rs"]
mod pleach;
#[path = "support/study.rs"]
mod study;

use pleach::{Answer, answer};
use std::path::Path;
use std::process::Command;
use study::Study;

/// Runs `pleach` with this many MiB of address space.
fn limited(folder: &Path, megabytes: u64, args: &[&str]) -> Answer {
    let script = format!("ulimit -v {} && exec \"$@\"", megabytes * 1024);
    let program = assert_cmd::cargo::cargo_bin!("pleach");
    answer(Command::new("sh").args(["-c", &script, "sh"]).arg(program).args(args).current_dir(folder))
}

/// Returns the least address space in which the program starts at all, in steps of 4 MiB.
fn least_megabytes(folder: &Path) -> u64 {
    let starts = |megabytes: &u64| {
        let script = format!("ulimit -v {} && exec \"$@\"", megabytes * 1024);
        let program = assert_cmd::cargo::cargo_bin!("pleach");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(program).arg("--version").current_dir(folder);
        command.output().expect("a shell starts").status.success()
    };
    (64..184).step_by(4).find(starts).expect("the program starts below 184 MiB")
}

/// Asserts a refusal in one line with the needed memory, the limit and a remedy, and no new files.
#[track_caller]
fn refused(folder: &Path, megabytes: u64, args: &[&str], beginning: &str, remedy: &str) {
    let before = std::fs::read_dir(folder).expect("a folder").count();
    let answer = limited(folder, megabytes, args);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{args:?}: {answer:?}");
    let said = &answer.stderr;
    assert!(
        said.starts_with(&format!("error: {beginning}")) && said.lines().count() == 1,
        "{args:?}: {said}"
    );
    for word in ["take about ", "left of 80 % of ", "the address space of this process (ulimit -v); ", remedy]
    {
        assert!(said.contains(word), "{args:?}: {word} is not in {said}");
    }
    assert_eq!(
        std::fs::read_dir(folder).expect("a folder").count(),
        before,
        "{args:?} left something behind"
    );
}

/// A problem with `count` parameters.
fn problem(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|place| format!("\"x{place}\"")).collect();
    let bounds = vec!["[0, 1]"; count];
    format!("{{\"names\": [{}], \"bounds\": [{}]}}", names.join(", "), bounds.join(", "))
}

#[test]
fn sample_of_20000_parameters_beyond_the_limit_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("p.json"), problem(20_000)).expect("written");
    for (args, remedy) in [
        (&["--method", "moat"][..], "fewer --trajectories or parameters"),
        (&["--method", "moat", "--trajectories", "2", "--candidates", "4"], "fewer --trajectories"),
        (&["--method", "fast", "--samples", "65"], "fewer --samples or parameters"),
        (&["--method", "pawn", "--samples", "900000"], "fewer --samples"),
    ] {
        let args = [&["sample", "p.json", "--out", "x.csv"], args].concat();
        refused(folder, 1024, &args, "p.json: method: ", remedy);
    }
    // A sample within the limit is drawn in both formats.
    for out in ["x.csv", "x.parquet"] {
        let args = ["sample", "p.json", "--out", out, "--method", "pawn", "--samples", "50"];
        let said = limited(folder, 1024, &args).done();
        assert!(said.contains("50 evaluations of 20000 varying parameters"), "{said}");
    }
}

/// The largest design of a study file: 9,996,000 evaluations.
#[test]
fn plan_of_588000_samples_beyond_the_limit_is_refused() {
    let study = Study::of_tissue(64);
    study.edit(&[("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"vbd\"\nsamples = 588000")]);
    for command in [&["plan", "study.toml"][..], &["run", "study.toml", "--out", "out"]] {
        let beginning = "study.toml: method: 9996000 evaluations of 15 parameters take about ";
        refused(study.folder(), 2048, command, beginning, "fewer samples or trajectories, or more memory");
    }
}

/// The parameter sets fit, but their plan needs more memory. Up to some limit the study is refused, above it is planned, and
/// no limit makes the process abort.
#[test]
fn plan_is_refused_or_made_at_every_limit() {
    let study = Study::of_tissue(64);
    study.edit(&[("kind = \"moat\"\ntrajectories = 2\nlevels = 20", "kind = \"vbd\"\nsamples = 256")]);
    let mut planned = Vec::new();
    let least = least_megabytes(study.folder());
    for megabytes in [least + 4, 168, 192, 256, 512] {
        let answer = limited(study.folder(), megabytes, &["plan", "study.toml", "--workers", "2", "--json"]);
        let is_planned = answer.code == 0;
        let words = ["take about ", "left of 80 % of "];
        let is_refused = answer.code == 2 && words.iter().all(|word| answer.stderr.contains(word));
        println!("{megabytes} MiB: {} {}", answer.code, answer.stderr);
        assert!(is_planned || is_refused, "{megabytes} MiB: {answer:?}");
        planned.push(is_planned);
    }
    assert!(planned.is_sorted(), "{planned:?}");
    assert_eq!((planned[0], planned[planned.len() - 1]), (false, true), "{planned:?}");
}
