//! `deploy/kubernetes/accept` with stand-ins of kubectl, helm and pleach: the order of its steps, its exit codes, and its leftovers.
//! Only a real cluster shows whether the steps succeed there.

use crate::chart::{Tools, root};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the script with stand-ins that keep their state in a folder.
fn accept(state: &Path, fails: &str, options: &[&str]) -> Output {
    for (file, content) in [("replicas", "1"), ("ready", "1"), ("uid", "first"), ("calls", "")] {
        fs::write(state.join(file), content).expect("a file");
    }
    let stand_ins = root().join("tests/chart/accept");
    let path = std::env::var("PATH").expect("a path");
    Command::new(root().join("deploy/kubernetes/accept"))
        .args(["--image", "registry:5000/pleach:0.1.0", "--timeout", "20"])
        .args(options)
        .env("PATH", format!("{}:{path}", stand_ins.display()))
        .env("STAND_IN", state)
        .env("STAND_IN_FAILS", fails)
        .output()
        .expect("bash starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The steps of an output, without their seconds.
fn steps(output: &Output) -> Vec<String> {
    text(&output.stdout).lines().map(|line| line.split(" (").next().unwrap_or(line).to_owned()).collect()
}

#[test]
fn acceptance_goes_through_all_steps_and_leaves_nothing() {
    let state = tempfile::tempdir().expect("a folder");
    let output = accept(state.path(), "", &["--", "--set", "image.pullPolicy=Always"]);
    assert!(output.status.success(), "{output:?}");
    let expected = [
        "pass prepare: tiles and expected responses",
        "pass create the namespace",
        "pass install the chart",
        "pass helm test",
        "pass fetch the client's certificate",
        "pass a study has the responses of pleach run",
        "pass a deadline scales the pool up",
        "pass a killed pod is replaced",
        "pass the manager restarts",
        "pass the study has the responses of pleach run",
        "pass the pool is scaled down after the study",
        "pass uninstall",
        "pass remove the namespace",
        "pass: all steps",
    ];
    assert_eq!(steps(&output), expected);
    assert!(!state.path().join("namespace").exists() && !state.path().join("installed").exists());
    let calls = fs::read_to_string(state.path().join("calls")).expect("calls");
    assert!(calls.contains("image.pullPolicy=Always"), "{calls}");
}

#[test]
fn failed_step_is_named_and_the_namespace_is_removed() {
    for (fails, line, is_kept) in [
        ("test", "FAIL helm test: the test pod failed", false),
        ("test", "FAIL helm test: the test pod failed", true),
        ("responses", "FAIL the study has the responses of pleach run: ", false),
    ] {
        let state = tempfile::tempdir().expect("a folder");
        let output = accept(state.path(), fails, if is_kept { &["--keep"] } else { &[] });
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = steps(&output);
        assert!(said.last().is_some_and(|last| last.starts_with(line)), "{said:?}");
        assert!(text(&output.stderr).contains("pods and logs"), "{output:?}");
        assert_eq!(state.path().join("namespace").exists(), is_kept, "{fails}");
    }
    // A namespace that exists is not touched.
    let state = tempfile::tempdir().expect("a folder");
    fs::write(state.path().join("namespace"), "").expect("a file");
    let output = accept(state.path(), "", &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stdout).contains("pleach-accept exists; a name that no namespace has"),
        "{output:?}"
    );
    assert!(state.path().join("namespace").exists());
}

#[test]
fn wrong_arguments_are_refused() {
    let state = tempfile::tempdir().expect("a folder");
    for (options, expected) in [
        (&["--image", "pleach"][..], "--image: \"pleach\"; REPOSITORY:TAG is required"),
        (&["--timeout", "soon"], "--timeout: \"soon\"; a number of seconds is allowed"),
        (&["--color"], "--color: unknown; "),
        (&["--namespace"], "--namespace: missing; a value is required"),
        (&["--pleach", "no-such-program"], "no-such-program is missing"),
    ] {
        let output = accept(state.path(), "", options);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(expected), "{output:?}");
        assert_eq!(fs::read_to_string(state.path().join("calls")).expect("calls"), "");
    }
}

/// The linter accepts the script, and the chart its values.
#[test]
fn the_acceptance_is_checked_and_its_values_render() {
    let Some(tools) = Tools::of("the_acceptance_is_checked_and_its_values_render") else { return };
    let state = tempfile::tempdir().expect("a folder");
    assert!(accept(state.path(), "", &[]).status.success());
    let values = state.path().join("values.yaml");
    let objects = tools.render(&["--values", values.to_str().expect("UTF-8")]).expect("objects");
    let pool = objects.iter().find(|object| object["kind"] == "Deployment").expect("a pool");
    let image = &pool["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry:5000/pleach:0.1.0");
    let scripts = [
        "deploy/kubernetes/accept",
        "tests/chart/accept/helm",
        "tests/chart/accept/kubectl",
        "tests/chart/accept/pleach",
    ];
    assert_eq!(tools.call("shellcheck", &scripts), Ok(String::new()));
    // The checker detects an error.
    let wrong = state.path().join("wrong");
    let text = fs::read_to_string(root().join(scripts[0])).expect("a script");
    fs::write(&wrong, text.replacen("rm -rf -- \"$work\"", "rm -rf $work", 1)).expect("a file");
    let found = tools.call("shellcheck", &[wrong.to_str().expect("UTF-8")]).expect_err("it is wrong");
    assert!(found.contains("SC2086"), "{found}");
}
