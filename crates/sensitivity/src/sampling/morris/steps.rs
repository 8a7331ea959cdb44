//! The one step that a parameter takes in a trajectory: from where to where.
//!
//! Nothing is drawn at random here.

use super::MorrisError;
use crate::sampling::marginal::quantile;
use crate::sampling::real_range;
use crate::trajectory::{continuous_step, signed_fraction};
use pleach_workflow::{Distribution, Domain, Parameter, Value, ValueType};

/// A value, and its place in the unit interval, of which distances between trajectories are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    pub(super) value: Value,
    pub(super) place: f64,
}

/// The one step of a parameter in a trajectory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParameterStep {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    /// Signed, of the range; of a distribution, of its probability.
    pub(super) fraction: f64,
}

/// The steps that a parameter can take.
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
    /// The steps of a varying parameter; one without a list of values has `levels` of them, at least 2.
    pub(super) fn of(parameter: &'a Parameter, levels: u32) -> Result<Self, MorrisError> {
        let (low, high) = parameter.domain.bounds();
        let bad_range = || MorrisError::BadRange { name: parameter.name.clone(), low, high };
        let kind = match &parameter.domain {
            Domain::Continuous { .. } => {
                let (low, high) = real_range(parameter).ok_or_else(bad_range)?;
                Kind::Range(low, high)
            }
            // The outermost levels are the bounds, which there have to be.
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

    /// Number of places that a step up may begin at.
    pub(super) fn bases(&self) -> u32 {
        match self.kind {
            Kind::Range(..) | Kind::Distributed(_) => self.levels / 2,
            // `Domain::MAX_LEVELS` fits a u32, whose sampling is the same on every platform.
            Kind::Levels(values) => u32::try_from(values.len() - values.len() / 2).unwrap_or(u32::MAX),
        }
    }

    /// The step up from a base, or the one down to it.
    pub(super) fn step(&self, base: u32, up: bool) -> Result<ParameterStep, MorrisError> {
        let (low, high) = self.parameter.domain.bounds();
        let bad_range = || MorrisError::BadRange { name: self.parameter.name.clone(), low, high };
        // Numerators over 2(p−1), in whole numbers so that only one rounding follows.
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

    /// The step that begins at a place of `[0, 1)`: the 2·bases starts share it out, in the order of their values, the
    /// lower ones stepping up and the upper ones down.
    pub(super) fn step_at(&self, place: f64) -> Result<ParameterStep, MorrisError> {
        let bases = self.bases();
        let start = ((place * 2.0 * f64::from(bases)) as u32).min(2 * bases - 1);
        if start < bases { self.step(start, true) } else { self.step(start - bases, false) }
    }

    fn end(&self, numerator: u64) -> Option<Endpoint> {
        let place = match self.kind {
            Kind::Levels(values) => numerator as f64 / (values.len() as f64 - 1.0),
            _ => numerator as f64 / (2.0 * (f64::from(self.levels) - 1.0)),
        };
        let value = match self.kind {
            // Rounding may overshoot the range by a last digit.
            Kind::Range(low, high) => {
                Value::from_f64((low + place * (high - low)).clamp(low, high), ValueType::Real)?
            }
            Kind::Distributed(distribution) => {
                Value::from_f64(quantile(distribution, place), ValueType::Real)?
            }
            Kind::Levels(values) => *values.get(usize::try_from(numerator).ok()?)?,
        };
        Some(Endpoint { value, place })
    }
}
