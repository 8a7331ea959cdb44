//! Many workers request one region of one holder at once: those that have received it send it on.

use crate::cluster::{Cluster, patient, soon, until};
use crate::worker::Worker;
use pleach_regions::{DataRegion, Raster, RegionKey};
use std::sync::Arc;

fn key(n: u8) -> RegionKey {
    RegionKey([n; 16])
}

/// Returns a plane of noise.
fn plane(width: u32, height: u32) -> Arc<DataRegion> {
    let byte = |n: u32| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8;
    let data = (0..width * height).map(byte).collect();
    Arc::new(DataRegion::Gray8(Raster::new(width, height, 1, data).expect("as many bytes")))
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_send_a_region_on_to_those_that_wait() {
    const RECEIVERS: u64 = 12;
    let cluster = Cluster::new(patient());
    let (small, large) = (plane(100, 100), plane(4096, 8192));
    let holder = Worker::new(&cluster, "w0", None).holds(key(1), &small).holds(key(2), &large);
    let receivers: Vec<Worker> =
        (1..=RECEIVERS).map(|number| Worker::new(&cluster, &format!("w{number}"), None)).collect();
    // All are connected, so that their requests for the large region arrive before its first transfer has ended.
    for receiver in &receivers {
        assert_eq!(soon(receiver.exchange.fetch(key(1), &[holder.address()])).await.unwrap(), small);
    }
    let digest = large.digest();
    let fetching: Vec<_> = receivers
        .iter()
        .map(|receiver| tokio::spawn(receiver.exchange.fetch_result(key(2), digest, &[holder.address()])))
        .collect();
    // Kept by their readers until all have one.
    let mut fetched = Vec::new();
    for fetching in fetching {
        fetched.push(soon(fetching).await.unwrap().unwrap());
    }
    assert!(fetched.iter().all(|region| *region == large));
    let sent = |worker: &Worker| worker.exchange.counts().sent;
    until(|| sent(&holder) + receivers.iter().map(sent).sum::<u64>() == 2 * RECEIVERS).await;
    let (by_holder, by_receivers) = (sent(&holder) - RECEIVERS, receivers.iter().map(sent).sum::<u64>());
    assert!(by_holder <= RECEIVERS / 2, "{by_holder} by the holder, {by_receivers} by receivers");
}
