//! Computation reuse: merges equal stage instances of a study and groups the remaining ones into buckets (hops 3
//! and 4 of a study).
//!
//! Modules in the order of use:
//!
//! 1. [`WorkflowShape`] and [`Runs`]: a study as integers, the stages of a workflow times evaluations times tiles.
//! 2. [`CompactGraph`]: equal stage instances become one (stage-level merging).
//! 3. [`MergeProblem`]: the instances of one stage with a key per task. [`ReuseTree`]: their shared prefixes.
//!    [`best_order`]: the task order that shares most, among tasks that may be swapped.
//! 4. [`Strategy::solve`]: groups the instances of a problem into [`Buckets`]. [`choose_limits`]: number and size
//!    of buckets. [`replan`]: rebuilds the buckets of a running stage. [`Dataflow`]: reuse beyond shared prefixes.
//! 5. [`ReuseSummary`], [`JobGraph`], [`SharingSchedule`] and [`peak_bytes`]: savings, duration, transfers and memory of a
//!    plan. [`is_recompute_cheaper`]: transfer or recompute, also at run time. [`GranularityProblem`]: tasks to run as one.
//!
//! For results that outlive a study, [`Target`] finds the smallest key of a set of statements.
//!
//! Every function is pure: the same input gives the same output on every machine. The crate does not depend
//! on workers, operations, files, or parameter names and values. The caller interns those to `u32`, for
//! example with an [`Interner`]. Memory is linear in the number of stage instances.

mod bucket_limits;
mod bucket_shares;
mod buckets;
mod cost;
mod graph;
mod key_minimization;
mod merge_problem;
mod strategy;

pub use bucket_limits::{Capacity, Limits, LimitsError, StageBytes, choose_limits};
pub use buckets::{Buckets, PartitionError};
pub use cost::bucket_overhead::{BUCKETS_PER_CORE, OverheadChoice, StageLoad, weigh_overhead};
pub use cost::dataflow::{Dataflow, DataflowFigures, TaskId};
pub use cost::granularity::{FusionSavings, Granularity, GranularityProblem};
pub use cost::peak_memory::{LevelBytes, peak_bytes};
pub use cost::runtime_sharing::{BucketForecast, SharingSchedule, TransferForecast, WorkerModel};
pub use cost::savings::{BucketCost, ReuseSummary, bucket_cost_hrv, bucket_costs, reuse_fraction};
pub use cost::schedule::{JobGraph, JobsError, critical_path_seconds, lower_bound_seconds, upward_ranks};
pub use cost::transfer::{TransferCost, is_recompute_cheaper};
pub use graph::compact::{CompactGraph, Input, InputsId, InstanceId, Merging, StageInstance};
pub use graph::interner::Interner;
pub use graph::runs::{
    ExternalIndex, Neighbors, RunId, Runs, RunsError, ShapeError, SlotIndex, Source, StageIndex,
    WorkflowShape,
};
pub use graph::task_graph::{TaskGraph, TaskGraphError, TaskReads};
pub use graph::task_order::{MAX_DOWN_SETS, TaskOrder, best_order};
pub use graph::tree::{NodeId, ReuseTree};
pub use key_minimization::{
    Attributes, Flow, FlowError, FlowGraph, Target, ValueHistory, Variable, VariableId, Vertex,
};
pub use merge_problem::{Member, MergeProblem, ProblemError, TaskCosts};
pub use strategy::{
    LeftoverRule, MAX_INSTANCES_TO_CUT, MoveSearch, PartnerRule, PreviousPlan, Pruning, Replanned,
    SolveError, Strategy, TrtmaOptions, TrtmaReport, adjust_ranges, cut_ranges, even_out_ranges, replan,
    tree_order, trtma,
};
