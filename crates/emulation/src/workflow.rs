//! Turns a clustering into a workflow of emulated tasks: a stage for each job, and one that ends the execution.

use crate::context::{Context, JobDelays};
use crate::error::{EmulationError, MAX_BYTES, MAX_TASKS};
use crate::job_stage::JobStage;
use crate::parameters::Parameters;
use pleach_clustering::{Clustering, Workflow as TaskWorkflow};
use pleach_workflow::{Aggregate, ResponseTable, Stage, Workflow};
use std::collections::HashMap;

/// Name of the response: the number of jobs.
pub const JOBS_METRIC: &str = "jobs";

/// A workflow of emulated tasks.
#[derive(Debug)]
pub struct EmulatedWorkflow {
    /// Stages in topological order: a stage for each job, and the last one, which ends the execution.
    pub workflow: Workflow,
    /// Number of emulated tasks of all stages.
    pub tasks: usize,
    /// Mean size of the files that jobs read, in bytes, at least 1.
    pub mean_region_bytes: u64,
}

/// Returns the workflow that executes a clustering. `delays` are those of its jobs, and `execution` identifies the execution:
/// workers keep the files of one execution apart from those of others, and no result is reused. A file is transferred at
/// `bytes_per_second`.
///
/// # Errors
/// [`EmulationError`] if the clustering has no tasks, exceeds a limit, or its jobs depend on each other in a cycle.
pub fn emulated_workflow(
    tasks: &TaskWorkflow,
    clustering: &Clustering,
    delays: &[JobDelays],
    bytes_per_second: f64,
    execution: u64,
) -> Result<EmulatedWorkflow, EmulationError> {
    let jobs = clustering.workflow(tasks)?;
    if jobs.tasks().is_empty() {
        return Err(EmulationError::Empty);
    }
    let mean_region_bytes = mean_bytes(&jobs)?;
    // Stages are in topological order. Jobs of one level keep their order, and the manager breaks ties by it.
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
        return Err(EmulationError::Tasks { found: tasks });
    }
    Ok(EmulatedWorkflow { workflow: workflow(jobs.name(), parameters, stages), tasks, mean_region_bytes })
}

fn workflow(name: &str, parameters: Parameters, stages: Vec<Stage>) -> Workflow {
    let response = ResponseTable {
        stage: stages.len() - 1,
        output: 0,
        metrics: vec![(JOBS_METRIC.to_owned(), Aggregate::Sum)],
    };
    Workflow {
        name: name.to_owned(),
        description: "Emulated tasks for the tasks of a workflow, in jobs".to_owned(),
        inputs: Vec::new(),
        reference: None,
        parameters: parameters.into_list(),
        stages,
        response,
        alternatives: Vec::new(),
        layouts: Vec::new(),
    }
}

/// Returns the mean size of the files that jobs read.
///
/// # Errors
/// [`EmulationError::Bytes`] if all of them exceed the limit.
fn mean_bytes(jobs: &TaskWorkflow) -> Result<u64, EmulationError> {
    let mut is_read = vec![false; jobs.files().len()];
    jobs.tasks().iter().flat_map(|job| &job.reads).for_each(|file| is_read[*file as usize] = true);
    let read = jobs.files().iter().zip(&is_read).filter(|(_, is_read)| **is_read);
    let sum = |(count, sum): (u64, u64), bytes: u64| (count + 1, sum.saturating_add(bytes));
    let (count, found) = read.map(|(file, _)| file.bytes).fold((0, 0), sum);
    let mean = (found / count.max(1)).max(1);
    if found > MAX_BYTES { Err(EmulationError::Bytes { found }) } else { Ok(mean) }
}

/// Returns the job that writes each file: the first one.
fn writers(jobs: &TaskWorkflow) -> HashMap<u32, u32> {
    let mut writers = HashMap::new();
    for (job, task) in (0..).zip(jobs.tasks()) {
        task.writes.iter().for_each(|file| _ = writers.entry(*file).or_insert(job));
    }
    writers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations;
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

    fn emulated(jobs: Vec<Vec<u32>>) -> Workflow {
        let tasks = diamond();
        let clustering = Clustering::new(&tasks, jobs).unwrap();
        let delays =
            |job: &Vec<u32>| JobDelays { queue: 2.0, clustering: if job.len() > 1 { 0.5 } else { 0.0 } };
        let delays: Vec<JobDelays> = clustering.jobs().iter().map(delays).collect();
        emulated_workflow(&tasks, &clustering, &delays, 5.0, 77).unwrap().workflow
    }

    /// Returns the operation and the values of each task of a stage.
    fn calls(workflow: &Workflow, stage: usize) -> Vec<String> {
        let stage = &workflow.stages[stage];
        let call = |task: &pleach_workflow::Task| {
            let values =
                stage.task_parameters(task).map(|place| workflow.parameters[place].default.to_string());
            format!("{} {}", task.operation.replace("emulation.", ""), values.collect::<Vec<_>>().join(" "))
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
        let workflow = emulated(vec![vec![0], vec![1, 2], vec![3], vec![4]]);
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
        let workflow = emulated(vec![vec![0], vec![1], vec![2], vec![3], vec![4]]);
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
            emulated_workflow(tasks, &single, &delays, 5.0, 1).map(|_| ()).unwrap_err().to_string()
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
        let empty = emulated_workflow(&none, &Clustering::single(&none), &[], 5.0, 1);
        assert!(matches!(empty, Err(EmulationError::Empty)));
    }
}
