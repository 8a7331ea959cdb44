//! Checks links in documents: every relative link leads to a file or folder, every anchor to a heading, and every path
//! in a code span exists.

use super::super::root;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Files and folders of Markdown documents.
const LINKED: [&str; 11] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "deploy",
    "helm",
    "examples",
    "benches",
    "crates/reuse/src",
    "tests/fixtures",
];

/// Folders of the repository. Paths in code spans that begin with one of them are checked.
const FOLDERS: [&str; 11] = [
    "src/",
    "crates/",
    "actors/",
    "tests/",
    "docs/",
    "deploy/",
    "helm/",
    "grafana/",
    "scripts/",
    "benches/",
    "examples/",
];

/// Returns all Markdown files below a path.
pub(super) fn markdown(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        let is_markdown = path.extension().is_some_and(|ending| ending == "md");
        return if is_markdown { vec![path.to_owned()] } else { Vec::new() };
    }
    let entries = fs::read_dir(path).expect("a folder");
    let mut found: Vec<PathBuf> =
        entries.flat_map(|entry| markdown(&entry.expect("an entry").path())).collect();
    found.sort();
    found
}

/// Returns all files below a path with one of the extensions. Skips build folders.
fn files(path: &Path, endings: &[&str]) -> Vec<PathBuf> {
    if !path.is_dir() {
        let has_ending =
            path.extension().is_some_and(|ending| endings.iter().any(|allowed| *allowed == ending));
        return if has_ending { vec![path.to_owned()] } else { Vec::new() };
    }
    if path.file_name().is_some_and(|name| name == "target" || name == "node_modules") {
        return Vec::new();
    }
    let entries = fs::read_dir(path).expect("a folder");
    entries.flat_map(|entry| files(&entry.expect("an entry").path(), endings)).collect()
}

/// Returns the text outside code blocks.
fn prose(text: &str) -> String {
    let mut is_block = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Replaces code spans, whose brackets are not links.
fn without_code(prose: &str) -> String {
    prose.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

/// Returns the targets of all links and images in a text.
fn targets(text: &str) -> Vec<String> {
    let prose = without_code(&prose(text));
    let after = prose.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.trim().to_owned())).collect()
}

/// Returns the anchor that GitHub and mdBook generate for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// Returns the anchors of a document. Repeated headings get numbered anchors.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' '))
        .map(|heading| {
            let anchor = anchor(heading);
            let before = seen.entry(anchor.clone()).or_default();
            *before += 1;
            if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
        })
        .collect()
}

/// Normalizes `a/b/../c` to `a/c`, so that a link out of the repository is detected.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            other => plain.push(other),
        }
    }
    plain
}

/// Returns the defect of a link in a document, or `None` if it resolves. External addresses are not checked.
fn broken(document: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let linked = match path {
        "" => document.to_owned(),
        path => plain(&document.parent()?.join(path)),
    };
    if !linked.starts_with(root()) || !linked.exists() {
        return Some(format!("{target}: no such file"));
    }
    let anchor = anchor?;
    let read = || fs::read_to_string(&linked).unwrap_or_default();
    let found = if path.is_empty() { anchors(text) } else { anchors(&read()) };
    (!found.contains(anchor)).then(|| format!("{target}: no such heading; there are {found:?}"))
}

/// Returns paths in code spans that do not exist. Skips patterns and lists of files.
fn missing_paths(text: &str) -> Vec<String> {
    let prose = prose(text);
    let spans = prose.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| FOLDERS.iter().any(|folder| span.starts_with(folder)));
    let plain = |span: &&str| !span.contains(|letter: char| " *{}<>…()\n:".contains(letter));
    let missing = paths.filter(plain).filter(|path| !root().join(path).exists());
    missing.map(|path| format!("`{path}`: no such file")).collect()
}

/// Returns the defects of all links in a document.
fn defects(document: &Path, text: &str) -> Vec<String> {
    targets(text).iter().filter_map(|target| broken(document, text, target)).collect()
}

