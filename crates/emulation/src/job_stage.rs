//! Stage of a job: its emulated tasks in the order of the simulation, with the regions of its inputs and outputs.

use crate::context::{Context, JobDelays, file_region};
use crate::error::EmulationError;
use crate::operations::{AFTER, CLUSTERING, END, FETCH, QUEUE, READ, RUN, TOKEN, VERSION, WRITE};
use crate::parameters::Parameters;

use pleach_workflow::{
    DeclaredOperation, InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput,
};
use std::collections::BTreeSet;

/// Name of the stage that ends the execution. Stages of jobs have names with a number.
pub(crate) const FINISH_STAGE: &str = "end";

/// Output of a stage that holds its last token, before the files.
const LAST_TOKEN: usize = 0;

/// Stage under construction. Its tasks form a chain of tokens.
#[derive(Default)]
pub(crate) struct JobStage {
    inputs: Vec<StageInput>,
    tasks: Vec<Task>,
    /// Arguments of the tasks, as parameters of the workflow.
    arguments: Vec<Vec<usize>>,
    /// Files that other jobs read, with the tasks that write them.
    written: Vec<(u32, usize)>,
}

impl JobStage {
    /// Returns the stage of a job with these tasks. `stages` are those of earlier jobs.
    ///
    /// # Errors
    /// [`EmulationError::Seconds`] if a wait is too long.
    pub(crate) fn of_job(
        context: &Context<'_>,
        number: u32,
        members: &[u32],
        delays: JobDelays,
        stages: &[Stage],
        parameters: &mut Parameters,
    ) -> Result<Stage, EmulationError> {
        let (execution, jobs) = (context.execution, context.jobs);
        let job = &jobs.tasks()[number as usize];
        let mut stage = Self::default();
        let own = parameters.integer(&format!("job {number}"), i64::from(number));
        let queue = parameters.seconds(&job.id, delays.queue)?;
        stage.push(&QUEUE, vec![execution, own, queue], None);
        stage.read_files(context, number, stages, parameters)?;
        if delays.clustering > 0.0 {
            let clustering = parameters.seconds(&job.id, delays.clustering)?;
            stage.push(&CLUSTERING, vec![execution, own, clustering], None);
        }
        for task in members {
            let seconds = parameters.seconds(&job.id, context.tasks.tasks()[*task as usize].seconds)?;
            let of_task = parameters.integer(&format!("task {task}"), i64::from(*task));
            stage.push(&RUN, vec![execution, of_task, seconds], None);
        }
        let children = jobs.children(number).iter();
        let read: BTreeSet<u32> =
            children.flat_map(|child| &jobs.tasks()[*child as usize].reads).copied().collect();
        let own_files = job.writes.iter().filter(|file| context.writers.get(file) == Some(&number));
        for file in own_files.filter(|file| read.contains(file)) {
            let bytes = parameters.bytes(jobs.files()[*file as usize].bytes);
            let of_file = parameters.integer(&format!("file {file}"), i64::from(*file));
            stage.push(&WRITE, vec![execution, of_file, bytes], None);
            stage.written.push((*file, stage.tasks.len() - 1));
        }
        let token = StageOutput::new(token_region(&format!("token {number}")), stage.tasks.len() - 1, 0);
        Ok(stage.finish(format!("job {number}"), token))
    }

    /// Returns the stage that ends the execution: it reads the tokens of all jobs without children.
    pub(crate) fn of_end(context: &Context<'_>, stages: &[Stage], parameters: &mut Parameters) -> Stage {
        let mut stage = Self::default();
        let jobs = context.jobs.tasks().len() as i64;
        let last = (0..jobs as u32).filter(|job| context.jobs.children(*job).is_empty());
        for job in last {
            stage.read_token(context.stage_of[job as usize], stages);
        }
        let jobs = parameters.integer("jobs", jobs);
        stage.push(&END, vec![context.execution, jobs], None);
        let region = stage.tasks[stage.tasks.len() - 1].writes[0].clone();
        let table = StageOutput::new(region, stage.tasks.len() - 1, 0);
        stage.finish(FINISH_STAGE.to_owned(), table)
    }

