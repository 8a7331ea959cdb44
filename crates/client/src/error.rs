//! Errors of requests, of submissions and of ended studies.

use super::address::ManagerUrl;
use super::remote_text::plain;
use super::wait::Interrupted;
use pleach_actors::transport::certs::CertsError;
use pleach_actors::transport::quic::NetworkError;
use pleach_api::digest::InputDigest;
use pleach_api::token::TokenError;
use pleach_study::Defect;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a client cannot be created.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// The folder of certificates is invalid.
    #[error("--certs: {0}")]
    Certs(#[from] CertsError),
    /// The certificates do not make a TLS configuration.
    #[error("--certs: {0}")]
    Tls(#[from] NetworkError),
    /// The token file is invalid.
    #[error("--token-file: {0}")]
    TokenFile(#[from] TokenError),
    /// The text in the environment is no token.
    #[error("PLEACH_TOKEN: invalid token; the content of a manager's token file is allowed")]
    TokenVariable,
    /// There is neither a token nor a certificate of a client.
    #[error(
        "--certs {}: no client certificate; one is required without --token-file and PLEACH_TOKEN",
        certs.display()
    )]
    NoCertificate {
        /// The folder of certificates.
        certs: PathBuf,
    },
}

/// Reason why a request failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The manager rejects the submitted study (status 422).
    #[error("{detail}")]
    Rejected {
        /// Message of the manager.
        detail: String,
    },
    /// The manager refuses the request.
    #[error("{manager}: {}", refusal.detail)]
    Refused {
        /// Address of the manager.
        manager: ManagerUrl,
        /// Status and message of the manager.
        #[source]
        refusal: ManagerError,
    },
    /// TLS failed: one side rejects the other's certificate or protocol.
    #[error("{0}")]
    Untrusted(#[source] ConnectionError),
    /// The manager was not available within the timeout.
    #[error("{cause}; gave up after {seconds} s")]
    Unavailable {
        /// Cause of the last failed attempt.
        #[source]
        cause: UnavailableError,
        /// The timeout.
        seconds: u64,
    },
    /// The answer of the manager cannot be read.
    #[error("{manager}: invalid response: {cause}")]
    Answer {
        /// Address of the manager.
        manager: ManagerUrl,
        /// Problem of the answer.
        #[source]
        cause: AnswerError,
    },
    /// A signal interrupted the request.
    #[error("{0}")]
    Interrupted(#[from] Interrupted),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Refusal of a request by the manager.
#[derive(Debug, Error)]
#[error("{detail}")]
pub struct ManagerError {
    /// HTTP status.
    pub(crate) status: u16,
    /// Message of the manager, or the status.
    pub(crate) detail: String,
}

/// Failed attempt that may succeed later.
#[derive(Debug, Error)]
pub enum UnavailableError {
    /// The manager cannot be reached.
    #[error("{0}")]
    Unreachable(#[from] ConnectionError),
    /// The manager is not ready (status 503).
    #[error("{manager}: {detail}")]
    NotReady {
        /// Address of the manager.
        manager: ManagerUrl,
        /// Message of the manager.
        detail: String,
    },
}

/// Failed connection to the manager.
#[derive(Debug, Error)]
#[error("cannot reach the manager at {manager}: {}", problem(cause))]
pub struct ConnectionError {
    /// Address of the manager.
    pub(crate) manager: ManagerUrl,
    /// Error of the HTTP client, boxed to keep results small.
    #[source]
    pub(crate) cause: Box<ureq::Error>,
}

impl ConnectionError {
    /// Returns whether TLS failed. A retry cannot succeed.
    pub(super) fn is_about_trust(&self) -> bool {
        tls_error(&self.cause).is_some()
    }
}

/// Problem of an answer's body.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// The body cannot be received.
    #[error("{0}")]
    Body(#[source] Box<ureq::Error>),
    /// The body is not the expected JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The header with the time is missing or no date.
    #[error("its header Date is {0:?}; a date of HTTP is allowed")]
    Date(String),
}

/// Reason why a study is not submitted, or its files are not sent.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// A request failed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The manager asks for a file that the study does not read.
    #[error("the manager requested {digest}, which is not an input file of this study")]
    ForeignFile {
        /// Digest of the file.
        digest: InputDigest,
    },
    /// An input file cannot be read.
    #[error("{file}: {cause}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// An input file has changed since it was submitted.
    #[error("{file}: changed since its submission")]
    Changed {
        /// The file.
        file: String,
    },
    /// The manager refuses a file.
    #[error("{manager}: {file}: {refusal}")]
    RefusedFile {
        /// Address of the manager.
        manager: ManagerUrl,
        /// The file.
        file: String,
        /// Status and message of the manager.
        #[source]
        refusal: ManagerError,
    },
    /// The manager lacks files after every upload.
    #[error("study {}: {files} files are still missing after their upload", plain(study))]
    StillMissing {
        /// Id of the study.
        study: String,
        /// Number of missing files.
        files: usize,
    },
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// End of a study without all its results.
#[derive(Debug, Error)]
pub enum StudyEndError {
    /// The study failed.
    #[error("study {} failed{}", plain(study), cause_suffix(message.as_deref()))]
    Failed {
        /// Id of the study.
        study: String,
        /// Message of the manager.
        message: Option<String>,
    },
    /// The study was canceled.
    #[error("study {} was canceled{}", plain(study), cause_suffix(message.as_deref()))]
    Canceled {
        /// Id of the study.
        study: String,
        /// Message of the manager.
        message: Option<String>,
    },
    /// The study is complete, but some runs failed.
    #[error("{runs} runs of study {} failed; failed.csv of its results lists them", plain(study))]
    FailedRuns {
        /// Id of the study.
        study: String,
        /// Number of failed runs.
        runs: u64,
    },
}

fn cause_suffix(message: Option<&str>) -> String {
    message.map(|message| format!(": {}", plain(message))).unwrap_or_default()
}

/// Returns the cause of a failed request in a few words.
fn problem(error: &ureq::Error) -> String {
    if matches!(tls_error(error), Some(rustls::Error::InvalidMessage(_))) {
        return "the server does not use HTTPS; check that this is the manager's --http address (by default \
                port 7118)"
            .to_owned();
    }
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::HostNotFound => "host not found".to_owned(),
        ureq::Error::Timeout(_) => "no response in time".to_owned(),
        error => error.to_string(),
    }
}

fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref()),
        ureq::Error::Rustls(error) => Some(error),
        _ => None,
    }
}
