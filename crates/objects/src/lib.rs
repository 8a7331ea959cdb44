//! S3 object storage as a tier of data regions (hop 7 of a study), and as a task cache, shared by the workers of a cluster.
//!
//! The caller decides which regions to store. Credentials come from the environment under Amazon's names
//! (`AWS_ACCESS_KEY_ID` etc.) or from the machine, never from files of pleach.

#[cfg(feature = "s3")]
mod client;
mod location;
#[cfg(feature = "s3")]
mod task_cache;
#[cfg(feature = "s3")]
mod tier;

pub use location::{InvalidLocation, S3Location};
#[cfg(feature = "s3")]
pub use task_cache::S3Objects;
#[cfg(feature = "s3")]
pub use tier::S3Tier;

use pleach_cache::Objects;
use pleach_storage::{TierError, TierMaintenance};
use std::io;
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
    let source = without_objects();
    Err(TierError::Io { action: "open the tier", path: bucket.address().into(), source })
}

/// Connects to an existing location for a task cache.
///
/// # Errors
/// Returns the error of the configuration, such as an invalid endpoint. Sends no request.
#[cfg(feature = "s3")]
pub fn open_task_cache(bucket: &S3Location) -> io::Result<Arc<dyn Objects>> {
    Ok(Arc::new(S3Objects::open(bucket)?))
}

/// Reports that this program was built without object storage.
///
/// # Errors
/// Always.
#[cfg(not(feature = "s3"))]
pub fn open_task_cache(_: &S3Location) -> io::Result<Arc<dyn Objects>> {
    Err(without_objects())
}

#[cfg(not(feature = "s3"))]
fn without_objects() -> io::Error {
    let text = "this program was built without object storage (cargo build --features s3)";
    io::Error::new(io::ErrorKind::Unsupported, text)
}
