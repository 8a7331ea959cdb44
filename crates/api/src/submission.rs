//! Submission from a client: a study that the client has read and checked, and the digests of the study's files.
//!
//! The client sends the files separately, and only those that the manager lacks (input store).

mod code;
mod error;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod rows;
mod validate;

pub use code::SubmittedCode;
pub use error::{InvalidSubmission, SubmissionError, UndescribedError};

use crate::digest::InputDigest;
use pleach_dispatch::message::{self, FileContent};
use pleach_dispatch::plan::{GrantOrder, ReuseScope};
use pleach_external::{CodeFiles, OperationDescription, descriptions};
use pleach_planner::{PlanTile, StrategyName, identity};
use pleach_slides::files_of;
use pleach_study::{Defect, PreparedStudy, SubmittedStudy, inputs, units};
use pleach_workflow::{ReferenceSource, RegionDecl, Registry, SlideTile, Study, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Maximum of [`PlanChoice::overhead_seconds`], about 12 days: no queue is longer.
pub const MAX_OVERHEAD_SECONDS: f64 = 1e6;

/// Version of the submission format. Every change of the format raises it.
pub const VERSION: u32 = 1;

/// Study and its input files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    pub(crate) version: u32,
    /// Version of the client's build. Results depend on it.
    pub(crate) build: String,
    /// Name in the study file. Several studies may have the same name.
    pub name: String,
    /// Files of the tiles, then of the references if those are files.
    pub inputs: Vec<InputFile>,
    /// Companions of slides in several files, in the order of their names, by the path of the slide.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub companions: BTreeMap<String, Vec<Companion>>,
    /// Pixels of each tile.
    pub(crate) pixels: Vec<u64>,
    /// Study as read from its file, with absolute paths.
    pub study: Study,
    /// File that defines the parameter sets.
    pub(crate) parameter_sets: PathBuf,
    /// Whether the parameter sets come from a table.
    pub(crate) is_table: bool,
    /// Parameter sets of evaluations 1, 2, … in the first phase, before its sample grows.
    #[serde(deserialize_with = "rows::deserialize")]
    pub evaluations: Vec<Vec<Value>>,
    /// Planning options.
    pub plan: PlanChoice,
    /// Deadline in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Maximum cost of the study's workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// Tasks whose images are written with the results, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<String>,
    /// External operations of the workflow, so that the manager needs neither their code nor their environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationDescription>,
    /// Code of these operations, for workers that lack them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<SubmittedCode>,
}

/// Options of a submission, beside its study.
#[derive(Clone, Debug)]
pub struct SubmissionOptions {
    /// Planning options.
    pub plan: PlanChoice,
    /// Deadline in seconds since 1970.
    pub deadline: Option<u64>,
    /// Maximum cost of the study's workers.
    pub budget: Option<f64>,
    /// Tasks whose images are written with the results, by name.
    pub preview: Vec<String>,
    /// Code of external operations.
    pub code: Vec<CodeFiles>,
}

/// Planning options of a study.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanChoice {
    /// Strategy that groups stage instances into buckets.
    pub strategy: StrategyName,
    /// Reuse scope within a bucket. Strategies without buckets ignore it.
    pub reuse: ReuseScope,
    /// Maximum number of stage instances in a bucket (naive, SCA, RTMA). `None`: the planner chooses.
    pub max_bucket_size: Option<NonZeroUsize>,
    /// Maximum number of buckets of a stage (TRTMA). `None`: the planner chooses.
    pub max_buckets: Option<NonZeroUsize>,
    /// Fixed overhead of a bucket in seconds. `None`: the manager measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_seconds: Option<f64>,
    /// Order of grants.
    #[serde(default)]
    pub order: GrantOrder,
}

/// Input file of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// Path at the client.
    pub path: String,
    /// BLAKE3 of its content.
    pub digest: InputDigest,
    /// Size in bytes, without companions.
    pub bytes: u64,
}

/// Companion: an additional file of a slide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Companion {
    /// Path relative to the folder of the slide's main file: a file name, or a folder name and a file name.
    pub(crate) name: String,
    /// BLAKE3 of its content.
    pub(crate) digest: InputDigest,
    pub(crate) bytes: u64,
}

impl Submission {
    /// Returns the version of its format: [`VERSION`], or that of another version of pleach.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the version of pleach that submitted it. No other version runs it.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Returns an input file with its companions, as in messages to workers.
    pub fn content(&self, input: &InputFile) -> FileContent {
        let companion = |companion: &Companion| message::Companion {
            name: companion.name.clone(),
            digest: companion.digest.bytes(),
            bytes: companion.bytes,
        };
        let companions = self.companions.get(&input.path).into_iter().flatten().map(companion).collect();
        FileContent { path: input.path.clone(), digest: input.digest.bytes(), bytes: input.bytes, companions }
    }

