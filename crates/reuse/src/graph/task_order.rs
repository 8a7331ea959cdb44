//! Task order of maximum sharing: among all executable orders of a stage's tasks, the one with the cheapest
//! reuse tree for the given instances.
//!
//! A tree has a node per distinct prefix, and the number of distinct prefixes depends only on *which* tasks
//! the prefix has, not on their order. The best order is thus the cheapest path through the sets of tasks
//! that contain all tasks they read (down-sets). With at most [`MAX_DOWN_SETS`] down-sets and few instances,
//! dynamic programming finds it exactly. Otherwise each position gets the cheapest next task. The caller
//! provides a [`TaskGraph`], which determines the possible orders. Results do not depend on the order.

use std::collections::HashMap;

use crate::graph::interner::Interner;
use crate::graph::task_graph::{TaskGraph, TaskGraphError};
use crate::merge_problem::{Member, MergeProblem, TaskCosts};

/// Maximum number of down-sets compared exactly. A stage that forks into 12 independent tasks has 4096.
pub const MAX_DOWN_SETS: usize = 4096;

/// Maximum number of look-ups (down-sets × instances) for an exact order, which take about 10 s.
const MAX_LOOK_UPS: usize = 1 << 27;

/// An order of a stage's tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOrder {
    /// The task at each position, numbered as in the problem.
    pub tasks: Vec<usize>,
    /// Cost of the reuse tree in this order.
    pub cost: f64,
    /// Whether the order is proven cheapest. Otherwise each position has the cheapest next task.
    pub exact: bool,
}

/// Returns the order of maximum sharing by cost. On ties of an exact order, tasks of higher number come
/// later.
///
/// # Panics
/// If the number of tasks in the graph differs from the problem's levels.
pub fn best_order(problem: &MergeProblem, graph: &TaskGraph) -> TaskOrder {
    assert_eq!(graph.len(), problem.levels(), "a graph of this stage's tasks");
    // Each down-set costs one look-up per instance, and the bound on sets falls as instances grow.
    let most = MAX_DOWN_SETS.min(MAX_LOOK_UPS / problem.len().max(1));
    let order = exact_order(problem, graph, most).unwrap_or_else(|| greedy_order(problem, graph));
    let (tasks, ordered) = (graph.len(), order.tasks.len());
    assert!(ordered == tasks, "{ordered} of {tasks} tasks are in order");
    debug_assert!(
        (0..ordered).all(|place| {
            let reads = &graph.reads(order.tasks[place]).tasks;
            reads.iter().all(|read| order.tasks[..place].contains(read))
        }),
        "a task precedes one that it reads: {order:?}"
    );
    order
}

/// Distinct prefixes of a set of tasks.
#[derive(Clone)]
struct Prefix {
    /// Class of each instance. Instances of one class share the prefix.
    class_of: Vec<u32>,
    /// The first instance of each class.
    first: Vec<Member>,
}

impl Prefix {
    fn empty(problem: &MergeProblem) -> Self {
        let mut inputs = Interner::default();
        Self::by(problem, |member| inputs.intern(problem.inputs(member)))
    }

    fn with(&self, problem: &MergeProblem, task: usize) -> Self {
        let mut classes = Interner::default();
        Self::by(problem, |member| {
            classes.intern((self.class_of[member.0 as usize], problem.keys(member)[task]))
        })
    }

    fn by(problem: &MergeProblem, mut class: impl FnMut(Member) -> u32) -> Self {
        let mut prefix = Self { class_of: Vec::with_capacity(problem.len()), first: Vec::new() };
        for member in problem.members() {
            let class = class(member);
            if class as usize == prefix.first.len() {
                prefix.first.push(member);
            }
            prefix.class_of.push(class);
        }
        prefix
    }

    /// Returns the cost of a task as the last of this prefix.
    fn cost(&self, problem: &MergeProblem, task: usize) -> f64 {
        self.first.iter().map(|member| problem.cost(*member, task)).sum()
    }
}

fn exact_order(problem: &MergeProblem, graph: &TaskGraph, max: usize) -> Option<TaskOrder> {
    let mut last_costs = LastCosts { problem, graph, max, of: HashMap::new() };
    // A set is a mask of 64 bits. Counting reads the graph alone, so a refusal costs no look-ups.
    if graph.len() > 64 || !last_costs.count_up(0, &mut 0) {
        return None;
    }
    last_costs.visit(0, &Prefix::empty(problem));
    // From small sets to large ones: minimum cost of the set, and its last task.
    // The hash map has no order. Each set needs the costs of its subsets, and the last set must be the full one.
    let mut sets: Vec<u64> = last_costs.of.keys().copied().collect();
    sets.sort_unstable_by_key(|set| (set.count_ones(), *set));
    let mut cheapest: HashMap<u64, (f64, usize)> = HashMap::from([(0, (0.0, 0))]);
    for set in &sets {
        let ways =
            last_costs.of[set].iter().map(|(task, cost)| (cheapest[&(set & !(1 << task))].0 + cost, *task));
        // The swapped task numbers let the higher one win on equal costs: it becomes the last task.
        let best = ways.reduce(|a, b| if (b.0, a.1) < (a.0, b.1) { b } else { a });
        cheapest.insert(*set, best.unwrap_or_default());
    }
    let mut set = sets.last().copied().unwrap_or(0);
    let cost = cheapest[&set].0;
    let mut tasks = Vec::with_capacity(graph.len());
    while set != 0 {
        let last = cheapest[&set].1;
        tasks.push(last);
        set &= !(1 << last);
    }
    tasks.reverse();
    Some(TaskOrder { tasks, cost, exact: true })
}

