//! Minimal key of a run's response: the attributes that the data minimization of paper 004 selects for the
//! images that the last stage reads.
//!
//! Statements are the tasks of the run, the reading of its files, and the run at default parameters if that
//! is the reference. A key includes the digest of a file instead of its content.

use pleach_reuse::{Flow, FlowGraph, Target, Variable, VariableId, Vertex};
use pleach_study::{Defect, PreparedStudy};
use pleach_workflow::{InputOrigin, ReferenceSource, StageInput, TaskInput};
use serde::Serialize;
use std::collections::HashMap;

/// Size of a file's digest in bytes.
const DIGEST_BYTES: u64 = 32;

/// Size of a parameter's value in bytes.
const VALUE_BYTES: u64 = 8;

/// Minimal key of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResponseKey {
    /// Attributes of the key: names of parameters, and files as `digest of REGION`.
    pub attributes: Vec<String>,
    /// Size of the attributes in bytes.
    pub bytes: u64,
    /// Size in bytes of the inputs of the last stage, which the key replaces.
    pub instead_of_bytes: u64,
}

/// Identity of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Parameter(usize),
    /// Digest of a workflow input's file.
    File(usize),
    /// Digest of the reference's file.
    ReferenceFile,
    Image(usize),
    Reference,
    Output(usize, usize, usize),
}

/// Builder of the flow graph.
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
    /// Computes the key of the runs on a tile. It does not depend on the parameters' values.
    ///
    /// # Errors
    /// [`Defect`] if the workflow is not a valid graph.
    pub fn of(prepared: &PreparedStudy, tile: usize) -> Result<Self, Defect> {
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
        let graph = FlowGraph::new(vertices as usize, variables).map_err(Defect::new)?;
        let target = Target::new(&graph, &response).map_err(Defect::new)?;
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
    /// Returns the variable that a stage input reads. Adds the statement that creates the reference at its
    /// first use.
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
                        // The workflow itself creates the reference from the same files.
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
