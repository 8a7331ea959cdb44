//! What a client submits: a study, as far as the manager needs to know it, and the files that it reads.
//!
//! The files themselves are sent apart ([`inputs`](super::inputs)), and only where the manager lacks them.

use super::inputs::InputDigest;
use crate::cli::SubmitArgs;
use crate::exit::{Outcome, Stop};
use crate::study::Prepared;
use serde::{Deserialize, Serialize};
use std::fs::File;

/// The form of what is written here; another one is another number.
const VERSION: u32 = 1;

/// A study and the files it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submission {
    pub(crate) version: u32,
    pub(crate) name: String,
    pub(crate) inputs: Vec<InputFile>,
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
        let prepared = Prepared::load(&args.study, args.table.as_deref())?;
        let mut inputs = Vec::with_capacity(prepared.study.tiles.len());
        for tile in &prepared.study.tiles {
            let fail = |error| Stop::Input(format!("{}: {error}", tile.path.display()));
            let path = tile.path.canonicalize().map_err(fail)?;
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(File::open(&path).map_err(fail)?).map_err(fail)?;
            inputs.push(InputFile {
                path: path.to_string_lossy().into_owned(),
                digest: InputDigest::from(hasher.finalize()),
                bytes: hasher.count(),
            });
        }
        Ok(Self { version: VERSION, name: prepared.study.name, inputs })
    }
}
