//! Survivors file of a phase: `survivors.json`.

use crate::folder::{Folder, FolderError};
use pleach_study::Defect;
use serde::{Deserialize, Serialize};

/// Name of the survivors file in the folder of a phase.
pub const SURVIVORS: &str = "survivors.json";

/// Survivors of a phase: parameters that the next phases vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSurvivors {
    /// Number of the phase, from 1.
    pub phase: usize,
    /// Response that determined the survivors.
    pub response: String,
    /// Survivor rule, as in the study file.
    pub rule: String,
    /// Surviving parameters, in the order of the parameters.
    pub survivors: Vec<String>,
    /// Parameters that varied in the phase and are fixed afterwards.
    pub fixed: Vec<String>,
}

/// Written form of a survivors file: the content and its checksum.
#[derive(Serialize)]
struct WithChecksum<'a> {
    #[serde(flatten)]
    screened: &'a PhaseSurvivors,
    checksum: String,
}

/// Survivors file of a phase, as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSurvivors {
    /// No file.
    None,
    /// The file is intact. One of an earlier version, without a checksum, names each varied parameter once.
    Sound(PhaseSurvivors),
    /// The file is corrupt, for this reason.
    Corrupt(String),
}

impl PhaseSurvivors {
    /// Returns the BLAKE3 checksum of the content in the order of its fields, and the text of the file.
    fn text(&self) -> Result<(String, Vec<u8>), serde_json::Error> {
        let checksum = blake3::hash(&serde_json::to_vec(self)?).to_hex().to_string();
        let mut text =
            serde_json::to_vec_pretty(&WithChecksum { screened: self, checksum: checksum.clone() })?;
        text.push(b'\n');
        Ok((checksum, text))
    }

    /// Parses the text of a survivors file. The flag is `true` if the text has a checksum. Files of earlier
    /// versions have none.
    ///
    /// # Errors
    /// Returns the reason if the text is not as written.
    pub fn of_text(text: &[u8]) -> Result<(Self, bool), String> {
        let mut document: serde_json::Value =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let checksum = document.as_object_mut().and_then(|fields| fields.remove("checksum"));
        let screened: Self = serde_json::from_value(document).map_err(|error| error.to_string())?;
        let Some(checksum) = checksum else { return Ok((screened, false)) };
        // Compare with the canonical text, so that the check covers every byte of the file.
        let is_sound = screened.text().is_ok_and(|(found, written)| checksum == found && text == written);
        is_sound
            .then_some((screened, true))
            .ok_or_else(|| "its checksum does not match its content".to_owned())
    }

    /// Reads the survivors file of a phase. `varied` are the parameters that varied in it. A file without a
    /// checksum must name each of them once.
    ///
    /// # Errors
    /// [`FolderError::Read`] if the file cannot be read.
    pub fn read(folder: &Folder, varied: &[&str]) -> Result<FoundSurvivors, FolderError> {
        let file = folder.path().join(SURVIVORS);
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(FoundSurvivors::None),
            Err(cause) => return Err(FolderError::Read { file, cause }),
        };
        let screened = Self::of_text(&text).and_then(|(screened, is_checksummed)| {
            let all = screened.survivors.iter().chain(&screened.fixed);
            let mut named: Vec<&str> = all.map(String::as_str).collect();
            let mut varied = varied.to_vec();
            named.sort_unstable();
            varied.sort_unstable();
            // Without a checksum, the names are the only protection against a changed file.
            let is_whole = is_checksummed || (named == varied && !screened.survivors.is_empty());
            is_whole.then_some(screened).ok_or_else(|| {
                "survivors and fixed: each parameter that varied in the phase is allowed, once".to_owned()
            })
        });
        Ok(match screened {
            Ok(screened) => FoundSurvivors::Sound(screened),
            Err(why) => FoundSurvivors::Corrupt(format!("{}: corrupt: {why}", file.display())),
        })
    }

    /// Writes the survivors file. The caller writes it before the next phase starts.
    pub fn write(&self, folder: &Folder) -> Result<(), FolderError> {
        let (_, text) = self.text().map_err(Defect::new)?;
        folder.write(SURVIVORS, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screened() -> PhaseSurvivors {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        PhaseSurvivors {
            phase: 1,
            response: "dice".to_owned(),
            rule: "most_influential = 2".to_owned(),
            survivors: names(&["T1", "G1"]),
            fixed: names(&["T2"]),
        }
    }

    #[test]
    fn survivors_with_any_bit_changed_are_corrupt() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::take(place.path(), "a").unwrap();
        let varied = ["G1", "T1", "T2"];
        assert_eq!(PhaseSurvivors::read(&folder, &varied).unwrap(), FoundSurvivors::None);
        screened().write(&folder).unwrap();
        assert_eq!(PhaseSurvivors::read(&folder, &varied).unwrap(), FoundSurvivors::Sound(screened()));
        let file = place.path().join(SURVIVORS);
        let text = std::fs::read(&file).unwrap();
        for place in 0..text.len() {
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[place] ^= 1 << bit;
                assert!(PhaseSurvivors::of_text(&changed).is_err(), "bit {bit} of byte {place}");
            }
            assert!(PhaseSurvivors::of_text(&text[..place]).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn survivors_of_an_earlier_version_name_each_parameter_once() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::take(place.path(), "a").unwrap();
        folder.write_json(SURVIVORS, &screened()).unwrap();
        assert_eq!(
            PhaseSurvivors::read(&folder, &["T2", "T1", "G1"]).unwrap(),
            FoundSurvivors::Sound(screened())
        );
        for varied in [&["T1", "T2"][..], &["T1", "T2", "G1", "G2"], &["T1", "T2", "T3"]] {
            let found = PhaseSurvivors::read(&folder, varied).unwrap();
            let FoundSurvivors::Corrupt(why) = found else { panic!("{varied:?}: {found:?}") };
            assert!(why.contains("survivors.json: corrupt: survivors and fixed"), "{why}");
        }
    }
}
