//! Compatibility of samplers and methods.
//!
//! Methods and samplers are chosen independently where statistics allow. Incompatible choices are rejected here
//! with a reason, before any sampling.

use super::factorial::{self, DesignResolution, Factorial, FactorialError};
use super::latin_hypercube::Placement;
use super::morris::{BasePointSource, TrajectoryPlan, TrajectorySelection};
use super::points::{PointsError, Sequence};
use super::{Design, SampleError, draw_points};
use pleach_workflow::{Parameter, Value};
use thiserror::Error;

/// Sampler of points, as named in study files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// Points of a sequence or a random sample.
    Points(Sequence),
    /// Every combination of levels.
    Factorial {
        /// Levels of parameters without a list of values.
        levels: u32,
    },
    /// A fraction of the combinations of two levels.
    Fraction(DesignResolution),
}

/// Purpose of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplePurpose {
    /// Elementary effects, of trajectories that begin at the points.
    Moat,
    /// Variance-based decomposition, of pairs of points A and B.
    Vbd,
    /// Correlation and regression coefficients.
    Correlation,
    /// Indices of whole distributions: PAWN, delta, RBD-FAST.
    Distribution,
    /// eFAST, of search curves.
    Curves,
}

/// A mismatch of a sampler with a method or with a growing study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Incompatible {
    /// The method does not accept the sampler's points.
    #[error("sampler \"{sampler}\" does not suit method \"{method}\": {reason}")]
    Pair {
        /// Name of the sampler.
        sampler: &'static str,
        /// Name of the method.
        method: &'static str,
        /// Reason, in words.
        reason: &'static str,
    },
    /// The sample cannot grow.
    #[error(transparent)]
    NotExtensible(#[from] PointsError),
    /// Trajectories are selected in a single batch, which cannot be extended.
    #[error(
        "trajectories selected from candidates can only be extended by complete batches: batch = {batch} \
         contains all {trajectories} trajectories; a divisor of {trajectories} is allowed"
    )]
    OneBatch {
        /// Trajectories of a batch.
        batch: u32,
        /// Requested trajectories.
        trajectories: u32,
    },
}

/// Cause of a failed sample.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ChoiceError {
    /// Points cannot be drawn.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The grid is invalid.
    #[error(transparent)]
    Factorial(#[from] FactorialError),
}

/// Default number of swaps per point of a maximin hypercube. More swaps hardly increase the smallest
/// distance.
pub const SWAPS_PER_POINT: u32 = 50;

impl Sampler {
    /// Names of all samplers. Halton's and Hammersley's points are scrambled unless their name contains
    /// `plain`.
    pub const NAMES: [&'static str; 11] = [
        "mc",
        "lhs",
        "lhs-centered",
        "lhs-maximin",
        "halton",
        "halton-plain",
        "hammersley",
        "hammersley-plain",
        "sobol",
        "factorial",
        "fractional-factorial",
    ];

    /// Returns the sampler of a name for this many samples. A grid has `levels` levels. Returns `None` for an
    /// unknown name.
    #[must_use]
    pub fn named(name: &str, samples: u32, levels: u32) -> Option<Self> {
        let lhs = |placement| Self::Points(Sequence::LatinHypercube(placement));
        Some(match name {
            "mc" => Self::Points(Sequence::MonteCarlo),
            "lhs" => lhs(Placement::Random),
            "lhs-centered" => lhs(Placement::Centered),
            "lhs-maximin" => lhs(Placement::Maximin { swaps: samples.saturating_mul(SWAPS_PER_POINT) }),
            "halton" => Self::Points(Sequence::Halton { scrambled: true }),
            "halton-plain" => Self::Points(Sequence::Halton { scrambled: false }),
            "hammersley" => Self::Points(Sequence::Hammersley { scrambled: true }),
            "hammersley-plain" => Self::Points(Sequence::Hammersley { scrambled: false }),
            "sobol" => Self::Points(Sequence::Sobol),
            "factorial" => Self::Factorial { levels },
            "fractional-factorial" => Self::Fraction(DesignResolution::Four),
            _ => return None,
        })
    }

