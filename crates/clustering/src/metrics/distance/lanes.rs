//! Counts pairs of tasks of a level by their distance or meeting, 64 classes of tasks at a time.
//!
//! Downward, each successor learns its distances from the classes of a block. Upward, each class learns the least sum over a common
//! successor. A block takes each edge twice, and memory for its distances: no pair of classes is stored.

use super::classes::Classes;
use crate::workflow::Workflow;
use crate::workflow::lists::Lists;

/// Classes of a block: their distances to a task fill a cache line.
pub(super) const LANES: usize = 64;

/// Distances of a task from each class of a block.
type Lanes = [u8; LANES];

/// No path.
const FAR: u8 = u8::MAX;

/// Most layers of successors: distances of twice as many edges are below [`FAR`].
const MAX_LAYERS: usize = 126;

/// Most tasks of all layers: 128 MB of lanes.
const MAX_STATES: usize = 1 << 21;

const UNKNOWN: u32 = u32::MAX;

/// Pairs of tasks, by their number of edges to the successors where they meet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pairs {
    /// Pairs that meet, by steps or by distance.
    pub(super) met: Vec<u64>,
    /// Pairs without a meeting, by the shorter of the longest paths from both tasks.
    pub(super) apart: Vec<u64>,
}

/// Returns the pairs by the least number of steps after which their successors have a task in common. `None` for graphs that are
/// too deep.
///
/// Successors after each number of steps form a layer. Without edges over several levels, each task is in one layer.
pub(super) fn by_step(graph: &Workflow, classes: &Classes<'_>) -> Option<Pairs> {
    let mut states = States::new(classes, graph);
    let mut tasks = std::mem::take(&mut states.first);
    for _ in 0..MAX_LAYERS {
        if tasks.is_empty() {
            return Some(states.pairs(classes, 0));
        }
        tasks = states.add_layer(&tasks)?;
    }
    None
}

/// Returns the pairs by the length of the shortest path from one task to a common successor and back to the other task. `None`
/// for graphs that are too deep. `level` counts from 0.
pub(super) fn by_distance(graph: &Workflow, level: usize, classes: &Classes<'_>) -> Option<Pairs> {
    let below = &graph.levels()[level + 1..];
    if below.len() > MAX_LAYERS {
        return None;
    }
    let tasks: Vec<u32> = below.concat();
    Some(States::with_tasks(classes, graph, &tasks).pairs(classes, 1))
}

/// Successors in the order of their paths.
struct States<'a> {
    graph: &'a Workflow,
    /// Children of each class as states.
    classes: Lists,
    /// Children of each state as states of a higher number.
    children: Lists,
    /// Tasks of the first layer.
    first: Vec<u32>,
    /// State of each task in the layer that is added.
    state_of: Vec<u32>,
    count: u32,
}

impl<'a> States<'a> {
    /// Creates the states of the first layer.
    fn new(classes: &Classes<'_>, graph: &'a Workflow) -> Self {
        let mut states = Self {
            graph,
            classes: Lists::default(),
            children: Lists::default(),
            first: Vec::new(),
            state_of: vec![UNKNOWN; graph.tasks().len()],
            count: 0,
        };
        let mut first = Vec::new();
        for children in &classes.children {
            let list: Vec<u32> = children.iter().map(|child| states.state(*child, &mut first)).collect();
            states.classes.extend(&list);
        }
        first.iter().for_each(|task| states.state_of[*task as usize] = UNKNOWN);
        states.first = first;
        states
    }

    /// Creates a state for each task. Tasks are in topological order.
    fn with_tasks(classes: &Classes<'_>, graph: &'a Workflow, tasks: &[u32]) -> Self {
        let mut state_of = vec![UNKNOWN; graph.tasks().len()];
        for (state, task) in (0..).zip(tasks) {
            state_of[*task as usize] = state;
        }
        let states = |lists: &mut dyn Iterator<Item = &[u32]>| {
            let mut states = Lists::default();
            for list in lists {
                list.iter().for_each(|task| states.push(state_of[*task as usize]));
                states.close();
            }
            states
        };
        Self {
            graph,
            classes: states(&mut classes.children.iter().copied()),
            children: states(&mut tasks.iter().map(|task| graph.children(*task))),
            first: Vec::new(),
            count: tasks.len() as u32,
            state_of,
        }
    }

    /// Returns the state of a task in a layer, and adds it if it is new.
    fn state(&mut self, task: u32, layer: &mut Vec<u32>) -> u32 {
        let state = &mut self.state_of[task as usize];
        if *state == UNKNOWN {
            *state = self.count;
            self.count += 1;
            layer.push(task);
        }
        *state
    }

