//! Variance of run times: spreads the run times of each level about their mean.

use super::{Workflow, WorkflowError};

impl Workflow {
    /// Changes the variance of the run times of each level. A run time r becomes proportional to r^`exponent`, scaled so that
    /// the level keeps its sum and with it its mean. An exponent of 0 makes the run times of a level equal, 1 keeps them, and a
    /// larger one spreads them. The order of run times within a level stays.
    ///
    /// # Errors
    /// If a run time is not a finite number of 0 or more, because the exponent is negative or not a number.
    pub fn with_run_time_variance(mut self, exponent: f64) -> Result<Self, WorkflowError> {
        // Powers and quotients would change the last bits.
        if exponent == 1.0 {
            return Ok(self);
        }
        for level in &self.levels {
            let seconds = |task: &u32| self.tasks[*task as usize].seconds;
            let (sum, longest) =
                level.iter().map(seconds).fold((0.0, 0.0_f64), |(sum, most), one| (sum + one, most.max(one)));
            if sum == 0.0 {
                continue;
            }
            // Shares of the longest run time: no power exceeds 1. Functions of `libm` give the same bits on every machine.
            let weights: Vec<f64> =
                level.iter().map(|task| libm::pow(seconds(task) / longest, exponent)).collect();
            let total: f64 = weights.iter().sum();
            for (task, weight) in level.iter().zip(weights) {
                let task = &mut self.tasks[*task as usize];
                task.seconds = sum * (weight / total);
                if !task.seconds.is_finite() || task.seconds < 0.0 {
                    return Err(WorkflowError::Seconds { id: task.id.clone(), seconds: task.seconds });
                }
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::workflow;
    use super::*;

    fn seconds(workflow: &Workflow) -> Vec<f64> {
        workflow.tasks().iter().map(|task| task.seconds).collect()
    }

    /// Two levels: of 1, 3 and 8 s, and of 5 s.
    fn example() -> Workflow {
        workflow(&[1.0, 3.0, 8.0, 5.0], &[(0, 3), (1, 3), (2, 3)])
    }

    #[test]
    fn levels_keep_their_sums() {
        let equal = example().with_run_time_variance(0.0).unwrap();
        assert_eq!(seconds(&equal), [4.0, 4.0, 4.0, 5.0]);
        assert_eq!(seconds(&example().with_run_time_variance(1.0).unwrap()), [1.0, 3.0, 8.0, 5.0]);
        let squares = seconds(&example().with_run_time_variance(2.0).unwrap());
        let expected = [12.0 / 74.0, 12.0 * 9.0 / 74.0, 12.0 * 64.0 / 74.0, 5.0];
        for (found, expected) in squares.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{squares:?}");
        }
    }

    #[test]
    fn run_times_of_zero_stay_numbers() {
        let zeros = workflow(&[0.0, 0.0, 6.0], &[(0, 2)]);
        assert_eq!(seconds(&zeros.clone().with_run_time_variance(0.0).unwrap()), [0.0, 0.0, 6.0]);
        let one = workflow(&[0.0, 6.0], &[]);
        assert_eq!(seconds(&one.clone().with_run_time_variance(0.0).unwrap()), [3.0, 3.0]);
        assert_eq!(seconds(&one.clone().with_run_time_variance(3.0).unwrap()), [0.0, 6.0]);
        assert!(matches!(one.clone().with_run_time_variance(-1.0), Err(WorkflowError::Seconds { .. })));
        assert!(one.with_run_time_variance(f64::NAN).is_err());
    }
}