    /// Name of the sampler in study files, without options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Points(sequence) => sequence.name(),
            Self::Factorial { .. } => "factorial",
            Self::Fraction(_) => "fractional-factorial",
        }
    }

    /// Checks that the sampler's points suit a method.
    ///
    /// # Errors
    /// [`Incompatible::Pair`] with the reason.
    pub fn serves(self, wanted: SamplePurpose) -> Result<(), Incompatible> {
        let reason = match (self, wanted) {
            (_, SamplePurpose::Curves) => {
                "its indices require search curves, on which each parameter oscillates at its own \
                 frequency; points of a sampler are not on such curves"
            }
            (Self::Points(_), _) | (Self::Factorial { .. }, SamplePurpose::Correlation) => return Ok(()),
            (Self::Fraction(_), SamplePurpose::Correlation) => return Ok(()),
            (_, SamplePurpose::Moat) => {
                "trajectories start at random points and define their own steps; the steps of a grid are \
                 fixed"
            }
            (_, SamplePurpose::Vbd) => {
                "the rows of a grid are not pairs of independent points A and B, which the variance \
                 estimators require"
            }
            (Self::Factorial { .. }, SamplePurpose::Distribution) => {
                "a few repeated levels are not a sample of a continuous distribution"
            }
            (Self::Fraction(_), SamplePurpose::Distribution) => {
                "two levels of each parameter do not show a distribution"
            }
        };
        let method = match wanted {
            SamplePurpose::Moat => "moat",
            SamplePurpose::Vbd => "vbd",
            SamplePurpose::Correlation => "correlation",
            SamplePurpose::Distribution => "distribution",
            SamplePurpose::Curves => "fast",
        };
        Err(Incompatible::Pair { sampler: self.name(), method, reason })
    }

    /// Checks that a study can draw more points of this sampler until its indices converge.
    ///
    /// # Errors
    /// [`Incompatible::NotExtensible`] with the reason.
    pub fn extensible(self) -> Result<(), Incompatible> {
        let reason = match self {
            Self::Points(sequence) => return Ok(sequence.extensible()?),
            Self::Factorial { .. } | Self::Fraction(_) => {
                "a grid is complete; more levels make a different grid"
            }
        };
        Err(PointsError::NotExtensible { sampler: self.name(), reason }.into())
    }

    /// Draws parameter sets for given-data methods. A grid determines their number itself.
    ///
    /// # Errors
    /// [`ChoiceError`] if the sets cannot be drawn.
    pub fn sample(self, parameters: &[Parameter], samples: u32, seed: u64) -> Result<Design, ChoiceError> {
        let mut evaluations = Vec::new();
        self.draw(parameters, samples, seed, |row| evaluations.push(row))?;
        Ok(Design::of_rows(parameters, evaluations))
    }

    /// Draws the sets and passes them on one by one. Points are converted to sets on demand. A grid is held
    /// in memory.
    ///
    /// # Errors
    /// As [`Sampler::sample`]. No set is passed on then.
    pub fn draw(
        self,
        parameters: &[Parameter],
        samples: u32,
        seed: u64,
        each: impl FnMut(Vec<Value>),
    ) -> Result<(), ChoiceError> {
        let grid = match self {
            Self::Points(sequence) => return Ok(draw_points(parameters, sequence, samples, seed, each)?),
            Self::Factorial { levels } => {
                factorial::sample(parameters, &Factorial { levels, of: Vec::new() })?
            }
            Self::Fraction(resolution) => factorial::sample_fraction(parameters, resolution)?,
        };
        grid.evaluations.into_iter().for_each(each);
        Ok(())
    }
}

