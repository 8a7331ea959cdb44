//! Transitive reduction: drops each dependency that a longer path implies.

use crate::workflow::Workflow;

/// Words of a row: 512 targets in one pass. Rows of 100,000 tasks take 6 MB.
const WORDS: usize = 8;

type Row = [u64; WORDS];

/// Returns the workflow without each edge `u → v` that another path from `u` to `v` implies (Aho, Garey and Ullman 1972).
/// Levels stay the same. Metrics and distances are those of the reduction (paper 002, section 4.1).
///
/// Only edges over two levels and more can be redundant. Their children are split into blocks of 512, and one pass over the
/// edges above a block finds the children that each task reaches: time is edges × children / 64, memory 64 bytes a task.
#[must_use]
pub fn reduced(workflow: &Workflow) -> Workflow {
    let redundant = redundant_edges(workflow);
    if redundant.is_empty() {
        return workflow.clone();
    }
    let kept: Vec<_> = workflow.edges().filter(|edge| redundant.binary_search(edge).is_err()).collect();
    workflow.with_edges(&kept).expect("a part of the edges of a graph without cycles")
}

/// A graph without cycles, with the levels of its tasks.
pub(crate) trait Graph {
    /// Returns the number of tasks.
    fn len(&self) -> usize;
    /// Returns the children of a task.
    fn children(&self, task: u32) -> &[u32];
    /// Returns the parents of a task.
    fn parents(&self, task: u32) -> &[u32];
    /// Returns the level of a task, from 0: 1 more than the highest level of its parents.
    fn level_of(&self, task: u32) -> usize;
    /// Returns the tasks of a level.
    fn level(&self, level: usize) -> &[u32];
}

impl Graph for Workflow {
    fn len(&self) -> usize {
        self.tasks().len()
    }

    fn children(&self, task: u32) -> &[u32] {
        self.children(task)
    }

    fn parents(&self, task: u32) -> &[u32] {
        self.parents(task)
    }

    fn level_of(&self, task: u32) -> usize {
        self.level_of(task)
    }

    fn level(&self, level: usize) -> &[u32] {
        &self.levels()[level]
    }
}

/// Returns the redundant edges in ascending order.
pub(crate) fn redundant_edges(workflow: &impl Graph) -> Vec<(u32, u32)> {
    let mut targets = Vec::new();
    for parent in 0..workflow.len() as u32 {
        let next = workflow.level_of(parent) + 1;
        targets.extend(workflow.children(parent).iter().filter(|child| workflow.level_of(**child) > next));
    }
    targets.sort_unstable();
    targets.dedup();
    // Targets of one level share a pass, so that each pass covers few levels.
    targets.sort_by_key(|target| workflow.level_of(*target));
    let mut redundant = Vec::new();
    if targets.is_empty() {
        return redundant;
    }
    let mut bits = vec![None; workflow.len()];
    let mut rows = vec![[0; WORDS]; workflow.len()];
    for block in targets.chunks(64 * WORDS) {
        for (bit, target) in block.iter().enumerate() {
            bits[*target as usize] = Some(bit);
        }
        pass(workflow, block, &bits, &mut rows, &mut redundant);
        for target in block {
            bits[*target as usize] = None;
        }
    }
    redundant.sort_unstable();
    redundant
}

/// Adds the redundant edges to the targets of a block. `bits` has the bit of each target.
fn pass(
    workflow: &impl Graph,
    block: &[u32],
    bits: &[Option<usize>],
    rows: &mut [Row],
    redundant: &mut Vec<(u32, u32)>,
) {
    let parents = block.iter().flat_map(|target| workflow.parents(*target));
    let bottom = parents.map(|parent| workflow.level_of(*parent)).min().unwrap_or(0);
    let top = block.iter().map(|target| workflow.level_of(*target)).max().unwrap_or(0);
    for task in (bottom..top).rev().flat_map(|level| workflow.level(level)) {
        let mut row = [0; WORDS];
        for child in workflow.children(*task) {
            if workflow.level_of(*child) < top {
                for (word, more) in row.iter_mut().zip(&rows[*child as usize]) {
                    *word |= more;
                }
            }
        }
        // The row has the targets behind two edges and more: an edge to one of them is redundant.
        for child in workflow.children(*task) {
            if let Some(bit) = bits[*child as usize] {
                let mask = 1 << (bit % 64);
                if row[bit / 64] & mask != 0 {
                    redundant.push((*task, *child));
                }
                row[bit / 64] |= mask;
            }
        }
        rows[*task as usize] = row;
    }
}
