//! Spatial queries over the regions of this node, and over those that only peers hold.
//!
//! The holder of a region answers. The region stays with it: only the query and the found objects move. An index is built at
//! the first query of a region, and stays as long as the region is in memory.

use super::StorageActor;
use crate::exchange::QueryRegion;
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_dispatch::message::RegionAnswer;
use pleach_regions::{DataRegion, QueryError, RegionKey, SpatialIndex, SpatialQuery};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// Maximum number of objects in all indexes, about 200 MB. Beyond it, all indexes are dropped and built again on demand.
const MAX_INDEXED: usize = 1 << 20;

impl Handler<QueryRegion> for StorageActor {
    type Result = ResponseFuture<Option<RegionAnswer>>;

    fn handle(&mut self, asked: QueryRegion, _: &mut Self::Context) -> Self::Result {
        let QueryRegion { key, query, peers } = asked;
        let indexes = Arc::clone(&self.indexes);
        let (answer, answered) = oneshot::channel();
        // Off this thread, because building an index and reading a tier take long. The requester may have ended.
        if let Some(region) = self.ram.get(key) {
            self.pool.spawn(move || _ = answer.send(Some(indexes.answer(key, &region, &query))));
        } else if let Some(below) = self.spill.as_ref().filter(|below| below.bytes(key).is_some()) {
            let from = Arc::clone(below);
            below.send_read(key, move || {
                let found = from.get(key).map(|region| indexes.answer(key, &region, &query));
                let _ = answer.send(found);
            });
        } else if let Some(exchange) = self.exchange.as_ref().filter(|_| !peers.is_empty()) {
            return Box::pin(exchange.query(key, query, peers));
        } else {
            return Box::pin(async { None });
        }
        Box::pin(async move { answered.await.ok().flatten() })
    }
}

/// Indexes of the regions in memory.
#[derive(Debug, Default)]
pub(super) struct SpatialIndexes(Mutex<HashMap<RegionKey, KeptIndex>>);

#[derive(Debug)]
struct KeptIndex {
    /// The index ends with its region.
    region: Weak<DataRegion>,
    index: Arc<SpatialIndex>,
}

impl SpatialIndexes {
    fn answer(&self, key: RegionKey, region: &Arc<DataRegion>, query: &SpatialQuery) -> RegionAnswer {
        let found = self.index(key, region).and_then(|index| index.find(query));
        RegionAnswer { found, region_bytes: region.bytes(), moved_bytes: 0 }
    }

    /// Returns the index of a region, which the first call builds.
    fn index(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Arc<SpatialIndex>, QueryError> {
        if let Some(kept) = self.0.lock().get(&key).filter(|kept| kept.region.as_ptr() == Arc::as_ptr(region))
        {
            return Ok(Arc::clone(&kept.index));
        }
        // Built without the lock, which other queries need. Two first queries build it twice.
        let index = Arc::new(SpatialIndex::new(region)?);
        let mut kept = self.0.lock();
        kept.retain(|_, kept| kept.region.strong_count() > 0);
        let indexed: usize = kept.values().map(|kept| kept.index.len()).sum();
        if indexed + index.len() > MAX_INDEXED {
            kept.clear();
        }
        kept.insert(key, KeptIndex { region: Arc::downgrade(region), index: Arc::clone(&index) });
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::Points;

    #[test]
    fn index_is_built_once_and_ends_with_its_region() {
        let region = |x: f64| Arc::new(DataRegion::Points(Points::new(2, vec![x, 1.0]).unwrap()));
        let (indexes, first, second) = (SpatialIndexes::default(), region(1.0), region(2.0));
        let (key, other) = (RegionKey([1; 16]), RegionKey([2; 16]));
        let index = indexes.index(key, &first).unwrap();
        assert!(Arc::ptr_eq(&index, &indexes.index(key, &first).unwrap()), "one index for both queries");
        drop(first);
        let _ = indexes.index(other, &second).unwrap();
        assert_eq!(indexes.0.lock().keys().collect::<Vec<_>>(), [&other]);
        assert_eq!(Arc::strong_count(&index), 1);
        assert!(indexes.index(key, &Arc::new(DataRegion::Scalar(1.0))).is_err());
    }
}
