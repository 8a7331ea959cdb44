//! Client of the manager's HTTPS API, with retries.
//!
//! Every request is idempotent: the client repeats a request after a lost answer. The commands decide which requests to
//! send and how to show the answers. [`tls`] verifies the manager's certificate.

pub(crate) mod address;
pub(crate) mod download;
pub(crate) mod follow;
pub(crate) mod progress_bars;
pub(crate) mod submit;
pub(crate) mod table;
mod tls;
pub(crate) mod upload;
mod wait;

pub(crate) use wait::Waiting;

use crate::api::PROBLEM;
use crate::api::schema::{
    Forgotten, ProblemDetails, Results, ScalingStatus, Studies, StudyStatus, Submitted, WorkerStatus, Workers,
};
use crate::api::submission::Submission;
use crate::api::token::ApiToken;
use crate::exit::{CommandError, CommandResult};
use address::ManagerUrl;
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::https::{self, Trust};
use serde::de::DeserializeOwned;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tls::ClusterTls;
use ureq::http::Response;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, TcpConnector};
use ureq::{Agent, Body, SendBody};

/// Maximum time to connect in one attempt. A running manager accepts within milliseconds.
const CONNECT: Duration = Duration::from_secs(5);

/// Maximum silence within a request: 60 s, because a manager needs time to read a large submission.
const SILENCE: Duration = Duration::from_secs(60);

/// Pause before the second attempt. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Maximum pause between attempts, so that the client soon finds a restarted manager.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Maximum length of an answer: enough for a list of a million missing files.
const MAX_ANSWER_BYTES: u64 = 128 << 20;

/// Maximum length of a problem document.
const MAX_PROBLEM_BYTES: u64 = 1 << 20;

/// A connection to one manager, with credentials and a retry policy.
pub(crate) struct Client {
    agent: Agent,
    manager: ManagerUrl,
    /// Value of the `Authorization` header.
    authorization: Option<String>,
    timeout: Duration,
    waiting: Waiting,
}

/// An error that the manager returned for a request.
#[derive(Debug)]
pub(crate) struct ManagerError {
    status: u16,
    detail: String,
}

/// A failed attempt.
enum Attempt {
    /// A retry may succeed. Holds the cause.
    Again(String),
    /// A retry cannot succeed.
    Refused(ManagerError),
}

/// Manager to connect to, and the credentials for it.
#[derive(Clone, Debug)]
pub(crate) struct ClientOptions {
    /// Address of the manager.
    pub(crate) manager: ManagerUrl,
    /// Folder of a client's certificate and key or, with a token, of the authority's certificate.
    pub(crate) certs: PathBuf,
    /// File with the manager's token.
    pub(crate) token_file: Option<PathBuf>,
    /// Retry time for a manager that does not answer.
    pub(crate) timeout: Duration,
}

