//! Names claimed by two processes: a copied certificate, or a worker restarted before its old link timed out.
//!
//! A connection whose name belongs to another process waits, with its frames, until the liveness of that process is
//! known. Each end of a link sends several times within the liveness timeout. Bytes from the holder are therefore a
//! proof of life, and the manager refuses the newcomer. Without bytes, the holder's link times out and the newcomer
//! joins.
//!
//! The operator gets one log line for each name and host of a newcomer, and a count.
//!
//! Invariants:
//! - A connection with a claim has not joined, and its holder is another connection.
//! - A claim ends with its decision or with its connection. Its frames are then handled in order, or dropped.

use super::connection::{Connection, ConnectionId, ConnectionTable};
use super::view::Duplicate;
use super::{ManagerActor, TICK};
use crate::transport::Frame;
use actix::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tracing::warn;

/// Interval between log lines for a duplicate that keeps trying.
const AGAIN: Duration = Duration::from_secs(3600);

/// Operators see a duplicate for 120 s after its last attempt: four times the longest interval between its attempts.
const SHOWN: Duration = Duration::from_secs(120);

/// Maximum number of names, and of hosts per name, remembered. Only nodes with certificates of this cluster reach this
/// point.
const MAX_REMEMBERED: usize = 1024;

/// A connection that waits for a name.
#[derive(Debug)]
struct Claim {
    holder: ConnectionId,
    since: Instant,
    /// Bytes received from the holder when the claim was one tick old. Bytes sent before the holder died have arrived
    /// by then.
    heard: Option<u64>,
    /// Frames received, from the join on.
    frames: Vec<Frame>,
}

/// The decision on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    /// The holder is alive.
    Refuse,
    /// The holder is gone.
    Join,
}

impl Claim {
    fn new(holder: ConnectionId, join: Frame) -> Self {
        Self { holder, since: Instant::now(), heard: None, frames: vec![join] }
    }

    /// Decides by the bytes received from the holder so far. `None` means that its link does not count bytes and ends
    /// at once with the holder.
    fn decide(&mut self, is_connected: bool, received: Option<u64>, now: Instant) -> Verdict {
        match (is_connected, received, self.heard) {
            (false, ..) => Verdict::Join,
            (true, None, _) => Verdict::Refuse,
            (true, Some(received), Some(before)) if received > before => Verdict::Refuse,
            (true, Some(received), None) if now.duration_since(self.since) >= TICK => {
                self.heard = Some(received);
                Verdict::Wait
            }
            (true, Some(_), _) => Verdict::Wait,
        }
    }
}

/// Names claimed by two processes.
#[derive(Default)]
pub(super) struct NameClaims {
    /// Connections whose name belongs to another process, until the liveness of that process is known.
    claims: BTreeMap<ConnectionId, Claim>,
    duplicates: Duplicates,
}

impl NameClaims {
    /// Lets a connection wait for the name of `holder`, with its join message.
    pub(super) fn claim(&mut self, id: ConnectionId, holder: ConnectionId, join: Frame) {
        assert_ne!(id, holder, "a connection waits for another connection");
        let previous = self.claims.insert(id, Claim::new(holder, join));
        assert!(previous.is_none(), "a connection waits for one name");
    }

    /// Keeps a frame of a waiting connection until the decision. The frame counts as unread until then, which bounds
    /// the frames. Returns the frame if the connection does not wait.
    pub(super) fn keep_frame(&mut self, id: ConnectionId, frame: Frame) -> Option<Frame> {
        let Some(claim) = self.claims.get_mut(&id) else { return Some(frame) };
        claim.frames.push(frame);
        None
    }

