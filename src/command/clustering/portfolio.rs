//! Chooses the method of each level from measured run times: `--portfolio`.

use super::candidates::{Settings, with_vertical};
use super::table::{aligned, number, percent};
use crate::cli::{ClusterArgs, Estimates, VerticalArg};
use crate::exit::{CommandError, CommandResult};
use pleach_clustering::choose::{
    EstimateSpread, FixedChoice, LevelChoice, NamedMethod, Portfolio, dynamic_portfolio, estimates,
};
use pleach_clustering::simulate::Gain;
use pleach_clustering::{Clustering, Method, Options, Vertical, Workflow, cluster};

/// Methods among which a level chooses. DFJS and AFJS are left out: their limits are tuned for the whole workflow.
const METHODS: [(&str, Method); 5] = [
    ("none", Method::None),
    ("hc", Method::Hc),
    ("hrb", Method::Hrb),
    ("hifb", Method::Hifb),
    ("hdb", Method::Hdb),
];

/// A choice for each level, with the spread of the estimates that it started from.
#[derive(Debug)]
pub(super) struct LevelPortfolio {
    pub(super) estimates: Estimates,
    pub(super) portfolio: Portfolio,
    /// Number of tasks of each level, or of chains.
    tasks: Vec<usize>,
}

/// Executes a workflow with a choice for each level. With a prior vertical mode, chains are its tasks. `None` without
/// `--portfolio`.
pub(super) fn choose(
    workflow: &Workflow,
    args: &ClusterArgs,
    settings: &Settings,
) -> CommandResult<Option<LevelPortfolio>> {
    if !args.portfolio {
        return Ok(None);
    }
    let vertical = args.vertical.unwrap_or(VerticalArg::None);
    let options = with_vertical(settings.options, vertical);
    let chains = match options.vertical {
        Vertical::None => Clustering::single(workflow),
        Vertical::Prior => cluster(workflow, &Options { vertical: Vertical::Only, ..options }),
        Vertical::Posterior | Vertical::Only => {
            let text =
                "--portfolio: chooses for levels; --vertical none, prior and prior-bounded are allowed";
            return Err(CommandError::Input(text.to_owned()));
        }
    };
    let tasks = chains.workflow(workflow).map_err(CommandError::defect)?;
    let options = Options { vertical: Vertical::None, bounded_chains: false, ..options };
    let methods = METHODS.map(|(name, method)| {
        (name, move |workflow: &Workflow| cluster(workflow, &Options { method, ..options }))
    });
    let named: Vec<NamedMethod<'_>> =
        methods.iter().map(|(name, method)| (*name, method as &dyn Fn(&Workflow) -> Clustering)).collect();
    let Estimates { kind, task } = args.estimates;
    let estimated = estimates(&tasks, EstimateSpread { kind, task }, options.seed);
    let found = dynamic_portfolio(&tasks, &estimated, &named, &settings.platform, options.seed);
    let found = found.map_err(CommandError::defect)?;
    Ok(found.map(|portfolio| LevelPortfolio {
        estimates: args.estimates,
        portfolio,
        tasks: tasks.levels().iter().map(Vec::len).collect(),
    }))
}

impl LevelPortfolio {
    /// Returns the gain of a makespan.
    fn gain(&self, makespan: f64) -> String {
        percent(Gain { makespan, baseline: self.portfolio.baseline }.gain())
    }

    /// Returns the lines of the table and of its comparison with single methods.
    pub(super) fn lines(&self) -> Vec<String> {
        let Estimates { kind, task } = self.estimates;
        let mut lines = vec![format!(
            "portfolio: a method for each level; run times estimated within {kind} by kind, {task} by task"
        )];
        let header = ["level", "tasks", "predicted s", "method"].map(str::to_owned).to_vec();
        let row = |((index, level), tasks): ((usize, &LevelChoice), &usize)| {
            vec![(index + 1).to_string(), tasks.to_string(), number(level.predicted), level.method.clone()]
        };
        lines.extend(aligned(0, header, self.portfolio.levels.iter().enumerate().zip(&self.tasks).map(row)));
        let Portfolio { makespan, fixed, best, .. } = &self.portfolio;
        lines.push(format!("portfolio: gain {}, {} s", self.gain(*makespan), number(*makespan)));
        for (name, choice, regret) in [
            ("static choice by estimates", fixed, self.portfolio.regret_to_fixed()),
            ("best single method", best, self.portfolio.regret_to_best()),
        ] {
            let FixedChoice { method, makespan } = choice;
            let (gain, seconds, regret) = (self.gain(*makespan), number(*makespan), percent(regret));
            lines.push(format!(
                "{name}: {method}, gain {gain}, {seconds} s; regret of the portfolio {regret}"
            ));
        }
        lines
    }
}
