//! Text of the metrics, rendered once for concurrent clients and sent in pieces.
//!
//! Rendering takes milliseconds of a server's only thread. Slow clients share the bytes: a connection owns at most
//! one piece.

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// 16 KiB, copied for each connection: half of the bytes that actix buffers before it waits for the client.
const PIECE_BYTES: usize = 16 << 10;

/// Latest text, with the time when its rendering began.
#[derive(Debug, Default)]
pub(crate) struct Text(Mutex<Option<(Instant, Bytes)>>);

impl Text {
    /// Returns a text with all events before the call. Uses the text of another caller if its rendering began after
    /// the call, otherwise calls `render`. The lock serializes calls of `render`.
    ///
    /// # Errors
    /// The errors of `render`.
    pub(crate) async fn get<E>(&self, render: impl Future<Output = Result<String, E>>) -> Result<Pieces, E> {
        let asked = Instant::now();
        let mut latest = self.0.lock().await;
        if let Some((_, text)) = latest.as_ref().filter(|(began, _)| *began >= asked) {
            return Ok(Pieces(text.clone()));
        }
        let began = Instant::now();
        let text = Bytes::from(render.await?);
        *latest = Some((began, text.clone()));
        Ok(Pieces(text))
    }
}

/// Response body of shared bytes.
#[derive(Debug)]
pub(crate) struct Pieces(Bytes);

impl MessageBody for Pieces {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.0.len() as u64)
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let length = self.0.len().min(PIECE_BYTES);
        Poll::Ready((length > 0).then(|| Ok(self.0.split_to(length))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::sync::Notify;

    #[actix_web::test]
    async fn text_asked_for_at_once_is_rendered_twice() {
        let (text, rendered, go) = (Text::default(), Cell::new(0), Notify::new());
        let render = || async {
            rendered.set(rendered.get() + 1);
            go.notified().await;
            Ok::<_, Infallible>(rendered.get().to_string())
        };
        let all = async {
            let get = || async { text.get(render()).await.unwrap().0 };
            tokio::join!(get(), get(), get(), get())
        };
        let release = async {
            go.notify_one();
            tokio::task::yield_now().await;
            go.notify_one();
        };
        let (shown, ()) = tokio::join!(all, release);
        // The last three clients asked during the first rendering, so they share the second one.
        assert_eq!([&shown.0[..], &shown.1, &shown.2, &shown.3], [b"1", b"2", b"2", b"2"]);
        go.notify_one();
        assert_eq!(text.get(render()).await.unwrap().0, "3", "nothing is shown of the past");
    }
}
