//! Turns a clustering into a workflow of stand-ins: a stage for each job, and one that ends the execution.

use crate::job_stage::JobStage;
use crate::operations::{CONTENT, MAX_FILE_BYTES, MAX_SECONDS};
use pleach_clustering::{Clustering, Workflow as TaskWorkflow, WorkflowError};
use pleach_workflow::{
    Aggregate, Domain, Parameter, Real, RegionDecl, ResponseTable, Stage, Value, Workflow,
};
use std::collections::HashMap;
use thiserror::Error;

/// Name of the response: the number of jobs.
pub const JOBS_METRIC: &str = "jobs";

/// Maximum number of stand-ins of an execution, for 1,000 tasks with 50 files each: a manager holds all of them.
pub const MAX_TASKS: usize = 50_000;

/// Maximum size of all files of an execution, 1 GiB: regions stay in the memory of workers until their last reader ends.
pub const MAX_BYTES: u64 = 1 << 30;

/// Delays of a job that occupy its worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobDelays {
    /// Queue delay in seconds.
    pub queue: f64,
    /// Clustering delay in seconds. 0 for a job of 1 task.
    pub clustering: f64,
}

/// A workflow of stand-ins.
#[derive(Debug)]
pub struct StandInWorkflow {
    /// Stages in topological order: a stage for each job, and the last one, which ends the execution.
    pub workflow: Workflow,
    /// Number of stand-ins of all stages.
    pub tasks: usize,
    /// Mean size of the files that jobs read, in bytes, at least 1.
    pub mean_region_bytes: u64,
}

/// A clustering cannot be executed by stand-ins.
#[derive(Debug, Error)]
pub enum StandInError {
    /// Jobs depend on each other in a cycle.
    #[error("order the jobs: {0}")]
    Jobs(#[from] WorkflowError),
    /// Too many stand-ins.
    #[error("{found} stand-ins; at most {MAX_TASKS} are allowed")]
    Tasks {
        /// Number of stand-ins.
        found: usize,
    },
    /// Files are too large.
    #[error("files of {found} bytes; at most {MAX_BYTES} bytes are allowed, see --scale-data")]
    Bytes {
        /// Size of all files that jobs read.
        found: u64,
    },
    /// A wait is too long.
    #[error("job {job}: a wait of {seconds} s; at most {MAX_SECONDS} s are allowed, see --scale-time")]
    Seconds {
        /// Id of the job.
        job: String,
        /// The wait in seconds.
        seconds: f64,
    },
    /// The workflow has no tasks.
    #[error("no tasks; a workflow of 1 task or more is allowed")]
    Empty,
}

/// Returns the workflow that executes a clustering. `delays` are those of its jobs, and `execution` identifies the execution:
/// workers keep the files of one execution apart from those of others, and no result is reused. A file is transferred at
/// `bytes_per_second`.
///
/// # Errors
/// [`StandInError`] if the clustering has no tasks, exceeds a limit, or its jobs depend on each other in a cycle.
pub fn stand_in_workflow(
    tasks: &TaskWorkflow,
    clustering: &Clustering,
    delays: &[JobDelays],
    bytes_per_second: f64,
    execution: u64,
) -> Result<StandInWorkflow, StandInError> {
    let jobs = clustering.workflow(tasks)?;
    if jobs.tasks().is_empty() {
        return Err(StandInError::Empty);
    }
    let mean_region_bytes = mean_bytes(&jobs)?;
    // Stages are in topological order. Jobs of one level keep their order, by which the manager breaks ties.
    let order: Vec<u32> = jobs.levels().iter().flatten().copied().collect();
    let mut stage_of = vec![0; order.len()];
    order.iter().enumerate().for_each(|(stage, job)| stage_of[*job as usize] = stage);
    let writers = writers(&jobs);
    let mut parameters = Parameters::default();
    // 2^53: JSON numbers are exact up to there.
    let execution = parameters.integer("execution", (execution % (1 << 53)) as i64);
    let context = Context { tasks, jobs: &jobs, bytes_per_second, execution, stage_of, writers };
    let mut stages: Vec<Stage> = Vec::with_capacity(order.len() + 1);
    for job in order {
        let members = &clustering.jobs()[job as usize];
        let stage = JobStage::of_job(&context, job, members, delays[job as usize], &stages, &mut parameters)?;
        stages.push(stage);
    }
    stages.push(JobStage::of_end(&context, &stages, &mut parameters));
    let tasks = stages.iter().map(|stage| stage.tasks.len()).sum();
    if tasks > MAX_TASKS {
        return Err(StandInError::Tasks { found: tasks });
    }
    Ok(StandInWorkflow { workflow: workflow(jobs.name(), parameters, stages), tasks, mean_region_bytes })
}

fn workflow(name: &str, parameters: Parameters, stages: Vec<Stage>) -> Workflow {
    let response = ResponseTable {
        stage: stages.len() - 1,
        output: 0,
        metrics: vec![(JOBS_METRIC.to_owned(), Aggregate::Sum)],
    };
    Workflow {
        name: name.to_owned(),
        description: "Stand-ins for the tasks of a workflow, in jobs".to_owned(),
        inputs: Vec::new(),
        reference: None,
        parameters: parameters.list,
        stages,
        response,
        alternatives: Vec::new(),
        layouts: Vec::new(),
    }
}

/// Returns the mean size of the files that jobs read.
///
/// # Errors
/// [`StandInError::Bytes`] if all of them exceed the limit.
fn mean_bytes(jobs: &TaskWorkflow) -> Result<u64, StandInError> {
    let mut is_read = vec![false; jobs.files().len()];
    jobs.tasks().iter().flat_map(|job| &job.reads).for_each(|file| is_read[*file as usize] = true);
    let read = jobs.files().iter().zip(&is_read).filter(|(_, is_read)| **is_read);
    let sum = |(count, sum): (u64, u64), bytes: u64| (count + 1, sum.saturating_add(bytes));
    let (count, found) = read.map(|(file, _)| file.bytes).fold((0, 0), sum);
    let mean = (found / count.max(1)).max(1);
    if found > MAX_BYTES { Err(StandInError::Bytes { found }) } else { Ok(mean) }
}

/// Returns the job that writes each file: the first one.
fn writers(jobs: &TaskWorkflow) -> HashMap<u32, u32> {
    let mut writers = HashMap::new();
    for (job, task) in (0..).zip(jobs.tasks()) {
        task.writes.iter().for_each(|file| _ = writers.entry(*file).or_insert(job));
    }
    writers
}

/// Facts about all jobs.
pub(crate) struct Context<'a> {
    pub(crate) tasks: &'a TaskWorkflow,
    /// Workflow of the jobs: job `j` is task `j`.
    pub(crate) jobs: &'a TaskWorkflow,
    pub(crate) bytes_per_second: f64,
    /// Parameter that identifies the execution.
    pub(crate) execution: usize,
    /// Stage of each job.
    pub(crate) stage_of: Vec<usize>,
    /// Job that writes a file.
    pub(crate) writers: HashMap<u32, u32>,
}

