//! Byte source of the CSV reader: detects the separator and counts the lines of rows.
//!
//! Memory holds only the current row and the CSV reader's read-ahead.

use std::io::{Cursor, Read};

/// Separators of tables: commas, or those of spreadsheets with decimal commas.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// Bytes searched for the header, which is far shorter.
const HEAD_BYTES: u64 = 1 << 16;

/// Opens a table, skips its byte-order mark and detects its separator. Blanks separate only if `blanks` is set and
/// no mark does.
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

/// Returns the first separator of the header outside of quotes. Returns a comma without any, or if the header also
/// has commas.
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
        // Columns separated by blanks may have tabs among them.
        None | Some(b'\t') if blanks && outside.contains(&b' ') => b' ',
        mark => mark.unwrap_or(b','),
    }
}

/// Byte source that counts lines.
pub(super) struct Source<R> {
    bytes: std::io::Chain<Cursor<Vec<u8>>, R>,
    /// Bytes read and not yet released.
    kept: Vec<u8>,
    /// Number of these bytes that are released.
    done: usize,
    /// Position in the table of the first unreleased byte.
    start: u64,
    /// Line of that byte.
    line: usize,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        // Discards released bytes in large amounts, because moving the rest costs more than holding them.
        if self.done > 1 << 16 {
            self.kept.drain(..self.done);
            self.done = 0;
        }
        self.kept.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

impl<R> Source<R> {
    /// Releases the bytes before this position of the table.
    pub(super) fn release(&mut self, place: u64) {
        let count = usize::try_from(place.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let left = &self.kept[self.done..];
        let count = count.min(left.len());
        self.line += line_ends(left, count);
        self.done += count;
        self.start += count as u64;
    }

    /// Returns the line of the first unreleased row, without blank lines before it.
    pub(super) fn line(&self) -> usize {
        let left = &self.kept[self.done..];
        let blank = left.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.line + line_ends(left, blank)
    }
}

/// Counts the line ends among the first `count` bytes: LF, CRLF, or CR alone. If `count` splits a CRLF, its
/// LF counts.
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
    fn line_count_follows_released_bytes() {
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
