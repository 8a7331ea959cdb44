//! Formats numbers, durations and lists for the report. Every number of the page passes through this module.
//! None is shown as NaN.

use crate::page::html::{Html, html, strong};

/// Exponents of numbers in plain notation. Others are shown in scientific notation.
const PLAIN: std::ops::Range<i32> = -7..15;

/// Common rounding of the numbers of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    decimals: usize,
    scientific: bool,
    /// Decimals in scientific notation.
    digits: usize,
}

impl Rounding {
    /// Rounds to 4 significant digits of the largest number of the column, so that numbers 100 times smaller
    /// still show 2.
    pub(crate) fn of(largest: f64) -> Self {
        Self::digits(largest, 4)
    }

    /// Rounds to 3 significant digits, for sentences.
    pub(crate) fn brief(largest: f64) -> Self {
        Self::digits(largest, 3)
    }

    fn digits(largest: f64, digits: i32) -> Self {
        let exponent = exponent(largest);
        Self {
            decimals: (digits - 1 - exponent).clamp(0, 12) as usize,
            scientific: !PLAIN.contains(&exponent),
            digits: 2,
        }
    }

    /// Rounds every number to the same number of decimals.
    pub(crate) fn fixed(decimals: usize) -> Self {
        Self { decimals, scientific: false, digits: 2 }
    }

    /// Rounds multiples of `step` to labels that are short enough for an axis.
    pub(crate) fn of_tick(step: f64, largest: f64) -> Self {
        let plain = (-5..7).contains(&exponent(step)) && (-5..7).contains(&exponent(largest));
        Self { decimals: (-exponent(step)).clamp(0, 12) as usize, scientific: !plain, digits: 1 }
    }

    pub(crate) fn show(self, number: f64) -> String {
        if !number.is_finite() {
            return "–".to_owned();
        }
        if number == 0.0 {
            return "0".to_owned();
        }
        if self.scientific {
            return minus(&format!("{number:.*e}", self.digits));
        }
        let smallest = 10_f64.powi(-(self.decimals as i32));
        if number.abs() < smallest / 2.0 {
            return "≈0".to_owned();
        }
        grouped(&format!("{number:.*}", self.decimals))
    }

    /// Formats a number with its sign.
    pub(crate) fn signed(self, number: f64) -> String {
        let shown = self.show(number);
        if number > 0.0 && !shown.starts_with('≈') { format!("+{shown}") } else { shown }
    }

    /// Formats a number that may be missing. `None` is shown as a dash.
    pub(crate) fn option(self, number: Option<f64>) -> String {
        number.map_or_else(|| "–".to_owned(), |number| self.show(number))
    }
}

/// Formats a number of a sentence with 3 significant digits.
pub(crate) fn brief(number: f64) -> String {
    Rounding::brief(number).show(number)
}

/// Formats a number and its half-width in a sentence, with only the digits that the half-width supports.
pub(crate) fn with_spread(number: f64, spread: Option<f64>) -> String {
    let Some(spread) = spread.filter(|spread| *spread > 0.0) else { return brief(number) };
    let scale = if number == 0.0 { spread } else { number };
    let mut rounding = Rounding::digits(scale, 2);
    rounding.decimals = rounding.decimals.max((-exponent(spread)).clamp(0, 12) as usize);
    // Half-widths from 100 on also round the digits before the decimal point.
    let unit = 10_f64.powi((exponent(spread) - 1).max(0));
    let rounded = |number: f64| if unit > 1.0 { (number / unit).round() * unit } else { number };
    format!("{} ± {}", rounding.show(rounded(number)), rounding.show(rounded(spread)))
}

/// Returns the power of 10 of the first digit. 0 for zero, infinities and NaN.
pub(crate) fn exponent(number: f64) -> i32 {
    if number == 0.0 || !number.is_finite() {
        return 0;
    }
    // The tolerance covers tick steps such as 0.1, which can be slightly below 10^-1 in binary.
    (number.abs().log10() + 1e-9).floor() as i32
}

/// Formats a count in groups of 3 digits.
pub(crate) fn count(number: impl TryInto<u64>) -> String {
    number.try_into().map_or_else(|_| "–".to_owned(), |number| grouped(&number.to_string()))
}

/// Formats a count with its noun, singular or plural.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Formats a fraction in percent.
pub(crate) fn percent(fraction: f64) -> String {
    if fraction == 0.0 {
        return "0 %".to_owned();
    }
    if fraction.is_finite() { minus(&format!("{:.1} %", fraction * 100.0)) } else { "–".to_owned() }
}

/// Formats a duration in the largest fitting unit.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "–".to_owned();
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", count(whole / 3600), whole / 60 % 60),
    }
}

