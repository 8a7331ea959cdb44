//! Uploads entries to object storage from a thread of its own, several at once.
//!
//! The queue is bounded in bytes: beyond the bound entries are not stored, so that slow storage never slows a study. Regions go
//! before the traces that name them, since both come through one queue.

use super::contents::bundle_name;
use super::{InsertOutcome, REQUESTS_AT_ONCE, Shared};
use crate::label::UserTag;
use crate::stats::{CacheWarning, count};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// 256 MiB of entries wait for their upload at most.
const QUEUE_BYTES: u64 = 256 << 20;

/// 4 MiB: maximum bytes of a bundle, about 10,000 traces. Readers get 16 of them at once.
const BUNDLE_BYTES: u64 = 4 << 20;

/// 20 s between bundles: a killed worker loses the traces since, and a study leaves few objects.
const BUNDLE_EVERY: Duration = Duration::from_secs(20);

/// An entry to upload.
#[derive(Debug)]
pub(super) enum Upload {
    Region {
        user: String,
        name: String,
        bytes: Vec<u8>,
    },
    /// A record with its header.
    Trace {
        user: String,
        bytes: Vec<u8>,
    },
    /// Uploads everything before it, and answers.
    Flush(Sender<()>),
}

impl Upload {
    fn bytes(&self) -> u64 {
        match self {
            Self::Region { bytes, .. } | Self::Trace { bytes, .. } => bytes.len() as u64,
            Self::Flush(_) => 0,
        }
    }
}

/// Thread that uploads entries. Dropping it uploads the rest.
#[derive(Debug)]
pub(super) struct Uploader {
    /// `None` during drop.
    queue: Option<Sender<Upload>>,
    queued_bytes: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Uploader {
    pub(super) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let (queue, uploads) = mpsc::channel();
        let queued_bytes: Arc<AtomicU64> = Arc::default();
        let queued = Arc::clone(&queued_bytes);
        let work = move || UploadThread { shared, queued, traces: BTreeMap::new() }.run(&uploads);
        let thread = Builder::new().name("cache-upload".to_owned()).spawn(work)?;
        Ok(Self { queue: Some(queue), queued_bytes, thread: Some(thread) })
    }

    /// Queues an entry, unless the queue is full.
    pub(super) fn send(&self, upload: Upload) -> InsertOutcome {
        let bytes = upload.bytes();
        // Relaxed: the bound is approximate.
        if self.queued_bytes.load(Ordering::Relaxed) + bytes > QUEUE_BYTES {
            return InsertOutcome::Not;
        }
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let sent = self.queue.as_ref().map(|queue| queue.send(upload));
        if matches!(sent, Some(Ok(()))) { InsertOutcome::New } else { InsertOutcome::Not }
    }

    pub(super) fn flush(&self) {
        let (done, wait) = mpsc::channel();
        if self.queue.as_ref().is_some_and(|queue| queue.send(Upload::Flush(done)).is_ok()) {
            // Fails if the thread has panicked.
            let _ = wait.recv();
        }
    }
}

