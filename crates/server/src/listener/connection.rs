//! State of one connection, shared by the accept loop, its stream and the handlers of its requests.
//!
//! All of them run on the server's thread, so cells replace locks.

use super::admission::Step;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Prefix of the name of a client with a certificate.
pub(crate) const CERTIFIED: &str = "node ";

/// Open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    network: IpAddr,
    began: Instant,
    /// Time of the last byte in either direction.
    moved: Cell<Instant>,
    /// Name of the client. `None` until it has shown credentials.
    client: RefCell<Option<Rc<str>>>,
    /// Whether the credentials are a certificate, which holds for all of its requests.
    is_certified: Cell<bool>,
    step: Cell<Step>,
    /// Whether a write waits for the client.
    pub(super) is_stalled: Cell<bool>,
    /// Bytes received.
    pub(super) received: Cell<u64>,
    /// Waker of the task that continues to read once the client has shown credentials or has its answer.
    waker: RefCell<Option<Waker>>,
    end: Notify,
}

impl Connection {
    pub(super) fn new(network: IpAddr) -> Self {
        let now = Instant::now();
        Self {
            network,
            began: now,
            moved: Cell::new(now),
            client: RefCell::default(),
            is_certified: Cell::default(),
            step: Cell::new(Step::Arriving),
            is_stalled: Cell::default(),
            received: Cell::default(),
            waker: RefCell::default(),
            end: Notify::new(),
        }
    }

    /// Records that the client has shown a certificate of this name, or the token if `name` is `None`. Clients with
    /// the same token are distinguished by their network.
    pub(crate) fn trust(&self, name: Option<&str>) {
        self.is_certified.set(self.is_certified() || name.is_some());
        let client =
            || name.map_or_else(|| format!("token {}", self.network), |name| format!("{CERTIFIED}{name}"));
        // The first name stays: the handshake shows a certificate before any request can show a token.
        self.client.borrow_mut().get_or_insert_with(|| client().into());
        self.wake();
    }

    /// Returns whether the client has shown a certificate.
    pub(crate) fn is_certified(&self) -> bool {
        self.is_certified.get()
    }

    /// Returns the client, or `None` if it has not shown credentials.
    pub(crate) fn client(&self) -> Option<Rc<str>> {
        self.client.borrow().clone()
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.client.borrow().is_none()
    }

    /// Records that the head of a request has been read.
    pub(super) fn asks(&self) {
        self.step.set(self.step.get().max(Step::Asking));
    }

    /// Returns the furthest step so far.
    pub(super) fn step(&self) -> Step {
        self.step.get()
    }

    /// Records that a request has been answered.
    pub(super) fn answered(&self) {
        self.step.set(Step::Answered);
        self.wake();
    }

    /// Registers a task, which wakes when the client has shown credentials or has its answer.
    pub(super) fn wake_when_classified(&self, waker: &Waker) {
        self.waker.replace(Some(waker.clone()));
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn network(&self) -> IpAddr {
        self.network
    }

    pub(super) fn idle(&self) -> Duration {
        self.moved.get().elapsed()
    }

    pub(super) fn moved(&self) {
        self.moved.set(Instant::now());
    }

    /// Ends the connection in any state.
    pub(super) fn end(&self) {
        // Stores a permit: the connection may end before its task polls `ended` for the first time.
        self.end.notify_one();
    }

    pub(super) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Completes once a connection without credentials has lasted for `time`. Never completes for one with
    /// credentials.
    pub(super) async fn expired(&self, time: Duration) {
        tokio::time::sleep_until(self.began + time).await;
        if !self.is_anonymous() {
            // The caller selects the first future to complete, and this limit no longer applies.
            std::future::pending::<()>().await;
        }
    }
}