    /// Returns the digests of the input files, with their companions: of the tiles, then of the references if those are files.
    pub fn file_digests(&self) -> Vec<Option<[u8; 32]>> {
        self.inputs.iter().map(|input| Some(self.content(input).digest_of_all())).collect()
    }

    /// Returns the client's path of the study's file with this content. `None` if the study reads no such file.
    pub fn path_of(&self, digest: InputDigest) -> Option<PathBuf> {
        let input = self.inputs.iter().find(|input| input.digest == digest);
        let companion = || {
            self.companions.iter().find_map(|(path, companions)| {
                let companion = companions.iter().find(|companion| companion.digest == digest)?;
                Some(Path::new(path).with_file_name(&companion.name))
            })
        };
        let code = || {
            let part = self.code_parts().into_iter().find(|part| part.digest == digest)?;
            Some(PathBuf::from(part.path))
        };
        input.map(|input| PathBuf::from(&input.path)).or_else(companion).or_else(code)
    }

    /// Returns all input files and files of code, each once. Companions are separate entries.
    pub fn files(&self) -> Vec<InputFile> {
        let mut files = self.input_files();
        files.extend(self.code_parts());
        files
    }

    /// Returns all input files, each once. Companions are separate entries.
    pub fn input_files(&self) -> Vec<InputFile> {
        // The tiles of a slide are one file.
        let inputs: BTreeMap<&str, &InputFile> =
            self.inputs.iter().map(|input| (&*input.path, input)).collect();
        let parts = inputs.into_values().flat_map(|input| {
            let parts: Vec<FileContent> = self.content(input).parts().collect();
            parts
        });
        parts.map(part).collect()
    }

    /// Creates the submission of a study that this process has read, and digests its input files.
    ///
    /// # Errors
    /// [`UndescribedError`] if a file cannot be read.
    pub fn new(
        prepared: &PreparedStudy,
        is_table: bool,
        options: SubmissionOptions,
    ) -> Result<Self, UndescribedError> {
        // The tiles of a slide are one file.
        let mut known: HashMap<&Path, InputFile> = HashMap::new();
        let (mut inputs, mut companions) = (Vec::new(), BTreeMap::new());
        for file in prepared.files() {
            let input = match known.get(file) {
                Some(input) => input.clone(),
                None => {
                    let (input, others) = input_file(file)?;
                    if !others.is_empty() {
                        companions.insert(input.path.clone(), others);
                    }
                    input
                }
            };
            known.insert(file, input.clone());
            inputs.push(input);
        }
        let mut study = prepared.study.clone();
        let absolute = |path: &mut PathBuf| {
            *path = path.canonicalize().map_err(|cause| unreadable(path, cause))?;
            Ok::<(), UndescribedError>(())
        };
        study.tiles.iter_mut().try_for_each(|tile| absolute(&mut tile.path))?;
        let slides = study.slides.iter_mut().flat_map(|slides| &mut slides.files);
        let volumes = study.volumes.iter_mut().flat_map(|volumes| &mut volumes.files);
        slides.chain(volumes).map(|image| &mut image.path).try_for_each(absolute)?;
        if let ReferenceSource::Masks(masks) = &mut study.reference {
            masks.iter_mut().try_for_each(absolute)?;
        }
        Ok(Self {
            version: VERSION,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            name: study.name.clone(),
            inputs,
            companions,
            pixels: prepared.tiles.iter().map(|tile| tile.pixels).collect(),
            parameter_sets: prepared.parameter_sets().to_owned(),
            is_table,
            evaluations: prepared.design.evaluations.clone(),
            plan: options.plan,
            deadline: options.deadline,
            budget: options.budget,
            preview: options.preview,
            code: options.code.iter().map(SubmittedCode::new).collect::<Result<_, _>>()?,
            operations: descriptions(&prepared.study.workflow, &prepared.registry),
            study,
        })
    }

