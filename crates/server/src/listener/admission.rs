//! Admission control: chooses the connection that ends when there are too many.
//!
//! A newcomer is admitted if a connection without credentials can end for it, or one with credentials that is idle. A
//! network at its limit loses one of its own connections. Otherwise the network with the most connections without
//! credentials loses its oldest. So a client never loses its connection to a client of another network that opens
//! many.

use super::Bounds;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// After 10 s without a byte in either direction, a connection with credentials may end for a newcomer. Clients send
/// one request after another and reconnect when necessary.
const IDLE: Duration = Duration::from_secs(10);

/// Progress of a connection. The furthest connection ends first: one with an answer, read or not, then one whose
/// answer takes time. A probe is answered at once, so a crowd does not end its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The head of its first request has not been read.
    Arriving,
    /// Its request has not been answered yet.
    Asking,
    /// Its request has been answered.
    Answered,
}

/// Properties of one open connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionInfo {
    /// Number that increases with every connection.
    pub(super) id: u64,
    pub(super) network: IpAddr,
    pub(super) is_anonymous: bool,
    pub(super) step: Step,
    /// Time since its last byte.
    pub(super) idle: Duration,
}

/// Decision on a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The newcomer is served.
    Room,
    /// The newcomer is served, and the connection with this id ends.
    Instead(u64),
    /// The newcomer is closed.
    Full,
}

/// Returns the network of an address: an IPv4 address, or the /64 of an IPv6 address, which is the smallest network
/// that a host gets.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Decides on a newcomer. `open` is sorted by id.
pub(super) fn admit(newcomer: IpAddr, open: &[ConnectionInfo], bounds: &Bounds) -> Admission {
    let of_network: Vec<ConnectionInfo> =
        open.iter().filter(|facts| facts.network == newcomer).copied().collect();
    if of_network.len() >= bounds.of_network {
        return instead(&of_network);
    }
    let anonymous = || open.iter().filter(|facts| facts.is_anonymous);
    if open.len() < bounds.connections && anonymous().count() < bounds.anonymous {
        return Admission::Room;
    }
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    anonymous().for_each(|facts| *counts.entry(facts.network).or_default() += 1);
    let most = counts.values().max().copied().unwrap_or_default();
    let crowded: Vec<ConnectionInfo> =
        anonymous().filter(|facts| counts[&facts.network] == most).copied().collect();
    instead(if crowded.is_empty() { open } else { &crowded })
}

/// Chooses the oldest connection at the furthest step among those without credentials. Without such a connection,
/// chooses the one with credentials that has been idle longest, if it is idle for [`IDLE`].
fn instead(among: &[ConnectionInfo]) -> Admission {
    let all = among.iter().filter(|facts| facts.is_anonymous);
    let anonymous = all.max_by_key(|facts| (facts.step, Reverse(facts.id)));
    let idle = || among.iter().filter(|facts| facts.idle >= IDLE).max_by_key(|facts| facts.idle);
    anonymous.or_else(idle).map_or(Admission::Full, |facts| Admission::Instead(facts.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        connections: 6,
        of_network: 4,
        anonymous: 5,
        anonymous_time: Duration::ZERO,
        head: Duration::ZERO,
        write: Duration::ZERO,
    };

    fn address(text: &str) -> IpAddr {
        network(text.parse().unwrap())
    }

    fn open(all: &[(&str, bool, u64)]) -> Vec<ConnectionInfo> {
        let facts = |(id, &(from, is_anonymous, idle)): (usize, &(&str, bool, u64))| ConnectionInfo {
            id: id as u64,
            network: address(from),
            is_anonymous,
            step: Step::Arriving,
            idle: Duration::from_secs(idle),
        };
        all.iter().enumerate().map(facts).collect()
    }

    #[test]
    fn newcomer_with_room_ends_nothing() {
        let open = open(&[("10.0.0.1", true, 100); 3]);
        assert_eq!(admit(address("10.0.0.1"), &open, &BOUNDS), Admission::Room);
    }

    #[test]
    fn newcomer_of_a_full_network_ends_its_networks_oldest() {
        let all =
            [("10.0.0.2", true, 0), ("10.0.0.1", false, 60), ("10.0.0.1", true, 0), ("10.0.0.1", true, 0)];
        let mut all = all.to_vec();
        all.push(("10.0.0.1", true, 0));
        assert_eq!(admit(address("10.0.0.1"), &open(&all), &BOUNDS), Admission::Instead(2));
        let own = [
            ("10.0.0.1", false, 1),
            ("10.0.0.1", false, 30),
            ("10.0.0.1", false, 60),
            ("10.0.0.1", false, 2),
        ];
        assert_eq!(admit(address("10.0.0.1"), &open(&own), &BOUNDS), Admission::Instead(2));
        assert_eq!(
            admit(address("10.0.0.1"), &open(&own.map(|one| (one.0, one.1, 1))), &BOUNDS),
            Admission::Full
        );
    }

    #[test]
    fn newcomer_from_elsewhere_ends_the_oldest_of_the_crowd() {
        let all = [
            ("10.0.0.3", true, 500),
            ("10.0.0.1", true, 0),
            ("10.0.0.1", true, 0),
            ("10.0.0.1", true, 0),
            ("10.0.0.2", true, 0),
        ];
        assert_eq!(admit(address("10.0.0.9"), &open(&all), &BOUNDS), Admission::Instead(1));
    }

    #[test]
    fn newcomer_ends_an_answered_connection_before_one_that_waits() {
        let mut open = open(&[("10.0.0.1", true, 0); 4]);
        open[1].step = Step::Asking;
        open[2].step = Step::Asking;
        assert_eq!(admit(address("10.0.0.1"), &open, &BOUNDS), Admission::Instead(1));
        open[3].step = Step::Answered;
        assert_eq!(admit(address("10.0.0.1"), &open, &BOUNDS), Admission::Instead(3));
    }

    #[test]
    fn clients_with_credentials_stay_while_they_are_busy() {
        let mut all = vec![("10.0.0.1", false, 0), ("10.0.0.2", false, 0), ("10.0.0.3", false, 9)];
        all.extend([("10.0.0.4", false, 0), ("10.0.0.5", false, 0), ("10.0.0.6", true, 0)]);
        assert_eq!(admit(address("10.0.0.9"), &open(&all), &BOUNDS), Admission::Instead(5));
        all[5].1 = false;
        assert_eq!(admit(address("10.0.0.9"), &open(&all), &BOUNDS), Admission::Full);
        all[2].2 = 10;
        assert_eq!(admit(address("10.0.0.9"), &open(&all), &BOUNDS), Admission::Instead(2));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
    }
}
