//! A validated workflow: every name resolved to an index, every connection checked.
//!
//! Only [`Workflow::load`] and [`Workflow::embedded`] create one, so callers need not validate it again.

mod guard;
mod joined_responses;
mod label;

use crate::bounds::{InputBounds, UnitSelector};
pub use crate::descriptor::Aggregate;
use crate::descriptor::TierKind;
use crate::parameter::Parameter;
use pleach_regions::ElementType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub use guard::{Comparison, Condition, Decision, Guard, guard_value};
pub use joined_responses::JOIN;
pub use label::split_label;

/// A DAG of stages over the regions of one tile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Workflow {
    /// Name.
    pub name: String,
    /// Purpose in one sentence.
    pub description: String,
    /// Regions read from files, one set per tile.
    pub inputs: Vec<RegionDecl>,
    /// The region that results are compared with.
    pub reference: Option<ReferenceDecl>,
    /// Parameters in the order of their first use, then those that no task reads.
    pub parameters: Vec<Parameter>,
    /// Stages in topological order.
    pub stages: Vec<Stage>,
    /// Table of the responses: the first one of the descriptor, unless [`Workflow::measuring`] selected another.
    pub response: ResponseTable,
    /// Alternative tables of the responses.
    pub alternatives: Vec<ResponseTable>,
    /// Bounds whose layouts are the last ones of [`inputs`](Self::inputs), in that order, as tables. Empty before the
    /// expansion for the units of a study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<InputBounds>,
}

/// A region: its name and element type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionDecl {
    /// Name.
    pub region: String,
    /// Element type.
    #[serde(rename = "type")]
    pub element: ElementType,
}

/// The region that results are compared with: a stage output of the run at default values, or a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReferenceDecl {
    /// Name and type under which stages read it.
    pub region: RegionDecl,
    /// Stage whose output serves as reference.
    pub stage: usize,
    /// Index of its output.
    pub output: usize,
}

/// The table of the responses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResponseTable {
    /// The stage that writes it.
    pub stage: usize,
    /// Index of its output.
    pub output: usize,
    /// Columns with their aggregation over tiles.
    pub metrics: Vec<(String, Aggregate)>,
}

/// A stage: a DAG of tasks, in topological order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stage {
    /// Name.
    pub name: String,
    /// Purpose in one sentence.
    pub description: String,
    /// Regions that the stage reads, with their origins.
    pub inputs: Vec<StageInput>,
    /// Regions that the stage provides to other stages.
    pub outputs: Vec<StageOutput>,
    /// Parameters that the tasks consume: indices into [`Workflow::parameters`], ascending.
    pub parameters: Vec<usize>,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Switch of `[input]` that leaves the stage out, with the replacements for its outputs. `None` for a required
    /// stage.
    pub switch: Option<OptionalStage>,
}

/// Settings of a stage that can be switched off.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OptionalStage {
    /// Key of the study file's `[input]` section, such as `normalize`.
    pub name: String,
    /// For each output of the stage: the workflow input that its readers read instead.
    pub bypass: Vec<usize>,
}

/// A region that a stage reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageInput {
    /// Name and type.
    pub region: RegionDecl,
    /// Origin of the region.
    pub origin: InputOrigin,
    /// Bounds that the stage needs.
    #[serde(default)]
    pub bounds: InputBounds,
}

impl StageInput {
    /// Creates an input with the bounds of the own unit.
    #[must_use]
    pub fn new(region: RegionDecl, origin: InputOrigin) -> Self {
        Self { region, origin, bounds: InputBounds::Own }
    }

    /// Returns the unit whose region it is, if that is not the own one.
    #[must_use]
    pub fn unit(&self) -> Option<UnitSelector> {
        match self.bounds {
            InputBounds::Unit(unit) => Some(unit),
            _ => None,
        }
    }

    /// Returns the estimated bytes of the region in a stage that works on `pixels` pixels.
    #[must_use]
    pub fn bytes(&self, pixels: u64) -> u64 {
        let share = self.unit().map_or(1, UnitSelector::share);
        self.region.element.bytes(pixels.div_ceil(share))
    }
}

