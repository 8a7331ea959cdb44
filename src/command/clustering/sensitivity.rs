//! Repeats the comparison of a workflow for other values of parameters: `--sensitivity`.

use super::candidates::{Candidate, MethodName, Settings, compared, ranked};
use super::evaluation::{advice, advised_candidate};
use super::table::{aligned, number, percent};
use crate::cli::{ClusterArgs, MethodArg, Variation, VerticalArg};
use crate::exit::{CommandError, CommandResult};
use pleach_clustering::chains::chains;
use pleach_clustering::choose::{Grid, Ranking, Score, SensitivityRow, sensitivity};
use pleach_clustering::simulate::{Delay, Platform};
use pleach_clustering::{Options, Reading, Size, Workflow};
use pleach_planner::memory_size::human;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// The comparison for each combination of values.
#[derive(Debug)]
pub(super) struct Sensitivity {
    pub(super) rows: Vec<SensitivityRow>,
    /// Candidates of each ranking, in its order.
    pub(super) candidates: Vec<Candidate>,
    /// The choice by rule in each row, with `--method best`.
    pub(super) rules: Vec<Rule>,
    /// Parameters that vary, in the order of columns.
    parameters: Vec<&'static str>,
}

/// The choice by rule in a row.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) candidate: Candidate,
    /// Position of its score, behind those of the candidates if it has a limit of its own. `None` if it is no candidate.
    position: Option<usize>,
    pub(super) reason: String,
}

/// Method, vertical mode and reading of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    pub(super) method: MethodArg,
    pub(super) vertical: Option<VerticalArg>,
    pub(super) reading: Reading,
}

/// Compares the clusterings of a workflow for each combination of the given values. `None` without values.
pub(super) fn vary(
    workflow: &Workflow,
    args: &ClusterArgs,
    comparison: Comparison,
    settings: &Settings,
) -> CommandResult<Option<Sensitivity>> {
    if args.sensitivity.is_empty() {
        return Ok(None);
    }
    let grid = grid(&args.sensitivity);
    let count = chains(workflow).iter().filter(|chain| chain.len() > 1).count();
    let Comparison { method, vertical, reading } = comparison;
    let candidates = match MethodName::single(method) {
        Some(method) => vec![Candidate { method, vertical: vertical.unwrap_or(VerticalArg::None) }],
        None => compared(vertical, count > 0),
    };
    let has_rule = method == MethodArg::Best && vertical != Some(VerticalArg::Only);
    let mut rules = Vec::new();
    let mut defect = None;
    let rows = sensitivity(workflow, &settings.platform, &grid, settings.options.seed, |scaled, platform| {
        let settings = on(settings, platform);
        let mut all: Vec<(Candidate, Settings)> = candidates.iter().map(|one| (*one, settings)).collect();
        if has_rule {
            match advice(scaled, count, vertical, reading, &settings) {
                Ok(advice) => {
                    let (candidate, limited) = advised_candidate(&advice, vertical, &settings);
                    all.extend(limited.map(|settings| (candidate, settings)));
                    let position = all.iter().rposition(|(one, _)| *one == candidate);
                    rules.push(Rule { candidate, position, reason: advice.reason });
                }
                Err(error) => defect = Some(error),
            }
        }
        all.into_par_iter().map(|(candidate, settings)| ranked(scaled, candidate, &settings)).collect()
    });
    if let Some(defect) = defect {
        return Err(CommandError::defect(defect));
    }
    let rows = rows.map_err(CommandError::input)?;
    let given = [
        ("data", grid.data_factors.len()),
        ("workers", grid.workers.len()),
        ("bandwidth", grid.bytes_per_second.len()),
        ("queue", grid.queue_seconds.len()),
    ];
    let parameters = given.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect();
    Ok(Some(Sensitivity { rows, candidates, rules, parameters }))
}