impl TrajectoryPlan {
    /// Checks that more trajectories of this plan keep the first ones.
    ///
    /// # Errors
    /// [`Incompatible`] with the reason.
    pub fn extensible(&self) -> Result<(), Incompatible> {
        if let BasePointSource::Points(sequence) = self.base {
            sequence.extensible()?;
        }
        match self.choice {
            TrajectorySelection::Spread { batch, .. } if batch >= self.morris.trajectories => {
                Err(Incompatible::OneBatch { batch, trajectories: self.morris.trajectories })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{integers, reals};
    use super::super::morris::{Morris, SpreadSearch};
    use super::*;
    use pleach_workflow::Value;

    fn named(name: &str) -> Sampler {
        Sampler::named(name, 16, 3).expect("a known name")
    }

    #[test]
    fn names_lead_to_samplers() {
        for name in Sampler::NAMES {
            assert!(name.starts_with(named(name).name()), "{name}");
        }
        assert_eq!(Sampler::named("latin", 16, 3), None);
    }

    #[test]
    fn incompatible_sampler_is_refused_with_the_cause() {
        assert!(Sampler::NAMES.iter().all(|name| named(name).serves(SamplePurpose::Curves).is_err()));
        let all = [
            SamplePurpose::Moat,
            SamplePurpose::Vbd,
            SamplePurpose::Correlation,
            SamplePurpose::Distribution,
        ];
        for name in Sampler::NAMES {
            for wanted in all {
                let grid = name.ends_with("factorial") && wanted != SamplePurpose::Correlation;
                assert_eq!(named(name).serves(wanted).is_err(), grid, "{name} {wanted:?}");
            }
        }
        assert_eq!(
            named("factorial").serves(SamplePurpose::Vbd).unwrap_err().to_string(),
            "sampler \"factorial\" does not suit method \"vbd\": the rows of a grid are not pairs of \
             independent points A and B, which the variance estimators require"
        );
    }

    #[test]
    fn non_extensible_sampler_is_refused_with_the_cause() {
        let grow: Vec<&str> =
            Sampler::NAMES.into_iter().filter(|name| named(name).extensible().is_ok()).collect();
        assert_eq!(grow, ["mc", "halton", "halton-plain", "sobol"]);
        assert_eq!(
            named("hammersley").extensible().unwrap_err().to_string(),
            "sampler \"hammersley\" cannot be extended: the first coordinate depends on the number of \
             points; \"mc\", \"halton\" and \"sobol\" are allowed"
        );
        let plan = |base, batch| TrajectoryPlan {
            morris: Morris { trajectories: 8, levels: 4, seed: 1 },
            base,
            choice: TrajectorySelection::Spread { search: SpreadSearch::Ruano, candidates: 20, batch },
        };
        assert_eq!(plan(BasePointSource::Random, 4).extensible(), Ok(()));
        assert!(
            plan(BasePointSource::Random, 8)
                .extensible()
                .unwrap_err()
                .to_string()
                .contains("batch = 8 contains all 8")
        );
        let hypercube = BasePointSource::Points(Sequence::LatinHypercube(Placement::Random));
        assert!(
            plan(hypercube, 4).extensible().unwrap_err().to_string().starts_with("sampler \"lhs\" cannot")
        );
    }

    /// A change of these numbers changes every user's study with the same seed and needs a changelog entry.
    #[test]
    fn samples_of_a_seed_are_stable() {
        let parameters = [reals("T1", 0.0, 1000.0), integers("G1", &[5.0, 30.0, 55.0, 80.0])];
        let rows = |name: &str| -> String {
            let sampler = Sampler::named(name, 3, 2).unwrap();
            let design = sampler.sample(&parameters, 3, 500).unwrap();
            let row = |row: &Vec<Value>| format!("{:.3} {}", row[0].as_f64(), row[1]);
            design.evaluations.iter().take(3).map(row).collect::<Vec<_>>().join(", ")
        };
        let found = Sampler::NAMES.map(|name| format!("{name}: {}", rows(name)));
        let expected = [
            "mc: 542.311 5, 78.447 5, 585.634 55",
            "lhs: 629.651 30, 11.388 5, 932.398 80",
            "lhs-centered: 500.000 55, 166.667 5, 833.333 80",
            "lhs-maximin: 629.651 80, 932.398 5, 11.388 30",
            "halton: 644.978 30, 144.978 55, 894.978 5",
            "halton-plain: 500.000 30, 250.000 55, 750.000 5",
            "hammersley: 166.667 55, 500.000 5, 833.333 80",
            "hammersley-plain: 166.667 55, 500.000 30, 833.333 80",
            "sobol: 427.072 55, 672.551 30, 217.793 5",
            "factorial: 0.000 5, 0.000 30, 0.000 55",
            "fractional-factorial: 1000.000 80, 1000.000 5, 0.000 5",
        ];
        assert_eq!(found.join("\n"), expected.join("\n"));
    }
}
