//! Results of a study in phases: joint `run.json` and `report.html` beside the folders of the phases, and the
//! survivors of each phase.

use crate::analysis::Collected;
use crate::exit::{CommandError, CommandResult};
use crate::output::folder::Folder;
use crate::output::record::{OperationRecord, PhaseRun, RunRecord};
use pleach_planner::PlanRecord;

use crate::report::sample_plots::Sampled;
use crate::report::{self, Report};
use crate::results::WrittenResults;
use crate::study::PreparedStudy;
use serde::{Deserialize, Serialize};

/// Name of the survivors file in the folder of a phase.
pub(crate) const SURVIVORS: &str = "survivors.json";

/// Survivors of a phase: parameters that the next phases vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Screened {
    /// Number of the phase, from 1.
    pub(crate) phase: usize,
    /// Response that determined the survivors.
    pub(crate) response: String,
    /// Survivor rule, as in the study file.
    pub(crate) rule: String,
    /// Surviving parameters, in the order of the parameters.
    pub(crate) survivors: Vec<String>,
    /// Parameters that varied in the phase and are fixed afterwards.
    pub(crate) fixed: Vec<String>,
}

/// Written form of a survivors file: the content and its checksum.
#[derive(Serialize)]
struct WithChecksum<'a> {
    #[serde(flatten)]
    screened: &'a Screened,
    checksum: String,
}

/// Survivors file of a phase, as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundSurvivors {
    /// No file.
    None,
    Sound(Screened),
    /// The file is corrupt, for this reason.
    Corrupt(String),
}

impl Screened {
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
    pub(crate) fn of_text(text: &[u8]) -> Result<(Self, bool), String> {
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
    /// [`CommandError::Input`] if the file cannot be read.
    pub(crate) fn read(folder: &Folder, varied: &[&str]) -> CommandResult<FoundSurvivors> {
        let file = folder.path().join(SURVIVORS);
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(FoundSurvivors::None),
            Err(error) => {
                return Err(CommandError::Input(format!("{}: failed to read: {error}", file.display())));
            }
        };
        let screened = Self::of_text(&text).and_then(|(screened, is_checksummed)| {
            let all = screened.survivors.iter().chain(&screened.fixed);
            let mut named: Vec<&str> = all.map(String::as_str).collect();
            let mut varied = varied.to_vec();
            named.sort_unstable();
            varied.sort_unstable();
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
    pub(crate) fn write(&self, folder: &Folder) -> CommandResult {
        let (_, text) = self.text().map_err(CommandError::defect)?;
        folder.write(SURVIVORS, &text)
    }
}

/// `plan.json` of a study in phases: the owner of the folder, and the folders of the phases.
#[derive(Debug, Serialize)]
pub(crate) struct PlanOfPhases<'a> {
    study: &'a str,
    study_digest: &'a str,
    phases: &'a [String],
}

impl<'a> PlanOfPhases<'a> {
    pub(crate) fn new(study: &'a str, study_digest: &'a str, phases: &'a [String]) -> Self {
        Self { study, study_digest, phases }
    }
}

/// Executed phase.
#[derive(Clone, Copy)]
pub(crate) struct Phase<'a> {
    /// Folder of the phase within that of the study.
    pub(crate) folder: &'a str,
    pub(crate) prepared: &'a PreparedStudy,
    pub(crate) plan: &'a PlanRecord,
    pub(crate) written: &'a WrittenResults,
    pub(crate) collected: &'a Collected,
    /// Survivors. `None` for the last phase.
    pub(crate) screened: Option<&'a Screened>,
}

impl<'a> Phase<'a> {
    /// Returns the input of this phase's section of the report. `None` without an analysis.
    pub(crate) fn report(&self) -> Option<Report<'a>> {
        let (analysis, further) = self.written.analyses.split_first()?;
        Some(Report {
            study: &self.prepared.study,
            plan: self.plan,
            run: &self.written.run,
            analysis,
            further,
            runs: &self.collected.runs,
            failures: self.written.failures.as_ref(),
            gallery: &self.written.gallery,
            sampled: Some(Sampled { design: &self.prepared.design, collected: self.collected }),
        })
    }
}

