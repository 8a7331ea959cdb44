//! Task caches of several users: search, quotas, and folders that cannot be written.

use crate::disk::Disk;
use crate::pleach::{Answer, answer, pleach};
use crate::results::json;
use crate::study::Study;
use crate::{FINDINGS, findings, results};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

/// Returns the entries found, without their ages: these grow between two searches.
fn search(study: &Study, options: &[&str]) -> Vec<Value> {
    let command = [&["cache", "search", "kept", "--json"], options].concat();
    let mut found: Vec<Value> =
        serde_json::from_str(&pleach(study.folder(), &command).done()).expect("a list");
    for entry in &mut found {
        for age in ["age_seconds", "unused_seconds"] {
            assert!(entry.as_object_mut().expect("an object").remove(age).expect(age).is_u64());
        }
    }
    found
}

/// Rows of a table in the result folder `out`.
fn found(study: &Study, out: &str) -> Vec<String> {
    FINDINGS.iter().map(|name| results::text(&study.path(out).join(name))).collect()
}

#[test]
fn results_are_searched_by_operation_values_study_and_user() {
    let study = Study::of_tissue(128);
    let expected = findings(&study, "plain", &[]);
    assert_eq!(findings(&study, "first", &["--cache", "kept"]), expected);
    let (all, user) = (search(&study, &[]), search(&study, &[])[0]["user"].clone());
    assert!(all.len() > 100, "{}", all.len());
    assert!(all.iter().all(|entry| entry["study"] == "nuclei-moat" && entry["user"] == user));
    assert!(all.iter().all(|entry| entry["bytes"].as_u64().expect("bytes") > 100));
    let user = user.as_str().expect("a name").to_owned();
    assert!(!user.is_empty());

    let operation = ["--operation", "nuclei.candidates"];
    let of_operation = search(&study, &operation);
    assert!(!of_operation.is_empty() && of_operation.len() < all.len());
    let value = of_operation[0]["parameters"]["G1"].as_str().expect("a value").to_owned();
    let parameter = format!("G1={value}");
    let of_value = search(&study, &[&operation[..], &["--parameter", &parameter]].concat());
    let expected: Vec<&Value> =
        of_operation.iter().filter(|entry| entry["parameters"]["G1"] == value.as_str()).collect();
    assert!(!expected.is_empty() && expected.len() < of_operation.len());
    assert_eq!(of_value.iter().collect::<Vec<_>>(), expected);

    // A second study adds only its new results.
    study.edit(&[("name = \"nuclei-moat\"", "name = \"wider\""), ("trajectories = 2", "trajectories = 3")]);
    findings(&study, "second", &["--cache", "kept"]);
    let wider = search(&study, &["--study", "wider", "--user", &user]);
    assert!(!wider.is_empty());
    assert_eq!(search(&study, &["--study", "nuclei-moat"]).len(), all.len());
    assert_eq!(search(&study, &[]).len(), all.len() + wider.len());
    assert_eq!(search(&study, &["--user", "not a user"]), Vec::<Value>::new());

    let shown = pleach(study.folder(), &["cache", "search", "kept", "--study", "wider"]).done();
    assert!(shown.starts_with("OPERATION") && shown.contains(&format!("{} results", wider.len())), "{shown}");
    let size = pleach(study.folder(), &["cache", "stats", "kept", "--json"]).done();
    let size: Value = serde_json::from_str(&size).expect("JSON");
    assert_eq!((&size["users"][0]["user"], &size["users"][1]), (&Value::from(user), &Value::Null));
    assert!(pleach(study.folder(), &["cache", "stats", "kept"]).done().contains("traces, "));

    let refused = |args: &[&str], reason: &str| {
        let answer = pleach(study.folder(), &[&["cache"], args].concat());
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
        assert!(answer.stderr.contains(reason), "{answer:?}");
    };
    refused(&["search", "none"], "--cache none: ");
    refused(&["stats", "tiles"], "the folder contains other files");
    refused(&["search", "kept", "--parameter", "G1"], "a name and a value are allowed, as in G1=80");
}

