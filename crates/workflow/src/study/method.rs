//! `[method]`: selects the design of a study. Samplers draw the parameter sets.

use super::StudyError;
use super::wording::{SWITCH, TEXT, needed_integer};
use crate::toml_fields::Section;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Method that chooses and analyzes parameter sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// Morris' one-at-a-time screening.
    Moat {
        /// Number of trajectories, at least 1.
        trajectories: usize,
        /// Levels of continuous parameters, at least 2.
        levels: usize,
        /// Sampling of the base points of trajectories. `None` draws them at random, with the directions.
        #[serde(default)]
        base: Option<BasePoints>,
        /// Number of trajectories drawn. The most distant ones among them are used. `None` uses all.
        #[serde(default)]
        candidates: Option<u32>,
    },
    /// Variance-based decomposition, on Saltelli's design.
    Vbd {
        /// Number of base samples, at least 1.
        samples: usize,
        /// Whether the design supports second-order indices.
        second_order: bool,
        /// Sampling of the base samples.
        base: BasePoints,
    },
    /// Correlation, or another given-data method.
    Correlation {
        /// Number of evaluations, at least [`GivenDataMethod::min_evaluations`].
        samples: usize,
        /// Sampling of the points.
        base: BasePoints,
        /// Analysis of the points.
        #[serde(default)]
        of: GivenDataMethod,
    },
    /// eFAST, on search curves of its own.
    Fast {
        /// Number of evaluations of each varying parameter's curve, at least [`Method::MIN_OF_CURVE`].
        samples: usize,
    },
    /// Parameter sets from a file.
    Table {
        /// The CSV file.
        file: PathBuf,
    },
}

/// Methods that need no design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivenDataMethod {
    /// Pearson's, Spearman's, partial and partial rank correlations.
    #[default]
    Correlation,
    /// Standardized regression, of values and of ranks.
    Regression,
    /// PAWN: distances of distributions.
    Pawn,
    /// Borgonovo's delta.
    Delta,
    /// First-order indices by RBD-FAST.
    RbdFast,
}

impl GivenDataMethod {
    /// All given-data methods.
    pub const ALL: [Self; 5] = [Self::Correlation, Self::Regression, Self::Pawn, Self::Delta, Self::RbdFast];

    /// Returns the name in study files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Correlation => "correlation",
            Self::Regression => "regression",
            Self::Pawn => "pawn",
            Self::Delta => "delta",
            Self::RbdFast => "rbd-fast",
        }
    }

    /// Returns the minimum number of evaluations for meaningful results.
    #[must_use]
    pub fn min_evaluations(self) -> u64 {
        match self {
            Self::Correlation | Self::Regression => 3,
            Self::Pawn => 10,
            Self::Delta => 20,
            Self::RbdFast => 42,
        }
    }
}

/// Sampling of the base samples of a design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BasePoints {
    /// Scrambled Sobol' points, which cover the parameters' ranges evenly.
    #[default]
    Sobol,
    /// Independent random points.
    MonteCarlo,
    /// A Latin hypercube: each range is divided into one interval per sample, with one sample each.
    LatinHypercube,
    /// Scrambled Halton points.
    Halton,
    /// Scrambled Hammersley points: Halton points with evenly spaced values in the first dimension.
    Hammersley,
}

impl BasePoints {
    /// All samplers of base points.
    pub const ALL: [Self; 5] =
        [Self::Sobol, Self::MonteCarlo, Self::LatinHypercube, Self::Halton, Self::Hammersley];

    /// Returns the name in study files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sobol => "sobol",
            Self::MonteCarlo => "mc",
            Self::LatinHypercube => "lhs",
            Self::Halton => "halton",
            Self::Hammersley => "hammersley",
        }
    }
}

impl Method {
    /// Length of the shortest curve that separates four harmonics of every frequency.
    pub const MIN_OF_CURVE: usize = 65;

    /// Returns the name in study files.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Moat { .. } => "moat",
            Self::Vbd { .. } => "vbd",
            Self::Correlation { .. } => "correlation",
            Self::Fast { .. } => "fast",
            Self::Table { .. } => "table",
        }
    }

    /// Returns the number of evaluations for `varied` varying parameters. Returns 0 for a table, whose number is
    /// unknown here.
    #[must_use]
    pub fn evaluations(&self, varied: usize) -> usize {
        match *self {
            Self::Moat { trajectories, .. } => trajectories * (varied + 1),
            Self::Vbd { samples, second_order, .. } => {
                samples * (if second_order { 2 * varied } else { varied } + 2)
            }
            Self::Correlation { samples, .. } => samples,
            Self::Fast { samples } => samples * varied,
            Self::Table { .. } => 0,
        }
    }

    /// Returns the method with a sample that is `times` as large.
    #[must_use]
    pub fn grown(&self, times: usize) -> Self {
        let mut grown = self.clone();
        match &mut grown {
            Self::Moat { trajectories: samples, .. }
            | Self::Vbd { samples, .. }
            | Self::Correlation { samples, .. }
            | Self::Fast { samples } => *samples *= times,
            Self::Table { .. } => {}
        }
        grown
    }

    /// Checks that a longer sample begins with a shorter one.
    ///
    /// # Errors
    /// Returns the part that cannot be extended, and the reason.
    pub fn extensible(&self) -> Result<(), (String, &'static str)> {
        let base = match *self {
            Self::Table { .. } => {
                return Err(("a table".to_owned(), "its file fixes the parameter sets"));
            }
            Self::Fast { .. } => {
                return Err(("a search curve".to_owned(), "a longer curve has different points"));
            }
            Self::Moat { candidates: Some(_), .. } => {
                let reason = "a larger number changes the choice; trajectories without candidates can";
                return Err(("trajectories chosen among candidates".to_owned(), reason));
            }
            Self::Moat { base, .. } => base,
            Self::Vbd { base, .. } | Self::Correlation { base, .. } => Some(base),
        };
        let reason = match base {
            Some(BasePoints::LatinHypercube) => {
                "its strata depend on the number of points; \"sobol\", \"halton\" and \"mc\" can"
            }
            Some(BasePoints::Hammersley) => {
                "its first coordinates divide the range by the number of points; \"sobol\", \"halton\" and \"mc\" can"
            }
            Some(BasePoints::Sobol | BasePoints::MonteCarlo | BasePoints::Halton) | None => return Ok(()),
        };
        Err((format!("a sample of \"{}\"", base.map_or("", BasePoints::name)), reason))
    }
}

