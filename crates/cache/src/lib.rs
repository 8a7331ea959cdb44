//! What earlier studies computed, on disk: a study that is repeated, widened or resumed starts from what exists.
//!
//! Two kinds of entries, and nothing else:
//!
//! - a [`Trace`] under the [`CacheKey`] of a task instance: which content its outputs had (digest, bytes, small ones whole),
//!   how long it took, and the [`KeyComponents`] its key was made of, so that [`Cache::nearest`] can say why a key is not
//!   there;
//! - a *blob*: a data region under the digest of its content.
//!
//! Traces alone lead from the digests of tiles to responses without an image being read; blobs let a study go on from
//! where earlier ones agree with it.
//!
//! Nothing is believed that cannot be checked: traces carry checksums, blobs are digested again. What is damaged counts as
//! not there, is reported ([`Cache::take_reports`]), and whoever asked computes it again. Losing entries is
//! always allowed, and nothing is synced as it is written, but for what says whose folder it is.
//!
//! Any number of processes may use one folder at a time; `folder.rs` says how they keep out of each other's way. The way
//! through the crate, bottom up: `pleach-files` (what is asked of a file system), `record.rs`, `segment.rs`, `folder.rs`,
//! `index.rs` (where entries are), `writer.rs` and `eviction.rs` (where new ones go, and what goes for them), `open.rs`,
//! `cache.rs`.
//!
//! ```
//! use pleach_cache::{Cache, KeyComponents, Limits, Output, Trace};
//! use pleach_regions::{DataRegion, Digest, Raster};
//! use std::time::SystemTime;
//!
//! # let folder = tempfile::tempdir()?;
//! let limits = Limits { bytes: 1 << 30, age: None };
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
//! cache.insert(components.key(), &Trace { outputs, seconds: 0.33, components: components.clone() });
//! cache.store(&digest, &mask);
//!
//! let known = cache.lookup(&components.key()).expect("it has just been stored");
//! assert_eq!(known.outputs[0].digest, digest);
//! assert_eq!(cache.load(&digest), Some(mask));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Time is an argument and there is no randomness. The crate knows nothing of studies, workers and operations, and does
//! not decide what is worth keeping.

mod cache;
mod compaction;
mod error;
mod eviction;
mod folder;
mod index;
mod key;
mod nearest;
mod open;
mod record;
mod segment;
mod stats;
mod trace;
mod writer;

pub use pleach_files as files;

pub use cache::{Cache, InsertOutcome};
pub use error::CacheError;
pub use key::{CacheKey, KeyComponents};
pub use nearest::{Difference, Nearest};
pub use open::{Access, Limits};
pub use stats::{CacheStats, CacheWarning};
pub use trace::{INLINE_LIMIT_BYTES, Output, Trace};
