//! Inlines nested dataflows: processors of one level, each input with the outputs that it reads.

use super::super::error::{Place, WorkflowImportError, WorkflowImportProblem, failed};
use super::xml::{Activity, Dataflow, DotGroup, End, Flows, Processor};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum depth of nested dataflows. Real workflows nest 2 or 3 deep, and a cycle of references would be endless.
const MAX_DEPTH: usize = 16;

/// Maximum number of processors, since all pairs are compared: 20 times the largest workflow of the papers.
const MAX_PROCESSORS: usize = 1_000;

/// A workflow without nested dataflows.
#[derive(Debug, Default)]
pub(super) struct FlatFlow {
    /// Processors other than nested dataflows, in the order of the file.
    pub(super) processors: Vec<FlatProcessor>,
    /// Sources of each output of the workflow.
    pub(super) outputs: Vec<(String, Vec<Source>)>,
    /// Control links.
    pub(super) conditions: Vec<FlatCondition>,
}

/// A control link between processors, by their names with those of the dataflows around them.
#[derive(Debug)]
pub(super) struct FlatCondition {
    pub(super) control: String,
    pub(super) target: String,
    pub(super) line: u32,
}

/// A processor with the sources of its inputs.
#[derive(Debug)]
pub(super) struct FlatProcessor {
    /// Name, with the names of the dataflows around it.
    pub(super) name: String,
    /// Name within its dataflow.
    pub(super) own_name: String,
    pub(super) line: u32,
    pub(super) activity: Activity,
    /// Sources of each input. Several are a list.
    pub(super) inputs: Vec<(String, Vec<Source>)>,
    pub(super) outputs: Vec<String>,
    pub(super) dots: Vec<DotGroup>,
}

/// Source of an input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An input of the workflow.
    Input(String),
    /// An output of a processor, by its index.
    Output(usize, String),
}

/// Inlines the nested dataflows of a file.
pub(super) fn flatten(file: &Path, flows: &Flows) -> Result<FlatFlow, WorkflowImportError> {
    let mut inliner = Inliner {
        file,
        flows,
        processors: Vec::new(),
        links: BTreeMap::new(),
        conditions: Vec::new(),
        flows_added: 0,
    };
    inliner.add(&flows.flows[0], "", 0)?;
    Ok(inliner.finish())
}

/// A connection point: a processor's port or a port of a dataflow. `prefix` names the dataflows around it.
type Point = (String, End);

struct Inliner<'a> {
    file: &'a Path,
    flows: &'a Flows,
    /// Processors with their prefix.
    processors: Vec<(String, &'a Processor)>,
    /// Origins of each sink, in the order of the links.
    links: BTreeMap<Point, Vec<Point>>,
    conditions: Vec<FlatCondition>,
    /// Number of dataflows, each as often as it is nested.
    flows_added: usize,
}

impl<'a> Inliner<'a> {
    fn fail<T>(
        &self,
        line: u32,
        element: &'static str,
        name: &str,
        found: &str,
        allowed: &str,
    ) -> Result<T, WorkflowImportError> {
        let (name, found, allowed) = (name.to_owned(), found.to_owned(), allowed.to_owned());
        let problem = WorkflowImportProblem::Element { element, name, found, allowed };
        Err(failed(self.file, Place::Line(line), problem))
    }

