//! Users' text files (studies, descriptors, tables), and quotation of text in messages.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// 128 MiB: maximum length of a text file. A table of 1,000,000 parameter sets of the reference application has 60 MB.
pub const MAX_TEXT_BYTES: u64 = 128 << 20;

/// Reads a whole text file, without the byte-order mark that some editors write.
///
/// # Errors
/// Returns the system's error, [`ErrorKind::InvalidData`] for text that is not UTF-8, or [`ErrorKind::FileTooLarge`]
/// for files longer than [`MAX_TEXT_BYTES`]. Reads no more than the limit.
pub fn read(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    // One byte beyond the limit distinguishes a longer file from one of exactly this length.
    File::open(file)?.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        let message = format!("longer than the allowed {} MiB", MAX_TEXT_BYTES >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let (line, column) = place(error.as_bytes(), at);
        let byte = error.as_bytes()[at];
        let message =
            format!("line {line}, column {column}: byte 0x{byte:02x} is not UTF-8; text in UTF-8 is allowed");
        Error::new(ErrorKind::InvalidData, message)
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Returns the line and column of a byte of a text, from 1. Columns count characters.
#[must_use]
pub fn place(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    (line, 1 + String::from_utf8_lossy(&before[line_start..]).chars().count())
}

/// Returns the error of an invalid TOML: line, column, and a one-line message with the allowed values.
#[must_use]
pub fn toml_mistake(text: &str, error: &toml::de::Error) -> (usize, usize, String) {
    let (line, column) = place(text.as_bytes(), error.span().map_or(0, |span| span.start));
    let message = error.message().lines().collect::<Vec<_>>().join("; ");
    let message = message.replace(" as i128, expected any valid TOML value", " is beyond 64 bits");
    let allowed =
        "sections in [brackets] and lines such as key = 1, key = \"text\" or key = [1, 2] are allowed";
    (line, column, format!("no TOML: {message}; {allowed}"))
}

/// Quotes a text on one line, shortened in its middle if it has more than `most` characters.
#[must_use]
pub fn quoted(text: &str, most: usize) -> String {
    let length = text.chars().count();
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    if length <= most {
        return text.chars().map(plain).collect();
    }
    let tail = most / 3;
    let head = text.chars().take(most - tail).map(plain);
    head.chain(['…']).chain(text.chars().skip(length - tail).map(plain)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_on_one_line() {
        assert_eq!(quoted("G1", 9), "G1");
        assert_eq!(quoted("a\r\nb\u{0}", 9), "a  b ");
        assert_eq!(quoted("123456789", 9), "123456789");
        assert_eq!(quoted("1234567890", 9), "123456…890");
        assert_eq!(quoted("ääääääääääää", 3), "ää…ä");
    }

    #[test]
    fn bytes_that_are_no_text_are_named_with_their_place() {
        let file = std::env::temp_dir().join(format!("pleach-text-{}", std::process::id()));
        std::fs::write(&file, b"one\nt\xc3\xa4\xff").unwrap();
        let error = read(&file).unwrap_err();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "line 2, column 3: byte 0xff is not UTF-8; text in UTF-8 is allowed");
    }

    #[test]
    fn places_count_lines_and_letters() {
        assert_eq!(place(b"", 0), (1, 1));
        assert_eq!(place("a\nä = \n".as_bytes(), 5), (2, 3));
        assert_eq!(place(b"a\n", 9), (2, 1));
    }

    #[test]
    fn no_more_is_read_than_is_allowed() {
        let endless = read(Path::new("/dev/zero"));
        if Path::new("/dev/zero").exists() {
            assert_eq!(endless.unwrap_err().kind(), ErrorKind::FileTooLarge);
        }
    }
}
