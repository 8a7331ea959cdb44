//! Lines of a journal: formatting and parsing.

use pleach_regions::Table;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use thiserror::Error;

/// Format version. It increases when the lines below change.
pub const FORMAT: u32 = 1;

/// Number of hexadecimal digits of a line's checksum: the first 64 bits of its BLAKE3 hash.
const CHECKSUM_DIGITS: usize = 16;

/// Maximum length of the first line, 1 MiB: it has one digest for each of about 10 parts of a study.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// First line of a journal: identifies the study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    journal: u32,
    /// Version of pleach that wrote the journal.
    version: String,
    /// Digests of the parts of the study that determine its results.
    study: BTreeMap<String, String>,
}

/// Response of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct JournaledResponse {
    /// Number of the evaluation, from 1, or 0 for the reference.
    pub evaluation: usize,
    /// Index of the tile.
    pub tile: usize,
    /// Tables that the run reported.
    pub results: Vec<Table>,
}

/// Content of a parsed line. Numbers are text in their shortest form that parses to the same value.
#[derive(Deserialize)]
struct Line {
    evaluation: usize,
    tile: usize,
    results: Vec<Vec<(String, String)>>,
}

/// Content of a line to write. It borrows its tables because thousands of lines are written per second.
#[derive(Serialize)]
struct Written<'a> {
    evaluation: usize,
    tile: usize,
    results: Tables<'a>,
}

struct Tables<'a>(&'a [Table]);

impl Serialize for Tables<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(Columns))
    }
}

struct Columns<'a>(&'a Table);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.columns().map(|(name, value)| (name, Text(value))))
    }
}

struct Text(f64);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// Content of a journal.
#[derive(Debug)]
pub struct Journal {
    /// Responses in the order of writing.
    pub known: Vec<JournaledResponse>,
    /// Length in bytes of the prefix of intact lines.
    pub good_bytes: u64,
    /// Bytes after the intact lines: torn or corrupt.
    pub bad_bytes: u64,
}

/// Reason why a journal cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The first line is corrupt.
    #[error("its first line is damaged, so it cannot be said whose it is")]
    Damaged,
    /// The journal has another format version.
    #[error("it is of format {found}; this pleach reads format {FORMAT}")]
    Format {
        /// Format version of the journal.
        found: u32,
    },
    /// Another version of pleach wrote the journal. Its results may differ.
    #[error("pleach {found} wrote it, and this is pleach {}; only the same version may continue it", env!("CARGO_PKG_VERSION"))]
    Version {
        /// Version that wrote the journal.
        found: String,
    },
    /// The journal belongs to another study.
    #[error("the study is not the one that was interrupted; what changed: {parts}")]
    Study {
        /// Names of the parts that differ.
        parts: String,
    },
}

impl Header {
    /// Creates the header of a study run by this version.
    pub fn new(parts: &[(&'static str, String)]) -> Self {
        let study = parts.iter().map(|(part, digest)| ((*part).to_owned(), digest.clone())).collect();
        Self { journal: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), study }
    }

    /// Returns the format version of the journal.
    pub fn format(&self) -> u32 {
        self.journal
    }

    /// Returns the version of pleach that wrote the journal. Only this version may continue it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the header as the first line of a journal.
    pub fn line(&self) -> String {
        let mut line = Vec::new();
        append_line(self, &mut line);
        // JSON and hexadecimal digits.
        String::from_utf8(line).unwrap_or_default()
    }

    /// Checks that this study may continue a journal with the header `found`.
    fn check(&self, found: &Self) -> Result<(), HeaderError> {
        if found.journal != self.journal {
            return Err(HeaderError::Format { found: found.journal });
        }
        if found.version != self.version {
            return Err(HeaderError::Version { found: found.version.clone() });
        }
        let changed = self.study.iter().filter(|(part, digest)| found.study.get(*part) != Some(digest));
        let changed: Vec<&str> = changed.map(|(part, _)| part.as_str()).collect();
        if changed.is_empty() { Ok(()) } else { Err(HeaderError::Study { parts: changed.join(", ") }) }
    }
}

impl JournaledResponse {
    /// Appends the response as a line of a journal.
    pub(crate) fn append_line(&self, to: &mut Vec<u8>) {
        let results = Tables(&self.results);
        append_line(&Written { evaluation: self.evaluation, tile: self.tile, results }, to);
    }

