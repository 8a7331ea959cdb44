//! Values of `--sensitivity` and `--estimates`.

use pleach_planner::memory_size::MemorySize;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// Values of a parameter, such as `workers=5,10,20`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Variation {
    /// Numbers of workers.
    Workers(Vec<NonZeroUsize>),
    /// Bytes per second.
    Bandwidth(Vec<u64>),
    /// Queue delays in seconds.
    Queue(Vec<f64>),
    /// Factors of all file sizes.
    Data(Vec<f64>),
}

/// Maximum number of values of a parameter: each one repeats the comparison.
const MAX_VALUES: usize = 100;

impl FromStr for Variation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        match name {
            "workers" => list(values, "numbers of 1 or more", |value| value.parse().ok()).map(Self::Workers),
            "bandwidth" => list(values, "sizes of 1 byte or more, such as 15MB,", |value| {
                value.parse::<MemorySize>().ok().map(MemorySize::bytes).filter(|bytes| *bytes > 0)
            })
            .map(Self::Bandwidth),
            "queue" => list(values, "seconds from 0 to 1000000000", super::number).map(Self::Queue),
            "data" => list(values, "factors from 0 to 1000000000", super::number).map(Self::Data),
            _ => {
                Err("workers=N,…, bandwidth=SIZE,…, queue=SECONDS,… and data=FACTOR,… are allowed".to_owned())
            }
        }
    }
}

/// Returns the values of a list with commas.
fn list<T>(values: &str, allowed: &str, value: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let refused = || format!("1–{MAX_VALUES} {allowed} with commas are allowed");
    let values: Option<Vec<T>> = values.split(',').map(value).collect();
    values.filter(|values| values.len() <= MAX_VALUES).ok_or_else(refused)
}

/// Spread of estimated run times: coefficients of variation of the factor that all tasks of a kind share, and of that of each task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimates {
    pub(crate) kind: f64,
    pub(crate) task: f64,
}

/// Maximum coefficient of variation: beyond it, most estimates of a log-normal distribution are near 0.
const MAX_SPREAD: f64 = 10.0;

impl FromStr for Estimates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let spread = |text: &str| super::number(text).filter(|spread| *spread <= MAX_SPREAD);
        let both = text.split_once(',').and_then(|(kind, task)| Some((spread(kind)?, spread(task)?)));
        let (kind, task) = both.ok_or("two numbers from 0 to 10 with a comma are allowed")?;
        Ok(Self { kind, task })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_with_commas() {
        let two = NonZeroUsize::new(2).unwrap();
        assert_eq!("workers=2,2".parse(), Ok(Variation::Workers(vec![two, two])));
        assert_eq!("bandwidth=15MB,1GB".parse(), Ok(Variation::Bandwidth(vec![15_000_000, 1_000_000_000])));
        assert_eq!("queue=0,2.5".parse(), Ok(Variation::Queue(vec![0.0, 2.5])));
        assert_eq!("data=100".parse(), Ok(Variation::Data(vec![100.0])));
        for text in [
            "workers=0",
            "workers",
            "workers=1,",
            "bandwidth=0B",
            "queue=-1",
            "queue=nan",
            "data=inf",
            "jobs=1",
        ] {
            let error = text.parse::<Variation>().unwrap_err();
            assert!(error.ends_with("are allowed"), "{text}: {error}");
        }
        assert!(format!("data=1{}", ",1".repeat(MAX_VALUES)).parse::<Variation>().is_err());
    }

    #[test]
    fn estimates_are_two_numbers() {
        assert_eq!("0,0.5".parse(), Ok(Estimates { kind: 0.0, task: 0.5 }));
        for text in ["", "1", "1,2,3", "-1,0", "0,11", "nan,0"] {
            assert!(text.parse::<Estimates>().is_err(), "{text}");
        }
    }
}
