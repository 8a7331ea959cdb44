//! Accept loop of the HTTP servers.
//!
//! A server has one thread. The loop accepts every connection at once. If there are too many, in total or from one
//! network, `admission` chooses the connection that ends for the newcomer. A client that stops reading is
//! disconnected (`stream`). Until a client has shown credentials, it gets one answer within
//! `Bounds::anonymous_time`, and the server reads a few KiB of its requests. actix parses HTTP, and each server
//! decides which of its requests need credentials.
//!
//! Over plain HTTP, a connection can be ended as cheaply as it is opened. A crowd from one address would therefore
//! end its own connections, and those of a probe, before they are served. So a plain server may separate probes
//! (`Probes`): it examines the first bytes of a newcomer, and the connection of a probe never ends for one that is
//! no probe.

mod admission;
mod connection;
mod probes;
mod request;
mod service;
mod stream;

pub(crate) use connection::{CERTIFIED, Connection};
pub(crate) use probes::Probes;
pub(crate) use service::{Serve, answer_once, service};
pub(crate) use stream::Stream;

use admission::{Admission, ConnectionInfo, admit};
use socket2::SockRef;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

/// 20 ms pause after a failed accept, for example without free file descriptors: an immediate retry would use the
/// whole thread.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// Connections that the operating system queues until they are accepted. Without room in this queue, a newcomer's
/// system would retry 1 s later.
const BACKLOG: i32 = 4096;

/// Accepts before the open connections get a turn. Far fewer than the limit of a network, so that a request is read
/// and answered before enough newcomers arrive to end it.
const ACCEPTED_AT_ONCE: u32 = 8;

/// 128 KiB that the operating system buffers unsent for a connection. A larger buffer would hide for minutes whether
/// a slow client still reads.
const UNSENT_BYTES: u32 = 128 << 10;

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum number of connections.
    pub(crate) connections: usize,
    /// Maximum number of connections from one network: an IPv4 address or an IPv6 /64. Clients behind one proxy share
    /// them.
    pub(crate) of_network: usize,
    /// Maximum number of connections without credentials.
    pub(crate) anonymous: usize,
    /// Maximum duration of a connection without credentials, from the TLS handshake to the end of its answer.
    pub(crate) anonymous_time: Duration,
    /// Maximum duration of the TLS handshake, and again of the head of a request.
    pub(crate) head: Duration,
    /// Maximum time without progress of a write to a client.
    pub(crate) write: Duration,
}

/// Running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Stops the server: accepts nothing new, and finishes requests in progress within `patience`.
    pub(crate) fn stop(mut self, patience: Duration) {
        self.end(patience);
    }

    fn end(&mut self, patience: Duration) {
        // A thread that has ended no longer receives.
        let _ = self.stop.take().map(|stop| stop.send(patience));
        if let Some(thread) = self.thread.take() {
            // A panic has already ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Starts a server on a thread of its own. `make` builds the service on that thread. Connections of the service end
/// early once the [`Notify`] is notified. `probes` is for plain HTTP only, because TLS hides the request.
///
/// # Errors
/// [`io::Error`] when the operating system provides no thread or does not listen, or when `make` fails.
pub(crate) fn start<M, F>(
    name: &str,
    listener: TcpListener,
    bounds: Bounds,
    probes: Option<Probes>,
    make: M,
) -> io::Result<Server>
where
    M: FnOnce(Rc<Notify>) -> F + Send + 'static,
    F: Future<Output = io::Result<Serve>>,
{
    let (started, has_started) = mpsc::channel::<io::Result<()>>();
    let (stop, stopped) = oneshot::channel();
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            let draining = Rc::new(Notify::new());
            let ready = async {
                listener.set_nonblocking(true)?;
                // The standard library listens with a shorter queue. A second `listen` replaces its length.
                SockRef::from(&listener).listen(BACKLOG)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                io::Result::Ok((listener, make(Rc::clone(&draining)).await?))
            };
            match ready.await {
                Err(error) => _ = started.send(Err(error)),
                Ok((listener, serve)) => {
                    // `start` waits for this message and cannot have ended.
                    let _ = started.send(Ok(()));
                    let doors = Doors::new(bounds, probes, serve);
                    run(listener, &doors, &draining, stopped).await;
                }
            }
        });
    })?;
    has_started.recv().map_err(io::Error::other)??;
    Ok(Server { stop: Some(stop), thread: Some(thread) })
}