/// Origin of a stage's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InputOrigin {
    /// A workflow input: a file of the tile.
    Input(usize),
    /// An output of an earlier stage of the same run.
    Stage {
        /// Index of the stage.
        stage: usize,
        /// Index of its output.
        output: usize,
    },
    /// The reference of the tile.
    Reference,
}

/// A region that a stage provides to other stages, with the task output that writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageOutput {
    /// Name and type.
    pub region: RegionDecl,
    /// The task that writes it.
    pub task: usize,
    /// Index of its output.
    pub output: usize,
    /// Whether the output must survive the worker that stored it. `None` follows the study
    /// ([`Durability`](crate::Durability)).
    #[serde(default)]
    pub durable: Option<bool>,
    /// Spill tier under memory pressure. `None` selects the fastest tier with free space.
    #[serde(default)]
    pub tier: Option<TierKind>,
}

impl StageOutput {
    /// Creates the output of a task with default durability and tier.
    #[must_use]
    pub fn new(region: RegionDecl, task: usize, output: usize) -> Self {
        Self { region, task, output, durable: None, tier: None }
    }
}

/// One task of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Name.
    pub name: String,
    /// Purpose in one sentence.
    pub description: String,
    /// Name of the operation that the task runs.
    pub operation: String,
    /// The operation's version.
    pub version: u32,
    /// For each argument of the operation: an index into [`Stage::parameters`].
    pub arguments: Vec<usize>,
    /// Origin of each input of the operation, then of the values and regions that the guard reads.
    pub reads: Vec<TaskInput>,
    /// The region of each output of the operation.
    pub writes: Vec<RegionDecl>,
    /// Conditions under which the task runs. `None` if it always runs.
    #[serde(default)]
    pub guard: Option<Guard>,
}

/// Origin of a task's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskInput {
    /// An input of the stage.
    StageInput(usize),
    /// An output of an earlier task of the stage.
    Task {
        /// Index of the task.
        task: usize,
        /// Index of its output.
        output: usize,
    },
}

impl Workflow {
    /// Returns the bounds whose layout an input of the workflow is. `None` for an input that is read from a file.
    #[must_use]
    pub fn layout_of(&self, input: usize) -> Option<InputBounds> {
        let first = self.inputs.len().saturating_sub(self.layouts.len());
        self.layouts.get(input.checked_sub(first)?).copied()
    }

    /// Returns, for each stage, whether it runs once a specimen: it reads only whole specimens, and results of stages that
    /// do.
    #[must_use]
    pub fn runs_once(&self) -> Vec<bool> {
        let is_layout = |input| self.layout_of(input) == Some(InputBounds::Whole);
        let mut once = Vec::with_capacity(self.stages.len());
        for stage in &self.stages {
            once.push(stage.runs_once(&once, is_layout));
        }
        once
    }

    /// Returns whether a stage reads regions of other units than its own.
    #[must_use]
    pub fn crosses_units(&self) -> bool {
        self.stages.iter().flat_map(|stage| &stage.inputs).any(|input| input.bounds != InputBounds::Own)
    }

    /// Returns the names of the switches that a study may turn off.
    #[must_use]
    pub fn switches(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for switch in self.stages.iter().filter_map(|stage| stage.switch.as_ref()) {
            if !names.contains(&switch.name.as_str()) {
                names.push(switch.name.as_str());
            }
        }
        names
    }

    /// Returns the workflow without the stages that `off` switches off, and without the parameters that only they
    /// consume. Other stages read the regions named by their `bypass` instead.
    #[must_use]
    pub fn without(&self, off: &[String]) -> Self {
        let bypass_of = |stage: usize| {
            self.stages[stage].switch.as_ref().filter(|switch| off.contains(&switch.name)).map(|s| &s.bypass)
        };
        let kept: Vec<usize> = (0..self.stages.len()).filter(|&s| bypass_of(s).is_none()).collect();
        self.keeping(&kept, |stage, output| bypass_of(stage).map(|bypass| bypass[output]))
    }

