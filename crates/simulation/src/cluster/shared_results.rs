//! Task results that all workers share: a worker executes the tasks that no other has reached, waits for those of others, and
//! receives outputs or executes their tasks again, by the rule of running workers.
//!
//! Unlike a cluster's, the workers never drop results for memory, and each look-up is free.

use super::Cluster;
use crate::event::ran;
use pleach_dispatch::message::TaskReport;
use pleach_dispatch::{InstanceId, PlanId};
use pleach_reuse::WorkerModel;

/// Speeds and links of the simulated nodes.
struct Nodes<'a> {
    cluster: &'a Cluster,
}

impl WorkerModel for Nodes<'_> {
    fn speed(&self, worker: u32) -> f64 {
        let node = worker as usize;
        let speed = self.cluster.nodes.get(node).map_or(1.0, |node| node.spec.speed);
        speed * self.cluster.starting_rate(node)
    }

    fn transfer_seconds(&self, from: u32, to: u32, bytes: u64) -> f64 {
        let network = self.cluster.schedule.network;
        let near = 2e-6 * network.latency_us as f64 + bytes as f64 / network.bytes_per_second;
        near + self.cluster.wide_seconds(from as usize, to as usize, bytes)
    }
}

/// Run of an instance on a node.
pub(super) struct InstanceRun {
    /// Time until its last task is done.
    pub(super) seconds: f64,
    /// Seconds of the tasks that it executes.
    pub(super) executed_seconds: f64,
    pub(super) tasks: Vec<TaskReport>,
}

impl Cluster {
    /// Begins an instance on a node. `None` if workers do not share the results of its study.
    pub(super) fn begin_shared(
        &mut self,
        node: usize,
        study: PlanId,
        instance: InstanceId,
    ) -> Option<InstanceRun> {
        if self.shared[study.index()].is_empty() {
            return None;
        }
        let (stage, member) = self.workloads[study.index()].place(instance)?;
        let mut schedules = std::mem::take(&mut self.shared[study.index()]);
        let now = self.now_us as f64 / 1e6;
        let schedule = schedules.get_mut(stage);
        let run = schedule.map(|schedule| {
            let before = schedule.forecast().recomputed_tasks;
            let nodes = Nodes { cluster: &*self };
            let run = schedule.begin_on(&nodes, node as u32, &[member], now);
            let levels: Vec<u32> =
                run.executed.iter().map(|(task, _)| schedule.level(*task) as u32).collect();
            (run, levels, schedule.forecast().recomputed_tasks - before)
        });
        self.shared[study.index()] = schedules;
        let (run, levels, recomputed) = run?;
        self.figures.recomputed_tasks += recomputed as u64;
        for (from, bytes) in &run.received {
            self.figures.transfers += 1;
            self.figures.bytes_moved += bytes;
            self.leave_site(*from as usize, node, *bytes);
        }
        let speed = self.nodes[node].spec.speed;
        let tasks = levels.iter().zip(&run.executed);
        let tasks = tasks.map(|(level, (_, seconds))| ran(stage as u32, *level, *seconds)).collect();
        let executed_seconds = run.executed.iter().map(|(_, seconds)| seconds * speed).sum();
        Some(InstanceRun { seconds: run.end_seconds - now, executed_seconds, tasks })
    }

    /// Drops the task results of a node that has ended.
    pub(super) fn drop_results(&mut self, node: usize) {
        self.shared.iter_mut().flatten().for_each(|schedule| schedule.remove_worker(node as u32));
    }
}
