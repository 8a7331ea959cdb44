//! The bytes of a table on their way into the CSV reader: which separator they have, and on which line each row begins.
//!
//! Of what has been read only the row at hand is kept, and what the CSV reader holds in advance.

use std::io::{Cursor, Read};

/// The separators that tables have: commas, or what spreadsheets write where commas are in numbers.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// How much of a table is looked at to find its header: far longer than any header.
const HEAD_BYTES: u64 = 1 << 16;

/// A table whose separator is known, without its byte-order mark.
/// Blanks separate where they may, and nothing else does.
pub(super) fn open<R: Read>(mut table: R, blanks: bool) -> std::io::Result<(u8, Source<R>)> {
    let mut head = Vec::new();
    table.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    if head.starts_with("\u{feff}".as_bytes()) {
        head.drain(..3);
    }
    let separator = separator(&head, blanks);
    Ok((
        separator,
        Source { bytes: Cursor::new(head).chain(table), kept: Vec::new(), done: 0, start: 0, line: 1 },
    ))
}

/// The first separator of the header that stands outside of quotes; a comma where there is none, or where there are
/// commas too.
fn separator(head: &[u8], blanks: bool) -> u8 {
    let blank = head.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let header = head[blank..].split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let mut quoted = false;
    let outside: Vec<u8> = header
        .iter()
        .copied()
        .filter(|&byte| {
            quoted ^= byte == b'"';
            !quoted
        })
        .collect();
    let mark = SEPARATORS.into_iter().find(|separator| outside.contains(separator));
    match mark {
        // Columns of blanks may have tabs among them.
        None | Some(b'\t') if blanks && outside.contains(&b' ') => b' ',
        mark => mark.unwrap_or(b','),
    }
}

/// Bytes that are counted as they pass.
pub(super) struct Source<R> {
    bytes: std::io::Chain<Cursor<Vec<u8>>, R>,
    /// What has been read and not yet let go of.
    kept: Vec<u8>,
    /// Of these, bytes that are let go of.
    done: usize,
    /// Place in the table of the first byte that is not.
    start: u64,
    /// Its line.
    line: usize,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        // Moving what is kept costs more than holding some of what is not.
        if self.done > 1 << 16 {
            self.kept.drain(..self.done);
            self.done = 0;
        }
        self.kept.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

impl<R> Source<R> {
    /// Lets go of what lies before this place of the table.
    pub(super) fn release(&mut self, place: u64) {
        let count = usize::try_from(place.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let left = &self.kept[self.done..];
        let count = count.min(left.len());
        self.line += line_ends(left, count);
        self.done += count;
        self.start += count as u64;
    }

    /// Line of the first row that has not been let go of: blank lines before it are none.
    pub(super) fn line(&self) -> usize {
        let left = &self.kept[self.done..];
        let blank = left.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.line + line_ends(left, blank)
    }
}

/// Ends of lines among the first `count` bytes: LF, CRLF, or CR alone. Of a CRLF that is cut in two, the second counts.
fn line_ends(bytes: &[u8], count: usize) -> usize {
    let ends = bytes[..count].iter().enumerate().filter(|&(place, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(place + 1) != Some(&b'\n'),
        _ => false,
    });
    ends.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_those_of_the_header() {
        for (head, expected) in [
            ("a,b\n1;2", b','),
            ("\r\n\na;b\n1,5;2", b';'),
            ("a\tb\n", b'\t'),
            ("\"a;b\",c\n", b','),
            ("\"a,b\";c\n", b';'),
            ("a;b,c", b','),
            ("alone", b','),
            ("", b','),
        ] {
            let (found, _) = open(head.as_bytes(), false).unwrap();
            assert_eq!(found, expected, "{head:?}");
        }
    }

    #[test]
    fn lines_are_counted_as_they_are_let_go_of() {
        let (_, mut source) = open("\u{feff}a\r\nb\rc\n\n\nd".as_bytes(), false).unwrap();
        let mut all = String::new();
        source.read_to_string(&mut all).unwrap();
        assert_eq!(all, "a\r\nb\rc\n\n\nd");
        for (place, line) in [(0, 1), (2, 2), (3, 2), (5, 3), (7, 6), (9, 6), (100, 6)] {
            source.release(place);
            assert_eq!(source.line(), line, "at byte {place}");
        }
    }
}
