//! Builds stages from processors, and the workflow from its ports.

use super::super::call::{operation_name, with_map};
use super::super::descriptor;
use super::super::draft::{DomainDraft, ParameterDraft, RegionDraft, StageDraft, TaskDraft, WorkflowDraft};
use super::super::error::{Place, WorkflowImportError, WorkflowImportProblem, failed};
use super::super::map::{WorkflowMap, read};
use super::annotation::PortContent;
use super::element;
use super::flat::{FlatFlow, FlatProcessor, Source};
use super::xml::{Activity, Dataflow};
use pleach_regions::ElementType;
use pleach_workflow::{Registry, ValueType};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An imported workflow, with remarks for the user.
pub(super) struct Assembled {
    pub(super) workflow: WorkflowDraft,
    pub(super) notes: Vec<String>,
}

/// Converts one file.
pub(super) struct Assembler<'a> {
    file: &'a Path,
    top: &'a Dataflow,
    flat: &'a FlatFlow,
    ports: &'a [(String, PortContent)],
    map: &'a WorkflowMap,
    registry: &'a Registry,
    notes: Vec<String>,
    /// Names of calls, for messages about the map.
    calls: Vec<String>,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(
        file: &'a Path,
        top: &'a Dataflow,
        flat: &'a FlatFlow,
        ports: &'a [(String, PortContent)],
        map: &'a WorkflowMap,
        registry: &'a Registry,
    ) -> Self {
        Self { file, top, flat, ports, map, registry, notes: Vec::new(), calls: Vec::new() }
    }

    pub(super) fn assemble(mut self) -> Result<Assembled, WorkflowImportError> {
        let order = self.flat.order().map_err(|cycle| {
            let names: Vec<&str> = cycle.iter().map(|of| self.flat.processors[*of].name.as_str()).collect();
            element(
                self.file,
                self.top,
                format!("cycle of {}", names.join(", ")),
                "links without a cycle are allowed",
            )
        })?;
        let mut stages = Vec::new();
        for index in order {
            let processor = &self.flat.processors[index];
            if !matches!(processor.activity, Activity::Constant(_)) {
                stages.push(self.stage(index, processor)?);
            }
        }
        if stages.is_empty() {
            return Err(element(self.file, self.top, "no processor that runs", "one or more are needed"));
        }
        let mut responses = self.responses();
        let reference = self.reference(&stages);
        let types = self.types(&stages, &responses, reference.as_ref());
        responses.retain(|(region, _)| {
            let element = types[region];
            if element != ElementType::Table {
                self.notes
                    .push(format!("{region}: no response, because it is no table but {}", element.name()));
            }
            element == ElementType::Table
        });
        if responses.is_empty() {
            let found = "no output of a processor is a table";
            return Err(element(self.file, self.top, found, "a table of responses is needed"));
        }
        let inputs = self.inputs(&stages, &types, reference.as_ref());
        if inputs.is_empty() {
            return Err(element(self.file, self.top, "no input is a region", "an image is needed"));
        }
        declare_regions(
            &mut stages,
            &types,
            &responses,
            reference.as_ref().map(|(_, output)| output.as_str()),
        );
        self.check_map(&stages, &types)?;
        self.note_missing_values(&stages);
        let reference = reference.map(|(region, output)| ((region.clone(), types[&region]), output));
        let workflow = WorkflowDraft {
            name: self.top.name.clone(),
            description: format!("Imported from the Taverna workflow {}", self.top.name),
            inputs,
            reference,
            stages,
            responses,
        };
        Ok(Assembled { workflow, notes: self.notes })
    }

    fn content(&self, port: &str) -> Option<&'a PortContent> {
        self.ports.iter().find(|(name, _)| name == port).map(|(_, content)| content)
    }

    /// Returns the name of the region that a processor writes: the port, with the processor if the port's name is not
    /// unique.
    fn region(&self, index: usize, port: &str) -> String {
        let processors = self.flat.processors.iter();
        let steps = processors.filter(|processor| !matches!(processor.activity, Activity::Constant(_)));
        let named = steps.flat_map(|processor| &processor.outputs).filter(|name| *name == port).count();
        let is_input = self.ports.iter().any(|(name, _)| name == port);
        if named > 1 || is_input {
            format!("{}.{port}", self.flat.processors[index].name)
        } else {
            port.to_owned()
        }
    }

    fn stage(&mut self, index: usize, processor: &FlatProcessor) -> Result<StageDraft, WorkflowImportError> {
        let command = match &processor.activity {
            Activity::Tool(command) => command.as_str(),
            _ => processor.own_name.as_str(),
        };
        let program = command.split_whitespace().next().unwrap_or(command);
        let names: Vec<String> =
            [command, program, &processor.own_name, &processor.name].map(str::to_owned).into();
        self.calls.extend(names.iter().skip(1).cloned());
        let mapped = self.map.call(&names);
        let (mut reads, mut parameters, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (port, sources) in &processor.inputs {
            if sources.is_empty() {
                self.notes.push(format!("processor {}: input {port} has no link", processor.name));
            }
            for source in sources {
                self.input(processor, port, source, &mut reads, &mut parameters, &mut texts)?;
            }
        }
        let writes = processor.outputs.iter().map(|port| self.region(index, port)).collect();
        let texts = texts.iter().map(|text| format!("; {text}")).collect::<String>();
        let description = format!("Tool {}{texts}", command.split_whitespace().collect::<Vec<_>>().join(" "));
        if let Some(descriptor) = mapped.as_ref().and_then(|mapped| mapped.descriptor.clone()) {
            return self.described(processor, &self.map.path(&descriptor), &reads);
        }
        let task = TaskDraft {
            name: processor.name.clone(),
            description: description.clone(),
            operation: operation_name(program),
            version: 1,
            parameters,
            reads,
            writes,
        };
        let task = with_map(task, mapped.as_ref());
        let (name, inputs, outputs) = (processor.name.clone(), Vec::new(), Vec::new());
        Ok(StageDraft { name, description, inputs, outputs, tasks: vec![task] })
    }

    /// Adds the region or the parameters that a source provides to a port.
    fn input(
        &mut self,
        processor: &FlatProcessor,
        port: &str,
        source: &Source,
        reads: &mut Vec<String>,
        parameters: &mut Vec<ParameterDraft>,
        texts: &mut Vec<String>,
    ) -> Result<(), WorkflowImportError> {
        match source {
            Source::Input(name) => match self.content(name) {
                Some(PortContent::Region(_) | PortContent::Untyped) => reads.push(name.clone()),
                Some(_) => parameters.extend(self.parameters(name, port)),
                None => return self.unknown_port(processor, port, name),
            },
            Source::Output(before, output) => {
                let writer = &self.flat.processors[*before];
                match &writer.activity {
                    Activity::Constant(text) => match text.parse::<f64>() {
                        Ok(number) if number.is_finite() => {
                            parameters.push(self.constant(&writer.name, port, text, number));
                        }
                        _ => {
                            let pair = format!("{port} = \"{text}\"");
                            let note =
                                format!("processor {}: text {pair} is in the description", processor.name);
                            self.notes.push(format!("{note}; the operation has to know it"));
                            texts.push(pair);
                        }
                    },
                    _ if writer.outputs.contains(output) => reads.push(self.region(*before, output)),
                    _ => return self.unknown_port(processor, port, &format!("{}.{output}", writer.name)),
                }
            }
        }
        Ok(())
    }

    fn unknown_port<T>(
        &self,
        processor: &FlatProcessor,
        port: &str,
        source: &str,
    ) -> Result<T, WorkflowImportError> {
        let problem = WorkflowImportProblem::Element {
            element: "processor",
            name: processor.name.clone(),
            found: format!("input {port} is linked to {source}, which is missing"),
            allowed: "a port of the file is needed".to_owned(),
        };
        Err(failed(self.file, Place::Line(processor.line), problem))
    }

    fn constant(&self, name: &str, port: &str, text: &str, number: f64) -> ParameterDraft {
        let is_integer = text.parse::<i64>().is_ok();
        let value_type = if is_integer { ValueType::Integer } else { ValueType::Real };
        let argument = (name != port).then(|| port.to_owned());
        let (default, domain) = (Some(number), Some(DomainDraft::Fixed(number)));
        ParameterDraft { name: name.to_owned(), argument, value_type, default, domain }.with_map(self.map)
    }

    /// Returns the parameters of a port of the workflow: one, or one for each number of an array.
    fn parameters(&self, name: &str, port: &str) -> Vec<ParameterDraft> {
        let draft = |name: String, port: String, value_type, values: Vec<f64>| {
            let argument = (name != port).then_some(port);
            let mut distinct: Vec<f64> = Vec::new();
            for value in values {
                if !distinct.contains(&value) {
                    distinct.push(value);
                }
            }
            let domain = match distinct.as_slice() {
                [] => None,
                [value] => Some(DomainDraft::Fixed(*value)),
                _ => Some(DomainDraft::Values(distinct.clone())),
            };
            let default = distinct.first().copied();
            ParameterDraft { name, argument, value_type, default, domain }.with_map(self.map)
        };
        match self.content(name) {
            Some(PortContent::Parameter(value_type, values)) => {
                vec![draft(name.to_owned(), port.to_owned(), *value_type, values.clone())]
            }
            Some(PortContent::Array(arrays)) => {
                let length = arrays.first().map_or(0, Vec::len);
                let column = |place: usize| arrays.iter().map(|array| array[place]).collect();
                let number = |place| {
                    draft(
                        format!("{name}.{place}"),
                        format!("{port}_{place}"),
                        ValueType::Real,
                        column(place),
                    )
                };
                (0..length).map(number).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the stage of a processor with the tasks of its descriptor, which names parameters and regions as the
    /// workflow's ports do.
    fn described(
        &mut self,
        processor: &FlatProcessor,
        file: &Path,
        reads: &[String],
    ) -> Result<StageDraft, WorkflowImportError> {
        let lengths: BTreeMap<String, usize> = self
            .ports
            .iter()
            .filter_map(|(name, content)| match content {
                PortContent::Array(arrays) => Some((name.clone(), arrays.first().map_or(0, Vec::len))),
                _ => None,
            })
            .collect();
        let imported = descriptor::import(file, &read(file)?, self.map, self.registry, &lengths)?;
        self.calls.extend(imported.calls);
        let mut stage = imported.stage;
        if let Some((region, _)) = stage.inputs.iter().find(|(region, _)| !reads.contains(region)) {
            let known = reads.join(", ");
            let message =
                format!("input \"{region}\" is no region of processor {}; it has {known}", processor.name);
            return Err(failed(file, Place::File, WorkflowImportProblem::Malformed(message)));
        }
        for task in &mut stage.tasks {
            for parameter in &mut task.parameters {
                let array = parameter.name.rsplit_once('.').map_or(parameter.name.as_str(), |(name, _)| name);
                let all =
                    [parameter.name.as_str(), array].into_iter().flat_map(|name| self.parameters(name, name));
                let defined = all.into_iter().find(|of| of.name == parameter.name);
                if let Some(defined) = defined {
                    // The descriptor names arguments, the port has the values.
                    let argument = parameter.argument.take();
                    *parameter = ParameterDraft { argument, ..defined };
                }
            }
        }
        stage.name.clone_from(&processor.name);
        (stage.inputs, stage.outputs) = (Vec::new(), Vec::new());
        Ok(stage)
    }

    /// Returns the outputs of the workflow that processors write, with their metrics.
    fn responses(&mut self) -> Vec<(String, Vec<String>)> {
        let mut responses: Vec<(String, Vec<String>)> = Vec::new();
        for (name, sources) in &self.flat.outputs {
            for source in sources {
                let region = match source {
                    Source::Output(index, port)
                        if !matches!(self.flat.processors[*index].activity, Activity::Constant(_)) =>
                    {
                        self.region(*index, port)
                    }
                    _ => {
                        self.notes
                            .push(format!("output {name}: no response, because no processor computes it"));
                        continue;
                    }
                };
                if responses.iter().any(|(known, _)| *known == region) {
                    self.notes.push(format!("output {name}: region {region} is a response already"));
                    continue;
                }
                let metrics = match self.map.metrics(name) {
                    Some(metrics) => metrics.to_vec(),
                    None if sources.len() > 1 => vec![format!("{name}.{region}")],
                    None => vec![name.clone()],
                };
                responses.push((region, metrics));
            }
        }
        responses
    }

    /// Returns the reference and the output that replaces it: those of the map, or an image that is named after a
    /// reference and compared with one output.
    fn reference(&mut self, stages: &[StageDraft]) -> Option<(String, String)> {
        if let Some(mapped) = self.map.reference() {
            return Some((mapped.region.clone(), mapped.output.clone()));
        }
        let tasks = || stages.iter().flat_map(|stage| &stage.tasks);
        let images = self
            .ports
            .iter()
            .filter(|(_, content)| matches!(content, PortContent::Region(_) | PortContent::Untyped));
        for (name, _) in images.skip(1).filter(|(name, _)| name.to_ascii_lowercase().contains("ref")) {
            let readers: Vec<&TaskDraft> = tasks().filter(|task| task.reads.contains(name)).collect();
            let [reader] = readers.as_slice() else { continue };
            let others: Vec<&String> = reader.reads.iter().filter(|read| *read != name).collect();
            if let [other] = others.as_slice()
                && tasks().any(|task| task.writes.contains(other))
            {
                self.notes.push(format!("{name}: the reference of {other}; --map may give another"));
                return Some((name.clone(), (*other).clone()));
            }
        }
        None
    }

    /// Returns the type of each region: that of the map, of an operation's port, or an assumed one.
    fn types(
        &mut self,
        stages: &[StageDraft],
        responses: &[(String, Vec<String>)],
        reference: Option<&(String, String)>,
    ) -> BTreeMap<String, ElementType> {
        let tasks = || stages.iter().flat_map(|stage| &stage.tasks);
        let ends = tasks().flat_map(|task| task.reads.iter().chain(&task.writes));
        let more = reference.into_iter().flat_map(|(region, output)| [region, output]);
        let names: BTreeSet<&String> = ends.chain(more).collect();
        let (mut types, mut assumed) = (BTreeMap::new(), Vec::new());
        // Within a stage, the ports of operations decide, so only regions between stages have types in files.
        let is_inner = |name: &String| {
            let readers =
                stages.iter().filter(|stage| stage.tasks.iter().any(|task| task.reads.contains(name)));
            let writer =
                stages.iter().find(|stage| stage.tasks.iter().any(|task| task.writes.contains(name)));
            let mut readers = readers.map(|stage| &stage.name);
            let is_read_inside = writer.is_some_and(|writer| readers.all(|reader| *reader == writer.name));
            is_read_inside && stages.iter().any(|stage| stage.tasks.len() > 1)
        };
        for name in names {
            let known = self.map.region(name).or_else(|| {
                let written = tasks().filter(|task| task.writes.contains(name));
                let read = tasks().filter(|task| task.reads.contains(name));
                written.chain(read).find_map(|task| task.port_type(name, self.registry))
            });
            let is_compared = reference.is_some_and(|(region, output)| name == region || name == output);
            let guess = if responses.iter().any(|(region, _)| region == name) {
                ElementType::Table
            } else if is_compared {
                ElementType::Mask
            } else {
                ElementType::Bgr8
            };
            if known.is_none() && guess != ElementType::Table && (is_compared || !is_inner(name)) {
                assumed.push(format!("{name} {}", guess.name()));
            }
            types.insert(name.clone(), known.unwrap_or(guess));
        }
        if !assumed.is_empty() {
            self.notes.push(format!("types assumed: {}; --map may give others", assumed.join(", ")));
        }
        types
    }

    fn inputs(
        &self,
        stages: &[StageDraft],
        types: &BTreeMap<String, ElementType>,
        reference: Option<&(String, String)>,
    ) -> Vec<RegionDraft> {
        let is_read = |name: &String| {
            stages.iter().flat_map(|stage| &stage.tasks).any(|task| task.reads.contains(name))
        };
        let is_reference = |name: &String| reference.is_some_and(|(region, _)| region == name);
        let names = self.ports.iter().map(|(name, _)| name);
        let inputs = names.filter(|name| is_read(name) && !is_reference(name));
        inputs.map(|name| (name.clone(), types[name])).collect()
    }

    fn check_map(
        &self,
        stages: &[StageDraft],
        types: &BTreeMap<String, ElementType>,
    ) -> Result<(), WorkflowImportError> {
        let parameters: BTreeSet<String> = self
            .ports
            .iter()
            .filter(|(_, content)| matches!(content, PortContent::Parameter(..) | PortContent::Array(_)))
            .map(|(name, _)| name.clone())
            .collect();
        let tasks = stages.iter().flat_map(|stage| &stage.tasks);
        let used = tasks.flat_map(|task| &task.parameters).map(|parameter| parameter.name.clone());
        let parameters = parameters.into_iter().chain(used).collect::<BTreeSet<_>>().into_iter().collect();
        let outputs = self.flat.outputs.iter().map(|(name, _)| name.clone()).collect();
        self.map.end(&[
            ("calls", self.calls.clone()),
            ("regions", types.keys().cloned().collect()),
            ("parameters", parameters),
            ("responses", outputs),
        ])
    }

    fn note_missing_values(&mut self, stages: &[StageDraft]) {
        let parameters = stages.iter().flat_map(|stage| &stage.tasks).flat_map(|task| &task.parameters);
        let missing: BTreeSet<&str> = parameters
            .filter(|parameter| !parameter.is_complete())
            .map(|parameter| parameter.name.as_str())
            .collect();
        if !missing.is_empty() {
            let names = missing.into_iter().collect::<Vec<_>>().join(", ");
            self.notes.push(format!(
                "without values: {names}; give \"default\" and \"range\" in the files or --map"
            ));
        }
    }
}

/// Declares inputs and outputs of stages: regions that cross their borders.
fn declare_regions(
    stages: &mut [StageDraft],
    types: &BTreeMap<String, ElementType>,
    responses: &[(String, Vec<String>)],
    compared: Option<&str>,
) {
    let reads: Vec<BTreeSet<String>> =
        stages.iter().map(|stage| stage.tasks.iter().flat_map(|task| task.reads.clone()).collect()).collect();
    for (number, stage) in stages.iter_mut().enumerate() {
        let mut seen = BTreeSet::new();
        let writes: Vec<&String> = stage.tasks.iter().flat_map(|task| &task.writes).collect();
        let own_reads = stage.tasks.iter().flat_map(|task| &task.reads);
        let inputs = own_reads.filter(|name| !writes.contains(name) && seen.insert((*name).clone()));
        let inputs = inputs.map(|name| (name.clone(), types[name])).collect();
        let leaves = |name: &String| {
            let others = reads.iter().enumerate().filter(|(other, _)| *other != number);
            let is_response = responses.iter().any(|(region, _)| region == name);
            is_response
                || compared == Some(name.as_str())
                || others.into_iter().any(|(_, reads)| reads.contains(name))
        };
        let output = |name: &String| (name.clone(), types[name]);
        let mut outputs: Vec<RegionDraft> =
            writes.iter().filter(|name| leaves(name)).map(|name| output(name)).collect();
        if outputs.is_empty() {
            outputs = writes.iter().map(|name| output(name)).collect();
        }
        (stage.inputs, stage.outputs) = (inputs, outputs);
    }
}
