//! Client of the manager's HTTPS API, with retries.
//!
//! Every request is idempotent: the client repeats a request after a lost answer. The commands decide which requests to
//! send and how to show the answers. `tls` verifies the manager's certificate.

pub mod address;
mod clock;
pub mod download;
mod error;
pub mod follow;
mod remote_text;
pub mod submit;
mod tls;
mod transfer;
mod upload;
mod wait;

pub use error::{ClientError, CredentialsError, StudyEndError, SubmitError};
pub use remote_text::plain;
pub use transfer::TransferProgress;
pub use wait::{Interrupted, InterruptibleWait};

use address::ManagerUrl;
use error::{AnswerError, ConnectionError, ManagerError, UnavailableError};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::https::{self, Trust};
use pleach_api::PROBLEM;
use pleach_api::schema::{
    Forgotten, ProblemDetails, Results, ScalingStatus, Studies, StudyStatus, Submitted, WorkerStatus, Workers,
};
use pleach_api::submission::Submission;
use pleach_api::token::ApiToken;
use pleach_results::provenance::{Explanation, RunSelection};
use pleach_study::Defect;
use pleach_study::spatial::{LocatedObjects, ObjectQuery, Selection};
use serde::de::DeserializeOwned;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tls::ClusterTls;
use ureq::http::Response;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
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

/// Maximum length of a result file that is read into memory: a table with a row for each run of a large study.
const MAX_TABLE_BYTES: u64 = 1 << 30;

/// Maximum length of a problem document.
const MAX_PROBLEM_BYTES: u64 = 1 << 20;

/// A connection to one manager, with credentials and a retry policy.
pub struct Client {
    agent: Agent,
    manager: ManagerUrl,
    /// Value of the `Authorization` header.
    authorization: Option<String>,
    timeout: Duration,
    waiting: InterruptibleWait,
    /// Shows a notice to the user.
    notify: Box<dyn Fn(&str)>,
}

/// A failed attempt.
enum Attempt {
    /// A retry may succeed.
    Again(UnavailableError),
    /// A retry cannot succeed.
    Refused(ManagerError),
}

/// Manager to connect to, and the credentials for it.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Address of the manager.
    pub manager: ManagerUrl,
    /// Folder of a client's certificate and key or, with a token, of the authority's certificate.
    pub certs: PathBuf,
    /// File with the manager's token.
    pub token_file: Option<PathBuf>,
    /// Retry time for a manager that does not answer.
    pub timeout: Duration,
}

