//! Owned workers and the phases of their lives.

/// 40 s between two attempts to stop a worker: by default, a worker drains for at most 30 s.
pub(crate) const STOP_AGAIN_SECONDS: f64 = 40.0;

/// Phase of an owned worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WorkerPhase {
    /// The driver is being called.
    Calling,
    /// The answer of the driver is lost. A list decides.
    Unknown,
    /// The driver returned a handle.
    Starting,
    /// The worker has connected.
    Joined,
    /// The worker finishes its running tasks.
    Draining,
    /// The driver stops the worker.
    Stopping {
        /// Whether the driver is being called.
        is_calling: bool,
        /// Time of the next call.
        again_seconds: f64,
    },
}

/// Worker that the provisioner started or adopted.
#[derive(Clone, Debug)]
pub(crate) struct OwnedWorker {
    pub(crate) pool: usize,
    pub(crate) handle: Option<String>,
    pub(crate) phase: WorkerPhase,
    /// Time of its request, or of the start of this manager.
    pub(crate) requested_seconds: f64,
    /// Time of its last change of phase.
    pub(crate) since_seconds: f64,
    /// Tick of its last change. Older lists do not concern it.
    pub(crate) changed: u64,
    /// Time since which a joined worker has been disconnected.
    pub(crate) away_since_seconds: Option<f64>,
    /// Whether it was connected at the last step.
    pub(crate) is_connected: bool,
    /// Whether a list has had it.
    pub(crate) was_listed: bool,
    /// Whether an earlier start of the manager requested it.
    pub(crate) is_inherited: bool,
}

impl OwnedWorker {
    pub(crate) fn new(
        pool: usize,
        handle: Option<String>,
        phase: WorkerPhase,
        now_seconds: f64,
        changed: u64,
    ) -> Self {
        Self {
            pool,
            handle,
            phase,
            requested_seconds: now_seconds,
            since_seconds: now_seconds,
            changed,
            away_since_seconds: None,
            is_connected: false,
            was_listed: false,
            is_inherited: false,
        }
    }

    pub(crate) fn set(&mut self, phase: WorkerPhase, now_seconds: f64, tick: u64) {
        (self.phase, self.since_seconds, self.changed) = (phase, now_seconds, tick);
        self.away_since_seconds = None;
    }

    /// Returns whether the worker works or will work.
    pub(crate) fn serves(&self) -> bool {
        !matches!(self.phase, WorkerPhase::Draining | WorkerPhase::Stopping { .. })
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.phase, WorkerPhase::Calling | WorkerPhase::Unknown | WorkerPhase::Starting)
    }

    /// Returns whether the state of the worker depends on the next list.
    pub(crate) fn needs_list(&self) -> bool {
        match self.phase {
            WorkerPhase::Unknown | WorkerPhase::Starting | WorkerPhase::Stopping { .. } => true,
            WorkerPhase::Joined => self.away_since_seconds.is_some(),
            WorkerPhase::Calling | WorkerPhase::Draining => false,
        }
    }
}
