//! Watch of pods: a list, and then the changes since its version (Kubernetes API concepts, "Efficient detection of changes").
//!
//! A thread keeps the pods of one selector. It lists them in pages, watches from the version of the list, and continues from
//! the version of the last event or bookmark when the server or the network ends the connection. An expired version (410, as
//! a status or as an event) lists again. Refusals are repeated after a growing delay. The pods are unknown meanwhile.

use super::pods::Item;
use super::{ClusterError, MAX_MESSAGE, Namespace, Pod, Round};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use ureq::http::header::AUTHORIZATION;

/// 60 s until the server ends a watch: one request a minute, and a connection that hangs is noticed soon after.
const WATCH_SECONDS: u64 = 60;

/// 70 s until the client gives up a watch, 10 s after the server should have ended it: the time limit of other requests.
const WATCH_LIMIT: Duration = Duration::from_secs(WATCH_SECONDS + 10);

/// 4 MiB of an event: etcd limits an object to 1.5 MiB, and JSON escapes enlarge it.
const MAX_EVENT_BYTES: u64 = 4 << 20;

/// 1 s between two requests at least, as in client-go: a server that ends each watch at once gets one request a second.
const MIN_DELAY: Duration = Duration::from_secs(1);

/// 60 s between two refused requests at most: restored rights are used within a minute.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Change of the watched pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodChange {
    /// Pods were added, changed or removed.
    Changed,
    /// A pod has failed. Contains its name and the reason, such as an eviction.
    Failed(String),
    /// The pods are unknown for a reason until they are listed again.
    Unknown(String),
}

/// Watch of the pods of one selector. It ends when it is dropped, at the latest with its present request.
#[derive(Debug)]
pub(crate) struct PodWatch {
    shared: Arc<Watched>,
}

#[derive(Debug)]
struct Watched {
    selector: String,
    /// Pods by identifier. `None` before the first list and while requests fail.
    pods: Mutex<Option<BTreeMap<String, Pod>>>,
    is_over: AtomicBool,
}

/// Result of a watch request.
#[derive(Debug)]
enum WatchEnd {
    /// The connection has ended. The next watch continues.
    Closed,
    /// The server no longer has the version.
    Expired,
    /// The server refused, or sent no event.
    Failed(ClusterError),
}

/// Line of a watch.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

/// Object of an error event.
#[derive(Deserialize)]
struct EventStatus {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

impl PodWatch {
    /// Starts the thread. It calls `notify` for each change.
    ///
    /// # Errors
    /// Error of the operating system if no thread can be started.
    pub(crate) fn start(
        namespace: Namespace,
        selector: String,
        notify: impl Fn(PodChange) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Watched { selector, pods: Mutex::new(None), is_over: AtomicBool::new(false) });
        let watched = Arc::clone(&shared);
        // Not a thread of the runtime: its end would wait for the present request.
        thread::Builder::new()
            .name("pleach-pods".to_owned())
            .spawn(move || watched.run(&namespace, &notify))?;
        Ok(Self { shared })
    }

    pub(crate) fn selector(&self) -> &str {
        &self.shared.selector
    }

    /// Returns the pods that have not ended. `None` while they are unknown.
    pub(crate) fn pods(&self) -> Option<Vec<Pod>> {
        self.shared.pods.lock().as_ref().map(|pods| pods.values().cloned().collect())
    }
}

