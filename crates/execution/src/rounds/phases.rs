//! Executes the phases of a study, each in its own folder. The survivors of a phase are written before the next phase
//! begins.

use super::RoundResult;
use pleach_report::phases::Phase;
use pleach_results::folder::FolderError;
use pleach_results::survivors::{FoundSurvivors, PhaseSurvivors};
use pleach_sensitivity::screening::{self, ScreeningError};
use pleach_study::{Defect, PrepareError, PreparedStudy};
use pleach_workflow::{Study, Survivors};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Error between two phases.
#[derive(Debug, Error)]
pub enum PhasesError {
    /// The next phase cannot be prepared.
    #[error("{0}")]
    Prepare(#[from] PrepareError),
    /// The survivors in the folder were selected by another rule.
    #[error(
        "--out {}: its survivors were chosen by {found}, and the study says {expected}; a new folder is allowed",
        folder.display()
    )]
    OtherRule {
        /// The folder of the phase.
        folder: PathBuf,
        /// Rule and response in the folder.
        found: String,
        /// Rule and response of the study.
        expected: String,
    },
    /// No survivors can be selected. Boxed to keep results small.
    #[error("{0}")]
    NoSurvivors(#[from] Box<NoSurvivorsError>),
    /// The folder of the phase cannot be read or written.
    #[error("{0}")]
    Folder(#[from] FolderError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// No survivors can be selected.
#[derive(Debug, Error)]
#[error(
    "{}: phase[{phase}].survivors: {rule}: {problem}; results of the phase are in {}{}",
    file.display(), folder.display(), corrupt.as_ref().map_or_else(String::new, |corrupt| format!("; {corrupt}"))
)]
pub struct NoSurvivorsError {
    /// The study file.
    pub file: PathBuf,
    /// Number of the phase, from 1.
    pub phase: usize,
    /// The rule.
    pub rule: String,
    /// The problem.
    #[source]
    pub problem: SurvivorsProblem,
    /// The folder of the phase.
    pub folder: PathBuf,
    /// Message about a corrupt survivors file.
    pub corrupt: Option<String>,
}

