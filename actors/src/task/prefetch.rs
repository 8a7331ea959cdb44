//! The thread of an accelerator that uploads inputs of its next task, while its other thread runs a task.
//!
//! Hints hold no memory: a region that is dropped meanwhile is not uploaded. A thread that hangs in a driver is left behind. Tasks
//! wait for its upload no longer than their time limit, and the worker ends without it.

use super::DeviceState;
use actix::prelude::*;
use pleach_accelerate::Prefetcher;
use pleach_dispatch::SlotId;
use pleach_regions::DataRegion;
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::Builder;
use tracing::debug;

/// Inputs of the next task of an accelerator, for its slot. They replace those of an earlier hint.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct PrefetchInputs(pub Vec<Weak<DataRegion>>);

/// The thread, on the side of the actors.
pub(super) struct PrefetchThread(Sender<PrefetchInputs>);

impl fmt::Debug for PrefetchThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefetchThread").finish_non_exhaustive()
    }
}

impl PrefetchThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns the error of the system if the thread cannot be started.
    pub(super) fn start(
        slot: SlotId,
        mut prefetcher: Box<dyn Prefetcher>,
        state: Arc<DeviceState>,
    ) -> std::io::Result<Self> {
        let (send, hints) = channel();
        let serve = move || serve(&mut *prefetcher, &state, &hints);
        Builder::new().name(format!("prefetch-{}", slot.0)).spawn(serve)?;
        Ok(Self(send))
    }

    pub(super) fn send(&self, inputs: PrefetchInputs) {
        // A thread that has ended leaves uploads to the tasks.
        let _ = self.0.send(inputs);
    }
}

/// Uploads regions until the slot closes or its worker ends.
fn serve(prefetcher: &mut dyn Prefetcher, state: &DeviceState, hints: &Receiver<PrefetchInputs>) {
    while let Ok(hint) = hints.recv() {
        let PrefetchInputs(regions) = hints.try_iter().last().unwrap_or(hint);
        for region in regions {
            if state.is_closed() {
                return;
            }
            let uploaded = region.upgrade().map(|region| prefetcher.prefetch(&region));
            // The task that reads the region meets the error itself.
            if let Some(Err(error)) = uploaded {
                debug!("prefetch: {error}");
            }
        }
    }
}
