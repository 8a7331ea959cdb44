//! Spatial queries over regions that workers hold.

use pleach_regions::{FoundObjects, QueryError, RegionKey, SpatialQuery};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Queries over regions, for a worker that answers for itself and for its peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionQueries {
    /// Number of the call, for the answers.
    pub call: u64,
    /// The regions, each with its number in the call and its query. A region may have several queries.
    pub regions: Vec<(u32, RegionKey, SpatialQuery)>,
    /// Addresses of the other workers, which may hold regions that this one lacks.
    pub peers: Vec<SocketAddr>,
}

/// Answer for one region of [`RegionQueries`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectsFound {
    /// Number of the call.
    pub call: u64,
    /// Number of the region in the call.
    pub number: u32,
    /// `None` if neither this worker nor a peer holds the region.
    pub answer: Option<RegionAnswer>,
}

/// Answer from the holder of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionAnswer {
    /// The objects, or the reason for a query without an answer.
    pub found: Result<FoundObjects, QueryError>,
    /// Bytes of the region, which stays with its holder.
    pub region_bytes: u64,
    /// Bytes of request and answer between workers. 0 if the asked worker holds the region.
    pub moved_bytes: u64,
}