    /// Ends the claim of a connection. Returns the kept frames.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Vec<Frame> {
        self.claims.remove(&id).map(|claim| claim.frames).unwrap_or_default()
    }

    /// Returns the last refused process of this name, if the refusal is recent.
    pub(super) fn recent_duplicate(&self, name: &str, now: Instant) -> Option<Duplicate> {
        self.duplicates.recent(name, now)
    }

    /// Decides the claims on the holders in `connections`, as far as possible by now. Each claim comes with its holder.
    fn decide(
        &mut self,
        connections: &ConnectionTable,
        now: Instant,
    ) -> Vec<(ConnectionId, ConnectionId, Verdict)> {
        let decide = |(id, claim): (&ConnectionId, &mut Claim)| {
            let holder = connections.get(claim.holder);
            let received = holder.and_then(|holder| holder.link.figures());
            let received = received.map(|figures| figures.received_bytes);
            (*id, claim.holder, claim.decide(holder.is_some(), received, now))
        };
        self.claims.iter_mut().map(decide).collect()
    }
}

/// Refused processes, by the name that they share with a connected worker.
#[derive(Debug, Default)]
struct Duplicates(HashMap<String, Refused>);

#[derive(Debug)]
struct Refused {
    location: String,
    attempts: u64,
    last: Instant,
    /// Time of the last log line, by host.
    logged: HashMap<Option<IpAddr>, Instant>,
}

impl Duplicates {
    /// Records a refused newcomer. Returns the attempts of its name so far if they are due to be logged.
    fn refused(&mut self, name: &str, host: Option<IpAddr>, location: &str, now: Instant) -> Option<u64> {
        // Bounds the memory: beyond the limit, a name without an expired predecessor is refused without a count.
        if self.0.len() >= MAX_REMEMBERED && !self.0.contains_key(name) {
            self.0.retain(|_, refused| now.duration_since(refused.last) < AGAIN);
            if self.0.len() >= MAX_REMEMBERED {
                return None;
            }
        }
        let empty = || Refused { location: String::new(), attempts: 0, last: now, logged: HashMap::new() };
        let refused = self.0.entry(name.to_owned()).or_insert_with(empty);
        location.clone_into(&mut refused.location);
        refused.attempts += 1;
        refused.last = now;
        let is_old = |then: &Instant| now.duration_since(*then) >= AGAIN;
        refused.logged.retain(|_, then| !is_old(then));
        if refused.logged.contains_key(&host) || refused.logged.len() >= MAX_REMEMBERED {
            return None;
        }
        refused.logged.insert(host, now);
        Some(refused.attempts)
    }

    /// Returns the last refused process of this name, if the refusal is recent.
    fn recent(&self, name: &str, now: Instant) -> Option<Duplicate> {
        let refused = self.0.get(name).filter(|refused| now.duration_since(refused.last) < SHOWN)?;
        Some(Duplicate { location: refused.location.clone(), attempts: refused.attempts })
    }
}

impl ManagerActor {
    /// Returns the connection of another process with the name of `id`. The same process on a new link keeps its name.
    pub(super) fn name_holder(
        &mut self,
        id: ConnectionId,
        incarnation: u64,
        ctx: &mut Context<Self>,
    ) -> Option<ConnectionId> {
        self.service.as_ref()?;
        let name = &self.connections.get(id)?.newcomer.name;
        let holds = |(_, connection): &(_, &Connection)| connection.newcomer.name == *name;
        let (holder, connection) = self.connections.joined().find(holds)?;
        if connection.incarnation != incarnation {
            return Some(holder);
        }
        // The old link is dead, but its end has not been detected yet.
        // Not lost: the process lives, so its instances have not crashed it.
        self.close(holder, false, ctx);
        None
    }

    /// Decides the claims that can be decided by now.
    pub(super) fn settle_claims(&mut self, ctx: &mut Context<Self>) {
        let now = Instant::now();
        for (id, holder, verdict) in self.names.decide(&self.connections, now) {
            match verdict {
                Verdict::Wait => {}
                Verdict::Refuse => self.refuse_name(id, holder, now),
                Verdict::Join => {
                    // Removed first: the frames are handled as if they arrived now.
                    let frames = self.names.remove(id);
                    frames.into_iter().for_each(|frame| self.receive(id, frame, ctx));
                }
            }
        }
    }

