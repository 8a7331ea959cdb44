//! Checks the deployment files against the binary. The grammar parses every command of the Helm chart, of Compose and
//! of the systemd units, and each worker's stop timeout matches its drain timeout.

#[path = "../../tests/support/chart.rs"]
mod chart;
mod documents;

use super::{Cli, Command};
use crate::tiers::TierList;
use chart::{Container, Tools, containers, root, strings};
use clap::Parser;
use pleach_actors::transport::identity::NodeName;
use pleach_server::pools::Pools;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that every deployment gives a worker beyond its drain timeout.
const GOODBYE: Duration = Duration::from_secs(15);

/// Call of the binary, and the container or unit that contains it.
struct Call {
    of: String,
    words: Vec<String>,
}

impl Call {
    fn parsed(&self) -> Command {
        match Cli::try_parse_from(&self.words) {
            Ok(cli) => cli.command,
            Err(error) => panic!("{}: {:?}: {error}", self.of, self.words),
        }
    }
}

/// Returns the calls of a container: its own command, or those in its script.
fn calls(container: &Container) -> Vec<Call> {
    let of = || container.of.clone();
    match container.command.first().map(String::as_str) {
        Some("pleach") => vec![Call { of: of(), words: container.command.clone() }],
        Some("/bin/sh") => {
            let script = container.command.last().expect("a script");
            let found = script.lines().filter_map(call_in).map(|text| words(text, container));
            found.map(|words| Call { of: of(), words: with_environment(words, container) }).collect()
        }
        _ => panic!("{}: {:?}", container.of, container.command),
    }
}

/// Returns the call in a line of shell, without redirections and following commands.
fn call_in(line: &str) -> Option<&str> {
    let from = line.find("pleach ")?;
    let is_call = from == 0 || line[..from].ends_with([' ', ';', '(']);
    let text = &line[from..];
    let ends = [" > ", " || ", " && ", "; ", ")"].iter().filter_map(|end| text.find(end)).min();
    is_call.then(|| &text[..ends.unwrap_or(text.len())])
}

/// Adds the options that client commands take from the container's environment, which differs from the test's.
fn with_environment(mut words: Vec<String>, container: &Container) -> Vec<String> {
    let speaks = ["status", "submit"].contains(&words[1].as_str());
    for (option, variable) in [("--manager", "PLEACH_MANAGER"), ("--certs", "PLEACH_CERTS")] {
        if let Some(value) = container.environment.get(variable).filter(|_| speaks) {
            words.extend([option.to_owned(), value.clone()]);
        }
    }
    words
}

