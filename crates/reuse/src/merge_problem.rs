//! The task-level merging problem: the instances of one stage, each with a key per task and a cost per task.
//!
//! The tasks of a stage are ordered, and instances share a *prefix* of them: the first tasks with equal keys on the
//! same inputs. The caller maps levels to tasks and keys to parameter values.

use thiserror::Error;

/// A stage instance of a [`MergeProblem`], by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u32);

/// Task costs. Instances that share a task should give it the same cost. If they differ, the first instance's cost
/// counts.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCosts {
    /// Every task costs 1: costs are task counts, as in the papers.
    Count,
    /// One cost per level, `levels` long: every instance's task of that level costs the same.
    PerLevel(Vec<f64>),
    /// One cost per instance and level, in the layout of the keys.
    PerTask(Vec<f64>),
}

impl TaskCosts {
    /// Creates the costs of each instance and level, in the layout of the keys. Instances of equal costs, as on tiles of one
    /// size, take the memory of one.
    #[must_use]
    pub fn of_tasks(levels: usize, costs: Vec<f64>) -> Self {
        match costs.get(..levels) {
            Some(first) if levels > 0 && costs.chunks(levels).all(|row| row == first) => {
                Self::PerLevel(first.to_vec())
            }
            _ => Self::PerTask(costs),
        }
    }
}

/// Stage instances to group into buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeProblem {
    levels: usize,
    inputs: Vec<u32>,
    keys: Vec<u32>,
    costs: TaskCosts,
}

/// Error of the tables of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProblemError {
    /// The stage has no task.
    #[error("read task keys: a stage needs at least one task")]
    NoLevels,
    /// The key table is not instances × levels.
    #[error("read task keys: {found} of them, but {instances} stage instances of {levels} tasks")]
    Keys {
        /// Keys given.
        found: usize,
        /// Stage instances given.
        instances: usize,
        /// Tasks of the stage.
        levels: usize,
    },
    /// The number of costs does not match their kind.
    #[error("read task costs: {found} of them where {expected} are needed")]
    Costs {
        /// Costs given.
        found: usize,
        /// Costs needed.
        expected: usize,
    },
    /// A cost is negative, infinite or not a number.
    #[error("read task costs: number {position} is negative or not finite")]
    Cost {
        /// Position in the table.
        position: usize,
    },
    /// Ids do not fit in 32 bits.
    #[error("number the tasks: {instances} stage instances of {levels} tasks exceed 32-bit ids")]
    TooLarge {
        /// Stage instances given.
        instances: usize,
        /// Tasks of the stage.
        levels: usize,
    },
}

impl MergeProblem {
    /// Creates a problem of `inputs.len()` instances of `levels` tasks.
    ///
    /// `inputs[i]` identifies the inputs of instance `i` (see [`InputsId`](crate::InputsId)). Instances of
    /// different inputs share nothing. `keys[i * levels + l]` represents the parameter values that its task `l`
    /// consumes, and is compared only with keys of the same level.
    ///
    /// # Errors
    /// Fails if a table has the wrong size, a cost is negative or not finite, or ids exceed 32 bits.
    pub fn new(
        levels: usize,
        inputs: Vec<u32>,
        keys: Vec<u32>,
        costs: TaskCosts,
    ) -> Result<Self, ProblemError> {
        if levels == 0 {
            return Err(ProblemError::NoLevels);
        }
        let instances = inputs.len();
        if instances.checked_mul(levels) != Some(keys.len()) {
            return Err(ProblemError::Keys { found: keys.len(), instances, levels });
        }
        // A tree has at most one node per key, so this bound covers instances and nodes.
        if keys.len() > u32::MAX as usize {
            return Err(ProblemError::TooLarge { instances, levels });
        }
        let (table, expected) = match &costs {
            TaskCosts::Count => (&[][..], 0),
            TaskCosts::PerLevel(table) => (&table[..], levels),
            TaskCosts::PerTask(table) => (&table[..], keys.len()),
        };
        if table.len() != expected {
            return Err(ProblemError::Costs { found: table.len(), expected });
        }
        if let Some(position) = table.iter().position(|cost| !cost.is_finite() || *cost < 0.0) {
            return Err(ProblemError::Cost { position });
        }
        Ok(Self { levels, inputs, keys, costs })
    }

