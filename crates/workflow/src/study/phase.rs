//! `[[phase]]` and `until`: studies of several phases or rounds.
//!
//! A phase screens, and the next one varies the parameters that its rule keeps. A sample with `until` grows until
//! it converges. The analysis computes survivors and interval widths.

use super::wording::{SECTION, TEXT, fail, needed_integer, needed_number, needed_section};
use super::{Method, Study, StudyError, StudyProblem, method};
use crate::parameter::Domain;
use crate::toml_fields::Section;
use serde::{Deserialize, Serialize};

/// One phase of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Method that chooses and analyzes its parameter sets.
    pub method: Method,
    /// Stopping rule of a growing sample. `None` for a sample of fixed size.
    pub until: Option<StoppingRule>,
    /// Rule for the parameters that the next phase varies. `None` in the last phase.
    pub survivors: Option<Survivors>,
}

/// Selection of the parameters that stay varied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survivors {
    /// Selection rule.
    pub rule: SurvivorRule,
    /// Index of the response that the rule applies to, in [`ResponseTable::metrics`](crate::ResponseTable::metrics).
    pub metric: usize,
}

/// A rule on μ* of the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SurvivorRule {
    /// Keeps parameters with at least this μ*, in units of the response.
    Threshold(f64),
    /// Keeps this number of parameters: those with the largest μ*.
    MostInfluential(usize),
    /// Keeps the fewest parameters whose μ* have this share of the sum of all, within (0, 1].
    CumulativeShare(f64),
}

/// Stopping rule of a growing sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Maximum width of a 95 % interval of a converged sample: twice the ± value of tables.
    pub ci_width: f64,
    /// Maximum number of evaluations.
    pub max_evaluations: usize,
    /// Index of the response that the rule applies to, in [`ResponseTable::metrics`](crate::ResponseTable::metrics).
    pub metric: usize,
}

impl SurvivorRule {
    /// Returns the rule in the syntax of study files.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Threshold(threshold) => format!("threshold = {threshold}"),
            Self::MostInfluential(count) => format!("most_influential = {count}"),
            Self::CumulativeShare(share) => format!("cumulative_share = {share}"),
        }
    }

    /// Returns the minimum number of parameters that the rule can keep.
    #[must_use]
    pub fn fewest(self) -> usize {
        match self {
            Self::MostInfluential(count) => count,
            Self::Threshold(_) | Self::CumulativeShare(_) => 1,
        }
    }
}

/// Indices and names of the metrics that a study analyzes.
pub(super) type AnalyzedMetrics<'a> = &'a [(usize, String)];

/// Methods of a study with one phase or several.
pub(super) struct PhasePlan {
    pub(super) method: Method,
    pub(super) until: Option<StoppingRule>,
    pub(super) phases: Vec<Phase>,
}

/// Reads `[method]`, or the `[[phase]]` sections.
pub(super) fn read(
    root: &Section<'_>,
    analyzed: AnalyzedMetrics<'_>,
    varied: usize,
) -> Result<PhasePlan, StudyError> {
    let Some(sections) = root.sections("phase", "sections [[phase]]", ["[", "]."])? else {
        let section = needed_section(root, "method")?;
        let method = method::read(&section, &["until"])?;
        let until = until(&section, &method, analyzed, varied)?;
        return Ok(PhasePlan { method, until, phases: Vec::new() });
    };
    if root.has("method") {
        return fail(root, "method", StudyProblem::MethodAndPhases);
    }
    if sections.len() < 2 {
        let given = format!("{} of them", sections.len());
        return root.not_allowed("phase", &given, "2 or more; a study of one part has [method]");
    }
    let mut phases: Vec<Phase> = Vec::with_capacity(sections.len());
    let mut varied = varied;
    for (number, section) in sections.iter().enumerate() {
        let is_last = number + 1 == sections.len();
        let more: &[&str] = if is_last { &["until"] } else { &["until", "survivors"] };
        let method = method::read(section, more)?;
        let kind = format!("\"{}\"", method.kind());
        match method {
            Method::Moat { .. } => {}
            Method::Vbd { .. } | Method::Correlation { .. } | Method::Fast { .. } if is_last => {}
            Method::Table { .. } if is_last => {
                return section.not_allowed(
                    "kind",
                    &kind,
                    "\"moat\", \"vbd\", \"fast\" or \"correlation\" in a phase",
                );
            }
            _ => {
                let allowed = "\"moat\" before the last phase: survivors are chosen by their mu*";
                return section.not_allowed("kind", &kind, allowed);
            }
        }
        let until = until(section, &method, analyzed, varied)?;
        let survivors = if is_last { None } else { Some(survivors(section, analyzed, varied)?) };
        // Only the minimum number of varied parameters of the next phase is known.
        varied = survivors.map_or(varied, |survivors| survivors.rule.fewest());
        phases.push(Phase { method, until, survivors });
    }
    let (method, until) = (phases[0].method.clone(), phases[0].until);
    Ok(PhasePlan { method, until, phases })
}

