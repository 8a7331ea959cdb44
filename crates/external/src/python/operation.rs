//! An operation in Python.

use crate::declared::Declared;
use crate::failure::Failure;
use crate::identity::Identity;
use crate::manifest::{Declaration, Determinism, Device};
use crate::memory_file;
use crate::packet::{Answer, Number, Request};
use crate::pool::{Launch, Pool, TaskEnd};
use crate::process::{Limits, Process};
use pleach_regions::DataRegion;
use pleach_workflow::{Argument, Meter, Operation, OperationError, Port, Value};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::{info, warn};

/// Number of the next task.
static TASKS: AtomicU64 = AtomicU64::new(0);

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
}

/// Outputs of a task, with the peak bytes of its process above the idle state.
type Outcome = (Vec<DataRegion>, u64);

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
        }
    }

    fn outcome(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Outcome, OperationError> {
        self.declared.check(inputs, arguments)?;
        let external = |text: String| OperationError::External { cause: text.into() };
        let shapes: Vec<Vec<u64>> = inputs.iter().map(|input| input.shape().to_vec()).collect();
        let files: Vec<OwnedFd> = inputs
            .iter()
            .map(|input| memory_file::sealed(&input.content()))
            .collect::<Result<_, _>>()
            .map_err(|error| external(format!("failed to write a memory file: {error}")))?;
        let numbers: Vec<Number> = arguments.iter().map(Number::from).collect();
        let seed = if self.is_seeded { self.declared.seed(arguments) } else { 0 };
        let number = TASKS.fetch_add(1, Ordering::Relaxed);
        let request =
            Request::Run { task: number, operation: self.index, arguments: numbers, shapes: &shapes, seed };
        let task = |process: &mut Process, idle_bytes: u64| {
            self.run_in(process, (number, &request), &files, self.declared.limits(inputs, idle_bytes))
        };
        self.pool
            .run(&self.launch, self.on_gpu, task)
            .map_err(|failure| OperationError::External { cause: Box::new(failure) })
    }

    fn run_in(
        &self,
        process: &mut Process,
        (number, request): (u64, &Request<'_>),
        files: &[OwnedFd],
        limits: Limits,
    ) -> TaskEnd<Outcome> {
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let answer = match process.send(request, &files) {
            Ok(()) => process.answer(limits),
            Err(_) => Err(process.death()),
        };
        let name = self.declared.plain_name();
        let output = process.take_output();
        if !output.is_empty() {
            info!(operation = name, "output of {name}: {}", output.trim_end());
        }
        match answer {
            Ok((Answer::Done { task, shapes, peak_bytes, reusable }, files)) if task == number => {
                warn_of_thread(name, reusable);
                let result = self.outputs(&shapes, files, limits.bytes).map(|regions| (regions, peak_bytes));
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

    fn outputs(
        &self,
        shapes: &[Vec<u64>],
        files: Vec<OwnedFd>,
        most: u64,
    ) -> Result<Vec<DataRegion>, Failure> {
        let ports = self.declared.outputs();
        if shapes.len() != ports.len() || files.len() != ports.len() {
            let text =
                format!("{} shapes and {} files for {} outputs", shapes.len(), files.len(), ports.len());
            return Err(Failure::Protocol(text));
        }
        let regions = ports
            .iter()
            .zip(shapes)
            .zip(files)
            .map(|((port, shape), file)| memory_file::region(port.name, port.element, shape, file, most));
        regions.collect::<Result<_, _>>().map_err(|error| Failure::Protocol(error.to_string()))
    }
}

fn warn_of_thread(name: &str, is_reusable: bool) {
    if !is_reusable {
        warn!(operation = name, "{name} has left a thread behind; its process is replaced");
    }
}

impl Operation for PythonOperation {
    fn name(&self) -> &'static str {
        self.declared.name()
    }

    fn version(&self) -> u32 {
        self.declared.version()
    }

    fn arguments(&self) -> &[Argument] {
        self.declared.arguments()
    }

    fn inputs(&self) -> &[Port] {
        self.declared.inputs()
    }

    fn outputs(&self) -> &[Port] {
        self.declared.outputs()
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        self.declared.cost_seconds(pixels)
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.declared.memory_bytes(pixels)
    }

    fn is_deterministic(&self) -> bool {
        self.declared.is_deterministic()
    }

    fn components(&self) -> &[(String, String)] {
        self.declared.components()
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        self.outcome(inputs, arguments).map(|(regions, _)| regions)
    }

    fn run_metered(
        &self,
        inputs: &[&DataRegion],
        arguments: &[Value],
        _: Meter,
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
