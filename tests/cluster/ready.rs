//! Readiness of workers, as a cluster's probes see it, while the manager starts, restarts and ends, and during a drain.
//! `/healthz` responds all the time.

use crate::cluster::{self, Cluster};
use crate::watched::{address_of, asked, get};

impl Cluster<'_> {
    /// Waits until the readiness probe of a worker returns this status and text. Asserts that the worker is alive and
    /// exposes metrics.
    fn wait_for_readiness(&self, worker: &str, status: u16, text: &str) {
        let address = address_of(&self.log(worker));
        let ready = || asked(&format!("http://{address}/readyz"));
        self.wait_until(|_| {
            let (found, said) = ready();
            assert!(said.lines().count() == 1, "{said}");
            found == status && said.contains(text)
        });
        assert_eq!(asked(&format!("http://{address}/healthz")), (200, "ok\n".to_owned()));
        let measured = get(&format!("http://{address}/metrics"));
        let connected = format!("pleach_manager_connected {}", u8::from(status == 200));
        assert!(measured.lines().any(|line| line == connected), "{measured}");
    }
}

#[test]
fn worker_is_ready_while_connected_to_its_manager() {
    let study = cluster::study(160, 256);
    let mut cluster = Cluster::new(&study);
    let token = cluster.call(&["certs", "token", "--dir", "ca", "--ttl", "1h"]).done();
    let manager = cluster.listen.clone();
    cluster.kill_manager();
    // Without a manager, the worker gets no certificate for its token.
    let join = ["worker", "--manager", &manager, "--name", "w0", "--token", token.trim(), "--certs", "w0"];
    let options = ["--listen", "127.0.0.1:0", "--cores", "1", "--memory", "1GB", "--metrics", "127.0.0.1:0"];
    let args: Vec<String> = join.iter().chain(&options).map(|word| (*word).to_owned()).collect();
    cluster.called.insert("w0".to_owned(), args);
    cluster.start_worker("w0", &[]);
    cluster.wait_until(|cluster| cluster.log("w0").contains("metrics are at"));
    let not_yet = format!("the worker has not joined the manager at {manager} yet: no certificate: ");
    cluster.wait_for_readiness("w0", 503, &not_yet);
    cluster.start_manager();
    cluster.wait_for_readiness("w0", 200, "ok");
    // The connection is lost and restored while a study runs.
    let id = cluster.submit(&[]);
    cluster.wait_for_responses(&id, 1);
    cluster.kill_manager();
    cluster.wait_for_readiness("w0", 503, &format!("lost the connection to the manager at {manager}: "));
    cluster.start_manager();
    cluster.wait_for_readiness("w0", 200, "ok");
    // The worker has unreported work, so its drain takes time.
    let seen = cluster.journal_bytes(&id);
    cluster.wait_until(|cluster| cluster.has_ended(&id) || cluster.journal_bytes(&id) > seen);
    assert!(!cluster.has_ended(&id), "the study was too short to see anything");
    cluster.kill_manager();
    cluster.wait_for_readiness("w0", 503, "lost the connection");
    cluster.ask_to_leave("w0");
    cluster.wait_for_readiness("w0", 503, "the worker is draining");
    cluster.start_manager();
    let status = cluster.left("w0");
    let log = cluster.log("w0");
    assert!(status.success() && log.contains("the worker has left"), "{status}: {log}");
}

/// The worker has a certificate, so it waits only for the connection.
#[test]
fn worker_before_joining_is_not_ready() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    cluster.kill_manager();
    cluster.start_worker("w0", &["--metrics", "127.0.0.1:0"]);
    cluster.wait_until(|cluster| cluster.log("w0").contains("metrics are at"));
    cluster.wait_for_readiness("w0", 503, &format!("not joined the manager at {} yet", cluster.listen));
    cluster.start_manager();
    cluster.wait_for_readiness("w0", 200, "ok");
}
