//! An operation in Python.

use super::batches::Batches;
use crate::declared::{Declared, Runs, pixels};
use crate::failure::Failure;
use crate::identity::Identity;
use crate::manifest::{Declaration, Determinism, Device};
use crate::memory_file;
use crate::packet::{Answer, Number, Request};
use crate::pool::{Launch, Pool, TaskEnd};
use crate::process::{Limits, Process, is_pipe};
use pleach_regions::DataRegion;
use pleach_workflow::{OperationError, Port, Value};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::{info, warn};

/// Number of the next call.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// A function in Python.
#[derive(Debug)]
pub(crate) struct PythonOperation {
    declared: Declared,
    /// Number within the process.
    index: usize,
    is_seeded: bool,
    on_gpu: bool,
    launch: Arc<dyn Launch>,
    pool: Arc<Pool>,
    /// Tasks that wait, if the function takes several tiles.
    batches: Option<Batches<Task, Result<Outcome, Failure>>>,
}

/// A task, ready to be sent.
#[derive(Debug)]
struct Task {
    arguments: Vec<Value>,
    shapes: Vec<Vec<u64>>,
    files: Vec<Arc<OwnedFd>>,
    pixels: u64,
}

/// Outputs of a task, with the peak bytes of its process above the idle state.
type Outcome = (Vec<DataRegion>, u64);

/// Form and place of an output.
struct Sent {
    shape: Vec<u64>,
    bytes: u64,
    is_reversed: bool,
    file: OwnedFd,
}

impl PythonOperation {
    pub(super) fn new(
        declaration: &Declaration,
        identity: &Identity,
        index: usize,
        launch: &Arc<dyn Launch>,
        pool: &Arc<Pool>,
    ) -> Self {
        Self {
            declared: Declared::new(declaration, identity),
            index,
            is_seeded: declaration.determinism == Determinism::Seeded,
            on_gpu: declaration.device == Device::Gpu,
            launch: Arc::clone(launch),
            pool: Arc::clone(pool),
            batches: declaration.batch.map(Batches::new),
        }
    }

