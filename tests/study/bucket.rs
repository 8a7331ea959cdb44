//! Studies with a spill tier or a task cache in an S3 bucket have the same results.

use crate::pleach::{Answer, answer};
use crate::results::{json, text};
use crate::serving::{BUCKET, CREDENTIALS, Serving, ask_moto, serve};
use crate::study::Study;
use crate::{FINDINGS, findings};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn regions_beyond_memory_are_spilled_to_s3() {
    let study = Study::of_tissue(512);
    let Some(server) = serve("bucket::regions_beyond_memory_are_spilled_to_s3", study.folder()) else {
        return;
    };
    study.edit(&[("normalize = true", "normalize = false")]);
    let plenty = findings(&study, "plenty", &["--memory", "4GB", "--workers", "2"]);
    let all = json(&study.path("plenty/run.json"))["peak_bytes_admitted"].as_u64().expect("bytes");
    let endpoint = &server.endpoint;
    let tiers = "[[tier]]\nkind = \"s3\"\ncapacity = \"1GB\"\nprefix = \"one/study\"\n".to_owned();
    study.write("tiers.toml", format!("{tiers}bucket = \"{BUCKET}\"\nendpoint = \"{endpoint}\"\n"));
    let run = ["run", "study.toml", "--out", "out", "--quiet", "--workers", "2", "--tiers", "tiers.toml"];
    let done = Command::new(assert_cmd::cargo::cargo_bin!("pleach"))
        .current_dir(study.folder())
        .envs(CREDENTIALS)
        .args(run)
        .args(["--memory", &(all / 4).to_string()])
        .output()
        .expect("pleach starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let found: Vec<String> = FINDINGS.iter().map(|name| text(&study.path("out").join(name))).collect();
    assert_eq!(found, plenty);
    let storage = &json(&study.path("out/run.json"))["storage"];
    for moved in ["demoted", "promoted"] {
        assert!(storage[moved]["regions"].as_u64().expect("a number") > 0, "{storage}");
    }
    assert_eq!((&storage["lost"], &storage["refused"]), (&0.into(), &0.into()), "{storage}");
    let held = storage["tiers"][0]["held_bytes"].as_u64().expect("bytes");
    assert_eq!(held, 0, "something is left: {storage}");
}

/// Address of a task cache in the bucket.
fn cache(server: &Serving, prefix: &str) -> String {
    format!("s3://{BUCKET}/{prefix}?endpoint={}", server.endpoint)
}

fn command(study: &Study, args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
    command.current_dir(study.folder()).envs(CREDENTIALS).args(args);
    command
}

/// Runs the study into `out` with a task cache. Returns its result files and `run.json`.
fn with_cache(study: &Study, out: &str, cache: &str, options: &[&str]) -> (Vec<String>, Value) {
    let run = [&["run", "study.toml", "--quiet", "--workers", "2", "--out", out, "--cache", cache], options];
    let Answer { code, stderr, .. } = answer(&mut command(study, &run.concat()));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let found = FINDINGS.iter().map(|name| text(&study.path(out).join(name))).collect();
    (found, json(&study.path(out).join("run.json")))
}

fn warnings(record: &Value) -> Vec<String> {
    let warnings = record["cache"]["warnings"].as_array().expect("a list").iter();
    warnings.map(|warning| warning.as_str().expect("a text").to_owned()).collect()
}

/// The same study again executes nothing, with results of a bucket. Corrupt objects are computed again.
#[test]
fn task_cache_in_s3_serves_other_studies() {
    let study = Study::of_tissue(128);
    let test = "bucket::task_cache_in_s3_serves_other_studies";
    let Some(server) = serve(test, study.folder()) else { return };
    let (at, expected) = (cache(&server, "team/cache"), findings(&study, "plain", &[]));
    let (first, record) = with_cache(&study, "first", &at, &[]);
    assert_eq!((first, warnings(&record)), (expected.clone(), vec![]));
    assert_eq!(record["tasks_reused"]["cache"], 0, "{record}");
    let (again, record) = with_cache(&study, "again", &at, &[]);
    assert_eq!((again, &record["tasks_executed"]), (expected.clone(), &0.into()), "{record}");
    let search =
        ["cache", "search", &at, "--operation", "nuclei.candidates", "--study", "nuclei-moat", "--json"];
    let found = answer(&mut command(&study, &search)).done();
    assert!(!serde_json::from_str::<Vec<Value>>(&found).expect("a list").is_empty());
    let stats = answer(&mut command(&study, &["cache", "stats", &at])).done();
    assert!(stats.contains("traces, "), "{stats}");

    // Another prefix is another cache. It keeps within a quota.
    let small = cache(&server, "team/small");
    let (with_quota, record) = with_cache(&study, "quota", &small, &["--cache-quota", "20kB"]);
    assert_eq!(with_quota, expected);
    assert!(warnings(&record).iter().any(|warning| warning.contains("the quota of 20000 bytes")), "{record}");

    if server.folder.is_none() {
        let address = server.endpoint.strip_prefix("http://").expect("HTTP");
        let listed = String::from_utf8(ask_moto(address, "GET", "?list-type=2", &[])).expect("XML");
        let names = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        let bundles: Vec<&str> = names.filter(|name| name.starts_with("team/cache/traces/")).collect();
        assert!(!bundles.is_empty(), "{listed}");
        for bundle in bundles {
            let mut bytes = ask_moto(address, "GET", bundle, &[]);
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            ask_moto(address, "PUT", bundle, &bytes);
        }
        let (corrupt, record) = with_cache(&study, "corrupt", &at, &[]);
        assert_eq!(corrupt, expected);
        assert!(record["tasks_executed"].as_u64().expect("a number") > 0, "{record}");
        assert!(warnings(&record).iter().any(|warning| warning.contains("corrupt")), "{record}");
    }
    let refused = answer(&mut command(&study, &["run", "study.toml", "--cache", "s3://No/cache"]));
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("bucket \"No\" is invalid"), "{refused:?}");
}

/// The server vanishes while the study runs: the study completes, and one warning names the cause.
#[test]
fn study_completes_without_its_task_cache_in_s3() {
    let study = Study::of_tissue(256);
    study.edit(&[("trajectories = 2", "trajectories = 6")]);
    let test = "bucket::study_completes_without_its_task_cache_in_s3";
    let Some(mut server) = serve(test, study.folder()) else { return };
    let (at, expected) = (cache(&server, "cache"), findings(&study, "plain", &[]));
    let args = ["run", "study.toml", "--quiet", "--workers", "2", "--out", "out", "--cache", &at];
    let mut child = command(&study, &args).spawn().expect("pleach starts");
    let begun = Instant::now();
    while !std::fs::metadata(study.path("out/journal")).is_ok_and(|file| file.len() > 2000) {
        assert!(child.try_wait().expect("a child").is_none(), "the study ended before the server vanished");
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing happens");
        std::thread::yield_now();
    }
    server.child.kill().expect("killed");
    server.child.wait().expect("ended");
    assert!(child.wait().expect("it ends").success());
    let found: Vec<String> = FINDINGS.iter().map(|name| text(&study.path("out").join(name))).collect();
    assert_eq!(found, expected);
    let record = json(&study.path("out/run.json"));
    let unreachable = "the cache is not used until the next study: ";
    let told = warnings(&record);
    assert_eq!(told.iter().filter(|warning| warning.starts_with(unreachable)).count(), 1, "{told:?}");
    // A study that starts without the server is refused, as with a folder that cannot be read.
    let refused = answer(&mut command(&study, &["run", "study.toml", "--out", "never", "--cache", &at]));
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("s3://studies/cache"), "{refused:?}");
}
