//! Times all methods with each vertical mode on a generated workflow, `large FAMILY TASKS`, or the metrics, `large FAMILY TASKS
//! metrics`. The family `random` has levels of WIDTH tasks, each with CHILDREN random children in the next level and, for one task
//! in LONG, one child two levels below: `large random LEVELS WIDTH CHILDREN LONG`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example that prints its measurements")]

use std::time::Instant;

use pleach_clustering::simulate::{Platform, simulate};
use pleach_clustering::tune::{TunedMethod, tune};
use pleach_clustering::{
    Family, Method, Options, Reading, Task, Vertical, Workflow, cluster, generate, metrics,
};

fn random(levels: u32, width: u32, children: u32, long: u32) -> Workflow {
    // Knuth's linear congruential generator.
    let mut state: u64 = 7;
    let mut below = |end: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(end)) as u32
    };
    let mut edges = Vec::new();
    for task in 0..(levels - 1) * width {
        let level = task / width;
        edges.extend((0..children).map(|_| (task, (level + 1) * width + below(width))));
        if long > 0 && level + 2 < levels && below(long) == 0 {
            edges.push((task, (level + 2) * width + below(width)));
        }
    }
    let task = |number: u32| Task {
        id: number.to_string(),
        kind: String::new(),
        seconds: 1.0,
        reads: vec![],
        writes: vec![],
    };
    Workflow::new("random", (0..levels * width).map(task).collect(), vec![], &edges).unwrap()
}

fn measure_metrics(workflow: &Workflow) {
    for reading in [Reading::Definition, Reading::Table] {
        let start = Instant::now();
        let found = metrics(workflow, reading);
        println!(
            "metrics {reading:?}: {:.3} s, HDV {}",
            start.elapsed().as_secs_f64(),
            found[0].variance.hdv
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "random" {
        let numbers: Vec<u32> = args[2..].iter().map(|number| number.parse().unwrap()).collect();
        return measure_metrics(&random(numbers[0], numbers[1], numbers[2], numbers[3]));
    }
    let family: Family = args[1].parse().unwrap();
    let workflow = generate(family, args[2].parse().unwrap(), 1).unwrap();
    let platform = Platform::default();
    println!("{family:?}: {} tasks, {} edges", workflow.tasks().len(), workflow.edges().count());
    if args.len() > 3 {
        return measure_metrics(&workflow);
    }
    let all = Instant::now();
    for vertical in [Vertical::None, Vertical::Prior, Vertical::Posterior] {
        let options = Options { vertical, ..Options::default() };
        for method in [Method::None, Method::Hc, Method::Hrb, Method::Hifb, Method::Hdb] {
            let start = Instant::now();
            let clustering = cluster(&workflow, &Options { method, ..options });
            let makespan = simulate(&workflow, &clustering, &platform, 0).makespan;
            println!("{vertical:?} {method:?}: {:.3} s, {makespan}", start.elapsed().as_secs_f64());
        }
        for method in [TunedMethod::Dfjs, TunedMethod::Afjs] {
            let start = Instant::now();
            let tuned = tune(&workflow, method, &options, &platform, 0);
            println!(
                "{vertical:?} {method:?}: {:.3} s, {} trials, {} clusterings, {:?}",
                start.elapsed().as_secs_f64(),
                tuned.simulations(),
                tuned.clusterings,
                tuned.best
            );
        }
    }
    println!("all: {:.3} s", all.elapsed().as_secs_f64());
}
