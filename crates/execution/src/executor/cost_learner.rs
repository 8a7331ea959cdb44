//! Learns the costs of operations, and the overhead of buckets, from the reports of workers in other processes, whose own cost models this process does not
//! see. Replans of the study use them, and so do later plans.

use parking_lot::Mutex;
use pleach_dispatch::InstanceId;
use pleach_dispatch::cost_model::{CostModel, few_values};
use pleach_dispatch::message::TaskOutcome;
use pleach_dispatch::study::{InstanceEnd, InstanceReport, WorkerReports};
use pleach_planner::PlannedStudy;
use pleach_reuse::Interner;
use pleach_study::PreparedStudy;
use pleach_workflow::{Operation, Stage, Task, Value};
use std::sync::Arc;

/// Cost model of a study on other processes.
pub(super) struct CostLearner {
    /// By stage and task.
    tasks: Vec<Vec<Option<LearnedTask>>>,
    /// By instance, the pixels that it works on.
    pixels: Vec<u64>,
    costs: Arc<Mutex<CostModel>>,
}

/// Operation of a task, and its arguments in each instance as far as costs depend on them.
struct LearnedTask {
    operation: Arc<dyn Operation>,
    /// Arguments of one instance of each class.
    arguments: Vec<Vec<Value>>,
    /// By instance of the plan. Empty if there is one class only.
    class_of: Vec<u32>,
}

impl LearnedTask {
    fn new(operation: Arc<dyn Operation>, arguments: impl Iterator<Item = Option<Vec<Value>>>) -> Self {
        let mut classes = Interner::default();
        let mut learned = Self { operation, arguments: Vec::new(), class_of: Vec::new() };
        for arguments in arguments {
            // Instances of other stages do not have the task.
            let Some(arguments) = arguments else {
                learned.class_of.push(0);
                continue;
            };
            let values = few_values(learned.operation.as_ref(), &arguments).copied().collect::<Vec<_>>();
            let class = classes.intern(values);
            learned.class_of.push(class);
            if class as usize == learned.arguments.len() {
                learned.arguments.push(arguments);
            }
        }
        if learned.arguments.len() <= 1 {
            learned.class_of = Vec::new();
        }
        learned
    }

    /// Returns the arguments of an instance of the same class.
    fn arguments(&self, instance: InstanceId) -> &[Value] {
        let class = self.class_of.get(instance.index()).copied().unwrap_or(0);
        self.arguments.get(class as usize).map_or(&[], Vec::as_slice)
    }
}

impl CostLearner {
    /// Creates the learner of a plan, which updates `costs`.
    pub(super) fn new(
        prepared: &PreparedStudy,
        planned: &PlannedStudy,
        costs: Arc<Mutex<CostModel>>,
    ) -> Self {
        let stages = prepared.study.workflow.stages.iter().enumerate();
        let tasks = stages.map(|(number, stage)| {
            let learned = |task: &Task| {
                let operation = prepared.registry.get(&task.operation, task.version)?;
                let arguments = arguments(prepared, planned, (number, stage), task);
                Some(LearnedTask::new(Arc::clone(operation), arguments))
            };
            stage.tasks.iter().map(learned).collect()
        });
        Self {
            tasks: tasks.collect(),
            pixels: (0..planned.instances() as u32)
                .map(|instance| planned.pixels(InstanceId(instance)))
                .collect(),
            costs,
        }
    }

    /// Learns the overhead of buckets from those of some leases, in seconds.
    pub(super) fn learn_overheads(&self, seconds: &[f64]) {
        let mut costs = self.costs.lock();
        seconds.iter().for_each(|seconds| costs.observe_bucket_overhead(*seconds));
    }

    /// Learns from the executed tasks of reports. A failed task, or one without its input, ended early, so reports with one do
    /// not count.
    pub(super) fn learn(&self, all: &WorkerReports<'_>) {
        let is_whole = |report: &&InstanceReport<'_>| {
            !matches!(report.end, InstanceEnd::Failed | InstanceEnd::MissingInput)
        };
        let tasks = all.reports.iter().filter(is_whole).flat_map(|report| report.tasks);
        let mut costs = self.costs.lock();
        for report in tasks {
            let TaskOutcome::Ran { seconds, .. } = report.done else { continue };
            // Workers report places and instances, so they may be none of the study.
            let of_stage = self.tasks.get(report.stage as usize);
            let Some(Some(task)) = of_stage.and_then(|tasks| tasks.get(report.task as usize)) else {
                continue;
            };
            let instance = InstanceId(report.provenance.instance);
            let Some(&pixels) = self.pixels.get(instance.index()) else { continue };
            let kind = report.provenance.device;
            costs.observe_on(kind, task.operation.as_ref(), task.arguments(instance), pixels, seconds);
        }
    }
}

/// Returns the arguments of a task in each instance of its stage, and `None` for instances of other stages. Empty if the costs
/// of the operation depend on no argument.
fn arguments<'a>(
    prepared: &'a PreparedStudy,
    planned: &'a PlannedStudy,
    (number, stage): (usize, &'a Stage),
    task: &'a Task,
) -> impl Iterator<Item = Option<Vec<Value>>> {
    let operation = prepared.registry.get(&task.operation, task.version);
    let defaults: Vec<Value> =
        stage.task_parameters(task).map(|index| prepared.study.workflow.parameters[index].default).collect();
    let has_classes =
        operation.is_some_and(|operation| few_values(operation.as_ref(), &defaults).next().is_some());
    let first = usize::from(!prepared.defaults_run());
    let instances = (0..planned.instances() as u32).map(InstanceId).filter(move |_| has_classes);
    instances.map(move |instance| {
        let evaluation = (planned.stage(instance) == number).then(|| planned.first_run(instance).0)?;
        let values = &prepared.evaluations[evaluation - first];
        Some(stage.task_parameters(task).map(|index| values[index]).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::LeaseId;
    use pleach_dispatch::message::{TaskProvenance, TaskReport};
    use pleach_study::builtin;
    use std::collections::HashMap;

    #[test]
    fn tasks_that_ended_early_teach_nothing() {
        let registry = builtin::registry();
        let operation = Arc::clone(registry.get("nuclei.background", 1).unwrap());
        let task =
            LearnedTask { operation: Arc::clone(&operation), arguments: Vec::new(), class_of: Vec::new() };
        let costs: Arc<Mutex<CostModel>> = Arc::default();
        let learner =
            CostLearner { tasks: vec![vec![Some(task)]], pixels: vec![1000], costs: Arc::clone(&costs) };
        let report = |end, seconds| {
            let ran = TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 };
            let provenance = TaskProvenance::default();
            let tasks = [TaskReport { task: 0, stage: 0, done: ran, cache_seconds: 0.0, provenance }];
            let (lease, instance, members) = (LeaseId(1), InstanceId(0), &HashMap::new());
            let reports = &[InstanceReport { lease, instance, end, tasks: &tasks }];
            learner.learn(&WorkerReports { worker: "w", members, reports });
            costs.lock().predict(operation.as_ref(), &[], 1000)
        };
        assert_eq!(report(InstanceEnd::Finished, 2.0), 2.0);
        assert_eq!(report(InstanceEnd::MissingInput, 0.0), 2.0);
        assert_eq!(report(InstanceEnd::Failed, 0.0), 2.0);
        assert_eq!(report(InstanceEnd::Late, 4.0), 3.0, "the mean of two executions");
    }
}
