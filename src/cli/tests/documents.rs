//! Checks calls of pleach in documents. The grammar parses every call in a code block completely, and every call in a
//! sentence as far as it goes.

mod guide;
mod links;

use super::{Cli, root};
use crate::cli::manual;
use clap::Parser;
use clap::error::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

/// Commands that take the manager's address from the environment. Documents set the variables earlier.
const CLIENTS: [&str; 7] = ["submit", "status", "watch", "results", "cancel", "forget", "drain"];

/// Files and folders of documents.
const DOCUMENTS: [&str; 10] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs",
    "examples",
    "deploy/pbs",
    "deploy/slurm",
    "deploy/systemd",
    "helm/pleach/README.md",
    "helm/pleach/templates/NOTES.txt",
];

fn documents() -> Vec<PathBuf> {
    fn gather(path: PathBuf, found: &mut Vec<PathBuf>) {
        if !path.is_dir() {
            found.push(path);
            return;
        }
        let entries = fs::read_dir(&path).expect("a folder");
        entries.for_each(|entry| gather(entry.expect("an entry").path(), found));
    }
    let mut found = Vec::new();
    DOCUMENTS.iter().for_each(|path| gather(root().join(path), &mut found));
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md" || ending == "txt"));
    found.sort();
    found
}

/// Returns the calls in code blocks, and those in sentences. In a text without code blocks every indented line counts
/// as code.
fn calls(path: &Path) -> (Vec<String>, Vec<String>) {
    let text = fs::read_to_string(path).expect("UTF-8");
    let has_blocks = path.extension().is_some_and(|ending| ending == "md");
    let (mut is_block, mut lines, mut prose) = (false, Vec::new(), String::new());
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if is_block || (!has_blocks && line.starts_with("  ")) {
            lines.push(line);
        } else {
            prose = format!("{prose}{line} ");
        }
    }
    let blocks = lines.join("\n").replace("\\\n", " ");
    let blocks = blocks.lines().flat_map(calls_of_line).collect();
    let inline = prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("pleach "));
    (blocks, inline.map(str::to_owned).collect())
}

/// Returns the calls in a line of shell. Each extends to the next operator.
fn calls_of_line(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap_or_default();
    let parts = line.split([';', '|', '&', '>', '(', ')']).map(str::trim);
    // `runuser` or variable assignments may precede the call.
    let call = |part: &str| {
        // The output of `pleach --version` is not a call.
        let is_version = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
        let from = if part.starts_with("pleach ") { 0 } else { part.rfind(" pleach ")? + 1 };
        let before = part[..from].split_whitespace().next();
        let leads = before.is_none_or(|word| ["runuser", "nohup", "$"].contains(&word) || word.contains('='));
        let rest = part[from..].strip_prefix("pleach ")?;
        (leads && !is_version(rest)).then(|| part[from..].to_owned())
    };
    parts.filter_map(call).collect()
}

/// Returns the grammar's error message for a call. Omitted arguments (`…`) are allowed.
fn complaint(call: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for word in call.split_whitespace() {
        words.push(word.trim_matches(['[', ']', '"', '\'']).to_owned());
    }
    let leaves_out = words.iter().any(|word| word == "…");
    words.retain(|word| word != "…");
    if words.get(1).is_some_and(|name| CLIENTS.contains(&name.as_str())) {
        words.extend(["--manager", "https://m:7118", "--certs", "me"].map(str::to_owned));
    }
    let error = Cli::try_parse_from(words).err()?;
    let is_left_out = leaves_out && error.kind() == ErrorKind::MissingRequiredArgument;
    // clap reports a request for help as an error.
    let is_fine = is_left_out || error.kind() == ErrorKind::DisplayHelp;
    (!is_fine).then(|| error.to_string())
}

/// Returns the grammar's error message for a call in a sentence, which may omit arguments and use placeholders for
/// values.
fn complaint_in_prose(call: &str) -> Option<String> {
    // A list of alternatives is not a call.
    if call.contains('|') {
        return None;
    }
    let stands_for = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let has_places = call.split([' ', '=', '.']).any(stands_for);
    let words = call.split_whitespace().map(|word| word.trim_matches(['[', ']'])).filter(|word| *word != "…");
    let error = Cli::try_parse_from(words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        // The sentence names the option without a value.
        ErrorKind::InvalidValue => has_places || error.to_string().contains("a value is required"),
        ErrorKind::ValueValidation => has_places,
        _ => false,
    };
    (!is_fine).then(|| error.to_string())
}

