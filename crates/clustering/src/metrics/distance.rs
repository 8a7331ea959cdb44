//! Distances between the tasks of a level (paper 002, section 4.1).

mod bits;
mod classes;
mod lanes;
mod layers;
mod rows;

use std::collections::BTreeMap;

use super::reading::Reading;
use crate::workflow::Workflow;

pub(crate) use classes::Classes;
pub(crate) use rows::Rows;

/// Returns for each level the number of pairs of its tasks by their distance, in a graph without redundant edges. No pair is
/// stored: tasks of equal child sets count as one, as do tasks whose successors after some steps are equal.
pub(crate) fn pairs_by_distance(graph: &Workflow, reading: Reading) -> Vec<BTreeMap<u32, u64>> {
    let mut levels: Vec<BTreeMap<u32, u64>> = Vec::with_capacity(graph.levels().len());
    let mut edges = 0;
    let mut has_long_edges = false;
    for (level, tasks) in graph.levels().iter().enumerate().rev() {
        let children = |task: &u32| graph.children(*task).iter();
        edges += tasks.iter().map(|task| children(task).len()).sum::<usize>();
        has_long_edges |= tasks.iter().flat_map(children).any(|child| graph.level_of(*child) > level + 1);
        let pairs = match levels.last() {
            // Each path takes an edge more, and so does the way back.
            Some(below) if continues(graph, level) => {
                below.iter().map(|(of, count)| (of + 2, *count)).collect()
            }
            _ => pairs_of_level(graph, level, reading, edges, has_long_edges),
        };
        levels.push(pairs);
    }
    levels.reverse();
    levels
}

/// Returns whether each task of a level has a child of its own as its only child, and the next level has no other tasks.
fn continues(graph: &Workflow, level: usize) -> bool {
    let tasks = &graph.levels()[level];
    let mut children: Vec<u32> = Vec::with_capacity(tasks.len());
    for task in tasks {
        match graph.children(*task) {
            [child] if graph.level_of(*child) == level + 1 => children.push(*child),
            _ => return false,
        }
    }
    children.sort_unstable();
    children == graph.levels()[level + 1]
}

/// Returns the pairs of a level by distance. `edges` and `has_long_edges` are those from this level on.
fn pairs_of_level(
    graph: &Workflow,
    level: usize,
    reading: Reading,
    edges: usize,
    has_long_edges: bool,
) -> BTreeMap<u32, u64> {
    let mut pairs = BTreeMap::new();
    if graph.levels()[level].len() < 2 {
        return pairs;
    }
    if reading == Reading::Definition && has_long_edges {
        rows::count(graph, level, edges, &mut pairs);
    } else {
        let meetings = layers::meetings(graph, level, edges);
        for (step, (met, apart)) in (1..).zip(meetings) {
            let (met_distance, apart_distance) = match reading {
                // Without edges over several levels, the shortest path to the first common successor has `step` edges.
                Reading::Definition => (2 * step, max_distance(graph, level)),
                Reading::Table | Reading::Wfs => (2 * (step - 1), 2 * step),
            };
            *pairs.entry(met_distance).or_default() += met;
            *pairs.entry(apart_distance).or_default() += apart;
        }
    }
    pairs.retain(|_, count| *count > 0);
    pairs
}

/// Returns the largest possible distance: that of tasks without a common successor, as if a last task joined all.
pub(crate) fn max_distance(graph: &Workflow, level: usize) -> u32 {
    2 * (graph.levels().len() - level) as u32
}

fn has_long_edges(graph: &Workflow, level: usize) -> bool {
    graph.levels()[level..].iter().flatten().any(|task| {
        graph.children(*task).iter().any(|child| graph.level_of(*child) > graph.level_of(*task) + 1)
    })
}
