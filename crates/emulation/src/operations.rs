//! Operations of emulated tasks. Each one waits, and passes a token on: tasks of a job run in the order of their tokens.
//!
//! Results depend on the arguments only. The time does not: a worker that has a file need not fetch it.

use crate::present_files::PRESENT;
use pleach_regions::{DataRegion, DenseArray, ElementType, Table, TypedValues};
use pleach_workflow::{Accepts, Argument, DeclaredOperation, Operation, OperationError, Port, Value};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of the operation that begins a job: it runs once for each executed job.
pub const JOB_OPERATION: &str = "emulation.queue";

/// Version of all operations.
pub(crate) const VERSION: u32 = 1;

/// Maximum of numbers that identify executions, jobs, tasks and files, 2^53: JSON readers are exact up to there.
const MAX_ID: i64 = 1 << 53;
/// Maximum of waits in seconds: a day.
pub(crate) const MAX_SECONDS: f64 = 86_400.0;
/// Maximum size of a file in bytes, 1 GiB: it is a region in memory.
pub(crate) const MAX_FILE_BYTES: i64 = 1 << 30;

pub(crate) const IDS: Accepts = Accepts::Integers { low: 0, high: MAX_ID };
const EXECUTION: Argument = Argument { name: "execution", accepts: IDS };
const SECONDS: Argument =
    Argument { name: "seconds", accepts: Accepts::Reals { low: 0.0, high: MAX_SECONDS } };
const FILE: Argument = Argument { name: "file", accepts: IDS };
const BYTES: Argument =
    Argument { name: "bytes", accepts: Accepts::Integers { low: 0, high: MAX_FILE_BYTES } };

/// Element type of tokens.
pub(crate) const TOKEN: ElementType = ElementType::Scalar;
/// Element type of files.
pub(crate) const CONTENT: ElementType = ElementType::ArrayU8;

pub(crate) const TOKEN_PORT: Port = Port { name: "token", element: TOKEN };
const CONTENT_PORT: Port = Port { name: "content", element: CONTENT };

/// Begins a job: waits for the queue delay.
pub(crate) const QUEUE: DeclaredOperation = DeclaredOperation {
    name: JOB_OPERATION,
    version: VERSION,
    arguments: &[EXECUTION, Argument { name: "job", accepts: IDS }, SECONDS],
    inputs: &[],
    outputs: &[TOKEN_PORT],
    cost_seconds: |_| 1e-3,
    memory_bytes: |pixels| TOKEN.bytes(pixels),
    run: |_, arguments| {
        wait(arguments[2].as_f64());
        Ok(token())
    },
};

/// Waits for the clustering delay of a job.
pub(crate) const CLUSTERING: DeclaredOperation =
    DeclaredOperation { name: "emulation.clustering", inputs: &[TOKEN_PORT], ..QUEUE };

/// Waits for the run time of a task.
pub(crate) const RUN: DeclaredOperation = DeclaredOperation {
    name: "emulation.run",
    arguments: &[EXECUTION, Argument { name: "task", accepts: IDS }, SECONDS],
    ..CLUSTERING
};

/// Reads the token of another job, so that a job without its files depends on it.
pub(crate) const AFTER: DeclaredOperation = DeclaredOperation {
    name: "emulation.after",
    arguments: &[],
    inputs: &[TOKEN_PORT, Port { name: "other", element: TOKEN }],
    run: |_, _| Ok(token()),
    ..QUEUE
};

/// Fetches the file of another job: waits for its transfer if this process does not have it, then copies its bytes.
pub(crate) const FETCH: DeclaredOperation = DeclaredOperation {
    name: "emulation.fetch",
    arguments: &[EXECUTION, FILE, SECONDS],
    inputs: &[TOKEN_PORT, CONTENT_PORT],
    memory_bytes: |pixels| TOKEN.bytes(pixels) + CONTENT.bytes(pixels),
    run: |inputs, arguments| {
        let start = Instant::now();
        if let Some(seconds) = transfer_seconds(arguments) {
            let content = inputs[1].array(CONTENT)?.samples::<u8>().map_err(library)?;
            black_box(content.to_vec());
            // The copy is part of the transfer.
            wait_since(start, seconds);
        }
        Ok(token())
    },
    ..QUEUE
};

/// Fetches a file that no job writes.
pub(crate) const READ: DeclaredOperation = DeclaredOperation {
    name: "emulation.read",
    arguments: &[EXECUTION, FILE, SECONDS, BYTES],
    inputs: &[TOKEN_PORT],
    memory_bytes: |pixels| TOKEN.bytes(pixels) + CONTENT.bytes(pixels),
    run: |_, arguments| {
        let start = Instant::now();
        if let Some(seconds) = transfer_seconds(arguments) {
            black_box(vec![0_u8; length(arguments[3])]);
            wait_since(start, seconds);
        }
        Ok(token())
    },
    ..QUEUE
};

