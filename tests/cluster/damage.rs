//! A state directory with changes made while no manager runs: a flipped bit, a truncated file, a removed file.
//!
//! The manager starts and continues with every intact record. Results equal the earlier ones or are refused, and `pleach
//! doctor` names the file.
//!
//! `PLEACH_DAMAGES` sets the number of changes (default: 60), `PLEACH_DAMAGE_SEED` the seed.

use crate::backup;
use crate::cluster::{self, Cluster};
use crate::pleach::{Answer, pleach};
use crate::study::Study;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const METHOD: &str = "[method]\nkind = \"moat\"\ntrajectories = 2\nlevels = 20\n";

/// A screening, and a decomposition of its survivors with this number of samples.
fn phases(samples: u32) -> String {
    format!(
        "[[phase]]\nkind = \"moat\"\ntrajectories = 3\nsurvivors = {{ most_influential = 4 }}\n\
         [[phase]]\nkind = \"vbd\"\nsamples = {samples}\n"
    )
}

const FIRST: &str = "phase-1-moat";
const SECOND: &str = "phase-2-vbd";

/// The manager starts with every 5th damaged directory. `pleach doctor` checks all of them.
const START_EVERY: u64 = 5;

/// Random numbers (Steele et al. 2014, `SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Files below a folder, by relative path.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry.strip_prefix(folder).expect("within").display().to_string();
                found.insert(name, entry);
            }
        }
    }
    found
}

/// Change of a file.
#[derive(Clone, Debug, PartialEq)]
enum How {
    Removed,
    Cut(usize),
    Flipped(usize, usize),
}

/// Whether `pleach doctor` must name a file: the manager reads it again, and its content shows the change.
fn is_to_be_found(name: &str, how: &How, content: &[u8], ids: &Ids) -> bool {
    let of = |id: &str| name.strip_prefix(&format!("studies/{id}/results/"));
    if ["token", "lock"].contains(&name) || of(&ids.canceled).is_some() {
        return false;
    }
    if *how == How::Removed {
        // An input is known only by the digest in its name, and an open study writes its files again. Both removals stay
        // unnoticed.
        let is_ended = name.ends_with("/ended.json");
        let is_of_complete =
            ids.complete.iter().any(|id| of(id).is_some() || (is_ended && name.contains(&format!("/{id}/"))));
        return is_of_complete || name == "manager.json" || name.ends_with("/submission.json");
    }
    match of(&ids.open) {
        Some(name) if name.ends_with("survivors.json") => true,
        Some(name) if name.ends_with("journal") => {
            *how != How::Cut(content.len()) || !content.ends_with(b"\n")
        }
        Some(_) => false,
        None => true,
    }
}

/// Changes a file. Returns the change and the new content.
fn damage(file: &Path, random: &mut Random) -> (How, Vec<u8>) {
    let mut bytes = fs::read(file).expect("a file");
    let how = match random.below(10) {
        0 => {
            fs::remove_file(file).expect("removed");
            return (How::Removed, Vec::new());
        }
        1 => How::Cut(random.below(bytes.len())),
        _ => How::Flipped(random.below(bytes.len()), random.below(8)),
    };
    match how {
        How::Cut(length) => bytes.truncate(length),
        How::Flipped(place, bit) => bytes[place] ^= 1 << bit,
        How::Removed => {}
    }
    fs::write(file, &bytes).expect("written");
    (how, bytes)
}

/// Ids of the studies in a state directory.
struct Ids {
    complete: Vec<String>,
    canceled: String,
    /// A study killed in its second phase.
    open: String,
}

