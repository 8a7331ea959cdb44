//! What a run's response can be found by again: the attributes that paper 004's data minimization leaves of the images
//! that its last stage reads.
//!
//! Statements are the tasks of the run, the reading of its files, and the run at default parameters where that is the
//! reference. A file is known by its digest, whose bytes nobody has to move.

use crate::exit::{CommandError, CommandResult};
use crate::study::PreparedStudy;
use pleach_reuse::{Flow, FlowGraph, Target, Variable, VariableId, Vertex};
use pleach_workflow::{InputOrigin, ReferenceSource, StageInput, TaskInput};
use serde::Serialize;
use std::collections::HashMap;

/// Bytes of a file's digest.
const DIGEST_BYTES: u64 = 32;

/// Bytes of a parameter's value.
const VALUE_BYTES: u64 = 8;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ResponseKey {
    /// Parameters by name, and files as `digest of REGION`.
    pub(crate) attributes: Vec<String>,
    /// Bytes they take.
    pub(crate) bytes: u64,
    /// Bytes of what the last stage reads, which they stand for.
    pub(crate) instead_of_bytes: u64,
}

/// Variables by what they are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Parameter(usize),
    /// The digest of a workflow input's file.
    File(usize),
    /// The digest of the reference's file.
    ReferenceFile,
    Image(usize),
    Reference,
    Output(usize, usize, usize),
}

/// The graph as it grows.
#[derive(Default)]
struct Statements {
    vertices: u32,
    variables: Vec<Variable>,
    names: Vec<(String, u64)>,
    ids: HashMap<Name, usize>,
}

impl Statements {
    fn vertex(&mut self) -> Vertex {
        self.vertices += 1;
        Vertex(self.vertices - 1)
    }

    fn variable(&mut self, name: Name, text: impl Into<String>, bytes: u64) -> &mut Variable {
        let next = self.variables.len();
        let id = *self.ids.entry(name).or_insert(next);
        if id == next {
            self.variables.push(Variable { producers: Vec::new(), consumers: Vec::new(), flow: Flow::Plain });
            self.names.push((text.into(), bytes));
        }
        &mut self.variables[id]
    }

    fn reads(&mut self, vertex: Vertex, name: Name, text: impl Into<String>, bytes: u64) {
        let consumers = &mut self.variable(name, text, bytes).consumers;
        if !consumers.contains(&vertex) {
            consumers.push(vertex);
        }
    }
}

impl ResponseKey {
    /// Of the runs on a tile: which values they have does not matter.
    ///
    /// # Errors
    /// [`CommandError::Internal`] when the workflow is no graph.
    pub(crate) fn of(prepared: &PreparedStudy, tile: usize) -> CommandResult<Self> {
        let workflow = &prepared.study.workflow;
        let pixels = prepared.tiles[tile].pixels;
        let mut graph = Statements::default();
        for (number, input) in workflow.inputs.iter().enumerate() {
            let read = graph.vertex();
            graph.reads(read, Name::File(number), format!("digest of {}", input.region), DIGEST_BYTES);
            let image = graph.variable(Name::Image(number), &*input.region, input.element.bytes(pixels));
            image.producers.push(read);
        }
        let mut response = Vec::new();
        for (number, stage) in workflow.stages.iter().enumerate() {
            for (place, task) in stage.tasks.iter().enumerate() {
                let vertex = graph.vertex();
                for parameter in stage.task_parameters(task) {
                    let name = &*workflow.parameters[parameter].name;
                    graph.reads(vertex, Name::Parameter(parameter), name, VALUE_BYTES);
                }
                for read in &task.reads {
                    let name = match *read {
                        TaskInput::Task { task, output } => Name::Output(number, task, output),
                        TaskInput::StageInput(input) => graph.source(prepared, &stage.inputs[input], pixels),
                    };
                    graph.reads(vertex, name, "", 0);
                }
                for (output, region) in task.writes.iter().enumerate() {
                    let name = Name::Output(number, place, output);
                    let written = graph.variable(name, &*region.region, region.element.bytes(pixels));
                    written.producers.push(vertex);
                }
                if number == workflow.response.stage {
                    response.push(vertex);
                }
            }
        }
        let Statements { vertices, variables, names, .. } = graph;
        let graph = FlowGraph::new(vertices as usize, variables).map_err(CommandError::defect)?;
        let target = Target::new(&graph, &response).map_err(CommandError::defect)?;
        let bytes = |id: VariableId| names[id.0 as usize].1;
        let found = target.attributes(bytes);
        let mut attributes: Vec<String> =
            found.variables.iter().map(|id| names[id.0 as usize].0.clone()).collect();
        attributes.sort();
        let instead_of_bytes = target.initial_attributes(bytes).bytes;
        Ok(Self { attributes, bytes: found.bytes, instead_of_bytes })
    }
}

impl Statements {
    /// What a stage reads; of a reference that is a file or a run, where it comes from as well.
    fn source(&mut self, prepared: &PreparedStudy, input: &StageInput, pixels: u64) -> Name {
        let workflow = &prepared.study.workflow;
        match input.origin {
            InputOrigin::Input(number) => Name::Image(number),
            InputOrigin::Stage { stage, output } => {
                let output = &workflow.stages[stage].outputs[output];
                Name::Output(stage, output.task, output.output)
            }
            InputOrigin::Reference => {
                if !self.ids.contains_key(&Name::Reference) {
                    let made = self.vertex();
                    if prepared.study.reference == ReferenceSource::Defaults {
                        // By the workflow itself, from the same files.
                        for number in 0..workflow.inputs.len() {
                            self.reads(made, Name::Image(number), "", 0);
                        }
                    } else {
                        self.reads(made, Name::ReferenceFile, "digest of reference", DIGEST_BYTES);
                    }
                    let bytes = input.region.element.bytes(pixels);
                    self.variable(Name::Reference, "reference", bytes).producers.push(made);
                }
                Name::Reference
            }
        }
    }
}
