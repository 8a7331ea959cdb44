//! The stage actor: executes one bucket's reuse tree, task by task, as its worker grants slots.

use crate::storage::{Get, Put, StorageActor};
use crate::task::{RunTask, TaskActor, TaskResult};
use actix::prelude::*;
use pleach_dispatch::message::{BucketWork, InstanceWork, TaskFailure, TaskReport, ToManager};
use pleach_dispatch::stage::{BucketRun, Effect, Input, NodeId, OutputId, TaskCall};
use pleach_dispatch::{InstanceId, LeaseId, SlotId};
use pleach_regions::{DataRegion, Ledger, RegionKey};
use pleach_workflow::{Operation, Stage};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// One task may run in this slot.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Granted(pub SlotId);

/// What a stage actor tells its worker.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum FromStage {
    /// The stage has just started, and has `ready` tasks.
    Ready {
        /// The stage.
        lease: LeaseId,
        /// Tasks that it could run now.
        ready: u32,
    },
    /// A slot is free again; its stage has `ready` tasks without one.
    SlotFree {
        /// The slot.
        slot: SlotId,
        /// The stage it was granted to.
        lease: LeaseId,
        /// Tasks that the stage could run now.
        ready: u32,
    },
    /// For the manager.
    Report(ToManager),
    /// Every instance of the bucket has been reported.
    Over(LeaseId),
}

