//! Growth of planning: seconds, peak memory and growth exponent of building and solving a reuse tree, for
//! 1,000 to 1,000,000 instances of realistic designs and of adversarial shapes, and of the steps that may
//! follow a plan.
//!
//! `cargo bench -p pleach-reuse --bench scaling -- [MAX_INSTANCES] [DESIGN]`

#![expect(clippy::print_stdout, reason = "it prints a table")]

#[expect(dead_code, reason = "designs are drawn by the numbers of parameters here, not by their names")]
#[path = "../tests/support/application.rs"]
mod application;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use application::task_graph;
use pleach_reuse::{
    Dataflow, Interner, LeftoverRule, Member, MergeProblem, PreviousPlan, ReuseSummary, ReuseTree,
    SharingSchedule, Strategy, TaskCosts, TransferCost, TrtmaOptions, adjust_ranges, cut_ranges, replan,
    tree_order,
};

/// Returns the processor seconds of this thread on Linux, and wall-clock seconds on other systems. Processor
/// time depends less on other users of the machine.
fn processor_seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Allocator that counts bytes, so that peaks do not depend on the operating system.
struct Meter;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static METER: Meter = Meter;

// SAFETY: every call passes its arguments unchanged to the system allocator.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller guarantees the requirements of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller guarantees the requirements of `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Multiplicative congruential generator. The quality of its randomness does not matter here.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Number of values of each parameter: B G R T1 T2, MorphRecon, G1 FillHoles, minSize maxSize, G2, minSizePl
/// Watershed, minSizeSeg maxSizeSeg.
const VALUES: [u64; 15] = [4, 4, 4, 11, 11, 2, 16, 2, 20, 13, 20, 16, 2, 20, 13];
/// Parameters of each of the seven tasks.
const TASKS: [&[usize]; 7] = [&[0, 1, 2, 3, 4], &[5], &[6, 7], &[8, 9], &[10], &[11, 12], &[13, 14, 7]];
/// The eight parameters of the authors' second study.
const EIGHT: [usize; 8] = [4, 6, 10, 8, 9, 11, 13, 5];

fn problem_of(sets: impl Iterator<Item = [u64; 15]>) -> MergeProblem {
    let mut interners: [Interner<Vec<u64>>; TASKS.len()] = Default::default();
    let mut keys = Vec::new();
    for set in sets {
        for (task, interner) in TASKS.iter().zip(&mut interners) {
            keys.push(interner.intern(task.iter().map(|parameter| set[*parameter]).collect()));
        }
    }
    of_keys(TASKS.len(), keys, TaskCosts::Count)
}

fn of_keys(levels: usize, keys: Vec<u32>, costs: TaskCosts) -> MergeProblem {
    MergeProblem::new(levels, vec![0; keys.len() / levels], keys, costs).expect("a valid problem")
}

fn draw(random: &mut Random) -> [u64; 15] {
    VALUES.map(|values| random.below(values))
}

fn morris(instances: usize) -> MergeProblem {
    let mut random = Random(500);
    let mut point = [0; 15];
    problem_of((0..instances).map(|instance| {
        match instance % 16 {
            0 => point = draw(&mut random),
            step => point[step - 1] = (point[step - 1] + VALUES[step - 1] / 2) % VALUES[step - 1],
        }
        point
    }))
}

/// Rows of two matrices, and of the first with each of eight columns of the second.
fn saltelli(instances: usize) -> MergeProblem {
    let mut random = Random(500);
    let (mut a, mut b) = ([0; 15], [0; 15]);
    problem_of((0..instances).map(|instance| {
        if instance % 10 == 0 {
            (a, b) = (draw(&mut random), draw(&mut random));
            (0..15).filter(|parameter| !EIGHT.contains(parameter)).for_each(|p| (a[p], b[p]) = (0, 0));
        }
        match instance % 10 {
            0 => a,
            9 => b,
            column => {
                let mut mixed = a;
                mixed[EIGHT[column - 1]] = b[EIGHT[column - 1]];
                mixed
            }
        }
    }))
}

/// All instances share all tasks but the last.
fn star(instances: usize) -> MergeProblem {
    let keys = (0..instances as u32).flat_map(|instance| [0, 0, 0, 0, 0, 0, instance]).collect();
    of_keys(7, keys, TaskCosts::Count)
}

