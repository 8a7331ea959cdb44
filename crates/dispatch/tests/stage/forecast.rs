//! Memory forecast of a bucket, against an execution on sizes, and the sibling order with the smallest peak.

use crate::buckets::{Case, bucket, cases, instance};
use crate::failures;
use crate::shapes;
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::{BucketDemand, MemoryForecast, OutputConsumption, TaskMemory};
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::{BucketExecution, Effect, NodeId, OutputId, TaskRequest};
use pleach_workflow::{Stage, TaskInput, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Event of a bucket. A number selects one of the running tasks.
#[derive(Clone, Copy, Debug)]
enum Event {
    Start,
    End(usize),
    Fail(usize),
    /// The running task waits again, as one that is looked up.
    Suspend(usize),
    /// Every third instance leaves the bucket, from this one on.
    Withdraw(usize),
}

/// A bucket executed on sizes, independent of the forecast.
struct Sizes<'a> {
    case: &'a Case,
    run: BucketExecution,
    running: Vec<TaskRequest>,
    held: BTreeMap<OutputId, u64>,
    /// Bytes that instances have left in storage, and bytes whose readers must wait.
    left: u64,
    staying: u64,
    ended: Vec<InstanceId>,
    /// The task that loads the inputs.
    first: Option<NodeId>,
    /// A task was granted.
    has_started: bool,
}

impl<'a> Sizes<'a> {
    fn replay(case: &'a Case, events: &[Event]) -> Self {
        let run = BucketExecution::new(&case.stage, &case.work, case.bytes.clone(), case.active_paths)
            .expect("fits");
        let mut sizes = Self {
            case,
            run,
            running: Vec::new(),
            held: BTreeMap::new(),
            left: 0,
            staying: 0,
            ended: Vec::new(),
            first: None,
            has_started: false,
        };
        for event in events {
            sizes.happen(*event);
        }
        sizes
    }

    fn demand(&self) -> BucketDemand {
        self.run.demand(7)
    }

    fn held_bytes(&self) -> u64 {
        self.held.values().sum()
    }

    fn happen(&mut self, event: Event) {
        let stage = &self.case.stage;
        match event {
            Event::Start => {
                if let Some(next) = self.demand().next {
                    self.has_started = true;
                    let call = self.run.start_task(stage, next, 7).expect("it is ready");
                    if call.brings_inputs {
                        self.first = Some(call.node);
                    }
                    self.running.push(call);
                }
            }
            Event::End(_) | Event::Fail(_) | Event::Suspend(_) if self.running.is_empty() => {}
            Event::End(which) => {
                let call = self.running.remove(which % self.running.len());
                let sizes = self.case.bytes[call.task].outputs.iter().enumerate();
                for (output, bytes) in sizes.filter(|(output, _)| call.requested[*output]) {
                    self.held.insert(OutputId { node: call.node, output }, *bytes);
                }
                self.run.handle_done(call.node);
            }
            Event::Fail(which) => {
                let call = self.running.remove(which % self.running.len());
                self.run.handle_failed(call.node, &failures::failure("t1"));
            }
            Event::Suspend(which) => {
                let call = self.running.remove(which % self.running.len());
                self.run.suspend(call.node);
                // It has loaded the inputs.
                self.first = self.first.filter(|first| *first != call.node).or(Some(NodeId(u32::MAX)));
                // Most forecasts are made while it waits for the answer.
                self.demand();
                self.run.resume(call.node);
            }
            Event::Withdraw(which) => {
                let all = self.case.work.instances.iter().map(|work| work.id);
                let some = all.skip(which % 3).step_by(3).collect();
                let back = self.run.withdraw(&some);
                self.ended.extend(back);
            }
        }
        while let Some(effect) = self.run.poll_effect() {
            match effect {
                Effect::Done { instance, .. } => {
                    self.ended.push(instance);
                    let is = |work: &&InstanceWork| work.id == instance;
                    let work = self.case.work.instances.iter().find(is).expect("of the bucket");
                    self.left += self.store_bytes();
                    self.staying += if work.stays { self.store_bytes() } else { 0 };
                }
                Effect::Drop(output) => drop(self.held.remove(&output).expect("held")),
                Effect::Failed { instance, .. } | Effect::Lacking { instance, .. } => {
                    self.ended.push(instance)
                }
                Effect::Over => {}
            }
        }
    }

