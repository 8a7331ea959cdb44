//! Watches of the test server: events since a version, bookmarks, and the ends that a server or a network gives to a watch.

use super::deployments::{Deployments, decoded, item, selector};
use super::{Kept, Kubernetes, Request, refusal};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

/// 5 ms between two looks for events: no test waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Disturbance of one watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchFault {
    /// Status 410 for the request.
    Gone,
    /// An error event with the code 410.
    GoneEvent,
    /// The server ends the watch after its first event.
    Close,
    /// The connection ends in the middle of the first event.
    Cut,
    /// The connection stays open, and nothing follows the first bookmark.
    Hang,
}

/// Requests for pods, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodRequest {
    /// First page of a list.
    List,
    /// Watch from a version.
    Watch(String),
}

#[derive(Default)]
pub(super) struct Watches {
    /// Version, selector and event.
    events: Vec<(u64, String, Value)>,
    /// Pods as of the last event.
    shown: Vec<(String, String, Value)>,
    faults: VecDeque<WatchFault>,
    pub(super) requests: Vec<PodRequest>,
}

impl Deployments {
    /// Adds the events of pods that have changed.
    pub(super) fn record(&mut self) {
        let present: Vec<(String, String, Value)> = self
            .pods
            .iter()
            .map(|(name, pod)| (name.clone(), selector(&pod.deployment), item(name, pod)))
            .collect();
        let before = std::mem::take(&mut self.watches.shown);
        let removed = before.iter().filter(|(name, ..)| !present.iter().any(|(other, ..)| other == name));
        let mut changes: Vec<_> = removed.map(|pod| ("DELETED", pod.clone())).collect();
        for pod in &present {
            match before.iter().find(|(name, ..)| *name == pod.0) {
                None => changes.push(("ADDED", pod.clone())),
                Some(old) if old != pod => changes.push(("MODIFIED", pod.clone())),
                Some(_) => {}
            }
        }
        for (kind, (_, selector, mut object)) in changes {
            self.version += 1;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            let event = json!({"type": kind, "object": object});
            self.watches.events.push((self.version, selector, event));
        }
        self.watches.shown = present;
    }

    /// Events after a version.
    fn since(&self, version: u64, selected: &str) -> Vec<(u64, Value)> {
        let new = self.watches.events.iter().filter(|(at, of, _)| *at > version && of == selected);
        new.map(|(at, _, event)| (*at, event.clone())).collect()
    }
}

/// Serves a watch. The caller has checked the request. Returns a status for a refusal before the first event.
pub(super) fn serve(
    request: &Request,
    stream: &mut impl Write,
    kept: &Mutex<Kept>,
) -> Result<(), (u16, Value)> {
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    let parameter =
        |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')).map(decoded);
    let selected = parameter("labelSelector").unwrap_or_default();
    let version = parameter("resourceVersion").unwrap_or_default();
    let has_end = parameter("timeoutSeconds").is_some_and(|seconds| seconds.parse::<u32>().is_ok());
    let Some(mut at) = version.parse::<u64>().ok().filter(|_| has_end) else {
        return Err(refusal(400, "this server needs a version and a time limit of a watch"));
    };
    let fault = {
        let watches = &mut kept.lock().deployments.watches;
        watches.requests.push(PodRequest::Watch(version));
        watches.faults.pop_front()
    };
    if fault == Some(WatchFault::Gone) {
        return Err(refusal(410, "too old resource version"));
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    // The client has ended if a write fails.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.flush());
    if fault == Some(WatchFault::GoneEvent) {
        let status = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
        let _ = chunk(stream, &format!("{}\n", json!({"type": "ERROR", "object": status})));
        let _ = stream.write_all(b"0\r\n\r\n").and_then(|()| stream.flush());
        return Ok(());
    }
    // A bookmark of the present version is the first event, and has no more than a version.
    let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1",
        "metadata": {"resourceVersion": at.to_string(), "creationTimestamp": null}}});
    let _ = chunk(stream, &format!("{bookmark}\n"));
    while fault == Some(WatchFault::Hang) {
        // The thread stays until this process ends.
        std::thread::park_timeout(LOOK_EVERY);
    }
    loop {
        let events = kept.lock().deployments.since(at, &selected);
        for (version, event) in events {
            let line = format!("{event}\n");
            if fault == Some(WatchFault::Cut) {
                let _ = chunk(stream, &line[..line.len() / 2]);
                return Ok(());
            }
            if chunk(stream, &line).is_err() {
                return Ok(());
            }
            at = version;
            if fault == Some(WatchFault::Close) {
                let _ = stream.write_all(b"0\r\n\r\n").and_then(|()| stream.flush());
                return Ok(());
            }
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

fn chunk(stream: &mut impl Write, text: &str) -> std::io::Result<()> {
    write!(stream, "{:x}\r\n{text}\r\n", text.len())?;
    stream.flush()
}

impl Kubernetes {
    /// Disturbs the next watches.
    pub(crate) fn disturb_watches(&self, faults: &[WatchFault]) {
        self.kept.lock().deployments.watches.faults.extend(faults);
    }

    /// Whether all disturbances have happened or begun.
    pub(crate) fn has_disturbed_watches(&self) -> bool {
        self.kept.lock().deployments.watches.faults.is_empty()
    }

    /// All requests for pods so far.
    pub(crate) fn pod_requests(&self) -> Vec<PodRequest> {
        self.kept.lock().deployments.watches.requests.clone()
    }

    /// Evicts a pod: it fails, and its deployment creates another one.
    pub(crate) fn evict_pod(&self, name: &str) {
        self.change(|deployments| {
            if let Some(pod) = deployments.pods.get_mut(name) {
                pod.phase = super::PodPhase::Evicted;
            }
        });
    }
}
