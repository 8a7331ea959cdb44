//! What a client submits: a study that it has read and checked, and the files that the study reads, by what they hold.
//!
//! The files themselves are sent apart ([`inputs`](super::inputs)), and only where the manager lacks them.

mod check;

use super::inputs::InputDigest;
use crate::cli::{ReuseName, StrategyName, SubmitArgs, Until};
use crate::exit::{Outcome, Stop};
use crate::slides;
use crate::study::{Prepared, Received};
use crate::weave::{TileFacts, identity};
use pleach_workflow::{Reference, SlideTile, Study, Value};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
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
    /// Of each tile.
    pub(crate) pixels: Vec<u64>,
    /// As read from its file, with absolute paths.
    pub(crate) study: Study,
    /// The file that says which parameter sets there are.
    pub(crate) parameter_sets: PathBuf,
    /// They come from a table.
    pub(crate) is_table: bool,
    /// The parameter sets of evaluations 1, 2, …: those of the first phase, before its sample grows.
    pub(crate) evaluations: Vec<Vec<Value>>,
    pub(crate) plan: PlanChoice,
    /// When it should have ended, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<u64>,
    /// What its workers may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<f64>,
}

/// How a study is to be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanChoice {
    pub(crate) strategy: StrategyName,
    pub(crate) reuse: ReuseName,
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

impl Submission {
    /// The study of a file, its input files digested.
    ///
    /// # Errors
    /// [`Stop::Input`] as for `pleach run`, and when a file cannot be read.
    pub(crate) fn of(args: &SubmitArgs) -> Outcome<Self> {
        let mut prepared = Prepared::load(&args.study, args.table.as_deref())?;
        prepared.check_runnable()?;
        crate::command::weigh(&mut prepared, args.way.buckets, None)?;
        // The tiles of a slide are one file.
        let mut known: HashMap<&Path, InputFile> = HashMap::new();
        let mut inputs = Vec::new();
        for file in prepared.files() {
            let input = match known.get(file) {
                Some(input) => input.clone(),
                None => input_file(file)?,
            };
            known.insert(file, input.clone());
            inputs.push(input);
        }
        let mut study = prepared.study.clone();
        let absolute = |path: &mut PathBuf| {
            let fail = |error| Stop::Input(format!("{}: {error}", path.display()));
            *path = path.canonicalize().map_err(fail)?;
            Ok(())
        };
        study.tiles.iter_mut().try_for_each(|tile| absolute(&mut tile.path))?;
        let slides = study.slides.iter_mut().flat_map(|slides| &mut slides.files);
        slides.map(|slide| &mut slide.path).try_for_each(absolute)?;
        if let Reference::Masks(masks) = &mut study.reference {
            masks.iter_mut().try_for_each(absolute)?;
        }
        let is_table = args.table.is_some() || matches!(study.method, pleach_workflow::Method::Table { .. });
        Ok(Self {
            version: VERSION,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            name: study.name.clone(),
            inputs,
            pixels: prepared.tiles.iter().map(|tile| tile.pixels).collect(),
            parameter_sets: prepared.parameter_sets().to_owned(),
            is_table,
            evaluations: prepared.design.evaluations.clone(),
            plan: PlanChoice {
                strategy: args.way.strategy,
                reuse: args.way.reuse,
                max_bucket_size: args.way.buckets.max_bucket_size,
                max_buckets: args.way.buckets.max_buckets,
            },
            deadline: args.deadline.map(deadline).transpose()?,
            budget: args.budget.map(|budget| budget.0),
            study,
        })
    }

    /// The study, number `id` of this manager. Files are looked for by `find`; where one is not found, its path stays as
    /// it is at the client.
    ///
    /// # Errors
    /// [`Stop::Input`] when the submission is not what this build of pleach makes of a study.
    pub(crate) fn prepare(
        &self,
        id: u32,
        find: impl Fn(&Path, InputDigest) -> Option<PathBuf>,
    ) -> Outcome<Prepared> {
        self.check().map_err(|what| Stop::Input(format!("study {}: {what}", self.name)))?;
        let received = Received {
            study: self.study.clone(),
            evaluations: self.evaluations.clone(),
            is_table: self.is_table,
            parameter_sets: self.parameter_sets.clone(),
            tiles: self.tiles(id),
            file_digests: self.inputs.iter().map(|input| Some(input.digest.bytes())).collect(),
        };
        let mut prepared = Prepared::received(received)?;
        prepared.check_runnable()?;
        // Only now: what a study is does not depend on where its files lie.
        let place = |path: &mut PathBuf, input: &InputFile| {
            if let Some(found) = find(path, input.digest) {
                *path = found;
            }
        };
        let (tiles, masks) = self.inputs.split_at(self.pixels.len());
        prepared.study.tiles.iter_mut().zip(tiles).for_each(|(tile, input)| place(&mut tile.path, input));
        if let Reference::Masks(paths) = &mut prepared.study.reference {
            paths.iter_mut().zip(masks).for_each(|(path, input)| place(path, input));
        }
        Ok(prepared)
    }

    /// Whether it is of several parts: phases, or a sample that may grow.
    pub(crate) fn has_parts(&self) -> bool {
        !self.study.phases.is_empty() || self.study.until.is_some()
    }

    /// Keys are of this study alone, the same in all its parts: another one may read the same files, and let go of them at another time.
    fn tiles(&self, id: u32) -> Vec<TileFacts> {
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
            TileFacts { pixels: self.pixels[number], inputs }
        };
        (0..count).map(facts).collect()
    }
}

/// A deadline in seconds since 1970.
fn deadline(until: Until) -> Outcome<u64> {
    let (now, deadline) = (now(), until.seconds(now()));
    if deadline <= now {
        return Err(Stop::Input(format!(
            "--deadline: {} is over; a time to come is allowed",
            time::OffsetDateTime::from_unix_timestamp(deadline as i64)
                .ok()
                .and_then(|moment| moment.format(&time::format_description::well_known::Rfc3339).ok())
                .unwrap_or_else(|| deadline.to_string()),
        )));
    }
    Ok(deadline)
}

/// Seconds since 1970.
fn now() -> u64 {
    u64::try_from(time::OffsetDateTime::now_utc().unix_timestamp()).unwrap_or(0)
}

fn input_file(path: &Path) -> Outcome<InputFile> {
    let fail = |error| Stop::Input(format!("{}: {error}", path.display()));
    let path = path.canonicalize().map_err(fail)?;
    if slides::is_in_several_files(&path).map_err(Stop::input)? {
        return Err(Stop::Input(format!(
            "{}: is a slide in several files, which neither managers nor workers take yet; pleach run reads it where it \
             lies, and a slide in one file can be submitted",
            path.display()
        )));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(&path).map_err(fail)?).map_err(fail)?;
    Ok(InputFile {
        path: path.to_string_lossy().into_owned(),
        digest: InputDigest::from(hasher.finalize()),
        bytes: hasher.count(),
    })
}
