//! Studies of several rounds on a manager: phases and growing samples. Results equal those of one process under any manager
//! restart.

use crate::cluster::{self, Cluster};
use crate::pleach::pleach;
use crate::study::Study;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const METHOD: &str = "[method]\nkind = \"moat\"\ntrajectories = 2\nlevels = 20\n";

const PHASES: &str = "[[phase]]\nkind = \"moat\"\ntrajectories = 3\nsurvivors = { most_influential = 4 }\n\
                      [[phase]]\nkind = \"vbd\"\nsamples = 8\n";

const FIRST: &str = "phase-1-moat";
const SECOND: &str = "phase-2-vbd";

/// Result files that must not depend on how a study was executed.
const FINDINGS: [&str; 5] = ["samples.csv", "responses.csv", "failed.csv", "indices.csv", "indices.json"];

/// A study on two tiles with these sections in place of its method.
fn study(sections: &str) -> Study {
    let study = Study::of_tissue(128);
    study.edit(&[(METHOD, sections)]);
    study
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&text(file)).expect("JSON")
}

/// Contents of the result files in `out` and in the folders of these phases, with the survivors.
fn findings(out: &Path, phases: &[&str]) -> Vec<String> {
    let of = |folder: PathBuf| FINDINGS.map(|file| text(&folder.join(file)));
    let mut all: Vec<String> = phases.iter().flat_map(|phase| of(out.join(phase))).collect();
    if let Some(first) = phases.first() {
        all.push(text(&out.join(first).join("survivors.json")));
    } else {
        all.extend(of(out.to_owned()));
    }
    all
}

/// As [`findings`], for the study in one process.
fn alone(study: &Study, phases: &[&str]) -> Vec<String> {
    pleach(study.folder(), &["run", "study.toml", "--out", "alone", "--quiet"]).done();
    findings(&study.path("alone"), phases)
}

/// Waits until a study is complete. Returns the folder of its downloaded results.
fn completed(cluster: &Cluster<'_>, id: &str) -> PathBuf {
    cluster.wait_for_completion(id);
    let out = cluster.path(&format!("out-{id}"));
    cluster.ask(&["results", id, "--out", &out.display().to_string()]).done();
    out
}

/// A result file of a study in the state directory.
fn kept(cluster: &Cluster<'_>, id: &str, name: &str) -> PathBuf {
    cluster.state.join(format!("studies/{id}/results/{name}"))
}

/// Waits until a file of a running study has `bytes` bytes.
fn wait_for(cluster: &Cluster<'_>, id: &str, name: &str, bytes: u64) {
    let file = kept(cluster, id, name);
    cluster.wait_until(|_| fs::metadata(&file).is_ok_and(|file| file.len() >= bytes));
    assert!(!cluster.has_ended(id), "it ended before {name} had {bytes} bytes");
}

fn number(record: &Value, pointer: &str) -> u64 {
    record.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {record}"))
}

#[test]
fn phases_on_a_manager_equal_one_process() {
    let study = study(PHASES);
    let expected = alone(&study, &[FIRST, SECOND]);
    let mut cluster = Cluster::new(&study);
    let id = cluster.submit(&[]);
    // No worker executes the study yet.
    cluster.wait_until(|cluster| cluster.study_of(&id)["phase"] == 1);
    assert_eq!(cluster.study_of(&id)["phases"], 2);
    assert_eq!(number(&cluster.study_of(&id), "/evaluations"), 48);
    let said = cluster.ask(&["status"]).done();
    assert!(said.contains("phase 1 of 2"), "{said}");
    let early = cluster.ask(&["results", &id, "--out", "early"]);
    assert!(
        early.code == 4 && early.stderr.contains("results are available once it is complete"),
        "{early:?}"
    );
    cluster.start_workers(0..2);
    wait_for(&cluster, &id, &format!("{SECOND}/journal"), 300);
    // No worker is left.
    (0..2).for_each(|number| cluster.kill_worker(&format!("w{number}")));
    let view = cluster.study_of(&id);
    assert_eq!((&view["phase"], &view["state"]), (&2.into(), &"running".into()), "{view}");
    assert_eq!(number(&view, "/evaluations"), 48 + 48);
    assert!(number(&view, "/evaluations_done") >= 48, "{view}");
    let said = cluster.ask(&["status"]).done();
    assert!(said.contains("phase 2 of 2"), "{said}");
    cluster.start_workers(2..4);

    let out = completed(&cluster, &id);
    assert_eq!(findings(&out, &[FIRST, SECOND]), expected);
    let view = cluster.study_of(&id);
    assert_eq!((number(&view, "/evaluations_done"), number(&view, "/evaluations")), (96, 96));
    assert!(view["phase"].is_null() && view["phases"] == 2, "{view}");
    let record = json(&out.join("run.json"));
    assert_eq!(number(&record, "/evaluations"), 96);
    assert_eq!(record["phases"][1]["folder"], SECOND);
    let page = text(&out.join("report.html"));
    assert!(page.contains("Phase 1: screening") && page.contains("Phase 2: decomposition of the variance"));
    let journals = [FIRST, SECOND].map(|phase| out.join(phase).join("journal"));
    assert!(journals.iter().all(|journal| !journal.exists()), "a journal is no result");
    cluster.nothing_is_left();
}

