//! What pleach measures.
//!
//! - [`catalogue`]: every metric once: its name, kind, unit, labels and meaning;
//! - [`Exposition`]: what a process has measured, in Prometheus' text format;
//! - `process`: metrics of the process, which the exposition reads itself;
//! - [`mod@reference`]: the list for its readers, `docs/metrics.md`.
//!
//! Whoever measures takes a handle from the catalogue and records with it, through the [`metrics`] facade: in a process that
//! has installed no exposition that does nothing. Nothing here knows what is measured, or when; HTTP is its users' as well.

pub mod catalogue;
mod exposition;
mod family;
mod process;
pub mod reference;

pub use exposition::{Exposition, ExpositionError};
pub use family::{Buckets, Counter, Family, Gauge, Histogram, Kind, Life, Role, Unit};
