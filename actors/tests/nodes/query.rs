//! Workers query regions that others hold.

use crate::cluster::{ANYWHERE, Cluster, patient, soon};
use crate::worker::Worker;
use actix::prelude::*;
use pleach_actors::exchange::QueryRegion;
use pleach_actors::storage::StorageActor;
use pleach_actors::transport::settings::Settings;
use pleach_regions::{DataRegion, Points, QueryError, RegionKey, Selection, SpatialIndex, SpatialQuery};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

fn key(n: u8) -> RegionKey {
    RegionKey([n; 16])
}

#[test]
fn holder_of_a_region_answers_a_query_and_keeps_the_region() {
    let cluster = Cluster::new(patient());
    let points = (0..2_000_u32).map(|n| f64::from(n.wrapping_mul(0x9e37_79b9) >> 20)).collect();
    let region = Arc::new(DataRegion::Points(Points::new(2, points).unwrap()));
    let selection = Selection::Nearest { at: vec![100.0, 200.0] };
    let query = SpatialQuery { selection, max_objects: 3, core: None };
    let expected = SpatialIndex::new(&region).unwrap().find(&query).unwrap();
    actix::System::new().block_on(async {
        let storage = |worker: &Worker| {
            let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
            let storage = StorageActor::new(HashMap::new(), pool, Arc::clone(&worker.ram));
            storage.with_exchange(worker.exchange.clone()).start()
        };
        let (near, far) = (Worker::new(&cluster, "w1", None), Worker::new(&cluster, "w2", None));
        let far = far.holds(key(1), &region);
        let (near_storage, far_storage) = (storage(&near), storage(&far));
        // The first address has no worker.
        let peers = vec![ANYWHERE, far.address()];
        let ask = |storage: &Addr<StorageActor>, key, peers: &[SocketAddr]| {
            soon(storage.send(QueryRegion { key, query: query.clone(), peers: peers.to_vec() }))
        };
        // Asked first, because a storage actor that has not started yet does not answer peers.
        let local = ask(&far_storage, key(1), &[]).await.unwrap().expect("the holder");
        assert_eq!((local.found, local.moved_bytes), (Ok(expected.clone()), 0));
        for _ in 0..2 {
            let answer = ask(&near_storage, key(1), &peers).await.unwrap().expect("a holder");
            assert_eq!((answer.found, answer.region_bytes), (Ok(expected.clone()), 16_000));
            assert!(answer.moved_bytes > 0 && answer.moved_bytes < 1_000, "{} bytes", answer.moved_bytes);
        }
        assert_eq!((near.ram.len(), near.exchange.counts().fetched, far.exchange.counts().sent), (0, 0, 0));
        assert_eq!(ask(&near_storage, key(2), &peers).await.unwrap(), None);
        let scalar = far.holds(key(3), &Arc::new(DataRegion::Scalar(1.0)));
        let refused = ask(&near_storage, key(3), &[scalar.address()]).await.unwrap().expect("a holder");
        assert!(matches!(refused.found, Err(QueryError::Element { .. })), "{refused:?}");
        // A peer that has gone has no answer. The asking worker gives it up after its time limit for silence.
        let hasty = Settings { idle: Duration::from_secs(2), ..patient() };
        let hasty_storage = storage(&Worker::with(&cluster, "w3", None, hasty));
        let gone = scalar.address();
        drop(far_storage);
        soon(scalar.exchange.close()).await;
        assert_eq!(ask(&hasty_storage, key(1), &[gone]).await.unwrap(), None);
    });
}
