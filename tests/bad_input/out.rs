//! Output folders that a study must not or cannot write to.

use crate::pleach::pleach;
use crate::refused;
use crate::results::text;
use crate::study::Study;
use std::fs;
use std::process::{Command, Output};

const RUN: [&str; 4] = ["run", "study.toml", "--quiet", "--out"];

fn run_into(out: &str) -> Vec<&str> {
    [&RUN[..], &[out]].concat()
}

#[test]
fn output_path_through_a_file_is_refused() {
    let study = Study::of_tissue(64);
    study.write("file", "a file");
    let below = "--out file/out: cannot be written to: Not a directory (os error 20)";
    refused(study.folder(), &run_into("file/out"), below);
    refused(study.folder(), &run_into("file"), "--out file: cannot be written to: File exists (os error 17)");
}

#[test]
fn output_folder_of_another_study_is_refused() {
    let study = Study::of_tissue(64);
    pleach(study.folder(), &run_into("out")).done();
    let other = "--out out: holds plan.json of another study; an empty or new folder is allowed";
    let metric = "metric = \"dice\"\n";
    for edit in [
        ("seed = 500", "seed = 501"),
        ("\"nuclei-moat\"", "\"other\""),
        ("\"dice\"", "\"jaccard\""),
        ("trajectories = 2", "trajectories = 3"),
        ("normalize = true", "normalize = false"),
        ("tiles/*.png", "tiles/tissue_01.png"),
        (metric, &format!("{metric}[parameters.G1]\nrange = [10, 50]\n")),
    ] {
        study.edit(&[edit]);
        refused(study.folder(), &run_into("out"), other);
    }
    study.edit(&[]);
    study.write("t.csv", "G1\n60\n");
    refused(study.folder(), &[&run_into("out")[..], &["--parameter-sets", "t.csv"]].concat(), other);
    study.edit(&[("seed = 500", "seed = 501")]);
    let overwrite = [&run_into("out")[..], &["--overwrite"]].concat();
    refused(study.folder(), &overwrite, other);
}

const COMPLETE: &str = "--out out: holds complete results of this study; --resume leaves them as they are, --overwrite \
                        runs the study again";

#[test]
fn complete_results_are_kept_unless_overwritten() {
    let study = Study::of_tissue(64);
    pleach(study.folder(), &run_into("out")).done();
    let written = study.path("out/run.json");
    let first = text(&written);
    refused(study.folder(), &run_into("out"), COMPLETE);
    pleach(study.folder(), &[&run_into("out")[..], &["--resume"]].concat()).done();
    assert_eq!(text(&written), first, "it was run again");
    pleach(study.folder(), &[&run_into("out")[..], &["--overwrite"]].concat()).done();
    assert_ne!(text(&written), first, "it was not run again");
    let both = pleach(study.folder(), &[&run_into("out")[..], &["--overwrite", "--resume"]].concat());
    assert!(both.code == 2 && both.stderr.contains("--resume"), "{both:?}");
}

#[test]
fn complete_results_of_phases_are_kept_unless_overwritten() {
    let study = Study::of_tissue(64);
    let phases = "[[phase]]\nkind = \"moat\"\ntrajectories = 1\nlevels = 20\nsurvivors = { most_influential = 1 }\n\
                  [[phase]]\nkind = \"moat\"\ntrajectories = 1\nlevels = 20";
    study.edit(&[("[method]\nkind = \"moat\"\ntrajectories = 2\nlevels = 20", phases)]);
    pleach(study.folder(), &run_into("out")).done();
    refused(study.folder(), &run_into("out"), COMPLETE);
    pleach(study.folder(), &[&run_into("out")[..], &["--overwrite"]].concat()).done();
}

#[test]
fn resume_without_earlier_results_is_noticed() {
    let study = Study::of_tissue(64);
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]);
    let notice = "nothing to resume in out; starting the study\n";
    assert_eq!((answer.code, answer.stderr.as_str()), (0, notice), "{answer:?}");
    // The folder now holds results to resume.
    pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]).done();
}

#[test]
fn folder_with_foreign_previews_is_refused() {
    let study = Study::of_tissue(64);
    study.write("out/previews/1-a.png", "");
    let foreign = "--out out: holds previews of another study; an empty or new folder is allowed";
    refused(study.folder(), &run_into("out"), foreign);
    assert!(study.path("out/previews/1-a.png").exists());
}

#[test]
fn folder_with_foreign_results_is_refused() {
    let study = Study::of_tissue(64);
    for (name, content) in [("responses.csv", "a,b\n"), ("report.html", "")] {
        study.write(&format!("out/{name}"), content);
        let foreign = format!("--out out: holds {name} of another study; an empty or new folder is allowed");
        refused(study.folder(), &run_into("out"), &foreign);
        fs::remove_dir_all(study.path("out")).expect("a folder removed");
    }
}

