//! Scale of deployments: the subresource that autoscalers use (`autoscaling/v1`, Scale).
//!
//! A scale is read, changed and written back with the version that was read. If another party has changed the deployment in
//! between, the API answers 409, and the scale is read again.

use super::{ClusterError, MAX_ANSWER_BYTES, Round, parse};
use serde::Deserialize;
use serde_json::json;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};

/// 5 attempts to write a scale: controllers change a deployment a few times a second while its pods start.
const MAX_CONFLICTS: u32 = 5;

/// Scale of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Number of pods that the deployment keeps.
    pub(crate) replicas: u32,
    /// Label selector of its pods, as in a list request.
    pub(crate) selector: String,
    /// Version of the deployment.
    version: String,
}

/// A scale as the API writes it. Go omits numbers that are 0 and empty texts.
#[derive(Deserialize)]
struct Document {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: ScaleStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    replicas: u32,
}

#[derive(Default, Deserialize)]
struct ScaleStatus {
    #[serde(default)]
    selector: String,
}

impl Round<'_> {
    /// Reads the scale of a deployment.
    ///
    /// # Errors
    /// [`ClusterError`] when the API does not answer or refuses.
    pub(crate) fn scale(&self, deployment: &str) -> Result<Scale, ClusterError> {
        let url = self.scale_url(deployment);
        let request = self.agent.get(&url).header(AUTHORIZATION, &self.authorization);
        let text = self.text_of(&url, request.call(), MAX_ANSWER_BYTES)?;
        let Document { metadata, spec, status } = parse(&url, &text)?;
        if status.selector.is_empty() {
            // An empty selector would list the pods of all workloads.
            return Err(ClusterError::Garbage { url, what: "the scale has no selector".to_owned() });
        }
        Ok(Scale { replicas: spec.replicas, selector: status.selector, version: metadata.resource_version })
    }

    /// Sets the number of pods of a deployment. Returns the number before.
    ///
    /// # Errors
    /// [`ClusterError`] when the API does not answer or refuses, or when other parties have changed the deployment before
    /// each of 5 attempts.
    pub(crate) fn set_scale(&self, deployment: &str, replicas: u32) -> Result<u32, ClusterError> {
        let url = self.scale_url(deployment);
        let mut conflicts = 0;
        loop {
            let scale = self.scale(deployment)?;
            if scale.replicas == replicas {
                return Ok(replicas);
            }
            let body = json!({
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {
                    "name": deployment, "namespace": self.namespace.name, "resourceVersion": scale.version,
                },
                "spec": {"replicas": replicas},
            });
            let request = self
                .agent
                .put(&url)
                .header(AUTHORIZATION, &self.authorization)
                .header(CONTENT_TYPE, "application/json");
            match self.text_of(&url, request.send(body.to_string()), MAX_ANSWER_BYTES) {
                Ok(_) => return Ok(scale.replicas),
                Err(error) if error.is_conflict() && conflicts + 1 < MAX_CONFLICTS => conflicts += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn scale_url(&self, deployment: &str) -> String {
        let (api, name) = (&self.namespace.api, &self.namespace.name);
        format!("{api}/apis/apps/v1/namespaces/{name}/deployments/{deployment}/scale")
    }
}
