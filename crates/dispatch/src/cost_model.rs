//! Cost model: the declared costs of operations, corrected by measurements, and the overhead of a bucket.
//!
//! An operation declares how its cost scales with the image. The model learns the error of the declaration, a little from
//! every run. For a parameter with few values, such as a connectivity of 4 or 8, it learns each value separately.

mod bucket_overhead;
mod device_gain;
mod device_mix;

use crate::SlotKind;
use bucket_overhead::BucketOverhead;
pub use bucket_overhead::LEAST_OVERHEAD_SECONDS;
pub use device_gain::DeviceGain;
pub use device_mix::{OperationWork, speed_with_accelerators};
use pleach_workflow::{Accepts, Operation, Value, plain_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Weight of the newest run after the first runs: the other load of a machine changes within minutes.
const NEWEST: f64 = 0.1;

/// Runs after which a ratio counts as known.
const SEVERAL: u64 = 8;

/// Key of a learned ratio: an operation by name and version, and the values of its parameters with few values. The name of an
/// operation on an accelerator ends with `@accelerator`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Class {
    operation: String,
    version: u32,
    /// As text, for order and serialization. Empty for all values together.
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Seen {
    runs: u64,
    /// Measured by declared seconds: the mean of the first runs, then exponentially weighted.
    ratio: f64,
}

/// Corrections of the declared seconds of operations, and the overhead of a bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostModel {
    ratios: BTreeMap<Class, Seen>,
    overhead: BucketOverhead,
}

impl CostModel {
    /// Predicts the seconds of one run on an image of `pixels` pixels.
    #[must_use]
    pub fn predict(&self, operation: &dyn Operation, arguments: &[Value], pixels: u64) -> f64 {
        operation.cost_seconds(pixels) * self.ratio(operation, arguments)
    }

    /// As [`predict`](Self::predict), but returns `None` until the ratio has been learned from several runs.
    #[must_use]
    pub fn predict_learned(
        &self,
        operation: &dyn Operation,
        arguments: &[Value],
        pixels: u64,
    ) -> Option<f64> {
        self.learned_ratio(operation, arguments).map(|ratio| operation.cost_seconds(pixels) * ratio)
    }

    /// As [`ratio`](Self::ratio), but returns `None` until the ratio has been learned from several runs.
    #[must_use]
    pub fn learned_ratio(&self, operation: &dyn Operation, arguments: &[Value]) -> Option<f64> {
        let seen = classes(SlotKind::Core, operation, arguments).find_map(|class| self.ratios.get(&class));
        seen.filter(|seen| seen.runs >= SEVERAL).map(|seen| seen.ratio)
    }

    /// Returns the predicted ratio of measured to declared seconds. 1 for operations without a run.
    #[must_use]
    pub fn ratio(&self, operation: &dyn Operation, arguments: &[Value]) -> f64 {
        let seen = classes(SlotKind::Core, operation, arguments).find_map(|class| self.ratios.get(&class));
        seen.map_or(1.0, |seen| seen.ratio)
    }

    /// Learns from one run that took `seconds`. Ignores invalid times, such as infinite ones.
    pub fn observe(&mut self, operation: &dyn Operation, arguments: &[Value], pixels: u64, seconds: f64) {
        self.observe_on(SlotKind::Core, operation, arguments, pixels, seconds);
    }

    /// As [`observe`](Self::observe), for a run on this kind of slot.
    #[expect(clippy::cast_precision_loss, reason = "a weight")]
    pub fn observe_on(
        &mut self,
        kind: SlotKind,
        operation: &dyn Operation,
        arguments: &[Value],
        pixels: u64,
        seconds: f64,
    ) {
        let ratio = seconds / operation.cost_seconds(pixels);
        if !ratio.is_finite() || ratio < 0.0 {
            return;
        }
        for class in classes(kind, operation, arguments) {
            let seen = self.ratios.entry(class).or_insert(Seen { runs: 0, ratio });
            seen.runs = seen.runs.saturating_add(1);
            seen.ratio += (ratio - seen.ratio) * NEWEST.max(1.0 / seen.runs as f64);
        }
    }

