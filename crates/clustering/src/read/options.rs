//! Options of readers.

/// Options of readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// A missing or negative run time is 0 s, a missing or negative size 0 bytes. Otherwise both are errors.
    pub assume_zero: bool,
    /// Maximum length of the text in bytes, after decompression.
    pub max_bytes: u64,
}

impl Default for ReadOptions {
    /// 1 GiB of text: a DAX file of 100,000 tasks of SIPHT, the family with most files per task, has 0.8 GB.
    fn default() -> Self {
        Self { assume_zero: false, max_bytes: 1 << 30 }
    }
}
