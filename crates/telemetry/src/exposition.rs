//! Exposition of a process's metrics in Prometheus' text format.
//!
//! Event metrics are recorded continuously. [Sampled](SeriesLifetime::Sampled) metrics are cleared and set on every
//! scrape, so a series that is not set again has ended.

use crate::catalog::{self, ALL};
use crate::family::{Family, Kind, ProcessRole, SeriesLifetime};
use crate::process::Process;
use metrics_prometheus::failure::strategy::NoOp;
use metrics_prometheus::recorder::Frozen;
use parking_lot::Mutex;
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, TextEncoder};
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// Error of setting up or writing the exposition.
#[derive(Debug, Error)]
pub enum ExpositionError {
    /// The catalog breaks a rule of Prometheus.
    #[error("failed to set up the metrics: {0}")]
    Family(#[from] prometheus::Error),
    /// Another recorder of this process is already installed.
    #[error("failed to set up the metrics: this process records them elsewhere")]
    Installed,
}

/// A metric whose series can be cleared.
enum ClearableMetric {
    Counter(IntCounterVec),
    Gauge(GaugeVec),
    Histogram(HistogramVec),
}

impl ClearableMetric {
    fn forget(&self) {
        match self {
            Self::Counter(family) => family.reset(),
            Self::Gauge(family) => family.reset(),
            Self::Histogram(family) => family.reset(),
        }
    }
}

/// Registry of a process's metrics and their text format.
pub struct Exposition {
    registry: Registry,
    sampled: Vec<ClearableMetric>,
    process: Process,
    /// Serializes scrapes: concurrent ones would clear each other's samples.
    one_by_one: Mutex<()>,
}

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposition").finish_non_exhaustive()
    }
}

impl Exposition {
    /// Installs the exposition of all measurements of this process. Must run before the first measurement, because
    /// earlier handles record nothing.
    ///
    /// # Errors
    /// Returns an [`ExpositionError`]. A second call returns [`Installed`](ExpositionError::Installed).
    pub fn install(role: ProcessRole, version: &str) -> Result<Self, ExpositionError> {
        let (exposition, recorder) = Self::new(role)?;
        metrics::set_global_recorder(recorder).map_err(|_| ExpositionError::Installed)?;
        catalog::BUILD_INFO.with([version, role.as_str()]).set(1.0);
        Ok(exposition)
    }

    /// Creates an exposition without a recorder: this process's measurements are not recorded.
    ///
    /// # Errors
    /// Returns the errors of [`install`](Self::install), which may be called too.
    pub fn detached(role: ProcessRole) -> Result<Self, ExpositionError> {
        Ok(Self::new(role)?.0)
    }

    /// Creates the metrics of this process role, and their recorder.
    fn new(role: ProcessRole) -> Result<(Self, Frozen<NoOp>), prometheus::Error> {
        let registry = Registry::new();
        let mut builder =
            metrics_prometheus::Recorder::builder().with_registry(&registry).with_failure_strategy(NoOp);
        let mut sampled = Vec::new();
        let process = Process::new(&registry, Path::new("/proc"))?;
        let recorded = |family: &&&Family| role.has(family.role) && family.life != SeriesLifetime::Process;
        for family in ALL.iter().filter(recorded) {
            let Family { labels, buckets, .. } = **family;
            let options = Opts::new(family.name, family.help);
            let made = match family.kind {
                Kind::Counter => ClearableMetric::Counter(IntCounterVec::new(options, labels)?),
                Kind::Gauge => ClearableMetric::Gauge(GaugeVec::new(options, labels)?),
                Kind::Histogram => {
                    let options = HistogramOpts { common_opts: options, buckets: buckets.bounds().to_vec() };
                    ClearableMetric::Histogram(HistogramVec::new(options, labels)?)
                }
            };
            builder = match &made {
                ClearableMetric::Counter(family) => builder.try_with_metric(family.clone())?,
                ClearableMetric::Gauge(family) => builder.try_with_metric(family.clone())?,
                ClearableMetric::Histogram(family) => builder.try_with_metric(family.clone())?,
            };
            // Recorded families are not cleared: their series are counted where events occur and must survive a scrape.
            if family.life != SeriesLifetime::Recorded {
                sampled.push(made);
            }
        }
        let exposition = Self { registry, sampled, process, one_by_one: Mutex::new(()) };
        Ok((exposition, builder.build_frozen()))
    }

    /// Returns all metrics in Prometheus' text format 0.0.4. `sample` sets the [sampled](SeriesLifetime::Sampled) ones.
    ///
    /// # Errors
    /// Returns [`ExpositionError::Family`] if a family cannot be written.
    pub fn text(&self, sample: impl FnOnce()) -> Result<String, ExpositionError> {
        // The lock protects the sampled series, which every call sets again.
        let _only = self.one_by_one.lock();
        self.sampled.iter().for_each(ClearableMetric::forget);
        sample();
        self.process.sample();
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }
}