    /// Returns every metric that a study may name: the index of its table, for [`Workflow::measuring`], its index in
    /// [`ResponseTable::metrics`], and its name.
    pub fn metrics(&self) -> impl Iterator<Item = (usize, usize, &str)> {
        let tables = std::iter::once(&self.response).chain(&self.alternatives).enumerate();
        tables.flat_map(|(table, response)| {
            response.metrics.iter().enumerate().map(move |(place, (name, _))| (table, place, name.as_str()))
        })
    }

    /// Returns the workflow with its responses from a single table (0 is [`Workflow::response`], 1 the first of
    /// [`Workflow::alternatives`]), without the stages on which neither that table nor the reference depends, and
    /// without the parameters of these stages.
    #[must_use]
    pub fn measuring(&self, table: usize) -> Self {
        self.measuring_all(&[table], &[])
    }

    /// Returns the workflow with its responses from the first of these tables, and the remaining ones as
    /// alternatives. Retained stages stay, as does what they depend on.
    pub(crate) fn measuring_all(&self, tables: &[usize], retained: &[usize]) -> Self {
        let table = |table: &usize| {
            table.checked_sub(1).map_or(&self.response, |other| &self.alternatives[other]).clone()
        };
        let (response, others) = (table(&tables[0]), &tables[1..]);
        let alternatives: Vec<ResponseTable> = others.iter().map(table).collect();
        let mut needed: BTreeSet<usize> = [response.stage].into();
        needed.extend(alternatives.iter().map(|other| other.stage));
        needed.extend(self.reference.as_ref().map(|reference| reference.stage));
        needed.extend(retained);
        // Stages are in topological order, so all readers of a stage are visited before it.
        for stage in (0..self.stages.len()).rev() {
            if needed.contains(&stage) {
                needed.extend(self.stages[stage].inputs.iter().filter_map(|input| match input.origin {
                    InputOrigin::Stage { stage, .. } => Some(stage),
                    InputOrigin::Input(_) | InputOrigin::Reference => None,
                }));
            }
        }
        let chosen = Self { response, alternatives, ..self.clone() };
        chosen.keeping(&needed.into_iter().collect::<Vec<_>>(), |_, _| None)
    }

    /// Returns the distinct types that stages declare for the reference.
    #[must_use]
    pub fn reference_elements(&self) -> Vec<ElementType> {
        let inputs = self.stages.iter().flat_map(|stage| &stage.inputs);
        let read =
            inputs.filter(|input| input.origin == InputOrigin::Reference).map(|input| input.region.element);
        let mut elements = Vec::new();
        for element in read {
            if !elements.contains(&element) {
                elements.push(element);
            }
        }
        elements
    }

    /// Returns the workflow with only these stages (ascending), the parameters that they consume, and those that no stage
    /// of this workflow consumes. `bypass` maps an output of a removed stage to the workflow input that replaces it.
    fn keeping(&self, kept: &[usize], bypass: impl Fn(usize, usize) -> Option<usize>) -> Self {
        // The default is never used: every origin refers to a stage that stays or is bypassed.
        let moved = |stage: usize| kept.iter().position(|&k| k == stage).unwrap_or(0);
        let origin = |origin: InputOrigin| match origin {
            InputOrigin::Stage { stage, output } => match bypass(stage, output) {
                Some(input) => InputOrigin::Input(input),
                None => InputOrigin::Stage { stage: moved(stage), output },
            },
            other => other,
        };
        let mut workflow = self.clone();
        workflow.stages = kept.iter().map(|&s| self.stages[s].clone()).collect();
        let consumed = |stages: &[Stage]| stages.iter().flat_map(|s| s.parameters.clone()).collect();
        let read: BTreeSet<usize> = consumed(&self.stages);
        let mut consumed: BTreeSet<usize> = consumed(&workflow.stages);
        consumed.extend((0..self.parameters.len()).filter(|parameter| !read.contains(parameter)));
        workflow.parameters = consumed.iter().map(|&p| self.parameters[p].clone()).collect();
        for stage in &mut workflow.stages {
            for parameter in &mut stage.parameters {
                // Keeps the ascending order, so that the arguments of tasks stay valid.
                *parameter = consumed.range(..*parameter).count();
            }
            for input in &mut stage.inputs {
                input.origin = origin(input.origin);
            }
        }
        // `validate` rejects a switch on the stages of responses and reference, so they are always kept.
        workflow.response.stage = moved(self.response.stage);
        for response in &mut workflow.alternatives {
            response.stage = moved(response.stage);
        }
        if let Some(reference) = &mut workflow.reference {
            reference.stage = moved(reference.stage);
        }
        workflow
    }
}

