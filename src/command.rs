//! The commands: each joins the crates for one purpose.

mod completions;
mod man;
mod plan;
mod run;
mod segment;
mod tissue;
mod workflow;

use crate::cli::{Command, PlanStrategyName, ReuseArgs, ReuseName, StrategyName};
use crate::exit::Outcome;
use crate::weave::Level;
use pleach_dispatch::plan::Sharing;
use pleach_reuse::{Ending, Strategy};
use std::num::NonZeroU32;

/// Executes a command.
pub(crate) fn execute(command: Command) -> Outcome {
    match command {
        Command::Run(args) => run::execute(&args),
        Command::Plan(args) => plan::execute(&args),
        Command::Workflow(command) => workflow::execute(&command),
        Command::Segment(args) => segment::execute(&args),
        Command::Tissue(args) => tissue::execute(&args),
        Command::Completions { shell } => completions::execute(shell),
        Command::Man { out } => man::execute(&out),
    }
}

impl StrategyName {
    const ALL: [Self; 4] = [Self::None, Self::Stage, Self::Naive, Self::Rtma];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Stage => "stage",
            Self::Naive => "naive",
            Self::Rtma => "rtma",
        }
    }

    fn level(self, reuse: ReuseArgs) -> Level {
        let max_bucket_size = reuse.max_bucket_size;
        let sharing = self.sharing(reuse.reuse).unwrap_or_default();
        let merged = |strategy| Level::Merged { strategy, sharing };
        match self {
            Self::None => Level::None,
            Self::Stage => merged(Strategy::Stage),
            Self::Naive => merged(Strategy::Naive { max_bucket_size }),
            Self::Rtma => merged(Strategy::Rtma { max_bucket_size, ending: Ending::default() }),
        }
    }

    /// What `--reuse` means with this strategy: nothing is shared between tasks without buckets.
    fn sharing(self, reuse: ReuseName) -> Option<Sharing> {
        matches!(self, Self::Naive | Self::Rtma).then_some(match reuse {
            ReuseName::Tree => Sharing::Tree,
            ReuseName::Dataflow => Sharing::Dataflow,
            ReuseName::Value => Sharing::Value,
        })
    }

    /// As [`sharing`](Self::sharing), in words.
    fn reuse_name(self, reuse: ReuseArgs) -> Option<&'static str> {
        self.sharing(reuse.reuse).map(|sharing| match sharing {
            Sharing::Tree => "tree",
            Sharing::Dataflow => "dataflow",
            Sharing::Value => "value",
        })
    }
}

impl PlanStrategyName {
    fn names(self) -> Vec<StrategyName> {
        match self {
            Self::None => vec![StrategyName::None],
            Self::Stage => vec![StrategyName::Stage],
            Self::Naive => vec![StrategyName::Naive],
            Self::Rtma => vec![StrategyName::Rtma],
            Self::All => StrategyName::ALL.to_vec(),
        }
    }
}

/// The number of workers asked for, or one for each processor.
fn workers(asked: Option<NonZeroU32>) -> NonZeroU32 {
    let processors = || std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok());
    asked.or_else(|| processors().and_then(NonZeroU32::new)).unwrap_or(NonZeroU32::MIN)
}
