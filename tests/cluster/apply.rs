//! `pleach apply` on a cluster: workers compute, and the client writes the files of one process.

use crate::cluster::{self, Cluster};
use crate::pleach::pleach;
use crate::pyramid::{AT_20, write_image};
use crate::study::Study;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FORMATS: &str = "masks,labels,geojson,csv";

/// A study, a slide of 16 tiles, an image and a file that is none.
fn study() -> Study {
    let study = cluster::study(2, 256);
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    fs::create_dir(study.path("more")).expect("a folder");
    write_image(&study.path("more/s.svs"), tissue.as_raw(), 256, AT_20);
    image::imageops::crop_imm(&tissue, 20, 30, 96, 80)
        .to_image()
        .save(study.path("more/a.png"))
        .expect("saved");
    study.write("more/b.png", "no image");
    study
}

fn apply<'a>(cache: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "apply",
        "study.toml",
        "more",
        "--tile",
        "64",
        "--halo",
        "32",
        "--set",
        "G1=61",
        "--as",
        FORMATS,
    ];
    args.extend(["--json"]);
    args.extend(options);
    if !cache.is_empty() {
        args.extend(["--cache", cache]);
    }
    args
}

/// Files of an export, without the record of its studies.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("an export").map(|entry| entry.expect("an entry"));
    let file = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("a file"))
    };
    entries.map(file).filter(|(name, _)| name != "submissions.json").collect()
}

fn printed(stdout: &str) -> Value {
    serde_json::from_str(stdout).expect("one JSON document")
}

/// Tasks of the workers, and those of the client.
fn executed(printed: &Value) -> (u64, u64) {
    let studies = printed["studies"].as_array().expect("studies");
    let of_workers = studies.iter().map(|study| study["tasks_executed"].as_u64().expect("a number")).sum();
    (of_workers, printed["tasks_executed"].as_u64().expect("a number"))
}

#[test]
fn files_of_a_cluster_that_loses_a_worker_are_those_of_one_process() {
    let study = study();
    let alone = pleach(study.folder(), &apply("", &["--out", "alone"]));
    assert_eq!(alone.code, 3, "{alone:?}");
    let (none, tasks) = executed(&printed(&alone.stdout));
    assert!(none == 0 && tasks > 100, "{tasks}");

    let place = tempfile::tempdir().expect("a folder");
    let cache = place.path().join("cache").display().to_string();
    let mut cluster = Cluster::new(&study);
    let missing = cluster.ask(&apply(&cache, &["--out", "refused"]));
    assert!(missing.code == 2 && missing.stderr.contains("--cache "), "{missing:?}");
    for worker in ["w0", "w1"] {
        cluster.start_worker(worker, &["--cache", &cache]);
    }
    // A cache that is missing is refused.
    cluster.wait_until(|_| Path::new(&cache).join("FORMAT").exists());
    let remote = std::thread::scope(|scope| {
        let (url, certs) = (format!("https://{}", cluster.http), cluster.path("ca/me").display().to_string());
        let folder = study.folder();
        let cache = &cache;
        let client = scope.spawn(move || {
            let connection = ["--out", "remote", "--manager", &url, "--certs", &certs, "--timeout", "60s"];
            pleach(folder, &apply(cache, &connection))
        });
        // The image is study 1, and the slide study 2.
        cluster.wait_for_responses("2", 1);
        cluster.kill_worker("w0");
        client.join().expect("it ends")
    });
    assert_eq!(remote.code, 3, "{remote:?}");
    assert_eq!(files(&study.path("remote")), files(&study.path("alone")));
    let (of_workers, here) = executed(&printed(&remote.stdout));
    // Workers compare each segmentation with itself, too, and repeat the tasks that were lost.
    assert!(here == 0 && of_workers >= tasks, "{of_workers} of {tasks}, and {here}");

    // A removed file is written again from the study that the manager has.
    fs::remove_file(study.path("remote/s.csv")).expect("a file");
    let again = printed(&cluster.ask(&apply(&cache, &["--out", "remote", "--resume"])).stdout);
    assert_eq!((executed(&again).1, &again["studies"][0]["id"]), (0, &Value::from("2")));
    assert_eq!(again["already_complete"], 1);
    assert_eq!(files(&study.path("remote"))["s.csv"], files(&study.path("alone"))["s.csv"]);

    // A new study executes little, because its tasks are in the cache.
    let again = printed(&cluster.ask(&apply(&cache, &["--out", "remote", "--overwrite"])).stdout);
    let (of_workers, here) = executed(&again);
    assert!(here == 0 && of_workers * 4 < tasks, "{of_workers} of {tasks}, and {here}");
    assert_eq!(files(&study.path("remote")), files(&study.path("alone")));

    // The cache of other workers has nothing of the study.
    let other = place.path().join("other").display().to_string();
    pleach(study.folder(), &["run", "study.toml", "--out", "results", "--cache", &other, "--quiet"]).done();
    let wrong = cluster.ask(&apply(&other, &["--out", "wrong"]));
    assert!(wrong.code == 2 && wrong.stderr.contains("has no result of study "), "{wrong:?}");
    cluster.nothing_is_left();
}
