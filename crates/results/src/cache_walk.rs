//! Results known before a study starts: the task cache of `--cache`, the content of input files, and
//! responses that follow from traces alone.
//!
//! A run with a trace for every task is walked from the digest of its tile to its response without reading an
//! image. `pleach-actors` (`task_cache`) writes traces and looks them up.

use crate::journal::JournaledResponse;
use pleach_cache::files::{FileSystem, OsFileSystem, SharedDisk};
use pleach_cache::{Access, Cache, CacheError, CacheKey, Limits, Objects, Output, PriorResults, Trace};
use pleach_dispatch::message::InputFile;
use pleach_dispatch::stage::task_key::{TaskInputId, key};
use pleach_objects::S3Location;
use pleach_planner::memory_size::MemorySize;
use pleach_regions::{DataRegion, Digest, ElementType, RegionIdentity, RegionKey, Table, TaskKey};
use pleach_study::single_run::TaskOutput;
use pleach_study::{PreparedStudy, inputs};
use pleach_workflow::{
    AnnotationPart, AnnotationRules, Decision, InputOrigin, ReferenceSource, SlideTile, Stage, Task,
    TaskInput, Value, VolumeBlock, guard_value,
};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// Cache of task results: its folder and limits.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions<'a> {
    /// Folder of the cache, or its bucket as in `s3://BUCKET/PREFIX`.
    pub folder: &'a Path,
    /// Maximum size. `None`: 10 GB.
    pub size: Option<MemorySize>,
    /// Maximum size of the results of each user. `None`: no limit.
    pub user_quota: Option<MemorySize>,
    /// Days without use after which results are removed. `None`: never.
    pub age_days: Option<NonZeroU32>,
}

/// The cache of `--cache` cannot be opened.
#[derive(Debug, Error)]
#[error("--cache {}: {cause}", folder.display())]
pub struct CacheFolderError {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// Error of the cache.
    #[source]
    pub(crate) cause: CacheError,
}

/// Opens the cache of `--cache`.
///
/// # Errors
/// [`CacheFolderError`] if the folder is no cache, has another format version or cannot be read.
pub fn open(options: CacheOptions<'_>) -> Result<Arc<Cache>, CacheFolderError> {
    let folder = options.folder;
    let refuse = |cause| CacheFolderError { folder: folder.to_owned(), cause };
    let day = Duration::from_secs(24 * 60 * 60);
    let age = options.age_days.map(|days| day.saturating_mul(days.get()));
    let bytes = options.size.map_or(DEFAULT_BYTES, MemorySize::bytes);
    let user_bytes = options.user_quota.map(MemorySize::bytes);
    let limits = Limits { bytes, age, user_bytes };
    let cache = match bucket(folder).map_err(refuse)? {
        Some(Bucket { objects, address }) => {
            Cache::open_objects(objects, &address, limits, Access::Write, SystemTime::now())
        }
        None => Cache::open_on(files_of(folder), folder, limits, Access::Write, SystemTime::now()),
    };
    Ok(Arc::new(cache.map_err(refuse)?))
}

/// Returns whether the location of a cache is a bucket, as in `s3://BUCKET/PREFIX`, and no folder.
#[must_use]
pub fn is_bucket(location: &Path) -> bool {
    location.to_str().is_some_and(|text| text.starts_with("s3://"))
}

/// Objects of a cache in a bucket.
struct Bucket {
    objects: Arc<dyn Objects>,
    address: String,
}

