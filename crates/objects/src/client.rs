//! Connection to a bucket: configuration, runtime, uploads and errors, for the tier and for the task cache.

use crate::S3Location;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path as ObjectPath;
use object_store::{
    ClientOptions, Error, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    RetryConfig, WriteMultipart,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Maximum time for a server to accept a connection: 5 s.
const CONNECT_SECONDS: u64 = 5;

/// 16 MiB: part size of multipart uploads, used for larger objects. S3 allows 5 MiB to 5 GiB per part, and only a failed
/// part is resent.
const PART_BYTES: usize = 16 << 20;

/// 4 concurrent part uploads fill a line with a latency of a few ms.
const PARTS_AT_ONCE: usize = 4;

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// One attempt.
    pub(crate) request: Duration,
    /// All retries of transient failures.
    pub(crate) retry: Duration,
}

/// Configures the access to a bucket. Sends no request.
pub(crate) fn connect(bucket: &S3Location, timeouts: Timeouts) -> io::Result<Arc<dyn ObjectStore>> {
    // Only the first installed provider applies to the process. This program installs ring everywhere.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new()
        .with_connect_timeout(Duration::from_secs(CONNECT_SECONDS))
        .with_timeout(timeouts.request);
    let retry = RetryConfig { retry_timeout: timeouts.retry, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::from_env()
        .with_client_options(options)
        .with_retry(retry)
        .with_bucket_name(&bucket.name)
        .with_conditional_put(S3ConditionalPut::ETagMatch);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
    }
    if let Some(region) = &bucket.region {
        builder = builder.with_region(region);
    }
    Ok(Arc::new(builder.build().map_err(io::Error::other)?))
}

/// Starts a runtime, whose one thread handles the network for any number of callers.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name("objects").enable_all().build()
}

/// Converts an error of the storage.
pub(crate) fn system_error(error: Error) -> io::Error {
    let kind = match error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Uploads an object. A multipart upload replaces an object of the same name, since S3 has no conditional multipart upload.
/// Both have the same content. A failed upload removes its parts.
pub(crate) async fn put(
    store: &dyn ObjectStore,
    object: &ObjectPath,
    bytes: Vec<u8>,
) -> Result<PutResult, Error> {
    if bytes.len() <= PART_BYTES {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        return store.put_opts(object, PutPayload::from(bytes), options).await;
    }
    let upload = store.put_multipart_opts(object, PutMultipartOptions::default()).await?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    for part in bytes.chunks(PART_BYTES) {
        if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE).await {
            // If the removal fails, the rules of the bucket expire the parts.
            let _ = upload.abort().await;
            return Err(error);
        }
        upload.write(part);
    }
    // On failure, `finish` removes the parts itself.
    upload.finish().await
}