/// Returns the number of series of a family.
#[cfg(test)]
fn series(family: &impl prometheus::core::Collector) -> usize {
    family.collect().iter().map(|family| family.get_metric().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{BUCKET_WAIT, HTTP_REQUESTS, INSTANCES, REPLANS, STUDY_INFO, TASK_SECONDS, WORKERS};
    use prometheus::core::Collector;
    use proptest::prelude::*;

    fn shown(role: ProcessRole, record: impl Fn(), sample: impl Fn()) -> String {
        let (exposition, recorder) = Exposition::new(role).unwrap();
        metrics::with_local_recorder(&recorder, || {
            record();
            exposition.text(&sample).unwrap()
        })
    }

    #[test]
    fn recorded_values_are_exposed() {
        let record = || {
            REPLANS.with(["workers"]).increment(3);
            HTTP_REQUESTS.with(["GET", "/healthz", "200"]).increment(1);
            BUCKET_WAIT.with([]).record(0.2);
        };
        let text = shown(ProcessRole::Manager, record, || WORKERS.with(["active"]).set(2.0));
        for line in [
            "# HELP pleach_replans_total Replans of studies, by cause: workers (they join or leave) or costs (measured costs \
             need other buckets).",
            "# TYPE pleach_replans_total counter",
            "pleach_replans_total{cause=\"workers\"} 3",
            "pleach_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1",
            "pleach_bucket_wait_seconds_bucket{le=\"0.25\"} 1",
            "pleach_bucket_wait_seconds_bucket{le=\"0.1\"} 0",
            "pleach_bucket_wait_seconds_count 1",
            "pleach_workers{state=\"active\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("pleach_task_duration_seconds"), "that is a worker's");
        assert!(!text.contains("pleach_workers_desired"), "nobody has set it");
    }

    #[test]
    fn process_exposes_the_metrics_of_its_role() {
        let record = || {
            REPLANS.with(["workers"]).increment(1);
            TASK_SECONDS.with(["threshold", "cpu"]).record(0.01);
        };
        let text = shown(ProcessRole::Worker, record, || {});
        assert!(
            text.contains("pleach_task_duration_seconds_count{device=\"cpu\",operation=\"threshold\"} 1")
        );
        assert!(!text.contains("pleach_replans_total"));
    }

    #[test]
    fn series_not_set_in_a_sample_end() {
        let (exposition, recorder) = Exposition::new(ProcessRole::Manager).unwrap();
        metrics::with_local_recorder(&recorder, || {
            REPLANS.with(["workers"]).increment(1);
            for study in ["1", "2", "3"] {
                let text = exposition.text(|| INSTANCES.with([study, "ready"]).set(1.0)).unwrap();
                let lines = text.lines().filter(|line| line.starts_with("pleach_instances{")).count();
                assert_eq!(lines, 1, "{text}");
                assert!(text.contains("pleach_replans_total{cause=\"workers\"} 1"));
            }
        });
        let Some(ClearableMetric::Gauge(family)) = exposition.sampled.iter().find(|family| {
            matches!(family, ClearableMetric::Gauge(family) if family.desc()[0].fq_name == "pleach_instances")
        }) else {
            panic!("it is sampled");
        };
        assert_eq!(series(family), 1);
    }

    /// Decodes the value of a label, as Prometheus does.
    fn unescaped(text: &str) -> String {
        let mut letters = text.chars();
        let mut plain = String::new();
        while let Some(letter) = letters.next() {
            plain.push(match letter {
                '\\' => match letters.next() {
                    Some('n') => '\n',
                    Some(other) => other,
                    None => panic!("it ends with a backslash"),
                },
                '"' => panic!("a quote that is not escaped"),
                letter => letter,
            });
        }
        plain
    }

    proptest! {
        #[test]
        fn any_name_of_a_study_is_one_line_and_is_read_back(name in any::<String>()) {
            let text = shown(ProcessRole::Manager, || {}, || STUDY_INFO.with(["1", &name]).set(1.0));
            let lines: Vec<&str> = text.split('\n').filter(|line| line.starts_with("pleach_study_info{")).collect();
            prop_assert_eq!(lines.len(), 1);
            let value = lines[0].strip_prefix("pleach_study_info{name=\"").unwrap();
            let value = value.strip_suffix("\",study=\"1\"} 1").unwrap();
            prop_assert_eq!(unescaped(value), name);
        }
    }
}