/// One star beside 23 separate instances: costs are uneven until almost all of the star has moved, leaf by
/// leaf.
fn lopsided(instances: usize) -> MergeProblem {
    let keys = (0..instances as u32).flat_map(|instance| {
        let first = (instance + 23).saturating_sub(instances as u32 - 1);
        [first, first, first, first, first, instance, instance]
    });
    of_keys(7, keys.collect(), TaskCosts::Count)
}

/// The same shape with a different cost for each task.
fn lopsided_costs(instances: usize) -> MergeProblem {
    let problem = lopsided(instances);
    let mut random = Random(500);
    let keys: Vec<u32> = problem.members().flat_map(|member| problem.keys(member).to_vec()).collect();
    let costs = keys.iter().map(|_| 1.0 + random.below(1 << 30) as f64 / f64::from(1 << 30)).collect();
    of_keys(7, keys, TaskCosts::PerTask(costs))
}

fn equal(instances: usize) -> MergeProblem {
    of_keys(7, vec![0; 7 * instances], TaskCosts::Count)
}

fn one_task(instances: usize) -> MergeProblem {
    of_keys(1, (0..instances as u32).collect(), TaskCosts::Count)
}

fn forty_tasks(instances: usize) -> MergeProblem {
    let mut random = Random(500);
    of_keys(40, (0..40 * instances).map(|_| random.below(4) as u32).collect(), TaskCosts::Count)
}

/// 100 instances per tile.
fn many_tiles(instances: usize) -> MergeProblem {
    let problem = morris(instances);
    let keys = problem.members().flat_map(|member| problem.keys(member).to_vec()).collect();
    let inputs = (0..instances as u32).map(|instance| instance / 100).collect();
    MergeProblem::new(problem.levels(), inputs, keys, TaskCosts::Count).expect("a valid problem")
}

type Design = (&'static str, fn(usize) -> MergeProblem);

const DESIGNS: [Design; 9] = [
    ("Morris", morris),
    ("Saltelli", saltelli),
    ("many tiles", many_tiles),
    ("one prefix", star),
    ("equal instances", equal),
    ("lopsided", lopsided),
    ("lopsided, real costs", lopsided_costs),
    ("one task", one_task),
    ("forty tasks", forty_tasks),
];

fn trtma(max_buckets: usize) -> Strategy {
    let max_buckets = NonZeroUsize::new(max_buckets).expect("not 0");
    Strategy::Trtma { max_buckets, options: TrtmaOptions::default() }
}

/// Returns the exponent of growth: the slope of a straight line through the logarithms. `None` for fewer than
/// three points.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let along = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    let width = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum::<f64>();
    (points.len() > 2).then_some(along / width)
}

