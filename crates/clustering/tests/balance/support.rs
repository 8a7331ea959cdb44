//! Workflows of tests.

use crate::data::data;
use pleach_clustering::{ReadOptions, Task, Workflow, read};
use std::path::{Path, PathBuf};

/// Returns a workflow of tasks `t0`, `t1`, … with these run times and no files.
pub(crate) fn workflow(seconds: &[f64], edges: &[(u32, u32)]) -> Workflow {
    let task = |(number, seconds): (usize, &f64)| Task {
        id: format!("t{number}"),
        kind: "run".into(),
        seconds: *seconds,
        reads: vec![],
        writes: vec![],
    };
    let tasks = seconds.iter().enumerate().map(task).collect();
    Workflow::new("test", tasks, vec![], edges).expect("a workflow")
}

/// Returns the folder of traces. `None`, with a line that names the test, if it is missing.
pub(crate) fn traces(test: &str) -> Option<PathBuf> {
    Some(data(test)?.join("workflows"))
}

/// Reads a trace. Negative sizes and run times of Epigenomics_997 count as 0.
pub(crate) fn read_trace(path: &Path) -> Workflow {
    read(path, ReadOptions { assume_zero: true, ..ReadOptions::default() }).expect("a trace")
}

/// Numbers of a seed (Knuth's linear congruential generator), to build graphs.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(end)) as u32
    }
}

/// Returns `levels` levels of `width` tasks, each with `children` random children in the next level and, for one task in
/// `long`, one child two or three levels below.
pub(crate) fn layered(levels: u32, width: u32, children: u32, long: Option<u32>) -> Workflow {
    let mut numbers = Numbers(7);
    let mut edges = Vec::new();
    for task in 0..(levels - 1) * width {
        let level = task / width;
        edges.extend((0..children).map(|_| (task, (level + 1) * width + numbers.below(width))));
        if long.is_some_and(|long| numbers.below(long) == 0) {
            let target = level + 2 + numbers.below(2);
            if target < levels {
                edges.push((task, target * width + numbers.below(width)));
            }
        }
    }
    let seconds: Vec<f64> = (0..levels * width).map(|_| f64::from(numbers.below(1000)) / 10.0).collect();
    workflow(&seconds, &edges)
}
