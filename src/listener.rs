//! Accept loop of the HTTP servers.
//!
//! A server has one thread. The loop accepts every connection at once; where there are too many, of all clients or of one network,
//! [`admission`] names the connection that ends for the newcomer. A client that stops reading is disconnected ([`stream`]).
//! Until a client has shown credentials it gets one answer, within [`Bounds::anonymous_time`], and a few KiB of its requests
//! are read. HTTP itself is actix's; which requests need credentials is up to the servers.
//!
//! Over plain HTTP a connection can be turned away as cheaply as it is opened, and a crowd from one address would end each other's
//! connections, and a probe's, before they are served. So a plain server may keep probes apart ([`Probes`]): it looks at the first
//! bytes of a newcomer, and a request of a probe never ends for one that is none.

mod admission;
mod connection;
mod probes;
mod request;
mod service;
mod stream;

pub(crate) use connection::Connection;
pub(crate) use probes::Probes;
pub(crate) use service::{Serve, answer_once, service};
pub(crate) use stream::Stream;

use admission::{Admission, Facts, admit};
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

/// Pause after an accept that failed, as without file descriptors: retrying at once would take the whole thread.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// Connections that the system keeps until they are accepted: a burst of newcomers waits here and not for their systems' next
/// attempt, a second later.
const BACKLOG: i32 = 4096;

/// Accepted before the connections that are open have a turn: far fewer than a network may have, so that a request is read and
/// answered before as many newcomers could end it.
const ACCEPTED_AT_ONCE: u32 = 8;

/// Bytes that the system keeps unsent for a connection. More would hide for minutes that a slow client takes bytes.
const UNSENT_BYTES: u32 = 128 << 10;

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Connections at once.
    pub(crate) connections: usize,
    /// Of one network: an IPv4 address or an IPv6 /64. Clients behind one proxy share them.
    pub(crate) of_network: usize,
    /// Connections without credentials at once.
    pub(crate) anonymous: usize,
    /// How long a connection without credentials lasts, from TLS to the end of its answer.
    pub(crate) anonymous_time: Duration,
    /// For TLS, and again for the head of a request.
    pub(crate) head: Duration,
    /// How long a client may take none of the bytes that are sent to it.
    pub(crate) write: Duration,
}

/// A running server. Dropped, it stops at once.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Accepts nothing new, and ends requests that have begun, within `patience`.
    pub(crate) fn stop(mut self, patience: Duration) {
        self.end(patience);
    }

    fn end(&mut self, patience: Duration) {
        // A thread that has ended receives nothing.
        let _ = self.stop.take().map(|stop| stop.send(patience));
        if let Some(thread) = self.thread.take() {
            // One that has panicked has ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Serves on a thread of its own. `make` builds the service on that thread; connections that it serves end early once it is
/// notified. `probes` is for plain HTTP: under TLS the first bytes tell nothing.
///
/// # Errors
/// When the operating system gives no thread, or does not listen.
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
                SockRef::from(&listener).listen(BACKLOG)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                io::Result::Ok((listener, make(Rc::clone(&draining)).await?))
            };
            match ready.await {
                Err(error) => _ = started.send(Err(error)),
                Ok((listener, serve)) => {
                    // `start` waits for this.
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
            biased;
            patience = &mut stopped => break patience.unwrap_or_default(),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, address)) => {
                doors.receive(socket, address);
                // A crowd of newcomers does not keep the connections before it from their turns.
                at_once += 1;
                if at_once == ACCEPTED_AT_ONCE {
                    at_once = 0;
                    tokio::task::yield_now().await;
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    };
    drop(listener);
    draining.notify_waiters();
    doors.end_anonymous();
    // What has not ended by then ends with the thread.
    let _ = timeout(patience, doors.emptied()).await;
}

/// The connections of a server: those whose first bytes have not come, those of probes, and all others. Each kind has its bounds,
/// so that none ends for a connection of another kind.
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

    /// Serves a new connection, or closes it where there is no room.
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

/// Connections of one kind, in the order in which they came.
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

    /// Enters a connection, for which another may end; `None` where there is no room.
    fn admit(self: &Rc<Self>, address: SocketAddr) -> Option<(Entry, Rc<Connection>)> {
        let network = admission::network(address.ip());
        let facts = |(id, connection): (&u64, &Rc<Connection>)| Facts {
            id: *id,
            network: connection.network(),
            is_anonymous: connection.is_anonymous(),
            step: connection.step(),
            idle: connection.idle(),
        };
        let open: Vec<Facts> = self.connections.borrow().iter().map(facts).collect();
        match admit(network, &open, &self.bounds) {
            Admission::Room => {}
            Admission::Instead(id) => {
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

    /// Serves a connection, or closes it where there is no room.
    fn take(self: &Rc<Self>, socket: tokio::net::TcpStream, address: SocketAddr, serve: &Serve) {
        let Some((entry, connection)) = self.admit(address) else { return };
        // Without these options answers are slower, and clients may be too: no reason to turn one away.
        let options = SockRef::from(&socket);
        let _ = options.set_tcp_nodelay(true).and_then(|()| options.set_tcp_notsent_lowat(UNSENT_BYTES));
        let stream = Stream::new(socket, Rc::clone(&connection), self.bounds.write);
        let anonymous_time = self.bounds.anonymous_time;
        let served = serve(stream, address);
        actix_web::rt::spawn(async move {
            let _entry = entry;
            tokio::select! {
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

/// A connection's place among those that are open; dropped with its task, however that ends.
struct Entry {
    open: Rc<Open>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.open.connections.borrow_mut().remove(&self.id);
        self.open.ended.notify_one();
    }
}
