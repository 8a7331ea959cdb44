//! Chains of tasks with one parent and one child, for vertical clustering.

use crate::reduction::reduced;
use crate::workflow::Workflow;

/// Relative difference below which a chain's run time equals the mean job's: sums of the same run times in another order.
const TOLERANCE: f64 = 1e-9;

/// Returns all chains of a workflow. Task `v` follows `u` in a chain if it is the only child of `u`, and `u` its only parent
/// (vertical clustering of paper 002, section 3), in the transitive reduction. A chain may have one task. Chains are in the
/// order of their first task, by level.
#[must_use]
pub fn chains(workflow: &Workflow) -> Vec<Vec<u32>> {
    chains_of_reduction(&reduced(workflow))
}

/// Returns the chains of a workflow without redundant edges.
pub(crate) fn chains_of_reduction(graph: &Workflow) -> Vec<Vec<u32>> {
    let heads = graph.levels().iter().flatten().filter(|task| !is_continued(graph, **task));
    heads.map(|task| std::iter::successors(Some(*task), |task| next(graph, *task)).collect()).collect()
}

/// Returns the task that follows in the chain.
pub(crate) fn next(graph: &Workflow, task: u32) -> Option<u32> {
    let [child] = graph.children(task) else { return None };
    (graph.parents(*child).len() == 1).then_some(*child)
}

fn is_continued(graph: &Workflow, task: u32) -> bool {
    matches!(graph.parents(task), [parent] if next(graph, *parent) == Some(task))
}

/// Returns chains that end where they would become large jobs (paper 002, section 6: a metric for vertical clustering before
/// balancing). A chain is cut before the task that takes its accumulated run time beyond the mean job of the level where the
/// chain starts, and the remaining tasks form the next piece under the same limit. A longer task is a piece by itself.
///
/// The mean job of a level is the run time of all chains that start in it, divided by `jobs` or by their number if that is
/// less.
#[must_use]
pub fn bounded_chains(workflow: &Workflow, jobs: usize) -> Vec<Vec<u32>> {
    let chains = chains(workflow);
    let means = mean_jobs(workflow, &chains, jobs);
    let mut pieces = Vec::new();
    for chain in chains {
        let limit = means[workflow.level_of(chain[0])] * (1.0 + TOLERANCE);
        let mut piece: Vec<u32> = Vec::new();
        let mut sum = 0.0;
        for task in chain {
            let seconds = workflow.tasks()[task as usize].seconds;
            if !piece.is_empty() && sum + seconds > limit {
                pieces.push(std::mem::take(&mut piece));
                sum = 0.0;
            }
            sum += seconds;
            piece.push(task);
        }
        pieces.push(piece);
    }
    pieces
}

/// Returns for each level the run time of the longest chain that starts in it, divided by the mean job of
/// [`bounded_chains`]. Above 1, vertical clustering makes jobs that horizontal methods cannot balance. 0 for a level without
/// the start of a chain, or without run time.
#[must_use]
pub fn chain_excess(workflow: &Workflow, jobs: usize) -> Vec<f64> {
    let chains = chains(workflow);
    let mut longest = vec![0.0_f64; workflow.levels().len()];
    for chain in &chains {
        let level = workflow.level_of(chain[0]);
        longest[level] = longest[level].max(seconds(workflow, chain));
    }
    let means = mean_jobs(workflow, &chains, jobs);
    longest.iter().zip(means).map(|(longest, mean)| if mean > 0.0 { longest / mean } else { 0.0 }).collect()
}

/// Returns the mean job of each level in seconds.
fn mean_jobs(workflow: &Workflow, chains: &[Vec<u32>], jobs: usize) -> Vec<f64> {
    let mut levels = vec![(0.0, 0_usize); workflow.levels().len()];
    for chain in chains {
        let (sum, count) = &mut levels[workflow.level_of(chain[0])];
        *sum += seconds(workflow, chain);
        *count += 1;
    }
    levels.iter().map(|(sum, count)| sum / (*count).min(jobs).max(1) as f64).collect()
}

fn seconds(workflow: &Workflow, chain: &[u32]) -> f64 {
    chain.iter().map(|task| workflow.tasks()[*task as usize].seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::fixture::workflow;

    #[test]
    fn redundant_edges_do_not_break_a_chain() {
        let workflow = workflow(&[1.0; 4], &[(0, 1), (1, 2), (2, 3), (0, 2), (0, 3)]);
        assert_eq!(chains(&workflow), [[0, 1, 2, 3]]);
    }

    #[test]
    fn a_chain_ends_where_it_exceeds_the_mean_job() {
        // Two chains of three tasks and a single task: 9 + 3 + 3 s. Two jobs take 7.5 s on average, one takes 15 s.
        let edges = [(0, 1), (1, 2), (3, 4), (4, 5)];
        let workflow = workflow(&[3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 3.0], &edges);
        assert_eq!(bounded_chains(&workflow, 2), [vec![0, 1], vec![2], vec![3, 4, 5], vec![6]]);
        assert_eq!(bounded_chains(&workflow, 1), chains(&workflow));
        assert_eq!(chain_excess(&workflow, 2), [1.2, 0.0, 0.0]);
    }

    #[test]
    fn a_level_of_one_chain_keeps_it() {
        let workflow = workflow(&[0.1, 0.2, 0.3], &[(0, 1), (1, 2)]);
        assert_eq!(bounded_chains(&workflow, 20), [[0, 1, 2]]);
        assert_eq!(chain_excess(&workflow, 20), [1.0, 0.0, 0.0]);
    }
}
