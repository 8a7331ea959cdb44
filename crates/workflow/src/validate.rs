//! Converts descriptors to a checked [`Workflow`]. This file joins stages, and [`stage`] checks one of them.

mod bounds;
mod stage;
mod topological_order;
mod unroll;

use crate::descriptor::{
    Files, InputDescriptor, RegionDescriptor, StageDescriptor, WorkflowDescriptor, escaped,
};
use crate::error::{DescriptorError, Problem};
use crate::operation::Registry;
use crate::study::{ANNOTATION_RULES_KEY, ANNOTATIONS_KEY, SLIDE_KEYS, VOLUME_KEYS};
use crate::workflow::{
    Aggregate, InputOrigin, OptionalStage, ReferenceDecl, RegionDecl, ResponseTable, Stage, StageInput,
    Workflow,
};
use pleach_regions::ElementType;
use std::path::{Path, PathBuf};

/// Adds the location to errors: the file being checked.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostics {
    file: PathBuf,
}

impl Diagnostics {
    fn fail<T>(&self, pointer: impl Into<String>, problem: Problem) -> Result<T, DescriptorError> {
        Err(DescriptorError { file: self.file.clone(), pointer: pointer.into(), problem: Box::new(problem) })
    }
}

/// Maximum number of stages, tasks or regions in one list: names are looked up linearly, and 10,000 is 100 times the
/// largest workflow.
const MAX_ENTRIES: usize = 10_000;

impl Diagnostics {
    /// Rejects a list that is too long for linear lookups.
    fn limit(&self, pointer: &str, what: &'static str, found: usize) -> Result<(), DescriptorError> {
        let problem = Problem::TooMany { what, found, most: MAX_ENTRIES };
        if found > MAX_ENTRIES { self.fail(pointer, problem) } else { Ok(()) }
    }
}

/// A stage with its file and its JSON pointer in the workflow file.
struct Entry {
    at: Diagnostics,
    pointer: String,
    descriptor: StageDescriptor,
}

impl Workflow {
    /// Reads a workflow file and its stage descriptors (relative to it), and checks all of them.
    ///
    /// # Errors
    /// Returns the first [`DescriptorError`] found.
    pub fn load(file: &Path, registry: &Registry) -> Result<Self, DescriptorError> {
        workflow(file, Files::Disk, registry)
    }

    /// Loads a workflow from files embedded in the program. The first one is the workflow file.
    ///
    /// # Errors
    /// Returns the first [`DescriptorError`] found.
    pub fn embedded(files: &[(&str, &str)], registry: &Registry) -> Result<Self, DescriptorError> {
        let first = files.first().map_or("workflow.json", |(name, _)| *name);
        workflow(Path::new(first), Files::Embedded(files), registry)
    }
}

