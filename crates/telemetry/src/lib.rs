//! What pleach measures.
//!
//! - [`catalog`]: every metric once: its name, kind, unit, labels and meaning;
//! - [`Exposition`]: what a process has measured, in Prometheus' text format;
//! - `process`: metrics of the process, which the exposition reads itself;
//! - [`markdown`]: the list for its readers, `docs/metrics.md`.
//!
//! Whoever measures takes a handle from the catalog and records with it, through the [`metrics`] facade: in a process that
//! has installed no exposition that does nothing. Nothing here knows what is measured, or when; HTTP is its users' as well.

pub mod catalog;
mod exposition;
mod family;
pub mod markdown;
mod process;

pub use exposition::{Exposition, ExpositionError};
pub use family::{
    Counter, Family, Gauge, Histogram, HistogramBuckets, Kind, ProcessRole, SeriesLifetime, Unit,
};
