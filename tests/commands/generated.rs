//! Output generated from the command line's grammar: help, completions and manual pages.

use crate::pleach::pleach;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Every command with a help page, with groups before their members.
const COMMANDS: [&str; 55] = [
    "",
    "run",
    "plan",
    "explain",
    "sample",
    "analyze",
    "init",
    "schema",
    "classify",
    "workflow",
    "workflow check",
    "workflow show",
    "workflow new",
    "workflow import",
    "workflow stub",
    "instrument",
    "export",
    "apply",
    "segment",
    "region",
    "region show",
    "region export",
    "certs",
    "certs init",
    "certs issue",
    "certs token",
    "manager",
    "worker",
    "submit",
    "status",
    "watch",
    "results",
    "cancel",
    "drain",
    "forget",
    "query",
    "doctor",
    "upgrade-check",
    "pools",
    "replay",
    "simulate",
    "cluster",
    "cluster generate",
    "cache",
    "cache search",
    "cache stats",
    "storage",
    "storage bench",
    "storage gc",
    "storage ls",
    "storage verify",
    "tissue",
    "demo",
    "completions",
    "man",
];

fn here(args: &[&str]) -> String {
    pleach(Path::new("."), args).done()
}

fn help(command: &str) -> String {
    here(&command.split(' ').filter(|word| !word.is_empty()).chain(["--help"]).collect::<Vec<_>>())
}

/// The commands listed on a help page.
fn listed(page: &str) -> Vec<&str> {
    let list =
        page.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Names are indented by two blanks, continuation lines by more.
    list.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn help_fits_a_terminal_and_explains_every_option() {
    for command in COMMANDS {
        let page = help(command);
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
        let lines: Vec<&str> = page.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let entry = line.trim_start();
            if line.len() - entry.len() > 6 || !(entry.starts_with('-') || entry.starts_with('<')) {
                continue;
            }
            // The text follows two blanks or is on the next line.
            let beside = entry.split_once("  ").is_some_and(|(_, text)| !text.trim().is_empty());
            let below = lines.get(number + 1).is_some_and(|next| next.starts_with("          "));
            assert!(beside || below, "{command}: nothing is said about {entry}\n{page}");
        }
        // An option has at most one default.
        let mut defaults = 0;
        for line in &lines {
            let entry = line.trim_start();
            if line.len() - entry.len() <= 6 && entry.starts_with('-') {
                defaults = 0;
            }
            defaults += line.matches("[default: ").count();
            assert!(defaults <= 1, "{command}: two defaults: {line}\n{page}");
        }
        // Values of an option are explained as well.
        for value in lines.iter().filter_map(|line| line.trim_start().strip_prefix("- ")) {
            assert!(value.contains(": "), "{command}: nothing is said about {value}\n{page}");
        }
        for below in listed(&page).into_iter().filter(|name| *name != "help") {
            let whole = format!("{command} {below}");
            assert!(COMMANDS.contains(&whole.trim()), "{whole} is not looked at here");
        }
    }
}

/// Runs a program. Returns `None` if it is not installed.
#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
fn installed(test: &str, program: &str, args: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(args).output();
    if output.is_err() {
        eprintln!("SKIPPED {test}: {program} is not installed");
    }
    output.ok()
}

#[track_caller]
fn accepted(output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stderr.is_empty(), "{stderr}\n{stdout}");
    stdout.into_owned()
}

