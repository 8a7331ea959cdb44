//! Reuse by depth, fan-out and placement of parameters, on generated workflows: the share of tasks that equal an earlier one.
//!
//! A workflow has `depth` tasks. Task `i` reads task `(i - 1) / fan-out`, so a fan-out of 1 is a chain. Eight parameters of
//! eight levels enter at the first task, at the middle one, at the last one, or spread over all tasks. Samples are MOAT with 10
//! trajectories (90 sets) and Saltelli's design with 64 base samples (640 sets). `tree` shares task prefixes in the declared
//! order, and `dataflow` shares equal tasks. One Markdown table has a row for each combination.
//!
//! `cargo bench -p pleach-reuse --bench placement`

#![expect(clippy::print_stdout, reason = "it prints a table")]

use pleach_reuse::{Dataflow, Interner, MergeProblem, TaskCosts, TaskGraph, TaskReads};

const PARAMETERS: usize = 8;
const LEVELS: u64 = 8;

type Set = [u64; PARAMETERS];

/// Multiplicative congruential generator. The quality of its randomness does not matter here.
struct Random(u64);

impl Random {
    fn set(&mut self) -> Set {
        std::array::from_fn(|_| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % LEVELS
        })
    }

    /// Returns the parameters in a random order.
    fn order(&mut self) -> Vec<usize> {
        let keys = self.set().map(|key| key * LEVELS);
        let mut order: Vec<usize> = (0..PARAMETERS).collect();
        order.sort_by_key(|parameter| keys[*parameter] + *parameter as u64);
        order
    }
}

/// Trajectories that move one parameter after the other, by half of its levels.
fn moat() -> Vec<Set> {
    let mut random = Random(500);
    let mut sets = Vec::new();
    for _ in 0..10 {
        let mut point = random.set();
        sets.push(point);
        for parameter in random.order() {
            point[parameter] = (point[parameter] + LEVELS / 2) % LEVELS;
            sets.push(point);
        }
    }
    sets
}

/// Rows of two matrices, and of the first with each column of the second.
fn saltelli() -> Vec<Set> {
    let mut random = Random(500);
    let mut sets = Vec::new();
    for _ in 0..64 {
        let (a, b) = (random.set(), random.set());
        sets.extend([a, b]);
        sets.extend((0..PARAMETERS).map(|parameter| {
            let mut mixed = a;
            mixed[parameter] = b[parameter];
            mixed
        }));
    }
    sets
}

#[derive(Clone, Copy)]
enum Placement {
    First,
    Middle,
    Last,
    Spread,
}

impl Placement {
    const ALL: [(&'static str, Self); 4] =
        [("first", Self::First), ("middle", Self::Middle), ("last", Self::Last), ("spread", Self::Spread)];

    /// Returns the task that a parameter enters at.
    fn task(self, parameter: usize, depth: usize) -> usize {
        match self {
            Self::First => 0,
            Self::Middle => depth / 2,
            Self::Last => depth - 1,
            Self::Spread => parameter * depth / PARAMETERS,
        }
    }
}

fn problem(sets: &[Set], depth: usize, placement: Placement) -> MergeProblem {
    let mut interners: Vec<Interner<Vec<u64>>> = (0..depth).map(|_| Interner::default()).collect();
    let mut keys = Vec::new();
    for set in sets {
        for (task, interner) in interners.iter_mut().enumerate() {
            let own = (0..PARAMETERS).filter(|parameter| placement.task(*parameter, depth) == task);
            keys.push(interner.intern(own.map(|parameter| set[parameter]).collect()));
        }
    }
    MergeProblem::new(depth, vec![0; sets.len()], keys, TaskCosts::Count).expect("a valid problem")
}

/// Returns the share of tasks that equal an earlier one, in percent.
fn reuse_percent(sets: &[Set], depth: usize, placement: Placement, fan_out: usize) -> f64 {
    let reads = |task: usize| TaskReads {
        tasks: if task == 0 { Vec::new() } else { vec![(task - 1) / fan_out] },
        inputs: task == 0,
    };
    let graph = TaskGraph::new((0..depth).map(reads).collect()).expect("tasks in order");
    let distinct = Dataflow::build(&problem(sets, depth, placement), &graph).len();
    100.0 * (1.0 - distinct as f64 / (sets.len() * depth) as f64)
}

fn main() {
    println!("| depth | fan-out | parameters | MOAT, tree / dataflow | VBD, tree / dataflow |");
    println!("| ---: | ---: | --- | ---: | ---: |");
    let samples = [moat(), saltelli()];
    for depth in [4, 8, 16] {
        for fan_out in [1, 2, 4] {
            for (name, placement) in Placement::ALL {
                let cells: Vec<String> = samples
                    .iter()
                    .map(|sets| [1, fan_out].map(|of| reuse_percent(sets, depth, placement, of)))
                    .map(|[tree, dataflow]| format!("{tree:.1} / {dataflow:.1} %"))
                    .collect();
                println!("| {depth} | {fan_out} | {name} | {} |", cells.join(" | "));
            }
        }
    }
}
