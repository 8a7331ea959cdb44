//! Stage instances merged into a compact graph, reuse trees and the graph of distinct tasks.

pub(crate) mod compact;
pub(crate) mod interner;
pub(crate) mod runs;
pub(crate) mod task_graph;
pub(crate) mod task_order;
pub(crate) mod tree;