/// Completions of bash for these words, the last of them incomplete.
fn completed(script: &Path, words: &[&str]) -> BTreeSet<String> {
    let call = format!(
        "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; _pleach pleach '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = Command::new("bash").args(["--norc", "-c", &call]).output().expect("bash");
    accepted(&output).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn set<const N: usize>(words: [&str; N]) -> BTreeSet<String> {
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn bash_completion_lists_commands_and_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("pleach.bash");
    fs::write(&script, here(&["completions", "bash"])).expect("written");
    let path = script.to_str().expect("UTF-8");
    if installed("bash_completion_lists_commands_and_options", "bash", &["-n", path])
        .map(|output| accepted(&output))
        .is_none()
    {
        return;
    }
    assert_eq!(completed(&script, &["pleach", "pl"]), set(["plan"]));
    assert_eq!(completed(&script, &["pleach", "workflow", "ch"]), set(["check"]));
    assert_eq!(completed(&script, &["pleach", "run", "--max-bucket-"]), set(["--max-bucket-size"]));
    assert_eq!(completed(&script, &["pleach", "run", "study.toml", "--mem"]), set(["--memory"]));
    assert_eq!(completed(&script, &["pleach", "plan", "--strategy", "a"]), set(["all"]));
    assert!(completed(&script, &["pleach", "run", "--strategy", ""]).contains("rtma"));
    let commands = completed(&script, &["pleach", ""]);
    assert!(listed(&help("")).iter().all(|name| commands.contains(*name)), "{commands:?}");
}

#[test]
fn other_shells_accept_their_completions() {
    let folder = tempfile::tempdir().expect("a folder");
    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let script = folder.path().join(shell);
        let text = here(&["completions", shell]);
        assert!(
            COMMANDS.iter().flat_map(|command| command.split(' ')).all(|word| text.contains(word)),
            "{text}"
        );
        fs::write(&script, text).expect("written");
        if let Some(output) = installed(
            "other_shells_accept_their_completions",
            shell,
            &[check, script.to_str().expect("UTF-8")],
        ) {
            accepted(&output);
        }
    }
    for shell in ["elvish", "powershell"] {
        assert!(here(&["completions", shell]).contains("max-bucket-size"), "{shell}");
    }
    let wrong = pleach(folder.path(), &["completions", "csh"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("[possible values: bash, elvish, fish, powershell, zsh"), "{wrong:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = pleach(folder.path(), &["man", "--out", "a/man1"]).done();
    assert_eq!(said, "55 manual pages in a/man1\n");
    let names: BTreeSet<String> = fs::read_dir(folder.path().join("a/man1"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    let page = |command: &&str| format!("pleach {command}").trim_end().replace(' ', "-") + ".1";
    // The folder contains only the pages.
    assert_eq!(names, COMMANDS.iter().map(page).collect());
    for command in COMMANDS {
        let path = folder.path().join("a/man1").join(page(&command));
        let text = fs::read_to_string(&path).expect("a page");
        for part in [
            ".TH pleach",
            ".SH NAME",
            ".SH SYNOPSIS",
            ".SH DESCRIPTION",
            ".SH \"EXIT STATUS\"",
            ".SH \"EXAMPLES\"",
        ] {
            assert!(text.contains(part), "{command}: {part} is missing\n{text}");
        }
        let speaks = [
            "doctor",
            "explain",
            "query",
            "segment",
            "simulate",
            "submit",
            "status",
            "watch",
            "results",
            "cancel",
            "forget",
            "drain",
            "manager",
            "worker",
            "run",
            "plan",
            "sample",
            "analyze",
            "classify",
            "cluster",
            "workflow check",
            "workflow show",
            "instrument",
            "export",
            "apply",
        ];
        assert_eq!(text.contains(".SH \"ENVIRONMENT\""), speaks.contains(&command), "{command}: {text}");
        let path = path.to_str().expect("UTF-8");
        let Some(shown) =
            installed("every_command_has_a_manual_page", "groff", &["-man", "-Tutf8", "-ww", "-P-cbu", path])
        else {
            continue;
        };
        let shown = accepted(&shown);
        for option in help(command).lines().filter_map(|line| line.trim_start().strip_prefix("--")) {
            let option = option.split([' ', ',']).next().unwrap_or(option);
            assert!(shown.contains(option), "{command}: --{option} is missing\n{shown}");
        }
    }
    // A second call overwrites the pages. A file in place of the folder is refused.
    assert_eq!(pleach(folder.path(), &["man", "--out", "a/man1"]).done(), said);
    fs::write(folder.path().join("file"), "").expect("written");
    let refused = pleach(folder.path(), &["man", "--out", "file"]);
    assert_eq!(refused.code, 2);
    assert_eq!(refused.stderr, "error: --out file: cannot be written to: File exists (os error 17)\n");
}
