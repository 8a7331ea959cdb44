//! Studies that an export has submitted to a manager: a later process follows them instead of submitting them again.

use crate::record::{ExportFolder, FolderStateError, SUBMISSIONS};
use pleach_results::folder::publish;
use serde::{Deserialize, Serialize};
use std::fs;

/// Study of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSubmission {
    /// Digest of the study and of its image files.
    pub digest: String,
    /// Address of the manager.
    pub manager: String,
    /// Id of the study on this manager.
    pub study: String,
}

impl ExportFolder {
    /// Returns the recorded studies, the oldest first. A corrupt record counts as none.
    #[must_use]
    pub fn submissions(&self) -> Vec<RecordedSubmission> {
        let text = fs::read(self.path().join(SUBMISSIONS)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Records a study, in place of an earlier one of the same digest.
    ///
    /// # Errors
    /// [`FolderStateError::File`].
    pub fn record_submission(&self, submission: RecordedSubmission) -> Result<(), FolderStateError> {
        let file = self.path().join(SUBMISSIONS);
        let mut all = self.submissions();
        all.retain(|known| known.digest != submission.digest);
        all.push(submission);
        let written = serde_json::to_vec_pretty(&all).map_err(std::io::Error::other);
        let written = written.and_then(|text| publish(&file, &text));
        written.map_err(|cause| FolderStateError::File { file, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Earlier, ExportOptions, ExportRequest};

    #[test]
    fn studies_are_found_after_a_restart_until_the_export_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let request = ExportRequest {
            study: "s".to_owned(),
            workflow: "w".to_owned(),
            evaluation: Some(0),
            parameters: Default::default(),
            switched_off: Vec::new(),
            task: None,
            slides: Default::default(),
            microns_per_px: None,
            options: ExportOptions { formats: Vec::new(), class: "Nucleus".to_owned(), gzip: false },
        };
        let claim = |earlier| ExportFolder::claim(place.path(), &request, earlier).unwrap();
        let of = |digest: &str, study: &str| RecordedSubmission {
            digest: digest.to_owned(),
            manager: "m:7118".to_owned(),
            study: study.to_owned(),
        };
        let folder = claim(Earlier::Refuse);
        for (digest, study) in [("a", "1"), ("b", "2"), ("a", "3")] {
            folder.record_submission(of(digest, study)).unwrap();
        }
        assert_eq!(claim(Earlier::Resume).submissions(), [of("b", "2"), of("a", "3")]);
        fs::write(place.path().join(SUBMISSIONS), "[").unwrap();
        assert_eq!(claim(Earlier::Resume).submissions(), []);
        folder.record_submission(of("a", "1")).unwrap();
        assert_eq!(claim(Earlier::Overwrite).submissions(), []);
    }
}
