//! Reads the XML of a Taverna 2 workflow (`t2flow`) into dataflows, each element with its line.

use super::super::error::{Place, WorkflowImportError, WorkflowImportProblem, failed};
use roxmltree::{Document, Node};
use std::path::Path;

/// The dataflows of a file, the outermost first.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) flows: Vec<Dataflow>,
}

/// A workflow, which other ones may nest.
#[derive(Debug)]
pub(super) struct Dataflow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) inputs: Vec<FlowPort>,
    pub(super) outputs: Vec<FlowPort>,
    pub(super) processors: Vec<Processor>,
    /// Control links.
    pub(super) conditions: Vec<ControlLink>,
    pub(super) links: Vec<Link>,
}

/// An input or output of a dataflow.
#[derive(Debug)]
pub(super) struct FlowPort {
    pub(super) name: String,
    pub(super) line: u32,
    /// Texts of the port's annotations.
    pub(super) texts: Vec<String>,
}

/// A step of a dataflow.
#[derive(Debug)]
pub(super) struct Processor {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) activity: Activity,
    /// Ports of the activity for ports of the processor.
    pub(super) input_map: Vec<(String, String)>,
    pub(super) output_map: Vec<(String, String)>,
    /// Ports whose lists advance together.
    pub(super) dots: Vec<DotGroup>,
}

/// Ports below one `dot` of an iteration strategy.
#[derive(Clone, Debug)]
pub(super) struct DotGroup {
    pub(super) ports: Vec<String>,
    pub(super) line: u32,
}

/// The program of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// A command line.
    Tool(String),
    /// A text constant.
    Constant(String),
    /// The dataflow with this id.
    Nested(String),
    /// Anything else, by its kind.
    Other(String),
}

/// A link that orders two processors without data.
#[derive(Debug)]
pub(super) struct ControlLink {
    pub(super) control: String,
    pub(super) target: String,
    pub(super) line: u32,
}

/// An end of a data link: a port of the dataflow, or of a processor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) processor: Option<String>,
    pub(super) port: String,
}

/// A data link.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) source: End,
    pub(super) sink: End,
    pub(super) line: u32,
}

/// Returns whether the text is XML of Taverna 2.
pub(super) fn is_t2flow(text: &str) -> bool {
    let head: String = text.chars().take(4_000).collect();
    head.contains("http://taverna.sf.net/2008/xml/t2flow")
}

/// Parses a file.
pub(super) fn parse(file: &Path, text: &str) -> Result<Flows, WorkflowImportError> {
    let malformed = |place, message: String| failed(file, place, WorkflowImportProblem::Malformed(message));
    let document = Document::parse(text).map_err(|error| {
        let line = error.pos().row;
        malformed(Place::Line(line), format!("no XML: {}", error.to_string().replace('\n', " ")))
    })?;
    let reader = Reader { file, document: &document };
    let mut flows = Vec::new();
    for node in reader.children(document.root_element(), "dataflow") {
        let flow = reader.dataflow(node)?;
        let place = if node.attribute("role") == Some("top") { 0 } else { flows.len() };
        flows.insert(place, flow);
    }
    if flows.is_empty() {
        let message = "no element <dataflow>; a Taverna 2 workflow is allowed".to_owned();
        return Err(malformed(Place::Line(1), message));
    }
    Ok(Flows { flows })
}

struct Reader<'a, 'd> {
    file: &'a Path,
    document: &'a Document<'d>,
}

