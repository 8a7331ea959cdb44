//! Interrupted downloads of results: the folder is unchanged, and the repeated command writes the same bytes as an
//! undisturbed download.

use crate::cluster::{self, Cluster};
use crate::gate::Gate;
use crate::mounted::Disk;
use crate::place::Place;
use crate::pleach::{Answer, answer, pleach};
use crate::skipped;
use crate::study::Study;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// All files below a folder, hidden ones included, by relative path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().into_string().expect("UTF-8");
        if entry.path().is_dir() {
            let within = files(&entry.path()).into_iter();
            found.extend(within.map(|(file, content)| (format!("{name}/{file}"), content)));
        } else {
            found.insert(name, fs::read(entry.path()).expect("a file"));
        }
    }
    found
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        names.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// A manager with a complete study behind a [`Gate`], and the folder for its results.
struct Site<'a> {
    cluster: Cluster<'a>,
    id: String,
    gate: Gate,
    /// Files of an undisturbed download.
    expected: BTreeMap<String, Vec<u8>>,
    /// Response bytes of an undisturbed download.
    answers_bytes: u64,
}

impl<'a> Site<'a> {
    fn new(study: &'a Study) -> Self {
        let mut cluster = Cluster::of(study, 1);
        let id = cluster.submit(&[]);
        cluster.wait_for_completion(&id);
        cluster.ask_to_leave("w0");
        assert!(cluster.left("w0").success());
        let gate = Gate::before(&cluster.http);
        fs::create_dir(cluster.path("brought")).expect("a folder");
        let mut site = Self { cluster, id, gate, expected: BTreeMap::new(), answers_bytes: 0 };
        site.bring("undisturbed").done();
        site.answers_bytes = site.gate.passed_bytes();
        site.expected = files(&site.cluster.path("undisturbed"));
        assert!(
            site.expected.len() > 5 && site.expected.contains_key("plan.json"),
            "{:?}",
            site.expected.keys()
        );
        site
    }

    fn command(&self, out: &str, place: &Place) -> Command {
        let mut command = place.command(assert_cmd::cargo::cargo_bin!("pleach"));
        command.current_dir(self.cluster.path("")).args(["results", &self.id, "--out", out]);
        command.args(["--manager", &format!("https://{}", self.gate.address), "--timeout", "1s"]);
        command.arg("--certs").arg(self.cluster.path("ca/me"));
        command
    }

    fn bring(&self, out: &str) -> Answer {
        answer(&mut self.command(out, &Place::default()))
    }

    /// Starts a download into `brought/out` and waits until it stalls halfway.
    fn stalled(&self) -> Child {
        self.gate.open(self.answers_bytes / 2);
        let mut command = self.command("brought/out", &Place::default());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        self.cluster.wait_until(|_| self.gate.is_stalled());
        child
    }

    /// Repeats the download. Asserts that it succeeds and leaves nothing but the results.
    fn repeated(&self) {
        self.gate.open(u64::MAX);
        let said = self.bring("brought/out").done();
        assert!(said.contains(&format!("{} files of study", self.expected.len())), "{said}");
        assert!(files(&self.cluster.path("brought/out")) == self.expected, "other bytes");
        assert_eq!(names(&self.cluster.path("brought")), ["out"]);
    }
}

fn output(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("a child");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

#[test]
fn download_killed_is_repeated_to_the_same_bytes() {
    let study = cluster::study(2, 64);
    let site = Site::new(&study);
    let mut child = site.stalled();
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    // The partial download is in a hidden folder and does not count as results.
    assert_eq!(names(&site.cluster.path("brought")), [".out.pleach-results"]);
    assert!(!files(&site.cluster.path("brought")).is_empty());
    site.repeated();
}

#[test]
fn download_interrupted_exits_5_and_is_repeated_to_the_same_bytes() {
    let study = cluster::study(2, 64);
    let site = Site::new(&study);
    for signal in ["INT", "TERM"] {
        let child = site.stalled();
        let kill = Command::new("bash").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
        assert!(kill.expect("bash starts").success());
        let (code, said) = output(child);
        let expected = format!(
            "interrupted: brought/out is unchanged; pleach results {} --out brought/out restarts the download\n",
            site.id
        );
        assert_eq!((code, said), (Some(5), expected));
        assert!(names(&site.cluster.path("brought")).is_empty());
    }
    site.repeated();
}

#[test]
fn download_without_its_manager_is_repeated_to_the_same_bytes() {
    let study = cluster::study(2, 64);
    let mut site = Site::new(&study);
    let child = site.stalled();
    site.cluster.kill_manager();
    site.gate.cut();
    let (code, said) = output(child);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("cannot reach the manager"), "{said}");
    assert!(names(&site.cluster.path("brought")).is_empty());
    site.cluster.start_manager();
    site.repeated();
}