/// What every stage actor of a worker works with.
#[derive(Clone)]
pub struct Surroundings {
    /// The worker it belongs to.
    pub worker: Recipient<FromStage>,
    /// Where stage inputs come from and stage outputs go.
    pub storage: Addr<StorageActor>,
    /// The worker's slots.
    pub slots: Vec<Addr<TaskActor>>,
    /// Bytes held on this node.
    pub ledger: Arc<Ledger>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

/// See the module.
pub struct StageActor {
    lease: LeaseId,
    number: u32,
    stage: Arc<Stage>,
    operations: Vec<Arc<dyn Operation>>,
    work: HashMap<InstanceId, InstanceWork>,
    run: BucketRun,
    /// Outputs that tasks of this bucket, or its instances, have yet to read.
    held: HashMap<OutputId, Arc<DataRegion>>,
    /// Tasks run since the last report.
    ran: Vec<TaskReport>,
    around: Surroundings,
}

impl fmt::Debug for StageActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageActor")
            .field("lease", &self.lease)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl StageActor {
    /// An actor for one bucket; `operations` are those of the stage's tasks, in order.
    ///
    /// # Errors
    /// When the bucket does not fit the stage.
    pub fn new(
        lease: LeaseId,
        stage: Arc<Stage>,
        operations: Vec<Arc<dyn Operation>>,
        work: BucketWork,
        around: Surroundings,
    ) -> Result<Self, pleach_dispatch::stage::BadWork> {
        let run = BucketRun::new(&stage, &work)?;
        let number = work.stage;
        let work = work.instances.into_iter().map(|instance| (instance.id, instance)).collect();
        let (held, ran) = (HashMap::new(), Vec::new());
        Ok(Self { lease, number, stage, operations, work, run, held, ran, around })
    }

    /// Starts the call: its inputs first, those from storage when they are there, then the task itself.
    fn start(&mut self, slot: SlotId, call: TaskCall, ctx: &mut Context<Self>) {
        enum Found {
            Here(Arc<DataRegion>),
            Stored(RegionKey),
            Missing,
        }
        let inputs: Vec<Found> = call
            .inputs
            .iter()
            .map(|input| match *input {
                Input::Task(output) => self.held.get(&output).cloned().map_or(Found::Missing, Found::Here),
                Input::Stage { instance, input } => {
                    self.work.get(&instance).map_or(Found::Missing, |work| Found::Stored(work.inputs[input]))
                }
            })
            .collect();
        let storage = self.around.storage.clone();
        let task = self.around.slots[slot.index()].clone();
        let name = self.stage.tasks[call.task].name.clone();
        let operation = Arc::clone(&self.operations[call.task]);
        let arguments = call.arguments.clone();
        let run = async move {
            let fail = |cause: &str| TaskFailure { at: name.clone(), cause: cause.to_owned() };
            let mut regions = Vec::with_capacity(inputs.len());
            for input in inputs {
                let region = match input {
                    Found::Here(region) => Ok(region),
                    Found::Stored(key) => {
                        let answer = storage.send(Get(key)).await;
                        answer.unwrap_or_else(|_| Err(fail("the storage actor is gone")))
                    }
                    Found::Missing => Err(fail("an input that an earlier task wrote is gone")),
                };
                match region {
                    Ok(region) => regions.push(region),
                    Err(cause) => return TaskResult { outputs: Err(cause), seconds: 0.0 },
                }
            }
            let gone = fail("the task actor is gone");
            let answer = task.send(RunTask { name, operation, inputs: regions, arguments }).await;
            answer.unwrap_or(TaskResult { outputs: Err(gone), seconds: 0.0 })
        };
        // An actor that is over is not stopped: slots may have been granted to it that it has not heard of, and
        // each must go back. It ends when the worker lets go of its address and its mailbox is empty.
        let finished = run.into_actor(self).map(move |result, actor, _| {
            actor.finish(call.node, call.task, &call.wanted, result);
            let (lease, ready) = (actor.lease, actor.run.ready() as u32);
            actor.around.worker.do_send(FromStage::SlotFree { slot, lease, ready });
        });
        ctx.spawn(finished);
    }

    fn finish(&mut self, node: NodeId, task: usize, wanted: &[bool], result: TaskResult) {
        self.ran.push(TaskReport { task: task as u32, stage: self.number, seconds: result.seconds });
        match result.outputs {
            Ok(outputs) => {
                for (output, region) in outputs.into_iter().enumerate().filter(|(output, _)| wanted[*output])
                {
                    self.around.ledger.add(region.bytes());
                    self.held.insert(OutputId { node, output }, Arc::new(region));
                }
                self.run.handle_done(&self.stage, node);
            }
            Err(cause) => self.run.handle_failed(&self.stage, node, &cause),
        }
        while let Some(effect) = self.run.poll_effect() {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        let (lease, worker) = (self.lease, self.around.worker.clone());
        match effect {
            Effect::Done { instance, outputs } => {
                let mut results = Vec::new();
                for (plan, output) in self.work[&instance].outputs.iter().zip(outputs) {
                    let Some(region) = self.held.get(&output) else { continue };
                    if plan.stored {
                        self.around.storage.do_send(Put { key: plan.key, region: Arc::clone(region) });
                    }
                    if plan.reported
                        && let Ok(table) = region.table()
                    {
                        results.push(table.clone());
                    }
                }
                let tasks = std::mem::take(&mut self.ran);
                worker.do_send(FromStage::Report(ToManager::Done { lease, instance, results, tasks }));
            }
            Effect::Failed { instance, cause } => {
                let tasks = std::mem::take(&mut self.ran);
                worker.do_send(FromStage::Report(ToManager::Failed { lease, instance, cause, tasks }));
            }
            Effect::Drop(output) => {
                if let Some(region) = self.held.remove(&output) {
                    self.around.ledger.subtract(region.bytes());
                }
            }
            Effect::Over => worker.do_send(FromStage::Over(lease)),
        }
    }
}

impl Actor for StageActor {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        let (lease, ready) = (self.lease, self.run.ready() as u32);
        self.around.worker.do_send(FromStage::Ready { lease, ready });
    }
}

impl Handler<Granted> for StageActor {
    type Result = ();

    fn handle(&mut self, Granted(slot): Granted, ctx: &mut Self::Context) {
        match self.run.start_task(&self.stage) {
            Some(call) => self.start(slot, call, ctx),
            // Granted for a task that is no longer there: the slot goes back.
            None => self.around.worker.do_send(FromStage::SlotFree { slot, lease: self.lease, ready: 0 }),
        }
    }
}
