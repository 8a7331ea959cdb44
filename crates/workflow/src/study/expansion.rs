//! Expands stage inputs with bounds for the units of a study: an input that needs regions of several units becomes one
//! input for each, and a first task of the stage joins them.
//!
//! The number of inputs of a stage is then fixed for the study, so plans, dispatch and storage treat the regions of
//! neighbors like those of any earlier stage. Outputs of a stage with a halo are cut to the own unit by a last task.

use super::{Slides, StudyTile, Units, UnitsError};
use crate::bounds::InputBounds;
use crate::operation::{JOINING_VERSION, Joining};
use crate::workflow::{InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput, Workflow};
use pleach_regions::ElementType;

impl Workflow {
    /// Returns the workflow with its inputs with bounds expanded for these tiles. A workflow without such inputs, or that
    /// is expanded already, stays as it is.
    ///
    /// # Errors
    /// [`UnitsError`] if the tiles do not have the bounds that a stage needs.
    pub fn expanded(
        &self,
        units: &Units,
        tiles: &[StudyTile],
        slides: Option<&Slides>,
    ) -> Result<Self, UnitsError> {
        let mut workflow = self.clone();
        let first = workflow.inputs.len();
        for stage in &mut workflow.stages {
            let mut needed = Vec::new();
            for input in &stage.inputs {
                if !matches!(input.bounds, InputBounds::Own | InputBounds::Unit(_)) {
                    if let Some(found) = slides.map(|slides| slides.halo_px).filter(|halo| *halo > 0) {
                        return Err(UnitsError::OwnHalo { found, stage: stage.name.clone() });
                    }
                    units.check(input.bounds, (&stage.name, &input.region), tiles)?;
                    needed.push(input.bounds);
                }
            }
            if needed.is_empty() {
                continue;
            }
            for bounds in needed {
                if !workflow.layouts.contains(&bounds) {
                    workflow.layouts.push(bounds);
                    let region = RegionDecl { region: layout_name(bounds), element: ElementType::Table };
                    workflow.inputs.push(region);
                }
            }
            let place = |bounds| workflow.layouts.iter().position(|known| *known == bounds).unwrap_or(0);
            *stage = Expansion::new(units, |bounds| first + place(bounds)).stage(stage);
        }
        Ok(workflow)
    }
}

fn layout_name(bounds: InputBounds) -> String {
    format!("layout of {bounds}")
}

/// A stage in work.
struct Expansion<'a, F> {
    units: &'a Units,
    /// Returns the workflow input with the layout of bounds.
    layout_input: F,
    inputs: Vec<StageInput>,
    /// Tasks that join, before those of the stage.
    joins: Vec<Task>,
}

impl<'a, F: Fn(InputBounds) -> usize> Expansion<'a, F> {
    fn new(units: &'a Units, layout_input: F) -> Self {
        Self { units, layout_input, inputs: Vec::new(), joins: Vec::new() }
    }

    fn stage(mut self, stage: &Stage) -> Stage {
        let replaced: Vec<TaskInput> = stage.inputs.iter().map(|input| self.input(input)).collect();
        let halo = stage
            .inputs
            .iter()
            .map(|input| input.bounds)
            .find(|bounds| matches!(bounds, InputBounds::Halo(_)));
        let cut_by = halo.map(|bounds| self.layout(bounds));
        let first = self.joins.len();
        let mut tasks = self.joins;
        tasks.extend(stage.tasks.iter().map(|task| {
            let mut task = task.clone();
            for read in &mut task.reads {
                *read = match *read {
                    TaskInput::StageInput(input) => replaced[input],
                    TaskInput::Task { task, output } => TaskInput::Task { task: task + first, output },
                };
            }
            task
        }));
        let mut outputs = stage.outputs.clone();
        for output in &mut outputs {
            output.task += first;
            if let Some(layout) = cut_by {
                cut(&mut tasks, output, layout);
            }
        }
        Stage { inputs: self.inputs, tasks, outputs, ..stage.clone() }
    }

    /// Adds the inputs in place of one with bounds, and returns what tasks read instead.
    fn input(&mut self, input: &StageInput) -> TaskInput {
        let selectors = self.units.selectors(input.bounds);
        let first = self.inputs.len();
        if selectors.is_empty() {
            self.inputs.push(input.clone());
            return TaskInput::StageInput(first);
        }
        let of_unit = selectors.iter().map(|unit| {
            let bounds = InputBounds::Unit(*unit);
            let region =
                RegionDecl { region: format!("{} ({bounds})", input.region.region), ..input.region.clone() };
            StageInput { region, origin: input.origin, bounds }
        });
        self.inputs.extend(of_unit);
        let last = self.inputs.len();
        let layout = self.layout(input.bounds);
        let element = input.region.element;
        let (joining, verb) = match input.bounds {
            InputBounds::Offset(_) => (Joining::Only(element), "take"),
            _ => (Joining::Join(element, selectors.len()), "join"),
        };
        let reads = (first..last).map(TaskInput::StageInput).chain([layout]).collect();
        let description = format!("Region {} with bounds {}", input.region.region, input.bounds);
        self.joins.push(task(joining, verb, &input.region, description, reads));
        TaskInput::Task { task: self.joins.len() - 1, output: 0 }
    }

    /// Returns the stage input with the layout of bounds.
    fn layout(&mut self, bounds: InputBounds) -> TaskInput {
        let origin = InputOrigin::Input((self.layout_input)(bounds));
        let known = self.inputs.iter().position(|input| input.origin == origin);
        TaskInput::StageInput(known.unwrap_or_else(|| {
            let region = RegionDecl { region: layout_name(bounds), element: ElementType::Table };
            self.inputs.push(StageInput::new(region, origin));
            self.inputs.len() - 1
        }))
    }
}

/// Adds the task that cuts an output to the own unit.
fn cut(tasks: &mut Vec<Task>, output: &mut StageOutput, layout: TaskInput) {
    if !output.region.element.has_bounds() {
        return;
    }
    let whole = TaskInput::Task { task: output.task, output: output.output };
    let description = format!("Region {} of the own unit", output.region.region);
    let joining = Joining::Cut(output.region.element);
    tasks.push(task(joining, "cut", &output.region, description, vec![whole, layout]));
    (output.task, output.output) = (tasks.len() - 1, 0);
}

fn task(
    joining: Joining,
    verb: &str,
    region: &RegionDecl,
    description: String,
    reads: Vec<TaskInput>,
) -> Task {
    Task {
        name: format!("{verb} {}", region.region),
        description,
        operation: joining.name(),
        version: JOINING_VERSION,
        arguments: Vec::new(),
        reads,
        writes: vec![region.clone()],
        guard: None,
    }
}
