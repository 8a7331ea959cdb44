//! Tasks of a bucket on accelerators: their estimates, the offers to the worker, and the use of a granted device.

use super::StageActor;
use crate::task::{DeviceCall, PrefetchInputs, SHORT_SECONDS};
use actix::prelude::*;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::stage::{DeviceTask, GAIN_UNIT, InputLocation, NodeId, Offer, TaskRequest};
use pleach_dispatch::{SlotId, SlotKind};
use pleach_regions::DataRegion;
use pleach_workflow::{Accelerated, Operation, Value};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Uploads the inputs of a task that an accelerator takes next, if nothing changes.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct PrefetchTask {
    /// The slot of the accelerator.
    pub slot: SlotId,
    /// The task.
    pub node: NodeId,
}

/// Returns the declared gain of an operation. 1 for one that has no device variant.
pub(super) fn declared_gain(operation: &dyn Operation) -> f64 {
    operation.accelerated().map_or(1.0, Accelerated::gain)
}

impl StageActor {
    /// Returns whether the worker has accelerators.
    fn has_accelerators(&self) -> bool {
        self.around.slots.len() > self.around.cores
    }

    /// Updates the estimates of the stage's tasks. Does nothing on a worker without accelerators.
    pub(super) fn update_device_tasks(&mut self) {
        if !self.has_accelerators() {
            return;
        }
        let costs = self.around.costs.lock();
        let parameters = self.first_parameters();
        let tasks = self.stage.tasks.iter().zip(&self.operations).map(|(task, operation)| {
            let arguments: Vec<Value> =
                task.arguments.iter().filter_map(|&argument| parameters.get(argument).copied()).collect();
            self.device_task(&costs, &**operation, &arguments)
        });
        let tasks: Vec<DeviceTask> = tasks.collect();
        drop(costs);
        let cores = u32::try_from(self.around.cores).unwrap_or(u32::MAX);
        let accelerators = u32::try_from(self.around.slots.len() - self.around.cores).unwrap_or(u32::MAX);
        self.run.set_device_tasks(&self.stage, tasks, cores, accelerators);
    }

    /// Returns the parameters of any instance: estimates are those of all instances of the bucket.
    fn first_parameters(&self) -> &[Value] {
        self.work.values().next().map_or(&[], |instance| &instance.parameters)
    }

    fn device_task(&self, costs: &CostModel, operation: &dyn Operation, arguments: &[Value]) -> DeviceTask {
        let core_seconds = costs.predict(operation, arguments, self.pixels);
        let core_time = Duration::try_from_secs_f64(core_seconds).unwrap_or_default();
        let on_core = DeviceTask::for_cores(core_time);
        if operation.needs_accelerator() {
            return DeviceTask { on_core: false, on_accelerator: true, gain: GAIN_UNIT, ..on_core };
        }
        let Some(variant) = operation.accelerated() else { return on_core };
        // A task that takes less than a handover to another thread gains nothing there.
        let is_short = costs
            .predict_learned(operation, arguments, self.pixels)
            .is_some_and(|seconds| seconds < SHORT_SECONDS);
        if is_short || self.around.exclusions.contains(operation, self.pixels) {
            return on_core;
        }
        let gain = costs.device_gain(operation, arguments, variant.gain());
        DeviceTask {
            on_accelerator: true,
            gain: gain.thousandths,
            trial: gain.trial,
            device_bytes: variant.device_bytes(self.pixels),
            ..on_core
        }
    }

    /// Returns the tasks that the bucket offers to a worker with accelerators. Empty without any.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let mut offers = self.run.offers();
        if !offers.is_empty() {
            // The first offer is the next task. The ranks of the others estimate their paths.
            let next_time = self.next_time();
            for (place, offer) in offers.iter_mut().enumerate().filter(|_| next_time > Duration::ZERO) {
                offer.next_time = if place == 0 { next_time } else { offer.upward_rank };
            }
        }
        offers
    }

    /// Returns the use of the device of an accelerator slot. `None` for a core.
    pub(super) fn device_call(&self, slot: SlotId, call: &TaskRequest) -> Option<DeviceCall> {
        if slot.index() < self.around.cores {
            return None;
        }
        let operation = &*self.operations[call.task];
        let costs = self.around.costs.lock();
        let core_seconds = costs.predict(operation, &call.arguments, self.pixels);
        drop(costs);
        let place = format!("{}, {}", self.study, self.run.first_instance(call.node));
        Some(DeviceCall { pixels: self.pixels, core_seconds, place })
    }

    /// Predicts the seconds of a run on a kind of slot.
    pub(super) fn predict_on(&self, costs: &CostModel, kind: SlotKind, call: &TaskRequest) -> f64 {
        let operation = &*self.operations[call.task];
        costs.predict_on(kind, operation, &call.arguments, self.pixels, declared_gain(operation))
    }
}

impl Handler<PrefetchTask> for StageActor {
    type Result = ();

    /// Sends the inputs that are in memory to the slot. No other is fetched or read for a hint.
    fn handle(&mut self, PrefetchTask { slot, node }: PrefetchTask, _: &mut Self::Context) {
        let call = self.run.request(&self.stage, node);
        // A program outside this process uploads by itself.
        if self.operations[call.task].accelerated().is_none() {
            return;
        }
        let find = |input: &InputLocation| match *input {
            InputLocation::Task(output) => self.outputs.region(output).map(Arc::downgrade),
            InputLocation::Stage { instance, input } => {
                let key = *self.work.get(&instance)?.inputs.get(input)?;
                self.around.ram.get(key).as_ref().map(Arc::downgrade)
            }
        };
        let inputs: Vec<Weak<DataRegion>> = call.inputs.iter().filter_map(find).collect();
        if !inputs.is_empty() {
            self.around.slots[slot.index()].do_send(PrefetchInputs(inputs));
        }
    }
}
