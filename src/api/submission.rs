//! What a client submits: a study that it has read and checked, and the files that the study reads, by what they hold.
//!
//! The files themselves are sent apart ([`inputs`](super::inputs)), and only where the manager lacks them.

mod rows;
mod validate;

use crate::api::digest::InputDigest;
use crate::exit::{CommandError, CommandResult};
use crate::study::{PreparedStudy, SubmittedStudy};
use pleach_actors::input_files::digest_of_all;
use pleach_dispatch::message::{self, FileContent};
use pleach_dispatch::plan::ReuseScope;
use pleach_planner::{PlanTile, StrategyName, identity};
use pleach_slides::files_of;
use pleach_workflow::{ReferenceSource, SlideTile, Study, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The form of what is written here; another one is another number.
const VERSION: u32 = 1;

/// A study and the files it reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submission {
    pub(crate) version: u32,
    /// The client's build: what a study comes to depends on it.
    pub(crate) build: String,
    pub(crate) name: String,
    /// Its tiles, then its references, where those are files.
    pub(crate) inputs: Vec<InputFile>,
    /// The further files of slides in several files, in the order of their names, by the path of the slide.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) companions: BTreeMap<String, Vec<Companion>>,
    /// Of each tile.
    pub(crate) pixels: Vec<u64>,
    /// As read from its file, with absolute paths.
    pub(crate) study: Study,
    /// The file that says which parameter sets there are.
    pub(crate) parameter_sets: PathBuf,
    /// They come from a table.
    pub(crate) is_table: bool,
    /// The parameter sets of evaluations 1, 2, …: those of the first phase, before its sample grows.
    #[serde(deserialize_with = "rows::deserialize")]
    pub(crate) evaluations: Vec<Vec<Value>>,
    pub(crate) plan: PlanChoice,
    /// When it should have ended, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<u64>,
    /// What its workers may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<f64>,
}

/// Options of a submission, beside its study.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmissionOptions {
    /// Planning options.
    pub(crate) plan: PlanChoice,
    /// Deadline in seconds since 1970.
    pub(crate) deadline: Option<u64>,
    /// Maximum cost of the study's workers.
    pub(crate) budget: Option<f64>,
}

/// How a study is to be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanChoice {
    pub(crate) strategy: StrategyName,
    pub(crate) reuse: ReuseScope,
    pub(crate) max_bucket_size: Option<NonZeroUsize>,
    pub(crate) max_buckets: Option<NonZeroUsize>,
}

/// A file that a study reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputFile {
    /// Where the client has it.
    pub(crate) path: String,
    /// BLAKE3 of its content.
    pub(crate) digest: InputDigest,
    pub(crate) bytes: u64,
}

/// A further file of a slide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Companion {
    /// Below the folder of the file that the slide is named by: a file's name, or a folder's and a file's.
    pub(crate) name: String,
    /// BLAKE3 of its content.
    pub(crate) digest: InputDigest,
    pub(crate) bytes: u64,
}

impl Submission {
    /// A file that the study reads, as workers are told of it.
    pub(crate) fn content(&self, input: &InputFile) -> FileContent {
        let companion = |companion: &Companion| message::Companion {
            name: companion.name.clone(),
            digest: companion.digest.bytes(),
            bytes: companion.bytes,
        };
        let companions = self.companions.get(&input.path).into_iter().flatten().map(companion).collect();
        FileContent { path: input.path.clone(), digest: input.digest.bytes(), bytes: input.bytes, companions }
    }

    /// Where the client has a file of this content that the study reads.
    pub(crate) fn path_of(&self, digest: InputDigest) -> Option<PathBuf> {
        let input = self.inputs.iter().find(|input| input.digest == digest);
        let companion = || {
            self.companions.iter().find_map(|(path, companions)| {
                let companion = companions.iter().find(|companion| companion.digest == digest)?;
                Some(Path::new(path).with_file_name(&companion.name))
            })
        };
        input.map(|input| PathBuf::from(&input.path)).or_else(companion)
    }

    /// All files that the study reads, each by itself and once.
    pub(crate) fn files(&self) -> Vec<InputFile> {
        // The tiles of a slide are one file.
        let inputs: BTreeMap<&str, &InputFile> =
            self.inputs.iter().map(|input| (&*input.path, input)).collect();
        let parts = inputs.into_values().flat_map(|input| {
            let parts: Vec<FileContent> = self.content(input).parts().collect();
            parts
        });
        let file = |part: FileContent| InputFile {
            path: part.path,
            digest: blake3::Hash::from_bytes(part.digest).into(),
            bytes: part.bytes,
        };
        parts.map(file).collect()
    }

