//! Peak memory of a bucket whose tree is executed depth-first (RMSR, paper 003, Algorithm 1, with one active path).
//!
//! A prediction from sizes per level. The worker admits and releases by real sizes.

use crate::graph::tree::{NodeId, ReuseTree};
use crate::merge_problem::{Member, MergeProblem};

/// Memory of the task of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelBytes {
    /// Bytes of its outputs, held from its start to the end of the last task that reads them.
    pub output_bytes: u64,
    /// Additional bytes while the task runs.
    pub scratch_bytes: u64,
    /// The deepest level that reads its output, counted from 0. Its own level if no later task reads it: the
    /// output then leaves the bucket as soon as the task is done.
    pub last_read: usize,
}

/// Returns the peak bytes of a bucket whose tasks run one after the other, depth-first.
///
/// `input_bytes` (the inputs of the stage instance) are held throughout, and `levels` has one entry per level. A
/// task's output is held until the last of its descendants at level `last_read` has run. For a task that branches
/// this is the descendant on its last branch.
///
/// # Panics
/// If `levels` has fewer entries than the problem has levels.
pub fn peak_bytes(
    problem: &MergeProblem,
    tree: &ReuseTree,
    members: &[Member],
    input_bytes: u64,
    levels: &[LevelBytes],
) -> u64 {
    let depth = problem.levels();
    let levels = &levels[..depth];
    let paths = sorted_paths(tree, members, depth);
    let rows: Vec<&[NodeId]> = paths.iter().map(Vec::as_slice).collect();
    let mut peak = 0;
    // `open[l]`: the path's node of level l has a later sibling in this bucket. This follows from the next
    // path, so paths are visited from the last to the first. The order does not change the maximum.
    let mut open = vec![false; depth];
    for (row, path) in rows.iter().enumerate().rev() {
        if let Some(next) = rows.get(row + 1) {
            let shared = shared_levels(path, next);
            open[shared.min(depth)..].fill(false);
            if shared < depth {
                open[shared] = true;
            }
        }
        let already_run = if row == 0 { 0 } else { shared_levels(rows[row - 1], path) };
        for running in already_run..depth {
            let held = (0..running).filter(|level| is_held(*level, running, levels, &open));
            let outputs: u64 = held.map(|level| levels[level].output_bytes).sum();
            let own = levels[running].output_bytes + levels[running].scratch_bytes;
            peak = peak.max(input_bytes + outputs + own);
        }
    }
    peak
}

/// Returns whether the output of the path's task of `level` is still held while its task of level `running` runs:
/// this task, one below it, or a later sibling on the way to the last reader reads it.
fn is_held(level: usize, running: usize, levels: &[LevelBytes], open: &[bool]) -> bool {
    let last_read = levels[level].last_read.min(levels.len() - 1);
    last_read >= running || open[..=last_read].iter().skip(level + 1).any(|open| *open)
}

/// Returns the paths of the members, first task first, in depth-first order.
fn sorted_paths(tree: &ReuseTree, members: &[Member], depth: usize) -> Vec<Vec<NodeId>> {
    let mut paths = Vec::with_capacity(members.len());
    for member in members {
        let mut path = Vec::with_capacity(depth);
        path.extend(tree.upwards(*member));
        path.reverse();
        paths.push(path);
    }
    // Sorted by node ids, paths with a common prefix are adjacent, which is a depth-first order.
    paths.sort_unstable();
    paths
}

fn shared_levels(a: &[NodeId], b: &[NodeId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
