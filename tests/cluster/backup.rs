//! A manager that lost its state directory resumes from a copy. The copy was taken while the manager ran, as docs/operate.md
//! describes.

use crate::cluster::{self, Cluster, expected};
use std::fs;
use std::path::Path;

/// Copies a folder recursively, as `cp -a` does.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let copied = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy(&entry, &copied);
        } else {
            match fs::copy(&entry, &copied) {
                // A file that is being written has a temporary name, which may vanish during the copy.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => _ = copied.expect("a copy"),
            }
        }
    }
}

#[test]
fn state_copied_during_a_study_is_resumed() {
    let study = cluster::study(8, 192);
    let expected = expected(&study);
    let mut cluster = Cluster::of(&study, 2);
    let id = cluster.submit(&[]);
    cluster.wait_for_responses(&id, 1500);
    copy(&cluster.path("state"), &cluster.path("backup"));
    let copied = fs::metadata(cluster.path("backup").join(format!("studies/{id}/results/journal")));
    assert!(copied.expect("a journal").len() > 0);
    // The study proceeds beyond the state of the copy. Then everything but the copy is lost.
    let seen = cluster.journal_bytes(&id);
    cluster.wait_until(|cluster| cluster.has_ended(&id) || cluster.journal_bytes(&id) > seen);
    cluster.kill_manager();
    ["w0", "w1"].iter().for_each(|name| cluster.kill_worker(name));
    fs::remove_dir_all(cluster.path("state")).expect("a folder");
    fs::rename(cluster.path("backup"), cluster.path("state")).expect("a folder");
    cluster.start_manager();
    cluster.start_workers(2..4);
    assert_eq!(cluster.completed(&id), expected);
    cluster.nothing_is_left();
}
