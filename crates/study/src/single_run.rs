//! Executes one run on one tile, task by task on the calling thread: for a single result, or to recreate
//! regions of a study.
//!
//! Only tasks that a requested region depends on are run, and each region is dropped after its last reader.
//! This module does not merge, store or reuse tasks and reads no files. `pleach-execution` executes studies.

use pleach_regions::DataRegion;
use pleach_workflow::{
    Decision, InputBounds, InputOrigin, OperationError, Registry, Stage, Task, TaskInput, Value, Workflow,
    guard_value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Output of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskOutput {
    /// Index of the stage in the workflow, from 0.
    pub stage: usize,
    /// Index of the task in its stage, from 0.
    pub task: usize,
    /// Index among the outputs of the task's operation, from 0.
    pub output: usize,
}

/// Run to execute.
#[derive(Debug)]
pub struct SingleRun<'a> {
    /// Checked workflow. The indices of a [`TaskOutput`] refer to its stages and tasks.
    pub workflow: &'a Workflow,
    /// Operations that the tasks of the workflow name. The run fails if a needed one is missing.
    pub registry: &'a Registry,
    /// One value per parameter of the workflow.
    pub values: &'a [Value],
    /// Region of the tile, which serves as every input of the workflow. Images do not depend on the core of a
    /// slide's tile.
    pub tile: Arc<DataRegion>,
    /// Fitted values of a workflow that reads them.
    pub stain: Option<Arc<DataRegion>>,
    /// Reference of the comparison. `None` compares the run with its own result, as in the run that creates
    /// the reference.
    pub reference: Option<Arc<DataRegion>>,
}

/// Reason why a run failed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A task failed.
    #[error("stage {stage}, task {task}: {cause}")]
    Task {
        /// Stage of the task.
        stage: String,
        /// Name of the task.
        task: String,
        /// Error of the operation.
        #[source]
        cause: OperationError,
    },
    /// A stage reads regions of other tiles.
    #[error("stage {0} reads regions of other tiles, so a run on one tile is not possible")]
    OtherTiles(String),
    /// The workflow was checked against other operations than those given. This is an internal error.
    #[error("operation {0} is not linked in")]
    NotLinked(String),
    /// A task reads a region that no earlier task wrote. This is an internal error.
    #[error("output {} of task {} of stage {} is not there", .0.output, .0.task, .0.stage)]
    Missing(TaskOutput),
}

/// Source of a task's input, with stage inputs resolved.
#[derive(Clone, Copy)]
enum Source<'a> {
    Given(&'a Arc<DataRegion>),
    Task(TaskOutput),
}

/// Region and the number of its remaining readers.
struct LiveRegion {
    region: Arc<DataRegion>,
    readers: usize,
}

