//! Frames on a stream of bytes: a length of 4 bytes in little-endian order, followed by that number of bytes.
//!
//! A length is only a claim. A length beyond the limit is refused before any allocation. Otherwise memory grows as bytes
//! arrive. [`codec`](super::codec) interprets frames, and the reader sets time limits.

use std::io;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of the length before a frame.
pub const HEADER_BYTES: usize = 4;

/// Initial allocation for a frame, 16 KiB. Most frames are shorter. For a longer frame, the memory doubles whenever it is
/// full.
const FIRST_BYTES: usize = 16 << 10;

/// Reason for a missing frame.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The frame claims to exceed the allowed length.
    #[error("frame of {bytes} bytes; at most {allowed} bytes are allowed")]
    TooLong {
        /// Claimed length.
        bytes: usize,
        /// Allowed length.
        allowed: usize,
    },
    /// The stream ends within a frame.
    #[error("the stream ends within a frame")]
    Cut,
    /// The stream is broken.
    #[error("{0}")]
    Stream(#[from] io::Error),
}

/// Appends a frame to the data to send. The codec never creates frames of more than [`u32::MAX`] bytes.
pub fn append(frame: &[u8], to: &mut Vec<u8>) {
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(frame);
}

/// Reads the length of the next frame. Returns `None` at the end of the stream.
///
/// # Errors
/// Returns [`FrameError`].
pub async fn read_length(
    from: &mut (impl AsyncRead + Unpin),
    allowed: usize,
) -> Result<Option<usize>, FrameError> {
    let mut header = [0; HEADER_BYTES];
    let mut read = 0;
    // Not `read_exact`, which cannot distinguish the end of the stream from a truncated frame.
    while read < HEADER_BYTES {
        match from.read(&mut header[read..]).await? {
            0 if read == 0 => return Ok(None),
            0 => return Err(FrameError::Cut),
            more => read += more,
        }
    }
    let bytes = usize::try_from(u32::from_le_bytes(header)).unwrap_or(usize::MAX);
    if bytes > allowed { Err(FrameError::TooLong { bytes, allowed }) } else { Ok(Some(bytes)) }
}

/// Reads the bytes of a frame of this length.
///
/// # Errors
/// Returns [`FrameError::Cut`] and [`FrameError::Stream`].
pub async fn read_body(from: &mut (impl AsyncRead + Unpin), length: usize) -> Result<Vec<u8>, FrameError> {
    let mut frame = Vec::with_capacity(length.min(FIRST_BYTES));
    // Limits the reads, because the next frame may be in the same buffer.
    let mut rest = from.take(length as u64);
    while frame.len() < length {
        if frame.len() == frame.capacity() {
            frame.reserve_exact(frame.len().min(length - frame.len()));
        }
        if rest.read_buf(&mut frame).await? == 0 {
            return Err(FrameError::Cut);
        }
    }
    Ok(frame)
}

/// Reads the next frame. Returns `None` at the end of the stream.
///
/// # Errors
/// Returns [`FrameError`].
pub async fn read(
    from: &mut (impl AsyncRead + Unpin),
    allowed: usize,
) -> Result<Option<Vec<u8>>, FrameError> {
    match read_length(from, allowed).await? {
        Some(length) => read_body(from, length).await.map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::ReadBuf;

    /// Reader that returns a few bytes at a time.
    struct Dribble<'a>(&'a [u8], usize);

    impl AsyncRead for Dribble<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            to: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let count = self.1.min(self.0.len()).min(to.remaining());
            let (now, later) = self.0.split_at(count);
            to.put_slice(now);
            self.0 = later;
            Poll::Ready(Ok(()))
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    proptest! {
        #[test]
        fn frames_round_trip(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6),
                            at_once in 1..64usize) {
            let mut bytes = Vec::new();
            frames.iter().for_each(|frame| append(frame, &mut bytes));
            let read_all = async {
                let mut from = Dribble(&bytes, at_once);
                let mut all = Vec::new();
                while let Some(frame) = read(&mut from, 300).await? {
                    all.push(frame);
                }
                Ok::<_, FrameError>(all)
            };
            prop_assert_eq!(run(read_all).unwrap(), frames);
        }

        /// Arbitrary input in arbitrary pieces: memory never exceeds twice the received bytes.
        #[test]
        fn noise_allocates_nothing_to_speak_of(noise in prop::collection::vec(any::<u8>(), 0..200), at_once in 1..9usize,
                                               claimed in 0..64_000_000u32) {
            let bytes = [&claimed.to_le_bytes()[..], &noise].concat();
            match run(read(&mut Dribble(&bytes, at_once), 16 << 20)) {
                Ok(Some(frame)) => prop_assert!(frame.len() <= noise.len() && frame.capacity() <= FIRST_BYTES),
                Ok(None) => prop_assert!(false, "there was a header"),
                Err(FrameError::TooLong { bytes, .. }) => prop_assert!(bytes > 16 << 20),
                Err(error) => prop_assert!(matches!(error, FrameError::Cut)),
            }
        }
    }

    #[test]
    fn memory_grows_as_bytes_arrive() {
        let long = vec![7; 300_000];
        let frame = run(read_body(&mut Dribble(&long, 1000), long.len())).unwrap();
        assert_eq!((frame.len(), frame.capacity()), (300_000, 300_000));
    }

    #[test]
    fn truncated_frame_is_an_error_not_an_end() {
        for cut in 1..8 {
            let mut bytes = Vec::new();
            append(b"abcd", &mut bytes);
            assert!(matches!(run(read(&mut &bytes[..cut], 4)), Err(FrameError::Cut)));
        }
        assert!(run(read(&mut &[][..], 4)).unwrap().is_none());
    }
}
