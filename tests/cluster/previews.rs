//! Images of task outputs among the results of a cluster.

use crate::cluster::{self, Cluster};
use crate::pleach::pleach;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const TASKS: [&str; 4] = ["--preview", "t3", "--preview", "normalize"];

fn images(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("previews").map(|entry| entry.expect("an entry"));
    let image = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("an image"))
    };
    entries.map(image).collect()
}

#[test]
fn previews_equal_those_of_one_machine() {
    let study = cluster::study(2, 96);
    let run = ["run", "study.toml", "--out", "alone", "--quiet"];
    pleach(study.folder(), &[&run[..], &TASKS].concat()).done();
    let cluster = Cluster::of(&study, 2);
    let id = cluster.submit(&TASKS);
    cluster.completed(&id);
    let (found, expected) =
        (images(&cluster.path(&format!("out-{id}/previews"))), images(&study.path("alone/previews")));
    assert!(!expected.is_empty());
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(found == expected, "images differ");
    // Without the option there are none.
    let id = cluster.submit(&[]);
    cluster.completed(&id);
    assert!(!cluster.path(&format!("out-{id}/previews")).exists());
    let refused = cluster.ask(&["submit", "study.toml", "--preview", "compare"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--preview compare: the task writes metrics (table)"), "{refused:?}");
    cluster.nothing_is_left();
}
