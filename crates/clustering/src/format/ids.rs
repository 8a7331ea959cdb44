//! Ids of WfFormat: ASCII letters, digits, `-`, `_` and `.`. All other names are escaped, so that reading restores them.

use std::borrow::Cow;

/// Name of the runtime system in files with escaped ids.
pub(crate) const RUNTIME_SYSTEM: &str = "pleach";

/// Start of escaped names. A name that starts with it is escaped too, so that no two names have the same id.
const PREFIX: &str = "x-";

/// Returns the id of a name: the name if it is one and does not start with `x-`. Otherwise `x-` and the name, in UTF-8, with each
/// byte other than an ASCII letter, a digit, `-` and `.` as `_` and two hexadecimal digits.
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let is_id = !name.is_empty() && name.bytes().all(|byte| is_plain(byte) || byte == b'_');
    if is_id && !name.starts_with(PREFIX) {
        return Cow::Borrowed(name);
    }
    let mut id = PREFIX.to_owned();
    for byte in name.bytes() {
        if is_plain(byte) {
            id.push(char::from(byte));
        } else {
            id.push_str(&format!("_{byte:02X}"));
        }
    }
    Cow::Owned(id)
}

/// Returns the name of an id of [`escaped`]. Other ids stay as they are.
pub(crate) fn unescaped(id: &str) -> Cow<'_, str> {
    match id.strip_prefix(PREFIX).and_then(decoded) {
        Some(name) => Cow::Owned(name),
        None => Cow::Borrowed(id),
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('_');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_restored_from_ids() {
        for (name, id) in [
            ("ID_00-1.fits", "ID_00-1.fits"),
            ("", "x-"),
            ("a b", "x-a_20b"),
            ("NC_1#2", "x-NC_5F1_232"),
            ("é/", "x-_C3_A9_2F"),
            ("x-1", "x-x-1"),
        ] {
            assert_eq!(escaped(name), id);
            assert_eq!(unescaped(id), name);
        }
        for id in ["x-_", "x-_G0", "x-_FF", "x-_2", "y-_20"] {
            assert_eq!(unescaped(id), id, "no id of a name");
        }
    }
}