/// Cost of each possible last task of a down-set, for all non-empty down-sets. Sets are bit masks.
struct LastCosts<'a> {
    problem: &'a MergeProblem,
    graph: &'a TaskGraph,
    max: usize,
    of: HashMap<u64, Vec<(usize, f64)>>,
}

impl LastCosts<'_> {
    /// Returns the tasks that no task in the set reads.
    fn lasts(&self, set: u64) -> Vec<usize> {
        let tasks = || (0..self.graph.len()).filter(move |task| set >> task & 1 == 1);
        let read =
            tasks().flat_map(|task| &self.graph.reads(task).tasks).fold(0_u64, |set, read| set | 1 << read);
        tasks().filter(|task| read >> task & 1 == 0).collect()
    }

    /// Returns the down-sets with one more task. Each is reached from one set only: the one without the highest of
    /// its possible last tasks.
    fn next(&self, set: u64) -> impl Iterator<Item = (u64, usize)> {
        let has = move |task: usize| set >> task & 1 == 1;
        let ready =
            move |task: &usize| !has(*task) && self.graph.reads(*task).tasks.iter().all(|read| has(*read));
        let next = (0..self.graph.len()).filter(ready).map(move |task| (set | 1 << task, task));
        next.filter(|(next, task)| self.lasts(*next).last() == Some(task))
    }

    /// Counts down-sets. Returns false beyond the limit.
    fn count_up(&self, set: u64, found: &mut usize) -> bool {
        *found += 1;
        *found <= self.max && self.next(set).all(|(next, _)| self.count_up(next, found))
    }

    fn visit(&mut self, set: u64, prefix: &Prefix) {
        let next: Vec<(u64, usize)> = self.next(set).collect();
        for (next, task) in next {
            let prefix = prefix.with(self.problem, task);
            let lasts = self.lasts(next).into_iter();
            self.of.insert(next, lasts.map(|last| (last, prefix.cost(self.problem, last))).collect());
            self.visit(next, &prefix);
        }
    }
}

fn greedy_order(problem: &MergeProblem, graph: &TaskGraph) -> TaskOrder {
    let mut prefix = Prefix::empty(problem);
    let mut order = TaskOrder { tasks: Vec::new(), cost: 0.0, exact: false };
    while order.tasks.len() < graph.len() {
        let has = |task: &usize| order.tasks.contains(task);
        let ready = (0..graph.len()).filter(|task| !has(task) && graph.reads(*task).tasks.iter().all(has));
        let longer = ready.map(|task| {
            let prefix = prefix.with(problem, task);
            (prefix.cost(problem, task), prefix.first.len(), task, prefix)
        });
        // On ties, the task that splits the instances least.
        let least = longer.reduce(|a, b| if (b.0, b.1) < (a.0, a.1) { b } else { a });
        // A graph without cycles always has a ready task. `best_order` checks the length all the same.
        let Some((cost, _, task, longer)) = least else { break };
        order.tasks.push(task);
        order.cost += cost;
        prefix = longer;
    }
    order
}

impl MergeProblem {
    /// Returns the instances with their tasks in another order, where `order[position]` is the task at that
    /// position.
    ///
    /// # Errors
    /// If tasks cannot be executed in this order.
    pub fn reordered(&self, graph: &TaskGraph, order: &[usize]) -> Result<Self, TaskGraphError> {
        graph.reordered(order)?;
        let moved = |member: Member| order.iter().map(move |task| self.keys(member)[*task]);
        let keys = self.members().flat_map(moved).collect();
        let costs = match self.costs() {
            TaskCosts::Count => TaskCosts::Count,
            TaskCosts::PerLevel(costs) => {
                TaskCosts::PerLevel(order.iter().map(|task| costs[*task]).collect())
            }
            TaskCosts::PerTask(_) => {
                let moved = |member: Member| order.iter().map(move |task| self.cost(member, *task));
                TaskCosts::PerTask(self.members().flat_map(moved).collect())
            }
        };
        Ok(self.with_tasks(keys, costs))
    }
}