#[test]
fn plan_damaged_is_refused_as_damaged() {
    let study = Study::of_tissue(64);
    for (content, why) in [
        ("{\"study_digest\": \"9ab", "EOF while parsing a string at line 1 column 21"),
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{}", "missing field `study_digest` at line 1 column 2"),
        ("no JSON", "expected ident at line 1 column 2"),
    ] {
        study.write("out/plan.json", content);
        let damaged = format!(
            "--out out: plan.json, which identifies the study, is corrupt: {why}; an empty or new folder is \
             allowed"
        );
        refused(study.folder(), &run_into("out"), &damaged);
        fs::remove_dir_all(study.path("out")).expect("a folder removed");
    }
}

/// Runs the study with `out` as a file system of its own, mounted with these options. Returns the answer, followed by the
/// output of `ls` in `out`. Returns `None` if the system denies mounts.
fn run_mounted(study: &Study, options: &str) -> Option<Output> {
    mounted(study, options, &run_into("out"))
}

/// As [`run_mounted`], for any command.
fn mounted(study: &Study, options: &str, command: &[&str]) -> Option<Output> {
    fs::create_dir_all(study.path("out")).expect("a folder made");
    let script =
        "mount -t tmpfs -o \"$0\" tmpfs out || exit 99; : >mounted; \"$@\"; code=$?; ls -A out; exit $code";
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, options])
        .arg(assert_cmd::cargo::cargo_bin!("pleach"))
        .args(command)
        .current_dir(study.folder())
        .output()
        .ok()?;
    // The marker file shows that the mount succeeded, so the exit code is not that of `unshare` or `mount`.
    study.path("mounted").exists().then_some(output)
}

#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
fn skipped(test: &str) {
    eprintln!("SKIPPED {test}: nothing can be mounted here");
}

#[test]
fn read_only_file_system_is_refused() {
    let study = Study::of_tissue(64);
    let Some(output) = run_mounted(&study, "ro") else { return skipped("read_only_file_system_is_refused") };
    assert_eq!(output.status.code(), Some(2));
    let said = "error: --out out: cannot be written to: Read-only file system (os error 30)\n";
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], said.as_bytes()));
}

#[test]
fn full_file_system_exits_6_and_leaves_no_partial_file() {
    let study = Study::of_tissue(64);
    // tmpfs uses one page (4 KiB) per file. 8 KiB hold the journal and the plan, 12 KiB also the samples and some responses.
    for (size, what, files) in [
        (
            "size=8k",
            "failed to write samples.csv: No space left on device (os error 28)",
            "journal\nplan.json\n",
        ),
        (
            "size=12k",
            "failed to write the journal: No space left on device (os error 28); --resume continues the study",
            "journal\nplan.json\nprovenance.bin\nsamples.csv\n",
        ),
    ] {
        let Some(output) = run_mounted(&study, size) else {
            return skipped("full_file_system_exits_6_and_leaves_no_partial_file");
        };
        assert_eq!(output.status.code(), Some(6), "its own exit code");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("error: --out out: {what}\n"));
        // A file that does not fit leaves no part of itself.
        assert_eq!(String::from_utf8_lossy(&output.stdout), files);
    }
}

/// Every command that writes a file exits with the code of a full disk and leaves no partial file.
#[test]
fn full_file_system_has_its_own_exit_code_in_every_command() {
    let study = Study::of_tissue(64);
    study.write("p.json", r#"{"names": ["a", "b"], "bounds": [[0, 1], [0, 1]]}"#);
    let sample = ["sample", "p.json", "--method", "correlation", "--samples", "2000", "--out"];
    pleach(study.folder(), &[&sample[..], &["s.csv"]].concat()).done();
    let ys: String = (0..2000).map(|row| format!("{}\n", row % 7)).collect();
    study.write("y.txt", ys);
    let analyze =
        ["analyze", "p.json", "--method", "correlation", "--samples", "s.csv", "--responses", "y.txt"];
    let commands: [&[&str]; 7] = [
        &[&sample[..], &["out/s.csv"]].concat(),
        &[&sample[..], &["out/s.parquet"]].concat(),
        &[&analyze[..], &["--plot", "out/plots"]].concat(),
        &["tissue", "--out", "out", "--size", "512"],
        &["segment", "tiles/tissue_01.png", "--out", "out/m.png", "--regions", "out/regions"],
        &["man", "--out", "out/man"],
        &["run", "study.toml", "--quiet", "--out", "out/results"],
    ];
    for command in commands {
        let Some(output) = mounted(&study, "size=8k", command) else {
            return skipped("full_file_system_has_its_own_exit_code_in_every_command");
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{command:?}: {said}");
        assert!(said.starts_with("error: --") || said.starts_with("error: out/"), "{command:?}: {said}");
        assert!(said.contains("No space left on device") && said.lines().count() == 1, "{command:?}: {said}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains(".part"), "{command:?}: {output:?}");
    }
}
