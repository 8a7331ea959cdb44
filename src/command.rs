//! The commands: each joins the crates for one purpose.

mod certs;
mod completions;
mod explain;
mod man;
mod plan;
mod run;
mod segment;
mod tissue;
mod workflow;

use crate::cli::{BucketArgs, Command, PlanReuseName, PlanStrategyName, ReuseName, StrategyName};
use crate::exit::Outcome;
use crate::weave::Level;
use clap::ValueEnum;
use pleach_dispatch::plan::Sharing;
use pleach_reuse::{Ending, Strategy, TrtmaOptions};
use std::num::{NonZeroU32, NonZeroUsize};

/// Executes a command.
pub(crate) fn execute(command: Command) -> Outcome {
    match command {
        Command::Run(args) => run::execute(&args),
        Command::Plan(args) => plan::execute(&args),
        Command::Explain(args) => explain::execute(&args),
        Command::Workflow(command) => workflow::execute(&command),
        Command::Segment(args) => segment::execute(&args),
        Command::Certs(command) => certs::execute(&command),
        Command::Tissue(args) => tissue::execute(&args),
        Command::Completions { shell } => completions::execute(shell),
        Command::Man { out } => man::execute(&out),
    }
}

/// TRTMA's `MaxBuckets` for each worker: what the papers use.
const BUCKETS_A_WORKER: usize = 3;

/// A way to plan a study, with all that its names leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    strategy: StrategyName,
    /// What tasks share; `None`: nothing is shared between tasks without buckets.
    sharing: Option<Sharing>,
    max_bucket_size: NonZeroUsize,
    max_buckets: NonZeroUsize,
}

impl Way {
    pub(crate) fn new(
        strategy: StrategyName,
        reuse: ReuseName,
        buckets: BucketArgs,
        workers: NonZeroU32,
    ) -> Self {
        let has_buckets = !matches!(strategy, StrategyName::None | StrategyName::Stage);
        let sharing = has_buckets.then_some(match reuse {
            ReuseName::Tree => Sharing::Tree,
            ReuseName::Dataflow => Sharing::Dataflow,
            ReuseName::Value => Sharing::Value,
        });
        let processors = NonZeroUsize::try_from(workers).unwrap_or(NonZeroUsize::MIN);
        let usual = processors.saturating_mul(NonZeroUsize::MIN.saturating_add(BUCKETS_A_WORKER - 1));
        let max_buckets = buckets.max_buckets.unwrap_or(usual);
        Self { strategy, sharing, max_bucket_size: buckets.max_bucket_size, max_buckets }
    }

    /// The same with tasks shared as in trees, if they are shared otherwise.
    pub(crate) fn as_tree(self) -> Option<Self> {
        let other = self.sharing.filter(|sharing| *sharing != Sharing::Tree);
        other.map(|_| Self { sharing: Some(Sharing::Tree), ..self })
    }

    pub(crate) fn level(self) -> Level {
        let (max_bucket_size, max_buckets) = (self.max_bucket_size, self.max_buckets);
        let strategy = match self.strategy {
            StrategyName::None => return Level::None,
            StrategyName::Stage => Strategy::Stage,
            StrategyName::Naive => Strategy::Naive { max_bucket_size },
            StrategyName::Sca => Strategy::Sca { max_bucket_size },
            StrategyName::Rtma => Strategy::Rtma { max_bucket_size, ending: Ending::default() },
            StrategyName::Trtma => Strategy::Trtma { max_buckets, options: TrtmaOptions::default() },
        };
        Level::Merged { strategy, sharing: self.sharing.unwrap_or_default() }
    }

    pub(crate) fn strategy_name(self) -> &'static str {
        match self.strategy {
            StrategyName::None => "none",
            StrategyName::Stage => "stage",
            StrategyName::Naive => "naive",
            StrategyName::Sca => "sca",
            StrategyName::Rtma => "rtma",
            StrategyName::Trtma => "trtma",
        }
    }

    /// The level of reuse, where there is a choice.
    pub(crate) fn reuse_name(self) -> Option<&'static str> {
        self.sharing.map(|sharing| match sharing {
            Sharing::Tree => "tree",
            Sharing::Dataflow => "dataflow",
            Sharing::Value => "value",
        })
    }

    /// The limit of a bucket's size, where there is one.
    pub(crate) fn max_bucket_size(self) -> Option<usize> {
        let has = matches!(self.strategy, StrategyName::Naive | StrategyName::Sca | StrategyName::Rtma);
        has.then_some(self.max_bucket_size.get())
    }

    /// The limit of the number of a stage's buckets, where there is one.
    pub(crate) fn max_buckets(self) -> Option<usize> {
        (self.strategy == StrategyName::Trtma).then_some(self.max_buckets.get())
    }
}

impl PlanStrategyName {
    fn names(self) -> Vec<StrategyName> {
        match self {
            Self::None => vec![StrategyName::None],
            Self::Stage => vec![StrategyName::Stage],
            Self::Naive => vec![StrategyName::Naive],
            Self::Sca => vec![StrategyName::Sca],
            Self::Rtma => vec![StrategyName::Rtma],
            Self::Trtma => vec![StrategyName::Trtma],
            Self::All => StrategyName::value_variants().to_vec(),
        }
    }
}

impl PlanReuseName {
    fn names(self) -> Vec<ReuseName> {
        match self {
            Self::Tree => vec![ReuseName::Tree],
            Self::Dataflow => vec![ReuseName::Dataflow],
            Self::Value => vec![ReuseName::Value],
            Self::All => ReuseName::value_variants().to_vec(),
        }
    }
}

/// The number of workers asked for, or one for each processor.
fn workers(asked: Option<NonZeroU32>) -> NonZeroU32 {
    let processors = || std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok());
    asked.or_else(|| processors().and_then(NonZeroU32::new)).unwrap_or(NonZeroU32::MIN)
}