/// Reason why a rule selects no survivors.
#[derive(Debug, Error)]
pub enum SurvivorsProblem {
    /// The phase has no indices. Contains the note of its analysis.
    #[error("{0}")]
    NoIndices(String),
    /// The rule does not fit the indices.
    #[error("{0}")]
    Rule(#[from] ScreeningError),
}

/// Finished phase and its survivors. `None` for the last phase.
pub(crate) type PhaseOutcome = (RoundResult, Option<PhaseSurvivors>);

/// Phase to execute.
pub struct PhaseRequest {
    /// Number of the phase, from 0.
    pub number: usize,
    /// Study of this phase. Only survivors of the phase before vary.
    pub prepared: PreparedStudy,
    /// Whether another phase follows.
    pub retains_results: bool,
}

/// Executes all phases of a study, each into its own folder in `out`. `notify` receives messages for operators.
///
/// # Errors
/// Errors of `run`. [`PhasesError`] if a phase leaves no parameter to vary, or if the next phase cannot be
/// drawn.
pub fn execute<E: From<PhasesError>>(
    whole: &PreparedStudy,
    out: &Path,
    notify: impl Fn(&str),
    mut run: impl FnMut(PhaseRequest, &Path) -> Result<RoundResult, E>,
) -> Result<Vec<PhaseOutcome>, E> {
    let names = names(&whole.study);
    let mut parts: Vec<PhaseOutcome> = Vec::with_capacity(names.len());
    for (number, name) in names.iter().enumerate() {
        let survivors = parts.last().and_then(|(_, screened)| screened.as_ref());
        let prepared = whole.of_phase(number, survivors.map(|screened| screened.survivors.as_slice()));
        let prepared = prepared.map_err(PhasesError::Prepare)?;
        let retains_results = number + 1 < names.len();
        let part = run(PhaseRequest { number, prepared, retains_results }, &out.join(name))?;
        let rule = whole.study.phases[number].survivors;
        let screened = rule.map(|rule| screened(whole, number, rule, &part, &notify)).transpose()?;
        parts.push((part, screened));
    }
    Ok(parts)
}

/// Returns the phases for the combined report. `names` are their folders.
pub fn report_phases<'a>(parts: &'a [PhaseOutcome], names: &'a [String]) -> Vec<Phase<'a>> {
    let phase = |((part, screened), name): (&'a PhaseOutcome, &'a String)| Phase {
        folder: name,
        prepared: &part.prepared,
        plan: &part.plan,
        written: &part.written,
        collected: &part.collected,
        screened: screened.as_ref(),
    };
    parts.iter().zip(names).map(phase).collect()
}

/// Returns the digest that the folder of all phases belongs to. It contains the digest of the first phase.
pub fn digest(first: &PreparedStudy) -> String {
    format!("phases {}", first.digest)
}

/// Returns the folder names of the phases.
pub fn names(study: &Study) -> Vec<String> {
    let name = |(number, phase): (usize, &pleach_workflow::Phase)| {
        format!("phase-{}-{}", number + 1, phase.method.kind())
    };
    study.phases.iter().enumerate().map(name).collect()
}

/// Returns the survivors of a phase as recorded in its folder. Without a sound record, selects them by the rule from
/// the phase's responses and records them.
fn screened(
    whole: &PreparedStudy,
    number: usize,
    rule: Survivors,
    part: &RoundResult,
    notify: impl Fn(&str),
) -> Result<PhaseSurvivors, PhasesError> {
    let study = &part.prepared.study;
    let (response, _) = &study.workflow.response.metrics[rule.metric];
    let folder = &part.session.folder;
    let varied = study.workflow.parameters.iter().filter(|parameter| parameter.domain.varies());
    let varied: Vec<&str> = varied.map(|parameter| parameter.name.as_str()).collect();
    let corrupt = match PhaseSurvivors::read(folder, &varied)? {
        FoundSurvivors::None => None,
        FoundSurvivors::Corrupt(why) => Some(why),
        FoundSurvivors::Sound(known) => {
            // A recorded choice is binding: later phases may have journals of samples drawn from it.
            if (known.rule.as_str(), known.response.as_str()) != (&rule.rule.text(), response) {
                return Err(PhasesError::OtherRule {
                    folder: folder.path().to_owned(),
                    found: format!("{} of {}", known.rule, known.response),
                    expected: format!("{} of {response}", rule.rule.text()),
                });
            }
            return Ok(known);
        }
    };
    if let Some(why) = &corrupt {
        notify(&format!("{why}; the survivors are chosen again from the responses of the phase"));
    }
    let fail = |problem| {
        PhasesError::from(Box::new(NoSurvivorsError {
            file: whole.parameter_sets().to_owned(),
            phase: number + 1,
            rule: rule.rule.text(),
            problem,
            folder: folder.path().to_owned(),
            corrupt: corrupt.clone(),
        }))
    };
    let place = study.metrics().position(|metric| metric == rule.metric);
    let analysis = place.and_then(|place| part.written.analyses.get(place));
    let analysis = analysis.ok_or_else(|| Defect::new("a screening of a response that is not analyzed"))?;
    let indices = analysis
        .moat()
        .ok_or_else(|| fail(SurvivorsProblem::NoIndices(analysis.note().unwrap_or_default().to_owned())))?;
    let survivors = screening::survivors(rule.rule, indices).map_err(|error| fail(error.into()))?;
    let fixed = indices.parameters.iter().map(|parameter| &parameter.name);
    let fixed = fixed.filter(|name| !survivors.contains(name)).cloned().collect();
    let screened = PhaseSurvivors {
        phase: number + 1,
        response: response.clone(),
        rule: rule.rule.text(),
        survivors,
        fixed,
    };
    // On disk before the next phase: failed runs are tried again after a resume, and the rule could then choose others.
    screened.write(folder)?;
    Ok(screened)
}
