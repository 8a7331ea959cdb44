//! The end of the work of a worker: its query for an instance with a longer path, and the leases that it was asked to share.
//!
//! Invariant: at most one query is open. Each lease is asked with one path, the shortest of all requests.

use crate::LeaseId;
use std::collections::BTreeMap;
use std::time::Duration;

/// State of the query for an instance with a longer path than that of the next task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Query {
    #[default]
    None,
    /// Sent. Counts the ticks since then.
    Open(u32),
    /// The manager has none: last tasks may run until a slot becomes free again.
    Refused,
}

/// Ticks without an answer after which a query counts as refused: the link may be lost.
const MAX_TICKS: u32 = 2;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Maximum of open tasks for each slot at the end of the work. 0 for workers that neither query nor share by paths.
    max_tasks: u32,
    query: Query,
    /// Leases that were asked for instances with a path longer than this, and have none yet.
    asked: BTreeMap<LeaseId, Duration>,
}

impl Tail {
    pub(crate) fn set_max_tasks(&mut self, max_tasks: u32) {
        self.max_tasks = max_tasks;
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.max_tasks > 0
    }

    pub(crate) fn max_tasks(&self) -> u32 {
        self.max_tasks
    }

    /// Forgets the query and the requests, because the link to the manager is new.
    pub(crate) fn reset(&mut self) {
        (self.query, self.asked) = (Query::None, BTreeMap::new());
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.query, Query::Open(_))
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.query == Query::Refused
    }

    /// Opens a query. Returns false if one is open.
    pub(crate) fn begin_query(&mut self) -> bool {
        let is_new = !self.is_open();
        if is_new {
            self.query = Query::Open(0);
        }
        is_new
    }

    /// Records the answer of the manager. Returns whether it was expected: it may come too late.
    pub(crate) fn end_query(&mut self, found: bool) -> bool {
        let is_open = self.is_open();
        if is_open {
            self.query = if found { Query::None } else { Query::Refused };
        }
        is_open
    }

    /// Lets the next last task be preceded by a query again.
    pub(crate) fn clear_refusal(&mut self) {
        if self.is_refused() {
            self.query = Query::None;
        }
    }

    /// Counts a tick. Returns whether the open query counts as refused from now on.
    pub(crate) fn tick(&mut self) -> bool {
        if let Query::Open(ticks) = &mut self.query {
            *ticks += 1;
            if *ticks >= MAX_TICKS {
                self.query = Query::Refused;
                return true;
            }
        }
        false
    }

    pub(crate) fn ask(&mut self, lease: LeaseId, longer_than: Duration) {
        let asked = self.asked.entry(lease).or_insert(longer_than);
        *asked = (*asked).min(longer_than);
    }

    pub(crate) fn asked(&self) -> impl Iterator<Item = (LeaseId, Duration)> {
        self.asked.iter().map(|(lease, path)| (*lease, *path))
    }

    pub(crate) fn answer(&mut self, lease: LeaseId) {
        self.asked.remove(&lease);
    }
}