/// Connects to the bucket of a cache. `None` for a folder.
fn bucket(location: &Path) -> Result<Option<Bucket>, CacheError> {
    let Some(text) = location.to_str().filter(|_| is_bucket(location)) else { return Ok(None) };
    let refuse = |source| CacheError::Io { path: location.to_owned(), source };
    let parsed = S3Location::parse(text);
    let parsed = parsed.map_err(|error| refuse(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let (objects, address) = (pleach_objects::open_task_cache(&parsed).map_err(refuse)?, parsed.address());
    Ok(Some(Bucket { objects, address }))
}

/// Returns the file system for a folder: with files by the umask, if its group can write to it. A folder that everyone can write
/// to is no folder of a group.
fn files_of(folder: &Path) -> Arc<dyn FileSystem> {
    let is_shared = fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o022 == 0o020);
    if is_shared { Arc::new(SharedDisk) } else { Arc::new(OsFileSystem) }
}

/// Opens a cache read-only. Does not create a missing folder.
///
/// # Errors
/// As [`open`]. Also if the folder is missing.
pub fn open_to_read(folder: &Path) -> Result<Cache, CacheFolderError> {
    let refuse = |cause| CacheFolderError { folder: folder.to_owned(), cause };
    let limits = Limits { bytes: u64::MAX, ..Limits::default() };
    let (now, access) = (SystemTime::now(), Access::Read);
    let cache = match bucket(folder).map_err(refuse)? {
        Some(Bucket { objects, address }) => Cache::open_objects(objects, &address, limits, access, now),
        None => Cache::open_on(Arc::new(OsFileSystem), folder, limits, access, now),
    };
    cache.map_err(refuse)
}

/// Default size limit of a cache, 10 GB: the intermediate images of some dozen studies, without filling most
/// disks.
const DEFAULT_BYTES: u64 = 10_000_000_000;

/// Returns the identities of a study's inputs. Unreadable files have none and fail their own runs.
pub fn identities(prepared: &PreparedStudy) -> HashMap<RegionKey, RegionIdentity> {
    let (study, files) = (&prepared.study, prepared.file_digests());
    let images = study.workflow.inputs.len();
    let elements = study.workflow.reference_elements();
    let mut identities = HashMap::new();
    for (number, facts) in prepared.tiles.iter().enumerate() {
        let Some(tile) = files[number] else { continue };
        for (place, (&key, input)) in facts.inputs.iter().zip(&study.workflow.inputs).enumerate() {
            let tile_file = &study.tiles[number];
            let table = inputs::table(study, prepared.units.as_ref(), (place, number));
            let identity = match (table, &tile_file.slide, &tile_file.block) {
                (Some(table), ..) => of_table(&table),
                // A layout that the tile does not have.
                _ if study.workflow.layout_of(place).is_some() => continue,
                // See below.
                _ if input.is_counted() => continue,
                (None, None, None) => of_file("image", &[tile]),
                (None, Some(part), _) => of_slide(input.element, part, tile),
                (None, None, Some(block)) => of_block(block),
            };
            identities.insert(key, identity);
        }
        if let ReferenceSource::Masks(_) = study.reference
            && let Some(mask) = files[prepared.tiles.len() + number]
        {
            let (part, rules) = (study.tiles[number].slide.as_ref(), &study.annotation_rules);
            let counted = facts.inputs.iter().zip(&study.workflow.inputs).filter(|(_, of)| of.is_counted());
            for (&key, input) in counted {
                let rules = (rules, AnnotationPart::Counted);
                identities.insert(key, of_reference(input.element, [mask, tile], part, Some(rules)));
            }
            let rules = (!rules.is_default()).then_some((rules, AnnotationPart::Objects));
            for (&key, &element) in facts.inputs[images..].iter().zip(&elements) {
                identities.insert(key, of_reference(element, [mask, tile], part, rules));
            }
        }
    }
    identities
}

/// Returns the identity of an input that a manager sends to workers: as [`identities`] has it.
#[must_use]
pub fn identity_of_input(input: &InputFile) -> RegionIdentity {
    if let Some(table) = &input.table {
        return of_table(table);
    }
    if let Some(block) = &input.block {
        return of_block(block);
    }
    let digest = input.file.digest_of_all();
    match (&input.slide, &input.reference) {
        (part, Some((element, tile))) => {
            let rules = input.annotations.as_ref().map(|(rules, part)| (rules, *part));
            let part = part.as_ref().map(|(_, part)| part);
            of_reference(*element, [digest, tile.digest_of_all()], part, rules)
        }
        (Some((element, part)), None) => of_slide(*element, part, digest),
        (None, None) => of_file("image", &[digest]),
    }
}

/// Returns the identity of a reference: of the content of its file and of the tile or slide, whose size and resolution place
/// its polygons, of the window, and of the selection of annotations.
fn of_reference(
    element: ElementType,
    [mask, tile]: [[u8; 32]; 2],
    part: Option<&SlideTile>,
    rules: Option<(&AnnotationRules, AnnotationPart)>,
) -> RegionIdentity {
    let mut read_as = format!("reference {element}");
    // Without annotations, earlier versions computed the same identities.
    if let Some(part) = part {
        let magnification = part.magnification.map_or_else(String::new, |at| at.get().to_string());
        let numbers: Vec<String> = part.window.iter().map(u32::to_string).collect();
        read_as += &format!(" of a slide at {magnification}: {}", numbers.join(" "));
    }
    if let Some((AnnotationRules { classes, regions, unit: _, mpp }, counted)) = rules {
        if rules.is_some_and(|(rules, _)| rules.is_in_microns()) {
            read_as += &format!(" in micrometers {mpp:?}");
        }
        read_as += &format!(" {counted:?} {classes:?} {regions:?}");
        if let (AnnotationPart::Counted, Some(part)) = (counted, part) {
            read_as += &format!(" {:?}", part.core);
        }
    }
    of_file(&read_as, &[mask, tile])
}

/// Returns the identity of the content of files read as `read_as`.
fn of_file(read_as: &str, files: &[[u8; 32]]) -> RegionIdentity {
    let mut hash = blake3::Hasher::new_derive_key("pleach input file 1");
    // The length separates the text from the digests, so that no two inputs hash the same bytes.
    hash.update(&(read_as.len() as u64).to_le_bytes());
    hash.update(read_as.as_bytes());
    files.iter().for_each(|digest| {
        hash.update(digest);
    });
    RegionIdentity(*hash.finalize().as_bytes())
}

/// Returns the identity of a table that travels with the study: of its numbers.
fn of_table(table: &Table) -> RegionIdentity {
    let numbers: Vec<String> = table.columns().map(|(name, number)| format!("{name} {number}")).collect();
    of_file(&format!("table {}", numbers.join(", ")), &[])
}

/// Returns the identity of a block of an image: of its numbers, independent of its place.
fn of_block(block: &VolumeBlock) -> RegionIdentity {
    of_file("block", &[block.digest.0])
}

/// Returns the identity of a slide tile: of its pixels, independent of the slide's name, or of the position
/// of its core, independent of the slide.
fn of_slide(element: ElementType, part: &SlideTile, slide: [u8; 32]) -> RegionIdentity {
    let numbers = |of: &[u32]| of.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    match element {
        ElementType::Table => {
            let columns = part.core_table();
            // Exact: the table holds numbers of 32 bits.
            let sides: Vec<u32> = columns.columns().map(|(_, side)| side as u32).collect();
            of_file(&format!("core {}", numbers(&sides)), &[])
        }
        _ => {
            let magnification = part.magnification.map_or_else(String::new, |at| at.get().to_string());
            of_file(&format!("slide at {magnification}: {}", numbers(&part.window)), &[slide])
        }
    }
}

/// Returns the responses that follow from the traces of earlier studies.
pub fn known_responses(prepared: &PreparedStudy, prior: &PriorResults) -> Vec<JournaledResponse> {
    let Some(cache) = &prior.cache else { return Vec::new() };
    let first = usize::from(!prepared.defaults_run());
    let mut walk = CacheWalk::new(prepared, cache, &prior.identities);
    let mut known = Vec::new();
    for tile in 0..prepared.tiles.len() {
        let reference = walk.reference(tile);
        for (number, values) in prepared.evaluations.iter().enumerate() {
            if let Some(table) = walk.response(tile, values, reference) {
                known.push(JournaledResponse { evaluation: number + first, tile, results: vec![table] });
            }
        }
    }
    known
}

/// Cached regions of the runs on one tile.
pub struct CachedRegions<'a>(Option<(CacheWalk<'a>, Option<RegionIdentity>, usize)>);

