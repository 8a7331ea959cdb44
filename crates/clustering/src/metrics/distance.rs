//! Distances between the tasks of a level (paper 002, section 4.1).

mod classes;
mod layers;
mod rows;

use std::collections::BTreeMap;

use super::reading::Reading;
use crate::workflow::Workflow;

pub(crate) use classes::Classes;
pub(crate) use rows::Rows;

/// Returns the number of pairs of tasks of a level by their distance, in a graph without redundant edges. `level` counts from
/// 0. No pair is stored: tasks of equal child sets count as one, as do tasks whose successors after some steps are equal.
pub(crate) fn pairs_by_distance(graph: &Workflow, level: usize, reading: Reading) -> BTreeMap<u32, u64> {
    let mut pairs = BTreeMap::new();
    if reading == Reading::Definition && has_long_edges(graph, level) {
        rows::count(graph, level, &mut pairs);
    } else {
        let meetings = layers::meetings(graph, level);
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
