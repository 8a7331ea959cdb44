//! Accelerators of a node: random gains, bytes and errors.

use super::{Local, Node, Setup};
use pleach_dispatch::stage::{BucketExecution, DeviceTask, NodeId};
use pleach_dispatch::{LeaseId, SlotId, SlotKind};
use pleach_workflow::Stage;
use std::time::Duration;

impl Setup {
    /// Returns a task of a stage on devices, by its number and the seed. Some are too large for a device, some have no variant for
    /// it, and some have only that one.
    fn device_task(&self, task: usize) -> DeviceTask {
        let random = (self.seed ^ (task as u64 + 1)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8;
        let kinds = random % 8;
        DeviceTask {
            on_core: kinds != 0,
            on_accelerator: kinds != 1,
            gain: (random >> 8) as u32 % 20_000,
            core_time: Duration::from_millis(1 + (random >> 16) % 100),
            device_bytes: self.slots.device_bytes.saturating_sub(1) + (random >> 24) % 3,
            trial: [None, None, Some(SlotKind::Core), Some(SlotKind::Accelerator)]
                [(random >> 32) as usize % 4],
        }
    }

    pub(super) fn set_devices(&self, stage: &Stage, run: &mut BucketExecution) {
        if self.slots.accelerators > 0 {
            let tasks = (0..stage.tasks.len()).map(|task| self.device_task(task)).collect();
            run.set_device_tasks(stage, tasks, self.slots.cores, self.slots.accelerators);
        }
    }

    /// Asserts rule 4: only a task without a variant for cores runs on a device that is too small.
    pub(super) fn assert_fits(&self, slot: SlotId, task: usize) {
        if self.slots.kind(slot) == SlotKind::Accelerator {
            let task = self.device_task(task);
            assert!(task.on_accelerator, "a task without a variant for accelerators runs in {slot}");
            assert!(!task.on_core || task.device_bytes <= self.slots.device_bytes, "{task:?} in {slot}");
        }
    }
}

impl Node<'_> {
    /// Returns whether the device of a slot fails now: a third of the tasks there.
    pub(super) fn fails(&mut self, slot: SlotId) -> bool {
        let is_device = self.setup.slots.kind(slot) == SlotKind::Accelerator;
        let fails = is_device && self.chance(3) == 0;
        self.on_accelerators += usize::from(is_device && !fails);
        fails
    }

    /// Makes the task ready again. Closes the slot every other time, before the worker hears of the task or after it.
    pub(super) fn end_with_device_error(&mut self, slot: SlotId, lease: LeaseId, node: NodeId) {
        let bucket = self.buckets.get_mut(&lease).expect("a bucket");
        bucket.run.handle_device_failed(node);
        let demand = bucket.demand(&self.storage);
        self.local.push_back(Local::SlotFree(slot, lease, demand));
        self.log.push(format!("{slot} fails"));
        if self.chance(2) == 0 {
            self.worker.handle_slot_closed(slot);
        }
    }
}
