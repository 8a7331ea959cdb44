//! Resolution: the extent of one pixel on the specimen.
//!
//! A resolution is a whole number of femtometers per pixel, so that equality is exact and coordinates are
//! scaled in integers. This module neither resamples nor reads the levels of a slide.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use thiserror::Error;

/// Scanners report up to 9 decimals of a micron (0.25258499): one femtometer keeps all of them.
const FEMTOMETRES_A_MICRON: f64 = 1e9;

/// Allowed microns per pixel: from a picometer to a meter. No tissue is photographed beyond either, and
/// within them microns and femtometers convert without loss.
const ALLOWED: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Microns per pixel at magnification 1, by the usual convention: 40x is 0.25, 20x is 0.5.
const MICRONS_AT_ONE: f64 = 10.0;

/// Side of a pixel on the specimen, the same along every axis. Serialized in microns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Resolution(NonZeroU64);

/// A number is not a valid resolution.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("resolution: {microns_per_px} microns per pixel; 0.000001 to 1000000 are allowed")]
pub struct ResolutionError {
    /// The given microns per pixel.
    pub microns_per_px: f64,
}

impl Resolution {
    /// Creates the resolution of this many microns per pixel, to the femtometer.
    ///
    /// # Errors
    /// Returns a [`ResolutionError`] if the number is NaN or outside 1e-6–1e6.
    pub fn from_microns_per_px(microns_per_px: f64) -> Result<Self, ResolutionError> {
        let within =
            ALLOWED.contains(&microns_per_px).then(|| (microns_per_px * FEMTOMETRES_A_MICRON).round());
        // At most 1e15 by the allowed range, which both types represent exactly.
        let femtometres = within.and_then(|femtometres| NonZeroU64::new(femtometres as u64));
        femtometres.map(Self).ok_or(ResolutionError { microns_per_px })
    }

    /// Creates the resolution of an objective's magnification: 10 microns per pixel, divided by it. This is a
    /// convention. If a slide states microns per pixel, that value is authoritative.
    ///
    /// # Errors
    /// Same as [`from_microns_per_px`](Self::from_microns_per_px).
    pub fn from_magnification(magnification: f64) -> Result<Self, ResolutionError> {
        Self::from_microns_per_px(MICRONS_AT_ONE / magnification)
    }

    /// Returns the resolution of a pyramid level that is coarser by `factor`, to the femtometer.
    ///
    /// # Errors
    /// Same as [`from_microns_per_px`](Self::from_microns_per_px).
    pub fn downsampled(self, factor: f64) -> Result<Self, ResolutionError> {
        Self::from_microns_per_px(self.microns_per_px() * factor)
    }

    /// Returns the microns per pixel.
    #[must_use]
    pub fn microns_per_px(self) -> f64 {
        self.0.get() as f64 / FEMTOMETRES_A_MICRON
    }

    /// Returns the magnification of the corresponding objective, by convention.
    #[must_use]
    pub fn magnification(self) -> f64 {
        MICRONS_AT_ONE / self.microns_per_px()
    }

    /// Creates a resolution from femtometers per pixel. `None` outside the allowed range.
    pub(crate) fn from_femtometres(femtometres: u64) -> Option<Self> {
        let resolution = Self(NonZeroU64::new(femtometres)?);
        ALLOWED.contains(&resolution.microns_per_px()).then_some(resolution)
    }

    /// Returns the femtometers per pixel.
    pub(crate) fn femtometres(self) -> u64 {
        self.0.get()
    }
}

impl TryFrom<f64> for Resolution {
    type Error = ResolutionError;

    fn try_from(microns_per_px: f64) -> Result<Self, ResolutionError> {
        Self::from_microns_per_px(microns_per_px)
    }
}

impl From<Resolution> for f64 {
    fn from(resolution: Resolution) -> Self {
        resolution.microns_per_px()
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} microns per pixel", self.microns_per_px())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnifications_are_those_of_the_convention() {
        for (magnification, microns) in [(40.0, 0.25), (20.0, 0.5), (1.25, 8.0)] {
            let resolution = Resolution::from_magnification(magnification).unwrap();
            assert_eq!(resolution, Resolution::from_microns_per_px(microns).unwrap());
            assert_eq!(resolution.magnification(), magnification);
        }
        let scanned = Resolution::from_microns_per_px(0.252_584_99).unwrap();
        assert_eq!(scanned.to_string(), "0.25258499 microns per pixel");
        assert_eq!(scanned.downsampled(4.0).unwrap().microns_per_px(), 1.010_339_96);
    }

    #[test]
    fn invalid_resolution_is_refused() {
        for microns in [0.0, -0.25, f64::NAN, f64::INFINITY, 1e-7, 1.1e6] {
            let error = Resolution::from_microns_per_px(microns).unwrap_err();
            let expected =
                format!("resolution: {microns} microns per pixel; 0.000001 to 1000000 are allowed");
            assert_eq!(error.to_string(), expected);
        }
        assert!(Resolution::from_magnification(0.0).is_err());
        assert!(Resolution::from_microns_per_px(0.25).unwrap().downsampled(-1.0).is_err());
    }
}
