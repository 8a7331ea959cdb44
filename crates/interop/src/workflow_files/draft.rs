//! Workflow and stage descriptors of pleach before they are written.

use super::json_text::Json;
use super::map::{MappedParameter, WorkflowMap};
use pleach_regions::ElementType;
use pleach_workflow::{Registry, ValueType};
use std::collections::BTreeSet;

/// A parameter of a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParameterDraft {
    pub(crate) name: String,
    /// Argument of the operation, if its name differs.
    pub(crate) argument: Option<String>,
    pub(crate) value_type: ValueType,
    pub(crate) default: Option<f64>,
    pub(crate) domain: Option<DomainDraft>,
}

/// Values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DomainDraft {
    Fixed(f64),
    Values(Vec<f64>),
    Range(Vec<f64>, Option<f64>),
}

impl ParameterDraft {
    /// Replaces the values by those of the map.
    pub(crate) fn with_map(mut self, map: &WorkflowMap) -> Self {
        let Some(mapped) = map.parameter(&self.name) else { return self };
        let MappedParameter { value_type, default, range, step, values, fixed } = mapped.clone();
        self.value_type = value_type.unwrap_or(self.value_type);
        let domain = range.map(|range| DomainDraft::Range(range, step));
        let domain = domain.or(values.map(DomainDraft::Values)).or(fixed.map(DomainDraft::Fixed));
        self.default = default.or(self.default);
        self.domain = domain.or(self.domain);
        self
    }

    /// Returns whether a study can draw or fix the parameter's value.
    pub(crate) fn is_complete(&self) -> bool {
        match self.domain {
            None => false,
            Some(DomainDraft::Fixed(_)) => true,
            Some(_) => self.default.is_some(),
        }
    }

    fn number(&self, number: f64) -> Json {
        match self.value_type {
            ValueType::Integer if number.fract() == 0.0 && number.abs() < 1e15 => {
                Json::Integer(number as i64)
            }
            _ => Json::Real(number),
        }
    }

    /// Returns the JSON of the first use, which defines the parameter, or of a later one.
    fn json(&self, defines: bool) -> Json {
        let mut fields = vec![("name", Json::text(&self.name))];
        fields.extend(self.argument.iter().map(|argument| ("argument", Json::text(argument))));
        if defines {
            fields.push(("type", Json::text(self.value_type.to_string())));
            let fixed = matches!(self.domain, Some(DomainDraft::Fixed(_)));
            let default = self.default.filter(|_| !fixed);
            fields.extend(default.map(|default| ("default", self.number(default))));
            let list = |numbers: &[f64]| Json::List(numbers.iter().map(|n| self.number(*n)).collect());
            match &self.domain {
                None => {}
                Some(DomainDraft::Fixed(value)) => fields.push(("fixed", self.number(*value))),
                Some(DomainDraft::Values(values)) => fields.push(("values", list(values))),
                Some(DomainDraft::Range(range, step)) => {
                    fields.push(("range", list(range)));
                    fields.extend(step.map(|step| ("step", self.number(step))));
                }
            }
        }
        Json::Object(fields)
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskDraft {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) operation: String,
    pub(crate) version: u32,
    pub(crate) parameters: Vec<ParameterDraft>,
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
}

impl TaskDraft {
    fn json(&self, defined: &mut BTreeSet<String>) -> Json {
        let mut fields = vec![
            ("task", Json::text(&self.name)),
            ("description", Json::text(&self.description)),
            ("operation", Json::text(&self.operation)),
            ("version", Json::Integer(i64::from(self.version))),
        ];
        if !self.parameters.is_empty() {
            let parameters = self.parameters.iter();
            let parameters = parameters.map(|of| of.json(defined.insert(of.name.clone())));
            fields.push(("parameters", Json::List(parameters.collect())));
        }
        fields.push(("reads", Json::texts(&self.reads)));
        fields.push(("writes", Json::texts(&self.writes)));
        Json::Object(fields)
    }

    /// Returns the type of a region that the task reads or writes, from the ports of its operation. `None` if the
    /// program lacks the operation.
    pub(crate) fn port_type(&self, region: &str, registry: &Registry) -> Option<ElementType> {
        let operation = registry.get(&self.operation, self.version)?;
        let place = |names: &[String]| names.iter().position(|name| name == region);
        let written = place(&self.writes).and_then(|place| operation.outputs().get(place));
        let read = || place(&self.reads).and_then(|place| operation.inputs().get(place));
        written.or_else(read).map(|port| port.element)
    }
}

/// A region with its type.
pub(crate) type RegionDraft = (String, ElementType);

/// A stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StageDraft {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) inputs: Vec<RegionDraft>,
    pub(crate) outputs: Vec<RegionDraft>,
    pub(crate) tasks: Vec<TaskDraft>,
}

impl StageDraft {
    /// Returns the name of the stage's file.
    pub(crate) fn file(&self) -> String {
        let plain =
            |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        format!("{}.json", self.name.chars().map(plain).collect::<String>())
    }

    /// Returns the text of the descriptor. `defined` has the parameters that earlier stages define.
    pub(crate) fn text(&self, defined: &mut BTreeSet<String>) -> String {
        Json::Object(vec![
            ("stage", Json::text(&self.name)),
            ("description", Json::text(&self.description)),
            ("inputs", regions(&self.inputs)),
            ("outputs", regions(&self.outputs)),
            ("tasks", Json::List(self.tasks.iter().map(|task| task.json(defined)).collect())),
        ])
        .document()
    }
}

fn region((name, element): &RegionDraft) -> Json {
    Json::Object(vec![("region", Json::text(name)), ("type", Json::text(element.name()))])
}

fn regions(list: &[RegionDraft]) -> Json {
    Json::List(list.iter().map(region).collect())
}

/// A workflow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkflowDraft {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) inputs: Vec<RegionDraft>,
    /// The reference, and the output that replaces it at default values.
    pub(crate) reference: Option<(RegionDraft, String)>,
    /// The stages, each after those that it reads.
    pub(crate) stages: Vec<StageDraft>,
    /// Tables of responses with their metrics.
    pub(crate) responses: Vec<(String, Vec<String>)>,
}

/// Name of the workflow's file.
pub(crate) const WORKFLOW_FILE: &str = "workflow.json";

impl WorkflowDraft {
    /// Returns the files: name and text, the workflow's first.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let stage = |stage: &StageDraft| Json::Object(vec![("descriptor", Json::text(stage.file()))]);
        let metric = |name: &String| {
            Json::Object(vec![("metric", Json::text(name)), ("over_tiles", Json::text("mean"))])
        };
        let response = |(region, metrics): &(String, Vec<String>)| {
            let metrics = Json::List(metrics.iter().map(metric).collect());
            Json::Object(vec![("region", Json::text(region)), ("metrics", metrics)])
        };
        let mut fields = vec![
            ("workflow", Json::text(&self.name)),
            ("description", Json::text(&self.description)),
            ("inputs", regions(&self.inputs)),
        ];
        if let Some(((name, element), output)) = &self.reference {
            let reference = vec![
                ("region", Json::text(name)),
                ("type", Json::text(element.name())),
                ("output", Json::text(output)),
            ];
            fields.push(("reference", Json::Object(reference)));
        }
        fields.push(("stages", Json::List(self.stages.iter().map(stage).collect())));
        fields.push(("response", Json::List(self.responses.iter().map(response).collect())));
        let mut defined = BTreeSet::new();
        let mut files = vec![(WORKFLOW_FILE.to_owned(), Json::Object(fields).document())];
        files.extend(self.stages.iter().map(|stage| (stage.file(), stage.text(&mut defined))));
        files
    }
}
