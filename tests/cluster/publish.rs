//! The files with the addresses that a manager publishes.

use crate::cluster::{self, Cluster, DEADLINE, LOOK_AGAIN};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Instant;

/// Starts a manager that publishes its addresses with this host, at free ports.
fn start(cluster: &Cluster<'_>, host: &str) -> (String, Child) {
    let log = File::create(cluster.path(&format!("{host}.log"))).expect("a log");
    let errors = log.try_clone().expect("a log");
    let mut command = cluster.manager_command();
    command.args(["--publish", "published", "--host", host]).stdout(log).stderr(errors);
    (host.to_owned(), command.stdin(Stdio::null()).spawn().expect("it starts"))
}

/// The ports for workers and clients, after the start.
fn ports(cluster: &Cluster<'_>, host: &str) -> Option<[String; 2]> {
    let log = cluster.log(host);
    let (_, rest) = log.split_once("workers connect to ")?;
    let (workers, rest) = rest.split_once(", clients to https://")?;
    let port = |address: &str| Some(address.lines().next()?.rsplit_once(':')?.1.to_owned());
    Some([port(workers)?, port(rest)?])
}

fn published(cluster: &Cluster<'_>) -> [String; 2] {
    ["address", "url"].map(|name| {
        fs::read_to_string(cluster.path(&format!("published/{name}")))
            .unwrap_or_else(|error| error.to_string())
    })
}

/// Of managers that start in the same moment, the one that runs publishes its addresses. Those that are refused do not.
#[test]
fn the_manager_that_runs_publishes_its_addresses() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::to_be(&study);
    fs::create_dir(cluster.path("published")).expect("a folder");
    for round in 0..3 {
        let begun = Instant::now();
        let mut managers: Vec<_> =
            (0..4).map(|number| start(&cluster, &format!("m{round}-{number}"))).collect();
        while managers.len() > 1 {
            assert!(begun.elapsed() < DEADLINE, "several managers run");
            std::thread::park_timeout(LOOK_AGAIN);
            managers.retain_mut(|(host, manager)| {
                let status = manager.try_wait().expect("a child");
                if let Some(status) = status {
                    let log = cluster.log(host);
                    assert!(status.code() == Some(2) && log.contains("locked by another manager"), "{log}");
                }
                status.is_none()
            });
        }
        let (host, mut manager) = managers.remove(0);
        cluster.wait_until(|cluster| ports(cluster, &host).is_some());
        let [workers, clients] = ports(&cluster, &host).expect("it runs");
        let expected = [format!("{host}:{workers}\n"), format!("https://{host}:{clients}\n")];
        assert_eq!(published(&cluster), expected);
        manager.kill().expect("it is ours");
        manager.wait().expect("it ends");
    }
    let mut names: Vec<String> = fs::read_dir(cluster.path("published"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names, ["address", "url"], "no parts are left");
    // Other users read the files, although the manager's umask keeps everything else from them.
    for name in names {
        let file = fs::metadata(cluster.path(&format!("published/{name}"))).expect("a file");
        assert_eq!(file.permissions().mode() & 0o777, 0o644);
    }
}

#[test]
fn addresses_that_cannot_be_published_are_refused() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::to_be(&study);
    fs::write(cluster.path("file"), "").expect("written");
    for (options, reason) in [
        (&["--publish", "file"][..], "--publish file/address: Not a directory"),
        (&["--publish", "missing"], "--publish missing/address: No such file or directory"),
        (
            &["--publish", ".", "--host", "node:7117"],
            "a host name or an IP address is allowed, without a port",
        ),
        (&["--publish", ".", "--host", ""], "a host name or an IP address is allowed, without a port"),
        (&["--host", "node"], "--publish <DIR>"),
    ] {
        let output = cluster.manager_command().args(options).output().expect("it starts");
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.code() == Some(2) && text.contains(reason), "{options:?}: {text}");
    }
    assert!(!cluster.path("address").exists());
}

#[test]
fn ipv6_hosts_are_published_in_brackets() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::to_be(&study);
    fs::create_dir(cluster.path("published")).expect("a folder");
    cluster.manager_options = ["--publish", "published", "--host", "2001:db8::7"].map(str::to_owned).to_vec();
    cluster.start_manager();
    let [workers, clients] = ports(&cluster, "manager").expect("it runs");
    let expected = [format!("[2001:db8::7]:{workers}\n"), format!("https://[2001:db8::7]:{clients}\n")];
    assert_eq!(published(&cluster), expected);
}