/// Parameters of the workflow: each has one value.
#[derive(Default)]
pub(crate) struct Parameters {
    list: Vec<Parameter>,
    known: HashMap<String, usize>,
}

impl Parameters {
    /// Returns the parameter of a name, with this value where it is new.
    pub(crate) fn integer(&mut self, name: &str, value: i64) -> usize {
        self.add(name, Value::Integer(value))
    }

    /// Returns the parameter of a wait in seconds. Equal waits are one parameter.
    ///
    /// # Errors
    /// [`StandInError::Seconds`] if the wait is longer than a day.
    pub(crate) fn seconds(&mut self, job: &str, seconds: f64) -> Result<usize, StandInError> {
        let is_allowed = (0.0..=MAX_SECONDS).contains(&seconds);
        let real = Real::try_from(seconds).ok().filter(|_| is_allowed);
        let real = real.ok_or_else(|| StandInError::Seconds { job: job.to_owned(), seconds })?;
        Ok(self.add(&format!("{seconds:?} s"), Value::Real(real)))
    }

    /// Returns the parameter of a size in bytes. Equal sizes are one parameter.
    pub(crate) fn bytes(&mut self, bytes: u64) -> usize {
        let bytes = (bytes as i64).clamp(0, MAX_FILE_BYTES);
        self.add(&format!("{bytes} bytes"), Value::Integer(bytes))
    }

    fn add(&mut self, name: &str, value: Value) -> usize {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let place = self.list.len();
        self.known.insert(name.to_owned(), place);
        let value_type = value.value_type();
        let domain = Domain::Fixed { value };
        self.list.push(Parameter { name: name.to_owned(), value_type, default: value, domain });
        place
    }
}

