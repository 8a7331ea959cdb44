//! Object storage that speaks S3 as a tier of data regions (hop 7 of a study): what a burst into a cloud shares.
//!
//! Nothing here decides what goes there, and credentials are never read from files of ours: they come from the environment
//! as Amazon's own programs want them (`AWS_ACCESS_KEY_ID` and its like), or from the machine.

mod location;
#[cfg(feature = "s3")]
mod tier;

pub use location::S3Location;
#[cfg(feature = "s3")]
pub use tier::S3Tier;

use pleach_storage::{TierError, TierMaintenance};
use std::sync::Arc;

/// Opens a place that exists as a tier of so many bytes.
///
/// # Errors
/// [`TierError::Io`] when it cannot be reached or listed, or the program was built without the feature `s3`.
#[cfg(feature = "s3")]
pub fn open(bucket: &S3Location, capacity_bytes: u64) -> Result<Arc<dyn TierMaintenance>, TierError> {
    Ok(Arc::new(S3Tier::open(bucket, capacity_bytes)?))
}

/// Says that this program was built without object storage.
///
/// # Errors
/// [`TierError::Io`], always.
#[cfg(not(feature = "s3"))]
pub fn open(bucket: &S3Location, _: u64) -> Result<Arc<dyn TierMaintenance>, TierError> {
    let source = std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "this program was built without object storage (cargo build --features s3)",
    );
    Err(TierError::Io { action: "open the tier", path: bucket.address().into(), source })
}