/// Splits a line into words, as the shell of the container does.
fn words(line: &str, container: &Container) -> Vec<String> {
    let output = std::process::Command::new("sh")
        .args(["-euc", &format!("printf '%s\\n' {line}")])
        .envs(&container.environment)
        .output()
        .expect("a shell starts");
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

fn rendered(tools: &Tools) -> Vec<(PathBuf, Vec<Value>)> {
    let folder = root().join("helm/pleach/ci");
    let files = fs::read_dir(folder).expect("files of values").map(|entry| entry.expect("an entry").path());
    let render = |path: PathBuf| {
        let objects = tools.render(&["--values", path.to_str().expect("UTF-8")]).expect("objects");
        (path, objects)
    };
    let rendered: Vec<_> = files.map(render).collect();
    assert!(rendered.len() >= 4, "{}", rendered.len());
    rendered
}

#[test]
fn the_binary_knows_what_the_chart_calls() {
    let Some(tools) = Tools::of("the_binary_knows_what_the_chart_calls") else { return };
    for (values, objects) in rendered(&tools) {
        let mut names: Vec<&str> = Vec::new();
        for container in containers(&objects) {
            let found = calls(&container);
            assert!(!found.is_empty(), "{}: {}", values.display(), container.of);
            for call in found {
                names.push(match call.parsed() {
                    Command::Manager(args) => {
                        // Kubernetes mounts the service account at the default path of the option, and only with that
                        // option.
                        let mounted = &container.pod["automountServiceAccountToken"];
                        assert_eq!(*mounted, args.pod_deletion_cost, "{}", call.of);
                        let place = Path::new("/var/run/secrets/kubernetes.io/serviceaccount");
                        assert_eq!(args.service_account, place);
                        "manager"
                    }
                    Command::Worker(args) => {
                        args.name.expect("a name").parse::<NodeName>().expect("a pod's name");
                        let grace = container.pod["terminationGracePeriodSeconds"].as_u64().expect("seconds");
                        assert_eq!(args.drain_timeout.0 + GOODBYE, Duration::from_secs(grace), "{}", call.of);
                        let hook =
                            strings(&container.value["lifecycle"]["preStop"]["exec"]["command"]).join(" ");
                        assert!(hook.contains("kill -TERM 1"), "{hook}");
                        "worker"
                    }
                    Command::Certs(_) => "certs",
                    Command::Status(_) => "status",
                    Command::Tissue(_) => "tissue",
                    Command::Submit(_) => "submit",
                    other => panic!("{}: {other:?}", call.of),
                });
            }
        }
        names.sort_unstable();
        names.dedup();
        let all = ["certs", "manager", "status", "submit", "tissue", "worker"];
        let is_minimal = values.ends_with("minimal-values.yaml");
        let expected: Vec<_> =
            all.into_iter().filter(|name| !is_minimal || !["submit", "tissue"].contains(name)).collect();
        assert_eq!(names, expected, "{}", values.display());
    }
}

/// A call with an unknown option or an invalid value is refused, so the test above can fail.
#[test]
fn unknown_arguments_are_detected() {
    for (words, expected) in [
        ("worker --manager=m:1 --certs=c --drain-timout=5s", "--drain-timout"),
        ("worker --manager=m:1 --certs=c --drain-timeout=5", "a whole number and a unit are allowed"),
        ("worker --manager=m:1 --certs=c --token=t", "--name"),
        ("worker --certs=c", "--manager"),
        ("worker --manager=m:1 --certs=c --lustre=l --tiers=t", "cannot be used with"),
        ("manager --state=s --certs=c --listen=here", "invalid value"),
    ] {
        let words = std::iter::once("pleach").chain(words.split(' '));
        let refused = Cli::try_parse_from(words).expect_err(expected).to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

/// The tier files of the chart are valid. The test replaces their folders with existing ones.
#[test]
fn tiers_of_the_chart_can_be_read() {
    let Some(tools) = Tools::of("tiers_of_the_chart_can_be_read") else { return };
    let place = tempfile::tempdir().unwrap();
    for folder in ["regions", "lustre"] {
        fs::create_dir(place.path().join(folder)).unwrap();
    }
    let mut kinds = std::collections::BTreeSet::new();
    for (values, objects) in rendered(&tools) {
        for map in objects.iter().filter(|object| object["kind"] == "ConfigMap") {
            let Some(text) = map["data"]["tiers.toml"].as_str() else { continue };
            let text = text.replace("/var/cache/pleach", place.path().to_str().unwrap());
            // The disk of the test machine may be smaller than the stated capacity.
            let smaller = |line: &str| match line.strip_prefix("capacity = ") {
                Some(size) => {
                    size.trim_matches('"').parse::<pleach_planner::memory_size::MemorySize>().expect(size);
                    "capacity = \"1MiB\"".to_owned()
                }
                None => line.to_owned(),
            };
            let text: Vec<String> = text.lines().map(smaller).collect();
            let file = place.path().join("tiers.toml");
            fs::write(&file, text.join("\n")).unwrap();
            let list = TierList::read(&file).unwrap_or_else(|error| panic!("{}: {error}", values.display()));
            kinds.extend(list.0.iter().map(|entry| entry.kind.name()));
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["lustre", "s3", "ssd"]);
}

/// The pool file of the chart is valid, and the pod name of each worker of a scaled pool matches its pool.
#[test]
fn pools_of_the_chart_can_be_read() {
    let Some(tools) = Tools::of("pools_of_the_chart_can_be_read") else { return };
    let place = tempfile::tempdir().unwrap();
    let mut names: Vec<String> = Vec::new();
    for (values, objects) in rendered(&tools) {
        let text = objects.iter().find_map(|object| object["data"]["pools.toml"].as_str());
        let manager = containers(&objects).into_iter().find(|container| container.value["name"] == "manager");
        let given = manager.expect("a manager").command.iter().any(|word| word.starts_with("--pools="));
        assert_eq!(text.is_some(), given, "{}", values.display());
        let Some(text) = text else { continue };
        let file = place.path().join("pools.toml");
        fs::write(&file, text).unwrap();
        let pools = Pools::read(&file).unwrap_or_else(|error| panic!("{}: {error}", values.display()));
        for container in containers(&objects).iter().filter(|container| container.value["name"] == "worker") {
            let name = container.environment["POD_NAME"].as_str();
            let pool = pools.of(name).map(|number| pools.0[number].spec.name.clone());
            names.push(pool.unwrap_or_else(|| format!("none: {name}")));
        }
    }
    names.sort();
    // The pool base of the values "manager-scaled" has a fixed number of workers.
    assert_eq!(names, ["base", "large", "none: rel-pleach-base-5d8f9c7b6d-x2x9z", "spot", "spot"]);
}

#[test]
fn the_binary_knows_what_compose_calls() {
    let Some(tools) = Tools::of("the_binary_knows_what_compose_calls") else { return };
    let file = tools.read(&fs::read_to_string(root().join("deploy/compose.yaml")).unwrap()).remove(0);
    let mut count = 0;
    for (name, service) in file["services"].as_object().expect("services") {
        if service["image"] != "pleach" {
            continue;
        }
        let entry = strings(&service["entrypoint"]);
        // Without an entry point of its own, the service uses the image's.
        let entry = if entry.is_empty() { vec!["pleach".to_owned()] } else { entry };
        let container = Container {
            of: name.clone(),
            command: entry.into_iter().chain(strings(&service["command"])).collect(),
            environment: std::collections::BTreeMap::new(),
            value: service.clone(),
            pod: Value::Null,
        };
        for call in calls(&container) {
            count += 1;
            if let Command::Worker(args) = call.parsed() {
                let grace =
                    service["stop_grace_period"].as_str().expect("a time").parse::<super::Span>().unwrap();
                assert_eq!(args.drain_timeout.0 + GOODBYE, grace.0, "{name}");
                assert_eq!(args.name.as_deref(), Some(name.as_str()));
            }
        }
    }
    assert_eq!(count, 4 + 1 + 2, "certificates, a manager, workers");
}

#[test]
fn the_binary_knows_what_systemd_calls() {
    for (unit, options) in [("pleach-manager", ""), ("pleach-worker", "--manager 10.0.0.1:7117")] {
        let text = fs::read_to_string(root().join(format!("deploy/systemd/{unit}.service"))).unwrap();
        let after =
            |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).expect("a line").to_owned();
        let line = after("ExecStart=").replace("$PLEACH_MANAGER_OPTIONS", options);
        let line = line.replace("$PLEACH_WORKER_OPTIONS", options);
        let call = Call { of: unit.to_owned(), words: line.split_whitespace().map(str::to_owned).collect() };
        if let Command::Worker(args) = call.parsed() {
            let seconds = Duration::from_secs(after("TimeoutStopSec=").parse().unwrap());
            assert_eq!(args.drain_timeout.0 + GOODBYE, seconds);
        }
    }
}
