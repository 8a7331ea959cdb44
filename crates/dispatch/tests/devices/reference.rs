//! A second simulation of FCFS and PATS, over plain lists of tasks, that the worker must follow to the nanosecond.

use crate::clock::{Clock, PipelineTask, Setup};
use pleach_dispatch::worker::{SchedulePolicy, WorkerSlots};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// A ready task.
#[derive(Clone, Copy, Debug)]
struct Ready {
    instance: u32,
    task: usize,
    /// Order of arrival.
    number: u64,
    /// The task whose end made it ready.
    after: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Local {
    Begin(u32),
    Start(Ready, Option<u32>),
}

struct Plain<'a> {
    setup: &'a Setup,
    ready: Vec<Ready>,
    done: BTreeSet<(u32, usize)>,
    free_cores: u32,
    /// The last one became free last.
    free_accelerators: Vec<u32>,
    last: Vec<Option<(u32, usize)>>,
    /// Ends of running tasks: nanoseconds, number of the start, accelerator, instance, task.
    running: Vec<(u64, u64, Option<u32>, u32, usize)>,
    /// Instances to begin, and granted tasks to start. The instance of a granted task waits for the start.
    local: VecDeque<Local>,
    now: u64,
    number: u64,
    starts: u64,
    arrived: u32,
    open: u32,
}

fn nanos(ms: f64) -> u64 {
    std::time::Duration::from_secs_f64(ms / 1000.0).as_nanos() as u64
}

impl Plain<'_> {
    fn seconds(setup: &Setup) -> f64 {
        let accelerators = setup.slots.accelerators;
        let mut plain = Plain {
            setup,
            ready: Vec::new(),
            done: BTreeSet::new(),
            free_cores: setup.slots.cores,
            free_accelerators: (0..accelerators).rev().collect(),
            last: vec![None; accelerators as usize],
            running: Vec::new(),
            local: VecDeque::new(),
            now: 0,
            number: 0,
            starts: 0,
            arrived: 0,
            open: 0,
        };
        plain.arrive();
        while let Some(next) = (0..plain.running.len()).min_by_key(|at| plain.running[*at]) {
            let (now, _, accelerator, instance, task) = plain.running.swap_remove(next);
            plain.now = now;
            plain.end(accelerator, instance, task);
            plain.pass();
            plain.arrive();
        }
        plain.now as f64 / 1e9
    }

    fn gain(&self, ready: &Ready) -> u32 {
        (self.setup.gains[ready.task] * 1000.0).round() as u32
    }

    fn add(&mut self, instance: u32, after: Option<usize>) {
        self.number += 1;
        for (task, own) in self.setup.tasks.iter().enumerate() {
            let is_ready = match after {
                Some(after) => {
                    own.reads.contains(&after)
                        && own.reads.iter().all(|read| self.done.contains(&(instance, *read)))
                }
                None => own.reads.is_empty(),
            };
            if is_ready {
                self.ready.push(Ready { instance, task, number: self.number, after });
            }
        }
    }

    fn arrive(&mut self) {
        while self.open < self.setup.in_flight && self.arrived < self.setup.instances {
            let instance = self.arrived;
            self.arrived += 1;
            self.open += 1;
            self.local.push_back(Local::Begin(instance));
        }
        self.schedule();
    }

    fn schedule(&mut self) {
        loop {
            self.pass();
            let (ready, accelerator) = match self.local.pop_front() {
                Some(Local::Begin(instance)) => {
                    self.add(instance, None);
                    continue;
                }
                Some(Local::Start(ready, accelerator)) => (ready, accelerator),
                None => return,
            };
            let task = &self.setup.tasks[ready.task];
            let time = nanos(if accelerator.is_some() { task.device_ms } else { task.core_ms });
            self.starts += 1;
            self.running.push((self.now + time, self.starts, accelerator, ready.instance, ready.task));
        }
    }

    /// Grants all idle slots that have a task.
    fn pass(&mut self) {
        while let Some((ready, accelerator)) = self.pick() {
            self.ready.retain(|other| (other.instance, other.task) != (ready.instance, ready.task));
            match accelerator {
                Some(slot) => self.free_accelerators.retain(|other| *other != slot),
                None => self.free_cores -= 1,
            }
            if let Some(slot) = accelerator {
                self.last[slot as usize] = Some((ready.instance, ready.task));
            }
            self.local.push_back(Local::Start(ready, accelerator));
        }
    }

    fn pick(&self) -> Option<(Ready, Option<u32>)> {
        let is_granted = |local: &Local, ready: &Ready| matches!(local, Local::Start(granted, _) if granted.instance == ready.instance);
        let waits = |ready: &&Ready| !self.local.iter().any(|local| is_granted(local, ready));
        let mut ready: Vec<Ready> = self.ready.iter().filter(waits).copied().collect();
        ready.sort_by_key(|ready| (ready.instance, ready.task));
        let is_pats = self.setup.slots.policy == SchedulePolicy::Pats;
        for slot in self.free_accelerators.iter().rev() {
            let top = if is_pats {
                let fast = ready.iter().filter(|ready| self.gain(ready) >= 1000 || self.free_cores == 0);
                fast.min_by_key(|ready| (Reverse(self.gain(ready)), ready.instance, ready.task))
            } else {
                ready.iter().min_by_key(|ready| (ready.number, ready.instance, ready.task))
            };
            let Some(top) = top else { continue };
            let local = ready.iter().filter(|ready| {
                is_pats
                    && (self.gain(ready) >= 1000 || self.free_cores == 0)
                    && ready.after.map(|after| (ready.instance, after)) == self.last[*slot as usize]
            });
            let local = local.min_by_key(|ready| (Reverse(self.gain(ready)), ready.instance, ready.task));
            let stays = local.filter(|local| {
                f64::from(self.gain(top) - self.gain(local)) < 0.2 * f64::from(self.gain(top))
            });
            return Some((*stays.unwrap_or(top), Some(*slot)));
        }
        if self.free_cores == 0 {
            return None;
        }
        let least = |ready: &&Ready| {
            let order = if is_pats { u64::from(self.gain(ready)) } else { ready.number };
            (order, ready.instance, ready.task)
        };
        ready.iter().min_by_key(least).map(|ready| (*ready, None))
    }

    fn end(&mut self, accelerator: Option<u32>, instance: u32, task: usize) {
        match accelerator {
            Some(slot) => self.free_accelerators.push(slot),
            None => self.free_cores += 1,
        }
        self.done.insert((instance, task));
        self.add(instance, Some(task));
        if (0..self.setup.tasks.len()).all(|task| self.done.contains(&(instance, task))) {
            self.open -= 1;
        }
    }
}

