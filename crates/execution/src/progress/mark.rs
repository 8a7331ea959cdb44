//! Stores the position of a study's progress bar in the study's folder, for the process that resumes it.
//!
//! The mark affects only the display. A missing, old or foreign mark is ignored, and a failed write does not fail the
//! study. `session` removes the mark with the journal.

use std::path::{Path, PathBuf};

/// Name of the mark in the results folder.
pub(crate) const NAME: &str = ".progress";

/// Path of the mark. `None` if no progress is shown.
#[derive(Clone, Debug)]
pub(crate) struct Mark(Option<PathBuf>);

impl Mark {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self(Some(folder.join(NAME)))
    }

    #[cfg(test)]
    pub(crate) fn nowhere() -> Self {
        Self(None)
    }

    /// Returns the stored share, 0–1, of a study of `tasks`. `None` if the mark is missing, invalid or of another
    /// number of tasks.
    pub(super) fn share(&self, tasks: u64) -> Option<f64> {
        let text = std::fs::read_to_string(self.0.as_ref()?).ok()?;
        let (share, of) = text.trim_end().split_once(' ')?;
        let share: f64 = share.parse().ok()?;
        (of.parse() == Ok(tasks) && (0.0..=1.0).contains(&share)).then_some(share)
    }

    /// Writes the share without a sync. After a power loss a bar may start lower.
    pub(super) fn write(&self, share: f64, tasks: u64) {
        let Some(path) = &self.0 else { return };
        let part = path.with_extension("part");
        // Readers see the old mark or the new one. A failed write does not stop the study.
        let _ =
            std::fs::write(&part, format!("{share} {tasks}\n")).and_then(|()| std::fs::rename(&part, path));
    }
}
