//! Times in answers: the header `Date` of HTTP.

use time::{Date, Month, PrimitiveDateTime, Time};

/// Returns the seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7). `None` for other text.
pub(crate) fn seconds_of(date: &str) -> Option<i64> {
    let (_, rest) = date.split_once(", ")?;
    let fields: Vec<&str> = rest.strip_suffix(" GMT")?.split(' ').collect();
    let [day, month, year, clock] = fields[..] else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let number = months.iter().position(|name| *name == month)? + 1;
    let month = Month::try_from(u8::try_from(number).ok()?).ok()?;
    let date = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let clock: Vec<u8> = clock.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hour, minute, second] = clock[..] else { return None };
    let time = Time::from_hms(hour, minute, second).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_read_as_the_standard_writes_it() {
        assert_eq!(seconds_of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for other in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:00:00 GMT",
        ] {
            assert_eq!(seconds_of(other), None, "{other}");
        }
    }
}