    /// Creates the submission of a study that this process has read, and digests its input files.
    ///
    /// # Errors
    /// [`CommandError::Input`] if a file cannot be read.
    pub(crate) fn new(
        prepared: &PreparedStudy,
        is_table: bool,
        options: SubmissionOptions,
    ) -> CommandResult<Self> {
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
            let fail = |error| CommandError::Input(format!("{}: {error}", path.display()));
            *path = path.canonicalize().map_err(fail)?;
            Ok(())
        };
        study.tiles.iter_mut().try_for_each(|tile| absolute(&mut tile.path))?;
        let slides = study.slides.iter_mut().flat_map(|slides| &mut slides.files);
        slides.map(|slide| &mut slide.path).try_for_each(absolute)?;
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
            study,
        })
    }

    /// The study, number `id` of this manager. Files are looked for by `find`; where one is not found, its path stays as
    /// it is at the client.
    ///
    /// # Errors
    /// [`CommandError::Input`] when the submission is not what this build of pleach makes of a study.
    pub(crate) fn prepare(
        &self,
        id: u32,
        find: impl Fn(&FileContent) -> Option<PathBuf>,
    ) -> CommandResult<PreparedStudy> {
        self.check().map_err(|what| CommandError::Input(format!("study {}: {what}", self.name)))?;
        let received = SubmittedStudy {
            study: self.study.clone(),
            evaluations: self.evaluations.clone(),
            is_table: self.is_table,
            parameter_sets: self.parameter_sets.clone(),
            tiles: self.tiles(id),
            file_digests: self.inputs.iter().map(|input| Some(digest_of_all(&self.content(input)))).collect(),
        };
        let mut prepared = PreparedStudy::received(received)?;
        // Only now: what a study is does not depend on where its files lie.
        // The tiles of a slide are one file.
        let mut known: HashMap<String, Option<PathBuf>> = HashMap::new();
        let mut place = |path: &mut PathBuf, input: &InputFile| {
            if let Some(found) = known.entry(input.path.clone()).or_insert_with(|| find(&self.content(input)))
            {
                path.clone_from(found);
            }
        };
        let (tiles, masks) = self.inputs.split_at(self.pixels.len());
        prepared.study.tiles.iter_mut().zip(tiles).for_each(|(tile, input)| place(&mut tile.path, input));
        if let ReferenceSource::Masks(paths) = &mut prepared.study.reference {
            paths.iter_mut().zip(masks).for_each(|(path, input)| place(path, input));
        }
        Ok(prepared)
    }

    /// Whether it is of several parts: phases, or a sample that may grow.
    pub(crate) fn has_parts(&self) -> bool {
        !self.study.phases.is_empty() || self.study.until.is_some()
    }

    /// Keys are of this study alone, the same in all its parts: another one may read the same files, and let go of them at another time.
    fn tiles(&self, id: u32) -> Vec<PlanTile> {
        let workflow = &self.study.workflow;
        let of = |what: &str, input: &InputFile, part: Option<&SlideTile>| {
            identity::of_tile(&format!("study {id} {what}"), Path::new(&input.path), part)
        };
        let elements = workflow.reference_elements();
        let count = self.pixels.len();
        let facts = |number: usize| {
            let (tile, part) = (&self.inputs[number], self.study.tiles[number].slide.as_ref());
            let mut inputs: Vec<_> =
                workflow.inputs.iter().map(|input| of(&input.region, tile, part)).collect();
            if let Some(mask) = self.inputs.get(count + number) {
                inputs.extend(elements.iter().map(|element| of(&format!("reference {element}"), mask, None)));
            }
            PlanTile { pixels: self.pixels[number], inputs }
        };
        (0..count).map(facts).collect()
    }
}

fn input_file(path: &Path) -> CommandResult<(InputFile, Vec<Companion>)> {
    let fail = |path: &Path, error: io::Error| CommandError::Input(format!("{}: {error}", path.display()));
    let path = path.canonicalize().map_err(|error| fail(path, error))?;
    let look = |path: &Path| -> CommandResult<(InputDigest, u64)> {
        let mut hasher = blake3::Hasher::new();
        let read = File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
        read.map_err(|error| fail(path, error))?;
        Ok((InputDigest::from(hasher.finalize()), hasher.count()))
    };
    let (digest, bytes) = look(&path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let companion = |file: &PathBuf| {
        let (digest, bytes) = look(file)?;
        let name = file.strip_prefix(folder).map_err(CommandError::defect)?.to_string_lossy().into_owned();
        Ok(Companion { name, digest, bytes })
    };
    let files = files_of(&path).map_err(CommandError::input)?;
    let companions = files.iter().skip(1).map(companion).collect::<CommandResult<_>>()?;
    Ok((InputFile { path: path.to_string_lossy().into_owned(), digest, bytes }, companions))
}
