//! Checks the user guide: its summary lists every chapter, its reference lists every command, and its examples equal
//! their files.

use super::super::root;
use super::links::markdown;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn summary_lists_every_chapter_once() {
    let book: toml::Table = text("book.toml").parse().expect("TOML");
    assert_eq!(book["book"]["src"].as_str(), Some("docs"));
    let docs = root().join("docs");
    let summary = text("docs/SUMMARY.md");
    let listed = summary.lines().filter_map(|line| line.trim_start().strip_prefix("- ["));
    let listed: Vec<PathBuf> = listed
        .filter_map(|rest| Some(rest.split_once("](")?.1.trim_end_matches(')')))
        .map(|target| docs.join(target))
        .collect();
    let unique: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(unique.len(), listed.len(), "a chapter is listed twice");
    let chapters: BTreeSet<PathBuf> =
        markdown(&docs).into_iter().filter(|path| !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(unique, chapters);
    for chapter in &chapters {
        let text = fs::read_to_string(chapter).expect("UTF-8");
        assert!(text.starts_with("# "), "{}: no title", chapter.display());
    }
}

#[test]
fn readme_has_at_most_120_lines() {
    assert!(text("README.md").lines().count() <= 120);
}

#[test]
fn reference_lists_every_command() {
    fn leaves(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let words = format!("{words} {}", below.get_name());
            if below.has_subcommands() {
                leaves(below, &words, found);
            }
            // A group with arguments of its own is a command too.
            if !below.has_subcommands() || below.get_positionals().next().is_some() {
                found.push(words);
            }
        }
    }
    let reference = text("docs/reference.md");
    let (_, commands) = reference.split_once("\n## Commands\n").expect("the section");
    let commands = commands.split("\n## ").next().expect("its end");
    let mut expected = Vec::new();
    leaves(&crate::cli::grammar(), "pleach", &mut expected);
    let missing: Vec<&String> =
        expected.iter().filter(|command| !commands.contains(&format!("`{command}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The reference and the chapter on methods list every kind of method. The chapter on studies lists every metric of the
/// built-in workflow.
#[test]
fn reference_lists_the_method_kinds_and_metrics() {
    let (reference, methods, studies) =
        (text("docs/reference.md"), text("docs/methods.md"), text("docs/studies.md"));
    for kind in ["moat", "vbd", "fast", "correlation", "regression", "pawn", "delta", "rbd-fast", "table"] {
        assert!(reference.contains(&format!("`\"{kind}\"`")), "{kind}");
        assert!(methods.contains(&format!("| `{kind}` |")), "{kind}");
    }
    let registry = pleach_study::builtin::registry();
    let nuclei = pleach_study::builtin::workflow("nuclei", &registry).expect("built in").expect("valid");
    for (.., metric) in nuclei.metrics() {
        assert!(studies.contains(&format!("`{metric}`")), "{metric}");
    }
}

#[test]
fn files_in_the_guide_are_those_of_the_example() {
    let chapter = text("docs/own-workflow.md");
    for name in ["workflow.json", "darkness.json"] {
        let file = text(&format!("examples/own-operation/{name}"));
        assert!(chapter.contains(&format!("```json\n{file}```")), "{name}");
    }
    let program = text("examples/own-operation/src/main.rs");
    let (program, _) = program.split_once("\n#[cfg(test)]").expect("tests follow the program");
    assert!(chapter.contains(&format!("```rust,no_run\n{program}```")), "main.rs");
    let study: String =
        text("examples/own-operation/study.toml").lines().map(|line| format!("   {line}\n")).collect();
    assert!(chapter.contains(&study), "study.toml");
}