/// Returns the region of a file.
pub(crate) fn file_region(file: u32) -> RegionDecl {
    RegionDecl { region: format!("file {file}"), element: CONTENT }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::operations;
    use pleach_clustering::{DataFile, Task};
    use pleach_workflow::{InputOrigin, Registry, TaskInput};
    use std::collections::BTreeSet;

    /// `start` → (`a1` → `a2`, `b`) → `end`. Each task writes a file of 10 bytes that its children read, but `b`, which `end`
    /// waits for. `start` reads a file that no task writes.
    fn diamond() -> TaskWorkflow {
        let task = |number: u32, id: &str, reads: &[u32]| Task {
            id: id.into(),
            kind: "run".into(),
            seconds: f64::from(number),
            reads: reads.to_vec(),
            writes: vec![number],
        };
        let tasks = vec![
            task(0, "start", &[5]),
            task(1, "a1", &[0]),
            task(2, "a2", &[1]),
            task(3, "b", &[0]),
            task(4, "end", &[2]),
        ];
        let files = (0..6).map(|number| DataFile { name: format!("f{number}"), bytes: 10 }).collect();
        TaskWorkflow::new("diamond", tasks, files, &[(0, 1), (1, 2), (0, 3), (2, 4), (3, 4)]).unwrap()
    }

    fn stand_ins(jobs: Vec<Vec<u32>>) -> Workflow {
        let tasks = diamond();
        let clustering = Clustering::new(&tasks, jobs).unwrap();
        let delays =
            |job: &Vec<u32>| JobDelays { queue: 2.0, clustering: if job.len() > 1 { 0.5 } else { 0.0 } };
        let delays: Vec<JobDelays> = clustering.jobs().iter().map(delays).collect();
        stand_in_workflow(&tasks, &clustering, &delays, 5.0, 77).unwrap().workflow
    }

    /// Returns the operation and the values of each task of a stage.
    fn calls(workflow: &Workflow, stage: usize) -> Vec<String> {
        let stage = &workflow.stages[stage];
        let call = |task: &pleach_workflow::Task| {
            let values =
                stage.task_parameters(task).map(|place| workflow.parameters[place].default.to_string());
            format!("{} {}", task.operation.replace("stand-in.", ""), values.collect::<Vec<_>>().join(" "))
        };
        stage.tasks.iter().map(call).collect()
    }

    fn sources(workflow: &Workflow, stage: usize) -> Vec<(usize, usize)> {
        let source = |input: &pleach_workflow::StageInput| match input.origin {
            InputOrigin::Stage { stage, output } => (stage, output),
            _ => (usize::MAX, 0),
        };
        workflow.stages[stage].inputs.iter().map(source).collect()
    }

    #[test]
    fn a_job_is_a_stage_of_its_delays_transfers_and_tasks() {
        let workflow = stand_ins(vec![vec![0], vec![1, 2], vec![3], vec![4]]);
        assert_eq!(calls(&workflow, 0), ["queue 77 0 2", "read 77 5 2 10", "run 77 0 0", "write 77 0 10"]);
        assert_eq!(
            calls(&workflow, 1),
            [
                "queue 77 1 2",
                "fetch 77 0 2",
                "clustering 77 1 0.5",
                "run 77 1 1",
                "run 77 2 2",
                "write 77 2 10"
            ]
        );
        assert_eq!(calls(&workflow, 2), ["queue 77 2 2", "fetch 77 0 2", "run 77 3 3"]);
        assert_eq!(calls(&workflow, 3), ["queue 77 3 2", "after ", "fetch 77 2 2", "run 77 4 4"]);
        assert_eq!(calls(&workflow, 4), ["after ", "end 77 4"]);
        let all: Vec<_> = (0..5).map(|stage| sources(&workflow, stage)).collect();
        assert_eq!(all, [vec![], vec![(0, 1)], vec![(0, 1)], vec![(2, 0), (1, 1)], vec![(3, 0)]]);
    }

    #[test]
    fn references_resolve_and_no_two_tasks_are_equal() {
        let registry = Registry::new(operations());
        let workflow = stand_ins(vec![vec![0], vec![1], vec![2], vec![3], vec![4]]);
        let mut seen = BTreeSet::new();
        for (number, stage) in workflow.stages.iter().enumerate() {
            let inputs: Vec<_> = stage.inputs.iter().map(|input| input.region.element).collect();
            for (place, task) in stage.tasks.iter().enumerate() {
                let operation = registry.get(&task.operation, task.version).unwrap();
                assert_eq!(task.arguments.len(), operation.arguments().len());
                assert_eq!(task.reads.len(), operation.inputs().len());
                for (read, port) in task.reads.iter().zip(operation.inputs()) {
                    let element = match *read {
                        TaskInput::StageInput(input) => inputs[input],
                        TaskInput::Task { task, output } => {
                            assert!(task + 1 == place, "tasks are a chain");
                            stage.tasks[task].writes[output].element
                        }
                    };
                    assert!(port.element.accepts(element));
                }
            }
            for input in &stage.inputs {
                let InputOrigin::Stage { stage: of, output } = input.origin else { panic!("{input:?}") };
                assert!(of < number);
                assert_eq!(workflow.stages[of].outputs[output].region, input.region);
            }
            for call in calls(&workflow, number).into_iter().filter(|call| call.starts_with("run")) {
                assert!(seen.insert(call.clone()), "{call} is a task twice");
            }
        }
        assert_eq!(seen.len(), 5);
        assert_eq!((workflow.response.stage, workflow.stages.len()), (5, 6));
    }

    #[test]
    fn limits_are_kept() {
        let tasks = diamond();
        let single = Clustering::single(&tasks);
        let refused = |tasks: &TaskWorkflow, queue: f64| {
            let delays = vec![JobDelays { queue, clustering: 0.0 }; 5];
            stand_in_workflow(tasks, &single, &delays, 5.0, 1).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&tasks, 90_000.0),
            "job start: a wait of 90000 s; at most 86400 s are allowed, see --scale-time"
        );
        let large = tasks.with_scaled_files(1e8);
        assert_eq!(
            refused(&large, 0.0),
            "files of 4000000000 bytes; at most 1073741824 bytes are allowed, see --scale-data"
        );
        let none = TaskWorkflow::new("none", vec![], vec![], &[]).unwrap();
        let empty = stand_in_workflow(&none, &Clustering::single(&none), &[], 5.0, 1);
        assert!(matches!(empty, Err(StandInError::Empty)));
    }
}
