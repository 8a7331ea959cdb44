//! A pipeline in Python on a cluster: the manager has neither its code nor a Python. Workers have it, get its code from the
//! client, or lack it.

use crate::cluster::{self, Cluster};
use crate::pleach::{Answer, pleach};
use crate::skipped;
use crate::study::Study;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the environment that `scripts/install-python` installs. `None`, with a line that names the test, if it cannot.
fn python(test: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install-python");
    let python = Command::new(script).output().expect("the script runs");
    if !python.status.success() {
        skipped(test, "no Python environment");
        return None;
    }
    Some(String::from_utf8(python.stdout).expect("UTF-8").trim().to_owned())
}

/// Makes a pipeline in Python beside a study of it. Returns the study, and its responses in one process.
fn pipeline(python: &str) -> (Study, String) {
    let study = cluster::study(4, 96);
    pleach(study.folder(), &["workflow", "new", "flow", "--python"]).done();
    let text = fs::read_to_string(study.path("flow/study.toml")).expect("a study");
    fs::write(study.path("study.toml"), text.replace("workflow.json", "flow/workflow.json"))
        .expect("written");
    let expected = run(&study, python, "alone");
    (study, expected)
}

/// Runs the study in one process. Returns its responses.
fn run(study: &Study, python: &str, out: &str) -> String {
    pleach(study.folder(), &["run", "study.toml", "--out", out, "--quiet", "--python", python]).done();
    fs::read_to_string(study.path(out).join("responses.csv")).expect("responses")
}

/// Copies the pipeline to a folder of its own, with another content of a function. Returns the manifest there.
fn edited(study: &Study) -> PathBuf {
    let folder = study.path("edited");
    fs::create_dir(&folder).expect("a folder");
    for name in ["density.py", "measure.py", "pleach.toml"] {
        fs::copy(study.path("flow").join(name), folder.join(name)).expect("copied");
    }
    let module = fs::read_to_string(folder.join("measure.py")).expect("a module");
    fs::write(folder.join("measure.py"), module.replace("density > level", "density > 0.9 * level"))
        .expect("written");
    folder.join("pleach.toml")
}

/// Returns the number of operations in Python that the workers lack.
fn missing(cluster: &Cluster<'_>) -> usize {
    let status = cluster.status();
    let workers = status["workers"].as_array().cloned().unwrap_or_default();
    let all = workers.iter().flat_map(|worker| worker["missing_operations"].as_array().cloned());
    all.flatten().filter(|name| name.as_str().is_some_and(|name| name.contains("python:"))).count()
}

/// Returns the remarks on a study, joined.
fn remarks(cluster: &Cluster<'_>, id: &str) -> String {
    let remarks = cluster.study_of(id)["remarks"].as_array().cloned().unwrap_or_default();
    remarks.iter().filter_map(|remark| remark.as_str().map(str::to_owned)).collect::<Vec<_>>().join("; ")
}

#[test]
fn workers_with_the_operations_run_them_and_others_do_not() {
    let Some(python) = python("workers_with_the_operations_run_them_and_others_do_not") else { return };
    let (study, expected) = pipeline(&python);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("without", &[]);
    let id = cluster.submit(&["--python", &python]);
    cluster.wait_until(|cluster| missing(cluster) > 0);
    assert_eq!(cluster.state_of(&id), "running", "it waits for a worker with the operations");
    let manifest = study.path("flow/pleach.toml");
    let with = ["--operations", manifest.to_str().expect("UTF-8"), "--python", &python];
    cluster.start_worker("first", &with);
    cluster.start_worker("second", &with);
    cluster.wait_for_responses(&id, 1);
    cluster.kill_worker("first");
    cluster.completed(&id);
    assert_eq!(cluster.responses(&id), expected);
    assert!(!cluster.log("without").contains("loaded python:"), "code of clients is not allowed there");
    cluster.nothing_is_left();
}

