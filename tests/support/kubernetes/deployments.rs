//! Deployments of the test server: their scale, their pods in pages, and the replica set that creates and ends pods.
//!
//! A replica set ends pods in the order of Kubernetes (`ActivePodsWithRanks`): pending ones first, then those that are not
//! ready, then by deletion cost, then the newest. The test starts and ends the processes of the pods.

use super::watch::{PodRequest, Watches};
use super::{COST, Kubernetes, Request, pod, refusal};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Life of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PodPhase {
    /// Created, and no process runs.
    Pending,
    /// Its process runs.
    Running,
    /// It is being ended.
    Terminating,
    /// A node has evicted it, and no process runs.
    Evicted,
}

/// A request of a scale with its response status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScaleRequest {
    pub(crate) deployment: String,
    /// Number to be set. `None`: the scale is read.
    pub(crate) replicas: Option<u64>,
    pub(crate) status: u16,
}

pub(super) struct Pod {
    pub(super) phase: PodPhase,
    pub(super) deployment: String,
    number: u64,
}

#[derive(Default)]
pub(super) struct Deployments {
    /// Number of pods that each deployment keeps.
    replicas: BTreeMap<String, u64>,
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) watches: Watches,
    requests: Vec<ScaleRequest>,
    /// Requests for pages that continue a list.
    continued: usize,
    pub(super) version: u64,
    count: u64,
    /// Writes that another party precedes.
    conflicts: u32,
    /// Continued pages whose version has expired.
    expired: u32,
    /// Message of the refusal of all writes.
    forbidden: Option<String>,
}

impl Deployments {
    pub(super) fn answer(&mut self, request: &Request, pods: &mut BTreeMap<String, Value>) -> (u16, Value) {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        if path == "/api/v1/namespaces/studies/pods" && request.method == "GET" {
            return self.page(query);
        }
        let name = path.strip_prefix("/apis/apps/v1/namespaces/studies/deployments/");
        let Some(name) = name.and_then(|rest| rest.strip_suffix("/scale")) else {
            return refusal(404, "the server could not find the requested resource");
        };
        let answer = match request.method.as_str() {
            _ if !self.replicas.contains_key(name) => {
                refusal(404, &format!("deployments.apps \"{name}\" not found"))
            }
            "GET" => (200, self.scale(name)),
            "PUT" => self.write(name, &request.body, pods),
            method => refusal(405, method),
        };
        self.requests.push(ScaleRequest {
            deployment: name.to_owned(),
            replicas: (request.method == "PUT").then(|| request.body["spec"]["replicas"].as_u64()).flatten(),
            status: answer.0,
        });
        answer
    }

    /// The scale as Go writes it: a number that is 0 is omitted.
    fn scale(&self, name: &str) -> Value {
        let replicas = self.replicas[name];
        let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": name, "namespace": "studies", "resourceVersion": self.version.to_string()},
            "spec": spec,
            "status": {"replicas": self.of(name).count(), "selector": selector(name)},
        })
    }

    fn write(&mut self, name: &str, body: &Value, pods: &mut BTreeMap<String, Value>) -> (u16, Value) {
        if let Some(message) = &self.forbidden {
            return refusal(403, message);
        }
        if self.conflicts > 0 {
            (self.conflicts, self.version) = (self.conflicts - 1, self.version + 1);
        }
        let metadata = &body["metadata"];
        let is_scale = body["kind"] == "Scale" && body["apiVersion"] == "autoscaling/v1";
        let Some(replicas) =
            body["spec"]["replicas"].as_u64().filter(|_| is_scale && metadata["name"] == name)
        else {
            return refusal(422, &body.to_string());
        };
        if metadata["resourceVersion"] != json!(self.version.to_string()) {
            return refusal(
                409,
                &format!(
                    "Operation cannot be fulfilled on deployments.apps \"{name}\": the object has been modified; please apply \
                     your changes to the latest version and try again"
                ),
            );
        }
        self.replicas.insert(name.to_owned(), replicas);
        self.reconcile(pods);
        (200, self.scale(name))
    }

    /// One pod a page, and an empty page in between: a server may return fewer pods than the limit.
    fn page(&mut self, query: &str) -> (u16, Value) {
        let parameter = |key: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
            value.map(str::to_owned)
        };
        let selected = decoded(&parameter("labelSelector").unwrap_or_default());
        if parameter("limit").is_none_or(|limit| limit.parse::<u32>().is_err()) {
            return refusal(400, "this server has only lists in pages");
        }
        let start: usize = match parameter("continue") {
            None => {
                self.watches.requests.push(PodRequest::List);
                0
            }
            Some(_) if self.expired > 0 => {
                self.expired -= 1;
                return refusal(
                    410,
                    "The provided continue parameter is too old to display a consistent list result",
                );
            }
            Some(token) => {
                self.continued += 1;
                token.parse().expect("a token of this server")
            }
        };
        if !self.replicas.keys().any(|name| selected == selector(name)) {
            return refusal(400, &format!("unable to parse requirement: {selected}"));
        }
        let listed = self.pods.iter().filter(|(_, pod)| selected == selector(&pod.deployment));
        let listed: Vec<_> = listed.collect();
        let mut items = Vec::new();
        if start.is_multiple_of(2) {
            items.extend(listed.get(start / 2).map(|(name, pod)| item(name, pod)));
        }
        let next = if start / 2 + 1 < listed.len() { (start + 1).to_string() } else { String::new() };
        let version = self.version.to_string();
        let metadata = if next.is_empty() {
            json!({"resourceVersion": version})
        } else {
            json!({"resourceVersion": version, "continue": next})
        };
        (200, json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}))
    }

    fn of<'a>(&'a self, deployment: &'a str) -> impl Iterator<Item = (&'a String, &'a Pod)> {
        self.pods.iter().filter(move |(_, pod)| pod.deployment == deployment)
    }

    /// Creates missing pods and ends surplus ones.
    fn reconcile(&mut self, annotated: &mut BTreeMap<String, Value>) {
        self.version += 1;
        for (deployment, wanted) in self.replicas.clone() {
            let alive = |pod: &Pod| !matches!(pod.phase, PodPhase::Terminating | PodPhase::Evicted);
            let mut kept: Vec<(PodPhase, i64, u64, String)> = self
                .of(&deployment)
                .filter(|(_, pod)| alive(pod))
                .map(|(name, pod)| {
                    let cost = annotated[name]["metadata"]["annotations"][COST].as_str();
                    let cost = cost.map_or(0, |cost| cost.parse().expect("a number"));
                    (pod.phase, cost, u64::MAX - pod.number, name.clone())
                })
                .collect();
            kept.sort();
            let surplus = kept.len().saturating_sub(wanted as usize);
            for (phase, _, _, name) in kept.iter().take(surplus) {
                if *phase == PodPhase::Pending {
                    self.pods.remove(name);
                    annotated.remove(name);
                } else if let Some(pod) = self.pods.get_mut(name) {
                    pod.phase = PodPhase::Terminating;
                }
            }
            for _ in kept.len()..wanted as usize {
                self.count += 1;
                let name = format!("{deployment}-5d8f9c7b6d-{:05}", self.count);
                annotated.insert(name.clone(), pod());
                let of = deployment.clone();
                self.pods.insert(name, Pod { phase: PodPhase::Pending, deployment: of, number: self.count });
            }
        }
        self.record();
    }
}