    /// Returns the bytes that an instance leaves in storage: all outputs of the stage.
    fn store_bytes(&self) -> u64 {
        self.case.stage.outputs.iter().map(|out| self.case.bytes[out.task].outputs[out.output]).sum()
    }

    /// Returns the bytes that open instances will leave for readers that must wait.
    fn open_staying(&self) -> u64 {
        let staying =
            self.case.work.instances.iter().filter(|work| work.stays && !self.ended.contains(&work.id));
        staying.count() as u64 * self.store_bytes()
    }

    /// Ends the running tasks, the last one first, then runs the rest one at a time. Returns the memory beyond
    /// the bytes held now.
    fn finish(mut self) -> MemoryForecast {
        let OutputConsumption { bytes, mut rest_bytes, .. } = self.case.work.drain;
        let drain_bytes = bytes.max(self.store_bytes());
        let before = self.held_bytes();
        (self.left, self.staying) = (0, 0);
        let ended = self.ended.len();
        while let Some(last) = self.running.len().checked_sub(1) {
            self.happen(Event::End(last));
        }
        let growth_bytes = (self.held_bytes() + self.left).saturating_sub(before);
        let mut most = before + growth_bytes + drain_bytes;
        // The readers of a finished instance have left their bytes.
        let mut rest = if self.ended.len() > ended { std::mem::take(&mut rest_bytes) } else { 0 };
        loop {
            self.left = 0;
            let (stayed, ended) = (self.staying, self.ended.len());
            self.happen(Event::Start);
            let Some(call) = self.running.first() else { break };
            most = most.max(self.held_bytes() + stayed + rest + self.case.bytes[call.task].running());
            self.happen(Event::End(0));
            if self.ended.len() > ended {
                most = most.max(self.held_bytes() + stayed + rest + self.left.max(drain_bytes));
                rest += std::mem::take(&mut rest_bytes);
            }
        }
        MemoryForecast { growth_bytes, finish_bytes: most - before }
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        5 => Just(Event::Start),
        4 => any::<usize>().prop_map(Event::End),
        1 => any::<usize>().prop_map(Event::Fail),
        1 => any::<usize>().prop_map(Event::Suspend),
        1 => any::<usize>().prop_map(Event::Withdraw),
    ];
    prop::collection::vec(event, 0..40)
}

proptest! {
    #[test]
    fn forecast_equals_the_simulated_memory(
        mut case in cases(), events in events(), drain_bytes in 0u64..60, rest_bytes in 0u64..20, stays in prop::collection::vec(any::<bool>(), 14),
    ) {
        case.work.drain = OutputConsumption { bytes: drain_bytes, rest_bytes, ..OutputConsumption::default() };
        for (instance, stays) in case.work.instances.iter_mut().zip(stays) {
            instance.stays = stays;
        }
        let now = Sizes::replay(&case, &events);
        let demand = now.demand();
        prop_assert_eq!(demand.held_bytes, now.held_bytes());
        prop_assert_eq!(demand.store_bytes, now.store_bytes());
        prop_assert_eq!(demand.stay_bytes, now.open_staying() + rest_bytes);
        prop_assert_eq!(demand.started, now.has_started);
        let brings = now.first.is_none_or(|first| now.running.iter().any(|call| call.node == first));
        prop_assert_eq!(demand.load_bytes, if brings { 7 } else { 0 });
        let open = now.run.is_over();
        prop_assert_eq!(demand.now, now.finish());
        if demand.ready > 0 {
            let mut then = Sizes::replay(&case, &events);
            then.happen(Event::Start);
            let call = then.running.last().expect("one was ready");
            let task = call.task;
            prop_assert_eq!(call.brings_inputs, !demand.started);
            let load_bytes = if call.brings_inputs { 7 } else { demand.load_bytes };
            prop_assert_eq!(then.demand().load_bytes, load_bytes);
            prop_assert_eq!(then.demand().now, demand.then);
            // The maximum of the task's memory while it runs and of its memory afterwards: each instance stores
            // its own outputs.
            let (before, last) = (then.held_bytes() + then.left, then.running.len() - 1);
            let mut after = Sizes::replay(&case, &events);
            after.happen(Event::Start);
            after.happen(Event::End(last));
            let more = (after.held_bytes() + after.left).saturating_sub(before);
            prop_assert_eq!(demand.next_bytes, case.bytes[task].running().max(more));
            prop_assert_eq!(demand.then, then.finish());
        } else {
            prop_assert!(open || now_is_busy(&case, &events));
            prop_assert_eq!((demand.then, demand.next_bytes), (demand.now, 0));
        }
    }
}

