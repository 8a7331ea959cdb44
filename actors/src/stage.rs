//! The stage actor: executes one bucket's reuse tree, task by task, as its worker grants slots.

mod bytes;

use crate::storage::{Get, StorageActor};
use crate::task::{RunTask, TaskActor, TaskResult};
use actix::prelude::*;
pub(crate) use bytes::missing_bytes;
use bytes::{inputs, task_bytes};
use pleach_dispatch::estimates::Estimates;
use pleach_dispatch::memory::Demand;
use pleach_dispatch::message::{BucketWork, InstanceWork, TaskFailure, TaskReport, ToManager};
use pleach_dispatch::stage::{BucketRun, Effect, Input, NodeId, OutputId, TaskCall};
use pleach_dispatch::{InstanceId, LeaseId, SlotId};
use pleach_regions::{DataRegion, Ledger, RamTier, RegionKey};
use pleach_workflow::{Operation, Stage};
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

/// One task may run in this slot.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Granted {
    /// The slot.
    pub slot: SlotId,
    /// The task.
    pub node: NodeId,
}

/// What a stage actor tells its worker.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum FromStage {
    /// What the stage could use now: said when it has begun, and after each grant.
    Demand {
        /// The stage.
        lease: LeaseId,
        /// What it could use.
        demand: Demand,
    },
    /// A slot is free again.
    SlotFree {
        /// The slot.
        slot: SlotId,
        /// The stage it was granted to.
        lease: LeaseId,
        /// What the stage could use now.
        demand: Demand,
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
    /// What storage holds in memory: stage outputs are put there from here, so that there is no moment on the way at
    /// which nobody counts them.
    pub ram: Arc<RamTier>,
    /// Bytes held on this node.
    pub ledger: Arc<Ledger>,
    /// Bytes that the stages of this worker hold, which are among them.
    pub written: Arc<Ledger>,
    /// What operations are believed to take; all stages of a worker learn together.
    pub estimates: Arc<Mutex<Estimates>>,
    /// Tasks of one bucket that may run at once.
    pub active_paths: Option<NonZeroU32>,
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
    /// Declared bytes of each task on images of this bucket's size.
    declared_bytes: Vec<u64>,
    /// What the bucket reads, each once, and its bytes.
    inputs: Vec<(RegionKey, u64)>,
    /// Outputs that tasks of this bucket, or its instances, have yet to read.
    held: HashMap<OutputId, Arc<DataRegion>>,
    /// Their bytes, as measured.
    held_bytes: u64,
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
        let declared_bytes: Vec<u64> = operations.iter().map(|op| op.memory_bytes(work.pixels)).collect();
        let bytes = task_bytes(&stage, &operations, &declared_bytes, work.pixels, &around.estimates);
        let inputs = inputs(&stage, &work);
        let run = BucketRun::new(&stage, &work, bytes, around.active_paths)?;
        let number = work.stage;
        let work = work.instances.into_iter().map(|instance| (instance.id, instance)).collect();
        let (held, ran) = (HashMap::new(), Vec::new());
        let held_bytes = 0;
        Ok(Self {
            lease,
            number,
            stage,
            operations,
            work,
            run,
            declared_bytes,
            inputs,
            held,
            held_bytes,
            ran,
            around,
        })
    }

    /// The regions that the bucket reads, each once, and their bytes.
    pub fn inputs(&self) -> &[(RegionKey, u64)] {
        &self.inputs
    }

    fn demand(&self) -> Demand {
        let foreseen = self.run.demand(&self.stage, missing_bytes(&self.around.ram, &self.inputs));
        Demand { held_bytes: self.held_bytes, ..foreseen }
    }

    /// Starts the call: its inputs first, those from storage when they are there, then the task itself. The first call
    /// of a bucket waits for all that the bucket reads: it was admitted with that.
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
        let brought: Vec<_> = match call.brings_inputs {
            true => self.inputs.iter().map(|(key, _)| storage.send(Get(*key))).collect(),
            false => Vec::new(),
        };
        let task = self.around.slots[slot.index()].clone();
        let name = self.stage.tasks[call.task].name.clone();
        let operation = Arc::clone(&self.operations[call.task]);
        let arguments = call.arguments.clone();
        let run = async move {
            let fail = |cause: &str| TaskFailure { at: name.clone(), cause: cause.to_owned() };
            for region in brought {
                // Whoever reads it finds out whether it is there.
                let _ = region.await;
            }
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
                    Err(cause) => return TaskResult::failed(cause),
                }
            }
            let gone = fail("the task actor is gone");
            let answer = task.send(RunTask { name, operation, inputs: regions, arguments }).await;
            answer.unwrap_or_else(|_| TaskResult::failed(gone))
        };
        // An actor that is over is not stopped: slots may have been granted to it that it has not heard of, and
        // each must go back. It ends when the worker lets go of its address and its mailbox is empty.
        let finished = run.into_actor(self).map(move |result, actor, _| {
            actor.finish(call.node, call.task, &call.wanted, result);
            let (lease, demand) = (actor.lease, actor.demand());
            actor.around.worker.do_send(FromStage::SlotFree { slot, lease, demand });
        });
        ctx.spawn(finished);
    }

    fn finish(&mut self, node: NodeId, task: usize, wanted: &[bool], result: TaskResult) {
        self.ran.push(TaskReport { task: task as u32, stage: self.number, seconds: result.seconds });
        if let (Some(measured), Ok(_)) = (result.peak_bytes, &result.outputs) {
            let task_of = &self.stage.tasks[task];
            let mut estimates = self.around.estimates.lock().unwrap_or_else(PoisonError::into_inner);
            estimates.observe(&task_of.operation, task_of.version, self.declared_bytes[task], measured);
        }
        match result.outputs {
            Ok(outputs) => {
                for (output, region) in outputs.into_iter().enumerate().filter(|(output, _)| wanted[*output])
                {
                    self.around.ledger.add(region.bytes());
                    self.around.written.add(region.bytes());
                    self.held_bytes += region.bytes();
                    self.held.insert(OutputId { node, output }, Arc::new(region));
                }
                self.run.handle_done(&self.stage, node);
            }
            Err(cause) => self.run.handle_failed(&self.stage, node, &cause),
        }
        // Put into storage when the bucket has let go of its own: one region is not counted twice.
        let mut puts = Vec::new();
        while let Some(effect) = self.run.poll_effect() {
            self.perform(effect, &mut puts);
        }
        for (key, region) in puts {
            // A second copy of a key holds the same bytes: the instance was run again after its worker was lost.
            let _ = self.around.ram.insert(key, region);
        }
    }

    fn perform(&mut self, effect: Effect, puts: &mut Vec<(RegionKey, Arc<DataRegion>)>) {
        let (lease, worker) = (self.lease, self.around.worker.clone());
        match effect {
            Effect::Done { instance, outputs } => {
                let mut results = Vec::new();
                for (plan, output) in self.work[&instance].outputs.iter().zip(outputs) {
                    let Some(region) = self.held.get(&output) else { continue };
                    if plan.stored {
                        puts.push((plan.key, Arc::clone(region)));
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
                    self.around.written.subtract(region.bytes());
                    self.held_bytes -= region.bytes();
                }
            }
            Effect::Over => worker.do_send(FromStage::Over(lease)),
        }
    }
}

impl Actor for StageActor {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        let (lease, demand) = (self.lease, self.demand());
        self.around.worker.do_send(FromStage::Demand { lease, demand });
    }
}

impl Handler<Granted> for StageActor {
    type Result = ();

    fn handle(&mut self, Granted { slot, node }: Granted, ctx: &mut Self::Context) {
        let missing = missing_bytes(&self.around.ram, &self.inputs);
        let (lease, worker) = (self.lease, self.around.worker.clone());
        match self.run.start_task(&self.stage, node, missing) {
            Some(call) => {
                self.start(slot, call, ctx);
                worker.do_send(FromStage::Demand { lease, demand: self.demand() });
            }
            // Given up meanwhile: the slot goes back.
            None => worker.do_send(FromStage::SlotFree { slot, lease, demand: self.demand() }),
        }
    }
}
