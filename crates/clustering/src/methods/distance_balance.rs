//! Balancing by distance (paper 002, Algorithm 3).

use std::collections::HashMap;
use std::rc::Rc;

use super::Candidates;
use super::jobs::{Jobs, longest_first};
use crate::metrics::{Classes, Rows};
use crate::workflow::Workflow;

/// Entries of rows that are kept for further tasks of their class: 32 MB.
const MAX_KEPT: usize = 4_000_000;

/// Classes of tasks at one distance.
enum Ring<'a> {
    Classes(&'a [(u32, u32)]),
    /// All classes that are in no nearer ring.
    Rest,
}

/// Horizontal distance balancing: as runtime balancing, among jobs with a task at the least distance that any task of the level
/// has to the task. Distances are those of the metric's definition, and equal for tasks of equal children.
pub(super) fn by_distance(
    graph: &Workflow,
    index: usize,
    count: usize,
    candidates: Candidates,
) -> Vec<Vec<u32>> {
    let level = &graph.levels()[index];
    let classes = Classes::new(graph, level);
    let class_of: HashMap<u32, u32> = level.iter().copied().zip(classes.class_of.iter().copied()).collect();
    let mut rows = Rows::new(graph, index, &classes);
    let (mut kept, mut entries) = (HashMap::new(), 0);
    let mut jobs = Jobs::new(level.len(), count);
    let mut jobs_of: Vec<Vec<usize>> = vec![Vec::new(); classes.len()];
    for task in longest_first(graph, level) {
        let class = class_of[&task];
        let row = kept.get(&class).map_or_else(|| Rc::new(rows.row(class)), Rc::clone);
        if classes.weights[class as usize] > 1
            && entries + row.near.len() <= MAX_KEPT
            && !kept.contains_key(&class)
        {
            entries += row.near.len();
            kept.insert(class, Rc::clone(&row));
        }
        let near = row.near.chunk_by(|a, b| a.0 == b.0).map(Ring::Classes);
        let Some(job) = choose(&jobs, &jobs_of, near.chain([Ring::Rest]), candidates) else { break };
        jobs.add(job, task, graph.tasks()[task as usize].seconds);
        if let Err(position) = jobs_of[class as usize].binary_search(&job) {
            jobs_of[class as usize].insert(position, job);
        }
    }
    jobs.into_tasks().collect()
}

/// Returns the job for a task with these rings around it.
fn choose<'a>(
    jobs: &Jobs,
    jobs_of: &[Vec<usize>],
    mut rings: impl Iterator<Item = Ring<'a>>,
    candidates: Candidates,
) -> Option<usize> {
    let mut is_near = vec![false; jobs.len()];
    let mut mark = |ring: Ring<'_>| match ring {
        Ring::Classes(classes) => {
            for (_, class) in classes {
                for job in &jobs_of[*class as usize] {
                    is_near[*job] = true;
                }
            }
            jobs.shortest(|job| is_near[job])
        }
        // Jobs of nearer rings are full.
        Ring::Rest => jobs.shortest(|job| !jobs.is_empty(job)),
    };
    let near = rings.next().and_then(&mut mark);
    let empty = jobs.shortest(|job| jobs.is_empty(job));
    let first = match (candidates, near, empty) {
        (Candidates::Spread, Some(near), Some(empty)) => jobs.shorter(near, empty),
        (_, near, empty) => return near.or(empty).or_else(|| rings.find_map(mark)),
    };
    Some(first)
}
