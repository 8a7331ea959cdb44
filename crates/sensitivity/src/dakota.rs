//! Reads Dakota's input files: which method, which sampler, which parameters.
//!
//! Read are MOAT (`psuade_moat`), designs of experiments (`dace`), uncertainty sampling (`sampling`), quasi-Monte Carlo
//! (`fsu_quasi_mc`), grids (`multidim_parameter_study`), and variance-based decomposition on `dace` and `sampling`; as the
//! reference manual of Dakota 6 describes them. How Dakota starts a simulation, and what it makes of responses, is not of
//! interest here: those blocks are skipped. A keyword that would change the sample and is not known is an error.

mod entries;
mod fields;
mod method;
mod variables;

use crate::import::Imported;
use entries::Block;
use pleach_workflow::text::quoted;
use thiserror::Error;

/// Why an input cannot be used. Lines count from 1; the caller names the file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DakotaError {
    /// A text without an end.
    #[error("line {line}: a text is not closed on its line")]
    NotClosed {
        /// Its line.
        line: usize,
    },
    /// Something before the first block.
    #[error("line {line}: \"{}\" is no block of a Dakota input; allowed are {}", quoted(word, 80), entries::BLOCKS.join(", "))]
    NoBlock {
        /// Its line.
        line: usize,
        /// What stands there.
        word: String,
    },
    /// A number or text behind no keyword.
    #[error("line {line}: \"{}\" stands behind no keyword", quoted(word, 80))]
    NoKeyword {
        /// Its line.
        line: usize,
        /// What stands there.
        word: String,
    },
    /// A repetition that is none.
    #[error("line {line}: \"{}\" is no repeated number; allowed is one such as 3*0.5", quoted(word, 80))]
    BadRepeat {
        /// Its line.
        line: usize,
        /// What stands there.
        word: String,
    },
    /// More numbers than any study has.
    #[error("line {line}: the input has more than {most} numbers and texts")]
    TooLong {
        /// The line where they are too many.
        line: usize,
        /// How many are allowed.
        most: usize,
    },
    /// A block that a study needs.
    #[error("there is no block \"{block}\"; a study needs one")]
    MissingBlock {
        /// The block.
        block: &'static str,
    },
    /// A block that occurs twice.
    #[error("line {line}: a second block \"{block}\"; studies of one are read")]
    SecondBlock {
        /// Line of the second.
        line: usize,
        /// The block.
        block: &'static str,
    },
    /// A keyword that is not known here.
    #[error("line {line}: \"{}\" is not known in {of}; known are {known}", quoted(keyword, 80))]
    UnknownKeyword {
        /// Its line.
        line: usize,
        /// The keyword.
        keyword: String,
        /// What it belongs to.
        of: String,
        /// Keywords that are known there.
        known: String,
    },
    /// A keyword that occurs twice where it may once.
    #[error("line {line}: \"{}\" occurs a second time in {of}", quoted(keyword, 80))]
    Twice {
        /// Its second line.
        line: usize,
        /// The keyword.
        keyword: String,
        /// What it belongs to.
        of: String,
    },
    /// A keyword that has to be there.
    #[error("line {line}: {of} has no \"{keyword}\", which it needs")]
    MissingKeyword {
        /// Line of what it belongs to.
        line: usize,
        /// The keyword.
        keyword: &'static str,
        /// What it belongs to.
        of: String,
    },
    /// A number that is none, or not one that is wanted.
    #[error("line {line}: {keyword}: \"{}\" is not {wanted}", quoted(text, 80))]
    BadNumber {
        /// Its line.
        line: usize,
        /// The keyword.
        keyword: String,
        /// What stands there.
        text: String,
        /// What is wanted.
        wanted: &'static str,
    },
    /// Too many or too few numbers or texts.
    #[error("line {line}: {keyword} has {found} values, and {wanted} are needed")]
    WrongCount {
        /// Line of the keyword.
        line: usize,
        /// The keyword.
        keyword: String,
        /// Values found.
        found: usize,
        /// Values needed.
        wanted: usize,
    },
    /// Bounds in the wrong order.
    #[error("line {line}: variable {name}: its lower bound {low} is above its upper bound {high}")]
    Reversed {
        /// Line of the variables.
        line: usize,
        /// The variable.
        name: String,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Numbers that make no distribution or set.
    #[error("line {line}: variable {name}: {problem}")]
    BadRange {
        /// Line of the variables.
        line: usize,
        /// The variable.
        name: String,
        /// What is wrong.
        problem: pleach_workflow::DomainError,
    },
    /// A name that two variables have, or an empty one.
    #[error("line {line}: a variable is named \"{}\"; each needs a name of its own", quoted(name, 80))]
    BadName {
        /// Line of the variables.
        line: usize,
        /// The name.
        name: String,
    },
    /// No variables.
    #[error("line {line}: the block \"variables\" has none; at least one is needed")]
    NoVariables {
        /// Line of the block.
        line: usize,
    },
}

/// What a Dakota input says. A byte-order mark and CRLF are accepted. A number of variables that all their lists agree to
/// be wrong is taken from the lists, with a note: among the authors' own files is such a one.
///
/// # Errors
/// [`DakotaError`], which names line, keyword and value, and what is allowed.
pub fn parse(text: &str) -> Result<Imported, DakotaError> {
    let blocks = entries::read(text)?;
    let (parameters, notes) = variables::read(the_block(&blocks, "variables")?)?;
    Ok(Imported { notes, ..method::read(the_block(&blocks, "method")?, parameters)? })
}

fn the_block<'a>(blocks: &'a [Block], name: &'static str) -> Result<&'a Block, DakotaError> {
    let mut found = blocks.iter().filter(|block| block.name == name);
    let block = found.next().ok_or(DakotaError::MissingBlock { block: name })?;
    match found.next() {
        Some(second) => Err(DakotaError::SecondBlock { line: second.line, block: name }),
        None => Ok(block),
    }
}