/// Prepares a cluster and kills its processes. The state directory holds complete studies (a plain one and one in phases), a
/// canceled one, an open one in phases, and an input that a client has sent.
fn prepared(study: &Study) -> (Cluster<'_>, Ids) {
    let mut cluster = Cluster::of(study, 2);
    let plain = cluster.submit(&[]);
    study.edit(&[(METHOD, &phases(4))]);
    let in_phases = cluster.submit(&[]);
    let complete = vec![plain, in_phases];
    complete.iter().for_each(|id| cluster.wait_for_completion(id));
    study.edit(&[(METHOD, &phases(200))]);
    let canceled = cluster.submit(&[]);
    cluster.ask(&["cancel", &canceled]).done();
    let content = b"a tile that is sent before its study";
    fs::write(cluster.state.join("inputs").join(blake3::hash(content).to_hex().as_str()), content)
        .expect("written");
    let open = cluster.submit(&[]);
    let journal = cluster.state.join(format!("studies/{open}/results/{SECOND}/journal"));
    cluster.wait_until(|_| fs::metadata(&journal).is_ok_and(|found| found.len() > 2_000));
    cluster.kill_manager();
    ["w0", "w1"].iter().for_each(|name| cluster.kill_worker(name));
    (cluster, Ids { complete, canceled, open })
}

/// Answer of `pleach doctor` for the state directory.
fn doctor(cluster: &Cluster<'_>) -> Answer {
    let answer = pleach(&cluster.path(""), &["doctor", "--state", "state"]);
    assert!([0, 3].contains(&answer.code), "{answer:?}");
    answer
}

/// Result files of a study from the manager, or the manager's error.
fn results(cluster: &Cluster<'_>, id: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let out = cluster.path(&format!("out-{id}"));
    let _ = fs::remove_dir_all(&out);
    let answer = cluster.ask(&["results", id, "--out", &out.display().to_string()]);
    if answer.code != 0 {
        return Err(answer.stderr);
    }
    Ok(files(&out).into_iter().map(|(name, path)| (name, fs::read(path).expect("read"))).collect())
}

#[test]
fn state_directory_with_random_damage_is_noticed_and_never_gives_other_results() {
    let study = cluster::study(1, 64);
    let (mut cluster, ids) = prepared(&study);
    let sound = cluster.path("sound");
    backup::copy(&cluster.state, &sound);
    let answer = doctor(&cluster);
    assert_eq!(answer.code, 0, "{answer:?}");
    cluster.start_manager();
    let before: Vec<_> = ids.complete.iter().map(|id| results(&cluster, id).expect("results")).collect();
    cluster.kill_manager();
    let names: Vec<String> = files(&sound).into_keys().filter(|name| name != "lock").collect();
    let mut random = Random(setting("PLEACH_DAMAGE_SEED", 18));
    let (mut started, mut refused, mut kept_back, mut found) = (0, 0, 0, 0);
    for number in 0..setting("PLEACH_DAMAGES", 60) {
        fs::remove_dir_all(&cluster.state).expect("removed");
        backup::copy(&sound, &cluster.state);
        let name = &names[random.below(names.len())];
        let (how, content) = damage(&cluster.state.join(name), &mut random);
        let what = format!("{number}: {name}: {how:?}");
        let answer = doctor(&cluster);
        if is_to_be_found(name, &how, &content, &ids) {
            assert!(answer.stdout.contains(&format!("state/{name}: ")), "{what}: {answer:?}");
            found += 1;
        }
        if number % START_EVERY > 0 && !name.ends_with("ended.json") && name != "manager.json" {
            continue;
        }
        if let Err((code, said)) = cluster.try_start_manager() {
            assert!(code == Some(2) && said.contains(name.as_str()), "{what}: {code:?}: {said}");
            assert!(["manager.json", "token"].contains(&name.as_str()), "{what}: {said}");
            refused += 1;
            continue;
        }
        for (id, before) in ids.complete.iter().zip(&before) {
            match results(&cluster, id) {
                Ok(found) => assert!(found == *before, "{what}: study {id} has other results"),
                Err(said) => {
                    let file = name.strip_prefix(&format!("studies/{id}/")).expect("a file of this study");
                    assert!(said.contains(file.trim_start_matches("results/")), "{what}: {said}");
                    kept_back += 1;
                }
            }
        }
        cluster.kill_manager();
        started += 1;
    }
    let figures =
        format!("{found} found, {started} started, {refused} refused, {kept_back} results kept back");
    say(&figures);
    assert!(found > 20 && started > 5, "{figures}");
}

#[expect(clippy::print_stderr, reason = "figures of a test whose cases may be others each time")]
fn say(figures: &str) {
    eprintln!("damaged state directories: {figures}");
}

