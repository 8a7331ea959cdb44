//! Why a worker gets a bucket.

use serde::{Deserialize, Serialize};

/// Why the manager grants a bucket to a worker. The worker counts its requests by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantReason {
    /// It answers the request for buckets of any stage.
    Request,
    /// It answers the request for a bucket of a later stage.
    LaterRequest,
    /// It answers no request: it is short, and comes along with a bucket of its stage, so that it waits for no message.
    Short,
}
