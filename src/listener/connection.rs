//! State of one connection, shared by the accept loop, its stream and the handlers of its requests.
//!
//! All of them are on the server's thread.

use super::admission::Step;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    network: IpAddr,
    began: Instant,
    /// The last time a byte went in either direction.
    moved: Cell<Instant>,
    /// Named as soon as it has shown credentials.
    client: RefCell<Option<Rc<str>>>,
    /// By a certificate, which holds for all of its requests.
    is_certified: Cell<bool>,
    step: Cell<Step>,
    /// The client does not take the bytes that are sent to it.
    pub(super) is_stalled: Cell<bool>,
    /// Bytes read.
    pub(super) received: Cell<u64>,
    /// Of the task that reads on when the client is told apart.
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

    /// The client has shown a certificate of this name, or the token. Clients that share the token are told apart by their
    /// network.
    pub(crate) fn trust(&self, name: Option<&str>) {
        self.is_certified.set(self.is_certified() || name.is_some());
        let client = || name.map_or_else(|| format!("token {}", self.network), |name| format!("node {name}"));
        self.client.borrow_mut().get_or_insert_with(|| client().into());
        self.wake();
    }

    /// Whether the client has shown a certificate.
    pub(crate) fn is_certified(&self) -> bool {
        self.is_certified.get()
    }

    /// The client, where it has shown credentials.
    pub(crate) fn client(&self) -> Option<Rc<str>> {
        self.client.borrow().clone()
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.client.borrow().is_none()
    }

    /// The head of a request has been read.
    pub(super) fn asks(&self) {
        self.step.set(self.step.get().max(Step::Asking));
    }

    /// What it has come to.
    pub(super) fn step(&self) -> Step {
        self.step.get()
    }

    /// A request has been answered.
    pub(super) fn answered(&self) {
        self.step.set(Step::Answered);
        self.wake();
    }

    /// Wakes a task when the client has shown credentials, or has its answer.
    pub(super) fn wakes_when_told_apart(&self, waker: &Waker) {
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

    /// Ends the connection, whatever it does.
    pub(super) fn end(&self) {
        self.end.notify_one();
    }

    pub(super) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Returns once the connection has lasted as long as it may without credentials.
    pub(super) async fn expired(&self, time: Duration) {
        tokio::time::sleep_until(self.began + time).await;
        if !self.is_anonymous() {
            std::future::pending::<()>().await;
        }
    }
}
