//! Text files that users write: studies, descriptors, tables; and what of them stands in a message.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Longest text file that is read: a table of a million parameter sets of the reference application has 60 MB.
pub const MAX_TEXT_BYTES: u64 = 128 << 20;

/// Reads a text file as a whole, without the byte-order mark that some editors write.
///
/// # Errors
/// What the system says; [`ErrorKind::InvalidData`] of text that is not UTF-8; [`ErrorKind::FileTooLarge`] beyond
/// [`MAX_TEXT_BYTES`], of which no more is read.
pub fn read(file: &Path) -> Result<String> {
    let mut text = String::new();
    File::open(file)?.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        let message = format!("it is longer than {} MiB, which are allowed", MAX_TEXT_BYTES >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// A text as messages quote it: on one line, and cut in its middle where it has more than `most` letters.
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
    fn no_more_is_read_than_is_allowed() {
        let endless = read(Path::new("/dev/zero"));
        if Path::new("/dev/zero").exists() {
            assert_eq!(endless.unwrap_err().kind(), ErrorKind::FileTooLarge);
        }
    }
}