/// Writes a file that other jobs read. Its bytes depend on the file, so that files of equal size differ.
pub(crate) const WRITE: DeclaredOperation = DeclaredOperation {
    name: "emulation.write",
    arguments: &[EXECUTION, FILE, BYTES],
    inputs: &[TOKEN_PORT],
    outputs: &[TOKEN_PORT, CONTENT_PORT],
    memory_bytes: |pixels| TOKEN.bytes(pixels) + CONTENT.bytes(pixels),
    run: |_, arguments| {
        is_missing(arguments);
        let mut content = vec![0_u8; length(arguments[2])];
        let name = integer(arguments[1]).to_le_bytes();
        content.iter_mut().zip(name).for_each(|(byte, of_name)| *byte = of_name);
        let shape = [content.len() as u32];
        let content = DenseArray::new(&shape, 1, TypedValues::U8(content)).map_err(library)?;
        Ok(vec![DataRegion::Scalar(0.0), DataRegion::Array(content)])
    },
    ..QUEUE
};

/// Ends an execution: returns its number of jobs as a table.
pub(crate) const END: DeclaredOperation = DeclaredOperation {
    name: "emulation.end",
    arguments: &[EXECUTION, Argument { name: "jobs", accepts: IDS }],
    inputs: &[TOKEN_PORT],
    outputs: &[Port { name: "table", element: ElementType::Table }],
    memory_bytes: |pixels| ElementType::Table.bytes(pixels),
    run: |_, arguments| Ok(vec![DataRegion::Table(Table::new([("jobs", arguments[1].as_f64())]))]),
    ..QUEUE
};

/// Returns all operations of emulated tasks.
pub(crate) fn task_operations() -> impl Iterator<Item = Arc<dyn Operation>> {
    [QUEUE, CLUSTERING, RUN, AFTER, FETCH, READ, WRITE, END]
        .into_iter()
        .map(|operation| Arc::new(operation) as Arc<dyn Operation>)
}

pub(crate) fn token() -> Vec<DataRegion> {
    vec![DataRegion::Scalar(0.0)]
}

/// Adds the file of the first two arguments to those of this process. Returns whether it was missing.
fn is_missing(arguments: &[Value]) -> bool {
    PRESENT.insert(integer(arguments[0]), integer(arguments[1]))
}

/// Returns the time to fetch the file of the first two arguments. `None` if this process has it.
fn transfer_seconds(arguments: &[Value]) -> Option<f64> {
    is_missing(arguments).then(|| arguments[2].as_f64())
}

/// Arguments have been checked: this one is an integer.
fn integer(value: Value) -> i64 {
    match value {
        Value::Integer(integer) => integer,
        Value::Real(real) => real.get() as i64,
    }
}

/// Returns the number of bytes of a region: at least 1, since no region is empty.
fn length(bytes: Value) -> usize {
    integer(bytes).clamp(1, MAX_FILE_BYTES) as usize
}

pub(crate) fn wait(seconds: f64) {
    wait_since(Instant::now(), seconds);
}

fn wait_since(start: Instant, seconds: f64) {
    let until = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    std::thread::sleep(until.saturating_sub(start.elapsed()));
}

fn library(cause: impl std::error::Error + Send + Sync + 'static) -> OperationError {
    OperationError::Library { library: "regions", cause: Box::new(cause) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::Real;

    fn seconds(seconds: f64) -> Value {
        Value::Real(Real::try_from(seconds).unwrap())
    }

    #[test]
    fn a_file_is_fetched_once_and_written_files_are_present() {
        let (execution, token) = (Value::Integer(1 << 40), DataRegion::Scalar(0.0));
        let transfer = |file: i64| transfer_seconds(&[execution, Value::Integer(file), seconds(9.0)]);
        let written = WRITE.run(&[&token], &[execution, Value::Integer(300), Value::Integer(10)]).unwrap();
        assert_eq!(written[1].array(CONTENT).unwrap().samples::<u8>().unwrap()[..3], [44, 1, 0]);
        assert_eq!(transfer(300), None, "a written file is present");
        FETCH.run(&[&token, &written[1]], &[execution, Value::Integer(301), seconds(0.0)]).unwrap();
        assert_eq!(transfer(301), None, "a fetched file is present");
        READ.run(&[&token], &[execution, Value::Integer(302), seconds(0.0), Value::Integer(5)]).unwrap();
        assert_eq!([transfer(302), transfer(303), transfer(303)], [None, Some(9.0), None]);
        assert!(FETCH.run(&[&token, &token], &[execution, Value::Integer(304), seconds(0.0)]).is_err());
    }

    #[test]
    fn an_empty_file_has_a_byte_and_waits_are_limited() {
        let token = DataRegion::Scalar(0.0);
        let empty = WRITE.run(&[&token], &[Value::Integer(2), Value::Integer(0), Value::Integer(0)]).unwrap();
        assert_eq!(empty[1].array(CONTENT).unwrap().extents(), [1]);
        let id = Value::Integer(0);
        assert!(RUN.run(&[&token], &[id, id, seconds(86_401.0)]).is_err());
        assert!(RUN.run(&[&token], &[id, id, seconds(-1.0)]).is_err());
        let end = END.run(&[&token], &[id, Value::Integer(7)]).unwrap();
        assert_eq!(end, [DataRegion::Table(Table::new([("jobs", 7.0)]))]);
        assert_eq!(task_operations().count(), 8);
    }
}