    fn of(line: Line) -> Option<Self> {
        let table = |columns: Vec<(String, String)>| -> Option<Table> {
            let columns: Option<Vec<(String, f64)>> =
                columns.into_iter().map(|(name, value)| Some((name, value.parse().ok()?))).collect();
            columns.map(Table::new)
        };
        let results: Option<Vec<Table>> = line.results.into_iter().map(table).collect();
        Some(Self { evaluation: line.evaluation, tile: line.tile, results: results? })
    }
}

/// Returns the checksum of a line's content, as the first digits of the text.
fn checksum(content: &[u8]) -> impl AsRef<str> + use<> {
    blake3::hash(content).to_hex()
}

fn append_line(content: &impl Serialize, to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(&[b' '; CHECKSUM_DIGITS + 1]);
    // Serialization of strings, integers and lists of them into memory cannot fail.
    serde_json::to_writer(&mut *to, content).unwrap_or_default();
    let sum = checksum(&to[start + CHECKSUM_DIGITS + 1..]);
    to[start..start + CHECKSUM_DIGITS].copy_from_slice(&sum.as_ref().as_bytes()[..CHECKSUM_DIGITS]);
    to.push(b'\n');
}

/// Returns the content of a line without its newline. `None` if its checksum does not match.
fn content(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?;
    let (sum, text) = line.split_at_checked(CHECKSUM_DIGITS)?;
    let text = text.strip_prefix(' ')?;
    (checksum(text.as_bytes()).as_ref()[..CHECKSUM_DIGITS] == *sum).then_some(text)
}

/// Returns whether the first line of a journal is intact.
///
/// # Errors
/// [`io::Error`] if the journal cannot be read.
pub fn has_header(journal: impl Read) -> io::Result<bool> {
    Ok(read_header(journal)?.is_some())
}

/// Reads the first line of a journal. `None` if it is corrupt.
///
/// # Errors
/// [`io::Error`] if the journal cannot be read.
pub fn read_header(journal: impl Read) -> io::Result<Option<Header>> {
    let mut first = Vec::new();
    // Bounds the memory: a corrupt file may have no line end.
    BufReader::new(journal).take(MAX_HEADER_BYTES).read_until(b'\n', &mut first)?;
    Ok(header_of(&first))
}

fn header_of(line: &[u8]) -> Option<Header> {
    serde_json::from_str(content(line.strip_suffix(b"\n")?)?).ok()
}

/// Numbers of intact and corrupt bytes of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    pub intact: u64,
    /// Bytes from the first corrupt line on.
    pub corrupt: u64,
    /// Whether the corrupt bytes are a single line without an end, as a killed process leaves it.
    pub is_torn: bool,
}

/// Counts the bytes of a journal. It checks the checksums of lines but does not parse their content.
///
/// # Errors
/// [`io::Error`] if the journal cannot be read.
pub fn count(journal: impl Read) -> io::Result<Bytes> {
    let mut bytes = Bytes { intact: 0, corrupt: 0, is_torn: false };
    let (mut reader, mut line) = (BufReader::new(journal), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        let is_whole = bytes.corrupt == 0 && line.strip_suffix(b"\n").and_then(content).is_some();
        // Only for the first corrupt line: an append that was cut short leaves nothing behind it.
        bytes.is_torn = bytes.corrupt == 0 && !line.ends_with(b"\n");
        *(if is_whole { &mut bytes.intact } else { &mut bytes.corrupt }) += line.len() as u64;
        line.clear();
    }
    Ok(bytes)
}