#[test]
fn relative_links_and_anchors_resolve() {
    let (mut links, mut found) = (0, Vec::new());
    for document in LINKED.iter().flat_map(|path| markdown(&root().join(path))) {
        let text = fs::read_to_string(&document).expect("UTF-8");
        links += targets(&text).len();
        let of_document = defects(&document, &text);
        found.extend(of_document.into_iter().map(|defect| format!("{}: {defect}", document.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(links > 150, "{links} links");
}

#[test]
fn paths_in_the_guide_for_developers_exist() {
    let mut found = Vec::new();
    for document in ["CONTRIBUTING.md", "ARCHITECTURE.md", "README.md", "docs/own-workflow.md"] {
        let text = fs::read_to_string(root().join(document)).expect("UTF-8");
        found.extend(missing_paths(&text).into_iter().map(|defect| format!("{document}: {defect}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the names of types and constants in code spans, such as `TypedOperation`, `StrategyName::ALL` or `FORMAT`.
fn code_names(text: &str) -> Vec<String> {
    let prose = prose(text);
    let spans = prose.split('`').skip(1).step_by(2);
    let is_name = |name: &&str| {
        name.len() > 3
            && name.starts_with(|letter: char| letter.is_ascii_uppercase())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && !name.starts_with("PLEACH_")
    };
    spans.flat_map(|span| span.split("::")).filter(is_name).map(str::to_owned).collect()
}

/// Types and constants that the guide for developers names are declared in the sources.
#[test]
fn names_in_the_guide_for_developers_exist() {
    // Terms that are no declarations of this repository.
    const OTHERS: [&str; 4] = ["SKIPPED", "README", "RUST_BACKTRACE", "CARGO_TARGET_DIR"];
    let mut words = HashSet::new();
    for file in
        ["src", "crates", "actors", "tests"].iter().flat_map(|folder| files(&root().join(folder), &["rs"]))
    {
        // This file has the examples below.
        if file.ends_with("documents/links.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("UTF-8");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        words.extend(code.flat_map(|line| line.split(move |letter| !is_part(letter))).map(str::to_owned));
    }
    let mut missing = Vec::new();
    for document in ["CONTRIBUTING.md", "ARCHITECTURE.md"] {
        let text = fs::read_to_string(root().join(document)).expect("UTF-8");
        let names = code_names(&text).into_iter();
        let unknown = names.filter(|name| !words.contains(name) && !OTHERS.contains(&&**name));
        missing.extend(unknown.map(|name| format!("{document}: `{name}` is not in the sources")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert_eq!(code_names("`TypedOperation` `A::ALL` `no` `PLEACH_LOG` x"), ["TypedOperation"]);
}

/// Every document that sources, alerts, services and messages refer to exists, with the heading of the reference.
#[test]
fn documents_that_code_refers_to_exist() {
    let mut sources = Vec::new();
    for folder in ["src", "crates", "actors", "deploy", "helm", "tests"] {
        sources.extend(files(&root().join(folder), &["rs", "yml", "yaml", "toml", "txt"]));
    }
    let (mut references, mut broken) = (0, Vec::new());
    for source in sources.iter().filter(|source| !source.ends_with("documents/links.rs")) {
        let text = String::from_utf8_lossy(&fs::read(source).expect("a file")).into_owned();
        for (at, _) in text.match_indices("docs/") {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || "/.-_#".contains(letter);
            let reference: String = text[at..].chars().take_while(|letter| is_part(*letter)).collect();
            let Some((path, anchor)) = reference.split_once(".md") else { continue };
            let document = root().join(format!("{path}.md"));
            references += 1;
            // Code may append an anchor at run time.
            let anchor = anchor.strip_prefix('#').map(|anchor| anchor.trim_end_matches('.'));
            let anchor = anchor.filter(|anchor| !anchor.is_empty());
            let is_there = fs::read_to_string(&document)
                .is_ok_and(|text| anchor.is_none_or(|anchor| anchors(&text).contains(anchor)));
            if !is_there {
                broken.push(format!("{}: {reference}", source.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(references > 40, "{references} references");
}

/// Broken links, anchors and paths are found, so the tests above can fail.
#[test]
fn broken_links_are_found() {
    let readme = root().join("README.md");
    let text = "# A b\n## C: d?\n## C, d\n```\n[x](no.md) # E\n```\n`[y](no.md)` [z](";
    assert_eq!(anchors(text), ["a-b", "c-d", "c-d-1"].map(str::to_owned).into());
    for (target, is_broken) in [
        ("#a-b", false),
        ("#c-d-1", false),
        ("#e", true),
        ("docs/studies.md", false),
        ("docs/studies.md#choose-metrics", false),
        ("docs/studies.md#choose-nothing", true),
        ("docs/none.md", true),
        ("docs/../README.md", false),
        ("../outside.md", true),
        ("https://rustup.rs", false),
    ] {
        let found = defects(&readme, &format!("{text}{target})"));
        assert_eq!(found.len(), usize::from(is_broken), "{target}: {found:?}");
    }
    assert_eq!(missing_paths("`src/main.rs` `src/none.rs` `src/*.rs`"), ["`src/none.rs`: no such file"]);
}