#[test]
fn download_onto_a_full_disk_is_repeated_to_the_same_bytes() {
    let study = cluster::study(2, 64);
    let site = Site::new(&study);
    let Some(disk) = Disk::tmpfs(&site.cluster.path("disk"), 4) else {
        let test = "download_onto_a_full_disk_is_repeated_to_the_same_bytes";
        return skipped(test, "the system does not let us mount");
    };
    let place = Place { way: disk.way(), ..Place::default() };
    let filler = disk.fill();
    let file = fs::File::options().write(true).open(&filler).expect("it is there");
    let room = site.expected.values().map(Vec::len).sum::<usize>() as u64 / 2;
    file.set_len(file.metadata().expect("a file").len() - room).expect("it gets shorter");
    // The file must be closed: an open file keeps its space.
    drop(file);
    // A folder on the disk, and the mount point itself, whose parent is on another disk.
    for out in ["disk/out", "disk"] {
        let refused = answer(&mut site.command(out, &place));
        assert!([2, 6].contains(&refused.code), "{refused:?}");
        assert!(refused.stderr.contains("No space left on device"), "{refused:?}");
        assert_eq!(names(&disk.seen()), ["filler"]);
    }
    fs::remove_file(filler).expect("it is there");
    answer(&mut site.command("disk/out", &place)).done();
    assert!(files(&disk.seen()) == files_in("out", &site.expected), "other bytes");
    fs::remove_dir_all(disk.seen().join("out")).expect("it is there");
    answer(&mut site.command("disk", &place)).done();
    assert!(files(&disk.seen()) == site.expected, "other bytes");
}

fn files_in(folder: &str, all: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    all.iter().map(|(name, content)| (format!("{folder}/{name}"), content.clone())).collect()
}

#[test]
fn download_over_a_truncated_plan_is_repeated_to_the_same_bytes() {
    let study = cluster::study(2, 64);
    let site = Site::new(&study);
    site.repeated();
    let path = |name: &str| site.cluster.path("brought/out").join(name);
    let cut = |name: &str, parts: u64| {
        let file = fs::File::options().write(true).open(path(name)).expect("it is there");
        file.set_len(file.metadata().expect("a file").len() * parts / 4).expect("it gets shorter");
    };
    for parts in [2, 0] {
        cut("plan.json", parts);
        // A truncated plan does not identify its study, so the error must not claim another study.
        let run = ["run", "study.toml", "--quiet", "--out"];
        let out = site.cluster.path("brought/out").display().to_string();
        let refused = pleach(study.folder(), &[&run[..], &[&out]].concat());
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused.stderr.contains("plan.json, which identifies the study") && refused.stderr.contains("is \
                                                                                                         corrupt"),
            "{refused:?}"
        );
        site.repeated();
    }
    // The state that older versions left: some files, one of them truncated, and none that identifies the study.
    for name in ["plan.json", "run.json", "report.html"] {
        fs::remove_file(path(name)).expect("it is there");
    }
    cut("indices.csv", 1);
    fs::write(path("report.html.part"), "<html>").expect("a file");
    site.repeated();
    // Existing target folders: an empty one, and the current folder of the command.
    for (out, place) in [("../empty", "here"), (".", "here")] {
        let folder = site.cluster.path(place).join(out);
        for folder in [&site.cluster.path(place), &folder] {
            fs::create_dir_all(folder).expect("a folder");
        }
        answer(site.command(out, &Place::default()).current_dir(site.cluster.path(place))).done();
        assert!(files(&folder) == site.expected, "{out}: other bytes");
    }
    // Files of other studies stay.
    cut("plan.json", 2);
    fs::write(path("failed.csv"), "theirs\n").expect("a file");
    let before = files(&site.cluster.path("brought"));
    let refused = site.bring("brought/out");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("is corrupt") && refused.stderr.contains("failed.csv"), "{refused:?}");
    assert!(files(&site.cluster.path("brought")) == before, "something was changed");
}