impl Task {
    /// Returns the inputs of the operation, without the reads of the guard.
    #[must_use]
    pub fn operands(&self) -> &[TaskInput] {
        let operands = self.guard.as_ref().map_or(self.reads.len(), |guard| guard.operands);
        &self.reads[..operands.min(self.reads.len())]
    }

    /// Adds an input of the operation after the others.
    pub(crate) fn push_operand(&mut self, read: TaskInput) {
        self.reads.insert(self.operands().len(), read);
        if let Some(guard) = &mut self.guard {
            guard.shift();
        }
    }
}

impl Stage {
    /// Returns whether the stage runs once a specimen: it reads only whole specimens, and results of stages that do. `once`
    /// has the answers of the earlier stages, and `is_layout` returns whether an input of the workflow is the layout of whole
    /// specimens.
    pub(crate) fn runs_once(&self, once: &[bool], is_layout: impl Fn(usize) -> bool) -> bool {
        let is_of_specimen = |input: &StageInput| match (input.bounds, input.origin) {
            (InputBounds::Whole | InputBounds::Unit(UnitSelector::Number { .. }), _) => true,
            (InputBounds::Own, InputOrigin::Stage { stage, .. }) => once.get(stage).copied().unwrap_or(false),
            (InputBounds::Own, InputOrigin::Input(input)) => is_layout(input),
            _ => false,
        };
        !self.inputs.is_empty() && self.inputs.iter().all(is_of_specimen)
    }

    /// Returns the parameters that a task consumes, as indices into [`Workflow::parameters`].
    pub fn task_parameters<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = usize> + 'a {
        task.arguments.iter().map(|&argument| self.parameters[argument])
    }

    /// Returns whether the guard of a task compares numbers, and passes only regions of the types of the task's outputs. All
    /// reads of the task must exist.
    #[must_use]
    pub fn fits_guard(&self, task: &Task) -> bool {
        let element = |read: usize| match task.reads[read] {
            TaskInput::StageInput(input) => self.inputs[input].region.element,
            TaskInput::Task { task, output } => self.tasks[task].writes[output].element,
        };
        task.guard.iter().flat_map(|guard| &guard.conditions).all(|condition| {
            let mut passes = condition.passes.iter().zip(&task.writes);
            element(condition.value) == ElementType::Scalar
                && passes.all(|(pass, written)| pass.is_none_or(|read| element(read) == written.element))
        })
    }

    /// Returns the stage with its tasks in another order, where `order[position]` is the task at that position.
    /// Returns `None` if this is not a topological order of all its tasks.
    #[must_use]
    pub fn in_order(&self, order: &[usize]) -> Option<Self> {
        let mut position_of = vec![None; self.tasks.len()];
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for (position, &number) in order.iter().enumerate() {
            let mut task = self.tasks.get(number)?.clone();
            for read in &mut task.reads {
                if let TaskInput::Task { task, .. } = read {
                    // A task that is not placed yet comes later, so the order is not executable.
                    *task = position_of[*task]?;
                }
            }
            if position_of[number].replace(position).is_some() {
                return None;
            }
            tasks.push(task);
        }
        let mut stage = Self { tasks, ..self.clone() };
        for output in &mut stage.outputs {
            output.task = position_of[output.task]?;
        }
        (stage.tasks.len() == self.tasks.len()).then_some(stage)
    }
}
