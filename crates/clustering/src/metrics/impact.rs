//! Impact factors (paper 002, equation 1).

use super::reading::Reading;
use crate::workflow::Workflow;

/// Returns the impact factor of each task of a graph without redundant edges: the sum over its children of their impact factor
/// divided by the number of their parents. A task without children has 1 (`Definition`), or its part of 1 among the tasks of
/// the deepest level and otherwise 0 (`Table`, `Wfs`).
pub(crate) fn impact_factors(graph: &Workflow, reading: Reading) -> Vec<f64> {
    let depth = graph.levels().len();
    let mut factors = vec![0.0; graph.tasks().len()];
    for (index, level) in graph.levels().iter().enumerate().rev() {
        let exit = match reading {
            Reading::Definition => 1.0,
            Reading::Table | Reading::Wfs if index + 1 == depth => 1.0 / level.len() as f64,
            Reading::Table | Reading::Wfs => 0.0,
        };
        for task in level {
            let part = |child: &u32| factors[*child as usize] / graph.parents(*child).len() as f64;
            let children = graph.children(*task);
            factors[*task as usize] =
                if children.is_empty() { exit } else { children.iter().map(part).sum() };
        }
    }
    factors
}
