//! Verdicts on parameters from their elementary effects: which matter, and the direction of their effect.

use pleach_sensitivity::moat::{MoatIndices, MoatParameter};

/// Effects below this share of the largest effect are negligible: small compared with the largest, and far
/// above rounding errors. The share is a convention of this report, which states it at every use.
pub(crate) const NEGLIGIBLE: f64 = 0.05;

/// Conclusion about a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The whole interval of its effect is above the threshold.
    Matters,
    /// The interval includes the threshold.
    Undecided,
    /// The whole interval is below the threshold.
    Negligible,
}

impl Verdict {
    /// Returns the verdict on a parameter. Without an interval, the effect itself decides.
    pub(crate) fn of(parameter: &MoatParameter, largest: f64) -> Self {
        let spread = parameter.mu_star_conf.unwrap_or(0.0);
        let threshold = NEGLIGIBLE * largest;
        if parameter.mu_star + spread < threshold || largest == 0.0 {
            Self::Negligible
        } else if parameter.mu_star - spread >= threshold {
            Self::Matters
        } else {
            Self::Undecided
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Matters => "matters",
            Self::Undecided => "undecided",
            Self::Negligible => "negligible",
        }
    }
}

/// Direction of the response as a parameter rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
    Mixed,
    Nowhere,
}

impl Direction {
    /// Returns the direction of a parameter: up or down if at least 90 % of all change has that direction. μ
    /// is then at least 0.9 − 0.1 = 0.8 of μ*.
    pub(crate) fn of(parameter: &MoatParameter) -> Self {
        match parameter.mu / parameter.mu_star {
            _ if parameter.mu_star == 0.0 => Self::Nowhere,
            share if share >= 0.8 => Self::Up,
            share if share <= -0.8 => Self::Down,
            _ => Self::Mixed,
        }
    }

    pub(crate) fn glyph(self) -> &'static str {
        match self {
            Self::Up => "▲",
            Self::Down => "▼",
            Self::Mixed => "◆",
            Self::Nowhere => "",
        }
    }

    /// Returns the class of the parameter's bar.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Mixed | Self::Nowhere => "mixed",
        }
    }
}

/// Returns the largest μ*. 0 without parameters.
pub(crate) fn largest(indices: &MoatIndices) -> f64 {
    indices.parameters.iter().map(|parameter| parameter.mu_star).fold(0.0, f64::max)
}

/// Returns the parameters by descending μ*.
pub(crate) fn ranked(indices: &MoatIndices) -> Vec<&MoatParameter> {
    let mut ranked: Vec<_> = indices.parameters.iter().collect();
    ranked.sort_by(|a, b| b.mu_star.total_cmp(&a.mu_star));
    ranked
}