    /// Refuses a newcomer whose name belongs to a live process.
    fn refuse_name(&mut self, id: ConnectionId, holder: ConnectionId, now: Instant) {
        self.names.remove(id);
        let Some(refused) = self.connections.remove(id) else { return };
        assert!(refused.worker().is_none(), "a connection with a claim has not joined");
        let Some(holder) = self.connections.get(holder) else { return };
        let (name, location) = (&refused.newcomer.name, &refused.newcomer.location);
        let (held_at, held) = (&holder.newcomer.location, now.duration_since(holder.since).as_secs());
        refused.link.refuse_name(&format!(
            "the name {name} is in use by a worker at {held_at}, connected for {held} s; issue another \
             certificate (pleach certs issue --name) or stop that worker"
        ));
        self.counters.duplicates.increment(1);
        let logged = self.names.duplicates.refused(name, refused.newcomer.host, location, now);
        if let Some(attempts) = logged {
            warn!(
                worker = name,
                attempts,
                "two workers are named {name}: the one at {held_at} stays connected, the one at {location} \
                 is refused; issue another certificate for one of them (pleach certs issue --name)"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        Claim::new(ConnectionId(1), Frame::from(Vec::new()))
    }

    #[test]
    fn claim_on_a_live_holder_is_refused() {
        let mut claim = claim();
        let (start, tick) = (claim.since, TICK);
        assert_eq!(claim.decide(true, Some(100), start), Verdict::Wait);
        // In flight when the holder died.
        assert_eq!(claim.decide(true, Some(130), start + tick), Verdict::Wait);
        assert_eq!(claim.decide(true, Some(130), start + 2 * tick), Verdict::Wait);
        assert_eq!(claim.decide(true, Some(131), start + 7 * tick), Verdict::Refuse);
    }

    #[test]
    fn claim_on_a_silent_holder_waits_for_its_end() {
        let mut claim = claim();
        let start = claim.since;
        for tick in 1..=20 {
            assert_eq!(claim.decide(true, Some(100), start + tick * TICK), Verdict::Wait);
        }
        assert_eq!(claim.decide(false, None, start + 21 * TICK), Verdict::Join);
    }

    #[test]
    fn claim_on_a_link_without_a_network_is_refused() {
        let mut claim = claim();
        assert_eq!(claim.decide(true, None, claim.since), Verdict::Refuse);
    }

    #[test]
    fn duplicate_is_logged_once_for_each_host_and_hour() {
        let mut duplicates = Duplicates::default();
        let start = Instant::now();
        let hosts = [1, 2].map(|host| Some(IpAddr::from([10, 0, 0, host])));
        let mut refused = |host: usize, seconds: u64| {
            duplicates.refused("w0", hosts[host], "b", start + Duration::from_secs(seconds))
        };
        assert_eq!(refused(0, 0), Some(1));
        assert_eq!(refused(0, 1), None);
        assert_eq!(refused(1, 2), Some(3));
        assert_eq!(refused(0, 3599), None);
        assert_eq!(refused(0, 3600), Some(5));
        let recent = |seconds| duplicates.recent("w0", start + Duration::from_secs(seconds));
        assert_eq!(recent(3700).map(|duplicate| duplicate.attempts), Some(5));
        assert_eq!(recent(3720), None);
    }

    #[test]
    fn duplicates_of_many_names_are_bounded() {
        let mut duplicates = Duplicates::default();
        let start = Instant::now();
        for name in 0..2 * MAX_REMEMBERED {
            duplicates.refused(&format!("w{name}"), None, "b", start);
        }
        assert_eq!(duplicates.0.len(), MAX_REMEMBERED);
        assert_eq!(duplicates.refused("late", None, "b", start + AGAIN), Some(1));
        assert_eq!(duplicates.0.len(), 1);
    }
}
