//! Rate limit of log lines per call site. It keeps a log readable and a disk from filling with repeated lines.
//!
//! Each call site may write [`AT_ONCE`] lines at once and [`A_SECOND`] lines per second without end. Further lines are
//! counted, and the next line reports their number. Call sites do not share limits, so a frequent line does not
//! suppress a rare one. The limit does not sample: the first lines of each call site are always written.

use std::collections::HashMap;
use std::time::Duration;
use tracing::callsite::Identifier;

/// Burst of a call site: as many workers may join, or tasks end, before a line is suppressed.
const AT_ONCE: u32 = 200;

/// Lines per second after the burst: at 150 bytes each, a call site that never stops writes at most 1 GB per week.
const A_SECOND: u32 = 10;

/// Limiter state of a call site.
#[derive(Clone, Copy, Debug)]
struct CallSite {
    /// Remaining burst. Each line costs the time of [`a_line`].
    credit: Duration,
    /// Time of the last update.
    at: Duration,
    suppressed: u64,
}

/// Returns the time that a call site waits for one more line.
fn a_line() -> Duration {
    Duration::from_secs(1) / A_SECOND
}

/// Rate limiter of all call sites.
#[derive(Debug, Default)]
pub(super) struct LogRateLimiter(HashMap<Identifier, CallSite>);

impl LogRateLimiter {
    /// Takes one line of the call site's limit at `now`, which must not decrease. Returns the number of lines
    /// suppressed before it. `None` if the line is suppressed.
    pub(super) fn may(&mut self, place: Identifier, now: Duration) -> Option<u64> {
        let whole = a_line() * AT_ONCE;
        let place = self.0.entry(place).or_insert(CallSite { credit: whole, at: now, suppressed: 0 });
        place.credit = whole.min(place.credit + now.saturating_sub(place.at));
        place.at = place.at.max(now);
        match place.credit.checked_sub(a_line()) {
            Some(rest) => {
                place.credit = rest;
                Some(std::mem::take(&mut place.suppressed))
            }
            None => {
                place.suppressed += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tracing::Callsite;
    use tracing::callsite::DefaultCallsite;

    /// Returns the identifiers of two call sites.
    fn places() -> [Identifier; 2] {
        macro_rules! place {
            () => {{
                static META: tracing::Metadata<'static> = tracing::metadata! {
                    name: "a place",
                    target: "pleach",
                    level: tracing::Level::INFO,
                    fields: &[],
                    callsite: &CALLSITE,
                    kind: tracing::metadata::Kind::EVENT,
                };
                static CALLSITE: DefaultCallsite = DefaultCallsite::new(&META);
                CALLSITE.metadata().callsite()
            }};
        }
        [place!(), place!()]
    }

    #[test]
    fn suppressed_lines_are_counted_with_the_next_line() {
        let [here, there] = places();
        let mut bounds = LogRateLimiter::default();
        let now = Duration::from_secs(7);
        assert!((0..AT_ONCE).all(|_| bounds.may(here.clone(), now) == Some(0)));
        assert_eq!([bounds.may(here.clone(), now), bounds.may(here.clone(), now)], [None, None]);
        assert_eq!(bounds.may(there.clone(), now), Some(0), "another place has its own");
        assert_eq!(bounds.may(here.clone(), now + a_line()), Some(2));
        assert_eq!(bounds.may(here.clone(), now + a_line()), None);
        let later = now + Duration::from_secs(3600);
        let written = (0..2 * AT_ONCE).filter(|_| bounds.may(here.clone(), later).is_some()).count();
        assert_eq!(written, AT_ONCE as usize, "an hour without lines adds nothing to the burst");
    }

    proptest! {
        #[test]
        fn lines_stay_within_the_rate_and_all_are_counted(
            steps in proptest::collection::vec(0_u64..300, 1..2000),
        ) {
            let [here, _] = places();
            let (mut bounds, mut now) = (LogRateLimiter::default(), Duration::ZERO);
            let (mut written, mut reported) = (0_u64, 0);
            for step in &steps {
                now += Duration::from_millis(*step);
                if let Some(suppressed) = bounds.may(here.clone(), now) {
                    written += 1;
                    reported += suppressed;
                }
            }
            let most = u64::from(AT_ONCE) + now.as_millis() as u64 * u64::from(A_SECOND) / 1000 + 1;
            prop_assert!(written <= most, "{written} of at most {most}");
            let unreported = bounds.0[&here].suppressed;
            prop_assert_eq!(written + reported + unreported, steps.len() as u64);
        }
    }
}