fn workflow(file: &Path, files: Files, registry: &Registry) -> Result<Workflow, DescriptorError> {
    let at = Diagnostics { file: file.to_owned() };
    let workflow: WorkflowDescriptor = files.parse(file)?;
    if workflow.stages.is_empty() {
        return at.fail("/stages", Problem::Empty { what: "stages" });
    }
    at.limit("/stages", "stages", workflow.stages.len())?;
    at.limit("/inputs", "inputs", workflow.inputs.len())?;
    for (place, response) in workflow.response.each() {
        at.limit(&format!("{place}/metrics"), "metrics", response.metrics.len())?;
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut entries = Vec::new();
    for (index, entry) in workflow.stages.iter().enumerate() {
        let path = folder.join(&entry.descriptor);
        let descriptor: StageDescriptor = files.parse(&path)?;
        let pointer = format!("/stages/{index}");
        if entries.iter().any(|other: &Entry| other.descriptor.stage == descriptor.stage) {
            return at.fail(pointer, Problem::DuplicateName { what: "stages", name: descriptor.stage });
        }
        entries.push(Entry { at: Diagnostics { file: path }, pointer, descriptor });
    }

    let regions = Regions::collect(&at, &workflow, &entries)?;
    let mut origins = Vec::new();
    for entry in &entries {
        origins.push(stage_origins(entry, &regions)?);
    }
    // The run at default values provides the reference, so every reader of the reference waits for the stage that
    // writes it.
    let reference =
        workflow.reference.as_ref().and_then(|r| regions.find(&r.output)).map(|(.., origin)| *origin);
    let order = stage_order(&at, &entries, &origins, reference)?;
    let place = |stage: usize| order.iter().position(|&s| s == stage).unwrap_or(stage);

    let mut parameters = stage::Parameters::default();
    let (mut stages, mut once) = (Vec::new(), Vec::new());
    // In topological order: `pleach-reuse` refuses a stage that reads a later one.
    for &index in &order {
        let entry = &entries[index];
        let mut stage = stage::check(&entry.at, &entry.descriptor, registry, &mut parameters)?;
        for (input, origin) in stage.inputs.iter_mut().zip(&origins[index]) {
            input.origin = match *origin {
                InputOrigin::Stage { stage, output } => InputOrigin::Stage { stage: place(stage), output },
                other => other,
            };
        }
        if let Err((input, problem)) = bounds::check(&stage, &stages, &once) {
            let region = stage.inputs[input].region.region.clone();
            return entry.at.fail(format!("/inputs/{input}/bounds"), Problem::Bounds { region, problem });
        }
        stage.switch = switch(&at, &workflow, index, entry)?;
        once.push(stage.runs_once(&once, |_| false));
        stages.push(stage);
    }
    stage::define_unread(&at, &workflow.unread, &mut parameters)?;
    let mut workflow = finish(&at, workflow, stages)?;
    workflow.parameters = parameters.into_list();
    Ok(workflow)
}

/// Checks a stage descriptor on its own.
///
/// # Errors
/// Returns the first [`DescriptorError`] found.
pub fn stage_file(file: &Path, registry: &Registry) -> Result<Stage, DescriptorError> {
    let descriptor: StageDescriptor = Files::Disk.parse(file)?;
    let at = Diagnostics { file: file.to_owned() };
    stage::check(&at, &descriptor, registry, &mut stage::Parameters::default())
}

/// All regions that a stage may read: workflow inputs, the reference, and outputs of stages.
struct Regions {
    known: Vec<(String, ElementType, InputOrigin)>,
    /// Names of all stages, for messages.
    stages: Vec<String>,
}

impl Regions {
    fn collect(
        at: &Diagnostics,
        workflow: &WorkflowDescriptor,
        entries: &[Entry],
    ) -> Result<Self, DescriptorError> {
        let stages = entries.iter().map(|entry| entry.descriptor.stage.clone()).collect();
        let mut regions = Self { known: Vec::new(), stages };
        for (index, input) in workflow.inputs.iter().enumerate() {
            let of = (input.region.as_str(), input.element);
            regions.add(at, &format!("/inputs/{index}/region"), of, InputOrigin::Input(index))?;
        }
        if let Some(reference) = &workflow.reference {
            let of = (reference.region.as_str(), reference.element);
            regions.add(at, "/reference/region", of, InputOrigin::Reference)?;
        }
        for (stage, entry) in entries.iter().enumerate() {
            for (output, region) in entry.descriptor.outputs.iter().enumerate() {
                let pointer = format!("/outputs/{output}/region");
                let of = (region.region.as_str(), region.element);
                regions.add(&entry.at, &pointer, of, InputOrigin::Stage { stage, output })?;
            }
        }
        Ok(regions)
    }

    fn add(
        &mut self,
        at: &Diagnostics,
        pointer: &str,
        (region, element): (&str, ElementType),
        origin: InputOrigin,
    ) -> Result<(), DescriptorError> {
        if let Some((_, _, first)) = self.find(region) {
            let first = match *first {
                InputOrigin::Input(_) => "the workflow's inputs".to_owned(),
                InputOrigin::Reference => "the reference".to_owned(),
                InputOrigin::Stage { stage, .. } => format!("stage \"{}\"", self.stages[stage]),
            };
            let region = region.to_owned();
            return at.fail(pointer, Problem::DuplicateWriter { region, first });
        }
        self.known.push((region.to_owned(), element, origin));
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&(String, ElementType, InputOrigin)> {
        self.known.iter().find(|(known, ..)| known == name)
    }
}

fn stage_origins(entry: &Entry, regions: &Regions) -> Result<Vec<InputOrigin>, DescriptorError> {
    let mut origins = Vec::new();
    for (index, input) in entry.descriptor.inputs.iter().enumerate() {
        let pointer = format!("/inputs/{index}/region");
        let Some(&(_, found, origin)) = regions.find(&input.region) else {
            let known = regions.known.iter().map(|(name, ..)| name.clone()).collect();
            return entry.at.fail(pointer, Problem::DanglingRead { region: input.region.clone(), known });
        };
        if !input.element.accepts(found) {
            let reader = format!("stage \"{}\"", entry.descriptor.stage);
            let (region, wanted) = (input.region.clone(), input.element);
            return entry.at.fail(pointer, Problem::TypesDiffer { region, found, wanted, reader });
        }
        origins.push(origin);
    }
    Ok(origins)
}

fn stage_order(
    at: &Diagnostics,
    entries: &[Entry],
    origins: &[Vec<InputOrigin>],
    reference: Option<InputOrigin>,
) -> Result<Vec<usize>, DescriptorError> {
    let waits_for: Vec<Vec<usize>> = origins
        .iter()
        .map(|inputs| {
            let stage = |origin: &InputOrigin| match (*origin, reference) {
                (InputOrigin::Stage { stage, .. }, _) => Some(stage),
                (InputOrigin::Reference, Some(InputOrigin::Stage { stage, .. })) => Some(stage),
                (InputOrigin::Input(_) | InputOrigin::Reference, _) => None,
            };
            inputs.iter().filter_map(stage).collect()
        })
        .collect();
    topological_order::order(&waits_for).or_else(|cycle| {
        let pointer = entries[cycle[0]].pointer.clone();
        let members = cycle.iter().chain(cycle.first());
        let members = members.map(|&stage| entries[stage].descriptor.stage.clone()).collect();
        at.fail(pointer, Problem::Cycle { what: "stages", members })
    })
}

fn switch(
    at: &Diagnostics,
    workflow: &WorkflowDescriptor,
    index: usize,
    entry: &Entry,
) -> Result<Option<OptionalStage>, DescriptorError> {
    let written = &workflow.stages[index];
    let outputs = &entry.descriptor.outputs;
    let stray = written
        .bypass
        .keys()
        .find(|region| written.switch.is_none() || !outputs.iter().any(|output| output.region == **region));
    let place = |region: &str| format!("{}/bypass/{}", entry.pointer, escaped(region));
    if let Some(region) = stray {
        return at.fail(place(region), Problem::StrayBypass { region: region.clone() });
    }
    let Some(name) = &written.switch else { return Ok(None) };
    // Switches share the section `[input]` of the study file with these keys.
    if ["tiles", "reference", ANNOTATIONS_KEY, ANNOTATION_RULES_KEY]
        .iter()
        .chain(&SLIDE_KEYS)
        .chain(&VOLUME_KEYS)
        .any(|key| key == name)
    {
        let pointer = format!("{}/switch", entry.pointer);
        return at.fail(pointer, Problem::DuplicateName { what: "keys of [input]", name: name.clone() });
    }
    let mut bypass = Vec::new();
    for output in outputs {
        let Some(instead) = written.bypass.get(&output.region) else {
            let (stage, region) = (entry.descriptor.stage.clone(), output.region.clone());
            return at.fail(format!("{}/bypass", entry.pointer), Problem::NoBypass { stage, region });
        };
        let Some(input) = workflow.inputs.iter().position(|input| input.region == *instead) else {
            let known = workflow.inputs.iter().map(|input| input.region.clone()).collect();
            let (region, instead) = (output.region.clone(), instead.clone());
            return at.fail(place(&output.region), Problem::BadBypass { region, instead, known });
        };
        let found = workflow.inputs[input].element;
        if found != output.element {
            let reader = format!("the bypass of \"{}\"", output.region);
            let (region, wanted) = (instead.clone(), output.element);
            return at.fail(place(&output.region), Problem::TypesDiffer { region, found, wanted, reader });
        }
        bypass.push(input);
    }
    Ok(Some(OptionalStage { name: name.clone(), bypass }))
}

/// Resolves the reference and the responses, which name outputs of stages.
fn finish(
    at: &Diagnostics,
    workflow: WorkflowDescriptor,
    stages: Vec<Stage>,
) -> Result<Workflow, DescriptorError> {
    let find = |name: &str, wanted: ElementType, pointer: &str, reader: &str| {
        // A study cannot switch off the stage that it measures.
        let always = || stages.iter().enumerate().filter(|(_, stage)| stage.switch.is_none());
        let found = always().find_map(|(number, stage)| {
            let output = stage.outputs.iter().position(|output| output.region.region == name)?;
            Some((number, output))
        });
        let Some((stage, output)) = found else {
            let outputs = always().flat_map(|(_, stage)| &stage.outputs);
            let known = outputs.map(|output| output.region.region.clone()).collect();
            return at.fail(pointer, Problem::NoSuchRegion { region: name.to_owned(), known });
        };
        let found = stages[stage].outputs[output].region.element;
        if found != wanted {
            let (region, reader) = (name.to_owned(), reader.to_owned());
            return at.fail(pointer, Problem::TypesDiffer { region, found, wanted, reader });
        }
        Ok((stage, output))
    };
    let reference = match &workflow.reference {
        None => None,
        Some(reference) => {
            let (stage, output) =
                find(&reference.output, reference.element, "/reference/output", "the reference")?;
            let region = RegionDecl { region: reference.region.clone(), element: reference.element };
            Some(ReferenceDecl { region, stage, output })
        }
    };
    let mut responses: Vec<ResponseTable> = Vec::new();
    for (place, written) in workflow.response.each() {
        let (stage, output) =
            find(&written.region, ElementType::Table, &format!("{place}/region"), "the response")?;
        if written.metrics.is_empty() {
            return at.fail(format!("{place}/metrics"), Problem::Empty { what: "metrics" });
        }
        let mut metrics: Vec<(String, Aggregate)> = Vec::new();
        for (number, column) in written.metrics.iter().enumerate() {
            // A study names a metric without its table, so names must be unique over all tables.
            let mut taken = responses.iter().flat_map(|other| &other.metrics).chain(&metrics);
            if taken.any(|(name, _)| *name == column.metric) {
                let pointer = format!("{place}/metrics/{number}/metric");
                let name = column.metric.clone();
                return at.fail(pointer, Problem::DuplicateName { what: "metrics", name });
            }
            metrics.push((column.metric.clone(), column.over_tiles));
        }
        responses.push(ResponseTable { stage, output, metrics });
    }
    if responses.is_empty() {
        return at.fail("/response", Problem::Empty { what: "responses" });
    }
    let response = responses.remove(0);
    Ok(Workflow {
        name: workflow.workflow,
        description: workflow.description,
        inputs: workflow.inputs.into_iter().map(RegionDecl::from).collect(),
        reference,
        parameters: Vec::new(),
        stages,
        response,
        alternatives: responses,
        layouts: Vec::new(),
    })
}

impl From<RegionDescriptor> for RegionDecl {
    fn from(descriptor: RegionDescriptor) -> Self {
        Self { region: descriptor.region, element: descriptor.element }
    }
}

impl From<&InputDescriptor> for StageInput {
    /// The origin is a placeholder, set once all stages are known.
    fn from(descriptor: &InputDescriptor) -> Self {
        let region = RegionDecl { region: descriptor.name().to_owned(), element: descriptor.element };
        Self { region, origin: InputOrigin::Reference, bounds: descriptor.bounds.into() }
    }
}
