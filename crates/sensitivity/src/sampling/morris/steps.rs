//! Steps of a parameter in a trajectory: their start, end and fraction.
//!
//! The caller draws random numbers.

use super::MorrisError;
use crate::design::marginal::quantile;
use crate::design::marginal::real_range;
use crate::design::trajectory::{continuous_step, signed_fraction};
use pleach_workflow::{Distribution, Domain, Parameter, Value, ValueType};

/// A value and its position in the unit interval, which distances between trajectories use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    pub(super) value: Value,
    pub(super) position: f64,
}

/// Step of a parameter in a trajectory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParameterStep {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    /// Signed fraction of the range, or of the probability of a distribution.
    pub(super) fraction: f64,
}

/// All possible steps of a parameter.
#[derive(Debug)]
pub(super) struct StepChoices<'a> {
    parameter: &'a Parameter,
    levels: u32,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Range(f64, f64),
    Distributed(&'a Distribution),
    Levels(&'a [Value]),
}

impl<'a> StepChoices<'a> {
    /// Returns the steps of a varying parameter. A parameter without a list of values has `levels` levels, at
    /// least 2.
    pub(super) fn of(parameter: &'a Parameter, levels: u32) -> Result<Self, MorrisError> {
        let (low, high) = parameter.domain.bounds();
        let bad_range = || MorrisError::BadRange { name: parameter.name.clone(), low, high };
        let kind = match &parameter.domain {
            Domain::Continuous { .. } => {
                let (low, high) = real_range(parameter).ok_or_else(bad_range)?;
                Kind::Range(low, high)
            }
            // The outermost levels are the bounds, so they must be finite.
            Domain::Distributed { distribution }
                if parameter.value_type == ValueType::Real
                    && (high - low).is_finite()
                    && distribution.check().is_ok() =>
            {
                Kind::Distributed(distribution)
            }
            Domain::Levels { values } if values.len() > 1 => Kind::Levels(values),
            _ => return Err(bad_range()),
        };
        Ok(Self { parameter, levels, kind })
    }

    /// Number of possible start positions of a step up.
    pub(super) fn bases(&self) -> u32 {
        match self.kind {
            Kind::Range(..) | Kind::Distributed(_) => self.levels / 2,
            // `Domain::MAX_LEVELS` fits in a `u32`. Sampling of a `u32` gives the same numbers on every
            // platform.
            Kind::Levels(values) => u32::try_from(values.len() - values.len() / 2).unwrap_or(u32::MAX),
        }
    }

    /// Returns the step up from a base, or the step down to it.
    pub(super) fn step(&self, base: u32, up: bool) -> Result<ParameterStep, MorrisError> {
        let (low, high) = self.parameter.domain.bounds();
        let bad_range = || MorrisError::BadRange { name: self.parameter.name.clone(), low, high };
        // Numerators over 2(p−1) are whole numbers, so only one rounding follows.
        let (bottom, top) = match self.kind {
            Kind::Levels(values) => (u64::from(base), u64::from(base) + values.len() as u64 / 2),
            _ => (2 * u64::from(base), 2 * u64::from(base) + u64::from(self.levels)),
        };
        let end = |numerator| self.end(numerator).ok_or_else(bad_range);
        let (bottom, top) = (end(bottom)?, end(top)?);
        let (from, to) = if up { (bottom, top) } else { (top, bottom) };
        let fraction = match self.kind {
            Kind::Distributed(_) => {
                let step = continuous_step(self.levels);
                Some(if up { step } else { -step })
            }
            _ => signed_fraction(self.parameter, Some(self.levels), from.value, to.value),
        };
        Ok(ParameterStep { from, to, fraction: fraction.ok_or_else(bad_range)? })
    }

    /// Returns the step that begins at a position of `[0, 1)`. The 2·bases starts divide this interval
    /// equally, in the order of their values. The lower half steps up, the upper half down.
    pub(super) fn step_at(&self, place: f64) -> Result<ParameterStep, MorrisError> {
        let bases = self.bases();
        // The lower half of the unit interval steps up, the upper half down. Rounding must not reach a further base.
        let start = ((place * 2.0 * f64::from(bases)) as u32).min(2 * bases - 1);
        if start < bases { self.step(start, true) } else { self.step(start - bases, false) }
    }

    fn end(&self, numerator: u64) -> Option<Endpoint> {
        let position = match self.kind {
            Kind::Levels(values) => numerator as f64 / (values.len() as f64 - 1.0),
            _ => numerator as f64 / (2.0 * (f64::from(self.levels) - 1.0)),
        };
        let value = match self.kind {
            // Rounding may leave the range by the last digit.
            Kind::Range(low, high) => {
                Value::from_f64((low + position * (high - low)).clamp(low, high), ValueType::Real)?
            }
            Kind::Distributed(distribution) => {
                Value::from_f64(quantile(distribution, position), ValueType::Real)?
            }
            Kind::Levels(values) => *values.get(usize::try_from(numerator).ok()?)?,
        };
        Some(Endpoint { value, position })
    }
}
