//! Accept loop of the HTTP servers.
//!
//! A server has one thread. The loop accepts every connection at once; where there are too many, of all clients or of one network,
//! [`admission`] names the connection that ends for the newcomer. A client that stops reading is disconnected ([`stream`]).
//! Until a client has shown credentials it gets one answer, within [`Bounds::anonymous_time`], and a few KiB of its requests
//! are read. HTTP itself is actix's; which requests need credentials is up to the servers.

mod admission;
mod connection;
mod service;
mod stream;

pub(crate) use connection::Connection;
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
const BACKLOG: i32 = 1024;

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
/// notified.
///
/// # Errors
/// When the operating system gives no thread, or does not listen.
pub(crate) fn start<M, F>(name: &str, listener: TcpListener, bounds: Bounds, make: M) -> io::Result<Server>
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
                    run(listener, bounds, &serve, &draining, stopped).await;
                }
            }
        });
    })?;
    has_started.recv().map_err(io::Error::other)??;
    Ok(Server { stop: Some(stop), thread: Some(thread) })
}

async fn run(
    listener: tokio::net::TcpListener,
    bounds: Bounds,
    serve: &Serve,
    draining: &Notify,
    mut stopped: oneshot::Receiver<Duration>,
) {
    let open = Rc::new(Open::default());
    let patience = loop {
        let accepted = tokio::select! {
            biased;
            patience = &mut stopped => break patience.unwrap_or_default(),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, address)) => {
                open.take(socket, address, bounds, serve);
                // A crowd of newcomers does not keep the connections before it from their turns.
                tokio::task::yield_now().await;
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    };
    drop(listener);
    draining.notify_waiters();
    open.end_anonymous();
    // What has not ended by then ends with the thread.
    let _ = timeout(patience, open.emptied()).await;
}

/// The connections of a server, in the order in which they came.
#[derive(Default)]
struct Open {
    connections: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next: Cell<u64>,
    ended: Notify,
}

impl Open {
    /// Serves a new connection, or closes it where there is no room.
    fn take(
        self: &Rc<Self>,
        socket: tokio::net::TcpStream,
        address: SocketAddr,
        bounds: Bounds,
        serve: &Serve,
    ) {
        let network = admission::network(address.ip());
        let facts = |(id, connection): (&u64, &Rc<Connection>)| Facts {
            id: *id,
            network: connection.network(),
            is_anonymous: connection.is_anonymous(),
            is_answered: connection.is_answered(),
            idle: connection.idle(),
        };
        let open: Vec<Facts> = self.connections.borrow().iter().map(facts).collect();
        match admit(network, &open, &bounds) {
            Admission::Room => {}
            Admission::Instead(id) => {
                if let Some(connection) = self.connections.borrow_mut().remove(&id) {
                    connection.end();
                }
            }
            Admission::Full => return,
        }
        // Without these options answers are slower, and clients may be too: no reason to turn one away.
        let options = SockRef::from(&socket);
        let _ = options.set_tcp_nodelay(true).and_then(|()| options.set_tcp_notsent_lowat(UNSENT_BYTES));
        let connection = Rc::new(Connection::new(network));
        let stream = Stream::new(socket, Rc::clone(&connection), bounds.write);
        let id = self.next.replace(self.next.get() + 1);
        self.connections.borrow_mut().insert(id, Rc::clone(&connection));
        let entry = Entry { open: Rc::clone(self), id };
        let served = serve(stream, address);
        actix_web::rt::spawn(async move {
            let _entry = entry;
            tokio::select! {
                () = served => {}
                () = connection.ended() => {}
                () = connection.expired(bounds.anonymous_time) => {}
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
