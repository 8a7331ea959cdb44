//! Test server for the part of the Kubernetes API that a manager uses.
//!
//! Over TLS and with a token that changes, it accepts merge patches of pods, lists pods in pages, watches them, and reads and sets the scale of
//! deployments. Requests without a valid token get 401, unknown objects 404, writes of old versions 409, as in a cluster.

#[path = "kubernetes/deployments.rs"]
mod deployments;
#[path = "kubernetes/watch.rs"]
mod watch;

pub(crate) use deployments::PodPhase;
pub(crate) use watch::{PodRequest, WatchFault};

use deployments::Deployments;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The annotation of pod deletion costs.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// A request with its response status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Patch {
    pub(crate) pod: String,
    pub(crate) cost: Option<String>,
    pub(crate) status: u16,
}

#[derive(Default)]
struct Kept {
    token: String,
    deployments: Deployments,
    /// Pods with their annotations.
    pods: BTreeMap<String, Value>,
    /// Status returned for every request instead of its effect.
    fails: Option<u16>,
    patches: Vec<Patch>,
    /// Rules of the account's role. `None`: everything is allowed.
    rules: Option<Vec<Value>>,
}

/// The server. It runs until the process ends.
pub(crate) struct Kubernetes {
    address: SocketAddr,
    /// Folder of a service account, as a pod sees it.
    pub(crate) account: PathBuf,
    kept: Arc<Mutex<Kept>>,
}

impl Kubernetes {
    /// Starts a cluster without pods, and writes an account of its namespace `studies` into a folder.
    pub(crate) fn start(account: &Path) -> Self {
        fs::create_dir_all(account).expect("a folder");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = authority.self_signed(&key).expect("a certificate");
        // During the replacement of an authority there are two certificates, and the valid one need not be the first.
        let before = authority.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate");
        fs::write(account.join("ca.crt"), before.pem() + &certificate.pem()).expect("a file");
        fs::write(account.join("namespace"), "studies").expect("a file");
        let authority = Issuer::new(authority, key);
        let key = KeyPair::generate().expect("a key");
        let server = CertificateParams::new(["kubernetes.default.svc".to_owned(), "127.0.0.1".to_owned()]);
        let server = server.expect("names").signed_by(&key, &authority).expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![server.der().clone()], key);
        let config = Arc::new(config.expect("a configuration"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let of_server = Arc::clone(&kept);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (config, kept) = (Arc::clone(&config), Arc::clone(&of_server));
                std::thread::spawn(move || serve(socket, config, &kept));
            }
        });
        let cluster = Self { address, account: account.to_owned(), kept };
        cluster.give_token("first");
        cluster
    }

    /// Environment variables of every pod.
    pub(crate) fn environment(&self) -> [(String, String); 2] {
        let (host, port) = (self.address.ip().to_string(), self.address.port().to_string());
        [("KUBERNETES_SERVICE_HOST".to_owned(), host), ("KUBERNETES_SERVICE_PORT".to_owned(), port)]
    }

    /// Replaces the valid token.
    pub(crate) fn give_token(&self, token: &str) {
        let mut kept = self.kept.lock();
        kept.token = token.to_owned();
        fs::write(self.account.join("token"), token).expect("a file");
    }

    /// Replaces the valid token, and leaves the old one in the account.
    pub(crate) fn expire_token(&self, token: &str) {
        self.kept.lock().token = token.to_owned();
    }

    pub(crate) fn add_pod(&self, name: &str) {
        self.kept.lock().pods.insert(name.to_owned(), pod());
    }

    /// Allows only requests that the rules of a role grant.
    pub(crate) fn grant(&self, rules: Vec<Value>) {
        self.kept.lock().rules = Some(rules);
    }

    /// Returns this status for all requests, or serves them again.
    pub(crate) fn fail(&self, status: Option<u16>) {
        self.kept.lock().fails = status;
    }

    /// All requests so far.
    pub(crate) fn patches(&self) -> Vec<Patch> {
        self.kept.lock().patches.clone()
    }

    /// Pods with a deletion cost, in the deletion order of a replica set: lowest cost first.
    pub(crate) fn costs(&self) -> Vec<(i64, String)> {
        let kept = self.kept.lock();
        let cost = |(name, pod): (&String, &Value)| {
            let annotations = &pod["metadata"]["annotations"];
            assert_eq!(annotations["kept"], "so", "what else there is stays");
            Some((annotations[COST].as_str()?.parse().expect("a number"), name.clone()))
        };
        let mut costs: Vec<_> = kept.pods.iter().filter_map(cost).collect();
        costs.sort_unstable();
        costs
    }
}

/// A pod with an annotation that must stay.
fn pod() -> Value {
    json!({"metadata": {"annotations": {"kept": "so"}}})
}

