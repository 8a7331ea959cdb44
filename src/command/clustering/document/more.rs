//! Records of `--sensitivity` and `--portfolio`.

use crate::command::clustering::candidates::vertical_name;
use crate::command::clustering::portfolio::LevelPortfolio;
use crate::command::clustering::sensitivity::{Rule, Sensitivity, queue};
use pleach_clustering::choose::{FixedChoice, LevelChoice, Ranking, Score, SensitivityRow};
use serde::Serialize;

/// The comparison for one combination of values.
#[derive(Debug, Serialize)]
pub(super) struct RowRecord<'a> {
    data_factor: f64,
    workers: usize,
    bytes_per_second: f64,
    queue_seconds: f64,
    makespan_unclustered_seconds: f64,
    clusterings: Vec<ScoreRecord<'a>>,
    /// Position in `clusterings` of the least makespan.
    best: usize,
    /// With `--method best`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<ChoiceRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct ScoreRecord<'a> {
    method: &'a str,
    vertical: &'a str,
    makespan_seconds: f64,
    gain: f64,
    /// Half the width of the 95 % interval of the mean makespan over seeds. `None` for one clustering.
    half_width_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ChoiceRecord<'a> {
    method: &'static str,
    vertical: &'static str,
    reason: &'a str,
    /// `None` if the choice is not among `clusterings`.
    regret: Option<f64>,
}

/// A method for each level.
#[derive(Debug, Serialize)]
pub(super) struct PortfolioRecord<'a> {
    /// Coefficients of variation of the estimated run times.
    estimates_by_kind: f64,
    estimates_by_task: f64,
    levels: Vec<ChoiceOfLevel<'a>>,
    makespan_seconds: f64,
    makespan_unclustered_seconds: f64,
    /// The method that the estimates choose for all levels.
    fixed: SingleMethod<'a>,
    /// The method of least makespan for all levels.
    best: SingleMethod<'a>,
    regret_to_fixed: f64,
    regret_to_best: f64,
}

#[derive(Debug, Serialize)]
struct ChoiceOfLevel<'a> {
    method: &'a str,
    predicted_seconds: f64,
}

#[derive(Debug, Serialize)]
struct SingleMethod<'a> {
    method: &'a str,
    makespan_seconds: f64,
}

/// Returns the rows of a sensitivity table.
pub(super) fn rows(sensitivity: &Sensitivity) -> Vec<RowRecord<'_>> {
    let record = |(index, row)| record(row, sensitivity.rules.get(index));
    sensitivity.rows.iter().enumerate().map(record).collect()
}

fn record<'a>(row: &'a SensitivityRow, rule: Option<&'a Rule>) -> RowRecord<'a> {
    let ranking = &row.ranking;
    let score = |score: &'a Score| ScoreRecord {
        method: &score.method,
        vertical: &score.vertical,
        makespan_seconds: score.makespan,
        gain: ranking.gain(score),
        half_width_seconds: score.half_width,
    };
    let best = Sensitivity::best(ranking);
    RowRecord {
        data_factor: row.data_factor,
        workers: row.platform.workers().get(),
        bytes_per_second: row.platform.bytes_per_second(),
        queue_seconds: queue(row),
        makespan_unclustered_seconds: ranking.baseline,
        clusterings: ranking.scores.iter().map(score).collect(),
        best,
        rule: rule.map(|rule| ChoiceRecord {
            method: rule.candidate.method.name(),
            vertical: vertical_name(rule.candidate.vertical),
            reason: &rule.reason,
            regret: regret(ranking, best, rule),
        }),
    }
}

fn regret(ranking: &Ranking, best: usize, rule: &Rule) -> Option<f64> {
    let chosen = Sensitivity::score_of_rule(ranking, rule)?;
    Some(ranking.gain(&ranking.scores[best]) - ranking.gain(chosen))
}

/// Returns the record of a portfolio.
pub(super) fn portfolio<'a>(chosen: &'a LevelPortfolio) -> PortfolioRecord<'a> {
    let portfolio = &chosen.portfolio;
    let level =
        |level: &'a LevelChoice| ChoiceOfLevel { method: &level.method, predicted_seconds: level.predicted };
    PortfolioRecord {
        estimates_by_kind: chosen.estimates.kind,
        estimates_by_task: chosen.estimates.task,
        levels: portfolio.levels.iter().map(level).collect(),
        makespan_seconds: portfolio.makespan,
        makespan_unclustered_seconds: portfolio.baseline,
        fixed: SingleMethod::new(&portfolio.fixed),
        best: SingleMethod::new(&portfolio.best),
        regret_to_fixed: portfolio.regret_to_fixed(),
        regret_to_best: portfolio.regret_to_best(),
    }
}

impl<'a> SingleMethod<'a> {
    fn new(choice: &'a FixedChoice) -> Self {
        Self { method: &choice.method, makespan_seconds: choice.makespan }
    }
}
