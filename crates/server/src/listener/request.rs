//! Stream that passes on the head of one request until its client has shown credentials.
//!
//! Bytes behind the head are held back until the request has shown credentials. After the answer to a request without
//! credentials they are read and discarded. So 1,000 requests in a row cost as much as one, and a client that sends a
//! body still gets the error in its head.

use super::admission::Step;
use super::{Connection, Stream};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// 4 KiB per read from clients without credentials.
const PIECE_BYTES: usize = 4 << 10;

/// Stream that belongs to a connection.
pub(crate) trait Connected {
    /// Returns its connection.
    fn connection(&self) -> &Rc<Connection>;
}

impl Connected for Stream {
    fn connection(&self) -> &Rc<Connection> {
        Self::connection(self)
    }
}

impl Connected for TlsStream<Stream> {
    fn connection(&self) -> &Rc<Connection> {
        self.get_ref().0.connection()
    }
}

/// Detector for the end of a request's head: the first empty line behind a non-empty line. Lines end with or without
/// a carriage return, as HTTP parsers accept them.
#[derive(Debug, Default)]
struct Head {
    has_begun: bool,
    /// Whether the present line has a character.
    is_in_line: bool,
}

impl Head {
    /// Scans more bytes. Returns the number of them that belong to the head if the head ends among them.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' if self.has_begun && !self.is_in_line => return Some(at + 1),
                b'\n' => self.is_in_line = false,
                b'\r' => {}
                _ => (self.has_begun, self.is_in_line) = (true, true),
            }
        }
        None
    }
}

/// Stream of one connection, which begins without credentials.
#[derive(Debug)]
pub(super) struct OneRequest<T> {
    stream: T,
    head: Head,
    /// Bytes read behind the head.
    rest: Vec<u8>,
}

impl<T: Connected + AsyncRead + Unpin> OneRequest<T> {
    pub(super) fn new(stream: T) -> Self {
        Self { stream, head: Head::default(), rest: Vec::new() }
    }

    pub(super) fn stream(&self) -> &T {
        &self.stream
    }

    fn poll_head(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; PIECE_BYTES];
        // Reads no more than `into` can take, because the whole piece may belong to the head.
        let mut piece = ReadBuf::new(&mut bytes[..PIECE_BYTES.min(into.remaining())]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut piece))?;
        let piece = piece.filled();
        let end = self.head.end(piece);
        if end.is_some() {
            self.stream.connection().asks();
        }
        let (head, rest) = piece.split_at(end.unwrap_or(piece.len()));
        into.put_slice(head);
        // At most one piece: behind the head, the step is `Asking`, and this function is not called again.
        self.rest.extend_from_slice(rest);
        Poll::Ready(Ok(()))
    }

    /// Reads and discards all bytes until the client closes its side.
    fn poll_forget(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; PIECE_BYTES];
        loop {
            let mut piece = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: Connected + AsyncRead + Unpin> AsyncRead for OneRequest<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let connection = self.stream.connection();
        if !connection.is_anonymous() {
            if self.rest.is_empty() {
                return Pin::new(&mut self.stream).poll_read(cx, into);
            }
            let bytes = self.rest.len().min(into.remaining());
            into.put_slice(&self.rest[..bytes]);
            // The bytes behind the head come before new ones of the stream: they begin the body.
            self.rest.drain(..bytes);
            return Poll::Ready(Ok(()));
        }
        match connection.step() {
            Step::Arriving => self.poll_head(cx, into),
            Step::Asking => {
                connection.wake_when_classified(cx.waker());
                Poll::Pending
            }
            Step::Answered => self.poll_forget(cx),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for OneRequest<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn head_ends_with_an_empty_line_behind_a_request() {
        for (text, head) in [
            ("GET / HTTP/1.1\r\nHost: m\r\n\r\nGET", Some(27)),
            ("GET / HTTP/1.1\nHost: m\n\nGET", Some(24)),
            ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", Some(22)),
            ("GET / HTTP/1.1\r\nHost: m\r\n", None),
            ("\r\n\r\n", None),
        ] {
            assert_eq!(Head::default().end(text.as_bytes()), head, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn head_that_comes_in_pieces_ends_where_it_ends(
            text in "[ab\r\n]{0,40}",
            cut in 0_usize..41,
        ) {
            let bytes = text.as_bytes();
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let mut head = Head::default();
            let pieces = head.end(first).or_else(|| head.end(second).map(|end| first.len() + end));
            prop_assert_eq!(pieces, Head::default().end(bytes));
        }
    }
}
