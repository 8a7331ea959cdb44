//! Cost classes of a stage's tasks: the values that a cost model tells apart, with the ratio of measured to declared
//! seconds that the costs of a plan have, and later the measured one.

use pleach_dispatch::cost_model::{CostModel, few_values};
use pleach_reuse::Interner;
use pleach_workflow::{Operation, Value};
use std::fmt;
use std::sync::Arc;

/// Share of a stage's time that other costs must move between its tasks before its buckets are out of balance.
const MIN_MOVED_SHARE: f64 = 0.1;

/// Cost classes of the tasks of a stage, by task key.
#[derive(Debug)]
pub(crate) struct CostClasses {
    tasks: Vec<TaskClasses>,
}

/// Cost classes of one task.
struct TaskClasses {
    operation: Arc<dyn Operation>,
    /// Interner of the values that distinguish the classes.
    values: Interner<Vec<Value>>,
    class_of_key: Vec<u32>,
    classes: Vec<CostClass>,
}

impl fmt::Debug for TaskClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskClasses").field("classes", &self.classes).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct CostClass {
    /// Arguments of the first key of the class.
    arguments: Vec<Value>,
    /// Ratio of measured to declared seconds in the present costs.
    ratio: f64,
    /// Predicted seconds of the distinct tasks of the class, at this ratio.
    seconds: f64,
}

impl CostClasses {
    /// Creates the classes of a stage with these operations, without keys.
    pub(crate) fn of(operations: Vec<Arc<dyn Operation>>) -> Self {
        let task = |operation| TaskClasses {
            operation,
            values: Interner::default(),
            class_of_key: Vec::new(),
            classes: Vec::new(),
        };
        Self { tasks: operations.into_iter().map(task).collect() }
    }

    /// Returns the ratio of measured to declared seconds of a task's key. `arguments` are those of the key. Keys are dense:
    /// a new one is the next number.
    pub(crate) fn planned_ratio(
        &mut self,
        task: usize,
        key: u32,
        arguments: impl FnOnce() -> Vec<Value>,
        costs: &CostModel,
    ) -> f64 {
        let TaskClasses { operation, values, class_of_key, classes } = &mut self.tasks[task];
        assert!(key as usize <= class_of_key.len(), "key {key} follows {} keys", class_of_key.len());
        // Each key is looked up once, because the look-up in the model costs more than a task of the plan may.
        if key as usize == class_of_key.len() {
            let arguments = arguments();
            let class = values.intern(few_values(operation.as_ref(), &arguments).copied().collect());
            class_of_key.push(class);
            if class as usize == classes.len() {
                let ratio = costs.ratio(operation.as_ref(), &arguments);
                classes.push(CostClass { arguments, ratio, seconds: 0.0 });
            }
        }
        classes[class_of_key[key as usize] as usize].ratio
    }

    /// Adds the seconds of a distinct task of the stage.
    pub(crate) fn add_work(&mut self, task: usize, key: u32, seconds: f64) {
        let TaskClasses { class_of_key, classes, .. } = &mut self.tasks[task];
        classes[class_of_key[key as usize] as usize].seconds += seconds;
    }

    /// Returns the factors from the present costs to the measured ones. `None` if the time of the stage would be divided
    /// among its tasks about as it is now.
    pub(crate) fn changes(&self, costs: &CostModel) -> Option<CostChanges> {
        let measured = |task: &TaskClasses| -> Vec<Option<f64>> {
            let ratio = |class: &CostClass| {
                let ratio = costs.learned_ratio(task.operation.as_ref(), &class.arguments)?;
                Some(ratio / class.ratio).filter(|factor| factor.is_finite())
            };
            task.classes.iter().map(ratio).collect()
        };
        let measured: Vec<Vec<Option<f64>>> = self.tasks.iter().map(measured).collect();
        let seconds = || self.tasks.iter().flat_map(|task| task.classes.iter().map(|class| class.seconds));
        // What has no measurement yet is taken to be as far off as the rest: the machine, not the task.
        let known =
            || measured.iter().flatten().zip(seconds()).filter_map(|(factor, s)| Some(((*factor)?, s)));
        let (before, after) = known().fold((0.0, 0.0), |(b, a), (factor, s)| (b + s, a + s * factor));
        let mean = Some(after / before).filter(|mean| mean.is_finite() && *mean > 0.0)?;
        let factors: Vec<Vec<f64>> =
            measured.iter().map(|task| task.iter().map(|factor| factor.unwrap_or(mean)).collect()).collect();
        let all: f64 = seconds().sum();
        let new: f64 = seconds().zip(factors.iter().flatten()).map(|(s, factor)| s * factor).sum();
        let moved =
            seconds().zip(factors.iter().flatten()).map(|(s, factor)| (s / all - s * factor / new).abs());
        (moved.sum::<f64>() / 2.0 > MIN_MOVED_SHARE).then_some(CostChanges(factors))
    }

    /// Takes over measured costs.
    pub(crate) fn apply(&mut self, changes: &CostChanges) {
        for (task, factors) in self.tasks.iter_mut().zip(&changes.0) {
            for (class, factor) in task.classes.iter_mut().zip(factors) {
                class.ratio *= factor;
                class.seconds *= factor;
            }
        }
    }

    /// Returns the factor of a task's key.
    pub(crate) fn factor(&self, changes: &CostChanges, task: usize, key: u32) -> f64 {
        changes.0[task][self.tasks[task].class_of_key[key as usize] as usize]
    }
}

/// Factors from the costs of a plan to measured costs, by task and class.
#[derive(Debug)]
pub(crate) struct CostChanges(Vec<Vec<f64>>);