impl<'a> CachedRegions<'a> {
    /// Creates the lookup for a tile. It finds nothing if the study has no cache.
    pub fn on(prepared: &'a PreparedStudy, prior: &'a PriorResults, tile: usize) -> Self {
        Self(prior.cache.as_ref().map(|cache| {
            let mut walk = CacheWalk::new(prepared, cache, &prior.identities);
            let reference = walk.reference(tile);
            (walk, reference, tile)
        }))
    }

    /// Returns an output of a stage of the run with these values. `None` if it is not in the cache.
    pub fn output(&mut self, values: &[Value], stage: usize, output: usize) -> Option<DataRegion> {
        let (walk, reference, tile) = self.0.as_mut()?;
        let steps = walk.steps(*tile, values, *reference);
        let identity = walk.output(&steps, stage, output)?.identity;
        walk.cache.load(&Digest(identity.0))
    }

    /// As [`CachedRegions::output`], for an output of a task.
    pub fn task_output(&mut self, values: &[Value], place: TaskOutput) -> Option<DataRegion> {
        let known = self.known(values, place)?;
        let region = known.traced.as_ref().and_then(Output::region);
        let (walk, ..) = self.0.as_ref()?;
        region.or_else(|| walk.cache.load(&Digest(known.identity.0)))
    }

