//! Text of a file in messages: escaped, and shortened to one readable line.

/// Longest quoted text in characters: longer ones hide the rest of a message.
const MAX_CHARS: usize = 80;

/// Returns the text in quotes, without control characters, with at most 80 characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_shortened() {
        assert_eq!(quoted("a \"b\"\n\u{1b}"), r#""a \"b\"\n\u{1b}""#);
        assert_eq!(quoted(&"x".repeat(1_000_000)).chars().count(), MAX_CHARS + 3);
    }
}
