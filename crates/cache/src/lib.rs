//! Task cache on disk: results of earlier studies, reused by repeated, extended and resumed studies.
//!
//! The cache holds two kinds of entries:
//!
//! - a [`Trace`] under the [`CacheKey`] of a task instance: the content of its outputs (digest, bytes, small ones whole),
//!   its run time, the [`KeyComponents`] of its key, which explain a cache miss ([`Cache::nearest`]), and the study and user
//!   that it was made for ([`StudyLabel`]), for searches ([`Cache::search`]) and quotas;
//! - a *blob*: a data region under the digest of its content.
//!
//! Traces alone lead from the digests of tiles to responses without reading an image. Blobs let a study continue where
//! earlier ones agree with it.
//!
//! All content is verified: traces carry checksums, blobs are digested again. A corrupt entry counts as missing, is reported
//! ([`Cache::take_reports`]), and the caller computes it again. Entries may be lost at any time, so writes are not synced,
//! except for the marker of the folder.
//!
//! Any number of processes may use one folder at a time (`folder.rs` describes the locking). Modules, bottom up:
//! `pleach-files` (file system interface), `record.rs`, `segment.rs`, `folder.rs`, `index.rs` (locations of entries),
//! `writer.rs` and `eviction.rs` (new entries and eviction for them), `open.rs`, `cache.rs`. A cache may be in object storage
//! instead (`cache/in_objects.rs`).
//!
//! ```
//! use pleach_cache::{Cache, KeyComponents, Limits, Output, Trace};
//! use pleach_regions::{DataRegion, Digest, Raster};
//! use std::time::SystemTime;
//!
//! # let folder = tempfile::tempdir()?;
//! let limits = Limits { bytes: 1 << 30, ..Limits::default() };
//! let cache = Cache::open(folder.path(), limits, SystemTime::UNIX_EPOCH)?;
//! let components = KeyComponents {
//!     operation: "nuclei.candidate-area".to_owned(),
//!     version: 1,
//!     arguments: vec![("minSize".to_owned(), "11".to_owned())],
//!     inputs: vec![("bw1".to_owned(), Digest([7; 32]))],
//! };
//! let mask = DataRegion::Mask(Raster::filled(64, 64, 1, 255)?);
//! let digest = mask.digest();
//! let outputs = vec![Output::new(&mask, digest)];
//! cache.insert(components.key(), &Trace { outputs, seconds: 0.33, components: components.clone(), label: None });
//! cache.store(&digest, &mask, "alice");
//!
//! let known = cache.lookup(&components.key()).expect("it has just been stored");
//! assert_eq!(known.outputs[0].digest, digest);
//! assert_eq!(cache.load(&digest), Some(mask));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Time is an argument, and there is no randomness. The crate knows nothing of studies, workers and operations, and does not
//! decide which entries are worth storing.

mod cache;
mod compaction;
mod error;
mod eviction;
mod folder;
mod index;
mod key;
mod label;
mod open;
mod record;
mod segment;
mod stats;
mod trace;
mod writer;

pub use pleach_files as files;

pub use cache::{Cache, Difference, Entry, InsertOutcome, Nearest, ObjectInfo, Objects, PriorResults, Query};
pub use error::CacheError;
pub use eviction::Limits;
pub use folder::{EARLIER_MARKER, MARKER, MARKER_NAME};
pub use key::{CacheKey, KeyComponents};
pub use label::StudyLabel;
pub use open::Access;
pub use stats::{CacheStats, CacheWarning};
pub use trace::{INLINE_LIMIT_BYTES, Output, Trace};