impl Client {
    /// Creates a client for the manager that the options name. Sends nothing yet. Shows no notices.
    ///
    /// # Errors
    /// [`CredentialsError`] if a certificate or token is missing or invalid.
    pub fn new(
        options: &ClientOptions,
        token: Option<&str>,
        waiting: InterruptibleWait,
    ) -> Result<Self, CredentialsError> {
        let trust = Trust::load(&options.certs)?;
        let token = match (&options.token_file, token) {
            (Some(file), _) => Some(ApiToken::read(file)?),
            (None, Some(text)) => Some(ApiToken::from_text(text).ok_or(CredentialsError::TokenVariable)?),
            (None, None) => None,
        };
        if token.is_none() && !trust.is_certified() {
            return Err(CredentialsError::NoCertificate { certs: options.certs.clone() });
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (config, name) = https::client(&trust, &clock)?;
        let connector = TcpConnector::default().chain(ClusterTls::new(config, name));
        let config = Agent::config_builder()
            // ureq would drop the body of an error answer, which has the manager's reason.
            .http_status_as_error(false)
            .https_only(true)
            .max_redirects(0)
            // Nodes of a cluster reach each other without a proxy.
            .proxy(None)
            .user_agent(concat!("pleach/", env!("CARGO_PKG_VERSION")))
            // A short `--timeout` also bounds a single attempt, and 1 s is enough for any running manager.
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
            notify: Box::new(|_| {}),
        })
    }

    /// Returns the client with a function that shows notices, such as the reason of a retry.
    pub fn with_notices(self, notify: impl Fn(&str) + 'static) -> Self {
        Self { notify: Box::new(notify), ..self }
    }

    /// Returns the address of the manager.
    pub fn manager(&self) -> &ManagerUrl {
        &self.manager
    }

    /// Returns the wait that a signal interrupts.
    pub fn waiting(&self) -> &InterruptibleWait {
        &self.waiting
    }

    /// Submits a study. The manager returns the same study for the same `key`.
    pub(crate) fn submit(&self, submission: &Submission, key: &str) -> Result<Submitted, ClientError> {
        let body = serde_json::to_vec(submission).map_err(Defect::new)?;
        let mut response = self.call(|url| {
            let request = self.agent.post(format!("{url}/studies")).header("Idempotency-Key", key);
            self.authorized(request).header(CONTENT_TYPE, "application/json").send(&body)
        })?;
        self.read(&mut response)
    }

    /// Returns all studies.
    pub fn studies(&self) -> Result<Vec<StudyStatus>, ClientError> {
        Ok(self.get::<Studies>("/studies")?.studies)
    }

    /// Returns a study.
    pub fn study(&self, id: &str) -> Result<StudyStatus, ClientError> {
        self.get(&format!("/studies/{}", escaped(id)))
    }

    /// Returns a study. `None` if the manager does not know it.
    pub fn find_study(&self, id: &str) -> Result<Option<StudyStatus>, ClientError> {
        match self.study(id) {
            Ok(study) => Ok(Some(study)),
            Err(ClientError::Refused { refusal, .. }) if refusal.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Cancels a study.
    pub fn cancel(&self, id: &str) -> Result<StudyStatus, ClientError> {
        let path = format!("/studies/{}", escaped(id));
        let mut response =
            self.call(|url| self.authorized(self.agent.delete(format!("{url}{path}"))).call())?;
        self.read(&mut response)
    }

    /// Returns what became of the tasks of a study: of the selected runs, or in totals.
    pub fn explanation(&self, id: &str, selection: &RunSelection) -> Result<Explanation, ClientError> {
        let RunSelection { evaluation, tile, phase } = selection;
        let fields = [
            evaluation.map(|evaluation| format!("evaluation={evaluation}")),
            tile.as_ref().map(|tile| format!("tile={}", escaped(tile))),
            phase.map(|phase| format!("phase={phase}")),
        ];
        let query: Vec<String> = fields.into_iter().flatten().collect();
        self.get(&format!("/studies/{}/explanation?{}", escaped(id), query.join("&")))
    }

    /// Finds objects of a study by position, in regions that workers retain.
    pub fn objects(&self, id: &str, query: &ObjectQuery) -> Result<LocatedObjects, ClientError> {
        let numbers = |numbers: &mut dyn Iterator<Item = &f64>| {
            numbers.map(f64::to_string).collect::<Vec<_>>().join(",")
        };
        let selection = match &query.selection {
            Selection::InBox { low, high } => format!("box={}", numbers(&mut low.iter().chain(high))),
            Selection::Nearest { at } => format!("nearest={}", numbers(&mut at.iter())),
        };
        let tile = query.image.as_ref().map_or_else(String::new, |tile| format!("&tile={}", escaped(tile)));
        self.get(&format!(
            "/studies/{}/objects?stage={}&output={}&evaluation={}&count={}&unit={}&{selection}{tile}",
            escaped(id),
            escaped(&query.stage),
            escaped(&query.output),
            query.evaluation,
            query.count,
            if query.in_microns { "um" } else { "px" },
        ))
    }

    /// Removes a study that has ended.
    pub fn forget(&self, id: &str) -> Result<Forgotten, ClientError> {
        let path = format!("/studies/{}/forget", escaped(id));
        let mut response =
            self.call(|url| self.authorized(self.agent.post(format!("{url}{path}"))).send_empty())?;
        self.read(&mut response)
    }

    /// Returns the number of desired workers and the predicted time and cost.
    pub fn scaling(&self) -> Result<ScalingStatus, ClientError> {
        self.get("/scaling")
    }

    /// Compares the clock of this machine with the manager's, whose answers have its time in whole seconds. Returns the time of
    /// the manager minus the time of this machine, in seconds.
    ///
    /// # Errors
    /// As any request, and [`ClientError::Answer`] for an answer without a time.
    pub fn clock_offset_seconds(&self) -> Result<f64, ClientError> {
        let before = SystemClock.now();
        let response = self.fetch("/workers")?;
        let here = (before + SystemClock.now()) / 2;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).unwrap_or_default();
        let there = clock::seconds_of(date);
        let unreadable = || AnswerError::Date(date.to_owned());
        let there = there.ok_or_else(unreadable);
        let there = there.map_err(|cause| ClientError::Answer { manager: self.manager.clone(), cause })?;
        // The manager cuts its time to seconds: half a second later is the mean of the times it may have had.
        Ok(there as f64 + 0.5 - here.as_secs_f64())
    }

    /// Returns all workers.
    pub fn workers(&self) -> Result<Vec<WorkerStatus>, ClientError> {
        Ok(self.get::<Workers>("/workers")?.workers)
    }

    /// Starts draining a worker.
    pub fn drain(&self, name: &str) -> Result<WorkerStatus, ClientError> {
        let path = format!("/workers/{}/drain", escaped(name));
        let mut response =
            self.call(|url| self.authorized(self.agent.post(format!("{url}{path}"))).send_empty())?;
        self.read(&mut response)
    }

    /// Returns the names of a study's result files.
    pub(crate) fn result_names(&self, id: &str) -> Result<Vec<String>, ClientError> {
        Ok(self.get::<Results>(&format!("/studies/{}/results", escaped(id)))?.results)
    }

    /// Returns the content of a result file.
    pub fn result_bytes(&self, id: &str, name: &str) -> Result<Vec<u8>, ClientError> {
        let read = self.result(id, name)?.body_mut().with_config().limit(MAX_TABLE_BYTES).read_to_vec();
        let unreadable = |error| AnswerError::Body(Box::new(error));
        read.map_err(unreadable).map_err(|cause| ClientError::Answer { manager: self.manager.clone(), cause })
    }

    /// Opens a result file as a streaming response.
    fn result(&self, id: &str, name: &str) -> Result<Response<Body>, ClientError> {
        self.fetch(&format!("/studies/{}/results/{}", escaped(id), escaped(name)))
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.read(&mut self.fetch(path)?)
    }

    fn fetch(&self, path: &str) -> Result<Response<Body>, ClientError> {
        self.call(|url| self.authorized(self.agent.get(format!("{url}{path}"))).call())
    }

    fn authorized<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        }
    }

    fn read<T: DeserializeOwned>(&self, response: &mut Response<Body>) -> Result<T, ClientError> {
        let unreadable = |cause| ClientError::Answer { manager: self.manager.clone(), cause };
        json(response, MAX_ANSWER_BYTES).map_err(unreadable)
    }

    /// Sends a request until the manager answers. `send` gets the base URL of the API.
    ///
    /// # Errors
    /// [`ClientError::Rejected`] if the manager rejects the study (status 422), and another [`ClientError`] if it
    /// refuses any other request or does not answer within the timeout, or after an interruption.
    fn call(
        &self,
        send: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, ClientError> {
        self.attempt(send)?.map_err(|refusal| match refusal.status {
            422 => ClientError::Rejected { detail: refusal.detail },
            _ => ClientError::Refused { manager: self.manager.clone(), refusal },
        })
    }

    /// Sends a request as [`Client::call`] does, and returns refusals to the caller.
    fn attempt(
        &self,
        send: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Result<Response<Body>, ManagerError>, ClientError> {
        let start = Instant::now();
        let url = format!("{}/api/v1", self.manager);
        let mut pause = FIRST_PAUSE;
        let mut is_told = false;
        loop {
            self.waiting.check()?;
            let answered = send(&url);
            // A signal during the request takes precedence over the error of the request.
            if answered.is_err() {
                self.waiting.check()?;
            }
            let cause = match self.understand(answered)? {
                Ok(response) => return Ok(Ok(response)),
                Err(Attempt::Refused(refusal)) => return Ok(Err(refusal)),
                Err(Attempt::Again(cause)) => cause,
            };
            let left = self.timeout.saturating_sub(start.elapsed());
            // Checked after the attempt, so that a timeout of 0 still allows one.
            if left.is_zero() {
                return Err(ClientError::Unavailable { cause, seconds: self.timeout.as_secs() });
            }
            if !is_told {
                (self.notify)(&format!("{cause}; retrying for {} s", left.as_secs().max(1)));
                is_told = true;
            }
            // Not longer than the remaining time: the last attempt is at its end.
            self.waiting.pause(pause.min(left))?;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn understand(
        &self,
        answered: Result<Response<Body>, ureq::Error>,
    ) -> Result<Result<Response<Body>, Attempt>, ClientError> {
        let manager = || self.manager.clone();
        let mut response = match answered {
            Ok(response) if response.status().is_success() => return Ok(Ok(response)),
            Ok(response) => response,
            Err(cause) => {
                let error = ConnectionError { manager: manager(), cause: Box::new(cause) };
                // A retry meets the same certificate, so a trust error ends the command.
                return if error.is_about_trust() {
                    Err(ClientError::Untrusted(error))
                } else {
                    Ok(Err(Attempt::Again(error.into())))
                };
            }
        };
        let status = response.status().as_u16();
        let is_problem = response.headers().get(CONTENT_TYPE).is_some_and(|media| media == PROBLEM);
        let problem = json::<ProblemDetails>(&mut response, MAX_PROBLEM_BYTES).ok().filter(|_| is_problem);
        let detail =
            problem.map_or_else(|| format!("response with status {status}"), |problem| problem.detail);
        Ok(Err(match status {
            503 => Attempt::Again(UnavailableError::NotReady { manager: manager(), detail }),
            _ => Attempt::Refused(ManagerError { status, detail }),
        }))
    }

    /// Sends an input file under its digest. `body` reopens the file for each attempt.
    fn put<'a>(
        &self,
        digest: &str,
        bytes: u64,
        body: &dyn Fn() -> io::Result<Box<dyn io::Read + 'a>>,
    ) -> Result<Result<(), ManagerError>, ClientError> {
        let sent = self.attempt(|url| {
            let request = self.authorized(self.agent.put(format!("{url}/inputs/{digest}")));
            let request = request.header("Content-Length", bytes.to_string());
            // Opened for each attempt: an earlier one has read a part of the file.
            request.send(SendBody::from_reader(&mut body()?))
        })?;
        Ok(sent.map(|_| ()))
    }
}

/// Parses the JSON body of a response of at most `longest` bytes.
fn json<T: DeserializeOwned>(response: &mut Response<Body>, longest: u64) -> Result<T, AnswerError> {
    let body = response.body_mut().with_config().limit(longest).read_to_vec();
    let body = body.map_err(|error| AnswerError::Body(Box::new(error)))?;
    Ok(serde_json::from_slice(&body)?)
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
