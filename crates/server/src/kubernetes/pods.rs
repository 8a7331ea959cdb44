//! Lists of pods, in pages.

use super::{ClusterError, Round, parse};
use serde::Deserialize;
use ureq::http::header::AUTHORIZATION;

/// 250 pods in a page, half of that of kubectl: this process needs no more than 1 page of most pools.
const PAGE: &str = "250";

/// 16 MiB of a page: 64 KiB for each of its pods, several times the size of a pod with its managed fields.
const MAX_PAGE_BYTES: u64 = 16 << 20;

/// 10,000 pages, more than any namespace has: a defective API must not keep a thread for ever.
const MAX_PAGES: u32 = 10_000;

/// 3 attempts to list all pages: the API keeps a version for 5 min, and the list of 10,000 pods takes seconds.
const MAX_LISTS: u32 = 3;

/// Reasons of a container that is being created, as the kubelet names them.
const CREATION: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Pod of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Reason why it does not start. `None` if it runs or is being created.
    pub(crate) obstacle: Option<String>,
}

/// Pods that have not ended, and the version of the list.
pub(crate) struct PodList {
    pub(crate) pods: Vec<Pod>,
    /// Version that a watch continues.
    pub(super) version: String,
}

/// Page of a list.
#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    /// Go writes an empty list as null in some versions.
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
    #[serde(default, rename = "resourceVersion")]
    version: String,
}

/// Pod as the API writes it.
#[derive(Deserialize)]
pub(super) struct Item {
    metadata: ItemMetadata,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize)]
struct ItemMetadata {
    name: String,
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct ContainerStatus {
    #[serde(default)]
    state: ContainerState,
}

#[derive(Default, Deserialize)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Deserialize)]
struct Waiting {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl Round<'_> {
    /// Lists the pods with these labels that have not ended. A list whose version expires between two pages is made again.
    ///
    /// # Errors
    /// [`ClusterError`] when the API does not answer or refuses, or when 3 lists expired.
    pub(crate) fn pods(&self, selector: &str) -> Result<PodList, ClusterError> {
        let mut lists = 1;
        loop {
            match self.all_pages(selector) {
                Err(error) if error.is_expired() && lists < MAX_LISTS => lists += 1,
                result => return result,
            }
        }
    }

    fn all_pages(&self, selector: &str) -> Result<PodList, ClusterError> {
        let url = self.pods_url();
        let (mut pods, mut next) = (Vec::new(), String::new());
        for _ in 0..MAX_PAGES {
            let mut request = self
                .agent
                .get(&url)
                .query("labelSelector", selector)
                .query("limit", PAGE)
                .header(AUTHORIZATION, &self.authorization);
            if !next.is_empty() {
                request = request.query("continue", &next);
            }
            let page: Page = parse(&url, &self.text_of(&url, request.call(), MAX_PAGE_BYTES)?)?;
            // A page may be empty and continued: the API filters after it has counted.
            let items = page.items.unwrap_or_default();
            pods.extend(items.into_iter().filter(|item| !item.has_ended()).map(Item::into_pod));
            if page.metadata.next.is_empty() {
                return Ok(PodList { pods, version: page.metadata.version });
            }
            next = page.metadata.next;
        }
        Err(ClusterError::Garbage { url, what: format!("the list has more than {MAX_PAGES} pages") })
    }
}

impl Item {
    /// Returns whether no container of the pod runs or will run.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Returns the reason of a pod that has failed, such as an eviction.
    pub(super) fn failure(&self) -> Option<String> {
        let PodStatus { phase, reason, message, .. } = &self.status;
        (phase == "Failed").then(|| {
            let reason = if reason.is_empty() { "its containers have failed" } else { reason };
            format!("pod {} has failed: {}", self.metadata.name, join(reason, message))
        })
    }

    pub(super) fn into_pod(self) -> Pod {
        let obstacle = self.status.obstacle().map(|what| format!("pod {}: {what}", self.metadata.name));
        Pod { name: self.metadata.name, uid: self.metadata.uid, obstacle }
    }
}

impl PodStatus {
    /// Returns the reason why no node takes the pod, or why a container does not start.
    fn obstacle(&self) -> Option<String> {
        let unscheduled =
            self.conditions.iter().find(|one| one.kind == "PodScheduled" && one.status == "False");
        if let Some(condition) = unscheduled {
            return Some(join(&condition.reason, &condition.message));
        }
        let waiting = self.container_statuses.iter().filter_map(|container| container.state.waiting.as_ref());
        let mut stuck = waiting.filter(|waiting| !CREATION.contains(&waiting.reason.as_str()));
        stuck.next().map(|waiting| join(&waiting.reason, &waiting.message))
    }
}

fn join(reason: &str, message: &str) -> String {
    if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &serde_json::Value) -> Pod {
        let item = json!({"metadata": {"name": "a", "uid": "1"}, "status": status});
        serde_json::from_value::<Item>(item).unwrap().into_pod()
    }

    #[test]
    fn pods_that_do_not_start_have_a_reason() {
        let unscheduled = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]});
        assert_eq!(pod(&unscheduled).obstacle.unwrap(), "pod a: Unschedulable: 0/3 nodes are available");
        let waiting = |reason: &str| {
            pod(
                &json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason}}}]}),
            )
        };
        assert_eq!(waiting("ImagePullBackOff").obstacle.unwrap(), "pod a: ImagePullBackOff");
        assert_eq!(waiting("ContainerCreating").obstacle, None);
        let runs =
            json!({"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": "x"}}}]});
        assert_eq!(pod(&runs).obstacle, None);
    }
}