    /// Adds the transfers of a job's inputs, and its dependencies without files.
    fn read_files(
        &mut self,
        context: &Context<'_>,
        number: u32,
        stages: &[Stage],
        parameters: &mut Parameters,
    ) -> Result<(), EmulationError> {
        let jobs = context.jobs;
        let (job, parents) = (&jobs.tasks()[number as usize], jobs.parents(number));
        // A file of another job than a parent is read without waiting for that job, as in the simulation.
        let writer = |file: &u32| context.writers.get(file).copied().filter(|of| parents.contains(of));
        let with_files: BTreeSet<u32> = job.reads.iter().filter_map(writer).collect();
        for parent in parents.iter().filter(|parent| !with_files.contains(parent)) {
            self.read_token(context.stage_of[*parent as usize], stages);
        }
        for file in &job.reads {
            let bytes = jobs.files()[*file as usize].bytes;
            let seconds = parameters.seconds(&job.id, bytes as f64 / context.bytes_per_second)?;
            let of_file = parameters.integer(&format!("file {file}"), i64::from(*file));
            let mut arguments = vec![context.execution, of_file, seconds];
            match writer(file) {
                Some(parent) => {
                    let stage = context.stage_of[parent as usize];
                    let region = file_region(*file);
                    let of_file = |output: &StageOutput| output.region == region;
                    // The parent writes it, and this job is its child.
                    let output = stages[stage].outputs.iter().position(of_file).unwrap_or(LAST_TOKEN);
                    let input = self.add_input(region, stage, output);
                    self.push(&FETCH, arguments, Some(input));
                }
                None => {
                    arguments.push(parameters.bytes(bytes));
                    self.push(&READ, arguments, None);
                }
            }
        }
        Ok(())
    }

    /// Adds the dependency on a stage. The first one of a stage without tasks begins its chain.
    fn read_token(&mut self, stage: usize, stages: &[Stage]) {
        let region = stages[stage].outputs[LAST_TOKEN].region.clone();
        let input = self.add_input(region, stage, LAST_TOKEN);
        self.push(&AFTER, Vec::new(), Some(input));
    }

    fn add_input(&mut self, region: RegionDecl, stage: usize, output: usize) -> TaskInput {
        self.inputs.push(StageInput::new(region, InputOrigin::Stage { stage, output }));
        TaskInput::StageInput(self.inputs.len() - 1)
    }

    /// Adds a task after the last one. It reads the token of that task, and then `input`.
    fn push(&mut self, operation: &DeclaredOperation, arguments: Vec<usize>, input: Option<TaskInput>) {
        let number = self.tasks.len();
        let token = number.checked_sub(1).map(|task| TaskInput::Task { task, output: 0 });
        // In the stage that ends the execution, the first task has no token before it: its input is one.
        let token = token.or(input).filter(|_| !operation.inputs.is_empty());
        let reads = token.into_iter().chain(input).collect();
        let region = |(place, port): (usize, &pleach_workflow::Port)| RegionDecl {
            region: format!("{number} {place}"),
            element: port.element,
        };
        self.tasks.push(Task {
            name: format!("{} {number}", operation.name),
            description: String::new(),
            operation: operation.name.to_owned(),
            version: VERSION,
            arguments: Vec::new(),
            reads,
            writes: operation.outputs.iter().enumerate().map(region).collect(),
            guard: None,
        });
        self.arguments.push(arguments);
    }

    fn finish(mut self, name: String, first: StageOutput) -> Stage {
        let parameters: BTreeSet<usize> = self.arguments.iter().flatten().copied().collect();
        let parameters: Vec<usize> = parameters.into_iter().collect();
        let place = |parameter: &usize| parameters.binary_search(parameter).unwrap_or_default();
        for (task, arguments) in self.tasks.iter_mut().zip(&self.arguments) {
            task.arguments = arguments.iter().map(place).collect();
        }
        let file = |(file, task): &(u32, usize)| StageOutput::new(file_region(*file), *task, 1);
        let outputs: Vec<StageOutput> = std::iter::once(first).chain(self.written.iter().map(file)).collect();
        for StageOutput { region, task, output, .. } in &outputs {
            self.tasks[*task].writes[*output] = region.clone();
        }
        Stage {
            name,
            description: String::new(),
            inputs: self.inputs,
            outputs,
            parameters,
            tasks: self.tasks,
            switch: None,
        }
    }
}

fn token_region(name: &str) -> RegionDecl {
    RegionDecl { region: name.to_owned(), element: TOKEN }
}
