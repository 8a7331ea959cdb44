//! Metric families: kind, unit, labels, and handles that record values.
//!
//! Looking up a handle by name and labels takes some 100 ns, so frequent events keep their handle. Handles of a
//! metric whose series end ([`SeriesLifetime::Sampled`]) must not be kept: they would record into a series that is
//! no longer exposed.

use metrics::{Key, Label, Level, Metadata};

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sum that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

impl Kind {
    /// Returns the name in Prometheus' text format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of objects or events.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// The currency of the configured prices.
    Money,
}

/// Processes that have a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRole {
    /// `pleach manager`.
    Manager,
    /// `pleach worker`.
    Worker,
    /// Both.
    Both,
}

impl ProcessRole {
    /// Returns the name in documents and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Worker => "worker",
            Self::Both => "both",
        }
    }

    /// Returns whether a process of this role has the metrics of `other`.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self == other || other == Self::Both || self == Self::Both
    }
}

/// Lifetime of a metric's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesLifetime {
    /// As long as the process: recorded at each event. Its labels have few values.
    Recorded,
    /// Set on every scrape for the present objects: a study's series end with it, a worker's when it leaves.
    Sampled,
    /// As long as the process: read from the operating system on every scrape. Handles do not record into it.
    Process,
}

/// Upper bounds of a histogram's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistogramBuckets {
    /// The metric is no histogram.
    None,
    /// Requests and disk operations: 0.5 ms to 10 s.
    Short,
    /// Tasks: 0.1 ms (an empty one) to 5 min (on a large tile).
    Task,
    /// Waits for a worker: 0.1 s, which is their resolution, to 1 h.
    Wait,
}

impl HistogramBuckets {
    /// Returns the bounds in seconds, ascending.
    #[must_use]
    pub const fn bounds(self) -> &'static [f64] {
        match self {
            Self::None => &[],
            Self::Short => &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0],
            Self::Task => &[0.0001, 0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0],
            Self::Wait => &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0],
        }
    }
}

/// A metric's description, without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name, by Prometheus' conventions.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Unit.
    pub unit: Unit,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// Processes that have the metric.
    pub role: ProcessRole,
    /// Lifetime of the series.
    pub life: SeriesLifetime,
    /// Buckets of a histogram.
    pub buckets: HistogramBuckets,
    /// Help text in one sentence.
    pub help: &'static str,
}

/// The facade requires the call site's metadata, which pleach does not use.
const METADATA: Metadata<'static> = Metadata::new("pleach", Level::INFO, None);

impl Family {
    fn key(&self, values: &[&str]) -> Key {
        let label = |(name, value): (&&'static str, &&str)| Label::new(*name, (*value).to_owned());
        let labels: Vec<Label> = self.labels.iter().zip(values).map(label).collect();
        Key::from_parts(self.name, labels)
    }
}

/// A sum that only grows, with `N` labels.
#[derive(Clone, Copy, Debug)]
pub struct Counter<const N: usize>(pub(crate) Family);

impl<const N: usize> Counter<N> {
    /// Returns the series with these values of its labels, in their order.
    pub fn with(&self, values: [&str; N]) -> metrics::Counter {
        let key = self.0.key(&values);
        metrics::with_recorder(|recorder| recorder.register_counter(&key, &METADATA))
    }

    /// Returns the description.
    #[must_use]
    pub const fn family(&self) -> &Family {
        &self.0
    }
}

/// A value that goes up and down, with `N` labels.
#[derive(Clone, Copy, Debug)]
pub struct Gauge<const N: usize>(pub(crate) Family);

impl<const N: usize> Gauge<N> {
    /// Returns the series with these values of its labels, in their order.
    pub fn with(&self, values: [&str; N]) -> metrics::Gauge {
        let key = self.0.key(&values);
        metrics::with_recorder(|recorder| recorder.register_gauge(&key, &METADATA))
    }

    /// Returns the description.
    #[must_use]
    pub const fn family(&self) -> &Family {
        &self.0
    }
}

/// A distribution, with `N` labels.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<const N: usize>(pub(crate) Family);

impl<const N: usize> Histogram<N> {
    /// Returns the series with these values of its labels, in their order.
    pub fn with(&self, values: [&str; N]) -> metrics::Histogram {
        let key = self.0.key(&values);
        metrics::with_recorder(|recorder| recorder.register_histogram(&key, &METADATA))
    }

    /// Returns the description.
    #[must_use]
    pub const fn family(&self) -> &Family {
        &self.0
    }
}