impl Drop for PodWatch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Watched {
    fn run(&self, namespace: &Namespace, notify: &dyn Fn(PodChange)) {
        let mut version = String::new();
        let mut delay = MIN_DELAY;
        while !self.is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let end = match namespace.round() {
                Ok(round) if version.is_empty() => match self.list(&round, notify) {
                    Ok(listed) => {
                        version = listed;
                        delay = MIN_DELAY;
                        continue;
                    }
                    Err(error) => WatchEnd::Failed(error),
                },
                Ok(round) => self.watch(&round, &mut version, notify),
                Err(error) => WatchEnd::Failed(error),
            };
            let pause = match end {
                WatchEnd::Closed => {
                    delay = MIN_DELAY;
                    MIN_DELAY.saturating_sub(begun.elapsed())
                }
                WatchEnd::Expired => {
                    version.clear();
                    MIN_DELAY.saturating_sub(begun.elapsed())
                }
                WatchEnd::Failed(error) => {
                    // Events may be missed until the next list.
                    version.clear();
                    if self.pods.lock().take().is_some() || delay == MIN_DELAY {
                        notify(PodChange::Unknown(error.to_string()));
                    }
                    let pause = delay;
                    delay = (2 * delay).min(MAX_DELAY);
                    pause
                }
            };
            thread::sleep(pause);
        }
    }

    /// Lists the pods. Returns the version of the list.
    fn list(&self, round: &Round<'_>, notify: &dyn Fn(PodChange)) -> Result<String, ClusterError> {
        let listed = round.pods(&self.selector)?;
        let pods = listed.pods.into_iter().map(|pod| (pod.uid.clone(), pod)).collect();
        *self.pods.lock() = Some(pods);
        notify(PodChange::Changed);
        Ok(listed.version)
    }

    /// Watches from a version, which follows the events.
    fn watch(&self, round: &Round<'_>, version: &mut String, notify: &dyn Fn(PodChange)) -> WatchEnd {
        let url = round.pods_url();
        let request = round
            .agent
            .get(&url)
            .query("labelSelector", &self.selector)
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("resourceVersion", version.as_str())
            .query("timeoutSeconds", WATCH_SECONDS.to_string())
            .header(AUTHORIZATION, &round.authorization)
            .config()
            .timeout_global(Some(WATCH_LIMIT))
            .build();
        let answer = request.call();
        match answer {
            Ok(answer) if answer.status().is_success() => {
                let lines = BufReader::new(answer.into_body().into_reader());
                self.follow(&url, lines, version, notify)
            }
            answer => match round.text_of(&url, answer, super::MAX_ANSWER_BYTES) {
                Err(error) if error.is_expired() => WatchEnd::Expired,
                Err(error) => WatchEnd::Failed(error),
                Ok(_) => WatchEnd::Closed,
            },
        }
    }

    /// Takes events until the connection ends.
    fn follow(
        &self,
        url: &str,
        mut lines: impl BufRead,
        version: &mut String,
        notify: &dyn Fn(PodChange),
    ) -> WatchEnd {
        let mut line = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            line.clear();
            let read = lines.by_ref().take(MAX_EVENT_BYTES).read_until(b'\n', &mut line);
            let garbage = |what: String| {
                WatchEnd::Failed(ClusterError::Garbage {
                    url: url.to_owned(),
                    what: format!("watch: {what}"),
                })
            };
            if line.len() as u64 == MAX_EVENT_BYTES {
                return garbage(format!("an event has more than {MAX_EVENT_BYTES} bytes"));
            }
            // A line without its end was cut. The next watch gets the event again.
            if read.is_err() || line.last() != Some(&b'\n') {
                return WatchEnd::Closed;
            }
            match serde_json::from_slice::<Event>(&line).map_err(|error| error.to_string()) {
                Ok(event) => match self.take(url, event, version, notify) {
                    Ok(None) => {}
                    Ok(Some(end)) => return end,
                    Err(what) => return garbage(what),
                },
                Err(what) => return garbage(what),
            }
        }
        WatchEnd::Closed
    }

    /// Takes an event. Returns the end of the watch for an error event, and a text for an event that cannot be read.
    fn take(
        &self,
        url: &str,
        event: Event,
        version: &mut String,
        notify: &dyn Fn(PodChange),
    ) -> Result<Option<WatchEnd>, String> {
        if event.kind == "ERROR" {
            let status: EventStatus =
                serde_json::from_value(event.object).map_err(|error| error.to_string())?;
            if status.code == 410 {
                return Ok(Some(WatchEnd::Expired));
            }
            let message = status.message.chars().take(MAX_MESSAGE).collect();
            let error = ClusterError::Refused { url: url.to_owned(), status: status.code, message };
            return Ok(Some(WatchEnd::Failed(error)));
        }
        let of_object = event.object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        if of_object.is_empty() {
            return Err(format!("an event {:?} has no version", event.kind));
        }
        if event.kind != "BOOKMARK" {
            let item: Item = serde_json::from_value(event.object).map_err(|error| error.to_string())?;
            let is_deleted = event.kind == "DELETED";
            let failure = item.failure();
            let has_ended = is_deleted || item.has_ended();
            let pod = item.into_pod();
            let mut pods = self.pods.lock();
            let pods = pods.get_or_insert_default();
            let before =
                if has_ended { pods.remove(&pod.uid) } else { pods.insert(pod.uid.clone(), pod.clone()) };
            // The deletion of a failed pod repeats its failure. Its first event has removed it.
            if let Some(failure) = failure.filter(|_| before.is_some()) {
                notify(PodChange::Failed(failure));
            }
            // Most events change other fields, such as times of probes.
            if before.as_ref() != (!has_ended).then_some(&pod) {
                notify(PodChange::Changed);
            }
        }
        *version = of_object;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::RefCell;

    /// Pods, version, end and changes after these bytes of a watch from version 1.
    fn followed(bytes: &[u8]) -> (Vec<String>, String, WatchEnd, Vec<PodChange>) {
        let watched = Watched {
            selector: String::new(),
            pods: Mutex::new(Some(BTreeMap::new())),
            is_over: AtomicBool::new(false),
        };
        let changes = RefCell::new(Vec::new());
        let mut version = "1".to_owned();
        let end = watched.follow("url", bytes, &mut version, &|change| changes.borrow_mut().push(change));
        let pods = watched.pods.lock().take().unwrap();
        (pods.into_values().map(|pod| pod.name).collect(), version, end, changes.into_inner())
    }

    fn event(kind: &str, name: &str, version: &str, status: &Value) -> String {
        let metadata = json!({"name": name, "uid": name, "resourceVersion": version});
        format!("{}\n", json!({"type": kind, "object": {"metadata": metadata, "status": status}}))
    }

    #[test]
    fn events_change_the_pods_and_a_cut_line_changes_nothing() {
        let runs = json!({"phase": "Running"});
        let lines = [
            event("ADDED", "a", "2", &runs),
            event("ADDED", "b", "3", &runs),
            // Nothing that the manager needs has changed.
            event("MODIFIED", "b", "4", &runs),
            event(
                "MODIFIED",
                "a",
                "5",
                &json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
            ),
            event("DELETED", "a", "6", &json!({"phase": "Failed", "reason": "Evicted"})),
            "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n".to_owned(),
        ];
        let cut = event("DELETED", "b", "10", &runs);
        let bytes = lines.concat() + &cut[..cut.len() - 1];
        let (pods, version, end, changes) = followed(bytes.as_bytes());
        assert_eq!((pods, version.as_str()), (vec!["b".to_owned()], "9"));
        assert!(matches!(end, WatchEnd::Closed), "{end:?}");
        let failure = PodChange::Failed("pod a has failed: Evicted: low on memory".to_owned());
        let changed = PodChange::Changed;
        assert_eq!(changes, [changed.clone(), changed.clone(), failure, changed]);
    }

    #[test]
    fn error_events_and_garbage_end_a_watch() {
        let error = |code: u16| {
            let object = json!({"kind": "Status", "code": code, "message": "no"});
            format!("{}\n", json!({"type": "ERROR", "object": object}))
        };
        assert!(matches!(followed(error(410).as_bytes()).2, WatchEnd::Expired));
        let text = |bytes: &[u8]| match followed(bytes).2 {
            WatchEnd::Failed(error) => error.to_string(),
            end => panic!("{end:?}"),
        };
        assert_eq!(text(error(500).as_bytes()), "url: 500: no");
        assert_eq!(
            text(b"{\"type\":\"ADDED\",\"object\":{}}\n"),
            "url: watch: an event \"ADDED\" has no version"
        );
        assert!(text(b"<html>\n").starts_with("url: watch: expected value"));
        let large = vec![b' '; MAX_EVENT_BYTES as usize];
        assert_eq!(text(&large), format!("url: watch: an event has more than {MAX_EVENT_BYTES} bytes"));
    }
}
