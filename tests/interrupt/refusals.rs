//! Runs that cannot be resumed are refused with the reason and left unchanged.

use crate::pleach::{Answer, pleach};
use crate::results::text;
use crate::study::Study;
use crate::{interrupt, outputs, signal, start, wait_for_journal};
use std::fs;

/// A study interrupted after some responses. The folder `out` holds its journal.
fn interrupted() -> Study {
    let study = Study::of_tissue(256);
    assert_eq!(interrupt(&study, 2_000, "INT").code(), Some(5));
    study
}

fn resume(study: &Study) -> Answer {
    pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume", "--quiet"])
}

/// Asserts a refusal with these words and an unchanged journal.
fn refused(study: &Study, answer: &Answer, journal: &str, words: &[&str]) {
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    for word in ["--out out"].iter().chain(words) {
        assert!(answer.stderr.contains(word), "{word} is not in {}", answer.stderr);
    }
    assert_eq!(text(&study.path("out/journal")), journal);
}

#[test]
fn a_changed_study_is_not_continued() {
    let study = interrupted();
    let journal = text(&study.path("out/journal"));
    for (edit, part) in [
        (("seed = 500", "seed = 501"), "what changed: parameter sets, seed;"),
        (("trajectories = 2", "trajectories = 3"), "what changed: method, parameter sets;"),
        (("metric = \"dice\"", "metric = \"jaccard\""), "what changed: metric;"),
        (("name = \"nuclei-moat\"", "name = \"other\""), "what changed: name;"),
        (("normalize = true", "normalize = false"), "what changed: workflow;"),
    ] {
        study.edit(&[edit]);
        refused(&study, &resume(&study), &journal, &[part, "a new folder is allowed"]);
    }
    study.edit(&[]);
    let tile =
        fs::read_dir(study.path("tiles")).expect("tiles").filter_map(Result::ok).map(|entry| entry.path());
    let tile = tile.filter(|path| !path.to_string_lossy().contains("_labels")).min().expect("a tile");
    let content = fs::read(&tile).expect("read");
    let other = study.path("other.png");
    pleach(study.folder(), &["tissue", "--out", "others", "--size", "128", "--count", "1", "--seed", "9"])
        .done();
    let replacement = fs::read_dir(study.path("others")).expect("tiles").filter_map(Result::ok);
    let replacement =
        replacement.map(|e| e.path()).filter(|p| !p.to_string_lossy().contains("_labels")).min();
    fs::copy(replacement.expect("a tile"), &other).expect("copied");
    fs::copy(&other, &tile).expect("copied");
    refused(&study, &resume(&study), &journal, &["what changed: image files;"]);
    fs::write(&tile, content).expect("written");
    resume(&study).done();
}

#[test]
fn interrupted_study_is_not_overwritten_without_an_option() {
    let study = interrupted();
    let journal = text(&study.path("out/journal"));
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    refused(
        &study,
        &answer,
        &journal,
        &["holds an interrupted run of this study with", "--resume continues it"],
    );
}

#[test]
fn another_versions_journal_and_a_damaged_one_are_refused() {
    let study = interrupted();
    let journal = text(&study.path("out/journal"));
    let (first, rest) = journal.split_once('\n').expect("lines");

    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(first.contains(&version));
    let header = first.split_once(' ').expect("a checksum").1.replace(&version, "\"version\":\"0.0.9\"");
    let sum = blake3::hash(header.as_bytes()).to_hex()[..16].to_owned();
    let older = format!("{sum} {header}\n{rest}");
    fs::write(study.path("out/journal"), &older).expect("written");
    refused(
        &study,
        &resume(&study),
        &older,
        &["pleach 0.0.9 wrote it", "only the same version may continue it"],
    );

    for damaged in [journal.replacen("seed", "sead", 1), "\u{0}\u{0}\n".to_owned(), String::new()] {
        fs::write(study.path("out/journal"), &damaged).expect("written");
        refused(&study, &resume(&study), &damaged, &["its first line is damaged"]);
    }
}

#[test]
fn corrupt_journal_line_costs_the_lines_after_it() {
    let study = interrupted();
    pleach(study.folder(), &["run", "study.toml", "--out", "whole", "--quiet"]).done();
    let journal = text(&study.path("out/journal"));
    let lines: Vec<&str> = journal.split_inclusive('\n').collect();
    assert!(lines.len() > 6, "{journal}");
    let damaged =
        lines[..4].concat() + &lines[4].replacen("evaluation", "evaluatian", 1) + &lines[5..].concat();
    fs::write(study.path("out/journal"), damaged).expect("written");
    let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]).done();
    assert!(printed.contains("resumed: 3 responses are known"), "{printed}");
    let cut: usize = lines[4..].iter().map(|line| line.len()).sum();
    assert!(
        printed.contains(&format!("the last {cut} bytes of the journal were incomplete or corrupt")),
        "{printed}"
    );
    assert_eq!(outputs(&study.path("out")), outputs(&study.path("whole")));
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let study = Study::of_tissue(256);
    let mut child = start(&study, &["--workers=1"]);
    assert!(wait_for_journal(&study, &mut child, 1).is_none());
    let answer = resume(&study);
    signal(&child, "KILL");
    child.wait().expect("a child");
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("another pleach is at work there"), "{answer:?}");
}

#[test]
fn failed_runs_can_be_tried_again() {
    let study = Study::of_tissue(128);
    let tile =
        fs::read_dir(study.path("tiles")).expect("tiles").filter_map(Result::ok).map(|entry| entry.path());
    let tile = tile.filter(|path| !path.to_string_lossy().contains("_labels")).max().expect("a tile");
    let whole = fs::read(&tile).expect("read");
    // The header is intact, the pixels are truncated.
    fs::write(&tile, &whole[..whole.len() / 2]).expect("written");
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    let failed = text(&study.path("out/responses.csv"));
    let answer = resume(&study);
    assert_eq!(answer.code, 3, "what failed is tried again, and fails again: {answer:?}");
    assert_eq!(text(&study.path("out/responses.csv")), failed);
    // A repaired file has another digest, so the study differs from the interrupted one.
    fs::write(&tile, &whole).expect("written");
    let answer = resume(&study);
    assert!(answer.stderr.contains("what changed: image files;"), "{answer:?}");
}