/// Each edit is in a study of its own. All other studies continue.
#[test]
fn state_directory_with_edited_records_starts_and_keeps_the_other_studies() {
    let study = cluster::study(1, 64);
    let mut cluster = Cluster::new(&study);
    let first = cluster.submit(&[]);
    cluster.kill_manager();
    let folder = cluster.state.join("studies");
    let text = fs::read_to_string(folder.join(&first).join("submission.json")).expect("a submission");
    // The format of an earlier version, without checksums.
    let kept = serde_json::from_str::<Value>(&text).expect("JSON")["content"].clone();
    let ended = json!({"state": "complete", "message": null, "evaluations_done": 1, "tasks_executed": 1, "failed": 0});
    let submissions: [(&str, Value); 25] = [
        ("", json!(null)),
        ("", json!([])),
        ("/key", json!(7)),
        ("/submitted", json!("yesterday")),
        ("/submitted", json!("9999-12-31T23:59:59.999999999Z")),
        ("/submission", json!({})),
        ("/submission/version", json!(9)),
        ("/submission/build", json!("")),
        ("/submission/name", json!("two\nlines")),
        ("/submission/inputs", json!([])),
        ("/submission/inputs/0/digest", json!("0")),
        ("/submission/inputs/0/path", json!("")),
        ("/submission/inputs/0/bytes", json!(u64::MAX)),
        ("/submission/pixels", json!([])),
        ("/submission/pixels", json!([u64::MAX, u64::MAX])),
        ("/submission/evaluations", json!([])),
        ("/submission/evaluations/0", json!([])),
        ("/submission/plan/max_buckets", json!(0)),
        ("/submission/deadline", json!(u64::MAX)),
        ("/submission/budget", json!(-1)),
        ("/submission/study/metric", json!(99)),
        ("/submission/study/seed", json!(-1)),
        ("/submission/study/workflow/stages", json!([])),
        ("/submission/study/phases", json!([{}])),
        ("/submission/plan/overhead_seconds", json!(-1)),
    ];
    let ends: [(&str, Value); 7] = [
        ("", json!(null)),
        ("/state", json!("running")),
        ("/state", json!("over")),
        ("/evaluations_done", json!(-1)),
        ("/evaluations_done", json!(u64::MAX)),
        ("/message", json!(7)),
        ("/failed", json!({})),
    ];
    let edited = |whole: &Value, (place, value): &(&str, Value)| {
        let mut edited = whole.clone();
        match place.rsplit_once('/') {
            None => edited = value.clone(),
            Some((around, name)) => match edited.pointer_mut(around).expect("a place") {
                Value::Array(list) => list[name.parse::<usize>().expect("an index")] = value.clone(),
                around => around[name] = value.clone(),
            },
        }
        edited.to_string()
    };
    let write = |id: u32, name: &str, text: &str| {
        fs::create_dir_all(folder.join(id.to_string())).expect("a folder");
        fs::write(folder.join(id.to_string()).join(name), text).expect("written");
    };
    for (id, edit) in (10..).zip(&submissions) {
        write(id, "submission.json", &edited(&kept, edit));
        write(id + 100, "submission.json", &edited(&kept, edit));
        write(id + 100, "ended.json", &ended.to_string());
    }
    for (id, edit) in (50..).zip(&ends) {
        write(id, "submission.json", &kept.to_string());
        write(id, "ended.json", &edited(&ended, edit));
    }
    for (id, text) in [(60, ""), (61, "{"), (62, "\0\0\0\0"), (63, "{}")] {
        write(id, "submission.json", text);
        write(id + 10, "submission.json", &kept.to_string());
        write(id + 10, "ended.json", text);
    }
    write(80, "ended.json", &ended.to_string());
    ["0", "007", "-1", "x"].iter().for_each(|name| fs::create_dir(folder.join(name)).expect("a folder"));
    fs::write(folder.join("81"), "a file").expect("written");
    for (name, text) in [("spent.json", "{\"1\": -5}"), ("pod-costs.json", "{}")] {
        fs::write(cluster.state.join(name), text).expect("written");
    }
    assert_eq!(doctor(&cluster).code, 3);
    cluster.start_manager();
    // The intact study waits for workers. So does a new one, whose id was never used before.
    assert!(["queued", "running"].contains(&cluster.study_of(&first)["state"].as_str().expect("a state")));
    assert_eq!(cluster.submit(&[]), "135");
    // Unreadable submissions are set aside with their reasons and reported.
    let quarantine = cluster.state.join("quarantine");
    for id in [10, 11, 12, 13, 27, 60, 61, 62, 63, 80, 81, 110] {
        let reason = fs::read_to_string(quarantine.join(format!("study-{id}.reason.txt"))).expect("a reason");
        assert!(reason.contains(&format!("studies/{id}/submission.json: corrupt: ")), "{id}: {reason}");
        let told = cluster.ask(&["status", &id.to_string()]);
        assert!(told.code == 4 || id == 81, "{told:?}");
        assert!(told.stderr.contains("is in quarantine at") || id == 81, "{told:?}");
    }
    for id in [50, 51, 52, 53, 55, 56, 70, 71, 72, 73] {
        assert!(quarantine.join(format!("study-{id}-ended.json")).exists(), "{id}");
        assert_eq!(cluster.study_of(&id.to_string())["state"], "canceled", "it has no results");
    }
    assert_eq!(cluster.study_of("54")["state"], "complete");
    assert!(cluster.end_manager().success());
    // The manager's own files.
    for (name, text) in [
        ("manager.json", "{\"number\": 1, \"starts\": 4294967295}"),
        ("manager.json", "{\"number\": -1, \"starts\": 1}"),
        ("token", "short"),
    ] {
        let sound = fs::read(cluster.state.join(name)).expect("a file");
        fs::write(cluster.state.join(name), text).expect("written");
        let (code, said) = cluster.try_start_manager().expect_err("it starts");
        assert!(code == Some(2) && said.contains(name), "{name}: {code:?}: {said}");
        fs::write(cluster.state.join(name), sound).expect("written");
    }
}

