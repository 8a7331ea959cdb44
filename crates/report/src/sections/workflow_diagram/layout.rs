//! Layout of the workflow diagram: boxes, frames, and the tracks of regions.

use super::{INSET_PX, LINE_PX, NAMES_PX};
use crate::charts::svg::{shortened, text_width};
use pleach_study::single_run::{self, TaskOutput};
use pleach_workflow::{
    Aggregate, Domain, InputOrigin, RegionDecl, Stage, Task, TaskInput, Workflow, plain_name,
};
use std::collections::{BTreeMap, BTreeSet};

/// Height of a region's slot beside a task, with its name.
const SLOT_PX: f64 = 16.0;
const BETWEEN_TASKS_PX: f64 = 8.0;
const BETWEEN_STAGES_PX: f64 = 14.0;
const STAGE_HEAD_PX: f64 = 30.0;

/// Layout of a picture, in pixels, y downwards.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) nodes: Vec<Node>,
    pub(super) frames: Vec<Frame>,
    pub(super) regions: Vec<Region>,
    pub(super) height: f64,
}

/// Box of a task, or of a source or reader of regions outside the workflow.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) is_task: bool,
    pub(super) name: String,
    pub(super) operation: String,
    /// Lines of the description.
    pub(super) description: Vec<String>,
    pub(super) parameters: Vec<String>,
    /// Text that a browser shows under the pointer.
    pub(super) note: String,
    pub(super) top: f64,
    pub(super) height: f64,
    /// Regions read, then regions written.
    pub(super) slots: Vec<Slot>,
}

/// Place of one region at a node.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) y: f64,
    pub(super) name: String,
    source: Source,
    reads: bool,
}

/// Frame of a stage.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) description: Vec<String>,
    /// Left end of the lines of the description.
    pub(super) text_left: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Path of a region from its writer to its readers.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) writer: String,
    pub(super) readers: Vec<String>,
    pub(super) from: f64,
    /// Places of the readers, ascending. Empty if no task reads the region.
    pub(super) to: Vec<f64>,
    /// Index of the track, from the left.
    pub(super) track: usize,
}

/// Origin of a region, which identifies it independently of its name in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Input(usize),
    Reference,
    Task(TaskOutput),
}

impl Layout {
    /// Lays out the workflow with boxes of width `box_px`.
    pub(super) fn new(workflow: &Workflow, masks: bool, analyzed: &[&str], box_px: f64) -> Self {
        let mut column = Column { workflow, box_px, y: 0.5, nodes: Vec::new() };
        let mut frames = Vec::new();
        column.tile();
        let mut reference_known = false;
        for (number, stage) in workflow.stages.iter().enumerate() {
            let compares = stage.inputs.iter().any(|input| input.origin == InputOrigin::Reference);
            if compares && !reference_known {
                reference_known = true;
                column.reference(masks);
            }
            column.y += BETWEEN_STAGES_PX;
            let top = column.y;
            let description = match &stage.switch {
                Some(switch) => format!("{} (disabled by {} = false)", stage.description, switch.name),
                None => stage.description.clone(),
            };
            let name = shortened(&stage.name, box_px / 2.0);
            // The factor covers the bolder, larger type of stage names.
            let text_left = INSET_PX + text_width(&name) * 1.2 + 10.0;
            let description = lines(words(&description), "", box_px + NAMES_PX + INSET_PX - text_left);
            column.y += STAGE_HEAD_PX + LINE_PX * description.len().saturating_sub(1) as f64;
            for (place, task) in stage.tasks.iter().enumerate() {
                column.task(number, stage, place, task);
            }
            column.y += BETWEEN_TASKS_PX / 2.0;
            frames.push(Frame { name, description, text_left, top, bottom: column.y });
        }
        column.response(analyzed);
        let Column { nodes, y, .. } = column;
        Self { regions: regions(&nodes), nodes, frames, height: y }
    }

    /// Returns the number of tracks.
    pub(super) fn tracks(&self) -> usize {
        self.regions.iter().map(|region| region.track + 1).max().unwrap_or(0)
    }
}

/// Column of boxes, which grows downwards.
struct Column<'a> {
    workflow: &'a Workflow,
    box_px: f64,
    y: f64,
    nodes: Vec<Node>,
}

