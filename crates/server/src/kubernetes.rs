//! Client for the API of the Kubernetes cluster that runs this process as a pod. In its namespace, it sets annotations
//! of other pods, lists and watches pods, and reads and sets the scale of deployments, if the service account is allowed to.
//!
//! The cluster mounts a folder with the certificate of its authority and the token of the service account. Both files
//! change while the process runs, so each round reads them again.

mod pods;
mod scale;
mod watch;

pub(crate) use pods::Pod;
pub(crate) use watch::{PodChange, PodWatch};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use ureq::http::Response;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

/// Variables with the address of the API in the environment of every pod.
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// 10 s for a request: a working API server answers within 1 s.
const ANSWER: Duration = Duration::from_secs(10);

/// 64 KiB read of an answer about one object: a scale has less than 1 KiB, and of an error one line is used.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// Maximum number of characters shown of an error message of the API.
const MAX_MESSAGE: usize = 300;

/// Reason why the API was not called or refused the request.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// An environment variable with the address of the API is missing or empty. Contains its name.
    #[error("environment variable {0} is missing; start the manager in a pod of Kubernetes, which sets it")]
    NoCluster(&'static str),
    /// A file of the service account cannot be read.
    #[error("{}: {error}", .path.display())]
    Account {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// A file of the service account is empty or holds no valid certificate.
    #[error("{}: {what}", .path.display())]
    Corrupt {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        what: String,
    },
    /// The request failed before the API answered. The time limit is 10 seconds.
    #[error("{url}: {what}")]
    Unreachable {
        /// URL of the object.
        url: String,
        /// Message of the HTTP client.
        what: String,
    },
    /// The API answered with something else than the requested object.
    #[error("{url}: {what}")]
    Garbage {
        /// URL of the object.
        url: String,
        /// Description of the defect.
        what: String,
    },
    /// The API answered with a status other than 2xx.
    #[error("{url}: {status}: {message}")]
    Refused {
        /// URL of the object.
        url: String,
        /// HTTP status code.
        status: u16,
        /// First line of the API's message, shortened to 300 characters.
        message: String,
    },
}

impl ClusterError {
    /// Returns whether the object does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.has_status(404)
    }

    /// Returns whether another party has changed the object since it was read.
    fn is_conflict(&self) -> bool {
        self.has_status(409)
    }

    /// Returns whether the API no longer has the version of the objects that a page continues.
    fn is_expired(&self) -> bool {
        self.has_status(410)
    }

    fn has_status(&self, expected: u16) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == expected)
    }

    /// Returns whether the error does not concern a single pod, so that further requests would fail too.
    pub(crate) fn is_general(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 401 | 403 | 429 | 500..),
            _ => true,
        }
    }

    /// Returns the outcome label of the metric.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Self::Refused { status: 404, .. } => "gone",
            Self::Refused { status: 400..500, .. } => "refused",
            _ => "failed",
        }
    }
}

/// Namespace of this process.
#[derive(Clone, Debug)]
pub struct Namespace {
    account: PathBuf,
    /// URL of the API, without a slash at the end.
    api: String,
    name: String,
}

/// Sequence of requests with one token.
pub(crate) struct Round<'a> {
    namespace: &'a Namespace,
    agent: Agent,
    authorization: String,
}

/// Error answer of the API.
#[derive(Deserialize)]
struct Status {
    message: String,
}

impl Namespace {
    /// Reads the folder of a service account (`ca.crt`, `namespace`, `token`).
    ///
    /// # Errors
    /// [`ClusterError`] when the environment has no API address or the folder is unusable.
    pub fn of_account(account: &Path) -> Result<Self, ClusterError> {
        let variable = |name: &'static str| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            value.ok_or(ClusterError::NoCluster(name))
        };
        let (host, port) = (variable(HOST)?, variable(PORT)?);
        let name = read(account, "namespace")?;
        let api = format!("https://{}", authority(&host, &port));
        let namespace = Self { account: account.to_owned(), api, name };
        // An unusable account ends the command at its start and not at the first round.
        namespace.round()?;
        Ok(namespace)
    }

    /// Makes requests with the present token. If it expired since it was read, the requests are made once more: the
    /// cluster replaces the file some time before.
    ///
    /// # Errors
    /// [`ClusterError`] of the last attempt.
    pub(crate) fn with_round<T>(
        &self,
        requests: impl Fn(&Round<'_>) -> Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        match requests(&self.round()?) {
            Err(error) if error.has_status(401) => requests(&self.round()?),
            result => result,
        }
    }

    /// Begins a round of requests.
    ///
    /// # Errors
    /// [`ClusterError`] when the token or the certificate of the authority cannot be read.
    pub(crate) fn round(&self) -> Result<Round<'_>, ClusterError> {
        let authorization = format!("Bearer {}", read(&self.account, "token")?);
        let path = self.account.join("ca.crt");
        let corrupt = |what: String| ClusterError::Corrupt { path: path.clone(), what };
        let mut roots = Vec::new();
        for item in parse_pem(read(&self.account, "ca.crt")?.as_bytes()) {
            if let PemItem::Certificate(certificate) = item.map_err(|error| corrupt(error.to_string()))? {
                roots.push(certificate);
            }
        }
        if roots.is_empty() {
            return Err(corrupt("contains no certificate".to_owned()));
        }
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
        // No proxy: the API is within the cluster.
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .https_only(true)
            // ureq would drop the body of an error answer, which has the reason.
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(ANSWER));
        Ok(Round { namespace: self, agent: config.build().into(), authorization })
    }
}

