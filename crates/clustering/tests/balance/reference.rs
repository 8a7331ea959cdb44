//! Slow references: matrices over all tasks and pairs.

use pleach_clustering::{Candidates, Reading, Workflow};
use std::collections::BTreeSet;

/// Returns the edges that no other path implies, from the matrix of all paths.
pub(crate) fn reduced_edges(workflow: &Workflow) -> Vec<(u32, u32)> {
    let count = workflow.tasks().len();
    let mut reaches = vec![vec![false; count]; count];
    for (parent, child) in workflow.edges() {
        reaches[parent as usize][child as usize] = true;
    }
    for middle in 0..count {
        for from in 0..count {
            if reaches[from][middle] {
                let through = reaches[middle].clone();
                for (reach, more) in reaches[from].iter_mut().zip(through) {
                    *reach |= more;
                }
            }
        }
    }
    let implied = |(parent, child): &(u32, u32)| {
        workflow.children(*parent).iter().any(|other| reaches[*other as usize][*child as usize])
    };
    workflow.edges().filter(|edge| !implied(edge)).collect()
}

/// Returns the length of the shortest path to each task, `None` without a path.
fn lengths(graph: &Workflow, from: u32) -> Vec<Option<u32>> {
    let mut lengths = vec![None; graph.tasks().len()];
    lengths[from as usize] = Some(0);
    for level in graph.levels() {
        for task in level {
            if let Some(length) = lengths[*task as usize] {
                for child in graph.children(*task) {
                    let own: &mut Option<u32> = &mut lengths[*child as usize];
                    *own = Some(own.map_or(length + 1, |own| own.min(length + 1)));
                }
            }
        }
    }
    lengths
}

/// Returns the distance of two tasks of a level in a graph without redundant edges.
pub(crate) fn distance(graph: &Workflow, first: u32, second: u32, reading: Reading) -> u32 {
    if reading == Reading::Definition {
        let (a, b) = (lengths(graph, first), lengths(graph, second));
        let common = a.iter().zip(&b).filter_map(|(a, b)| Some((*a)? + (*b)?));
        return common.min().unwrap_or(2 * (graph.levels().len() - graph.level_of(first)) as u32);
    }
    let step = |tasks: &BTreeSet<u32>| -> BTreeSet<u32> {
        tasks.iter().flat_map(|task| graph.children(*task)).copied().collect()
    };
    let (mut a, mut b) = (BTreeSet::from([first]), BTreeSet::from([second]));
    for steps in 1.. {
        (a, b) = (step(&a), step(&b));
        if a.intersection(&b).next().is_some() {
            return 2 * (steps - 1);
        }
        if a.is_empty() || b.is_empty() {
            return 2 * steps;
        }
    }
    unreachable!()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the deviation of values of a level: by `n − 1` as in the definition, or by a number of tasks.
fn deviation(values: &[f64], reading: Reading, tasks: usize) -> f64 {
    let (center, divisor) = match reading {
        Reading::Definition if values.len() < 2 => return 0.0,
        Reading::Definition => (mean(values), values.len() as f64 - 1.0),
        _ => (values.iter().sum::<f64>() / tasks as f64, tasks as f64),
    };
    (values.iter().map(|value| (value - center).powi(2)).sum::<f64>() / divisor).sqrt()
}

/// Returns the impact factor of a task.
pub(crate) fn impact(graph: &Workflow, task: u32, reading: Reading) -> f64 {
    let last = &graph.levels()[graph.levels().len() - 1];
    if graph.children(task).is_empty() {
        return match reading {
            Reading::Definition => 1.0,
            _ if last.contains(&task) => 1.0 / last.len() as f64,
            _ => 0.0,
        };
    }
    let part = |child: &u32| impact(graph, *child, reading) / graph.parents(*child).len() as f64;
    graph.children(task).iter().map(part).sum()
}

/// Returns HRV, HIFV, HDV and PRV of a level, from all pairs.
pub(crate) fn metrics(graph: &Workflow, level: usize, reading: Reading) -> [f64; 4] {
    let tasks = &graph.levels()[level];
    let seconds = |task: u32| graph.tasks()[task as usize].seconds;
    let chain = |task: &u32| {
        let (mut sum, mut task) = (seconds(*task), *task);
        while let [child] = graph.children(task)
            && graph.parents(*child).len() == 1
        {
            sum += seconds(*child);
            task = *child;
        }
        sum
    };
    let run_times: Vec<f64> = tasks.iter().map(|task| seconds(*task)).collect();
    let chains: Vec<f64> = tasks.iter().map(chain).collect();
    let factors: Vec<f64> = tasks.iter().map(|task| impact(graph, *task, reading)).collect();
    let mut distances = Vec::new();
    for (position, first) in tasks.iter().enumerate() {
        for second in &tasks[..position] {
            distances.push(f64::from(distance(graph, *first, *second, reading)));
        }
    }
    let of = |values: &[f64]| deviation(values, reading, tasks.len());
    let variation = |values: &[f64]| if mean(values) > 0.0 { of(values) / mean(values) } else { 0.0 };
    [variation(&run_times), of(&factors), of(&distances), variation(&chains)]
}

/// Balances a level as `clustering` of the design has it. `difference` compares a task with the tasks of a job, `near` is the
/// largest difference of a near job.
pub(crate) fn balance(
    workflow: &Workflow,
    level: &[u32],
    count: usize,
    candidates: Candidates,
    difference: impl Fn(u32, &[u32]) -> f64,
    near: impl Fn(u32) -> f64,
) -> Vec<Vec<u32>> {
    const SAME: f64 = 1e-9;
    let seconds = |task: u32| workflow.tasks()[task as usize].seconds;
    let mut order = level.to_vec();
    order.sort_by(|a, b| seconds(*b).total_cmp(&seconds(*a)).then(a.cmp(b)));
    let mut jobs = vec![Vec::new(); count];
    for task in order {
        let open: Vec<usize> =
            (0..count).filter(|job| jobs[*job].len() < level.len().div_ceil(count)).collect();
        let is_near =
            |job: &usize| !jobs[*job].is_empty() && difference(task, &jobs[*job]) <= near(task) + SAME;
        let is_empty = |job: &usize| jobs[*job].is_empty();
        let sum = |job: &usize| jobs[*job].iter().map(|task| seconds(*task)).sum::<f64>();
        let shortest = |of: Vec<usize>| of.into_iter().min_by(|a, b| sum(a).total_cmp(&sum(b)));
        let among =
            |is: &dyn Fn(&usize) -> bool| open.iter().copied().filter(|job| is(job)).collect::<Vec<_>>();
        let first = match candidates {
            Candidates::Spread => shortest(among(&|job| is_near(job) || is_empty(job))),
            Candidates::Examples => shortest(among(&is_near)).or_else(|| among(&is_empty).first().copied()),
        };
        let job = first.or_else(|| {
            let least = open.iter().map(|job| difference(task, &jobs[*job])).min_by(f64::total_cmp)?;
            shortest(among(&|job| difference(task, &jobs[*job]) <= least + SAME))
        });
        jobs[job.expect("an open job")].push(task);
    }
    jobs.retain(|job| !job.is_empty());
    jobs
}
