//! Results and content identities that are known before a study starts.

use super::Cache;
use crate::StudyLabel;
use pleach_regions::{RegionIdentity, RegionKey};
use std::collections::HashMap;
use std::sync::Arc;

/// Results and identities from before the study.
#[derive(Clone, Debug, Default)]
pub struct PriorResults {
    /// Task cache of earlier studies, if enabled.
    pub cache: Option<Arc<Cache>>,
    /// Content identities of the study's inputs. Equal identities mean equal regions, independent of their location.
    pub identities: Arc<HashMap<RegionKey, RegionIdentity>>,
    /// Label of new entries. `None` stores them without one, on no quota.
    pub label: Option<Arc<StudyLabel>>,
}