/// The label selector of a deployment's pods.
pub(super) fn selector(deployment: &str) -> String {
    format!("app=pleach,deployment in ({deployment})")
}

/// Decodes a value of a query (RFC 3986).
pub(super) fn decoded(text: &str) -> String {
    // A plus sign is a space in forms, and Go reads it so.
    let text = text.replace('+', " ");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two digits"));
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).expect("UTF-8")
}

pub(super) fn item(name: &str, pod: &Pod) -> Value {
    let mut metadata = json!({"name": name, "uid": format!("uid-{}", pod.number), "namespace": "studies"});
    if pod.phase == PodPhase::Terminating {
        metadata["deletionTimestamp"] = json!("2026-11-27T00:00:00Z");
    }
    let status = match pod.phase {
        PodPhase::Pending => json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu."}]}),
        PodPhase::Running | PodPhase::Terminating => json!({"phase": "Running", "containerStatuses": [
            {"name": "worker", "state": {"running": {"startedAt": "2026-11-27T00:00:00Z"}}}]}),
        PodPhase::Evicted => json!({"phase": "Failed", "reason": "Evicted",
            "message": "The node was low on resource: memory."}),
    };
    json!({"metadata": metadata, "spec": {"nodeName": "node"}, "status": status})
}

impl Kubernetes {
    pub(crate) fn add_deployment(&self, name: &str, replicas: u64) {
        self.change(|deployments| _ = deployments.replicas.insert(name.to_owned(), replicas));
    }

    /// Changes deployments as another party, and lets the controllers act.
    pub(super) fn change(&self, change: impl FnOnce(&mut Deployments)) {
        let mut kept = self.kept.lock();
        let super::Kept { deployments, pods, .. } = &mut *kept;
        change(deployments);
        deployments.reconcile(pods);
    }

    /// Sets the scale as another party.
    pub(crate) fn scale_elsewhere(&self, name: &str, replicas: u64) {
        self.add_deployment(name, replicas);
    }

    /// The number of pods that a deployment keeps.
    pub(crate) fn replicas(&self, name: &str) -> u64 {
        self.kept.lock().deployments.replicas[name]
    }

    /// All pods of deployments, with their phases.
    pub(crate) fn deployed(&self) -> Vec<(String, PodPhase)> {
        let kept = self.kept.lock();
        kept.deployments.pods.iter().map(|(name, pod)| (name.clone(), pod.phase)).collect()
    }

    /// Records that the process of a pod runs.
    pub(crate) fn run_pod(&self, name: &str) {
        self.change(|deployments| {
            if let Some(pod) = deployments.pods.get_mut(name) {
                pod.phase = PodPhase::Running;
            }
        });
    }

    /// Removes a pod whose process has ended.
    pub(crate) fn remove_pod(&self, name: &str) {
        let mut kept = self.kept.lock();
        kept.pods.remove(name);
        kept.deployments.pods.remove(name);
        let super::Kept { deployments, pods, .. } = &mut *kept;
        deployments.reconcile(pods);
    }

    /// Another party precedes this many writes, and this many continued lists expire.
    pub(crate) fn disturb(&self, conflicts: u32, expired: u32) {
        self.change(|deployments| (deployments.conflicts, deployments.expired) = (conflicts, expired));
    }

    /// Refuses all writes of scales with this message.
    pub(crate) fn forbid(&self, message: Option<&str>) {
        self.change(|deployments| deployments.forbidden = message.map(str::to_owned));
    }

    /// All requests of scales so far, and the number of continued pages.
    pub(crate) fn scale_requests(&self) -> (Vec<ScaleRequest>, usize) {
        let kept = self.kept.lock();
        (kept.deployments.requests.clone(), kept.deployments.continued)
    }
}