    /// Prepares the study under the manager's `id`. `find` returns the local path of a file. A file without one keeps
    /// its path at the client.
    ///
    /// # Errors
    /// [`SubmissionError`] if the submission is invalid, or if this build of pleach draws other parameter sets.
    pub fn prepare(
        &self,
        id: u32,
        find: impl Fn(&FileContent) -> Option<PathBuf>,
        registry: &Registry,
    ) -> Result<PreparedStudy, SubmissionError> {
        let invalid = |problem| SubmissionError::Invalid { study: self.name.clone(), problem };
        if let Some((operation, field)) = self.operations.iter().find_map(|of| Some((of, of.mistake()?))) {
            let name = operation.name.clone();
            return Err(invalid(InvalidSubmission::Description { name, field }));
        }
        let registry =
            &registry.clone().extended(self.operations.iter().map(OperationDescription::operation));
        self.check(registry).map_err(invalid)?;
        let received = SubmittedStudy {
            study: self.study.clone(),
            evaluations: self.evaluations.clone(),
            is_table: self.is_table,
            parameter_sets: self.parameter_sets.clone(),
            tiles: self.tiles(id),
            file_digests: self.file_digests(),
        };
        let mut prepared = PreparedStudy::received(received, registry)?;
        // Replace the paths after the preparation: the digest of the study must not depend on local paths.
        // The tiles of a slide are one file.
        let mut known: HashMap<String, Option<PathBuf>> = HashMap::new();
        let mut place = |path: &mut PathBuf, input: &InputFile| {
            if let Some(found) = known.entry(input.path.clone()).or_insert_with(|| find(&self.content(input)))
            {
                path.clone_from(found);
            }
        };
        let (tiles, masks) = self.inputs.split_at(self.pixels.len());
        // The manager reads no blocks: those of a folder are not in its store.
        let local = prepared.study.tiles.iter_mut().zip(tiles).filter(|(tile, _)| tile.block.is_none());
        local.for_each(|(tile, input)| place(&mut tile.path, input));
        if let ReferenceSource::Masks(paths) = &mut prepared.study.reference {
            paths.iter_mut().zip(masks).for_each(|(path, input)| place(path, input));
        }
        Ok(prepared)
    }

    /// Returns whether the study has phases or a sample that may grow.
    pub fn has_parts(&self) -> bool {
        !self.study.phases.is_empty() || self.study.until.is_some()
    }

    /// Returns the tiles with their region keys. The keys contain the study's id and are equal in all its phases and
    /// rounds. Studies that read the same files have different keys, because each releases the files at its own time.
    fn tiles(&self, id: u32) -> Vec<PlanTile> {
        let workflow = &self.study.workflow;
        let of = |what: &str, input: &InputFile, part: Option<&SlideTile>| {
            identity::of_tile(&format!("study {id} {what}"), Path::new(&input.path), part)
        };
        let elements = workflow.reference_elements();
        let (count, placed) = (self.pixels.len(), units::units_of(&self.study));
        let facts = |number: usize| {
            let (tile, file) = (&self.inputs[number], &self.study.tiles[number]);
            let key = |(place, input): (usize, &RegionDecl)| {
                let role = format!("study {id} {}", input.region);
                inputs::key(&self.study, placed.as_ref(), (place, number), &role, Path::new(&tile.path))
            };
            let mut inputs: Vec<_> = workflow.inputs.iter().enumerate().map(key).collect();
            if let Some(mask) = self.inputs.get(count + number) {
                inputs.extend(
                    elements
                        .iter()
                        .map(|element| of(&format!("reference {element}"), mask, file.slide.as_ref())),
                );
            }
            PlanTile { pixels: self.pixels[number], inputs }
        };
        (0..count).map(facts).collect()
    }
}

/// Returns one file of an input.
fn part(of: FileContent) -> InputFile {
    InputFile { path: of.path, digest: blake3::Hash::from_bytes(of.digest).into(), bytes: of.bytes }
}

fn unreadable(path: &Path, cause: io::Error) -> UndescribedError {
    UndescribedError::Unreadable { file: path.to_owned(), cause }
}

/// Returns the digest of a file's content, and its length.
fn digested(path: &Path) -> Result<(InputDigest, u64), UndescribedError> {
    let mut hasher = blake3::Hasher::new();
    let read = File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
    read.map_err(|cause| unreadable(path, cause))?;
    Ok((InputDigest::from(hasher.finalize()), hasher.count()))
}

fn input_file(path: &Path) -> Result<(InputFile, Vec<Companion>), UndescribedError> {
    let path = path.canonicalize().map_err(|cause| unreadable(path, cause))?;
    let (digest, bytes) = digested(&path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let companion = |file: &PathBuf| {
        let (digest, bytes) = digested(file)?;
        let name = file.strip_prefix(folder).map_err(Defect::new)?.to_string_lossy().into_owned();
        Ok(Companion { name, digest, bytes })
    };
    let files = files_of(&path)?;
    let companions = files.iter().skip(1).map(companion).collect::<Result<_, UndescribedError>>()?;
    Ok((InputFile { path: path.to_string_lossy().into_owned(), digest, bytes }, companions))
}