#[test]
fn calls_in_documents_are_parsed_by_the_grammar() {
    let (mut in_blocks, mut in_prose, mut complaints) = (0, 0, Vec::new());
    for path in documents() {
        let (blocks, prose) = calls(&path);
        in_blocks += blocks.len();
        in_prose += prose.len();
        let found = blocks.iter().filter_map(|call| Some((call, complaint(call)?)));
        let found = found.chain(prose.iter().filter_map(|call| Some((call, complaint_in_prose(call)?))));
        complaints.extend(found.map(|(call, what)| format!("{}: {call}\n{what}", path.display())));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(in_blocks > 70 && in_prose > 70, "{in_blocks} in blocks, {in_prose} in sentences");
}

/// Calls with wrong options or values are found, and calls with omissions pass, so the test above can fail.
#[test]
fn unknown_calls_in_documents_are_detected() {
    let of = |line: &str| calls_of_line(line).join(", ");
    assert_eq!(of("(umask 077; pleach certs token --dir a > b)   # pleach x"), "pleach certs token --dir a");
    assert_eq!(of("runuser -u pleach -- pleach certs init --dir a && id"), "pleach certs init --dir a");
    assert_eq!(of("install -d -o pleach -g pleach certs"), "");
    for (call, is_wrong) in [
        ("pleach certs token --dir a --ttl 1h --single-use", false),
        ("pleach certs token --dir a --ttl 1x", true),
        ("pleach certs token --dirs a", true),
        ("pleach worker … --metrics 0.0.0.0:7120", false),
        ("pleach worker --metrics 0.0.0.0:7120", true),
        ("pleach status [ID] [--json]", false),
        ("pleach help", false),
        ("pleach help runs", true),
    ] {
        assert_eq!(complaint(call).is_some(), is_wrong, "{call}: {:?}", complaint(call));
    }
    for (call, is_wrong) in [
        ("pleach certs token", false),
        ("pleach certs tokens", true),
        ("pleach manager --pools FILE", false),
        ("pleach manager --pool FILE", true),
        ("pleach run --memory SIZE", false),
        ("pleach run --memory much", true),
    ] {
        assert_eq!(complaint_in_prose(call).is_some(), is_wrong, "{call}: {:?}", complaint_in_prose(call));
    }
}

/// Every manual page has examples, and each example is a valid call of that command.
#[test]
fn manual_examples_are_parsed_by_the_grammar() {
    fn leaves(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let words = format!("{words} {}", below.get_name()).trim().to_owned();
            if below.has_subcommands() {
                leaves(below, &words, found);
            }
            // A group with arguments of its own is a command too.
            if !below.has_subcommands() || below.get_positionals().next().is_some() {
                found.push(words);
            }
        }
    }
    let grammar = crate::cli::grammar();
    let mut commands = vec![String::new()];
    leaves(&grammar, "", &mut commands);
    for command in &commands {
        let examples = manual::examples(command);
        assert!(!examples.is_empty(), "pleach {command} has no example");
        for (call, meaning) in examples {
            assert!(call.starts_with(format!("pleach {command}").trim_end()), "{command}: {call}");
            assert_eq!(calls_of_line(call).iter().find_map(|call| complaint(call)), None, "{call}");
            assert_eq!(calls_of_line(call).len(), 1, "{call}");
            assert!(meaning.ends_with('.'), "{call}: {meaning}");
        }
    }
    let unknown: Vec<&str> = manual::EXAMPLES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !commands.contains(&(*name).to_owned()))
        .collect();
    assert_eq!(unknown, [""; 0]);
    assert!(manual::examples("storage").len() >= 4, "a group has those of its members");
}

/// The manual and the reference have the same table of exit statuses.
#[test]
fn reference_lists_the_exit_statuses_of_the_manual() {
    let text = fs::read_to_string(root().join("docs/reference.md")).expect("UTF-8");
    let rows: Vec<(u8, String)> = text
        .lines()
        .filter_map(|line| {
            let (status, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
            Some((status.parse().ok()?, meaning.to_owned()))
        })
        .collect();
    let expected: Vec<(u8, String)> =
        manual::EXIT_STATUSES.iter().map(|(status, meaning)| (*status, (*meaning).to_owned())).collect();
    assert_eq!(rows, expected);
}

/// Each environment variable for users is in the manual of the commands that read it.
#[test]
fn manual_lists_environment_variables() {
    let mut grammar = crate::cli::grammar();
    grammar.build();
    let of = |command: &str| -> Vec<String> {
        let found = grammar.find_subcommand(command).expect("a command");
        manual::variables(found).into_iter().map(|(variable, _)| variable).collect()
    };
    let node = ["PLEACH_PYTHON", "PLEACH_LOG"];
    for command in CLIENTS {
        let mut expected = vec!["PLEACH_MANAGER", "PLEACH_CERTS", "PLEACH_TOKEN"];
        if command == "submit" {
            expected.insert(0, "PLEACH_PYTHON");
        }
        assert_eq!(of(command), expected, "{command}");
    }
    assert_eq!(of("run"), ["PLEACH_PYTHON", "PLEACH_ACCELERATORS"]);
    assert_eq!(of("manager"), node);
    assert_eq!(of("worker"), ["PLEACH_ACCELERATORS", node[0], node[1]]);
}