impl SingleRun<'_> {
    /// Runs the tasks that `wanted` depends on, and returns the wanted regions in their order. `timed`
    /// receives the wall time of each task.
    ///
    /// # Errors
    /// [`ReplayError`] of the first failure, which ends the run.
    pub fn run(
        &self,
        wanted: &[TaskOutput],
        timed: impl FnMut(&Task, Duration),
    ) -> Result<Vec<Arc<DataRegion>>, ReplayError> {
        self.run_with(wanted, &|_| None, timed)
    }

    /// As [`SingleRun::run`], without the tasks whose outputs `known` returns, and without those that only such tasks need.
    ///
    /// # Errors
    /// [`ReplayError`] of the first failure, which ends the run.
    pub fn run_with(
        &self,
        wanted: &[TaskOutput],
        known: &dyn Fn(TaskOutput) -> Option<DataRegion>,
        mut timed: impl FnMut(&Task, Duration),
    ) -> Result<Vec<Arc<DataRegion>>, ReplayError> {
        check_bounds(self.workflow)?;
        let (needed, given) = self.needed(wanted, known);
        let mut readers = self.readers(&needed, wanted);
        let mut held: BTreeMap<TaskOutput, LiveRegion> = BTreeMap::new();
        for (place, region) in given {
            if let Some(readers) = readers.remove(&place) {
                held.insert(place, LiveRegion { region: Arc::new(region), readers });
            }
        }
        // The order of the set is an execution order: tasks read only from earlier tasks and stages.
        for &(stage, task) in &needed {
            let declared = &self.workflow.stages[stage].tasks[task];
            let outputs = match self.skipped(stage, declared, &held)? {
                Some(passed) => passed,
                None => self.task(stage, declared, &held, &mut timed)?,
            };
            self.reads_of_tasks(stage, declared).for_each(|place| release(&mut held, place));
            for (output, region) in outputs.into_iter().enumerate() {
                let place = TaskOutput { stage, task, output };
                if let (Some(readers), Some(region)) = (readers.remove(&place), region) {
                    held.insert(place, LiveRegion { region, readers });
                }
            }
        }
        let region = |place: &TaskOutput| held.get(place).map(|held| Arc::clone(&held.region));
        wanted.iter().map(|place| region(place).ok_or(ReplayError::Missing(*place))).collect()
    }

    /// Returns the regions that pass as outputs of a task that is skipped. `None` if the task runs.
    fn skipped(
        &self,
        stage: usize,
        task: &Task,
        held: &BTreeMap<TaskOutput, LiveRegion>,
    ) -> Result<Option<Vec<Option<Arc<DataRegion>>>>, ReplayError> {
        let Some(guard) = &task.guard else { return Ok(None) };
        let region = |read: usize| match self.read(stage, task.reads[read]) {
            Source::Given(region) => Ok(Arc::clone(region)),
            Source::Task(place) => {
                held.get(&place).map(|held| Arc::clone(&held.region)).ok_or(ReplayError::Missing(place))
            }
        };
        let fail = |cause| ReplayError::Task {
            stage: self.workflow.stages[stage].name.clone(),
            task: task.name.clone(),
            cause: OperationError::WrongElement(cause),
        };
        let passes = match guard.decide(|read| guard_value(&*region(read)?).map_err(fail))? {
            Decision::Run => return Ok(None),
            Decision::Skip(passes) => passes,
        };
        // A region of a branch that did not run is missing. Only tasks that are skipped as well read it.
        Ok(Some(passes.iter().map(|read| region((*read)?).ok()).collect()))
    }

    fn task(
        &self,
        stage: usize,
        task: &Task,
        held: &BTreeMap<TaskOutput, LiveRegion>,
        timed: &mut impl FnMut(&Task, Duration),
    ) -> Result<Vec<Option<Arc<DataRegion>>>, ReplayError> {
        let operation = self.registry.get(&task.operation, task.version);
        let operation = operation.ok_or_else(|| ReplayError::NotLinked(task.operation.clone()))?;
        let operands = task.operands().iter().map(|read| self.read(stage, *read));
        let inputs = operands.map(|source| match source {
            Source::Given(region) => Ok(region.as_ref()),
            Source::Task(place) => {
                held.get(&place).map(|held| held.region.as_ref()).ok_or(ReplayError::Missing(place))
            }
        });
        let inputs: Vec<&DataRegion> = inputs.collect::<Result<_, _>>()?;
        let stage = &self.workflow.stages[stage];
        let arguments: Vec<Value> = stage.task_parameters(task).map(|p| self.values[p]).collect();
        let start = Instant::now();
        let outputs = operation.run(&inputs, &arguments).map_err(|cause| ReplayError::Task {
            stage: stage.name.clone(),
            task: task.name.clone(),
            cause,
        })?;
        timed(task, start.elapsed());
        Ok(outputs.into_iter().map(|region| Some(Arc::new(region))).collect())
    }

    fn reads<'t>(&'t self, stage: usize, task: &'t Task) -> impl Iterator<Item = Source<'t>> + 't {
        task.reads.iter().map(move |read| self.read(stage, *read))
    }

    fn read(&self, stage: usize, read: TaskInput) -> Source<'_> {
        match read {
            TaskInput::Task { task, output } => Source::Task(TaskOutput { stage, task, output }),
            TaskInput::StageInput(input) => match self.workflow.stages[stage].inputs[input].origin {
                InputOrigin::Input(input) => {
                    let is_fit = self.workflow.inputs[input].is_stain_fit();
                    Source::Given(self.stain.as_ref().filter(|_| is_fit).unwrap_or(&self.tile))
                }
                InputOrigin::Stage { stage, output } => Source::Task(of_stage(self.workflow, stage, output)),
                InputOrigin::Reference => self.reference(),
            },
        }
    }

    fn reads_of_tasks<'t>(&'t self, stage: usize, task: &'t Task) -> impl Iterator<Item = TaskOutput> + 't {
        self.reads(stage, task).filter_map(|source| match source {
            Source::Task(place) => Some(place),
            Source::Given(_) => None,
        })
    }

    fn reference(&self) -> Source<'_> {
        match (&self.reference, &self.workflow.reference) {
            (Some(region), _) => Source::Given(region),
            (None, Some(own)) => Source::Task(of_stage(self.workflow, own.stage, own.output)),
            // Unreachable for a checked workflow: it reads a reference only if it names one.
            (None, None) => Source::Given(&self.tile),
        }
    }

    /// Returns the tasks that `wanted` depends on, each after the tasks that it reads from, and the known outputs, which need no
    /// task.
    fn needed(
        &self,
        wanted: &[TaskOutput],
        known: &dyn Fn(TaskOutput) -> Option<DataRegion>,
    ) -> (BTreeSet<(usize, usize)>, BTreeMap<TaskOutput, DataRegion>) {
        let (mut needed, mut given) = (BTreeSet::new(), BTreeMap::new());
        let mut open = wanted.to_vec();
        while let Some(place) = open.pop() {
            let TaskOutput { stage, task, .. } = place;
            if needed.contains(&(stage, task)) || given.contains_key(&place) {
                continue;
            }
            match known(place) {
                Some(region) => drop(given.insert(place, region)),
                None => {
                    needed.insert((stage, task));
                    open.extend(self.reads_of_tasks(stage, &self.workflow.stages[stage].tasks[task]));
                }
            }
        }
        // Another output of such a task is needed, so the task runs and writes this one too.
        given.retain(|place, _| !needed.contains(&(place.stage, place.task)));
        (needed, given)
    }

    /// Returns the number of readers of each region. A wanted region has one more, so that it remains until
    /// the end.
    fn readers(
        &self,
        needed: &BTreeSet<(usize, usize)>,
        wanted: &[TaskOutput],
    ) -> BTreeMap<TaskOutput, usize> {
        let read = needed
            .iter()
            .flat_map(|&(stage, task)| self.reads_of_tasks(stage, &self.workflow.stages[stage].tasks[task]));
        let mut readers = BTreeMap::new();
        for place in read.chain(wanted.iter().copied()) {
            *readers.entry(place).or_insert(0) += 1;
        }
        readers
    }
}

