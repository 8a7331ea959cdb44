//! Operator notices of refused peers, limited to one per cause and address, and in rate.
//!
//! Addresses of half-open connections can be forged, so the number of attempts must not determine the number of notices or
//! remembered addresses. Suppressed notices are counted, and the next notice contains the count.

use super::refusal::{Cause, Refusal};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// Interval between notices of the same cause and address, short enough to show that the problem persists.
pub const REPEAT_INTERVAL: Duration = Duration::from_secs(3600);

/// Maximum number of notices within [`WITHIN`], over all causes.
pub const MAX_NOTICES: usize = 20;

/// Period of the limit [`MAX_NOTICES`], 1 min: the operator gets at most one screen of notices per minute.
pub const WITHIN: Duration = Duration::from_secs(60);

/// Maximum number of addresses and causes remembered. Above it, the oldest may be logged again.
pub const REMEMBERED: usize = 1024;

/// Notice of a refused peer, with the number of suppressed notices before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalNotice {
    /// Address of the peer.
    pub peer: IpAddr,
    /// Reason.
    pub refusal: Refusal,
    /// Refusals since the last notice that were not logged.
    pub untold: u64,
}

impl fmt::Display for RefusalNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.peer, self.refusal)?;
        match self.untold {
            0 => Ok(()),
            untold => write!(f, " (and {untold} earlier refusals that were not logged)"),
        }
    }
}

/// Limits notices. Time is an argument, relative to any fixed moment.
#[derive(Debug, Default)]
pub struct RefusalLimiter {
    last_notice: HashMap<(Cause, IpAddr), Duration>,
    /// Remembered causes and addresses, the oldest first.
    order: VecDeque<(Cause, IpAddr)>,
    /// Times of the latest notices.
    recent: VecDeque<Duration>,
    untold: u64,
}

impl RefusalLimiter {
    /// Records a refusal. Returns a notice if one is due.
    pub fn note(&mut self, now: Duration, peer: IpAddr, refusal: &Refusal) -> Option<RefusalNotice> {
        let what = (refusal.cause, peer);
        // The difference is absolute, because the time of day may be set back.
        let is_old = |then: &Duration| now.abs_diff(*then) >= REPEAT_INTERVAL;
        let is_known = self.last_notice.get(&what).is_some_and(|then| !is_old(then));
        while self.recent.front().is_some_and(|then| now.abs_diff(*then) >= WITHIN) {
            self.recent.pop_front();
        }
        if is_known || self.recent.len() >= MAX_NOTICES {
            self.untold += 1;
            return None;
        }
        self.recent.push_back(now);
        if self.last_notice.insert(what, now).is_some() {
            // Moves to the end, so that the eviction below removes the oldest notice.
            self.order.retain(|known| *known != what);
        }
        self.order.push_back(what);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.last_notice.remove(&oldest);
        }
        Some(RefusalNotice { peer, refusal: refusal.clone(), untold: std::mem::take(&mut self.untold) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from(n).into()
    }

    fn refusal(cause: Cause) -> Refusal {
        Refusal { cause, text: "no".to_owned() }
    }

    #[test]
    fn refusal_is_logged_once_per_cause_and_address() {
        let mut notices = RefusalLimiter::default();
        let mut note = |seconds, peer, cause| {
            notices
                .note(Duration::from_secs(seconds), address(peer), &refusal(cause))
                .map(|notice| notice.untold)
        };
        assert_eq!(note(0, 1, Cause::Expired), Some(0));
        assert_eq!(note(1, 1, Cause::Expired), None);
        assert_eq!(note(2, 1, Cause::Expired), None);
        assert_eq!(note(3, 1, Cause::Role), Some(2));
        assert_eq!(note(4, 2, Cause::Expired), Some(0));
        assert_eq!(note(4000, 1, Cause::Expired), Some(0), "it still goes on");
    }

    proptest! {
        /// Notices and memory are bounded for any number of peers, and every refusal is counted.
        #[test]
        fn a_flood_is_counted(peers in prop::collection::vec((0..5000u32, 0..7200u64), 1..4000)) {
            let mut notices = RefusalLimiter::default();
            let mut told: Vec<Duration> = Vec::new();
            let mut untold = 0;
            let mut peers = peers;
            peers.sort_by_key(|(_, seconds)| *seconds);
            for (peer, seconds) in &peers {
                let now = Duration::from_secs(*seconds);
                if let Some(notice) = notices.note(now, address(*peer), &refusal(Cause::Deadline)) {
                    told.push(now);
                    untold += notice.untold;
                }
                prop_assert!(notices.last_notice.len() <= REMEMBERED && notices.order.len() == notices.last_notice.len());
            }
            prop_assert_eq!(told.len() as u64 + untold + notices.untold, peers.len() as u64);
            prop_assert!(told.windows(MAX_NOTICES + 1).all(|some| some[MAX_NOTICES] - some[0] >= WITHIN));
        }
    }
}