impl Round<'_> {
    /// Sets an annotation of a pod (JSON merge patch, RFC 7396).
    ///
    /// # Errors
    /// [`ClusterError`] when the API does not answer or refuses.
    pub(crate) fn annotate(&self, pod: &str, key: &str, value: &str) -> Result<(), ClusterError> {
        let url = format!("{}/{pod}", self.pods_url());
        let patch = json!({"metadata": {"annotations": {key: value}}}).to_string();
        let request = self
            .agent
            .patch(&url)
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/merge-patch+json");
        self.text_of(&url, request.send(patch), MAX_ANSWER_BYTES).map(|_| ())
    }

    /// Returns the URL of all pods.
    fn pods_url(&self) -> String {
        format!("{}/api/v1/namespaces/{}/pods", self.namespace.api, self.namespace.name)
    }

    /// Returns the text of an answer of at most `max_bytes` bytes.
    fn text_of(
        &self,
        url: &str,
        answer: Result<Response<Body>, ureq::Error>,
        max_bytes: u64,
    ) -> Result<String, ClusterError> {
        let url = url.to_owned();
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(ClusterError::Unreachable { url, what: error.to_string() }),
        };
        let status = answer.status();
        // The body is read in every case, so that the connection can be reused.
        let text = answer.body_mut().with_config().limit(max_bytes).read_to_string();
        if status.is_success() {
            return text.map_err(|error| ClusterError::Unreachable { url, what: error.to_string() });
        }
        let text = text.unwrap_or_default();
        let message = serde_json::from_str(&text).map_or(text, |status: Status| status.message);
        let line = message.lines().next().unwrap_or_default();
        let message = line.chars().take(MAX_MESSAGE).collect();
        Err(ClusterError::Refused { url, status: status.as_u16(), message })
    }
}

/// Parses an object of the API.
fn parse<T: DeserializeOwned>(url: &str, text: &str) -> Result<T, ClusterError> {
    serde_json::from_str(text)
        .map_err(|error| ClusterError::Garbage { url: url.to_owned(), what: error.to_string() })
}

/// Reads a file of the folder without the white space around its text. An empty file is an error.
fn read(account: &Path, name: &str) -> Result<String, ClusterError> {
    let path = account.join(name);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => return Err(ClusterError::Account { path, error }),
    };
    if text.is_empty() {
        return Err(ClusterError::Corrupt { path, what: "empty file".to_owned() });
    }
    Ok(text)
}

/// Returns host and port as in a URL, with brackets around IPv6 addresses.
fn authority(host: &str, port: &str) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_kinds_are_urls() {
        assert_eq!(authority("10.0.0.1", "443"), "10.0.0.1:443");
        assert_eq!(authority("fd00::1", "6443"), "[fd00::1]:6443");
    }

    #[test]
    fn invalid_service_account_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let namespace =
            Namespace { account: folder.path().to_owned(), api: String::new(), name: "studies".to_owned() };
        let error = || namespace.round().err().map(|error| error.to_string()).unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        assert!(error().starts_with(&format!("{}: No such file", path("token"))), "{}", error());
        fs::write(folder.path().join("token"), "\n").unwrap();
        assert_eq!(error(), format!("{}: empty file", path("token")));
        fs::write(folder.path().join("token"), "abc\n").unwrap();
        fs::write(folder.path().join("ca.crt"), "none\n").unwrap();
        assert_eq!(error(), format!("{}: contains no certificate", path("ca.crt")));
        let certified = rcgen::generate_simple_self_signed(["10.0.0.1".to_owned()]).unwrap();
        fs::write(folder.path().join("ca.crt"), certified.cert.pem().repeat(2)).unwrap();
        assert_eq!(namespace.round().unwrap().authorization, "Bearer abc");
    }
}
