//! Socket that fails when its client stops reading, and that reads no more than the server can answer.
//!
//! While a write waits, reads wait too. Otherwise the requests of a client that reads no answers would accumulate.
//! From a client without credentials, at most [`ANONYMOUS_BYTES`] are read before it is answered. Bytes count as sent
//! once the operating system has buffered them. The accept loop limits this buffer.

use super::Connection;
use super::admission::Step;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// 48 KiB read from a client without credentials before its answer: the TLS handshake and the longest head that
/// clients send, with a certificate chain and a token.
const ANONYMOUS_BYTES: u64 = 48 << 10;

/// 500 ms, after which the server has certainly had a turn: it examines requests as it reads them, on a thread that
/// never blocks.
const TURN: Duration = Duration::from_millis(500);

/// Socket of a server.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: TcpStream,
    connection: Rc<Connection>,
    /// Maximum duration of a write without progress.
    patience: Duration,
    /// Timer of the waiting write.
    stall: Option<Pin<Box<Sleep>>>,
    /// Timer for the server's turn, once [`ANONYMOUS_BYTES`] of a client without credentials have been read.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(super) fn new(socket: TcpStream, connection: Rc<Connection>, patience: Duration) -> Self {
        Self { socket, connection, patience, stall: None, pause: None }
    }

    /// Returns the connection of this socket.
    pub(crate) fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    fn written(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.connection.is_stalled.set(written.is_pending());
        if written.is_ready() {
            // The next wait gets a new timer: any progress shows that the client still reads.
            self.stall = None;
            self.connection.moved();
            return written;
        }
        let patience = self.patience;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(patience)));
        stall.as_mut().poll(cx).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let connection = Rc::clone(&self.connection);
        if connection.is_stalled.get() {
            // The waiting write wakes the task.
            return Poll::Pending;
        }
        if connection.received.get() >= ANONYMOUS_BYTES
            && connection.is_anonymous()
            && connection.step() == Step::Arriving
        {
            // The server gets a turn to examine the received bytes, which may contain credentials. TLS reads again in
            // the same turn, so a count of calls cannot separate turns. A timer can.
            let pause = self.pause.get_or_insert_with(|| {
                cx.waker().wake_by_ref();
                Box::pin(sleep(TURN))
            });
            return pause.as_mut().poll(cx).map(|()| Err(ErrorKind::ConnectionAborted.into()));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, into);
        let bytes = into.filled().len() - before;
        if bytes > 0 {
            connection.moved();
            connection.received.set(connection.received.get() + bytes as u64);
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bytes);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