/// Returns whether tasks run.
fn now_is_busy(case: &Case, events: &[Event]) -> bool {
    !Sizes::replay(case, events).running.is_empty()
}

/// Slow reference: the memory peak of a tree executed task by task, for any order of siblings. Compares
/// prefixes to find shared tasks, and recounts the readers of every output each time.
struct Slow<'a> {
    stage: &'a Stage,
    bytes: &'a [TaskMemory],
    instances: Vec<&'a InstanceWork>,
}

/// A task instance: its level, and the first of the instances that share it.
type Place = (usize, usize);

impl Slow<'_> {
    fn same(&self, a: usize, b: usize, levels: usize) -> bool {
        let values = |i: usize, level: usize| -> Vec<Value> {
            self.stage.tasks[level].arguments.iter().map(|&a| self.instances[i].parameters[a]).collect()
        };
        self.instances[a].inputs == self.instances[b].inputs
            && (0..levels).all(|level| values(a, level) == values(b, level))
    }

    /// Returns the first instance that shares the tasks up to `level` with this one.
    fn first(&self, instance: usize, level: usize) -> usize {
        (0..=instance).find(|&other| self.same(other, instance, level + 1)).expect("itself")
    }

    /// Returns the task instances in execution order, with siblings in the order of `rank`.
    fn order(&self, rank: &dyn Fn(Place) -> usize) -> Vec<Place> {
        let mut order = Vec::new();
        self.below(0, &(0..self.instances.len()).collect::<Vec<_>>(), rank, &mut order);
        order
    }

    fn below(&self, level: usize, among: &[usize], rank: &dyn Fn(Place) -> usize, order: &mut Vec<Place>) {
        if level == self.stage.tasks.len() {
            return;
        }
        let mut firsts: Vec<usize> = among.iter().map(|&i| self.first(i, level)).collect();
        firsts.dedup();
        firsts.sort_unstable();
        firsts.dedup();
        firsts.sort_by_key(|&first| rank((level, first)));
        for first in firsts {
            order.push((level, first));
            let group: Vec<usize> =
                among.iter().copied().filter(|&i| self.first(i, level) == first).collect();
            self.below(level + 1, &group, rank, order);
        }
    }

    fn peak(&self, rank: &dyn Fn(Place) -> usize) -> u64 {
        let order = self.order(rank);
        let last = self.stage.tasks.len() - 1;
        let mut most = 0;
        for (number, &(level, _)) in order.iter().enumerate() {
            let (done, open) = order.split_at(number);
            let mut held = 0;
            for &(writer, first) in done {
                let sizes = &self.bytes[writer].outputs;
                for (output, bytes) in sizes.iter().enumerate() {
                    let reads = |&&(reader, i): &&Place| {
                        let given =
                            self.stage.outputs.iter().any(|out| (out.task, out.output) == (writer, output));
                        let read = TaskInput::Task { task: writer, output };
                        reader > writer
                            && self.first(i, writer) == first
                            && (self.stage.tasks[reader].reads.contains(&read) || (reader == last && given))
                    };
                    held += if open.iter().any(|place| reads(&place)) { *bytes } else { 0 };
                }
            }
            most = most.max(held + self.bytes[level].running());
        }
        most
    }
}

