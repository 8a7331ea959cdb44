//! Tasks of accelerators that have computed, and whose outputs are being downloaded. Their slots run later tasks.
//!
//! A device downloads for one task at a time. Until the worker hears of its end, the next download may have begun.

use crate::SlotId;
use std::collections::BTreeMap;

/// Bytes that a task holds until its outputs are downloaded.
#[derive(Clone, Copy, Debug)]
struct Download {
    /// In host memory: its reservation.
    reserved: u64,
    /// On the device.
    device: u64,
}

/// Downloads of a worker, by accelerator and number.
#[derive(Debug, Default)]
pub(crate) struct Downloads(BTreeMap<(SlotId, u64), Download>);

impl Downloads {
    /// Begins download `number` of a slot, for a task that holds `reserved` bytes of host memory and `device` bytes on the device.
    pub(crate) fn begin(&mut self, slot: SlotId, number: u64, reserved: u64, device: u64) {
        let before = self.0.insert((slot, number), Download { reserved, device });
        assert!(before.is_none(), "download {number} of {slot} begins twice");
    }

    /// Ends a download.
    pub(crate) fn end(&mut self, slot: SlotId, number: u64) {
        let ended = self.0.remove(&(slot, number));
        assert!(ended.is_some(), "download {number} of {slot} has not begun");
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the reserved bytes of host memory.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.0.values().fold(0, |sum, download| sum.saturating_add(download.reserved))
    }

    /// Returns the bytes on the device of a slot.
    pub(crate) fn device_bytes(&self, slot: SlotId) -> u64 {
        let of_slot = self.0.range((slot, 0)..=(slot, u64::MAX));
        of_slot.fold(0, |sum, (_, download)| sum.saturating_add(download.device))
    }
}
