//! Computation reuse: which stage instances of a study are one and the same, and which are worth running
//! together (hops 3 and 4 of a study).
//!
//! The way through the crate, top down:
//!
//! 1. [`WorkflowShape`] and [`Runs`]: a study in integers, a workflow's stages times evaluations times tiles.
//! 2. [`CompactGraph`]: equal stage instances become one (stage-level merging).
//! 3. [`MergeProblem`]: the instances of one stage, each with a key per task. [`ReuseTree`]: their shared prefixes.
//!    [`best_order`]: where tasks may be swapped, the order in which they share most.
//! 4. [`Strategy::solve`]: a problem becomes [`Buckets`], the groups of instances that run as one. [`choose_limits`]:
//!    how many, and how large; [`replan`]: other buckets while they are under way.
//!    [`Dataflow`]: what they share beyond prefixes; [`TransferPlan`]: what buckets compute for each other.
//! 5. [`ReuseSummary`], [`JobGraph`], [`SharingSchedule`] and [`peak_bytes`]: what such a plan saves, how long it takes, what it holds.
//!
//! Beside that way, for results that outlive a study: [`Target`], the smallest key that statements can be found by.
//!
//! Everything is a pure function of its arguments: the same input gives the same output, on every machine. The
//! crate knows nothing of workers, operations, files, or parameter names and values: whoever calls it interns
//! those to `u32` (with an [`Interner`], say). Memory is linear in the number of stage instances.

mod bucket_limits;
mod buckets;
mod compact;
mod dataflow;
mod interner;
mod key_minimization;
mod merge_problem;
mod peak_memory;
mod runs;
mod runtime_sharing;
mod savings;
mod schedule;
mod strategy;
mod task_graph;
mod task_order;
mod transfer;
mod tree;

pub use bucket_limits::{BUCKETS_PER_CORE, Capacity, Limits, LimitsError, StageBytes, choose_limits};
pub use buckets::{Buckets, PartitionError};
pub use compact::{CompactGraph, Input, InputsId, InstanceId, Merging, StageInstance};
pub use dataflow::{Dataflow, DataflowFigures, TaskId};
pub use interner::Interner;
pub use key_minimization::{
    Attributes, Flow, FlowError, FlowGraph, Target, ValueHistory, Variable, VariableId, Vertex,
};
pub use merge_problem::{Member, MergeProblem, ProblemError, TaskCosts};
pub use peak_memory::{LevelBytes, peak_bytes};
pub use runs::{ExternalIndex, RunId, Runs, RunsError, ShapeError, Source, StageIndex, WorkflowShape};
pub use runtime_sharing::SharingSchedule;
pub use savings::{BucketCost, ReuseSummary, bucket_costs, reuse_fraction};
pub use schedule::{JobGraph, JobsError, critical_path_seconds, lower_bound_seconds};
pub use strategy::{
    LeftoverRule, MAX_INSTANCES_TO_CUT, MoveSearch, PartnerRule, Previous, Pruning, Replanned, SolveError,
    Strategy, TrtmaOptions, TrtmaReport, replan, trtma,
};
pub use task_graph::{TaskGraph, TaskGraphError, TaskReads};
pub use task_order::{MAX_DOWN_SETS, TaskOrder, best_order};
pub use transfer::{BucketWork, TransferCost, TransferJobs, TransferPlan, TransferSummary};
pub use tree::{NodeId, ReuseTree};
