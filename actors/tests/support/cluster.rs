//! Cluster on loopback: an authority, a clock, the operator's notices, and nodes.

use parking_lot::Mutex;
use pleach_actors::manager::{Connect, PendingWorker};
use pleach_actors::transport::certs::{Authority, Credentials, Validity};
use pleach_actors::transport::clock::Clock;
use pleach_actors::transport::hello::{Hello, Version};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use pleach_actors::transport::quic::{
    Connector, JoinService, Peer, QuicRuntime, RefusalReporter, Server, ServerSetup,
};
use pleach_actors::transport::refusal_log::RefusalNotice;
use pleach_actors::transport::settings::Settings;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;

/// Time limit for waits that would otherwise never end, 60 s: far beyond the duration of any test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const HOUR: u64 = 3600;

/// Any port on loopback.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Clock that changes only when a test sets it.
#[derive(Debug)]
pub(crate) struct Hands(pub(crate) AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Cluster {
    place: TempDir,
    pub(crate) authority: Authority,
    pub(crate) clock: Arc<Hands>,
    notices: Arc<Mutex<Vec<RefusalNotice>>>,
    pub(crate) network: QuicRuntime,
    pub(crate) settings: Settings,
}

/// Long time limits, so that a slow machine is not mistaken for a hostile peer.
pub(crate) fn patient() -> Settings {
    Settings {
        handshake: DEADLINE,
        keep_alive: Duration::from_secs(1),
        idle: Duration::from_secs(20),
        stalled: DEADLINE,
        ..Settings::default()
    }
}

impl Cluster {
    pub(crate) fn new(settings: Settings) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(Hands(AtomicU64::new(1_800_000_000)));
        let authority = Authority::init(&place.path().join("ca"), clock.now()).expect("an authority");
        let network = QuicRuntime::start(2).expect("threads");
        Self { place, authority, clock, notices: Arc::default(), network, settings }
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    pub(crate) fn credentials(&self, name: &str, role: Role, days: u32) -> Arc<Credentials> {
        let folder = self.folder(name);
        let identity = NodeIdentity { name: name.parse().expect("a name"), role };
        let validity = Validity::days(days, self.clock.now()).expect("some days");
        if !folder.exists() {
            self.authority.issue(&identity, validity, &folder).expect("a certificate");
        }
        load(&folder)
    }

    /// Returns all notices to the operator.
    pub(crate) fn notices(&self) -> Vec<RefusalNotice> {
        self.notices.lock().clone()
    }

    pub(crate) fn board(&self) -> RefusalReporter {
        let notices = Arc::clone(&self.notices);
        RefusalReporter::new(self.clock(), Arc::new(move |notice| notices.lock().push(notice.clone())))
    }

    pub(crate) fn setup(&self) -> ServerSetup {
        ServerSetup {
            credentials: self.credentials("m1", Role::Manager, 3000),
            hello: Hello::default(),
            version: Version::current(),
            roles: vec![Role::Worker],
            settings: self.settings.clone(),
            clock: self.clock(),
            board: self.board(),
            desk: None,
        }
    }

    pub(crate) fn desk(&self) -> Arc<JoinService> {
        Arc::new(JoinService::open(&self.folder("ca")).expect("an authority"))
    }

    pub(crate) fn listen(&self, setup: ServerSetup) -> (Server, Receiver<Peer>) {
        Server::listen(&self.network, ANYWHERE, setup).expect("an address")
    }

    pub(crate) fn connector(&self, name: &str, role: Role) -> Connector {
        self.connector_with(self.credentials(name, role, 30), Version::current())
    }

    pub(crate) fn connector_with(&self, credentials: Arc<Credentials>, version: Version) -> Connector {
        let (settings, board) = (self.settings.clone(), RefusalReporter::new(self.clock(), Arc::new(|_| {})));
        Connector::new(&self.network, ANYWHERE, credentials, version, settings, &self.clock(), board)
            .expect("a socket")
    }
}

pub(crate) fn load(folder: &Path) -> Arc<Credentials> {
    Arc::new(Credentials::load(folder).expect("credentials"))
}

/// Returns the result of a future, within the time limit.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it does not take for ever")
}

/// Waits until a condition holds, within the time limit.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    soon(async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Returns the message by which a manager takes on a worker whose connection has come in.
pub(crate) fn connected(near: Peer, name: &str) -> Connect {
    Connect {
        link: Box::new(near.link),
        incoming: near.incoming,
        newcomer: PendingWorker {
            name: name.to_owned(),
            host: Some(near.address.ip()),
            regions: Some(near.regions),
            ..PendingWorker::local()
        },
    }
}