/// Writes the joint results of all phases.
///
/// # Errors
/// [`CommandError::Input`] if the folder is not writable.
pub(crate) fn write(phases: &[Phase<'_>], wall_seconds: f64, folder: &Folder) -> CommandResult<RunRecord> {
    let run = of_all(phases, wall_seconds).ok_or_else(|| CommandError::defect("a study of no phase"))?;
    let html = report::phases::html(&run, phases);
    folder.write("report.html", html.as_bytes())?;
    // Write run.json last: its presence marks the results as complete.
    folder.write_json("run.json", &run)?;
    Ok(run)
}

/// Returns `run.json` of the study: totals over all phases, and each phase. `None` without phases.
fn of_all(phases: &[Phase<'_>], wall_seconds: f64) -> Option<RunRecord> {
    let runs = || phases.iter().map(|phase| &phase.written.run);
    let mut all = runs().next_back()?.clone();
    all.wall_seconds = wall_seconds;
    all.planning_seconds = runs().map(|run| run.planning_seconds).sum();
    all.evaluations = runs().map(|run| run.evaluations).sum();
    all.runs = runs().map(|run| run.runs).sum();
    all.failed = runs().map(|run| run.failed).sum();
    all.tasks_executed = runs().map(|run| run.tasks_executed).sum();
    all.tasks_reused.clear();
    all.operations.clear();
    all.convergence = None;
    for run in runs() {
        for (level, tasks) in &run.tasks_reused {
            *all.tasks_reused.entry(level).or_insert(0) += tasks;
        }
        run.operations.iter().for_each(|operation| add(&mut all.operations, operation));
        for tile in &run.excluded_tiles {
            if !all.excluded_tiles.contains(tile) {
                all.excluded_tiles.push(tile.clone());
            }
        }
    }
    // Cache counters accumulate over phases, so the counters of the last phase are the totals.
    if let (Some(cache), Some(last)) = (&mut all.cache, runs().next_back()) {
        cache.warnings =
            runs().filter_map(|run| run.cache.as_ref()).flat_map(|cache| cache.warnings.clone()).collect();
        let asked = last.operations.iter().find(|operation| operation.name == "cache");
        let all = all.operations.iter_mut().find(|operation| operation.name == "cache");
        if let (Some(all), Some(asked)) = (all, asked) {
            all.runs = asked.runs;
        }
    }
    all.operations.sort_by(|a, b| a.name.cmp(&b.name));
    all.peak_bytes_admitted = runs().map(|run| run.peak_bytes_admitted).max().unwrap_or(0);
    all.peak_rss_bytes = runs().map(|run| run.peak_rss_bytes).max().unwrap_or(0);
    all.phases = phases.iter().enumerate().map(|(number, phase)| of_one(number, phase)).collect();
    Some(all)
}

fn of_one(number: usize, phase: &Phase<'_>) -> PhaseRun {
    let (study, run) = (&phase.prepared.study, &phase.written.run);
    let varied = study.workflow.parameters.iter().filter(|parameter| parameter.domain.varies());
    PhaseRun {
        phase: number + 1,
        folder: phase.folder.to_owned(),
        method: study.method.kind(),
        parameters: varied.map(|parameter| parameter.name.clone()).collect(),
        survivors: phase.screened.map(|screened| screened.survivors.clone()),
        evaluations: run.evaluations,
        runs: run.runs,
        failed: run.failed,
        tasks_executed: run.tasks_executed,
        tasks_reused: run.tasks_reused.clone(),
        wall_seconds: run.wall_seconds,
        convergence: run.convergence.clone(),
    }
}

/// Adds the runs and seconds of an operation in another phase. Prediction errors are weighted by seconds.
fn add(all: &mut Vec<OperationRecord>, more: &OperationRecord) {
    let Some(known) = all.iter_mut().find(|operation| operation.name == more.name) else {
        return all.push(more.clone());
    };
    let wrong =
        |operation: &OperationRecord| operation.prediction_error.map(|error| error * operation.seconds);
    let seconds = known.seconds + more.seconds;
    let error = wrong(known).unwrap_or(0.0) + wrong(more).unwrap_or(0.0);
    let is_foretold = known.prediction_error.is_some() || more.prediction_error.is_some();
    known.prediction_error = (is_foretold && seconds > 0.0).then(|| error / seconds);
    known.predicted_seconds = match (known.predicted_seconds, more.predicted_seconds) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    };
    (known.runs, known.seconds) = (known.runs + more.runs, seconds);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screened() -> Screened {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Screened {
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
        assert_eq!(Screened::read(&folder, &varied).unwrap(), FoundSurvivors::None);
        screened().write(&folder).unwrap();
        assert_eq!(Screened::read(&folder, &varied).unwrap(), FoundSurvivors::Sound(screened()));
        let file = place.path().join(SURVIVORS);
        let text = std::fs::read(&file).unwrap();
        for place in 0..text.len() {
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[place] ^= 1 << bit;
                assert!(Screened::of_text(&changed).is_err(), "bit {bit} of byte {place}");
            }
            assert!(Screened::of_text(&text[..place]).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn survivors_of_an_earlier_version_name_each_parameter_once() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::take(place.path(), "a").unwrap();
        folder.write_json(SURVIVORS, &screened()).unwrap();
        assert_eq!(Screened::read(&folder, &["T2", "T1", "G1"]).unwrap(), FoundSurvivors::Sound(screened()));
        for varied in [&["T1", "T2"][..], &["T1", "T2", "G1", "G2"], &["T1", "T2", "T3"]] {
            let found = Screened::read(&folder, varied).unwrap();
            let FoundSurvivors::Corrupt(why) = found else { panic!("{varied:?}: {found:?}") };
            assert!(why.contains("survivors.json: corrupt: survivors and fixed"), "{why}");
        }
    }
}
