//! The structure of an eFAST sample: search curves, their lengths and frequencies.

use crate::statistics::error::AnalysisError;

/// The structure of an eFAST sample: one curve per parameter, in order, with equal numbers of evaluations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curves {
    names: Vec<String>,
    samples: usize,
    harmonics: usize,
}

impl Curves {
    /// Creates the curves of these varying parameters, with `samples` evaluations each and `harmonics` separated
    /// harmonics.
    ///
    /// # Errors
    /// [`AnalysisError::Setting`] for 0 harmonics, or at most 4·harmonics² samples.
    pub fn new(names: Vec<String>, samples: usize, harmonics: usize) -> Result<Self, AnalysisError> {
        let refused = |setting, given, allowed| {
            Err(AnalysisError::Setting { method: "efast", setting, given, allowed })
        };
        if harmonics == 0 {
            return refused("harmonics", harmonics, "1 and more".to_owned());
        }
        let least = harmonics.saturating_mul(harmonics).saturating_mul(4);
        if samples <= least {
            return refused("samples", samples, format!("more than 4·harmonics², {least}, for a parameter"));
        }
        Ok(Self { names, samples, harmonics })
    }

    /// Names of the varying parameters, in the order of their curves.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Evaluations of one curve.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Number of summed harmonics.
    #[must_use]
    pub fn harmonics(&self) -> usize {
        self.harmonics
    }

    /// Evaluations of all curves.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.samples * self.names.len()
    }

    /// Returns the frequency of the parameter at `place` on the curve of the parameter at `curve`.
    #[must_use]
    pub fn frequency(&self, curve: usize, place: usize) -> usize {
        let high = high_frequency(self.samples, self.harmonics);
        if curve == place {
            return high;
        }
        let others = self.names.len() - 1;
        let at = if place < curve { place } else { place - 1 };
        // The harmonics of the other parameters must stay below the high frequency too.
        let highest = (high / (2 * self.harmonics)).max(1);
        if highest >= others && others > 1 {
            // Spreads the frequencies evenly from 1 to the highest, rounded down (numpy's linspace).
            (1.0 + at as f64 * ((highest - 1) as f64 / (others - 1) as f64)).floor() as usize
        } else {
            at % highest + 1
        }
    }
}

/// Returns the high frequency of a curve of `samples` evaluations.
pub(crate) fn high_frequency(samples: usize, harmonics: usize) -> usize {
    (samples - 1) / (2 * harmonics)
}