impl Drop for Uploader {
    fn drop(&mut self) {
        // The thread ends with its queue.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct UploadThread {
    shared: Arc<Shared>,
    queued: Arc<AtomicU64>,
    /// Records of the next bundle of each user.
    traces: BTreeMap<String, Vec<u8>>,
}

impl UploadThread {
    fn run(mut self, uploads: &Receiver<Upload>) {
        let (mut regions, mut bundled) = (Vec::new(), Instant::now());
        loop {
            // Also under a steady stream of entries.
            if bundled.elapsed() >= BUNDLE_EVERY {
                self.put_bundles();
                bundled = Instant::now();
            }
            match uploads.recv_timeout(BUNDLE_EVERY) {
                Ok(first) => {
                    // What is queued by now goes together.
                    let more = uploads.try_iter().take(REQUESTS_AT_ONCE * 4);
                    for upload in std::iter::once(first).chain(more) {
                        self.queued.fetch_sub(upload.bytes(), Ordering::Relaxed);
                        self.take(upload, &mut regions);
                    }
                    self.put(std::mem::take(&mut regions));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.put_bundles(),
            }
        }
    }

    fn take(&mut self, upload: Upload, regions: &mut Vec<(String, String, Vec<u8>)>) {
        match upload {
            Upload::Region { user, name, bytes } => regions.push((user, name, bytes)),
            Upload::Trace { user, bytes } => {
                let limits = self.shared.limits;
                // As the segments of a folder, so that eviction removes a small share of the user's traces.
                let bundle_bytes = limits.segment_bytes(UserTag::new(&user)).min(BUNDLE_BYTES);
                let bundle = self.traces.entry(user).or_default();
                bundle.extend(bytes);
                if bundle.len() as u64 >= bundle_bytes {
                    self.put(std::mem::take(regions));
                    self.put_bundles();
                }
            }
            Upload::Flush(done) => {
                self.put(std::mem::take(regions));
                self.put_bundles();
                // The caller may have gone.
                let _ = done.send(());
            }
        }
    }

    /// Uploads the traces so far.
    fn put_bundles(&mut self) {
        let bundles = std::mem::take(&mut self.traces).into_iter();
        let named = bundles.map(|(user, bundle)| {
            let name = bundle_name(UserTag::new(&user), &bundle);
            (user, name, bundle)
        });
        self.put(named.collect());
    }

    /// Uploads objects of users, in batches that fit into half of each limit.
    fn put(&self, objects: Vec<(String, String, Vec<u8>)>) {
        let limits = self.shared.limits;
        let (mut batch, mut of_users, mut all_bytes) = (Vec::new(), BTreeMap::<UserTag, u64>::new(), 0_u64);
        for object in objects {
            let (user, bytes) = (UserTag::new(&object.0), object.2.len() as u64);
            let of_user = of_users.get(&user).copied().unwrap_or(0) + bytes;
            let is_over = limits.quota(user).is_some_and(|(_, quota_bytes)| of_user > quota_bytes / 2);
            if is_over || all_bytes + bytes > limits.bytes / 2 {
                self.put_batch(std::mem::take(&mut batch));
                of_users.clear();
                all_bytes = 0;
            }
            *of_users.entry(user).or_default() += bytes;
            all_bytes += bytes;
            batch.push(object);
        }
        self.put_batch(batch);
    }

    /// Uploads objects, after making room for them.
    fn put_batch(&self, objects: Vec<(String, String, Vec<u8>)>) {
        if objects.is_empty() || self.shared.is_offline() {
            count(&self.shared.tally.not_stored, objects.len() as u64);
            return;
        }
        let written: Vec<(String, u64)> =
            objects.iter().map(|(_, name, bytes)| (name.clone(), bytes.len() as u64)).collect();
        let stored = self.make_room(&objects).and_then(|()| {
            self.shared.store.put(objects.into_iter().map(|(_, name, bytes)| (name, bytes)).collect())
        });
        match stored {
            Ok(()) => {
                let now_seconds = self.shared.now_seconds.load(Ordering::Relaxed);
                let mut contents = self.shared.contents.write();
                written.into_iter().for_each(|(name, bytes)| contents.add(name, bytes, now_seconds));
            }
            Err(error) => self.shared.fail(&error),
        }
    }

    /// Removes the oldest objects beyond the quotas of these objects' users and beyond the limit of the location.
    fn make_room(&self, objects: &[(String, String, Vec<u8>)]) -> io::Result<()> {
        let mut of_users: BTreeMap<&str, u64> = BTreeMap::new();
        for (user, _, bytes) in objects {
            *of_users.entry(user).or_default() += bytes.len() as u64;
        }
        let limits = self.shared.limits;
        for (user, extra_bytes) in &of_users {
            let Some((tag, quota_bytes)) = limits.quota(UserTag::new(user)) else { continue };
            let oldest = self.shared.contents.read().oldest(Some(tag), *extra_bytes, quota_bytes);
            if oldest.is_empty() {
                continue;
            }
            let bytes = oldest.iter().map(|(_, bytes)| bytes).sum();
            count(&self.shared.tally.quota_evicted_bytes, bytes);
            let user = (*user).to_owned();
            self.shared.reports.lock().add(CacheWarning::QuotaReached { user, quota_bytes });
            self.evict(oldest)?;
        }
        let oldest = self.shared.contents.read().oldest(None, of_users.values().sum(), limits.bytes);
        self.evict(oldest)
    }

    fn evict(&self, objects: Vec<(String, u64)>) -> io::Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = objects.into_iter().map(|(name, _)| name).collect();
        self.shared.store.remove(&names)?;
        count(&self.shared.tally.evicted, names.len() as u64);
        let mut contents = self.shared.contents.write();
        names.iter().for_each(|name| contents.forget(name));
        Ok(())
    }
}
