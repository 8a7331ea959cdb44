//! Downloads of files in blocks, read on threads that may wait for the disk.

use super::error::ApiError;
use actix_web::HttpResponse;
use actix_web::body::SizedStream;
use actix_web::web::block;
use bytes::Bytes;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// 256 KiB per read: few calls for a file, and little memory for a connection.
const BLOCK_BYTES: u64 = 256 << 10;

/// Number of blocks that are read ahead of the client.
const AHEAD: usize = 2;

/// Returns a response that streams a file. Its length is in the head, so the client notices a truncated file.
///
/// # Errors
/// [`ApiError::Defect`] when the file cannot be opened.
pub(super) async fn file(path: PathBuf) -> Result<HttpResponse, ApiError> {
    let media_type = media_type(&path);
    let fail = |error: &dyn std::fmt::Display| ApiError::Defect(format!("{}: {error}", path.display()));
    let open = path.clone();
    let opened = block(move || {
        let file = File::open(open)?;
        // The length of the open file and not of the path, which another file may replace meanwhile.
        let bytes = file.metadata()?.len();
        io::Result::Ok((file, bytes))
    });
    let (file, bytes) = opened.await.map_err(|error| fail(&error))?.map_err(|error| fail(&error))?;
    let (send, receive) = mpsc::channel(AHEAD);
    actix_web::rt::spawn(read(file, send));
    let body = SizedStream::new(bytes, ReceiverStream::new(receive));
    Ok(HttpResponse::Ok().content_type(media_type).body(body))
}

/// Reads blocks until the end of the file, or until the receiver is gone.
async fn read(mut file: File, send: mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let read = block(move || {
            let mut bytes = Vec::with_capacity(BLOCK_BYTES as usize);
            let read = (&mut file).take(BLOCK_BYTES).read_to_end(&mut bytes);
            (file, read.map(|_| Bytes::from(bytes)))
        });
        let piece;
        (file, piece) = match read.await {
            Ok((_, Ok(bytes))) if bytes.is_empty() => return,
            Ok(read) => read,
            // The body ends before its announced length, so the client notices the failure.
            Err(_) => return,
        };
        let is_over = piece.is_err();
        if send.send(piece).await.is_err() || is_over {
            return;
        }
    }
}

/// Returns the media type of a result file by its extension.
fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => "application/json",
        Some("csv") => "text/csv; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}