/// The manager reads the code from its input store: the client's folder is gone when the workers join.
#[test]
fn code_reaches_workers_that_allow_it() {
    let Some(python) = python("code_reaches_workers_that_allow_it") else { return };
    let (study, expected) = pipeline(&python);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("without", &[]);
    let id = cluster.submit(&["--python", &python]);
    fs::rename(study.path("flow"), study.path("gone")).expect("renamed");
    cluster.wait_until(|cluster| missing(cluster) > 0);
    let other = other_environment(&study, &python);
    cluster.start_worker("differs", &["--allow-code", "--python", &other]);
    cluster.wait_until(|cluster| remarks(cluster, &id).contains("differs refuses its code"));
    let text = remarks(&cluster, &id);
    assert!(text.contains("python:density.optical_density: numpy 2.2.6 -> 2.2.7"), "{text}");
    cluster.start_worker("first", &["--allow-code", "--python", &python]);
    cluster.start_worker("second", &["--allow-code", "--python", &python]);
    cluster.wait_for_responses(&id, 1);
    cluster.kill_worker("first");
    cluster.completed(&id);
    assert_eq!(cluster.responses(&id), expected);
    assert!(cluster.log("second").contains("loaded python:measure.threshold@"), "{}", cluster.log("second"));
    assert!(!cluster.log("without").contains("loaded python:"), "code of clients is not allowed there");
    cluster.nothing_is_left();
}

/// The worker runs the first stage, of built-in operations, while it loads the code of the second one: Python and a C program.
#[test]
fn code_arrives_while_a_study_runs() {
    let Some(python) = python("code_arrives_while_a_study_runs") else { return };
    let study = cluster::study(2, 128);
    let expected = cluster::expected(&study);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(study.path("mixed")).expect("a folder");
    for name in ["area.c", "area.py", "pleach.toml", "segmentation.json"] {
        fs::copy(root.join("examples/mixed").join(name), study.path("mixed").join(name)).expect("copied");
    }
    let workflow = fs::read_to_string(root.join("examples/mixed/workflow.json")).expect("a workflow");
    let absolute = workflow.replace("../../crates", root.join("crates").to_str().expect("UTF-8"));
    study.write("mixed/workflow.json", absolute);
    let compiled =
        Command::new("cc").args(["-o", "area", "area.c"]).current_dir(study.path("mixed")).status();
    assert!(compiled.is_ok_and(|status| status.success()));
    study.edit(&[("workflow = \"nuclei\"", "workflow = \"mixed/workflow.json\"")]);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("worker", &["--allow-code", "--python", &python]);
    cluster.wait_until(|cluster| cluster.log("manager").contains("worker worker has 0 external operations"));
    let id = cluster.submit(&["--python", &python]);
    fs::rename(study.path("mixed"), study.path("gone")).expect("renamed");
    cluster.completed(&id);
    assert_eq!(cluster.responses(&id), expected);
    for name in ["python:area.minimum_area@", "exec:maximum-area@"] {
        assert!(cluster.log("worker").contains(&format!("loaded {name}")), "{}", cluster.log("worker"));
    }
    cluster.nothing_is_left();
}