    fn outcome(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Outcome, OperationError> {
        self.declared.check(inputs, arguments)?;
        let unwritten = |error| OperationError::External {
            cause: format!("failed to write a memory file: {error}").into(),
        };
        let task = Task {
            arguments: arguments.to_vec(),
            shapes: inputs.iter().map(|input| input.shape().to_vec()).collect(),
            files: inputs
                .iter()
                .map(|input| self.pool.file(input))
                .collect::<Result<_, _>>()
                .map_err(unwritten)?,
            pixels: pixels(inputs),
        };
        let outcome = match &self.batches {
            None => self.alone(&task),
            Some(batches) => {
                let alike = |first: &Task, second: &Task| first.arguments == second.arguments;
                batches.run(task, alike, |tasks| self.together(tasks))
            }
        };
        outcome.map_err(|failure| OperationError::External { cause: Box::new(failure) })
    }

    /// Runs one task, with the repetitions of the pool.
    fn alone(&self, task: &Task) -> Result<Outcome, Failure> {
        let call = |process: &mut Process, idle_bytes| self.call(process, idle_bytes, &[task]);
        let mut outcomes = self.pool.run(&self.launch, self.on_gpu, call)?;
        outcomes.pop().ok_or_else(|| Failure::Protocol("no outputs".to_owned()))
    }

    /// Runs tasks in one call. If it fails, they run one by one, so that a failure costs one task.
    fn together(&self, tasks: &[&Task]) -> Vec<Result<Outcome, Failure>> {
        if let [task] = tasks {
            return vec![self.alone(task)];
        }
        let call = |process: &mut Process, idle_bytes| self.call(process, idle_bytes, tasks);
        match self.pool.attempt(&self.launch, self.on_gpu, call) {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(failure) => {
                let name = self.declared.plain_name();
                warn!(operation = name, "{name}: {} tiles run one by one: {failure}", tasks.len());
                tasks.iter().map(|task| self.alone(task)).collect()
            }
        }
    }

    fn call(&self, process: &mut Process, idle_bytes: u64, tasks: &[&Task]) -> TaskEnd<Vec<Outcome>> {
        let pixels: Vec<u64> = tasks.iter().map(|task| task.pixels).collect();
        let limits = self.declared.limits(&pixels, idle_bytes);
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        let name = self.declared.plain_name();
        let sent = self.send(process, number, tasks);
        let answer = sent.and_then(|()| process.answer(limits));
        let output = process.take_output();
        if !output.is_empty() {
            info!(operation = name, "output of {name}: {}", output.trim_end());
        }
        match answer {
            Ok((Answer::Done { task, shapes, bytes, reversed, peak_bytes, reusable }, files))
                if task == number =>
            {
                warn_of_thread(name, reusable);
                let result = sent_outputs((shapes, bytes, reversed), files)
                    .and_then(|sent| self.outputs(process, sent, tasks.len(), limits));
                let share = peak_bytes / tasks.len() as u64;
                let result = result.map(|tiles| tiles.into_iter().map(|regions| (regions, share)).collect());
                // A process that sends invalid regions is not trusted with another task.
                TaskEnd { is_reusable: reusable && result.is_ok(), result }
            }
            Ok((Answer::Failed { task, raised, reusable }, _)) if task == number => {
                warn_of_thread(name, reusable);
                TaskEnd { result: Err(Failure::Raised(raised)), is_reusable: reusable }
            }
            Ok((other, _)) => {
                let result = Err(Failure::Protocol(format!("{other:?} to a task")));
                TaskEnd { result, is_reusable: false }
            }
            Err(failure) => {
                warn!(operation = name, "{name}: {failure}");
                TaskEnd { result: Err(failure), is_reusable: false }
            }
        }
    }

    /// Sends tasks with equal arguments.
    fn send(&self, process: &mut Process, number: u64, tasks: &[&Task]) -> Result<(), Failure> {
        let arguments = tasks.first().map_or(&[][..], |task| &task.arguments);
        let shapes: Vec<&[u64]> = tasks.iter().flat_map(|task| &task.shapes).map(Vec::as_slice).collect();
        let files: Vec<_> = tasks.iter().flat_map(|task| &task.files).map(|file| file.as_fd()).collect();
        let request = Request::Run {
            task: number,
            operation: self.index,
            arguments: arguments.iter().map(Number::from).collect(),
            tiles: tasks.len(),
            shapes: &shapes,
            seed: if self.is_seeded { self.declared.seed(arguments) } else { 0 },
        };
        process.send(&request, &files).map_err(|_| process.death())
    }

    /// Reads the outputs of a call. Returns those of each tile.
    fn outputs(
        &self,
        process: &mut Process,
        sent: Vec<Sent>,
        tiles: usize,
        limits: Limits,
    ) -> Result<Vec<Vec<DataRegion>>, Failure> {
        let ports = self.declared.outputs();
        if sent.len() != ports.len() * tiles {
            let text = format!("{} outputs instead of {}", sent.len(), ports.len() * tiles);
            return Err(Failure::Protocol(text));
        }
        let mut sent = sent.into_iter();
        let mut all = Vec::with_capacity(tiles);
        for _ in 0..tiles {
            let regions =
                ports.iter().zip(sent.by_ref()).map(|(port, sent)| output(process, port, sent, limits));
            all.push(regions.collect::<Result<_, _>>()?);
        }
        Ok(all)
    }
}

/// Joins the parts of an answer.
fn sent_outputs(
    (shapes, bytes, reversed): (Vec<Vec<u64>>, Vec<u64>, Vec<bool>),
    files: Vec<OwnedFd>,
) -> Result<Vec<Sent>, Failure> {
    let count = files.len();
    if [shapes.len(), bytes.len(), reversed.len()] != [count; 3] {
        return Err(Failure::Protocol(format!("{} shapes and {count} files of outputs", shapes.len())));
    }
    let forms = shapes.into_iter().zip(bytes).zip(reversed).zip(files);
    Ok(forms.map(|(((shape, bytes), is_reversed), file)| Sent { shape, bytes, is_reversed, file }).collect())
}

/// Reads an output: a sealed memory file, or a pipe.
fn output(process: &mut Process, port: &Port, sent: Sent, limits: Limits) -> Result<DataRegion, Failure> {
    let Sent { shape, bytes, is_reversed, file } = sent;
    let invalid = |error: memory_file::OutputError| Failure::Protocol(error.to_string());
    let content = if is_pipe(&file) {
        memory_file::check_length(port.name, bytes, limits.bytes).map_err(invalid)?;
        let mut done = 0;
        process.read(&file, bytes, limits, |content| {
            let whole = content.len() / PIXEL_BYTES * PIXEL_BYTES;
            if is_reversed {
                reverse_channels(&mut content[done..whole]);
            }
            done = whole;
        })?
    } else {
        let mut content = memory_file::content(port.name, file, limits.bytes).map_err(invalid)?;
        if is_reversed {
            reverse_channels(&mut content);
        }
        content
    };
    memory_file::region(port.name, port.element, &shape, content).map_err(invalid)
}

/// Bytes of a pixel of three channels.
const PIXEL_BYTES: usize = 3;

/// Reverses the channels of whole pixels.
fn reverse_channels(pixels: &mut [u8]) {
    for pixel in pixels.chunks_exact_mut(PIXEL_BYTES) {
        pixel.swap(0, 2);
    }
}

fn warn_of_thread(name: &str, is_reusable: bool) {
    if !is_reusable {
        warn!(operation = name, "{name} has left a thread behind; its process is replaced");
    }
}

impl Runs for PythonOperation {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn run(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> (Result<Vec<DataRegion>, OperationError>, Option<u64>) {
        match self.outcome(inputs, arguments) {
            Ok((regions, peak_bytes)) => {
                // The outputs exist in both processes for a moment.
                let own: u64 = regions.iter().map(DataRegion::bytes).sum();
                (Ok(regions), Some(peak_bytes.saturating_add(own)))
            }
            Err(error) => (Err(error), None),
        }
    }
}