/// Serves the requests of one connection.
fn serve(socket: TcpStream, config: Arc<ServerConfig>, kept: &Mutex<Kept>) {
    let connection = ServerConnection::new(config).expect("a connection");
    let mut stream = BufReader::new(StreamOwned::new(connection, socket));
    // The loop ends when the client disconnects or refuses the certificate.
    while let Ok(request) = request(&mut stream) {
        // In a statement of its own: the lock must not be held by a watch.
        let refusal = refused(&request, &kept.lock());
        let (status, body) = match refusal {
            None if request.is_watch() => match watch::serve(&request, stream.get_mut(), kept) {
                // A watch ends its connection.
                Ok(()) => return,
                Err(refusal) => refusal,
            },
            _ => answer(&request, &mut kept.lock()),
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let stream = stream.get_mut();
        if stream.write_all((head + &body).as_bytes()).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// A request as the server reads it.
struct Request {
    method: String,
    /// Path and query.
    target: String,
    authorization: String,
    content_type: String,
    body: Value,
}

fn request(stream: &mut impl BufRead) -> std::io::Result<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let of = |line: &String| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        lines.iter().find_map(of).unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body)?;
    let mut words = lines[0].split(' ').map(str::to_owned);
    Ok(Request {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        authorization: header("authorization"),
        content_type: header("content-type"),
        body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).expect("JSON") },
    })
}

/// An error answer of the API.
fn refusal(status: u16, message: &str) -> (u16, Value) {
    (status, json!({"kind": "Status", "apiVersion": "v1", "code": status, "message": message}))
}

impl Request {
    fn is_watch(&self) -> bool {
        self.target.starts_with("/api/v1/namespaces/studies/pods?") && self.target.contains("watch=true")
    }
}

/// The refusal of a request without a valid token or without the right.
fn refused(request: &Request, kept: &Kept) -> Option<(u16, Value)> {
    if request.authorization != format!("Bearer {}", kept.token) {
        return Some(refusal(401, "Unauthorized"));
    }
    if kept.rules.as_ref().is_some_and(|rules| !is_granted(request, rules)) {
        let what = format!("{} {} is forbidden by the role", request.method, request.target);
        return Some(refusal(403, &what));
    }
    None
}

fn answer(request: &Request, kept: &mut Kept) -> (u16, Value) {
    let pod = request.target.strip_prefix("/api/v1/namespaces/studies/pods/");
    let answer = match pod {
        _ if refused(request, kept).is_some() => refused(request, kept).expect("a refusal"),
        Some(pod) => patch_pod(request, pod, kept),
        None if kept.fails.is_some() => refusal(kept.fails.unwrap_or(500), "not in the mood"),
        None => {
            let Kept { deployments, pods, .. } = kept;
            deployments.answer(request, pods)
        }
    };
    if let Some(pod) = pod {
        let cost = request.body["metadata"]["annotations"][COST].as_str().map(str::to_owned);
        kept.patches.push(Patch { pod: pod.to_owned(), cost, status: answer.0 });
    }
    answer
}

/// Whether a rule of a role grants a request: its API group, its resource, its verb, and its name if the rule has names.
fn is_granted(request: &Request, rules: &[Value]) -> bool {
    let path = request.target.split('?').next().unwrap_or_default();
    let (group, rest) = match path.strip_prefix("/apis/apps/v1/namespaces/studies/") {
        Some(rest) => ("apps", rest),
        None => ("", path.strip_prefix("/api/v1/namespaces/studies/").unwrap_or_default()),
    };
    let mut parts = rest.split('/');
    let (kind, name) = (parts.next().unwrap_or_default(), parts.next());
    let resource = parts.next().map_or_else(|| kind.to_owned(), |below| format!("{kind}/{below}"));
    let verb = match (request.method.as_str(), name) {
        ("GET", None) if request.is_watch() => "watch",
        ("GET", None) => "list",
        ("GET", Some(_)) => "get",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        _ => return false,
    };
    rules.iter().any(|rule| {
        let has = |field: &str, wanted: &str| {
            rule[field].as_array().is_some_and(|all| all.contains(&json!(wanted)))
        };
        let is_named = rule["resourceNames"].is_null() || name.is_some_and(|name| has("resourceNames", name));
        has("apiGroups", group) && has("resources", &resource) && has("verbs", verb) && is_named
    })
}

fn patch_pod(request: &Request, pod: &str, kept: &mut Kept) -> (u16, Value) {
    let cost = request.body["metadata"]["annotations"][COST].as_str();
    if let Some(status) = kept.fails {
        return refusal(status, &format!("pods \"{pod}\" is forbidden: not in the mood"));
    }
    if request.method != "PATCH" || request.content_type != "application/merge-patch+json" {
        return refusal(415, &format!("{}, {}", request.method, request.content_type));
    }
    let Some(annotated) = kept.pods.get_mut(pod) else {
        return refusal(404, &format!("pods \"{pod}\" not found"));
    };
    if request.body != json!({"metadata": {"annotations": {COST: cost}}})
        || cost.is_none_or(|cost| cost.parse::<i32>().is_err())
    {
        return refusal(422, &request.body.to_string());
    }
    annotated["metadata"]["annotations"][COST] = json!(cost);
    (200, json!({}))
}
