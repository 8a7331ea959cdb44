//! The words of a Dakota input: keywords and what is written behind each, block by block.
//!
//! Dakota's grammar in short: `#` begins a comment, commas and equals signs separate like blanks, texts stand in single or
//! double quotes, `3*0.5` is a number three times. Whatever is no number and no text is a keyword. What keywords mean is
//! not known here.

use super::DakotaError;

/// Blocks of an input, each once here.
pub(super) const BLOCKS: [&str; 7] =
    ["environment", "strategy", "method", "model", "variables", "interface", "responses"];

/// Numbers and texts of an input: far more than a study has, and little memory.
const MAX_ARGUMENTS: usize = 100_000;

/// What stands behind a keyword.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Argument {
    /// A number, as written.
    Number(String),
    /// A quoted text.
    Text(String),
}

/// A keyword and what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) line: usize,
    /// In lower case, as Dakota reads it.
    pub(super) keyword: String,
    pub(super) arguments: Vec<Argument>,
}

/// A block's keywords.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) line: usize,
    pub(super) name: &'static str,
    pub(super) entries: Vec<Entry>,
}

/// The blocks of an input.
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

/// The next word of a line, and what follows it.
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

/// Whether a word is meant as a number, right or wrong.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        || word.parse::<f64>().is_ok()
}

/// `3*0.5` is 0.5 three times.
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

/// Lines and their numbers as an editor counts them: CR, LF and CRLF end one.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .flat_map(|line| line.split('\r'))
        .zip(1..)
        .map(|(line, number)| (number, line))
}
