//! How many bytes a bucket holds when its tree is executed depth-first (RMSR, paper 003, Algorithm 1, with one
//! active path).
//!
//! A prediction from sizes per level; what really is admitted and released, the worker decides on real sizes.

use crate::merge_problem::{Member, MergeProblem};
use crate::tree::{NodeId, ReuseTree};

/// What the task of one level holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelBytes {
    /// Its outputs, from its start to the end of the last task that reads them.
    pub output_bytes: u64,
    /// What it needs besides, while it runs.
    pub scratch_bytes: u64,
    /// The deepest level that reads its output, counted from 0. Its own level when no later task does: the
    /// output then leaves the bucket as soon as the task is done.
    pub last_read: usize,
}

/// The most bytes held at once while a bucket runs, one task after the other, depth-first.
///
/// `input_bytes` (what the stage instance reads) is held throughout, `levels` has one entry per level. The
/// output of a task is held until the last of its descendants at level `last_read` has run: of a task that
/// branches, until its last branch has come that far.
///
/// # Panics
/// When `levels` has fewer entries than the problem has levels.
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
    // `open[l]`: the path's node of level l has a later sibling in this bucket. Known from the next path, so
    // paths are walked from the last to the first; a maximum does not mind.
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

/// Whether the output of the path's task of `level` is still held while its task of level `running` runs: that
/// one or one below it reads it, or a later sibling on the way to the last reader will.
fn is_held(level: usize, running: usize, levels: &[LevelBytes], open: &[bool]) -> bool {
    let last_read = levels[level].last_read.min(levels.len() - 1);
    last_read >= running || open[..=last_read].iter().skip(level + 1).any(|open| *open)
}

/// The paths of the members, first task first, in the order of a depth-first walk.
fn sorted_paths(tree: &ReuseTree, members: &[Member], depth: usize) -> Vec<Vec<NodeId>> {
    let mut paths = Vec::with_capacity(members.len());
    for member in members {
        let mut path = Vec::with_capacity(depth);
        path.extend(tree.upwards(*member));
        path.reverse();
        paths.push(path);
    }
    paths.sort_unstable();
    paths
}

fn shared_levels(a: &[NodeId], b: &[NodeId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