#[test]
fn later_phase_reuses_results_retained_by_workers() {
    let study = study(PHASES);
    let expected = alone(&study, &[FIRST, SECOND]);
    // Workers do not share retained results, and each of two could get the tiles of the other in the second phase.
    let cluster = Cluster::of(&study, 1);
    let check = |id: &str| {
        let out = completed(&cluster, id);
        assert_eq!(findings(&out, &[FIRST, SECOND]), expected, "study {id}");
        let record = json(&out.join("run.json"));
        assert_eq!(number(&record, "/phases/0/tasks_reused/earlier"), 0);
        assert_eq!(record["tasks_reused"]["earlier"], record["phases"][1]["tasks_reused"]["earlier"]);
        assert_eq!(number(&cluster.study_of(id), "/tasks_executed"), number(&record, "/tasks_executed"));
        record
    };
    // The results of a complete study are dropped: none is left for the first phase of the next one.
    for strategy in ["trtma", "rtma"] {
        let record = check(&cluster.submit(&["--strategy", strategy]));
        assert!(number(&record, "/phases/1/tasks_reused/earlier") > 0, "{strategy}: {record}");
    }
    // Concurrent studies use each other's results, which are not of an earlier phase.
    let ids = [cluster.submit(&[]), cluster.submit(&["--strategy", "rtma"])];
    ids.iter().for_each(|id| _ = check(id));
    cluster.nothing_is_left();
}

#[test]
fn manager_killed_within_and_between_phases_resumes() {
    let study = study(PHASES);
    let expected = alone(&study, &[FIRST, SECOND]);
    // One worker, so that it surely executes tasks of the second phase whose results it retained.
    let mut cluster = Cluster::of(&study, 1);
    let journals = [FIRST, SECOND].map(|phase| format!("{phase}/journal"));
    let survivors = format!("{FIRST}/survivors.json");
    for (file, bytes, between) in [
        (&journals[0], 2_000, false),
        (&survivors, 1, false),
        (&journals[1], 1, true),
        (&journals[1], 2_000, false),
    ] {
        let id = cluster.submit(&[]);
        wait_for(&cluster, &id, file, bytes);
        cluster.kill_manager();
        assert!(kept(&cluster, &id, file).exists());
        if between {
            // The state before the second phase began.
            fs::remove_dir_all(kept(&cluster, &id, SECOND)).expect("removed");
        }
        cluster.start_manager();
        let out = completed(&cluster, &id);
        assert_eq!(findings(&out, &[FIRST, SECOND]), expected, "killed at {bytes} bytes of {file}");
        assert!(!kept(&cluster, &id, &journals[0]).exists(), "nothing is left to go on with");
        if between {
            // The worker retained the results of the first phase.
            let record = json(&out.join("run.json"));
            assert!(number(&record, "/phases/1/tasks_reused/earlier") > 0, "{record}");
        }
        cluster.nothing_is_left();
    }
}

#[test]
fn restarted_manager_reads_the_recorded_survivors() {
    let study = study(PHASES);
    let mut cluster = Cluster::of(&study, 1);
    let id = cluster.submit(&[]);
    wait_for(&cluster, &id, &format!("{SECOND}/journal"), 1);
    cluster.kill_manager();
    fs::remove_dir_all(kept(&cluster, &id, SECOND)).expect("removed");
    let file = kept(&cluster, &id, &format!("{FIRST}/survivors.json"));
    let mut written = json(&file);
    // The format of an earlier version, without a checksum.
    written.as_object_mut().expect("fields").remove("checksum").expect("a checksum");
    let chosen = ["T1", "G1"];
    let all =
        ["survivors", "fixed"].iter().flat_map(|list| written[*list].as_array().expect("names").clone());
    let fixed: Vec<serde_json::Value> = all.filter(|name| chosen.iter().all(|one| name != one)).collect();
    (written["survivors"], written["fixed"]) = (serde_json::json!(chosen), fixed.into());
    fs::write(&file, written.to_string()).expect("written");
    cluster.start_manager();
    let record = json(&completed(&cluster, &id).join("run.json"));
    assert_eq!(record["phases"][1]["parameters"], serde_json::json!(["T1", "G1"]));
    assert_eq!(number(&record, "/phases/1/evaluations"), 8 * 4);
}

