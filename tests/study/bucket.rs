//! A study that spills its working set to an S3 bucket has the same results.

use crate::results::{json, text};
use crate::serving::{BUCKET, CREDENTIALS, serve};
use crate::study::Study;
use crate::{FINDINGS, findings};
use std::process::Command;

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