    /// Returns the number of tasks per instance: the k of the papers.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Returns the number of instances: the n of the papers.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Returns whether the problem has no instance.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Returns the instances, in order.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = Member> + ExactSizeIterator + use<> {
        (0..self.inputs.len() as u32).map(Member)
    }

    /// Returns the identity of an instance's inputs.
    pub fn inputs(&self, member: Member) -> u32 {
        self.inputs[member.0 as usize]
    }

    /// Returns the keys of an instance's tasks, first task first.
    pub fn keys(&self, member: Member) -> &[u32] {
        let start = member.0 as usize * self.levels;
        &self.keys[start..start + self.levels]
    }

    /// Returns the cost of an instance's task at a level, counted from 0.
    pub fn cost(&self, member: Member, level: usize) -> f64 {
        match &self.costs {
            TaskCosts::Count => 1.0,
            TaskCosts::PerLevel(costs) => costs[level],
            TaskCosts::PerTask(costs) => costs[member.0 as usize * self.levels + level],
        }
    }

    /// Multiplies the cost of each task by the factor of its level and key: measurements replace estimates while a study
    /// runs.
    ///
    /// # Panics
    /// If a factor is negative or not finite.
    pub fn scale_costs(&mut self, factor: impl Fn(usize, u32) -> f64) {
        let mut costs = Vec::with_capacity(self.keys.len());
        for member in self.members() {
            for (level, key) in self.keys(member).iter().enumerate() {
                let factor = factor(level, *key);
                assert!(
                    factor.is_finite() && factor >= 0.0,
                    "task {level} of key {key} costs {factor} as much"
                );
                costs.push(self.cost(member, level) * factor);
            }
        }
        self.costs = TaskCosts::of_tasks(self.levels, costs);
    }

    /// Returns the costs as given.
    pub(crate) fn costs(&self) -> &TaskCosts {
        &self.costs
    }

    /// Returns the same instances with other tables of the same sizes.
    pub(crate) fn with_tasks(&self, keys: Vec<u32>, costs: TaskCosts) -> Self {
        let (found, expected) = (keys.len(), self.keys.len());
        assert!(found == expected, "{found} keys replace the {expected} keys of a problem");
        Self { levels: self.levels, inputs: self.inputs.clone(), keys, costs }
    }

    /// Returns the cost of an instance that shares nothing. Sums from the last task back, as bucket costs do, so
    /// that a single-instance bucket costs exactly this.
    pub fn member_cost(&self, member: Member) -> f64 {
        (0..self.levels).rev().map(|level| self.cost(member, level)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_must_fit() {
        let problem = |levels, keys, costs| MergeProblem::new(levels, vec![0, 0], keys, costs).unwrap_err();
        assert_eq!(problem(0, vec![], TaskCosts::Count), ProblemError::NoLevels);
        let wrong = ProblemError::Keys { found: 3, instances: 2, levels: 2 };
        assert_eq!(problem(2, vec![0; 3], TaskCosts::Count), wrong);
        let wrong = ProblemError::Costs { found: 1, expected: 2 };
        assert_eq!(problem(2, vec![0; 4], TaskCosts::PerLevel(vec![1.0])), wrong);
        let costs = TaskCosts::PerTask(vec![1.0, 0.0, f64::NAN, 1.0]);
        assert_eq!(problem(2, vec![0; 4], costs), ProblemError::Cost { position: 2 });
    }

    #[test]
    fn equal_costs_are_kept_once() {
        let of = |costs: &[f64]| TaskCosts::of_tasks(2, costs.to_vec());
        assert_eq!(of(&[1.0, 2.0, 1.0, 2.0]), TaskCosts::PerLevel(vec![1.0, 2.0]));
        assert_eq!(of(&[1.0, 2.0, 1.0, 3.0]), TaskCosts::PerTask(vec![1.0, 2.0, 1.0, 3.0]));
        assert_eq!(of(&[]), TaskCosts::PerTask(Vec::new()));
        assert_eq!(TaskCosts::of_tasks(0, Vec::new()), TaskCosts::PerTask(Vec::new()));
    }

    #[test]
    fn costs_are_scaled_by_level_and_key() {
        for costs in [TaskCosts::Count, TaskCosts::PerLevel(vec![1.0, 1.0]), TaskCosts::PerTask(vec![1.0; 4])]
        {
            let mut problem = MergeProblem::new(2, vec![0, 0], vec![0, 5, 0, 6], costs).unwrap();
            problem.scale_costs(|level, key| if level == 0 { 3.0 } else { f64::from(key) });
            let costs = |member| [problem.cost(Member(member), 0), problem.cost(Member(member), 1)];
            assert_eq!((costs(0), costs(1)), ([3.0, 5.0], [3.0, 6.0]));
        }
    }
}
