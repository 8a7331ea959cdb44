//! Memory sizes as text: parsed from options, and formatted for people.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Units by their names in lower case: those of the SI are powers of 1000, those with an `i` (IEC 80000-13) powers of
/// 1024. `K`, `M` and `G` alone are missing on purpose: programs disagree on their meaning.
const UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// A number of bytes above 0, as in `--memory 1.5GiB`.
///
/// Digits, perhaps with a decimal point, and a unit in any case: `600MB`, `1.5gib`, `512 MiB`. Without a unit they are
/// bytes. Fractions of a byte are rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemorySize(u64);

/// Cause of a rejected text. The caller names the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Not of the form, or of an unknown unit.
    #[error(
        "a number and a unit are allowed, as in 600MB or 1.5GiB; units are B, kB, MB, GB, TB (powers of 1000) and KiB, \
         MiB, GiB, TiB (powers of 1024)"
    )]
    Form,
    /// Less than a byte.
    #[error("1 byte or more is allowed")]
    Zero,
    /// More than 64 bits.
    #[error("less than 18446744 TB is allowed")]
    TooLarge,
}

impl MemorySize {
    /// The size in bytes, at least 1.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for MemorySize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start().to_ascii_lowercase());
        let unit = match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, bytes)) => u128::from(*bytes),
            None if unit.is_empty() => 1,
            None => return Err(SizeError::Form),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(SizeError::Form);
        }
        // A whole number of 20 digits is beyond 64 bits already, and 20 digits times a unit still fit 128 bits.
        let whole: u64 = whole.parse().map_err(|_| SizeError::TooLarge)?;
        // Digits behind the eighteenth are less than a byte of the largest unit.
        let fraction = &fraction[..fraction.len().min(18)];
        let parts = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(18));
        let fraction: u128 = fraction.parse().map_err(|_| SizeError::Form)?;
        let bytes = u128::from(whole) * unit + fraction * unit / parts;
        match u64::try_from(bytes) {
            Ok(0) => Err(SizeError::Zero),
            Ok(bytes) => Ok(Self(bytes)),
            Err(_) => Err(SizeError::TooLarge),
        }
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&human(self.0))
    }
}

/// Bytes in the decimal unit that leaves three digits: `1.50 GB`, `512 MB`, `17 B`.
pub fn human(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut number = bytes as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    // 999.5 and more would be shown with four digits.
    while number >= 999.5
        && let Some(next) = units.next()
    {
        (number, unit) = (number / 1e3, next);
    }
    let decimals = match number {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{number:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<u64, SizeError> {
        text.parse().map(MemorySize::bytes)
    }

    #[test]
    fn sizes_with_units_are_parsed() {
        let sizes = [
            ("1GB", 1_000_000_000),
            ("1gb", 1_000_000_000),
            ("600MB", 600_000_000),
            ("1.5GiB", 3 << 29),
            ("512MiB", 512 << 20),
            ("512 mib", 512 << 20),
            (" 64kB ", 64_000),
            ("2000000000B", 2_000_000_000),
            ("2000000000", 2_000_000_000),
            ("0.5KiB", 512),
            ("1.0", 1),
            ("1.9B", 1),
            ("0.000001TB", 1_000_000),
            ("1.0000000000000000000000000000001 TiB", 1 << 40),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in sizes {
            assert_eq!(read(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in [
            "",
            " ",
            "B",
            "MB",
            ".",
            ".5GB",
            "5.GB",
            "1.2.3GB",
            "1,5GB",
            "-1",
            "-1GB",
            "+1GB",
            "12QB",
            "1G",
            "1K",
            "1e9",
            "1e9B",
            "NaN",
            "nan GB",
            "inf",
            "infinity",
            "0x10",
            "1_000",
            "1 000 MB",
            "1GBB",
            "1GB 2MB",
            "½GB",
            "١GB",
            "1\u{a0}GB\0",
        ] {
            assert_eq!(read(text), Err(SizeError::Form), "{text:?}");
        }
        for text in ["0", "0B", "0GB", "0.0GiB", "0.9", "0.0001kB", "00"] {
            assert_eq!(read(text), Err(SizeError::Zero), "{text:?}");
        }
        for text in [
            "18446744073709551616",
            "18446744.1TB",
            "16777216TiB",
            &"9".repeat(400),
            &("9".repeat(19) + "TiB"),
        ] {
            assert_eq!(read(text), Err(SizeError::TooLarge), "{text:?}");
        }
    }

    #[test]
    fn human_sizes_have_three_digits() {
        let shown = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (1_234_567_890, "1.23 GB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (bytes, text) in shown {
            assert_eq!(human(bytes), text);
        }
    }

    proptest! {
        #[test]
        fn parsing_noise_does_not_panic(text in ".{0,40}", number in "[0-9]{0,30}\\.?[0-9]{0,30} ?[a-zA-Z]{0,4}") {
            let _ = (read(&text), read(&number));
        }

        #[test]
        fn human_sizes_round_trip_within_half_a_percent(bytes in 1_u64..u64::MAX / 1_000_000) {
            let back = read(&human(bytes)).unwrap();
            prop_assert!(back.abs_diff(bytes) <= bytes / 200 + 1, "{bytes} {}", human(bytes));
        }

        #[test]
        fn whole_numbers_of_every_unit_are_parsed(number in 1_u64..1_000_000, unit in 0..UNITS.len()) {
            let (name, bytes) = UNITS[unit];
            prop_assert_eq!(read(&format!("{number}{name}")), Ok(number * bytes));
        }
    }
}
