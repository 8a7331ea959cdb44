//! Choice by simulation: the candidate with the least makespan.

use crate::clustering::Clustering;
use crate::simulate::{Gain, Platform, baseline, simulate};
use crate::workflow::Workflow;

/// 97.5 % quantile of the normal distribution: half the width of a 95 % interval in standard errors.
const QUANTILE: f64 = 1.959_964;

/// A method with a vertical mode, and the clusterings that it makes of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Name of the method, such as `hrb`.
    pub method: String,
    /// Vertical mode, such as `prior`.
    pub vertical: String,
    /// The clusterings, 1 or more: a method that draws random numbers has one for each seed.
    pub clusterings: Vec<Clustering>,
}

impl Candidate {
    /// Creates a candidate with one clustering.
    pub fn new(method: impl Into<String>, vertical: impl Into<String>, clustering: Clustering) -> Self {
        Self { method: method.into(), vertical: vertical.into(), clusterings: vec![clustering] }
    }
}

/// Simulated makespan of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Name of the method.
    pub method: String,
    /// Vertical mode.
    pub vertical: String,
    /// Mean makespan of the clusterings in seconds.
    pub makespan: f64,
    /// Half the width of the 95 % interval of the mean in seconds (normal approximation). `None` for one clustering.
    pub half_width: Option<f64>,
}

/// Candidates with their simulated makespans.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Makespan without clustering in seconds.
    pub baseline: f64,
    /// The candidates in their order.
    pub scores: Vec<Score>,
}

/// Simulates all candidates. `seed` selects the draws of Weibull delays, the same ones for each candidate.
///
/// # Panics
/// If a clustering is not of this workflow.
#[must_use]
pub fn rank(workflow: &Workflow, candidates: &[Candidate], platform: &Platform, seed: u64) -> Ranking {
    let score = |candidate: &Candidate| {
        let makespans = candidate.clusterings.iter();
        let makespans = makespans.map(|clustering| simulate(workflow, clustering, platform, seed).makespan);
        let (makespan, half_width) = mean(&makespans.collect::<Vec<_>>());
        Score { method: candidate.method.clone(), vertical: candidate.vertical.clone(), makespan, half_width }
    };
    Ranking { baseline: baseline(workflow, platform, seed), scores: candidates.iter().map(score).collect() }
}

/// Returns the mean and half the width of its 95 % interval. The mean of no numbers is infinite, so that it is never chosen.
fn mean(numbers: &[f64]) -> (f64, Option<f64>) {
    let count = numbers.len() as f64;
    if numbers.is_empty() {
        return (f64::INFINITY, None);
    }
    let mean = numbers.iter().sum::<f64>() / count;
    if numbers.len() == 1 {
        return (mean, None);
    }
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (mean, Some(QUANTILE * (squares / (count - 1.0) / count).sqrt()))
}

impl Ranking {
    /// Returns the score with the least makespan, the first one of equals. `None` without candidates.
    #[must_use]
    pub fn best(&self) -> Option<&Score> {
        self.scores.iter().min_by(|score, other| score.makespan.total_cmp(&other.makespan))
    }

    /// Returns the score of a method and vertical mode.
    #[must_use]
    pub fn score(&self, method: &str, vertical: &str) -> Option<&Score> {
        self.scores.iter().find(|score| score.method == method && score.vertical == vertical)
    }

    /// Returns the performance gain μ of a score.
    #[must_use]
    pub fn gain(&self, score: &Score) -> f64 {
        Gain { makespan: score.makespan, baseline: self.baseline }.gain()
    }

    /// Returns the regret of a choice: the gain of the best candidate minus that of the choice, 0 or more. `None` if the choice
    /// is not among the candidates.
    #[must_use]
    pub fn regret(&self, method: &str, vertical: &str) -> Option<f64> {
        Some(self.gain(self.best()?) - self.gain(self.score(method, vertical)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regret_is_the_gain_that_a_choice_misses() {
        let score = |method: &str, makespan| Score {
            method: method.into(),
            vertical: "none".into(),
            makespan,
            half_width: None,
        };
        let ranking = Ranking {
            baseline: 100.0,
            scores: vec![score("hc", 90.0), score("hrb", 60.0), score("hdb", 60.0)],
        };
        assert_eq!(ranking.best().unwrap().method, "hrb");
        assert!((ranking.regret("hc", "none").unwrap() - 0.3).abs() < 1e-12);
        assert_eq!(ranking.regret("hdb", "none"), Some(0.0));
        assert_eq!(ranking.regret("hdb", "prior"), None);
        assert_eq!(Ranking { baseline: 1.0, scores: vec![] }.regret("hc", "none"), None);
    }

    #[test]
    fn the_interval_of_a_mean_narrows_with_its_numbers() {
        assert_eq!(mean(&[4.0]), (4.0, None));
        let (center, half_width) = mean(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(center, 2.5);
        assert!((half_width.unwrap() - 1.959_964 * (5.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(mean(&[]).0, f64::INFINITY);
    }
}