#[test]
fn survivors_with_a_changed_name_between_phases_are_chosen_again() {
    let study = cluster::study(1, 128);
    study.edit(&[(METHOD, &phases(8))]);
    pleach(study.folder(), &["run", "study.toml", "--out", "alone", "--quiet"]).done();
    let indices = |out: &Path| fs::read(out.join(SECOND).join("indices.csv")).expect("indices");
    let mut cluster = Cluster::of(&study, 1);
    let id = cluster.submit(&[]);
    let results_of = cluster.state.join(format!("studies/{id}/results"));
    cluster.wait_until(|_| results_of.join(SECOND).join("journal").exists());
    cluster.kill_manager();
    // The state before the second phase began.
    fs::remove_dir_all(results_of.join(SECOND)).expect("removed");
    let file = results_of.join(FIRST).join("survivors.json");
    let written: Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("JSON");
    let swap = |list: &str| written[list][0].as_str().expect("a name").to_owned();
    let (kept, fixed) = (swap("survivors"), swap("fixed"));
    let text = written.to_string().replace(&format!("\"{kept}\""), "\"?\"");
    let text = text
        .replace(&format!("\"{fixed}\""), &format!("\"{kept}\""))
        .replace("\"?\"", &format!("\"{fixed}\""));
    fs::write(&file, text).expect("written");
    cluster.start_manager();
    cluster.wait_for_completion(&id);
    let out = cluster.path("out");
    cluster.ask(&["results", &id, "--out", &out.display().to_string()]).done();
    assert!(indices(&out) == indices(&study.path("alone")), "the second phase is another one");
    assert!(cluster.log("manager").contains("survivors.json: corrupt: "), "it is told");
}

#[test]
fn manager_whose_address_is_taken_is_refused_in_a_line() {
    let study = cluster::study(1, 64);
    let mut cluster = Cluster::to_be(&study);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    cluster.listen = taken.local_addr().expect("an address").to_string();
    let (code, said) = cluster.try_start_manager().expect_err("it starts");
    assert!(code == Some(2) && !said.contains("internal error"), "{code:?}: {said}");
}