impl Client {
    /// Creates a client for the manager that the arguments name. Sends nothing yet.
    ///
    /// # Errors
    /// Returns [`CommandError::Input`] if a certificate or token is missing or invalid.
    pub(crate) fn new(options: &ClientOptions, token: Option<&str>, waiting: Waiting) -> CommandResult<Self> {
        let trust =
            Trust::load(&options.certs).map_err(|error| CommandError::Input(format!("--certs: {error}")))?;
        let token = match (&options.token_file, token) {
            (Some(file), _) => Some(
                ApiToken::read(file)
                    .map_err(|error| CommandError::Input(format!("--token-file: {error}")))?,
            ),
            (None, Some(text)) => Some(ApiToken::from_text(text).ok_or_else(|| {
                CommandError::Input(
                    "PLEACH_TOKEN: the content of a manager's token file is allowed".to_owned(),
                )
            })?),
            (None, None) => None,
        };
        if token.is_none() && !trust.is_certified() {
            return Err(CommandError::Input(format!(
                "--certs {}: holds no certificate of a client; with --token-file or PLEACH_TOKEN it need not",
                options.certs.display()
            )));
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (config, name) = https::client(&trust, &clock)
            .map_err(|error| CommandError::Input(format!("--certs: {error}")))?;
        let connector = TcpConnector::default().chain(ClusterTls::new(config, name));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            .max_redirects(0)
            // Nodes of a cluster reach each other without a proxy.
            .proxy(None)
            .user_agent(concat!("pleach/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT.min(options.timeout.max(Duration::from_secs(1)))))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE))
            .build();
        Ok(Self {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            manager: options.manager.clone(),
            authorization: token.map(|token| format!("Bearer {}", token.as_str())),
            timeout: options.timeout,
            waiting,
        })
    }

    /// Returns the wait that a signal interrupts.
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Submits a study. The manager returns the same study for the same `key`.
    pub(crate) fn submit(&self, submission: &Submission, key: &str) -> CommandResult<Submitted> {
        let body = serde_json::to_vec(submission).map_err(CommandError::defect)?;
        let mut response = self.call(|url| {
            let request = self.agent.post(format!("{url}/studies")).header("Idempotency-Key", key);
            self.authorized(request).header(CONTENT_TYPE, "application/json").send(&body)
        })?;
        self.read(&mut response)
    }

    /// Returns all studies.
    pub(crate) fn studies(&self) -> CommandResult<Vec<StudyStatus>> {
        Ok(self.get::<Studies>("/studies")?.studies)
    }

    /// Returns a study.
    pub(crate) fn study(&self, id: &str) -> CommandResult<StudyStatus> {
        self.get(&format!("/studies/{}", escaped(id)))
    }

    /// Cancels a study.
    pub(crate) fn cancel(&self, id: &str) -> CommandResult<StudyStatus> {
        let path = format!("/studies/{}", escaped(id));
        let mut response =
            self.call(|url| self.authorized(self.agent.delete(format!("{url}{path}"))).call())?;
        self.read(&mut response)
    }

    /// Removes a study that has ended.
    pub(crate) fn forget(&self, id: &str) -> CommandResult<Forgotten> {
        let path = format!("/studies/{}/forget", escaped(id));
        let mut response =
            self.call(|url| self.authorized(self.agent.post(format!("{url}{path}"))).send_empty())?;
        self.read(&mut response)
    }

    /// Returns the number of desired workers and the predicted time and cost.
    pub(crate) fn scaling(&self) -> CommandResult<ScalingStatus> {
        self.get("/scaling")
    }

    /// Returns all workers.
    pub(crate) fn workers(&self) -> CommandResult<Vec<WorkerStatus>> {
        Ok(self.get::<Workers>("/workers")?.workers)
    }

    /// Starts draining a worker.
    pub(crate) fn drain(&self, name: &str) -> CommandResult<WorkerStatus> {
        let path = format!("/workers/{}/drain", escaped(name));
        let mut response =
            self.call(|url| self.authorized(self.agent.post(format!("{url}{path}"))).send_empty())?;
        self.read(&mut response)
    }

    /// Returns the names of a study's result files.
    pub(crate) fn result_names(&self, id: &str) -> CommandResult<Vec<String>> {
        Ok(self.get::<Results>(&format!("/studies/{}/results", escaped(id)))?.results)
    }

    /// Opens a result file as a streaming response.
    fn result(&self, id: &str, name: &str) -> CommandResult<Response<Body>> {
        self.fetch(&format!("/studies/{}/results/{}", escaped(id), escaped(name)))
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> CommandResult<T> {
        self.read(&mut self.fetch(path)?)
    }

    fn fetch(&self, path: &str) -> CommandResult<Response<Body>> {
        self.call(|url| self.authorized(self.agent.get(format!("{url}{path}"))).call())
    }

    fn authorized<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        }
    }

    fn read<T: DeserializeOwned>(&self, response: &mut Response<Body>) -> CommandResult<T> {
        json(response, MAX_ANSWER_BYTES).map_err(|why| {
            CommandError::Refused(format!("{} gave no answer to be understood: {why}", self.manager))
        })
    }

    /// Sends a request until the manager answers. `send` gets the base URL of the API.
    ///
    /// # Errors
    /// Returns [`CommandError::Input`] if the manager rejects the study (status 422), [`CommandError::Refused`] if it
    /// refuses any other request or does not answer within the timeout, and [`CommandError::Interrupted`].
    fn call(
        &self,
        send: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
    ) -> CommandResult<Response<Body>> {
        self.attempt(send)?.map_err(|refusal| match refusal.status {
            422 => CommandError::Input(refusal.detail),
            _ => CommandError::Refused(format!("{}: {}", self.manager, refusal.detail)),
        })
    }

    /// Sends a request as [`Client::call`] does, and returns refusals to the caller.
    fn attempt(
        &self,
        send: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
    ) -> CommandResult<Result<Response<Body>, ManagerError>> {
        let start = Instant::now();
        let url = format!("{}/api/v1", self.manager);
        let mut pause = FIRST_PAUSE;
        let mut is_told = false;
        loop {
            self.waiting.check()?;
            let answered = send(&url);
            if answered.is_err() {
                self.waiting.check()?;
            }
            let why = match self.understand(answered)? {
                Ok(response) => return Ok(Ok(response)),
                Err(Attempt::Refused(refusal)) => return Ok(Err(refusal)),
                Err(Attempt::Again(why)) => why,
            };
            let left = self.timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                let tried = self.timeout.as_secs();
                return Err(CommandError::Refused(format!("{why}; tried for {tried} s")));
            }
            if !is_told {
                progress_bars::line_on_stderr(&format!(
                    "{why}; trying again for {} s",
                    left.as_secs().max(1)
                ));
                is_told = true;
            }
            self.waiting.pause(pause.min(left))?;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn understand(
        &self,
        answered: Result<Response<Body>, ureq::Error>,
    ) -> CommandResult<Result<Response<Body>, Attempt>> {
        let mut response = match answered {
            Ok(response) if response.status().is_success() => return Ok(Ok(response)),
            Ok(response) => response,
            Err(error) => {
                let why = format!("cannot reach the manager at {}: {}", self.manager, cause(&error));
                return if is_about_trust(&error) {
                    Err(CommandError::Refused(why))
                } else {
                    Ok(Err(Attempt::Again(why)))
                };
            }
        };
        let status = response.status().as_u16();
        let is_problem = response.headers().get(CONTENT_TYPE).is_some_and(|media| media == PROBLEM);
        let problem = json::<ProblemDetails>(&mut response, MAX_PROBLEM_BYTES).ok().filter(|_| is_problem);
        let detail =
            problem.map_or_else(|| format!("answers with status {status}"), |problem| problem.detail);
        Ok(Err(match status {
            503 => Attempt::Again(format!("{}: {detail}", self.manager)),
            _ => Attempt::Refused(ManagerError { status, detail }),
        }))
    }

    /// Sends an input file under its digest. `body` reopens the file for each attempt.
    fn put<'a>(
        &self,
        digest: &str,
        bytes: u64,
        body: &dyn Fn() -> io::Result<Box<dyn io::Read + 'a>>,
    ) -> CommandResult<Result<(), ManagerError>> {
        let sent = self.attempt(|url| {
            let request = self.authorized(self.agent.put(format!("{url}/inputs/{digest}")));
            let request = request.header("Content-Length", bytes.to_string());
            request.send(SendBody::from_reader(&mut body()?))
        })?;
        Ok(sent.map(|_| ()))
    }
}

/// Parses the JSON body of a response of at most `longest` bytes.
fn json<T: DeserializeOwned>(response: &mut Response<Body>, longest: u64) -> Result<T, String> {
    let body = response.body_mut().with_config().limit(longest).read_to_vec();
    let body = body.map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

/// Returns the cause of a failed request in a few words.
fn cause(error: &ureq::Error) -> String {
    if matches!(tls_error(error), Some(rustls::Error::InvalidMessage(_))) {
        return "it does not speak HTTPS; is this the manager's --http address (by default port 7118)?"
            .to_owned();
    }
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::HostNotFound => "there is no such host".to_owned(),
        ureq::Error::Timeout(_) => "it does not answer in time".to_owned(),
        error => error.to_string(),
    }
}

/// Returns whether TLS failed: one side rejects the other's certificate or protocol, and a retry cannot succeed.
fn is_about_trust(error: &ureq::Error) -> bool {
    tls_error(error).is_some()
}

fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref()),
        ureq::Error::Rustls(error) => Some(error),
        _ => None,
    }
}

/// Percent-encodes one path segment: all bytes but ASCII letters, digits and `-._~` (RFC 3986, 2.1).
fn escaped(part: &str) -> String {
    let mut escaped = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