/// Reads a journal that a study with this `header` may continue, up to the first torn or corrupt line.
///
/// # Errors
/// [`HeaderError`] if the study may not continue the journal.
pub fn read(bytes: &[u8], header: &Header) -> Result<Journal, HeaderError> {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let whole = |line: &[u8]| line.strip_suffix(b"\n").and_then(content).map(str::to_owned);
    let first = lines.next().unwrap_or_default();
    header.check(&header_of(first).ok_or(HeaderError::Damaged)?)?;
    let mut read = Journal { known: Vec::new(), good_bytes: first.len() as u64, bad_bytes: 0 };
    for line in lines {
        let known =
            whole(line).and_then(|text| serde_json::from_str(&text).ok()).and_then(JournaledResponse::of);
        let Some(known) = known else { break };
        read.known.push(known);
        read.good_bytes += line.len() as u64;
    }
    read.bad_bytes = bytes.len() as u64 - read.good_bytes;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(known: &JournaledResponse) -> String {
        let mut line = Vec::new();
        known.append_line(&mut line);
        String::from_utf8(line).unwrap()
    }

    fn header() -> Header {
        Header::new(&[("seed", "1".to_owned()), ("tiles", "a".to_owned())])
    }

    fn known() -> impl Strategy<Value = JournaledResponse> {
        let value = prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(-0.0)];
        let table = prop::collection::vec(("[a-z\"\\\\\n-]{0,9}", value), 0..4).prop_map(Table::new);
        (0usize..900, 0usize..90, prop::collection::vec(table, 0..3))
            .prop_map(|(evaluation, tile, results)| JournaledResponse { evaluation, tile, results })
    }

    /// Form of a table for comparison: as bits, NaN equals NaN.
    type Bits = Vec<(String, u64)>;

    fn bits(known: &[JournaledResponse]) -> Vec<(usize, usize, Vec<Bits>)> {
        let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
        let table = |t: &Table| t.columns().map(|(name, value)| (name.to_owned(), bits(value))).collect();
        known.iter().map(|k| (k.evaluation, k.tile, k.results.iter().map(table).collect())).collect()
    }

    proptest! {
        #[test]
        fn journal_records_round_trip(known in prop::collection::vec(known(), 0..20)) {
            let text = header().line() + &known.iter().map(line).collect::<String>();
            let read = read(text.as_bytes(), &header()).unwrap();
            prop_assert_eq!(bits(&read.known), bits(&known));
            prop_assert_eq!((read.good_bytes, read.bad_bytes), (text.len() as u64, 0));
        }

        /// With one byte changed or the end missing, reading returns exactly the lines before.
        #[test]
        fn corrupt_record_ends_the_journal_before_it(
            known in prop::collection::vec(known(), 1..20),
            at in any::<prop::sample::Index>(),
            change in 0u8..=255,
        ) {
            let head = header().line();
            let lines: Vec<String> = known.iter().map(line).collect();
            let mut bytes = (head.clone() + &lines.concat()).into_bytes();
            let at = head.len() + at.index(bytes.len() - head.len());
            match change {
                0 => bytes.truncate(at),
                change => bytes[at] ^= change,
            }
            let mut whole = 0;
            let mut end = head.len();
            for line in &lines {
                end += line.len();
                if end > at { break }
                whole += 1;
            }
            let read = read(&bytes, &header()).unwrap();
            prop_assert_eq!(bits(&read.known), bits(&known[..whole]));
            prop_assert_eq!(read.good_bytes + read.bad_bytes, bytes.len() as u64);
        }

        #[test]
        fn random_bytes_are_refused_as_a_journal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(read(&bytes, &header()).unwrap_err(), HeaderError::Damaged);
        }
    }

    #[test]
    fn journal_of_another_study_is_refused_by_component() {
        let other = Header::new(&[("seed", "1".to_owned()), ("tiles", "b".to_owned())]);
        let error = read(other.line().as_bytes(), &header()).unwrap_err();
        assert_eq!(error, HeaderError::Study { parts: "tiles".to_owned() });
        let mut older = header();
        older.version = "0.0.9".to_owned();
        let error = read(older.line().as_bytes(), &header()).unwrap_err();
        assert_eq!(error, HeaderError::Version { found: "0.0.9".to_owned() });
        let mut newer = header();
        newer.journal = 2;
        let error = read(newer.line().as_bytes(), &header()).unwrap_err();
        assert_eq!(error, HeaderError::Format { found: 2 });
    }
}
