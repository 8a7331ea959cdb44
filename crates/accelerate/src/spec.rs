//! Devices that a worker is asked to use: `auto`, `none`, `all`, a number, or `emulate:2x,…`.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Devices to use.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceSpec {
    /// Cores only.
    None,
    /// Graphics cards and other accelerators, without processors that have an OpenCL driver. It is no error if they are missing.
    Auto,
    /// Devices with an OpenCL driver, processors included. It is no error if they are missing.
    All,
    /// A number of devices: first those of [`Auto`](Self::Auto), then processors with an OpenCL driver.
    Count(u32),
    /// Emulated devices with these factors, which are positive and finite.
    Emulated(Vec<f64>),
}

/// Text that is no [`DeviceSpec`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{text:?} is no choice of accelerators; auto, none, all, a number up to {MAX_DEVICES}, or emulate:2x,1.5x is allowed"
)]
pub struct ParseSpecError {
    text: String,
}

/// 64 devices: four times those of the largest nodes on sale (16 accelerators), so a larger number is a mistake.
const MAX_DEVICES: u32 = 64;

/// 1,000: above the gains that the literature reports for image operations by an order of magnitude.
const MAX_FACTOR: f64 = 1_000.0;

const EMULATE: &str = "emulate:";

impl FromStr for DeviceSpec {
    type Err = ParseSpecError;

    fn from_str(text: &str) -> Result<Self, ParseSpecError> {
        let wrong = || ParseSpecError { text: text.to_owned() };
        match text {
            "none" => return Ok(Self::None),
            "auto" => return Ok(Self::Auto),
            "all" => return Ok(Self::All),
            _ => {}
        }
        if let Some(factors) = text.strip_prefix(EMULATE) {
            let factors: Option<Vec<f64>> = factors.split(',').map(factor).collect();
            let few = |factors: &Vec<f64>| factors.len() <= MAX_DEVICES as usize;
            return factors.filter(few).map(Self::Emulated).ok_or_else(wrong);
        }
        match text.parse() {
            Ok(0) => Ok(Self::None),
            Ok(count) if count <= MAX_DEVICES => Ok(Self::Count(count)),
            _ => Err(wrong()),
        }
    }
}

/// Returns N of `Nx`, or of a repeated `emulate:Nx`.
fn factor(text: &str) -> Option<f64> {
    let number = text.strip_prefix(EMULATE).unwrap_or(text).strip_suffix('x')?;
    number.parse().ok().filter(|factor| *factor > 0.0 && *factor <= MAX_FACTOR)
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str("auto"),
            Self::All => f.write_str("all"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Emulated(factors) => {
                let factors: Vec<String> = factors.iter().map(|factor| format!("{factor}x")).collect();
                write!(f, "{EMULATE}{}", factors.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_reads_its_own_text() {
        for text in ["none", "auto", "all", "1", "64", "emulate:2x", "emulate:2x,1.5x"] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
        assert_eq!("0".parse(), Ok(DeviceSpec::None));
        assert_eq!("emulate:2x,emulate:0.5x".parse(), Ok(DeviceSpec::Emulated(vec![2.0, 0.5])));
    }

    #[test]
    fn other_text_is_an_error_with_the_choices() {
        for text in
            ["", "gpu", "-1", "65", "emulate:", "emulate:2", "emulate:0x", "emulate:-1x", "emulate:nanx"]
        {
            let error = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("emulate:2x"), "{error}");
        }
    }
}