/// Returns the peak of the state machine, task by task, and the order of its finished instances.
fn peak(case: &Case) -> (u64, Vec<InstanceId>) {
    let mut case = case.clone();
    for output in case.work.instances.iter_mut().flat_map(|instance| &mut instance.outputs) {
        output.stored = false;
    }
    (case.work.drain, case.active_paths) = (OutputConsumption::default(), None);
    let events = [Event::Start, Event::End(0)].repeat(case.stage.tasks.len() * case.work.instances.len());
    let ended = Sizes::replay(&case, &events).ended;
    (Sizes::replay(&case, &[]).demand().now.finish_bytes, ended)
}

proptest! {
    /// The chosen order of siblings needs no more memory than the plan's order and 8 random ones.
    #[test]
    fn no_order_of_siblings_takes_less(mut case in cases(), seeds in prop::collection::vec(any::<u64>(), 8)) {
        case.work.sharing = ReuseScope::Tree;
        let instances = case.work.instances.iter().collect();
        let slow = Slow { stage: &case.stage, bytes: &case.bytes, instances };
        let (ours, ended) = peak(&case);
        let as_ended = |(level, first): Place| {
            let shares = |id: &InstanceId| slow.first(id.index(), level) == first;
            ended.iter().position(shares).expect("all are finished")
        };
        prop_assert_eq!(ours, slow.peak(&as_ended), "what this test computes");
        let plan = slow.peak(&|(_, first)| first);
        prop_assert!(ours <= plan, "{ours}, and {plan} in the order of the plan");
        for seed in seeds {
            let shuffled = |(level, first): Place| (seed.rotate_left((7 * level + 13 * first) as u32 % 64) % 97) as usize;
            let other = slow.peak(&shuffled);
            prop_assert!(ours <= other, "{ours}, and {other} in another order");
        }
    }
}

/// Returns a bucket of more than 2,048 tasks.
fn large(sharing: ReuseScope) -> Case {
    let of = |task| TaskInput::Task { task, output: 0 };
    let tasks = vec![
        shapes::task("a", &[0], &[TaskInput::StageInput(0)], 1),
        shapes::task("b", &[1], &[of(0)], 2),
        shapes::task("c", &[2], &[of(1), of(0)], 1),
    ];
    let stage = shapes::stage(3, 1, tasks, &[(2, 0)]);
    let instances =
        (0..2500).map(|n: u32| instance(&stage, n, &[i64::from(n % 3), i64::from(n % 200), n.into()], &[0]));
    let drain = OutputConsumption { bytes: 9, rest_bytes: 2, ..OutputConsumption::default() };
    let work = BucketWork { drain, sharing, ..bucket(instances.collect()) };
    let bytes = [(3, vec![5]), (11, vec![2, 8]), (1, vec![4])];
    let bytes = bytes.map(|(scratch, outputs)| TaskMemory { scratch, outputs }).to_vec();
    Case { stage, work, bytes, active_paths: None }
}

#[test]
fn forecast_of_a_large_bucket_is_exact() {
    for sharing in [ReuseScope::Tree, ReuseScope::Dataflow] {
        let case = large(sharing);
        for events in [
            vec![],
            vec![Event::Start; 3],
            [vec![Event::Start; 4], vec![Event::End(1); 3], vec![Event::Start; 9]].concat(),
            [[Event::Start, Event::End(0)].repeat(500), vec![Event::Start; 5]].concat(),
        ] {
            let now = Sizes::replay(&case, &events);
            assert!(now.run.tasks() > 2048);
            assert_eq!(now.demand().now, now.finish());
        }
    }
}