    /// Adds the layer after a layer of tasks, and returns its tasks. `None` if states are too many.
    fn add_layer(&mut self, tasks: &[u32]) -> Option<Vec<u32>> {
        let mut layer = Vec::new();
        let graph = self.graph;
        for task in tasks {
            for child in graph.children(*task) {
                let state = self.state(*child, &mut layer);
                self.children.push(state);
            }
            self.children.close();
        }
        layer.iter().for_each(|task| self.state_of[*task as usize] = UNKNOWN);
        (self.count as usize <= MAX_STATES).then_some(layer)
    }

    /// Counts all pairs. Each edge downward adds `down` to a distance, each edge upward 1.
    fn pairs(&self, classes: &Classes<'_>, down: u8) -> Pairs {
        let heights = self.heights();
        // Classes of a block have the same weight and height, so that a count of lanes is a count of pairs.
        let mut order: Vec<u32> = (0..classes.len() as u32).collect();
        let key = |class: &u32| (classes.weights[*class as usize], heights[*class as usize]);
        order.sort_by_key(key);
        let mut pairs = Pairs { met: vec![0; FAR as usize], apart: vec![0; MAX_LAYERS + 2] };
        let mut lanes = vec![[FAR; LANES]; self.count as usize];
        for block in order.chunk_by(|one, other| key(one) == key(other)).flat_map(|equal| equal.chunks(LANES))
        {
            self.search(block, &mut lanes, down);
            let (weight, height) = key(&block[0]);
            for (class, children) in (0..).zip(self.classes.iter()) {
                let own = nearest([FAR; LANES], children, &lanes);
                let (own_weight, own_height) = key(&class);
                let far = count(&own, FAR);
                let apart = far - (LANES - block.len()) as u64;
                pairs.apart[height.min(own_height)] += apart * weight * own_weight;
                let mut met = LANES as u64 - far;
                for (value, sum) in (0..FAR).zip(&mut pairs.met).skip(1) {
                    if met == 0 {
                        break;
                    }
                    let found = count(&own, value);
                    met -= found;
                    *sum += found * weight * own_weight;
                }
            }
        }
        // Each pair is in two blocks, and each task is beside itself: over a child, unless it has none.
        for (class, weight) in (0..).zip(&classes.weights) {
            let is_exit = self.classes.get(class).is_empty();
            *(if is_exit { &mut pairs.apart[0] } else { &mut pairs.met[1 + down as usize] }) -= weight;
        }
        pairs.met.iter_mut().chain(&mut pairs.apart).for_each(|count| *count /= 2);
        pairs
    }

    /// Returns the length of the longest path from each class.
    fn heights(&self) -> Vec<usize> {
        let mut below = vec![0; self.count as usize];
        let height = |children: &[u32], below: &[usize]| {
            children.iter().map(|child| below[*child as usize] + 1).max().unwrap_or(0)
        };
        for state in (0..self.children.len()).rev() {
            below[state] = height(self.children.get(state as u32), &below);
        }
        self.classes.iter().map(|children| height(children, &below)).collect()
    }

    /// Writes the least distance of each state to each class of a block, by way of a common successor.
    fn search(&self, block: &[u32], lanes: &mut [Lanes], down: u8) {
        lanes.fill([FAR; LANES]);
        for (lane, class) in block.iter().enumerate() {
            for child in self.classes.get(*class) {
                lanes[*child as usize][lane] = down;
            }
        }
        for (state, children) in self.children.iter().enumerate() {
            let own = lanes[state].map(|distance| distance.saturating_add(down));
            for child in children {
                let child = &mut lanes[*child as usize];
                child.iter_mut().zip(&own).for_each(|(child, own)| *child = (*child).min(*own));
            }
        }
        for state in (0..self.children.len()).rev() {
            lanes[state] = nearest(lanes[state], self.children.get(state as u32), lanes);
        }
    }
}

/// Returns the lesser of own distances and those of the way over a child, for each class.
fn nearest(mut own: Lanes, children: &[u32], lanes: &[Lanes]) -> Lanes {
    for child in children {
        let child = &lanes[*child as usize];
        own.iter_mut().zip(child).for_each(|(own, child)| *own = (*own).min(child.saturating_add(1)));
    }
    own
}

fn count(lanes: &Lanes, value: u8) -> u64 {
    u64::from(lanes.iter().map(|lane| u8::from(*lane == value)).sum::<u8>())
}