async fn run(
    listener: tokio::net::TcpListener,
    doors: &Rc<Doors>,
    draining: &Notify,
    mut stopped: oneshot::Receiver<Duration>,
) {
    let mut at_once = 0;
    let patience = loop {
        let accepted = tokio::select! {
            // The stop comes first: under a stream of newcomers, `accept` is always ready.
            biased;
            patience = &mut stopped => break patience.unwrap_or_default(),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, address)) => {
                doors.receive(socket, address);
                // A crowd of newcomers must not keep the open connections from their turns.
                at_once += 1;
                if at_once == ACCEPTED_AT_ONCE {
                    at_once = 0;
                    tokio::task::yield_now().await;
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    };
    // Before the notification, which reaches only connections that already wait for it: none may be accepted later.
    drop(listener);
    draining.notify_waiters();
    doors.end_anonymous();
    // Connections that are open after `patience` end with the thread.
    let _ = timeout(patience, doors.emptied()).await;
}

/// Connections of a server in three kinds: newcomers without first bytes, probes, and all others. Each kind has
/// bounds of its own, so that none ends for a connection of another kind.
struct Doors {
    newcomers: Rc<Open>,
    probes: Rc<Open>,
    others: Rc<Open>,
    apart: Option<Probes>,
    serve: Serve,
}

impl Doors {
    fn new(bounds: Bounds, apart: Option<Probes>, serve: Serve) -> Rc<Self> {
        let open = |bounds| Rc::new(Open::new(bounds));
        let (newcomers, probes) = (open(probes::NEWCOMERS), open(bounds));
        Rc::new(Self { newcomers, probes, others: open(bounds), apart, serve })
    }

    /// Serves a new connection, or closes it if it is not admitted.
    fn receive(self: &Rc<Self>, socket: tokio::net::TcpStream, address: SocketAddr) {
        let Some(apart) = self.apart else {
            self.others.take(socket, address, &self.serve);
            return;
        };
        let Some((entry, connection)) = self.newcomers.admit(address) else { return };
        let doors = Rc::clone(self);
        actix_web::rt::spawn(async move {
            let is_probe = tokio::select! {
                is_probe = apart.asks(&socket) => is_probe,
                () = connection.ended() => None,
                () = connection.expired(doors.newcomers.bounds.anonymous_time) => None,
            };
            // The connection leaves the newcomers first: it counts among one kind only.
            drop(entry);
            if let Some(is_probe) = is_probe {
                let open = if is_probe { &doors.probes } else { &doors.others };
                open.take(socket, address, &doors.serve);
            }
        });
    }

    fn all(&self) -> [&Rc<Open>; 3] {
        [&self.newcomers, &self.probes, &self.others]
    }

    fn end_anonymous(&self) {
        self.all().into_iter().for_each(|open| open.end_anonymous());
    }

    async fn emptied(&self) {
        for open in self.all() {
            open.emptied().await;
        }
    }
}

/// Open connections of one kind, by id in the order of their arrival.
struct Open {
    bounds: Bounds,
    connections: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next: Cell<u64>,
    ended: Notify,
}

impl Open {
    fn new(bounds: Bounds) -> Self {
        Self { bounds, connections: RefCell::default(), next: Cell::default(), ended: Notify::new() }
    }

    /// Admits a connection, and ends an open one for it if necessary. Returns `None` if no connection may end.
    fn admit(self: &Rc<Self>, address: SocketAddr) -> Option<(Entry, Rc<Connection>)> {
        let network = admission::network(address.ip());
        let facts = |(id, connection): (&u64, &Rc<Connection>)| ConnectionInfo {
            id: *id,
            network: connection.network(),
            is_anonymous: connection.is_anonymous(),
            step: connection.step(),
            idle: connection.idle(),
        };
        let open: Vec<ConnectionInfo> = self.connections.borrow().iter().map(facts).collect();
        match admit(network, &open, &self.bounds) {
            Admission::Room => {}
            Admission::Instead(id) => {
                // Removed here and not by its task, which ends later: the next newcomer must not choose it again.
                if let Some(connection) = self.connections.borrow_mut().remove(&id) {
                    connection.end();
                }
            }
            Admission::Full => return None,
        }
        let connection = Rc::new(Connection::new(network));
        let id = self.next.replace(self.next.get() + 1);
        self.connections.borrow_mut().insert(id, Rc::clone(&connection));
        Some((Entry { open: Rc::clone(self), id }, connection))
    }

    /// Serves a connection, or closes it if it is not admitted.
    fn take(self: &Rc<Self>, socket: tokio::net::TcpStream, address: SocketAddr, serve: &Serve) {
        let Some((entry, connection)) = self.admit(address) else { return };
        // Failures are ignored: without these options answers are slower, which is no reason to close the connection.
        let options = SockRef::from(&socket);
        let _ = options.set_tcp_nodelay(true).and_then(|()| options.set_tcp_notsent_lowat(UNSENT_BYTES));
        let stream = Stream::new(socket, Rc::clone(&connection), self.bounds.write);
        let anonymous_time = self.bounds.anonymous_time;
        let served = serve(stream, address);
        actix_web::rt::spawn(async move {
            let _entry = entry;
            tokio::select! {
                // The other futures are dropped at the first end. Dropping `served` closes the socket at any point of a
                // request.
                () = served => {}
                () = connection.ended() => {}
                () = connection.expired(anonymous_time) => {}
            }
        });
    }

    fn end_anonymous(&self) {
        self.connections.borrow().values().filter(|open| open.is_anonymous()).for_each(|open| open.end());
    }

    async fn emptied(&self) {
        while !self.connections.borrow().is_empty() {
            self.ended.notified().await;
        }
    }
}

/// Place of a connection among the open ones, freed in Drop, so that a panicking or canceled task cannot leak it.
struct Entry {
    open: Rc<Open>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.open.connections.borrow_mut().remove(&self.id);
        // Stores a permit, so an end between the check in `emptied` and its wait is not lost.
        self.open.ended.notify_one();
    }
}