impl<'d> Reader<'_, 'd> {
    fn line(&self, node: Node<'_, '_>) -> u32 {
        self.document.text_pos_at(node.range().start).row
    }

    fn children<'n>(&self, node: Node<'n, 'd>, name: &'n str) -> impl Iterator<Item = Node<'n, 'd>> {
        node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
    }

    fn child<'n>(&self, node: Node<'n, 'd>, name: &'n str) -> Option<Node<'n, 'd>> {
        self.children(node, name).next()
    }

    /// Returns the grandchildren of this name below a child of this name.
    fn list<'n>(&self, node: Node<'n, 'd>, outer: &'n str, inner: &'n str) -> Vec<Node<'n, 'd>> {
        self.child(node, outer).map(|list| self.children(list, inner).collect()).unwrap_or_default()
    }

    fn text(&self, node: Node<'_, 'd>, name: &str) -> Option<String> {
        let found = node.children().find(|child| child.is_element() && child.tag_name().name() == name)?;
        Some(found.text().unwrap_or_default().trim().to_owned())
    }

    fn needed(&self, node: Node<'_, 'd>, name: &str) -> Result<String, WorkflowImportError> {
        let element = node.tag_name().name();
        match self.text(node, name).filter(|text| !text.is_empty()) {
            Some(text) => Ok(text),
            None => {
                let message = format!("element <{element}> without <{name}>; a name is needed");
                let place = Place::Line(self.line(node));
                Err(failed(self.file, place, WorkflowImportProblem::Malformed(message)))
            }
        }
    }

    fn dataflow(&self, node: Node<'_, 'd>) -> Result<Dataflow, WorkflowImportError> {
        let mut flow = Dataflow {
            id: node.attribute("id").unwrap_or_default().to_owned(),
            name: self.needed(node, "name")?,
            line: self.line(node),
            inputs: self.ports(node, "inputPorts")?,
            outputs: self.ports(node, "outputPorts")?,
            processors: Vec::new(),
            conditions: Vec::new(),
            links: Vec::new(),
        };
        for processor in self.list(node, "processors", "processor") {
            flow.processors.push(self.processor(processor)?);
        }
        for condition in self.list(node, "conditions", "condition") {
            let end = |name| condition.attribute(name).unwrap_or_default().to_owned();
            let line = self.line(condition);
            flow.conditions.push(ControlLink { control: end("control"), target: end("target"), line });
        }
        for link in self.list(node, "datalinks", "datalink") {
            let (source, sink) = (self.end(link, "source")?, self.end(link, "sink")?);
            flow.links.push(Link { source, sink, line: self.line(link) });
        }
        Ok(flow)
    }

    fn ports(&self, node: Node<'_, 'd>, list: &str) -> Result<Vec<FlowPort>, WorkflowImportError> {
        let mut ports = Vec::new();
        for port in self.list(node, list, "port") {
            let texts = port.descendants().filter(|of| of.is_element() && of.tag_name().name() == "text");
            let texts = texts.filter_map(|of| of.text()).map(|text| text.trim().to_owned());
            let texts = texts.filter(|text| !text.is_empty()).collect();
            ports.push(FlowPort { name: self.needed(port, "name")?, line: self.line(port), texts });
        }
        Ok(ports)
    }

    fn end(&self, link: Node<'_, 'd>, name: &str) -> Result<End, WorkflowImportError> {
        let Some(end) = link.children().find(|child| child.is_element() && child.tag_name().name() == name)
        else {
            let message = format!("element <datalink> without <{name}>; both ends are needed");
            let place = Place::Line(self.line(link));
            return Err(failed(self.file, place, WorkflowImportProblem::Malformed(message)));
        };
        Ok(End { processor: self.text(end, "processor"), port: self.needed(end, "port")? })
    }

    fn processor(&self, node: Node<'_, 'd>) -> Result<Processor, WorkflowImportError> {
        let names = |list: &str| -> Result<Vec<String>, WorkflowImportError> {
            self.list(node, list, "port").into_iter().map(|port| self.needed(port, "name")).collect()
        };
        let activities = self.list(node, "activities", "activity");
        let activity = match activities.as_slice() {
            [activity] => self.activity(*activity),
            [] => Activity::Other("no activity".to_owned()),
            [..] => Activity::Other("alternative activities".to_owned()),
        };
        let maps = |list: &str| -> Vec<(String, String)> {
            let maps =
                activities.first().map(|activity| self.list(*activity, list, "map")).unwrap_or_default();
            let end = |map: Node<'_, '_>, name| map.attribute(name).unwrap_or_default().to_owned();
            maps.into_iter().map(|map| (end(map, "from"), end(map, "to"))).collect()
        };
        let dots = node.descendants().filter(|of| of.is_element() && of.tag_name().name() == "dot");
        let ports = |dot: Node<'_, '_>| {
            let ports = dot.descendants().filter(|of| of.is_element() && of.tag_name().name() == "port");
            ports.filter_map(|port| port.attribute("name")).map(str::to_owned).collect()
        };
        Ok(Processor {
            name: self.needed(node, "name")?,
            line: self.line(node),
            inputs: names("inputPorts")?,
            outputs: names("outputPorts")?,
            activity,
            input_map: maps("inputMap"),
            output_map: maps("outputMap"),
            dots: dots.map(|dot| DotGroup { ports: ports(dot), line: self.line(dot) }).collect(),
        })
    }

    fn activity(&self, node: Node<'_, 'd>) -> Activity {
        let class = self.text(node, "class").unwrap_or_default();
        let class = class.rsplit('.').next().unwrap_or_default();
        let kind = class.strip_suffix("Activity").unwrap_or(class).to_ascii_lowercase();
        let bean = self.child(node, "configBean");
        let find = |name: &str| {
            let mut below = bean.into_iter().flat_map(|bean| bean.descendants());
            below.find(|of| of.is_element() && of.tag_name().name() == name)
        };
        let text = |name: &str| find(name).and_then(|of| of.text()).map(|text| text.trim().to_owned());
        match kind.as_str() {
            "externaltool" => text("command").filter(|command| !command.is_empty()).map(Activity::Tool),
            "stringconstant" => Some(Activity::Constant(text("value").unwrap_or_default())),
            "dataflow" => {
                find("dataflow").and_then(|of| of.attribute("ref")).map(|id| Activity::Nested(id.to_owned()))
            }
            _ => None,
        }
        .unwrap_or(Activity::Other(kind))
    }
}