/// The quota of a user holds, and is reported once. Without it, the same studies take more.
#[test]
fn quota_evicts_the_oldest_results_of_its_user() {
    let study = Study::of_tissue(128);
    let bytes = || {
        let size = pleach(study.folder(), &["cache", "stats", "kept", "--json"]).done();
        let size: Value = serde_json::from_str(&size).expect("JSON");
        size["users"][0]["bytes"].as_u64().expect("bytes")
    };
    let expected = findings(&study, "first", &["--cache", "kept", "--cache-quota", "150kB"]);
    let record = json(&study.path("first/run.json"));
    assert!(bytes() <= 150_000, "{}", bytes());
    assert!(record["cache"]["quota_evicted_bytes"].as_u64().expect("bytes") > 0, "{record}");
    let warnings = record["cache"]["warnings"].as_array().expect("a list");
    let of_quota =
        warnings.iter().filter(|warning| warning.to_string().contains("the quota of 150000 bytes"));
    assert_eq!(of_quota.count(), 1, "{warnings:?}");
    assert_eq!(findings(&study, "second", &["--cache", "kept"]), expected);
    assert!(bytes() > 150_000, "{}", bytes());
    assert_eq!(json(&study.path("second/run.json"))["cache"]["quota_evicted_bytes"], 0);
    let refused = pleach(study.folder(), &["run", "study.toml", "--cache-quota", "1MB"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

/// Files of a cache are private, or by the umask in a folder that its group can write to.
#[test]
fn group_shares_a_cache_that_it_can_write_to() {
    let study = Study::of_tissue(64);
    for (folder, mode, expected) in
        [("private", 0o700, 0o600), ("group", 0o770, 0o660), ("all", 0o777, 0o600)]
    {
        fs::create_dir(study.path(folder)).expect("a folder");
        fs::set_permissions(study.path(folder), Permissions::from_mode(mode)).expect("its mode");
        let run =
            format!("umask 007 && exec \"$0\" run study.toml --quiet --out out-{folder} --cache {folder}");
        let pleach = assert_cmd::cargo::cargo_bin!("pleach");
        let answer = answer(Command::new("sh").current_dir(study.folder()).args(["-c", &run]).arg(pleach));
        assert_eq!(answer.code, 0, "{answer:?}");
        for name in ["FORMAT", "lock", "000000000001.segment"] {
            let meta = fs::metadata(study.path(folder).join(name)).expect("a file");
            assert_eq!(meta.permissions().mode() & 0o777, expected, "{folder}/{name}");
        }
    }
}

/// Runs the study at a place where the folder `disk` is visible.
fn run_on(study: &Study, disk: &Disk, out: &str) -> (Answer, Value) {
    let way = disk.way();
    let mut command = Command::new(&way[0]);
    let pleach = assert_cmd::cargo::cargo_bin!("pleach");
    command.args(&way[1..]).arg(pleach).args([
        "run",
        "study.toml",
        "--quiet",
        "--workers",
        "2",
        "--out",
        out,
    ]);
    let answer = answer(command.args(["--cache", "disk/kept"]));
    assert_eq!(answer.code, 0, "{answer:?}");
    let record = json(&study.path(out).join("run.json"));
    (answer, record)
}

#[test]
fn full_or_read_only_cache_costs_no_result() {
    let study = Study::of_tissue(128);
    let expected = findings(&study, "plain", &[]);
    let Some(disk) = Disk::tmpfs(&study.path("disk"), 8) else {
        return skipped("full_or_read_only_cache_costs_no_result", "the system does not let us mount");
    };
    let warned = |record: &Value| {
        // The file of costs in the same folder has a warning of its own.
        let warnings = record["cache"]["warnings"].as_array().expect("a list").iter();
        let warnings = warnings.map(|warning| warning.as_str().expect("a text").to_owned());
        let of_cache: Vec<String> = warnings.filter(|warning| warning.starts_with("the cache")).collect();
        assert_eq!(of_cache.len(), 1, "{record}");
        of_cache[0].clone()
    };
    let filler = disk.fill();
    let (answer, record) = run_on(&study, &disk, "full");
    assert_eq!((answer.code, found(&study, "full") == expected), (0, true), "{answer:?}");
    assert!(warned(&record).contains("No space left"), "{record}");
    fs::remove_file(filler).expect("removed");
    let (answer, record) = run_on(&study, &disk, "empty");
    assert_eq!((answer.code, found(&study, "empty") == expected), (0, true), "{answer:?}");
    assert_eq!(record["cache"]["warnings"], Value::Array(Vec::new()));

    let way = disk.way();
    let mut remount = Command::new(&way[0]);
    remount.args(&way[1..]).args(["mount", "-o", "remount,ro", "disk"]);
    assert!(remount.status().expect("nsenter starts").success());
    study.edit(&[("trajectories = 2", "trajectories = 3")]);
    let wider = findings(&study, "wider", &[]);
    let (answer, record) = run_on(&study, &disk, "read-only");
    assert_eq!((answer.code, found(&study, "read-only") == wider), (0, true), "{answer:?}");
    let warning = warned(&record);
    assert!(warning.starts_with("the cache is read-only: ") && warning.contains("os error 30"), "{warning}");
    assert!(record["tasks_reused"]["cache"].as_u64().expect("a number") > 0, "{record}");
    assert_eq!(record["cache"]["stored"], 0);
}
