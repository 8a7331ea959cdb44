//! S3 object storage as a tier of data regions (hop 7 of a study), shared by the workers of a burst into a cloud.
//!
//! The caller decides which regions to store. Credentials come from the environment under Amazon's names
//! (`AWS_ACCESS_KEY_ID` etc.) or from the machine, never from files of pleach.

mod location;
#[cfg(feature = "s3")]
mod tier;

pub use location::S3Location;
#[cfg(feature = "s3")]
pub use tier::S3Tier;

use pleach_storage::{TierError, TierMaintenance};
use std::sync::Arc;

/// Opens an existing location as a tier of `capacity_bytes`.
///
/// # Errors
/// Returns [`TierError::Io`] if it cannot be reached or listed, or the program was built without the feature `s3`.
#[cfg(feature = "s3")]
pub fn open(bucket: &S3Location, capacity_bytes: u64) -> Result<Arc<dyn TierMaintenance>, TierError> {
    Ok(Arc::new(S3Tier::open(bucket, capacity_bytes)?))
}

/// Reports that this program was built without object storage.
///
/// # Errors
/// Always returns [`TierError::Io`].
#[cfg(not(feature = "s3"))]
pub fn open(bucket: &S3Location, _: u64) -> Result<Arc<dyn TierMaintenance>, TierError> {
    let source = std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "this program was built without object storage (cargo build --features s3)",
    );
    Err(TierError::Io { action: "open the tier", path: bucket.address().into(), source })
}
