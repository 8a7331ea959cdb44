//! How far the bar of a study was, in the study's folder, for the process that resumes it.
//!
//! It is shown and nothing else: a mark that is missing, old or of another plan is ignored, and no error of writing it is
//! one of the study. `session` removes it with the journal.

use std::path::{Path, PathBuf};

/// Its name in the folder of results.
pub(crate) const NAME: &str = ".progress";

/// Where the mark is; nowhere where nothing is shown.
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

    /// The share, of 1, that was reached of a study of `tasks`.
    pub(super) fn share(&self, tasks: u64) -> Option<f64> {
        let text = std::fs::read_to_string(self.0.as_ref()?).ok()?;
        let (share, of) = text.trim_end().split_once(' ')?;
        let share: f64 = share.parse().ok()?;
        (of.parse() == Ok(tasks) && (0.0..=1.0).contains(&share)).then_some(share)
    }

    /// Writes the share down. No sync: after a loss of power a bar may start lower.
    pub(super) fn write(&self, share: f64, tasks: u64) {
        let Some(path) = &self.0 else { return };
        let part = path.with_extension("part");
        // Readers see the old mark or the new one. Whatever fails, the study goes on.
        let _ =
            std::fs::write(&part, format!("{share} {tasks}\n")).and_then(|()| std::fs::rename(&part, path));
    }
}
