//! Gains of operations on accelerators, from their learned times on both kinds of slots.

use super::{CostModel, SEVERAL, classes};
use crate::SlotKind;
use crate::stage::GAIN_UNIT;
use pleach_workflow::{Operation, Value};

/// Gain of an operation for a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceGain {
    /// Seconds on a core / seconds on an accelerator, in thousandths. At least 1.
    pub thousandths: u32,
    /// The kind whose time is unknown: the next runs belong there. Accelerators come first, because their runs are shorter.
    pub trial: Option<SlotKind>,
}

impl CostModel {
    /// Returns the gain of an operation. It is the declared one until several runs on each kind are known.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub fn device_gain(&self, operation: &dyn Operation, arguments: &[Value], declared: f64) -> DeviceGain {
        let core = self.settled_ratio(SlotKind::Core, operation, arguments);
        let accelerator = self.settled_ratio(SlotKind::Accelerator, operation, arguments);
        let (gain, trial) = match (core, accelerator) {
            (Some(core), Some(accelerator)) => (core / accelerator, None),
            (_, None) => (declared, Some(SlotKind::Accelerator)),
            (None, Some(_)) => (declared, Some(SlotKind::Core)),
        };
        // Not a number for times of 0 on both kinds, which are equal then.
        let gain = if gain.is_nan() { 1.0 } else { gain };
        // The greatest number is that of trials.
        let thousandths = (gain * f64::from(GAIN_UNIT)).round().clamp(1.0, f64::from(u32::MAX - 1)) as u32;
        DeviceGain { thousandths, trial }
    }

    /// Predicts the seconds of one run on a kind of slot. An accelerator has the time of a core divided by the gain until several
    /// runs are known.
    #[must_use]
    pub fn predict_on(
        &self,
        kind: SlotKind,
        operation: &dyn Operation,
        arguments: &[Value],
        pixels: u64,
        declared: f64,
    ) -> f64 {
        let core = || self.predict(operation, arguments, pixels);
        match (kind, self.settled_ratio(kind, operation, arguments)) {
            (SlotKind::Core, _) => core(),
            (SlotKind::Accelerator, Some(ratio)) => operation.cost_seconds(pixels) * ratio,
            (SlotKind::Accelerator, None) => core() / declared,
        }
    }

    /// Returns the ratio of measured to declared seconds on a kind of slot, of the most specific class with several runs.
    fn settled_ratio(&self, kind: SlotKind, operation: &dyn Operation, arguments: &[Value]) -> Option<f64> {
        let seen = classes(kind, operation, arguments).filter_map(|class| self.ratios.get(&class));
        seen.into_iter().find(|seen| seen.runs >= SEVERAL).map(|seen| seen.ratio)
    }
}