/// Formats bytes in decimal units.
pub(crate) fn bytes(bytes: u64) -> String {
    let megabytes = bytes as f64 / 1e6;
    if megabytes < 1000.0 { format!("{megabytes:.1} MB") } else { format!("{:.2} GB", megabytes / 1e3) }
}

/// Joins emphasized names as "a, b and c". Beyond `most` names, as "a, b, c and 7 more".
pub(crate) fn names<'a>(names: impl IntoIterator<Item = &'a str>, most: usize) -> Html {
    let names: Vec<&str> = names.into_iter().collect();
    // Shows a single further name: it is no longer than "and 1 more".
    let shown = if names.len() > most + 1 { most } else { names.len() };
    let mut joined = Html::default();
    for (place, name) in names[..shown].iter().enumerate() {
        let last = place + 1 == names.len();
        let before = if place == 0 {
            ""
        } else if last {
            " and "
        } else {
            ", "
        };
        joined.push(html![before, strong(*name)]);
    }
    if shown < names.len() {
        joined.push(format!(" and {} more", names.len() - shown));
    }
    joined
}

/// Capitalizes the first letter if it is ASCII. Greek symbols stay, since a capital mu is an M.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        std::iter::once(first.to_ascii_uppercase()).chain(letters).collect()
    })
}

/// Groups the digits before the decimal point by 3 from 10,000 on, and writes a minus sign instead of a
/// hyphen.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("−", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut shown = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if whole.len() > 4 && place > 0 && (whole.len() - place).is_multiple_of(3) {
            // A narrow no-break space: many readers take a comma or a point for a decimal sign.
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    if let Some(fraction) = fraction {
        shown.push('.');
        shown.push_str(fraction);
    }
    shown
}

fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// Returns the `share`-quantile of ascending numbers, interpolated (type 7 of Hyndman and Fan, as in R and
/// NumPy). 0 without numbers.
pub(crate) fn quantile(ascending: &[f64], share: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[(place.ceil() as usize).min(last)]);
    // Weights both neighbors: their difference could exceed the range of f64.
    let weight = place.fract();
    below * (1.0 - weight) + above * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_with_a_capital_and_a_symbol_stays_what_it_is() {
        let shown = ["the mean area", "Dice", "μ* of the first", "σ", ""].map(capital);
        assert_eq!(shown, ["The mean area", "Dice", "μ* of the first", "σ", ""]);
    }

    #[test]
    fn columns_are_rounded_alike() {
        let column = Rounding::of(0.2707);
        let shown = [0.27069, 0.0017, 0.0, -0.00161, 0.00001, -0.00001].map(|number| column.show(number));
        assert_eq!(shown, ["0.2707", "0.0017", "0", "−0.0016", "≈0", "≈0"]);
        assert_eq!(column.signed(0.5), "+0.5000");
        assert_eq!(column.signed(0.0), "0");
        assert_eq!(Rounding::of(123_456.0).show(1_234_567.4), "1\u{202f}234\u{202f}567");
        assert_eq!(Rounding::of(1e-12).show(2e-12), "2.00e−12");
        assert_eq!(Rounding::of(f64::NAN).show(f64::INFINITY), "–");
    }

    #[test]
    fn sentences_have_as_many_digits_as_the_spread_bears() {
        assert_eq!(with_spread(0.2707, Some(0.0389)), "0.27 ± 0.04");
        assert_eq!(with_spread(0.2707, Some(0.0014)), "0.271 ± 0.001");
        assert_eq!(with_spread(1234.0, Some(212.0)), "1230 ± 210");
        assert_eq!(with_spread(0.2707, None), "0.271");
        assert_eq!(with_spread(0.0, Some(0.0)), "0");
        assert_eq!(
            [0.0123, 5.1, 192.4, 7262.0].map(duration),
            ["12 ms", "5.1 s", "3 min 12 s", "2 h 01 min"]
        );
    }

    #[test]
    fn lists_end_in_and() {
        let shown = |list: &[&str], most| names(list.iter().copied(), most).into_string();
        assert_eq!(
            shown(&["a", "b", "c"], 8),
            "<strong>a</strong>, <strong>b</strong> and <strong>c</strong>"
        );
        assert_eq!(shown(&["a", "b", "c", "d"], 2), "<strong>a</strong>, <strong>b</strong> and 2 more");
        assert_eq!(shown(&["<"], 2), "<strong>&lt;</strong>");
    }

    #[test]
    fn quantiles_equal_numpy() {
        let numbers = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&numbers, share)),
            [1.0, 1.75, 3.0, 5.0, 8.0]
        );
        assert_eq!(quantile(&[-1.7e308, 1.7e308], 0.5), 0.0);
    }
}