/// Maximum number of base samples in a study file. Each takes several evaluations, and samplers allow no more
/// evaluations than this.
pub(super) const MAX_SAMPLES: u64 = 10_000_000;

/// Maximum number of candidate trajectories: the selection holds the distances of all pairs.
const MAX_CANDIDATES: u64 = 2_000;

/// Reads a section. `more` lists allowed keys that other readers handle.
pub(super) fn read(section: &Section<'_>, more: &[&str]) -> Result<Method, StudyError> {
    let allow = |known: &[&str]| section.allow(&[known, more].concat());
    let kind = section.needed_text("kind", TEXT)?;
    match kind {
        "moat" => {
            allow(&["kind", "sampler", "trajectories", "levels", "base", "candidates"])?;
            sampler(section, "morris", kind)?;
            // Limit: 10,000 trajectories of 15 parameters are 160,000 evaluations, more than any screening.
            let trajectories = section.integer("trajectories", 1, 10_000)?.unwrap_or(10);
            let levels = section.integer("levels", 2_u64, 100_000)?.unwrap_or(20);
            let base = base_points(section, "base")?;
            let candidates = section.integer("candidates", trajectories, MAX_CANDIDATES)?;
            let candidates = candidates.map(|candidates| candidates as u32);
            let (trajectories, levels) = (trajectories as usize, levels as usize);
            Ok(Method::Moat { trajectories, levels, base, candidates })
        }
        "vbd" => {
            allow(&["kind", "sampler", "samples", "second_order", "base"])?;
            sampler(section, "saltelli", kind)?;
            let samples = needed_integer(section, "samples", 1, MAX_SAMPLES)?;
            let second_order = section.boolean("second_order", SWITCH)?.unwrap_or(false);
            let base = base_points(section, "base")?.unwrap_or_default();
            Ok(Method::Vbd { samples: samples as usize, second_order, base })
        }
        "correlation" | "regression" | "pawn" | "delta" | "rbd-fast" => {
            allow(&["kind", "sampler", "samples"])?;
            let of = GivenDataMethod::ALL.into_iter().find(|of| of.name() == kind).unwrap_or_default();
            let samples = needed_integer(section, "samples", of.min_evaluations(), MAX_SAMPLES)?;
            let base = base_points(section, "sampler")?.unwrap_or(BasePoints::LatinHypercube);
            Ok(Method::Correlation { samples: samples as usize, base, of })
        }
        "fast" => {
            allow(&["kind", "samples"])?;
            let fewest = Method::MIN_OF_CURVE as u64;
            let samples = needed_integer(section, "samples", fewest, MAX_SAMPLES)?;
            Ok(Method::Fast { samples: samples as usize })
        }
        "table" => {
            allow(&["kind", "file"])?;
            Ok(Method::Table { file: section.path(section.needed_text("file", TEXT)?) })
        }
        other => section.not_allowed(
            "kind",
            &format!("\"{other}\""),
            "\"moat\", \"vbd\", \"correlation\", \"regression\", \"pawn\", \"delta\", \"fast\", \"rbd-fast\" or \"table\"",
        ),
    }
}

fn base_points(section: &Section<'_>, field: &str) -> Result<Option<BasePoints>, StudyError> {
    let Some(name) = section.text(field, TEXT)? else { return Ok(None) };
    match BasePoints::ALL.into_iter().find(|base| base.name() == name) {
        Some(base) => Ok(Some(base)),
        None => {
            let known: Vec<String> =
                BasePoints::ALL.iter().map(|base| format!("\"{}\"", base.name())).collect();
            section.not_allowed(field, &format!("\"{name}\""), &known.join(", "))
        }
    }
}

/// Checks the optional sampler name. Each of these kinds has a single sampler so far.
fn sampler(section: &Section<'_>, only: &str, kind: &str) -> Result<(), StudyError> {
    match section.text("sampler", TEXT)? {
        Some(sampler) if sampler != only => section.not_allowed(
            "sampler",
            &format!("\"{sampler}\""),
            &format!("\"{only}\" for kind \"{kind}\""),
        ),
        _ => Ok(()),
    }
}
