//! Study and user that an entry was made for.
//!
//! A label is no part of a key: entries serve every study and user. Searches and quotas read it.

/// Study and user that an entry was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StudyLabel {
    /// Name of the study.
    pub study: String,
    /// Number of the study on its manager. `None` for a study of `pleach run`.
    pub id: Option<u32>,
    /// The user: the client that submitted the study, or the account that ran it.
    pub user: String,
}

/// User in segment heads: a hash of the name. Segments of unknown users have 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UserTag(pub(crate) u64);

impl UserTag {
    /// Entries without a label, and those of folders from before labels.
    pub(crate) const UNKNOWN: Self = Self(0);

    /// Returns the tag of a user, [`UNKNOWN`](Self::UNKNOWN) for an empty name.
    pub(crate) fn new(user: &str) -> Self {
        if user.is_empty() {
            return Self::UNKNOWN;
        }
        let mut tag = [0; 8];
        tag.copy_from_slice(&blake3::derive_key("pleach cache user 1", user.as_bytes())[..8]);
        Self(u64::from_le_bytes(tag))
    }
}
