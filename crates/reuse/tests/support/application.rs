//! The segmentation of the reference application for the planner: tasks t1 to t7.

use pleach_reuse::{TaskGraph, TaskReads};

/// Parameters that each task consumes.
pub(crate) const TASKS: [&[&str]; 7] = [
    &["B", "G", "R", "T1", "T2"],
    &["MorphRecon"],
    &["G1", "FillHoles"],
    &["minSize", "maxSize"],
    &["G2"],
    &["minSizePl", "Watershed"],
    &["minSizeSeg", "maxSizeSeg", "FillHoles"],
];

/// Returns the inputs of the tasks: other tasks, and the normalized tile. t2 to t4 do not depend on t1.
pub(crate) fn task_graph() -> TaskGraph {
    let reads: [(&[usize], bool); 7] = [
        (&[], true),
        (&[], true),
        (&[1], false),
        (&[2], false),
        (&[0, 2, 3], false),
        (&[4], true),
        (&[5], false),
    ];
    let reads = reads.map(|(tasks, inputs)| TaskReads { tasks: tasks.to_vec(), inputs });
    TaskGraph::new(reads.to_vec()).expect("tasks in order")
}