/// Measures the steps after a plan of 768 buckets: the dataflow graph, the transfer plan, and replans with
/// fewer and more buckets.
fn afterwards(sizes: &[usize]) {
    println!(
        "\n| instances | dataflow graph, s | best order, s | 768 ranges, s | shared results, s | 3 buckets fewer, s | moved | 3 more, s | moved |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let max_buckets = NonZeroUsize::new(768).expect("not 0");
    let graph = task_graph();
    for instances in sizes {
        let problem = morris(*instances);
        let tree = ReuseTree::build(&problem);
        let buckets = trtma(768).solve(&problem, &tree).expect("solved");
        let start = processor_seconds();
        let dataflow = Dataflow::build(&problem, &graph);
        let built = processor_seconds();
        let order = tree_order(&problem, &graph);
        let ordered = processor_seconds();
        std::hint::black_box(cut_ranges(&problem, &dataflow, &order, max_buckets));
        let cut = processor_seconds();
        let link = TransferCost { bytes_per_second: 1e9, latency_seconds: 1e-3 };
        let mut schedule = SharingSchedule::new(&dataflow, vec![1 << 24; 7], link);
        for (number, members) in (0..).zip(buckets.iter()) {
            schedule.begin(number % 256, members, 0.0);
        }
        std::hint::black_box(schedule.forecast());
        let mut cells = vec![built - start, ordered - built, cut - ordered, processor_seconds() - cut];
        let previous = PreviousPlan { buckets: &buckets, max_buckets, has_other_costs: false };
        let mut moved = Vec::new();
        for limit in [765, 771] {
            let start = processor_seconds();
            let limit = NonZeroUsize::new(limit).expect("not 0");
            let found = replan(&problem, &tree, previous, |_| false, limit).expect("a plan of this problem");
            cells.push(processor_seconds() - start);
            moved.push(found.moved.len());
        }
        let [dataflow, order, ranges, sharing, fewer, more] = cells[..] else { continue };
        println!(
            "| {instances} | {dataflow:.3} | {order:.3} | {ranges:.3} | {sharing:.3} | {fewer:.3} | {} | {more:.3} | {} |",
            moved[0], moved[1]
        );
    }
}

/// Measures replans of 768 ranges: all cut again, and adjusted to fewer and more. Also counts instances in other ranges.
fn adjusted(sizes: &[usize]) {
    println!(
        "\n| instances | 768 ranges cut again, s | 3 fewer, s | moved | 3 more, s | moved | twice as many, s | moved |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let graph = task_graph();
    let number = |ranges: usize| NonZeroUsize::new(ranges).expect("not 0");
    for instances in sizes {
        let problem = morris(*instances);
        let (dataflow, order) = (Dataflow::build(&problem, &graph), tree_order(&problem, &graph));
        let start = processor_seconds();
        let present = cut_ranges(&problem, &dataflow, &order, number(768));
        print!("| {instances} | {:.3} |", processor_seconds() - start);
        let before: HashSet<&[Member]> = present.iter().collect();
        for ranges in [765, 771, 1536] {
            let start = processor_seconds();
            let adjusted = adjust_ranges(&problem, &dataflow, &present, number(ranges));
            let seconds = processor_seconds() - start;
            let moved = adjusted.iter().filter(|members| !before.contains(members)).map(<[Member]>::len);
            print!(" {seconds:.3} | {} |", moved.sum::<usize>());
        }
        println!();
    }
}

fn main() {
    let asked = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let most: usize = asked.unwrap_or(1_000_000);
    let sizes: Vec<usize> = [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|n| *n <= most).collect();
    let only = |design: &str| std::env::args().any(|argument| argument == design);
    let all = !only("afterwards") && !DESIGNS.iter().any(|(design, _)| only(design));
    let max_bucket_size = NonZeroUsize::new(8).expect("8 is not 0");
    let strategies = [
        ("RTMA, 8", Strategy::Rtma { max_bucket_size, ending: LeftoverRule::default() }),
        ("TRTMA, 24", trtma(24)),
        ("TRTMA, 768", trtma(768)),
        ("TRTMA, 24576", trtma(24_576)),
        ("ranges, 768", Strategy::Ranges { max_buckets: NonZeroUsize::new(768).expect("768 is not 0") }),
        ("HRB, 768", Strategy::Hrb { max_buckets: NonZeroUsize::new(768).expect("768 is not 0") }),
    ];
    println!(
        "| design | strategy | instances | seconds | of them the tree | peak MB | reuse | dearest | exponent |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (design, make) in DESIGNS.into_iter().filter(|(design, _)| all || only(design)) {
        for (name, strategy) in strategies {
            let mut points = Vec::new();
            for instances in sizes.iter().copied() {
                let problem = make(instances);
                let base = LIVE.load(Ordering::Relaxed);
                PEAK.store(base, Ordering::Relaxed);
                // Small problems are solved several times, because they take less than a tick of the clock.
                let times = (300_000 / instances).max(1);
                let start = processor_seconds();
                for _ in 1..times {
                    strategy.solve(&problem, &ReuseTree::build(&problem)).expect("solved");
                }
                let tree = ReuseTree::build(&problem);
                let buckets = strategy.solve(&problem, &tree).expect("solved");
                let seconds = (processor_seconds() - start) / times as f64;
                let peak = PEAK.load(Ordering::Relaxed) - base;
                let start = processor_seconds();
                for _ in 0..times {
                    std::hint::black_box(ReuseTree::build(&problem));
                }
                let tree_seconds = (processor_seconds() - start) / times as f64;
                let figures = ReuseSummary::new(&problem, &tree, &buckets, |_| true);
                points.push(((instances as f64).ln(), seconds.ln()));
                let exponent = slope(&points).map_or(String::new(), |exponent| format!("{exponent:.2}"));
                println!(
                    "| {design} | {name} | {instances} | {seconds:.4} | {tree_seconds:.4} | {:.1} | {:.2} % | {:.0} | {exponent} |",
                    peak as f64 / 1e6,
                    100.0 * figures.reuse_fraction,
                    figures.max_bucket_cost,
                );
            }
        }
    }
    if all || only("afterwards") {
        afterwards(&sizes);
        adjusted(&sizes);
    }
}