#[test]
fn a_study_in_phases_is_canceled_in_its_second_one() {
    let study = study(&PHASES.replace("samples = 8", "samples = 200"));
    let mut cluster = Cluster::of(&study, 2);
    let id = cluster.submit(&[]);
    wait_for(&cluster, &id, &format!("{SECOND}/journal"), 300);
    cluster.ask(&["cancel", &id]).done();
    let view = cluster.study_of(&id);
    assert_eq!(view["state"], "canceled");
    assert!(number(&view, "/evaluations_done") >= 48, "{view}");
    cluster.nothing_is_left();
    // The study stays canceled after a restart.
    cluster.kill_manager();
    cluster.start_manager();
    assert_eq!(cluster.state_of(&id), "canceled");
    // Other studies continue.
    study.edit(&[]);
    let expected = cluster::expected(&study);
    assert_eq!(cluster.submit_and_wait(&[]), expected);
    cluster.nothing_is_left();
}

/// A study with few varying parameters, so that rounds are short.
fn growing() -> Study {
    let study = Study::of_tissue(128);
    let held = [("B", 220), ("G", 220), ("R", 220), ("T1", 5), ("FillHoles", 4), ("Watershed", 8)];
    let more = [("maxSizeSeg", 1000), ("minSizePl", 20), ("minSizeSeg", 20), ("maxSize", 1000)];
    let fixed = held.iter().chain(&more);
    let fixed: String =
        fixed.map(|(name, value)| format!("[parameters.{name}]\nfixed = {value}\n")).collect();
    let method =
        "[method]\nkind = \"vbd\"\nsamples = 5\nuntil = { ci_width = 1e-9, max_evaluations = 140 }\n";
    study.edit(&[(METHOD, method), ("metric = \"dice\"\n", &format!("metric = \"dice\"\n{fixed}"))]);
    study
}

#[test]
fn a_sample_grows_on_a_manager_as_in_one_process() {
    let study = growing();
    let expected = alone(&study, &[]);
    let mut cluster = Cluster::of(&study, 2);
    let id = cluster.submit(&[]);
    let out = completed(&cluster, &id);
    assert_eq!(findings(&out, &[]), expected);
    let record = json(&out.join("run.json"));
    assert_eq!(record["convergence"], json(&study.path("alone/run.json"))["convergence"]);
    assert_eq!(record["convergence"]["rounds"].as_array().map(Vec::len), Some(4));
    assert!(number(&record, "/tasks_reused/earlier") > 0, "{record}");
    let view = cluster.study_of(&id);
    assert_eq!((number(&view, "/evaluations_done"), number(&view, "/evaluations")), (140, 140));
    assert!(view["phase"].is_null() && view["phases"].is_null(), "{view}");
    cluster.nothing_is_left();

    // Kills in the first round, in a middle round and in the last one: about 100 bytes for each of 70 responses per round.
    for bytes in [2_000, 9_000, 22_000] {
        let id = cluster.submit(&[]);
        wait_for(&cluster, &id, "journal", bytes);
        cluster.kill_manager();
        cluster.start_manager();
        let out = completed(&cluster, &id);
        assert_eq!(findings(&out, &[]), expected, "killed at {bytes} bytes");
        cluster.nothing_is_left();
    }
}

#[test]
fn screening_without_survivors_fails_with_the_reason() {
    let study = study(&PHASES.replace("most_influential = 4", "threshold = 1e9"));
    let cluster = Cluster::of(&study, 1);
    let id = cluster.submit(&[]);
    cluster.wait_until(|cluster| cluster.study_of(&id)["state"] == "failed");
    let view = cluster.study_of(&id);
    let message = view["message"].as_str().expect("a message");
    let said =
        "phase[1].survivors: threshold = 1000000000: no parameter has a mu* of 1000000000 or more for dice";
    assert!(message.contains(said), "{message}");
}