/// Workers with the operations and without accelerators do not run one that needs an accelerator, and the study says so. An
/// emulated device runs it.
#[test]
fn study_waits_for_a_worker_with_an_accelerator() {
    let Some(python) = python("study_waits_for_a_worker_with_an_accelerator") else { return };
    let (study, expected) = pipeline(&python);
    let manifest = study.path("flow/pleach.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let name = "name = \"python:measure.threshold\"\n";
    assert!(text.contains(name), "{text}");
    let declared = format!("{name}device = \"accelerator\"\ndevice_memory = \"1MB\"\n");
    fs::write(&manifest, text.replace(name, &declared)).expect("written");
    let manifest = manifest.to_str().expect("UTF-8");
    let mut cluster = Cluster::new(&study);
    let none = ["--python", &python, "--accelerators", "none"];
    cluster.start_worker("without", &[&none[..], &["--operations", manifest]].concat());
    cluster.start_worker("allows", &[&none[..], &["--allow-code"]].concat());
    let id = cluster.submit(&["--python", &python]);
    let waits = "waiting for a worker with an accelerator, which python:measure.threshold needs";
    cluster.wait_until(|cluster| remarks(cluster, &id).contains(waits));
    assert_eq!(cluster.state_of(&id), "running");
    let with = ["--python", &python, "--accelerators", "emulate:1x", "--operations", manifest];
    cluster.start_worker("with", &with);
    cluster.completed(&id);
    assert_eq!(cluster.responses(&id), expected);
    assert!(cluster.log("with").contains("accelerator: emulated 1x"), "{}", cluster.log("with"));
    cluster.nothing_is_left();
}

/// The worker has neither the code nor the libraries, but `uv`. Its Python is the system's.
#[test]
fn locked_environments_are_built_on_workers() {
    let Some(python) = python("locked_environments_are_built_on_workers") else { return };
    let (study, expected) = pipeline(&python);
    let project = "[project]\nname = \"flow\"\nversion = \"0\"\nrequires-python = \">=3.10\"\n";
    let libraries = "dependencies = [\"numpy==2.2.6\"]\n";
    fs::write(study.path("flow/pyproject.toml"), project.to_owned() + libraries).expect("written");
    let uv = Path::new(&python).join("bin/uv");
    for args in [&["lock"][..], &["sync", "--frozen", "--no-install-project"]] {
        let output =
            Command::new(&uv).args(args).current_dir(study.path("flow")).output().expect("uv starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // Only uv, not the libraries beside it.
    fs::create_dir(study.path("bin")).expect("a folder");
    std::os::unix::fs::symlink(&uv, study.path("bin/uv")).expect("linked");
    let mut cluster = Cluster::new(&study);
    let path = std::env::var("PATH").expect("a variable");
    cluster.environment.insert("PATH".to_owned(), format!("{}:{path}", study.path("bin").display()));
    cluster.start_worker("builder", &["--allow-code"]);
    let responses = cluster.submit_and_wait(&["--python", "flow/.venv"]);
    assert_eq!(responses, expected);
    assert!(cluster.log("builder").contains("loaded python:density.smooth@"), "{}", cluster.log("builder"));
    cluster.nothing_is_left();
}

/// Returns the message of a command that ended with exit code 2.
fn refused(answer: &Answer) -> String {
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    answer.stderr.clone()
}

/// Makes an environment with the same distributions. Only numpy has another version, by its metadata.
fn other_environment(study: &Study, python: &str) -> String {
    let folder = study.path("environment");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&folder).status();
    assert!(made.expect("python3 starts").success());
    let libraries = |folder: &Path| {
        let lib =
            fs::read_dir(folder.join("lib")).expect("a folder").next().expect("a version").expect("an entry");
        lib.path().join("site-packages")
    };
    let own = libraries(&folder);
    fs::write(own.join("others.pth"), libraries(Path::new(python)).to_str().expect("UTF-8"))
        .expect("written");
    let metadata = own.join("numpy-2.2.7.dist-info");
    fs::create_dir(&metadata).expect("a folder");
    fs::write(metadata.join("METADATA"), "Metadata-Version: 2.1\nName: numpy\nVersion: 2.2.7\n")
        .expect("written");
    folder.to_str().expect("UTF-8").to_owned()
}

#[test]
fn operations_that_differ_are_refused_with_the_differences_and_can_be_pinned() {
    let Some(python) = python("operations_that_differ_are_refused_with_the_differences_and_can_be_pinned")
    else {
        return;
    };
    let (study, expected) = pipeline(&python);
    let manifest = edited(&study);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("edited", &["--operations", manifest.to_str().expect("UTF-8"), "--python", &python]);
    let submit = ["submit", "study.toml", "--python", &python];
    cluster.wait_until(|cluster| cluster.log("manager").contains("worker edited has 4 external operations"));
    let text = refused(&cluster.ask(&submit));
    assert!(text.contains("worker edited has python:measure.measure@"), "{text}");
    assert!(text.contains("(measure.py changed)"), "{text}");
    assert!(!text.contains("python:density."), "{text}: those are the same");
    // The worker's names, as the message gives them.
    let names = text.split("has ").skip(1).filter_map(|rest| rest.split(' ').next());
    let pins: Vec<&str> = names.filter(|name| name.starts_with("python:measure.")).collect();
    assert_eq!(pins.len(), 2, "{text}");
    let mut options = vec!["--python", &python];
    pins.iter().for_each(|pin| options.extend(["--pin", pin]));
    let pinned = cluster.submit_and_wait(&options);
    assert_ne!(pinned, expected);
    fs::copy(study.path("edited/measure.py"), study.path("flow/measure.py")).expect("copied");
    assert_eq!(pinned, run(&study, &python, "again"), "the worker's code has run");
    let text = refused(&cluster.ask(&[
        "submit",
        "study.toml",
        "--python",
        &python,
        "--pin",
        "python:measure.area@12",
    ]));
    assert!(
        text.contains("--pin python:measure.area@12: NAME@DIGEST with 32 hex digits is allowed"),
        "{text}"
    );
    cluster.nothing_is_left();
}
