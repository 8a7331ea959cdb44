//! A manager and a worker in their own folder. Dropping the values ends the processes.

use crate::pleach::pleach;
use crate::study::Study;
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::https::{self, Trust};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 60 s: far more than a process needs to start.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Manager {
    folder: tempfile::TempDir,
    process: Process,
    listen: String,
    pub(crate) http: SocketAddr,
}

impl Manager {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        pleach(folder.path(), &["certs", "init", "--dir", "ca"]).done();
        for (name, role) in [("boss", "manager"), ("me", "client"), ("w0", "worker")] {
            pleach(folder.path(), &["certs", "issue", "--dir", "ca", "--name", name, "--role", role]).done();
        }
        let here = "127.0.0.1:0";
        let args = ["manager", "--state", "state", "--certs", "ca/boss", "--listen", here, "--http", here];
        let process = Process::start(&folder, "manager", &args);
        let said = process.said("workers connect to ");
        let (listen, http) = said.split_once(", clients to https://").expect("two addresses");
        let (listen, http) = (listen.to_owned(), http.parse().expect("an address"));
        Self { folder, process, listen, http }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// TLS settings of a client with these credentials: the trusted authority and the client's certificate.
    pub(crate) fn trust(&self, certs: &str) -> Tls {
        let trust = Trust::load(&self.path(certs)).expect("credentials");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (config, name) = https::client(&trust, &clock).expect("credentials");
        Tls { config: Arc::new(config), name }
    }

    pub(crate) fn submit(&self, study: &Study) {
        let (url, certs) = (format!("https://{}", self.http), self.path("ca/me").display().to_string());
        pleach(study.folder(), &["submit", "study.toml", "--manager", &url, "--certs", &certs]).done();
    }

    /// Sends JSON with a client's certificate. Returns the status and the body of the response.
    pub(crate) fn post(&self, path: &str, body: &[u8]) -> (u16, String) {
        let socket = TcpStream::connect(self.http).expect("it listens");
        socket.set_read_timeout(Some(DEADLINE)).expect("a socket");
        let mut stream = self.trust("ca/me").over(socket);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: m\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), answer)
    }
}

/// TLS settings of a client.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    pub(crate) fn over(&self, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        StreamOwned::new(connection.expect("credentials"), socket)
    }
}

pub(crate) struct Worker {
    process: Process,
    pub(crate) metrics: SocketAddr,
}

impl Worker {
    pub(crate) fn of(manager: &Manager) -> Self {
        let here = "127.0.0.1:0";
        let args = ["worker", "--manager", &manager.listen, "--certs", "ca/w0", "--listen", here];
        let options = ["--cores", "1", "--memory", "100MB", "--metrics", here];
        let process = Process::start(&manager.folder, "worker", &[&args[..], &options].concat());
        let said = process.said("metrics are at http://");
        let metrics = said.strip_suffix("/metrics").expect("an address").parse().expect("an address");
        Self { process, metrics }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }
}

struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(folder: &tempfile::TempDir, name: &str, args: &[&str]) -> Self {
        let log = folder.path().join(format!("{name}.log"));
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("pleach"));
        command.current_dir(folder.path()).args(args).stdout(File::create(&log).expect("a log"));
        let child = command.stderr(Stdio::inherit()).spawn().expect("it starts");
        Self { child, log }
    }

    /// Waits for a log line that contains `what`. Returns the rest of the line.
    fn said(&self, what: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = fs::read_to_string(&self.log).expect("a log");
            let whole = log.lines().filter(|_| log.ends_with('\n'));
            if let Some((_, rest)) = whole.filter_map(|line| line.split_once(what)).next() {
                return rest.to_owned();
            }
            assert!(begun.elapsed() < DEADLINE, "{log}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Current and peak resident memory of a process, in kB.
pub(crate) fn memory_kb(pid: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
        line.split_whitespace().next().and_then(|kb| kb.parse().ok()).expect("a number")
    };
    (field("VmRSS:"), field("VmHWM:"))
}
