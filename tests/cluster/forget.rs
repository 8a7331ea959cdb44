//! Removal of studies from a manager: on request, by age, and by size.

use crate::cluster::{self, Cluster};
use crate::study::Study;
use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

/// Sets the age of a file.
fn age(file: &PathBuf, age: Duration) {
    let file = File::options().write(true).open(file).expect("a file");
    file.set_modified(SystemTime::now() - age).expect("a time");
}

/// Stores an input as a client would have sent it `sent` ago. Returns its path.
fn stored(cluster: &Cluster<'_>, content: &[u8], sent: Duration) -> PathBuf {
    let path = cluster.state.join("inputs").join(blake3::hash(content).to_hex().as_str());
    fs::write(&path, content).expect("written");
    age(&path, sent);
    path
}

/// Contents of a study's tiles.
fn tiles(study: &Study) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(study.path("tiles")).expect("tiles");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    // Each tile has a label map beside it, which the study does not read.
    let is_tile = |name: &str| name.ends_with(".png") && !name.ends_with("_labels.png");
    let tiles = paths.filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_tile));
    tiles.map(|path| fs::read(path).expect("a tile")).collect()
}

#[test]
fn forgotten_study_is_removed_with_unreferenced_inputs() {
    let study = cluster::study(1, 64);
    let mut cluster = Cluster::new(&study);
    let store = |content: &[u8]| stored(&cluster, content, HOUR / 2);
    let inputs: Vec<PathBuf> = tiles(&study).iter().map(|tile| store(tile)).collect();
    let [old, new] = [&b"old"[..], b"new"].map(store);
    let ids = [cluster.submit(&[]), cluster.submit(&[])];
    // Not before: the manager removes unreferenced files when it starts.
    inputs.iter().chain([&old]).for_each(|file| age(file, 2 * HOUR));
    let looked = cluster.call(&["doctor", "--state", "state"]).done();
    assert!(looked.contains("note: state: a manager is running; "), "{looked}");
    let running = cluster.ask(&["forget", &ids[0]]);
    assert_eq!(running.code, 4, "{running:?}");
    assert!(running.stderr.contains(&format!("cancel it first (pleach cancel {})", ids[0])), "{running:?}");
    assert!(cluster.state.join("studies").join(&ids[0]).exists());
    cluster.start_worker("w0", &[]);
    ids.iter().for_each(|id| _ = cluster.completed(id));
    let said = cluster.ask(&["forget", &ids[1]]).done();
    assert!(said.starts_with(&format!("study {} is removed, ", ids[1])), "{said}");
    assert!(!cluster.state.join("studies").join(&ids[1]).exists());
    assert!(inputs.iter().all(|input| input.exists()), "another study reads them");
    assert!(!old.exists() && new.exists(), "a file that was just sent may have a study on the way");
    assert_eq!(cluster.study_of(&ids[1]), Value::Null);
    // A client repeats a request after a lost response.
    assert!(cluster.ask(&["forget", &ids[1]]).done().contains("0 B"));
    let unknown = cluster.ask(&["forget", "99"]);
    assert!(unknown.code == 4 && unknown.stderr.contains("study 99 does not exist"), "{unknown:?}");
    // The study stays removed after a restart, and its id is not reused.
    cluster.kill_manager();
    cluster.start_manager();
    assert_eq!(cluster.study_of(&ids[1]), Value::Null);
    let third = cluster.submit(&[]);
    assert_eq!(third, "3");
    cluster.completed(&third);
    cluster.ask(&["forget", &ids[0], &third]).done();
    assert!(inputs.iter().all(|input| !input.exists()), "nobody reads them any more");
    assert_eq!(fs::read_dir(cluster.state.join("removed")).expect("a folder").count(), 0);
}

#[test]
fn finished_studies_are_removed_by_age_and_size() {
    let study = cluster::study(1, 64);
    let mut cluster = Cluster::of(&study, 1);
    // One after the other: studies that run at the same time end in any order, and the one that ended first is removed first.
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(cluster.submit(&[]));
        ids.last().iter().for_each(|id| _ = cluster.completed(id));
    }
    cluster.kill_worker("w0");
    let open = cluster.submit(&[]);
    cluster.kill_manager();
    let folder = |id: &str| cluster.state.join("studies").join(id);
    // The format of an earlier version, with an end 2 days ago.
    let ended = folder(&ids[1]).join("ended.json");
    let text: Value = serde_json::from_slice(&fs::read(&ended).expect("read")).expect("JSON");
    let mut content = text["content"].clone();
    content.as_object_mut().expect("fields").remove("ended").expect("a time");
    fs::write(&ended, content.to_string()).expect("written");
    age(&ended, 48 * HOUR);
    age(&folder(&open).join("submission.json"), 48 * HOUR);
    let folders: Vec<PathBuf> = ids.iter().chain([&open]).map(|id| folder(id)).collect();
    let left = || folders.iter().map(|folder| folder.exists()).collect::<Vec<bool>>();
    cluster.manager_options = ["--keep-days", "1"].map(str::to_owned).to_vec();
    cluster.start_manager();
    cluster.wait_until(|_| left() == [true, false, true, true]);
    assert!(cluster.log("manager").contains("ended 2 days ago (--keep-days 1)"));
    cluster.kill_manager();
    // The limit has space for one study, so the older one is removed.
    let bytes: u64 = fs::read_dir(folders[2].join("results"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").metadata().expect("found").len())
        .sum();
    cluster.manager_options = vec!["--keep-size".to_owned(), format!("{}B", bytes * 3 / 2)];
    cluster.start_manager();
    cluster.wait_until(|_| left() == [false, false, true, true]);
    cluster.kill_manager();
    cluster.manager_options = ["--keep-size", "1B"].map(str::to_owned).to_vec();
    cluster.start_manager();
    cluster.wait_until(|_| left() == [false, false, false, true]);
    assert_ne!(cluster.state_of(&open), "unknown");
}
