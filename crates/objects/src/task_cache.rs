//! Objects of a task cache in a bucket.
//!
//! A dedicated runtime does the network I/O while the caller waits. The times are short, since a study runs its tasks instead
//! of waiting for a cache that does not answer.

use crate::S3Location;
use crate::client::{self, Timeouts, put, system_error};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use pleach_cache::{ObjectInfo, Objects};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;

/// 10 s for one attempt: a region of 50 MB at 5 MB/s.
const REQUEST: Duration = Duration::from_secs(10);

/// 5 s of retries: enough for a server that restarts behind a load balancer.
const RETRY: Duration = Duration::from_secs(5);

/// 60 s for a call, such as the listing of a million objects or 64 uploads.
const DEADLINE: Duration = Duration::from_secs(60);

/// 16 concurrent requests: with 200 ms each, 80 in a second.
const REQUESTS_AT_ONCE: usize = 16;

/// Objects of a task cache in a bucket.
#[derive(Debug)]
pub struct S3Objects {
    store: Arc<dyn ObjectStore>,
    bucket: S3Location,
    /// `None` during drop.
    runtime: Option<Runtime>,
}

impl S3Objects {
    /// Configures the access to a location. Sends no request.
    ///
    /// # Errors
    /// Returns the error of the configuration.
    pub fn open(bucket: &S3Location) -> io::Result<Self> {
        let store = client::connect(bucket, Timeouts { request: REQUEST, retry: RETRY })?;
        Ok(Self { store, bucket: bucket.clone(), runtime: Some(client::runtime()?) })
    }

    fn path(&self, name: &str) -> ObjectPath {
        ObjectPath::from(format!("{}/{name}", self.bucket.prefix))
    }

    /// Runs an operation on the runtime and waits for it.
    fn perform<T: Send + 'static>(
        &self,
        action: &str,
        acting: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> io::Result<T> {
        let failed = |source: io::Error| {
            io::Error::new(source.kind(), format!("{action} {}: {source}", self.bucket.address()))
        };
        let Some(runtime) = &self.runtime else { return Err(failed(io::ErrorKind::BrokenPipe.into())) };
        // Waits on a channel, since `block_on` panics on a thread that drives another runtime.
        let (answer, wait) = mpsc::channel();
        runtime.spawn(async move {
            // The caller holds the receiver until the answer arrives, so sending cannot fail.
            let _ = answer.send(tokio::time::timeout(DEADLINE, acting).await);
        });
        match wait.recv() {
            Ok(Ok(done)) => done.map_err(|error| failed(system_error(error))),
            Ok(Err(_)) => Err(failed(io::ErrorKind::TimedOut.into())),
            // The task has panicked, and so closed its end of the channel.
            Err(_) => Err(failed(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl Objects for S3Objects {
    fn list(&self) -> io::Result<Vec<ObjectInfo>> {
        let (store, prefix) = (Arc::clone(&self.store), ObjectPath::from(self.bucket.prefix.as_str()));
        self.perform("list", async move {
            let found: Vec<_> = store.list(Some(&prefix)).try_collect().await?;
            let name = |path: &ObjectPath| {
                let within = path.as_ref().strip_prefix(prefix.as_ref()).unwrap_or(path.as_ref());
                within.trim_start_matches('/').to_owned()
            };
            let info = |object: object_store::ObjectMeta| ObjectInfo {
                name: name(&object.location),
                bytes: object.size,
                written_seconds: u64::try_from(object.last_modified.timestamp()).unwrap_or(0),
            };
            Ok(found.into_iter().map(info).collect())
        })
    }

    fn get(&self, names: &[String]) -> io::Result<Vec<Option<Vec<u8>>>> {
        let store = Arc::clone(&self.store);
        let paths: Vec<ObjectPath> = names.iter().map(|name| self.path(name)).collect();
        self.perform("read", async move {
            let get = |path: ObjectPath| {
                let store = Arc::clone(&store);
                async move {
                    match store.get(&path).await {
                        Ok(found) => Ok(Some(found.bytes().await?.to_vec())),
                        Err(Error::NotFound { .. }) => Ok(None),
                        Err(error) => Err(error),
                    }
                }
            };
            stream::iter(paths.into_iter().map(get)).buffered(REQUESTS_AT_ONCE).try_collect().await
        })
    }

    fn put(&self, objects: Vec<(String, Vec<u8>)>) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        let objects: Vec<(ObjectPath, Vec<u8>)> =
            objects.into_iter().map(|(name, bytes)| (self.path(&name), bytes)).collect();
        self.perform("write", async move {
            let put = |(path, bytes): (ObjectPath, Vec<u8>)| {
                let store = Arc::clone(&store);
                async move {
                    match put(&*store, &path, bytes).await {
                        // Another process has stored the same content first.
                        Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
                        Err(error) => Err(error),
                    }
                }
            };
            stream::iter(objects.into_iter().map(put)).buffer_unordered(REQUESTS_AT_ONCE).try_collect().await
        })
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        let paths: Vec<ObjectPath> = names.iter().map(|name| self.path(name)).collect();
        self.perform("remove from", async move {
            let remove = |path: ObjectPath| {
                let store = Arc::clone(&store);
                async move {
                    match store.delete(&path).await {
                        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                        Err(error) => Err(error),
                    }
                }
            };
            stream::iter(paths.into_iter().map(remove)).buffer_unordered(REQUESTS_AT_ONCE).try_collect().await
        })
    }
}

impl Drop for S3Objects {
    fn drop(&mut self) {
        // Waiting is not allowed on threads of another runtime, and no work is left to wait for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