fn metric(section: &Section<'_>, analyzed: AnalyzedMetrics<'_>) -> Result<usize, StudyError> {
    let Some(name) = section.text("metric", TEXT)? else { return Ok(analyzed[0].0) };
    match analyzed.iter().find(|(_, known)| *known == name) {
        Some((metric, _)) => Ok(*metric),
        None => {
            let known: Vec<String> = analyzed.iter().map(|(_, name)| format!("\"{name}\"")).collect();
            let allowed = format!("a metric of [response]: {}", known.join(", "));
            section.not_allowed("metric", &format!("\"{name}\""), &allowed)
        }
    }
}

const RULES: [&str; 3] = ["threshold", "most_influential", "cumulative_share"];

fn survivors(
    section: &Section<'_>,
    analyzed: AnalyzedMetrics<'_>,
    varied: usize,
) -> Result<Survivors, StudyError> {
    let Some(fields) = section.section("survivors", SECTION)? else {
        return section.missing("survivors", "a rule such as { most_influential = 8 }");
    };
    fields.allow(&["threshold", "most_influential", "cumulative_share", "metric"])?;
    let given: Vec<&str> = RULES.into_iter().filter(|rule| fields.has(rule)).collect();
    let metric = metric(&fields, analyzed)?;
    let above_zero = |key: &str, most: f64, allowed: &str| {
        let number = needed_number(&fields, key)?;
        if number > 0.0 && number <= most && number.is_finite() {
            return Ok(number);
        }
        fields.not_allowed::<_, StudyError>(key, &number.to_string(), allowed)
    };
    let rule = match given[..] {
        ["threshold"] => SurvivorRule::Threshold(above_zero("threshold", f64::INFINITY, "a number above 0")?),
        ["most_influential"] => {
            let count = needed_integer(&fields, "most_influential", 1, varied.max(1) as u64)?;
            SurvivorRule::MostInfluential(count as usize)
        }
        ["cumulative_share"] => {
            let allowed = "a share above 0 and up to 1";
            SurvivorRule::CumulativeShare(above_zero("cumulative_share", 1.0, allowed)?)
        }
        _ => return fail(section, "survivors", StudyProblem::RuleKind),
    };
    Ok(Survivors { rule, metric })
}

fn until(
    section: &Section<'_>,
    method: &Method,
    analyzed: AnalyzedMetrics<'_>,
    varied: usize,
) -> Result<Option<StoppingRule>, StudyError> {
    let Some(fields) = section.section("until", SECTION)? else { return Ok(None) };
    fields.allow(&["ci_width", "max_evaluations", "metric"])?;
    // Checked before the numbers: no number makes a design growable that depends on its size.
    if let Err((what, reason)) = method.extensible() {
        return fail(section, "until", StudyProblem::NotExtensible { what, reason });
    }
    let ci_width = needed_number(&fields, "ci_width")?;
    if !(ci_width > 0.0 && ci_width.is_finite()) {
        return fields.not_allowed("ci_width", &ci_width.to_string(), "a number above 0");
    }
    let max_evaluations = needed_integer(&fields, "max_evaluations", 1, method::MAX_SAMPLES)? as usize;
    let first = method.evaluations(varied);
    if max_evaluations < first {
        let allowed = format!("{first} or more, the evaluations that the sample begins with");
        return fields.not_allowed("max_evaluations", &max_evaluations.to_string(), &allowed);
    }
    Ok(Some(StoppingRule { ci_width, max_evaluations, metric: metric(&fields, analyzed)? }))
}

impl Study {
    /// Returns the study of one phase (from 0). With `survivors`, all other parameters are fixed at their defaults.
    /// Returns `None` beyond the last phase.
    #[must_use]
    pub fn for_phase(&self, number: usize, survivors: Option<&[String]>) -> Option<Self> {
        let phase = self.phases.get(number)?;
        let mut study = Self {
            method: phase.method.clone(),
            until: phase.until,
            phases: Vec::new(),
            phase: Some(number + 1),
            ..self.clone()
        };
        if let Some(survivors) = survivors {
            for parameter in &mut study.workflow.parameters {
                if !survivors.contains(&parameter.name) {
                    parameter.domain = Domain::Fixed { value: parameter.default };
                }
            }
        }
        Some(study)
    }
}