    /// Learns the overhead of a bucket from one lease: the seconds on its slot before its first task, without transfers of
    /// inputs. Ignores invalid times.
    pub fn observe_bucket_overhead(&mut self, seconds: f64) {
        self.overhead.observe(seconds);
    }

    /// Returns the measured overhead of a bucket in seconds. `None` until it has been learned from several leases.
    #[must_use]
    pub fn measured_bucket_overhead(&self) -> Option<f64> {
        self.overhead.measured_seconds()
    }

    /// Returns the overhead of a bucket to plan with, in seconds. 0 until it is known, and if it is too short to matter.
    #[must_use]
    pub fn bucket_overhead_seconds(&self) -> f64 {
        self.overhead.planned_seconds()
    }

    /// Takes over the ratios, and the overhead of a bucket, that another model has learned from more runs.
    pub fn merge(&mut self, other: &Self) {
        self.overhead.merge(&other.overhead);
        for (class, seen) in &other.ratios {
            let own = self.ratios.entry(class.clone()).or_insert(*seen);
            if own.runs < seen.runs {
                *own = *seen;
            }
        }
    }

    /// Returns the model as lines of text for another study: the overhead of a bucket, then the operations, ascending.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |(class, seen): (&Class, &Seen)| {
            let values = class.values.join(",");
            format!("{}\t{}\t{values}\t{}\t{:e}", class.operation, class.version, seen.runs, seen.ratio)
        };
        self.overhead.line().into_iter().chain(self.ratios.iter().map(line)).collect()
    }

    /// Parses the output of [`lines`](Self::lines). Skips invalid lines.
    #[must_use]
    pub fn of_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut overhead = BucketOverhead::default();
        let mut read = |line: &str| {
            if let Some(read) = BucketOverhead::parse(line) {
                overhead = read;
                return None;
            }
            let mut fields = line.split('\t');
            let operation = fields.next().filter(|name| *name != bucket_overhead::NAME)?.to_owned();
            let version = fields.next()?.parse().ok()?;
            let values =
                fields.next()?.split(',').filter(|value| !value.is_empty()).map(str::to_owned).collect();
            let runs = fields.next()?.parse().ok()?;
            let ratio: f64 = fields.next()?.parse().ok()?;
            let sensible = ratio.is_finite() && ratio >= 0.0 && runs > 0 && fields.next().is_none();
            sensible.then_some((Class { operation, version, values }, Seen { runs, ratio }))
        };
        let ratios = lines.into_iter().filter_map(&mut read).collect();
        Self { ratios, overhead }
    }
}

/// Returns the arguments of a run for the parameters with few values. The model predicts the same ratio for all runs of an
/// operation with the same of these.
pub fn few_values<'a>(
    operation: &'a dyn Operation,
    arguments: &'a [Value],
) -> impl Iterator<Item = &'a Value> {
    let few = operation.arguments().iter().zip(arguments);
    few.filter(|(argument, _)| matches!(argument.accepts, Accepts::OneOf(_))).map(|(_, value)| value)
}

/// Returns the keys under which a run is learned: the values of its parameters with few values, if any, and all runs.
fn classes(
    kind: SlotKind,
    operation: &dyn Operation,
    arguments: &[Value],
) -> impl Iterator<Item = Class> + use<> {
    let values: Vec<String> = few_values(operation, arguments).map(ToString::to_string).collect();
    // An edit of an external operation rarely changes its cost, so measurements outlive it.
    let plain = plain_name(operation.name());
    let name = match kind {
        SlotKind::Core => plain.to_owned(),
        SlotKind::Accelerator => format!("{plain}@{kind}"),
    };
    let version = operation.version();
    let class = move |values| Class { operation: name.clone(), version, values };
    let apart = (!values.is_empty()).then(|| class(values));
    // The values first: predictions take the first known class, and it is the more specific one.
    apart.into_iter().chain([class(Vec::new())])
}
