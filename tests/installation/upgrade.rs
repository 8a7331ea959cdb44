//! Files of releases: `pleach upgrade-check` lists their formats, and each reader of this version reads them.
//!
//! A change of a format without a new number fails here. `scripts/write-fixtures` writes the files of a release.

use crate::pleach::pleach;
use pleach_execution::cost_history;
use pleach_provision::ProvisionJournal;
use pleach_results::{checksum, journal};
use pleach_server::service::state::record::{self, Record};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const FOLDERS: [&str; 4] = ["state", "cache", "tier", "results"];

/// Folders of all releases.
fn releases() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let entries = fs::read_dir(fixtures).expect("fixtures").map(|entry| entry.expect("an entry").path());
    let is_release =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("release-"));
    let mut found: Vec<PathBuf> = entries.filter(is_release).collect();
    found.sort_unstable();
    assert!(!found.is_empty(), "scripts/write-fixtures writes the first one");
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let to = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy(&entry, &to);
        } else {
            fs::copy(&entry, &to).expect("copied");
        }
    }
}

/// A copy of a release's files, since readers may write.
fn copied(release: &Path) -> TempDir {
    let place = tempfile::tempdir().expect("a folder");
    copy(release, place.path());
    place
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn json_of(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&pleach(folder, args).done()).expect("one JSON document")
}

#[test]
fn files_of_releases_are_read() {
    for release in releases() {
        let place = copied(&release);
        let folder = place.path();
        let name = release.display();
        let said = pleach(folder, &[&["upgrade-check"], &FOLDERS[..]].concat()).done();
        assert!(said.lines().last().is_some_and(|line| line.contains("errors: 0")), "{name}: {said}");
        let said = pleach(folder, &["doctor", "--state", "state"]);
        assert!(said.stdout.lines().all(|line| !line.starts_with("error: ")), "{name}: {said:?}");
        let run = document(&folder.join("results/run.json"));
        let explained = json_of(folder, &["explain", "results", "--json"]);
        assert_eq!(explained["tasks_executed"], run["tasks_executed"], "{name}: {explained:#}");
        let found = json_of(folder, &["cache", "search", "cache", "--json"]);
        let entries = found.as_array().expect("a list");
        assert!(
            entries.len() > 20 && entries.iter().all(|entry| entry["operation"].is_string()),
            "{name}: {found:#}"
        );
        let verified = json_of(folder, &["storage", "verify", "--lustre", "tier", "--json"]);
        assert!(verified[0]["intact"].as_u64() > Some(10), "{name}: {verified:#}");
        assert_eq!(verified[0]["corrupt"], json!([]), "{name}");
        let state = folder.join("state");
        assert!(cost_history::verify(&state).expect("costs").is_some(), "{name}");
        let workers = fs::read(state.join("workers.journal")).expect("a journal");
        let workers = ProvisionJournal::parse(&workers).expect("a journal");
        assert_eq!((workers.workers().len(), workers.corrupt_lines), (1, 0), "{name}");
        for study in ["1", "2"] {
            let found = record::read_submission(&state.join("studies").join(study));
            assert!(matches!(found, Record::Sound(_)), "{name}: study {study}: {found:?}");
        }
        assert!(matches!(record::read_ended(&state.join("studies/1")), Record::Sound(_)), "{name}");
        let bytes = fs::read(state.join("studies/2/results/journal")).expect("a journal");
        let header = journal::read_header(&bytes[..]).expect("read").expect("a header");
        // A header agrees with itself, whichever version wrote it.
        let read = journal::read(&bytes, &header).expect("a journal");
        assert!(read.known.len() >= 4 && read.known.iter().all(|known| !known.results.is_empty()), "{name}");
    }
}

/// The cache of this version spares every task, and gives the same responses.
#[test]
fn cache_of_this_version_is_used() {
    let release = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/fixtures/release-{}", env!("CARGO_PKG_VERSION")));
    if !release.exists() {
        // A version has files once it is released.
        return;
    }
    let place = copied(&release);
    let folder = place.path();
    pleach(folder, &["tissue", "--out", "tiles", "--size", "128", "--count", "1", "--seed", "1"]).done();
    let study = "[study]\nname = \"small\"\nworkflow = \"nuclei\"\nseed = 1\ndurability = \"all\"\n[input]\ntiles = [\"tiles/*.png\"]\n\
                 [method]\nkind = \"moat\"\ntrajectories = 1\nlevels = 20\n[response]\nmetric = \"dice\"\n";
    fs::write(folder.join("small.toml"), study).expect("written");
    let run = ["run", "small.toml", "--cache", "cache", "--out", "again", "--workers", "1", "--json"];
    let run = json_of(folder, &run);
    assert_eq!(run["tasks_executed"], 0, "{run:#}");
    let responses =
        |folder: &str| fs::read_to_string(place.path().join(folder).join("responses.csv")).expect("a file");
    assert_eq!(responses("again"), responses("results"));
}

