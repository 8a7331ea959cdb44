//! Directed acyclic graph of a stage's tasks and their inputs. Without it, a stage is a list, and every task
//! depends on all preceding ones.

use thiserror::Error;

/// Inputs of one task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskReads {
    /// Earlier tasks whose outputs the task reads, by position.
    pub tasks: Vec<usize>,
    /// Whether the task reads the inputs of the stage instance.
    pub inputs: bool,
}

/// Inputs of each task of a stage, in topological order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskGraph {
    reads: Vec<TaskReads>,
}

/// Error of a task graph or a task order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TaskGraphError {
    /// A task reads itself, a later task, or a missing one.
    #[error("order the tasks: task {task} reads task {reads}, which does not come before it")]
    NotBefore {
        /// The task that reads.
        task: usize,
        /// The task that it reads.
        reads: usize,
    },
    /// A task order names a task before one of its inputs, twice, or not at all.
    #[error("order the tasks: position {position} holds task {task}, which cannot be there")]
    NotAnOrder {
        /// Position in the order.
        position: usize,
        /// The task named there.
        task: usize,
    },
}

impl TaskGraph {
    /// Creates the graph of tasks with these inputs.
    ///
    /// # Errors
    /// If a task reads one that does not precede it.
    pub fn new(mut reads: Vec<TaskReads>) -> Result<Self, TaskGraphError> {
        for (task, reads) in reads.iter_mut().enumerate() {
            reads.tasks.sort_unstable();
            reads.tasks.dedup();
            if let Some(last) = reads.tasks.last().filter(|last| **last >= task) {
                return Err(TaskGraphError::NotBefore { task, reads: *last });
            }
        }
        Ok(Self { reads })
    }

    /// Returns the graph that the tree assumes: each task reads its predecessor, and the first one the
    /// inputs.
    pub fn chain(tasks: usize) -> Self {
        let reads = |task: usize| TaskReads { tasks: (task.max(1) - 1..task).collect(), inputs: task == 0 };
        Self { reads: (0..tasks).map(reads).collect() }
    }

    /// Returns the number of tasks.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Returns whether the graph has no task.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Returns the inputs of a task.
    pub fn reads(&self, task: usize) -> &TaskReads {
        &self.reads[task]
    }

    /// Returns the duration of the longest chain of dependent tasks, if task `t` takes `seconds[t]`.
    ///
    /// # Panics
    /// If `seconds` has fewer entries than the graph has tasks.
    pub fn longest_chain(&self, seconds: &[f64]) -> f64 {
        let mut done: Vec<f64> = Vec::with_capacity(self.len());
        for (reads, own) in self.reads.iter().zip(&seconds[..self.len()]) {
            let ready = reads.tasks.iter().map(|read| done[*read]).fold(0.0, f64::max);
            done.push(ready + own);
        }
        done.into_iter().fold(0.0, f64::max)
    }

    /// Returns the graph with its tasks in another order, where `order[position]` is the task at that position.
    ///
    /// # Errors
    /// If tasks cannot be executed in this order.
    pub fn reordered(&self, order: &[usize]) -> Result<Self, TaskGraphError> {
        let mut position_of = vec![None; self.len()];
        for (position, task) in order.iter().copied().enumerate() {
            let known = self.reads.get(task).filter(|_| position_of[task].is_none());
            let ready = known.filter(|reads| reads.tasks.iter().all(|read| position_of[*read].is_some()));
            if ready.is_none() {
                return Err(TaskGraphError::NotAnOrder { position, task });
            }
            position_of[task] = Some(position);
        }
        if let Some(task) = position_of.iter().position(Option::is_none) {
            return Err(TaskGraphError::NotAnOrder { position: order.len(), task });
        }
        let moved = |task: &usize| {
            let reads = &self.reads[*task];
            let tasks = reads.tasks.iter().filter_map(|read| position_of[*read]).collect();
            TaskReads { tasks, inputs: reads.inputs }
        };
        Self::new(order.iter().map(moved).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_read_earlier_ones() {
        let reads = |tasks: &[usize]| TaskReads { tasks: tasks.to_vec(), inputs: false };
        let graph = TaskGraph::new(vec![reads(&[]), reads(&[]), reads(&[1, 0, 1])]).unwrap();
        assert_eq!(graph.reads(2).tasks, [0, 1]);
        let wrong = TaskGraph::new(vec![reads(&[0])]);
        assert_eq!(wrong, Err(TaskGraphError::NotBefore { task: 0, reads: 0 }));
        assert_eq!(TaskGraph::chain(3).reads(2).tasks, [1]);
        assert!(TaskGraph::chain(3).reads(0).inputs);
        // The third task reads two parallel ones. The more expensive one counts.
        assert_eq!(graph.longest_chain(&[3.0, 5.0, 1.0]), 6.0);
        assert_eq!(TaskGraph::chain(3).longest_chain(&[3.0, 5.0, 1.0]), 9.0);
    }

    #[test]
    fn an_order_moves_tasks_behind_what_they_read() {
        let graph = TaskGraph::new(vec![
            TaskReads { tasks: vec![], inputs: true },
            TaskReads::default(),
            TaskReads { tasks: vec![0], inputs: false },
        ])
        .unwrap();
        let moved = graph.reordered(&[1, 0, 2]).unwrap();
        assert_eq!((moved.reads(1).inputs, moved.reads(2).tasks.as_slice()), (true, &[1][..]));
        let wrong = |order: &[usize]| graph.reordered(order).unwrap_err();
        assert_eq!(wrong(&[2, 0, 1]), TaskGraphError::NotAnOrder { position: 0, task: 2 });
        assert_eq!(wrong(&[0, 0, 1]), TaskGraphError::NotAnOrder { position: 1, task: 0 });
        assert_eq!(wrong(&[0, 1]), TaskGraphError::NotAnOrder { position: 2, task: 2 });
        assert_eq!(wrong(&[0, 1, 7]), TaskGraphError::NotAnOrder { position: 2, task: 7 });
    }
}