/// Checks that all stages read regions of their own tile only.
///
/// # Errors
/// [`ReplayError::OtherTiles`] names the stage.
pub fn check_bounds(workflow: &Workflow) -> Result<(), ReplayError> {
    let crosses = |stage: &&Stage| stage.inputs.iter().any(|input| input.bounds != InputBounds::Own);
    let found = workflow.stages.iter().find(crosses);
    found.map_or(Ok(()), |stage| Err(ReplayError::OtherTiles(stage.name.clone())))
}

/// Returns the task output behind an output of a stage.
pub fn of_stage(workflow: &Workflow, stage: usize, output: usize) -> TaskOutput {
    let declared = &workflow.stages[stage].outputs[output];
    TaskOutput { stage, task: declared.task, output: declared.output }
}

fn release(held: &mut BTreeMap<TaskOutput, LiveRegion>, place: TaskOutput) {
    if let Some(entry) = held.get_mut(&place) {
        entry.readers -= 1;
        if entry.readers == 0 {
            held.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use pleach_pathology::tissue;
    use pleach_regions::Raster;

    fn nuclei() -> (Workflow, Registry) {
        let registry = builtin::registry();
        (builtin::workflow("nuclei", &registry).unwrap().unwrap().measuring(0), registry)
    }

    fn outputs(workflow: &Workflow) -> Vec<TaskOutput> {
        let stages = workflow.stages.iter().enumerate();
        let tasks =
            stages.flat_map(|(stage, s)| s.tasks.iter().enumerate().map(move |(t, task)| (stage, t, task)));
        tasks
            .flat_map(|(stage, task, t)| {
                (0..t.writes.len()).map(move |output| TaskOutput { stage, task, output })
            })
            .collect()
    }

    fn tile() -> Arc<DataRegion> {
        Arc::new(DataRegion::Bgr8(tissue::generate(3, 0, 128).unwrap().image))
    }

    fn of_defaults<'a>(workflow: &'a Workflow, registry: &'a Registry, values: &'a [Value]) -> SingleRun<'a> {
        SingleRun { workflow, registry, values, tile: tile(), stain: None, reference: None }
    }

    #[test]
    fn requested_outputs_do_not_change_results() {
        let (workflow, registry) = nuclei();
        let values: Vec<Value> = workflow.parameters.iter().map(|p| p.default).collect();
        let replay = of_defaults(&workflow, &registry, &values);
        let all = outputs(&workflow);
        let regions = replay.run(&all, |_, _| {}).unwrap();
        for (place, expected) in all.iter().zip(&regions) {
            // Requested alone, so that all other regions are dropped after their last readers.
            assert_eq!(&replay.run(&[*place], |_, _| {}).unwrap(), std::slice::from_ref(expected));
        }
        // The reference is the run's own result.
        assert_eq!(regions.last().unwrap().table().unwrap().get("dice"), Some(1.0));
    }

    #[test]
    fn only_what_is_needed_is_run() {
        let (workflow, registry) = nuclei();
        let values: Vec<Value> = workflow.parameters.iter().map(|p| p.default).collect();
        let replay = of_defaults(&workflow, &registry, &values);
        let mut run = Vec::new();
        let t4 = TaskOutput { stage: 1, task: 3, output: 0 };
        replay.run(&[t4], |task, _| run.push(task.name.clone())).unwrap();
        assert_eq!(run, ["normalize", "t2", "t3", "t4"]);
    }

    #[test]
    fn known_outputs_replace_their_tasks() {
        let (workflow, registry) = nuclei();
        let values: Vec<Value> = workflow.parameters.iter().map(|p| p.default).collect();
        let replay = of_defaults(&workflow, &registry, &values);
        // The candidates, which the next task reads.
        let [t3, t4] = [(2, 1), (3, 0)].map(|(task, output)| TaskOutput { stage: 1, task, output });
        let all = replay.run(&[t3, t4], |_, _| {}).unwrap();
        let known = |place: TaskOutput| (place == t3).then(|| DataRegion::clone(&all[0]));
        let mut run = Vec::new();
        let again = replay.run_with(&[t4], &known, |task, _| run.push(task.name.clone())).unwrap();
        let reads_more = run.iter().any(|task| task == "t3");
        assert!(again[0] == all[1] && run.contains(&"t4".to_owned()) && !reads_more, "{run:?}");
        let mut run = 0;
        let known = |place: TaskOutput| (place == t4).then(|| DataRegion::clone(&all[1]));
        assert!(replay.run_with(&[t4], &known, |_, _| run += 1).unwrap()[0] == all[1] && run == 0);
    }

    /// The example of loops and choices: skipped tasks do not run, and pass regions as their outputs.
    #[test]
    fn skipped_tasks_are_not_run() {
        let registry = builtin::registry();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/registration/workflow.json");
        let workflow = Workflow::load(std::path::Path::new(file), &registry).unwrap();
        let values: Vec<Value> = workflow.parameters.iter().map(|p| p.default).collect();
        let tile = Arc::new(DataRegion::Bgr8(tissue::generate(3, 0, 192).unwrap().image));
        let replay = SingleRun {
            workflow: &workflow,
            registry: &registry,
            values: &values,
            tile,
            stain: None,
            reference: None,
        };
        let mut run = Vec::new();
        let wanted = [of_stage(&workflow, 1, 0), of_stage(&workflow, 2, 0)];
        let made = replay.run(&wanted, |task, _| run.push(task.name.clone())).unwrap();
        assert!(run.contains(&"translate-5 [1]".to_owned()), "{run:?}");
        assert!(run.len() < workflow.stages.iter().map(|stage| stage.tasks.len()).sum(), "{run:?}");
        let error = made[1].table().unwrap().get("displacement").unwrap();
        assert!(error < 0.5, "{error} voxels after {run:?}");
    }

    #[test]
    fn a_given_reference_is_compared_with() {
        let (workflow, registry) = nuclei();
        let workflow = workflow.without(&["normalize".to_owned()]);
        let values: Vec<Value> = workflow.parameters.iter().map(|p| p.default).collect();
        let tile = tile();
        let empty = Raster::filled(128, 128, 1, 0).unwrap();
        let reference = Some(Arc::new(DataRegion::Mask(empty)));
        let replay = SingleRun {
            workflow: &workflow,
            registry: &registry,
            values: &values,
            tile,
            stain: None,
            reference,
        };
        let metrics = replay.run(&[of_stage(&workflow, 1, 0)], |_, _| {}).unwrap();
        assert_eq!(metrics[0].table().unwrap().get("dice"), Some(0.0));
    }

    #[test]
    fn a_failure_names_its_task() {
        let (workflow, registry) = nuclei();
        let values: Vec<Value> = workflow.parameters.iter().map(|p| p.default).collect();
        let gray = Arc::new(DataRegion::Gray8(Raster::filled(8, 8, 1, 0).unwrap()));
        let replay = SingleRun {
            workflow: &workflow,
            registry: &registry,
            values: &values,
            tile: gray,
            stain: None,
            reference: None,
        };
        let error = replay.run(&outputs(&workflow), |_, _| {}).unwrap_err();
        let expected = "stage normalization, task normalize: data region holds gray8; bgr8 is needed";
        assert_eq!(error.to_string(), expected);
    }
}