    /// Returns whether the cache knows the identity of a task's output. The content may be missing.
    pub fn has_trace(&mut self, values: &[Value], place: TaskOutput) -> bool {
        self.known(values, place).is_some()
    }

    fn known(&mut self, values: &[Value], place: TaskOutput) -> Option<CachedOutput> {
        let (walk, reference, tile) = self.0.as_mut()?;
        let steps = walk.steps(*tile, values, *reference);
        let step = steps.iter().find(|step| (step.stage, step.task) == (place.stage, place.task))?;
        step.output(place.output)
    }
}

/// Flow of control at a task.
enum Flow {
    Runs,
    /// It is skipped, and these regions pass as its outputs.
    Skipped(Vec<Option<CachedOutput>>),
}

/// Returns whether a task runs. `None` if its guard depends on a value that is unknown.
fn flow(task: &Task, read: impl Fn(&TaskInput) -> Option<CachedOutput>) -> Option<Flow> {
    let Some(guard) = &task.guard else { return Some(Flow::Runs) };
    // A trace contains regions as small as a value.
    let value = |place: usize| {
        let region = read(&task.reads[place]).and_then(|known| known.traced?.region());
        region.and_then(|region| guard_value(&region).ok()).ok_or(())
    };
    match guard.decide(value).ok()? {
        Decision::Run => Some(Flow::Runs),
        Decision::Skip(passes) => {
            Some(Flow::Skipped(passes.iter().map(|place| read(&task.reads[(*place)?])).collect()))
        }
    }
}

/// Walks runs through their traces.
pub struct CacheWalk<'a> {
    prepared: &'a PreparedStudy,
    cache: &'a Cache,
    identities: &'a HashMap<RegionKey, RegionIdentity>,
    /// Traces of the tasks looked up so far.
    seen: HashMap<TaskKey, Option<Arc<Trace>>>,
}

/// Task of a run, as far as its trace is known.
#[derive(Debug)]
pub struct CachedStep {
    /// Index of the stage in the workflow, from 0.
    pub stage: usize,
    /// Index of the task in its stage, from 0.
    pub task: usize,
    /// Values of the operation's arguments, in their order.
    pub arguments: Vec<Value>,
    /// Identities of its inputs. `None` if one is unknown because the task that writes it left no trace.
    pub inputs: Option<Vec<RegionIdentity>>,
    /// Key of the task. `None` if its inputs are unknown.
    pub key: Option<TaskKey>,
    /// Trace of the task. `None` if its key is unknown or the cache has no sound trace.
    pub trace: Option<Arc<Trace>>,
    /// For a task that its guard skips: the regions that pass as its outputs. `None` for a task that runs, or if its guard
    /// depends on an unknown value.
    pub passes: Option<Vec<Option<CachedOutput>>>,
}

/// Region that is known from traces.
#[derive(Clone, Debug)]
pub struct CachedOutput {
    /// Identity of its content.
    pub identity: RegionIdentity,
    /// Its entry in the trace of the task that wrote it. `None` for a file.
    pub traced: Option<Output>,
}

impl CachedStep {
    /// Returns an output of the task, or the region that passes as this output.
    fn output(&self, output: usize) -> Option<CachedOutput> {
        if let Some(passes) = &self.passes {
            return passes.get(output)?.clone();
        }
        let traced = self.trace.as_ref()?.outputs.get(output)?.clone();
        Some(CachedOutput { identity: RegionIdentity(traced.digest.0), traced: Some(traced) })
    }
}

impl<'a> CacheWalk<'a> {
    /// Creates a walk through the traces of `cache`. `identities` are those of the study's inputs, from [`identities`].
    pub fn new(
        prepared: &'a PreparedStudy,
        cache: &'a Cache,
        identities: &'a HashMap<RegionKey, RegionIdentity>,
    ) -> Self {
        Self { prepared, cache, identities, seen: HashMap::new() }
    }

