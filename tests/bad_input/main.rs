//! Invalid input: a command prints one line with the place and the allowed values, exits with its code, and leaves no
//! partial files.

mod annotations;
mod arguments;
#[path = "../support/data.rs"]
mod data;
mod descriptors;
mod images;
#[path = "../support/images.rs"]
mod images_made;
mod imports;
#[path = "../support/model.rs"]
mod model;
mod out;
#[path = "../support/pleach.rs"]
mod pleach;
#[path = "../support/pyramid.rs"]
mod pyramid;
#[path = "../support/results.rs"]
mod results;
mod single_runs;
mod slides;
#[path = "../support/study.rs"]
mod study;
mod study_file;
mod table;
#[path = "../support/tables.rs"]
mod tables;
mod tiles;
mod volumes;

use pleach::pleach;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The parameters of the reference application, as messages list them.
const KNOWN: &str = "B, G, R, T1, T2, MorphRecon, G1, FillHoles, minSize, maxSize, G2, minSizePl, Watershed, \
                     minSizeSeg, maxSizeSeg";

/// Everything below a folder, with file contents. A refused command must leave it unchanged.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(snapshot(&path));
            all.insert(path, None);
        } else {
            all.insert(path.clone(), Some(fs::read(&path).expect("a file")));
        }
    }
    all
}

/// Asserts that the command exits with 2, prints nothing, writes nothing, and reports exactly `error: EXPECTED` in one line.
#[track_caller]
fn refused(folder: &Path, args: &[&str], expected: &str) {
    refused_with(folder, args, |line| line == expected, expected);
}

/// As [`refused`], for a line that begins so and ends with a library's message.
#[track_caller]
fn refused_as(folder: &Path, args: &[&str], beginning: &str) {
    refused_with(folder, args, |line| line.starts_with(beginning) && line.len() > beginning.len(), beginning);
}

#[track_caller]
fn refused_with(folder: &Path, args: &[&str], right: impl Fn(&str) -> bool, expected: &str) {
    let before = snapshot(folder);
    let answer = pleach(folder, args);
    let said = answer.stderr.strip_prefix("error: ").and_then(|said| said.strip_suffix('\n'));
    let said = said.unwrap_or_else(|| panic!("{args:?}: {answer:?}"));
    assert!(right(said), "{args:?} said:\n{said}\nbut wanted was:\n{expected}");
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(snapshot(folder) == before, "{args:?} left something behind");
}
