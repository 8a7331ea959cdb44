//! Readers, writers and the generator of workflows.

#![expect(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod generated;
mod round_trip;
#[path = "../../../../tests/support/data.rs"]
mod test_data;
mod traces;

use std::path::PathBuf;

use pleach_clustering::{Format, ReadOptions, Workflow, read_bytes, write};

/// Returns the folder of workflows of the test data. `None`, with a line that names the test, if it is missing.
fn data(test: &str) -> Option<PathBuf> {
    Some(test_data::data(test)?.join("workflows"))
}

/// Negative and missing numbers are 0.
const ASSUME_ZERO: ReadOptions = ReadOptions { assume_zero: true, max_bytes: 1 << 30 };

/// Returns the content of a file of this format.
fn written(workflow: &Workflow, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(workflow, format, &mut bytes).unwrap();
    bytes
}

/// Returns the workflow that a reader makes from the content.
fn read(bytes: &[u8]) -> Workflow {
    read_bytes("test", bytes, ReadOptions::default()).unwrap()
}

/// A task by names: id, kind, run time, inputs, outputs and parents. Files have their size.
type Row = (String, String, f64, Vec<(String, u64)>, Vec<(String, u64)>, Vec<String>);

/// Returns the tasks by names: equal for equal workflows, in any order of files.
fn rows(workflow: &Workflow) -> Vec<Row> {
    let files = |list: &[u32]| {
        let file = |file: &u32| &workflow.files()[*file as usize];
        let mut files: Vec<_> = list.iter().map(file).map(|file| (file.name.clone(), file.bytes)).collect();
        files.sort();
        files
    };
    let row = |(number, task): (u32, &pleach_clustering::Task)| {
        let parents = workflow.parents(number).iter();
        let parents = parents.map(|parent| workflow.tasks()[*parent as usize].id.clone()).collect();
        (task.id.clone(), task.kind.clone(), task.seconds, files(&task.reads), files(&task.writes), parents)
    };
    (0..).zip(workflow.tasks()).map(row).collect()
}