/// Replaces the first occurrence of a text in a file.
fn edit(path: &Path, from: &str, to: &str) {
    let bytes = fs::read(path).expect("a file");
    let at = bytes.windows(from.len()).position(|part| part == from.as_bytes());
    let at = at.unwrap_or_else(|| panic!("{}: no {from}", path.display()));
    fs::write(path, [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()).expect("written");
}

/// Changes the content of a file with a checksum.
fn edit_checked(path: &Path, pointer: &str, value: Value) {
    let mut content = checksum::decode::<Value>(&fs::read(path).expect("a file")).expect("a record").value;
    let (parent, field) = pointer.rsplit_once('/').expect("a place");
    content.pointer_mut(parent).expect("a place")[field] = value;
    fs::write(path, checksum::encode(&content).expect("JSON")).expect("written");
}

/// Changes the first line of a journal and its checksum: the first 16 digits of a BLAKE3 hash.
fn edit_first_line(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a journal");
    let (line, rest) = text.split_once('\n').expect("a line");
    let (_, content) = line.split_once(' ').expect("a checksum");
    assert!(content.contains(from), "{content}");
    let content = content.replacen(from, to, 1);
    let sum = blake3::hash(content.as_bytes()).to_hex();
    fs::write(path, format!("{} {content}\n{rest}", &sum[..16])).expect("written");
}

#[test]
fn formats_of_later_versions_are_named_and_refused() {
    let releases = releases();
    let place = copied(releases.last().expect("a release"));
    let folder = place.path();
    edit_checked(&folder.join("state/manager.json"), "/format", json!(2));
    edit(&folder.join("state/workers.journal"), "pleach-provision-1", "pleach-provision-3");
    edit(&folder.join("state/costs"), "pleach-costs-1", "pleach-costs-2");
    edit_checked(&folder.join("state/studies/1/submission.json"), "/submission/version", json!(2));
    edit_checked(&folder.join("state/studies/2/submission.json"), "/submission/build", json!("0.0.9"));
    edit_first_line(&folder.join("state/studies/2/results/journal"), "\"journal\":1", "\"journal\":2");
    edit(&folder.join("cache/FORMAT"), "pleach cache 2", "pleach cache 3");
    edit(&folder.join("tier/FORMAT"), "pleach tier 2", "pleach tier 3");
    edit(&folder.join("results/run.json"), "\"format\": 1", "\"format\": 2");
    edit(&folder.join("results/provenance.bin"), "provenance 1", "provenance 2");
    let said = pleach(folder, &[&["upgrade-check"], &FOLDERS[..]].concat());
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (3, "warning: 8 formats are not read by this version\n"),
        "{said:?}"
    );
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        "error    state/manager.json: state directory format 2; this version reads 1",
        "error    state/workers.journal: \"pleach-provision-3\"; this version reads pleach-provision-2, pleach-provision-1",
        "warning  state/costs: \"pleach-costs-2\"; this version reads pleach-costs-1",
        "error    state/studies/1/submission.json: submission format 2; this version reads 1",
        &format!("warning  study 2: open, and submitted by pleach 0.0.9; this is pleach {version}"),
        "error    state/studies/2/results/journal: journal format 2; this version reads 1",
        "error    cache/FORMAT: \"pleach cache 3\"; this version reads pleach cache 2, pleach cache 1",
        "error    tier/FORMAT: \"pleach tier 3\"; this version reads pleach tier 2",
        &format!("error    results/run.json: results of pleach {version}, format 2; this version reads 1"),
        "error    results/provenance.bin: \"pleach provenance 2\"; this version reads pleach provenance 1",
        "         what to do: start the version of pleach that wrote it, or restore a copy of the time before the upgrade",
    ] {
        assert!(said.stdout.lines().any(|said| said == line), "{line}\n{}", said.stdout);
    }
    let listed: Value = {
        let said = pleach(folder, &["upgrade-check", "cache", "--json"]);
        serde_json::from_str(&said.stdout).expect("one JSON document")
    };
    assert_eq!(listed[1]["severity"], "error", "{listed:#}");
    // A manager leaves the directory as it is.
    pleach(folder, &["certs", "init", "--dir", "ca"]).done();
    pleach(folder, &["certs", "issue", "--dir", "ca", "--name", "m1", "--role", "manager"]).done();
    let before = fs::read(folder.join("state/manager.json")).expect("a file");
    let manager = [
        "manager",
        "--state",
        "state",
        "--certs",
        "ca/m1",
        "--listen",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
    ];
    let refused = pleach(folder, &manager);
    let expected = "state/manager.json: format 2; 1 is allowed: start the version of pleach that wrote it, or restore a copy \
                    of the time before";
    assert!(refused.code == 2 && refused.stderr.contains(expected), "{refused:?}");
    assert_eq!(fs::read(folder.join("state/manager.json")).expect("a file"), before);
}

#[test]
fn earlier_formats_and_other_folders_are_named() {
    let releases = releases();
    let place = copied(releases.last().expect("a release"));
    let folder = place.path();
    // Directories had no number before it was introduced, and results neither.
    let path = folder.join("state/manager.json");
    let mut content = checksum::decode::<Value>(&fs::read(&path).expect("a file")).expect("a record").value;
    content.as_object_mut().expect("fields").remove("format");
    fs::write(&path, checksum::encode(&content).expect("JSON")).expect("written");
    edit(&folder.join("results/run.json"), "  \"format\": 1,\n", "");
    edit(&folder.join("cache/FORMAT"), "pleach cache 2", "pleach cache 1");
    let said = pleach(folder, &["upgrade-check", "state", "results", "cache"]).done();
    assert!(said.contains("ok       state/manager.json: state directory format 1\n"), "{said}");
    assert!(said.contains(", format 1\n"), "{said}");
    let earlier = "note     cache/FORMAT: pleach cache 1, of an earlier version; this version reads it and writes pleach cache 2\n";
    assert!(said.contains(earlier), "{said}");
    fs::create_dir(folder.join("other")).expect("a folder");
    for (name, why) in [
        ("other", "no state directory, task cache, spill tier or results; one of these folders is allowed"),
        ("missing", "No such file or directory (os error 2)"),
    ] {
        let refused = pleach(folder, &["upgrade-check", name]);
        assert_eq!((refused.code, refused.stderr), (2, format!("error: {name}: {why}\n")));
    }
}