    /// Returns the identity of the tile's reference if that is the result at the defaults. `None` for other
    /// references, or if its task left no trace.
    pub fn reference(&mut self, tile: usize) -> Option<RegionIdentity> {
        if !self.prepared.reference_run() {
            return None;
        }
        let reference = self.prepared.study.workflow.reference.as_ref()?;
        // Evaluation 0 is the defaults, because `reference_run` implies that they are run.
        let steps = self.steps(tile, &self.prepared.evaluations[0], None);
        self.output(&steps, reference.stage, reference.output).map(|output| output.identity)
    }

    fn response(
        &mut self,
        tile: usize,
        values: &[Value],
        reference: Option<RegionIdentity>,
    ) -> Option<Table> {
        let prepared = self.prepared;
        let response = &prepared.study.workflow.response;
        let steps = self.steps(tile, values, reference);
        let out = &prepared.study.workflow.stages[response.stage].outputs[response.output];
        let step = steps.iter().find(|step| (step.stage, step.task) == (response.stage, out.task))?;
        match step.output(out.output)?.traced?.region()? {
            DataRegion::Table(table) => Some(table),
            _ => None,
        }
    }

    fn output(&self, steps: &[CachedStep], stage: usize, output: usize) -> Option<CachedOutput> {
        let out = self.prepared.study.workflow.stages[stage].outputs.get(output)?;
        let step = steps.iter().find(|step| (step.stage, step.task) == (stage, out.task))?;
        step.output(out.output)
    }

    /// Returns all tasks of a run, in order.
    pub fn steps(
        &mut self,
        tile: usize,
        values: &[Value],
        reference: Option<RegionIdentity>,
    ) -> Vec<CachedStep> {
        let prepared = self.prepared;
        let mut steps: Vec<CachedStep> = Vec::new();
        for (number, stage) in prepared.study.workflow.stages.iter().enumerate() {
            let inputs = self.stage_inputs(stage, tile, reference, &steps);
            let first = steps.len();
            for (place, task) in stage.tasks.iter().enumerate() {
                let arguments: Vec<Value> = stage.task_parameters(task).map(|p| values[p]).collect();
                let read = |read: &TaskInput| match *read {
                    TaskInput::StageInput(input) => inputs[input].clone(),
                    TaskInput::Task { task, output } => steps[first + task].output(output),
                };
                let (inputs, passes) = match flow(task, read) {
                    Some(Flow::Runs) => {
                        let operands = task.operands().iter();
                        (operands.map(|operand| read(operand).map(|known| known.identity)).collect(), None)
                    }
                    Some(Flow::Skipped(passes)) => (None, Some(passes)),
                    None => (None, None),
                };
                let inputs: Option<Vec<RegionIdentity>> = inputs;
                let reads = inputs.as_ref().map(|inputs| inputs.iter().copied().map(TaskInputId::Output));
                let key = reads.map(|reads| key(task, &arguments, reads));
                let trace = key.and_then(|key| self.trace(key));
                steps.push(CachedStep { stage: number, task: place, arguments, inputs, key, trace, passes });
            }
        }
        steps
    }

    fn stage_inputs(
        &self,
        stage: &Stage,
        tile: usize,
        reference: Option<RegionIdentity>,
        steps: &[CachedStep],
    ) -> Vec<Option<CachedOutput>> {
        let workflow = &self.prepared.study.workflow;
        let facts = &self.prepared.tiles[tile];
        let read_as = workflow.reference_elements();
        let file = |identity| CachedOutput { identity, traced: None };
        let of_input = |input: usize| self.identities.get(facts.inputs.get(input)?).copied().map(file);
        let identity = |input: &pleach_workflow::StageInput| match input.origin {
            // A walk knows the tasks of one tile only.
            _ if input.unit().is_some() => None,
            InputOrigin::Input(input) => of_input(input),
            InputOrigin::Stage { stage, output } => self.output(steps, stage, output),
            InputOrigin::Reference if self.prepared.reference_run() => reference.map(file),
            InputOrigin::Reference => {
                let place = read_as.iter().position(|element| *element == input.region.element)?;
                of_input(workflow.inputs.len() + place)
            }
        };
        stage.inputs.iter().map(identity).collect()
    }

    fn trace(&mut self, key: TaskKey) -> Option<Arc<Trace>> {
        let cache = self.cache;
        self.seen.entry(key).or_insert_with(|| cache.lookup(&CacheKey(key.0)).map(Arc::new)).clone()
    }
}
