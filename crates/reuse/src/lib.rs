//! Computation reuse: which stage instances of a study are one and the same, and which are worth running
//! together (hops 3 and 4 of a study).
//!
//! The way through the crate, top down:
//!
//! 1. [`WorkflowShape`] and [`Runs`]: a study in integers, a workflow's stages times evaluations times tiles.
//! 2. [`CompactGraph`]: equal stage instances become one (stage-level merging).
//! 3. [`Problem`]: the instances of one stage, each with a key per task. [`ReuseTree`]: their shared prefixes.
//!    [`best_order`]: where tasks may be swapped, the order in which they share most.
//! 4. [`Strategy::solve`]: a problem becomes [`Buckets`], the groups of instances that run as one. [`choose_limits`]:
//!    how many, and how large; [`replan`]: other buckets while they are under way.
//!    [`Dataflow`]: what they share beyond prefixes; [`HandOver`]: what buckets compute for each other.
//! 5. [`Figures`], [`Jobs`], [`Relay`] and [`peak_bytes`]: what such a plan saves, how long it takes, what it holds.
//!
//! Beside that way, for results that outlive a study: [`Target`], the smallest key that statements can be found by.
//!
//! Everything is a pure function of its arguments: the same input gives the same output, on every machine. The
//! crate knows nothing of workers, operations, files, or parameter names and values: whoever calls it interns
//! those to `u32` (with an [`Interner`], say). Memory is linear in the number of stage instances.

mod buckets;
mod compact;
mod dataflow;
mod figures;
mod hand_over;
mod interner;
mod limits;
mod memory;
mod minimise;
mod order;
mod problem;
mod relay;
mod runs;
mod schedule;
mod strategy;
mod task_graph;
mod tree;

pub use buckets::{Buckets, PartitionError};
pub use compact::{CompactGraph, Input, InputsId, InstanceId, Merging, StageInstance};
pub use dataflow::{Dataflow, DataflowFigures, TaskId};
pub use figures::{BucketCost, Figures, bucket_costs, reuse_fraction};
pub use hand_over::{BucketWork, HandOver, HandOverFigures, Link, Pieces};
pub use interner::Interner;
pub use limits::{BUCKETS_PER_CORE, Limits, LimitsError, Machine, StageBytes, choose_limits};
pub use memory::{LevelBytes, peak_bytes};
pub use minimise::{
    Attributes, Flow, FlowError, FlowGraph, Target, ValueHistory, Variable, VariableId, Vertex,
};
pub use order::{MOST_DOWN_SETS, TaskOrder, best_order};
pub use problem::{Costs, Member, Problem, ProblemError};
pub use relay::Relay;
pub use runs::{ExternalIndex, RunId, Runs, RunsError, ShapeError, Source, StageIndex, WorkflowShape};
pub use schedule::{Jobs, JobsError, bound_seconds, critical_path_seconds};
pub use strategy::{
    Ending, MOST_INSTANCES_TO_CUT, Previous, Pruning, Replanned, Search, SmallBucket, SolveError, Strategy,
    TrtmaOptions, TrtmaReport, replan, trtma,
};
pub use task_graph::{TaskGraph, TaskGraphError, TaskReads};
pub use tree::{NodeId, ReuseTree};