    fn add(&mut self, flow: &'a Dataflow, prefix: &str, depth: usize) -> Result<(), WorkflowImportError> {
        if depth > MAX_DEPTH {
            return self.fail(
                flow.line,
                "dataflow",
                &flow.name,
                "nests itself",
                "nesting without a cycle is allowed",
            );
        }
        let mut names = BTreeSet::new();
        for processor in &flow.processors {
            if !names.insert(&processor.name) {
                return self.fail(
                    processor.line,
                    "processor",
                    &processor.name,
                    "two of this name",
                    "one is allowed",
                );
            }
            let Activity::Nested(id) = &processor.activity else {
                self.processors.push((prefix.to_owned(), processor));
                continue;
            };
            let Some(inner) = self.flows.flows.iter().find(|flow| flow.id == *id) else {
                let found = format!("nested workflow {id} is missing");
                return self.fail(
                    processor.line,
                    "processor",
                    &processor.name,
                    &found,
                    "a dataflow of the file is needed",
                );
            };
            let below = format!("{prefix}{}-", processor.name);
            self.connect(processor, inner, prefix, &below);
            self.add(inner, &below, depth + 1)?;
        }
        self.flows_added += 1;
        if self.processors.len().max(self.flows_added) > MAX_PROCESSORS {
            let found = format!("more than {MAX_PROCESSORS} processors or nested workflows");
            return self.fail(flow.line, "dataflow", &flow.name, &found, "fewer are allowed");
        }
        self.add_links(flow, prefix)
    }

    /// Adds data links and control links.
    fn add_links(&mut self, flow: &'a Dataflow, prefix: &str) -> Result<(), WorkflowImportError> {
        for link in &flow.links {
            for end in [&link.source, &link.sink] {
                let is_known =
                    |name: &String| flow.processors.iter().any(|processor| processor.name == *name);
                if let Some(name) = end.processor.as_ref().filter(|name| !is_known(name)) {
                    let found = format!("processor {name} is missing");
                    return self.fail(
                        link.line,
                        "datalink",
                        &end.port,
                        &found,
                        "a processor of the dataflow is needed",
                    );
                }
            }
            // The ports of a dataflow are one-sided, so inputs and outputs of one name are apart.
            let sink = match link.sink.processor {
                Some(_) => link.sink.clone(),
                None => End { processor: None, port: output_port(&link.sink.port) },
            };
            self.links
                .entry((prefix.to_owned(), sink))
                .or_default()
                .push((prefix.to_owned(), link.source.clone()));
        }
        for condition in &flow.conditions {
            let name = |name: &str| format!("{prefix}{name}");
            let (control, target) = (name(&condition.control), name(&condition.target));
            self.conditions.push(FlatCondition { control, target, line: condition.line });
        }
        Ok(())
    }

    /// Connects the ports of a processor with those of its dataflow.
    fn connect(&mut self, processor: &Processor, inner: &Dataflow, prefix: &str, below: &str) {
        let own = |port: &str| End { processor: Some(processor.name.clone()), port: port.to_owned() };
        for port in &inner.inputs {
            let mapped = processor.input_map.iter().find(|(_, to)| *to == port.name);
            let outer = mapped.map_or(&port.name, |(from, _)| from);
            let point = (below.to_owned(), End { processor: None, port: port.name.clone() });
            let outer = format!("{INPUT_MARK}{outer}");
            self.links.entry(point).or_default().push((prefix.to_owned(), own(&outer)));
        }
        for port in &inner.outputs {
            let mapped = processor.output_map.iter().find(|(from, _)| *from == port.name);
            let outer = mapped.map_or(&port.name, |(_, to)| to);
            let point = (prefix.to_owned(), own(&output_port(outer)));
            let inside = (below.to_owned(), End { processor: None, port: output_port(&port.name) });
            self.links.entry(point).or_default().push(inside);
        }
    }

    fn finish(self) -> FlatFlow {
        let mut processors = Vec::new();
        for (prefix, processor) in &self.processors {
            let sources = |port: &String| {
                let end = End { processor: Some(processor.name.clone()), port: port.clone() };
                (port.clone(), self.sources(&(prefix.clone(), end), 0))
            };
            processors.push(FlatProcessor {
                name: format!("{prefix}{}", processor.name),
                own_name: processor.name.clone(),
                line: processor.line,
                activity: processor.activity.clone(),
                inputs: processor.inputs.iter().map(sources).collect(),
                outputs: processor.outputs.clone(),
                dots: processor.dots.clone(),
            });
        }
        let output = |name: &String| {
            let end = End { processor: None, port: output_port(name) };
            (name.clone(), self.sources(&(String::new(), end), 0))
        };
        let outputs = self.flows.flows[0].outputs.iter().map(|port| output(&port.name)).collect();
        FlatFlow { processors, outputs, conditions: self.conditions }
    }