fn grid(variations: &[Variation]) -> Grid {
    let mut grid = Grid::default();
    for variation in variations {
        match variation {
            Variation::Workers(values) => grid.workers.extend(values),
            Variation::Bandwidth(values) => {
                grid.bytes_per_second.extend(values.iter().map(|bytes| *bytes as f64));
            }
            Variation::Queue(values) => grid.queue_seconds.extend(values),
            Variation::Data(values) => grid.data_factors.extend(values),
        }
    }
    grid
}

/// Returns the settings on another platform.
fn on(settings: &Settings, platform: &Platform) -> Settings {
    let mut settings = Settings { platform: *platform, ..*settings };
    if settings.jobs_follow_workers {
        let size = Size::Jobs(platform.workers().get());
        settings.options = Options { size, ..settings.options };
    }
    settings
}

impl Sensitivity {
    /// Returns the position of the best candidate of a row, the first one of equals.
    pub(super) fn best(ranking: &Ranking) -> usize {
        let scores = ranking.scores.iter().enumerate();
        scores.min_by(|one, other| one.1.makespan.total_cmp(&other.1.makespan)).map_or(0, |(best, _)| best)
    }

    /// Returns the score of the choice by rule. `None` if it is no candidate of the row.
    pub(super) fn score_of_rule<'r>(ranking: &'r Ranking, rule: &Rule) -> Option<&'r Score> {
        ranking.scores.get(rule.position?)
    }

    /// Returns the lines of the table.
    pub(super) fn lines(&self, method: MethodArg) -> Vec<String> {
        let title = format!("sensitivity to {}", self.parameters.join(", "));
        let mut header: Vec<String> = self.parameters.iter().map(|name| (*name).to_owned()).collect();
        if method == MethodArg::Best {
            header.extend(["gain", "regret of the rule", "by simulation", "by rule"].map(str::to_owned));
        } else {
            header.extend(self.candidates.iter().map(|candidate| candidate.in_words()));
        }
        let row = |(index, row): (usize, &SensitivityRow)| {
            let mut cells = self.values(row);
            let ranking = &row.ranking;
            if method == MethodArg::Best {
                cells.extend(self.choice(index, ranking));
            } else {
                cells.extend(ranking.scores.iter().map(|score| gain(ranking, score)));
            }
            cells
        };
        let mut lines = vec![title];
        lines.extend(aligned(0, header, self.rows.iter().enumerate().map(row)));
        lines
    }

    /// Returns the cells of the parameters that vary.
    fn values(&self, row: &SensitivityRow) -> Vec<String> {
        let value = |name: &&str| match *name {
            "data" => format!("× {}", row.data_factor),
            "workers" => row.platform.workers().to_string(),
            "bandwidth" => format!("{}/s", human(row.platform.bytes_per_second() as u64)),
            _ => format!("{} s", number(queue(row))),
        };
        self.parameters.iter().map(value).collect()
    }

    fn choice(&self, index: usize, ranking: &Ranking) -> [String; 4] {
        let best = Self::best(ranking);
        let score = &ranking.scores[best];
        let rule = self.rules.get(index);
        let of_rule = rule.and_then(|rule| Self::score_of_rule(ranking, rule));
        // Scores behind those of the candidates are the rule's.
        let chosen = self.candidates.get(best).or(rule.map(|rule| &rule.candidate));
        let regret = of_rule.map(|of| percent(ranking.gain(score) - ranking.gain(of)));
        [
            gain(ranking, score),
            regret.unwrap_or_else(|| "-".to_owned()),
            chosen.map_or_else(|| "-".to_owned(), |chosen| chosen.in_words()),
            rule.map_or_else(|| "-".to_owned(), |rule| rule.candidate.in_words()),
        ]
    }
}

/// Returns the queue delay of a row in seconds.
pub(super) fn queue(row: &SensitivityRow) -> f64 {
    match row.platform.overheads().queue {
        Delay::Fixed(seconds) => seconds,
        weibull @ Delay::Weibull { .. } => weibull.mean(),
    }
}

fn gain(ranking: &Ranking, score: &Score) -> String {
    let interval = score.half_width.map(|seconds| format!(" ± {}", percent(seconds / ranking.baseline)));
    format!("{}{}", percent(ranking.gain(score)), interval.unwrap_or_default())
}