/// Reads of up to five tasks. At most four are ready at once, as many as a bucket offers.
const SHAPES: [[&[usize]; 5]; 4] = [
    [&[], &[0], &[1], &[2], &[3]],
    [&[], &[], &[0, 1], &[2], &[2]],
    [&[], &[0], &[0], &[0], &[1, 2, 3]],
    [&[], &[], &[], &[0], &[1, 2]],
];

prop_compose! {
    pub(crate) fn setups()(
        shape in 0..SHAPES.len(),
        // Few distinct values, so that tasks end at the same time and have the same gain.
        times in vec((1u32..6, prop_oneof![Just(1.0f64), 1.0f64..20.0, 0.2f64..1.0, Just(4.0)]), 5),
        (cores, accelerators) in (1u32..5, 1u32..4),
        (instances, in_flight) in (1u32..20, 1u32..12),
        policy in 0..SchedulePolicy::ALL.len(),
    ) -> Setup {
        let tasks = times.iter().zip(SHAPES[shape]).map(|(&(ms, gain), reads)| PipelineTask {
            name: "task",
            core_ms: f64::from(ms),
            device_ms: f64::from(ms) / gain,
            reads,
        });
        let policy = SchedulePolicy::ALL[policy];
        let slots = WorkerSlots { cores, accelerators, device_bytes: u64::MAX, policy };
        Setup::new(&tasks.collect::<Vec<_>>(), slots, instances, in_flight)
    }
}

proptest! {
    /// Without an answer of the manager, the tail rule does not apply.
    #[test]
    fn worker_follows_the_plain_simulation(setup in setups(), is_pats in any::<bool>()) {
        let policy = if is_pats { SchedulePolicy::Pats } else { SchedulePolicy::Fcfs };
        let slots = WorkerSlots { policy, ..setup.slots };
        let setup = Setup { slots, answers: false, ..setup };
        let (worker, plain) = (Clock::run(&setup).seconds, Plain::seconds(&setup));
        prop_assert!((worker - plain).abs() < 1e-9, "{worker} s instead of {plain}: {setup:?}");
    }
}
