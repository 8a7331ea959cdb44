//! Lossy, slow and interrupted networks between a manager and its workers.

use crate::chaos::seeds;
use crate::cluster::{self, Cluster, expected};
use crate::proxy::{Proxy, Weather};
use std::time::Duration;

#[test]
fn study_completes_under_packet_loss_delay_and_reordering() {
    let study = cluster::study(3, 128);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::new(&study);
        let weather = Weather { lost_of_1000: 50, delay: Duration::from_millis(50) };
        let proxy = Proxy::before(&cluster.listen, weather, seed);
        cluster.through = Some(proxy.address.to_string());
        cluster.start_workers(0..2);
        assert_eq!(cluster.submit_and_wait(&[]), expected, "seed {seed}");
    }
}

#[test]
fn worker_cut_off_for_10_s_reattaches() {
    let study = cluster::study(12, 256);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::new(&study);
        let fair = Weather { lost_of_1000: 0, delay: Duration::ZERO };
        let proxy = Proxy::before(&cluster.listen, fair, seed);
        cluster.start_worker("w0", &[]);
        cluster.through = Some(proxy.address.to_string());
        cluster.start_worker("w1", &[]);
        cluster.wait_until(|cluster| cluster.log("w1").contains("connected to manager"));
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, 300 + 100 * (seed % 7));
        proxy.cut(true);
        cluster.let_pass(Duration::from_secs(10));
        proxy.cut(false);
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        cluster.wait_until(|cluster| cluster.log("w1").matches("connected to manager").count() == 2);
    }
}
