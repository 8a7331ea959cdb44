//! Slots of a worker: starts those of cores and of accelerators, frees a device before its task has ended, and closes the slot
//! of a faulty device.

use super::WorkerActor;
use crate::task::{DeviceEvent, DeviceSlot, TaskActor};
use actix::prelude::*;
use pleach_dispatch::SlotId;
use pleach_dispatch::message::ToManager;
use std::sync::Arc;
use tracing::warn;

impl WorkerActor {
    /// Starts the actors of all slots: first the cores, then the accelerators.
    pub(super) fn start_slots(&mut self, ctx: &mut Context<Self>) {
        let resources = &self.setup.resources;
        let (cores, meter) = (resources.slots.get(), resources.meter);
        let on_core = || TaskActor::new(Arc::clone(&self.setup.pool), meter);
        let mut slots: Vec<TaskActor> = (0..cores).map(|_| on_core()).collect();
        let (mut unstarted, mut can_prefetch) = (Vec::new(), false);
        let accelerators = &resources.accelerators;
        for (number, device) in (0..).zip(accelerators.take_devices()) {
            let (slot, events) = (SlotId(cores + number), ctx.address().recipient());
            let name = device.1.name().to_owned();
            let exclusions = self.tasks.exclusions();
            slots.push(match DeviceSlot::start(slot, device, accelerators, exclusions, meter, events) {
                Ok(device) => {
                    can_prefetch |= device.can_prefetch();
                    on_core().with_device(device)
                }
                Err(error) => {
                    unstarted.push((slot, format!("{name}: closed: {error}")));
                    on_core()
                }
            });
        }
        self.tasks.start_slots(slots, cores as usize);
        if can_prefetch {
            self.core.enable_prefetch();
        }
        for (slot, remark) in unstarted {
            warn!("the accelerator {remark}; the worker continues with its other slots");
            ctx.notify(DeviceEvent::Closed(slot, remark));
        }
    }
}

impl Handler<DeviceEvent> for WorkerActor {
    type Result = ();

    fn handle(&mut self, event: DeviceEvent, ctx: &mut Self::Context) {
        self.observe_storage();
        match event {
            DeviceEvent::Computed(slot, download) => {
                // Freed before the state machine hears of it, because it may grant the slot at once.
                self.tasks.begin_download(slot, download);
                self.core.handle_slot_computed(slot, download);
            }
            DeviceEvent::Closed(slot, remark) => {
                self.core.handle_slot_closed(slot);
                self.tasks.close_slot(remark);
                self.send_closed_slots(ctx);
            }
        }
        self.apply_effects(ctx);
    }
}

impl WorkerActor {
    /// Sends the manager the remarks on closed slots, for display.
    pub(super) fn send_closed_slots(&mut self, ctx: &mut Context<Self>) {
        let remarks = self.tasks.closed_slots().to_vec();
        if !remarks.is_empty() {
            self.send(&ToManager::ClosedSlots { remarks }, ctx);
        }
    }
}
