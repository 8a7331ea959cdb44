//! Content digest of an input file. A slide in several files has one digest of all of them.

use crate::message::FileContent;

/// Returns the digest of a slide, computed from the digest of its main file and from the digests and names of the others in
/// order. A single file keeps its own digest.
#[must_use]
pub fn digest_of_files<'a>(
    first: [u8; 32],
    others: impl IntoIterator<Item = (&'a [u8], [u8; 32])>,
) -> [u8; 32] {
    let mut others = others.into_iter().peekable();
    if others.peek().is_none() {
        return first;
    }
    let mut hash = blake3::Hasher::new();
    hash.update(b"pleach slide 1").update(&first);
    for (name, digest) in others {
        // The length precedes the name, so that different lists never hash the same bytes.
        hash.update(&(name.len() as u64).to_le_bytes()).update(name).update(&digest);
    }
    *hash.finalize().as_bytes()
}

impl FileContent {
    /// Returns the BLAKE3 digest of the content. With companions, the digest covers all files of the slide, independent of
    /// the slide's own name and folder.
    #[must_use]
    pub fn digest_of_all(&self) -> [u8; 32] {
        let others = self.companions.iter().map(|companion| {
            let name = companion.name.rsplit('/').next().unwrap_or_default();
            (name.as_bytes(), companion.digest)
        });
        digest_of_files(self.digest, others)
    }
}
