//! Splits a Dakota input into blocks, keywords and arguments.
//!
//! Dakota's grammar in short: `#` begins a comment. Commas and equals signs separate like blanks. Texts are
//! enclosed in single or double quotes. `3*0.5` repeats a number three times. Any other word is a keyword.
//! The caller interprets keywords.

use super::DakotaError;

/// Block names of an input.
pub(super) const BLOCKS: [&str; 7] =
    ["environment", "strategy", "method", "model", "variables", "interface", "responses"];

/// Maximum number of numbers and texts in an input. Studies have far fewer, and this many take little memory.
const MAX_ARGUMENTS: usize = 100_000;

/// Argument of a keyword.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Argument {
    /// A number, as written.
    Number(String),
    /// A quoted text.
    Text(String),
}

/// A keyword and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) line: usize,
    /// In lower case, because Dakota ignores case.
    pub(super) keyword: String,
    pub(super) arguments: Vec<Argument>,
}

/// A block and its keywords.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) line: usize,
    pub(super) name: &'static str,
    pub(super) entries: Vec<Entry>,
}

/// Returns the blocks of an input.
pub(super) fn read(text: &str) -> Result<Vec<Block>, DakotaError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut blocks: Vec<Block> = Vec::new();
    let mut arguments = 0;
    for (number, line) in lines(text) {
        let mut rest = line;
        while let Some((word, after)) = next(rest, number)? {
            rest = after;
            let argument = match word {
                Word::Text(text) => Argument::Text(text.to_owned()),
                Word::Bare(word) if is_number(word) => Argument::Number(word.to_owned()),
                Word::Bare(word) => {
                    let keyword = word.to_lowercase();
                    match BLOCKS.into_iter().find(|block| *block == keyword) {
                        Some(name) => blocks.push(Block { line: number, name, entries: Vec::new() }),
                        None => {
                            let Some(block) = blocks.last_mut() else {
                                return Err(DakotaError::NoBlock { line: number, word: word.to_owned() });
                            };
                            let arguments = Vec::new();
                            block.entries.push(Entry { line: number, keyword, arguments });
                        }
                    }
                    continue;
                }
            };
            let Some(entry) = blocks.last_mut().and_then(|block| block.entries.last_mut()) else {
                let word = match argument {
                    Argument::Number(word) | Argument::Text(word) => word,
                };
                return Err(DakotaError::NoKeyword { line: number, word });
            };
            let (times, argument) = repeated(argument, number)?;
            arguments += times;
            if arguments > MAX_ARGUMENTS {
                return Err(DakotaError::TooLong { line: number, most: MAX_ARGUMENTS });
            }
            entry.arguments.extend(std::iter::repeat_n(argument, times));
        }
    }
    Ok(blocks)
}

enum Word<'a> {
    Bare(&'a str),
    Text(&'a str),
}

/// Returns the next word of a line and the rest of the line. `None` at the end of the line or at a comment.
fn next(line: &str, number: usize) -> Result<Option<(Word<'_>, &str)>, DakotaError> {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == '=');
    let Some(first) = line.chars().next().filter(|&first| first != '#') else { return Ok(None) };
    if first == '\'' || first == '"' {
        let Some((text, after)) = line[1..].split_once(first) else {
            return Err(DakotaError::NotClosed { line: number });
        };
        return Ok(Some((Word::Text(text), after)));
    }
    let end = |c: char| c.is_whitespace() || matches!(c, ',' | '=' | '#' | '\'' | '"');
    let (word, after) = line.split_at(line.find(end).unwrap_or(line.len()));
    Ok(Some((Word::Bare(word), after)))
}

/// Returns whether a word is meant as a number, valid or not.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        || word.parse::<f64>().is_ok()
}

/// Expands a repeated number: `3*0.5` gives 3 and 0.5. Any other argument gives 1 and itself.
fn repeated(argument: Argument, line: usize) -> Result<(usize, Argument), DakotaError> {
    let Argument::Number(word) = &argument else { return Ok((1, argument)) };
    let Some((times, value)) = word.split_once('*') else { return Ok((1, argument)) };
    match times.parse() {
        Ok(times @ 1..=MAX_ARGUMENTS) if !value.contains('*') => {
            Ok((times, Argument::Number(value.to_owned())))
        }
        _ => Err(DakotaError::BadRepeat { line, word: word.clone() }),
    }
}

/// Returns lines and their numbers as an editor counts them: CR, LF and CRLF end a line.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .flat_map(|line| line.split('\r'))
        .zip(1..)
        .map(|(line, number)| (number, line))
}