    /// Returns the sources of a sink, through the ports of nested dataflows.
    fn sources(&self, sink: &Point, depth: usize) -> Vec<Source> {
        // A cycle of ports without a processor has no source.
        if depth > MAX_DEPTH * MAX_DEPTH {
            return Vec::new();
        }
        let origins = self.links.get(sink).into_iter().flatten();
        origins.flat_map(|origin| self.origin(origin, depth + 1)).collect()
    }

    fn origin(&self, origin @ (prefix, end): &Point, depth: usize) -> Vec<Source> {
        let Some(processor) = &end.processor else {
            // An input of the workflow, or a port of a nested dataflow, which passes on.
            return match prefix.is_empty() && !end.port.starts_with(OUTPUT_MARK) {
                true => vec![Source::Input(end.port.clone())],
                false => self.sources(origin, depth),
            };
        };
        let point = |port: String| (prefix.clone(), End { processor: Some(processor.clone()), port });
        if let Some(port) = end.port.strip_prefix(INPUT_MARK) {
            return self.sources(&point(port.to_owned()), depth);
        }
        let mut known = self.processors.iter();
        match known.position(|(of, known)| of == prefix && known.name == *processor) {
            Some(index) => vec![Source::Output(index, end.port.clone())],
            None => self.sources(&point(output_port(&end.port)), depth),
        }
    }
}

/// Begins the names of outputs of dataflows among connection points. XML cannot contain this character.
const OUTPUT_MARK: char = '\u{1}';

/// Begins the names of inputs of nested dataflows as seen from inside.
const INPUT_MARK: char = '\u{2}';

fn output_port(name: &str) -> String {
    format!("{OUTPUT_MARK}{name}")
}

impl FlatFlow {
    /// Returns the processors whose outputs reach a processor.
    pub(super) fn earlier(&self, index: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![index];
        while let Some(next) = open.pop() {
            for (_, sources) in &self.processors[next].inputs {
                for source in sources {
                    if let Source::Output(before, _) = source
                        && found.insert(*before)
                    {
                        open.push(*before);
                    }
                }
            }
        }
        found
    }

    /// Returns the processors, each after those that it reads, in the order of the file where that is free. Returns the members of a cycle if there is one.
    pub(super) fn order(&self) -> Result<Vec<usize>, Vec<usize>> {
        let earlier: Vec<BTreeSet<usize>> = (0..self.processors.len()).map(|of| self.earlier(of)).collect();
        let cycle: Vec<usize> = (0..earlier.len()).filter(|of| earlier[*of].contains(of)).collect();
        if !cycle.is_empty() {
            return Err(cycle);
        }
        let mut order: Vec<usize> = Vec::new();
        while order.len() < earlier.len() {
            let is_next =
                |of: &usize| !order.contains(of) && earlier[*of].iter().all(|before| order.contains(before));
            let Some(next) = (0..earlier.len()).find(is_next) else { break };
            order.push(next);
        }
        Ok(order)
    }

    /// Returns the first control link that the data links do not imply. A constant has nothing to wait for.
    pub(super) fn unimplied(&self) -> Option<&FlatCondition> {
        self.conditions.iter().find(|condition| {
            // A nested dataflow contributes all of its processors.
            let members = |name: &str| -> Vec<usize> {
                let inner = format!("{name}-");
                let is_member = |of: &FlatProcessor| of.name == name || of.name.starts_with(&inner);
                (0..self.processors.len()).filter(|index| is_member(&self.processors[*index])).collect()
            };
            let (before, after) = (members(&condition.control), members(&condition.target));
            let is_free = |target: usize| matches!(self.processors[target].activity, Activity::Constant(_));
            let waits = |target: usize| {
                let earlier = self.earlier(target);
                before.iter().all(|control| earlier.contains(control))
            };
            !after.iter().all(|target| is_free(*target) || waits(*target))
        })
    }
}