impl Column<'_> {
    fn tile(&mut self) {
        let slots = self.workflow.inputs.iter().enumerate();
        let slots = slots.map(|(place, region)| (Source::Input(place), typed(region), false));
        self.add(false, "Tile", "", "Read from its file", Vec::new(), slots.collect());
    }

    fn reference(&mut self, masks: bool) {
        let Some(reference) = &self.workflow.reference else { return };
        let slots = vec![(Source::Reference, typed(&reference.region), false)];
        let (made_by, output) = (&self.workflow.stages[reference.stage], reference.output);
        let text = if masks {
            "The mask of each tile from the study file".to_owned()
        } else {
            format!("The {} of {} at default parameters", made_by.outputs[output].region.region, made_by.name)
        };
        self.y += BETWEEN_STAGES_PX;
        self.add(false, "Reference", "", &text, Vec::new(), slots);
    }

    fn task(&mut self, number: usize, stage: &Stage, place: usize, task: &Task) {
        // The regions of several units are one region in the diagram.
        let mut units = BTreeSet::new();
        let reads = task.reads.iter().filter_map(|read| match *read {
            TaskInput::Task { task, output } => {
                let source = Source::Task(TaskOutput { stage: number, task, output });
                Some((source, stage.tasks[task].writes[output].region.clone(), true))
            }
            TaskInput::StageInput(input) => {
                let input = &stage.inputs[input];
                let source = match input.origin {
                    InputOrigin::Input(input) => Source::Input(input),
                    InputOrigin::Reference => Source::Reference,
                    InputOrigin::Stage { stage, output } => {
                        Source::Task(single_run::of_stage(self.workflow, stage, output))
                    }
                };
                let is_unit = input.unit().is_some();
                let name = if is_unit { &task.writes[0].region } else { &input.region.region };
                let is_new = !is_unit || units.insert(source);
                is_new.then(|| (source, name.clone(), true))
            }
        });
        let writes = task.writes.iter().enumerate().map(|(output, region)| {
            (Source::Task(TaskOutput { stage: number, task: place, output }), typed(region), false)
        });
        let slots = reads.collect::<Vec<_>>().into_iter().chain(writes).collect();
        let parameters = stage.task_parameters(task).map(|place| {
            let parameter = &self.workflow.parameters[place];
            match &parameter.domain {
                Domain::Fixed { value } => format!("{} = {value}", parameter.name),
                _ => parameter.name.clone(),
            }
        });
        let parameters: Vec<String> = parameters.collect();
        self.add(true, &task.name, plain_name(&task.operation), &task.description, parameters, slots);
        self.y += BETWEEN_TASKS_PX;
    }

    fn response(&mut self, analyzed: &[&str]) {
        let response = &self.workflow.response;
        let source = Source::Task(single_run::of_stage(self.workflow, response.stage, response.output));
        let table = &self.workflow.stages[response.stage].outputs[response.output].region.region;
        let over = |analyzed: &&str| {
            let found = response.metrics.iter().find(|(name, _)| name == analyzed);
            let over = found.map(|(_, over)| match over {
                Aggregate::Mean => ", mean over tiles",
                Aggregate::Sum => ", sum over tiles",
            });
            format!("{analyzed}{}", over.unwrap_or_default())
        };
        let text = analyzed.iter().map(over).collect::<Vec<_>>().join("; ");
        self.y += BETWEEN_STAGES_PX;
        self.add(false, "Response", "", &text, Vec::new(), vec![(source, table.clone(), true)]);
    }

    fn add(
        &mut self,
        is_task: bool,
        name: &str,
        operation: &str,
        description: &str,
        parameters: Vec<String>,
        slots: Vec<(Source, String, bool)>,
    ) {
        let room = self.box_px - 20.0;
        let note = match parameters.as_slice() {
            [] => format!("{name}: {description}"),
            some => format!("{name}: {description}; {}", some.join(", ")),
        };
        let description = lines(words(description), "", room);
        let parameters = lines(parameters, ",", room);
        let text = LINE_PX * (1 + description.len() + parameters.len()) as f64 + 9.0;
        let height = text.max(SLOT_PX * slots.len() as f64 + 9.0);
        // The first slot is level with the first line of text.
        let first = self.y + SLOT_PX + 2.0;
        let slots = slots.into_iter().enumerate().map(|(place, (source, name, reads))| {
            let y = first + SLOT_PX * place as f64;
            Slot { y, name, source, reads }
        });
        let node = Node {
            is_task,
            name: name.to_owned(),
            operation: operation.to_owned(),
            description,
            parameters,
            note,
            top: self.y,
            height,
            slots: slots.collect(),
        };
        self.nodes.push(node);
        self.y += height;
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Returns the name and type of a region, such as "diff (gray8)".
fn typed(region: &RegionDecl) -> String {
    format!("{} ({})", region.region, region.element)
}

/// Joins parts to lines of at most `room` pixels, with `between` and a space between parts. Shortens parts
/// longer than a line.
fn lines(parts: Vec<String>, between: &str, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let count = parts.len();
    for (place, part) in parts.into_iter().enumerate() {
        let end = if place + 1 < count { between } else { "" };
        let part = format!("{}{end}", shortened(&part, room - text_width(end)));
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(" ") + text_width(&part) <= room => {
                line.push(' ');
                line.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    lines
}

fn regions(nodes: &[Node]) -> Vec<Region> {
    // Ordered by source: this order decides ties in `give_tracks`, and a report must be the same each time.
    let mut regions: BTreeMap<Source, Region> = BTreeMap::new();
    let slots = |reads: bool| {
        let slots = nodes.iter().flat_map(|node| node.slots.iter().map(move |slot| (node, slot)));
        slots.filter(move |(_, slot)| slot.reads == reads)
    };
    for (node, slot) in slots(false) {
        let region = Region {
            name: slot.name.clone(),
            writer: node.name.clone(),
            readers: Vec::new(),
            from: slot.y,
            to: Vec::new(),
            track: 0,
        };
        regions.insert(slot.source, region);
    }
    // Nodes are in workflow order, so readers follow the writer in ascending places.
    for (node, slot) in slots(true) {
        if let Some(region) = regions.get_mut(&slot.source) {
            region.readers.push(node.name.clone());
            region.to.push(slot.y);
        }
    }
    let mut regions: Vec<Region> = regions.into_values().collect();
    give_tracks(&mut regions);
    regions
}

/// Assigns each region with readers the leftmost track that is free along its path.
fn give_tracks(regions: &mut [Region]) {
    let end = |region: &Region| region.to.last().copied().unwrap_or(region.from);
    regions.sort_by(|a, b| (end(a) - a.from).total_cmp(&(end(b) - b.from)).then(a.from.total_cmp(&b.from)));
    let mut taken: Vec<Vec<[f64; 2]>> = Vec::new();
    for region in regions.iter_mut().filter(|region| !region.to.is_empty()) {
        let way = [region.from, end(region)];
        let free = |track: &Vec<[f64; 2]>| track.iter().all(|[from, to]| way[1] < *from || *to < way[0]);
        region.track = taken.iter().position(free).unwrap_or(taken.len());
        if region.track == taken.len() {
            taken.push(Vec::new());
        }
        taken[region.track].push(way);
    }
}
