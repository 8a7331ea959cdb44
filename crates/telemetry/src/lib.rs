//! Metrics of pleach.
//!
//! - [`catalog`]: every metric with its name, kind, unit, labels and meaning
//! - [`Exposition`]: the measurements of a process in Prometheus' text format
//! - `process`: metrics of the process, which the exposition reads itself
//! - [`markdown`]: the reference `docs/metrics.md`
//!
//! Other crates take a handle from the catalog and record with it through the [`metrics`] facade. Without an installed
//! exposition, recording does nothing. Callers decide when to measure, and serve HTTP.

pub mod catalog;
mod exposition;
mod family;
pub mod markdown;
mod process;

pub use exposition::{Exposition, ExpositionError};
pub use family::{
    Counter, Family, Gauge, Histogram, HistogramBuckets, Kind, ProcessRole, SeriesLifetime, Unit,
};
