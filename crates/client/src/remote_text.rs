//! Remote texts within messages.

/// Maximum length of a remote text within a line.
const MAX_LETTERS: usize = 200;

/// Quotes a remote text: without line breaks and without control characters that a terminal obeys.
pub fn plain(text: &str) -> String {
    pleach_workflow::text::quoted(text, MAX_LETTERS)
}
