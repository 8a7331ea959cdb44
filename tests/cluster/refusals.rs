//! Requests and workers that a cluster refuses, with the reasons.

use crate::cluster::{self, Cluster};
use pleach_actors::transport::certs::{Authority, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use std::time::Duration;

#[test]
fn a_second_manager_on_one_folder_is_refused() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::new(&study);
    let output = cluster.manager_command().output().expect("it starts");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("locked by another manager"), "{text}");
}

#[test]
fn second_worker_of_one_name_is_refused_until_first_ends() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("w0", &[]);
    cluster.wait_until(|cluster| cluster.log("w0").contains("connected to manager"));
    let first = cluster.workers.remove("w0").expect("it runs");
    cluster.start_worker("w0", &["--ssd", "another"]);
    cluster.wait_until(|cluster| cluster.log("manager").contains("two workers are named w0"));
    cluster.workers.insert("first".to_owned(), first);
    // After the first worker is gone, the second one joins.
    cluster.kill_worker("first");
    cluster.wait_until(|cluster| cluster.log("manager").matches("worker w0 joined with").count() == 2);
}

#[test]
fn a_study_that_no_worker_can_hold_is_refused_with_the_numbers() {
    let study = cluster::study(2, 512);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("w0", &["--memory", "1MB"]);
    cluster.wait_for_workers();
    let answer = cluster.ask(&["submit", "study.toml"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("MB at once on a worker, and the largest worker has 1 MB"), "{answer:?}");
}

#[test]
fn client_without_worker_certificate_is_refused_with_reason() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::new(&study);
    let worker = |certs: &str| {
        cluster.call(&[
            "worker",
            "--manager",
            &cluster.listen,
            "--certs",
            certs,
            "--cores",
            "1",
            "--memory",
            "1GB",
        ])
    };
    let answer = worker("ca/me");
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(
        answer.stderr.contains("the certificate belongs to client me; a worker certificate is allowed"),
        "{answer:?}"
    );
    cluster.call(&["certs", "init", "--dir", "other"]).done();
    let issue = ["certs", "issue", "--dir", "other", "--name", "w9", "--role", "worker", "--out", "other/w9"];
    cluster.call(&issue).done();
    let answer = worker("other/w9");
    assert_eq!(answer.code, 4, "{answer:?}");
    assert!(answer.stderr.contains("refused this worker"), "{answer:?}");
}

#[test]
fn manager_with_client_certificate_is_refused_with_reason() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::new(&study);
    let answer = cluster.call(&["manager", "--state", "new", "--certs", "ca/me"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    let reason = "--certs ca/me: the certificate belongs to client me; a manager certificate is allowed (pleach certs issue --role \
                  manager)";
    assert!(answer.stderr.contains(reason), "{answer:?}");
}

#[test]
fn a_study_is_canceled() {
    let study = cluster::study(40, 256);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("w0", &[]);
    let id = cluster.submit(&[]);
    cluster.wait_for_responses(&id, 300);
    cluster.ask(&["cancel", &id]);
    assert_eq!(cluster.state_of(&id), "canceled");
    cluster.nothing_is_left();
    // The study stays canceled after a restart.
    cluster.kill_manager();
    cluster.start_manager();
    assert_eq!(cluster.state_of(&id), "canceled");
    cluster.wait_until(|cluster| cluster.log("w0").matches("connected to manager").count() == 2);
    cluster.nothing_is_left();
}

#[test]
fn a_worker_joins_with_a_token_once() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    let token = cluster.call(&["certs", "token", "--dir", "ca", "--single-use"]).done();
    let with_token = |name: &str| -> Vec<String> {
        ["--token", token.trim(), "--name", name].iter().map(ToString::to_string).collect()
    };
    let options = with_token("cloud1");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    std::fs::create_dir(cluster.path("ca/cloud1")).expect("a folder");
    cluster.start_worker("cloud1", &options);
    cluster.wait_until(|cluster| cluster.log("manager").contains("worker cloud1 joined with"));
    let certs = cluster.path("cloud2").display().to_string();
    let options = with_token("cloud2");
    let mut args =
        vec!["worker", "--manager", &cluster.listen, "--certs", &certs, "--cores", "1", "--memory", "1GB"];
    args.extend(options.iter().map(String::as_str));
    let answer = cluster.call(&args);
    assert_eq!(answer.code, 4, "{answer:?}");
    assert!(answer.stderr.contains("no certificate from"), "{answer:?}");
    assert!(
        cluster.log("cloud1").contains("connected to manager") && Duration::from_secs(1) < cluster::DEADLINE
    );
}

#[test]
fn a_worker_with_a_token_waits_for_its_manager() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    let token = cluster.call(&["certs", "token", "--dir", "ca"]).done().trim().to_owned();
    cluster.kill_manager();
    for name in ["cloud1", "cloud2"] {
        std::fs::create_dir(cluster.path(&format!("ca/{name}"))).expect("a folder");
        cluster.start_worker(name, &["--token", &token, "--name", name]);
        cluster.wait_until(|cluster| cluster.log(name).contains("; trying again"));
    }
    // SIGTERM ends the retries at once.
    cluster.ask_to_leave("cloud2");
    assert!(cluster.left("cloud2").success(), "{}", cluster.log("cloud2"));
    cluster.start_manager();
    cluster.wait_until(|cluster| cluster.log("manager").contains("worker cloud1 joined with"));
}

#[test]
fn a_certificate_that_is_over_is_replaced_where_there_is_a_token() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    let authority = Authority::open(&cluster.path("ca")).expect("an authority");
    let days_ago = |days: u32| SystemClock.now() - Duration::from_secs(86_400) * days;
    for (name, made) in [("old", days_ago(3)), ("good", days_ago(0))] {
        let identity = NodeIdentity { name: name.parse().expect("a name"), role: Role::Worker };
        let validity = Validity::days(1, made).expect("a day");
        authority.issue(&identity, validity, &cluster.path("ca").join(name)).expect("a certificate");
    }
    let certificate = |cluster: &Cluster<'_>, name: &str| {
        std::fs::read(cluster.path("ca").join(name).join("node.pem")).expect("a certificate")
    };
    let before = ["old", "good"].map(|name| certificate(&cluster, name));
    let token = cluster.call(&["certs", "token", "--dir", "ca"]).done().trim().to_owned();
    for name in ["old", "good"] {
        cluster.start_worker(name, &["--token", &token, "--name", name]);
        let joined = format!("worker {name} joined with");
        cluster.wait_until(|cluster| cluster.log("manager").contains(&joined));
    }
    let after = ["old", "good"].map(|name| certificate(&cluster, name));
    assert!(before[0] != after[0] && before[1] == after[1]);
}
