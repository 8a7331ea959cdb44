//! Tiers of a worker's regions, for placement by the manager.

use crate::storage::TransferCost;
use pleach_regions::RegionKey;
use pleach_workflow::TierKind;
use serde::{Deserialize, Serialize};

/// Maximum number of regions in a message: 18 KiB, which a worker sends once a second at most.
pub const MAX_REGION_TIERS: usize = 1024;

/// Tiers of regions of one worker, and the rates of its tiers. Sent after changes, at a limited rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionTiers {
    /// Regions and the kind of their spill tier, `None` for memory. At most [`MAX_REGION_TIERS`].
    pub regions: Vec<(RegionKey, Option<TierKind>)>,
    /// Measured costs of reads from its spill tiers.
    pub rates: Vec<(TierKind, TransferCost)>,
}
