//! Uploads input files that the manager is missing.
//!
//! The client sends only files that the study reads, whatever the manager requests. The manager verifies the content by
//! its digest.

use super::Client;
use super::error::SubmitError;
use super::transfer::TransferProgress;
use super::wait::InterruptibleWait;
use pleach_api::digest::InputDigest;
use pleach_api::submission::InputFile;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};

/// Sends each of the missing files.
///
/// # Errors
/// [`SubmitError`] if a file is unreadable or has changed, or a request fails.
pub(crate) fn missing(
    client: &Client,
    inputs: &[InputFile],
    missing: &[InputDigest],
    transfer: &dyn TransferProgress,
) -> Result<(), SubmitError> {
    let by_digest: HashMap<InputDigest, &InputFile> = inputs.iter().map(|file| (file.digest, file)).collect();
    let wanted = missing
        .iter()
        .map(|digest| by_digest.get(digest).copied().ok_or(SubmitError::ForeignFile { digest: *digest }));
    // All requests are checked before the first file is sent: a manager must not obtain other files of the client.
    let wanted = wanted.collect::<Result<Vec<_>, SubmitError>>()?;
    transfer.begin(wanted.iter().map(|file| file.bytes).sum());
    wanted.iter().try_for_each(|file| send(client, file, transfer))
}

fn send(client: &Client, file: &InputFile, transfer: &dyn TransferProgress) -> Result<(), SubmitError> {
    let unreadable = |cause| SubmitError::Unreadable { file: file.path.clone(), cause };
    let changed = || SubmitError::Changed { file: file.path.clone() };
    // Check before sending: the request announces this length.
    if File::open(&file.path).and_then(|file| file.metadata()).map_err(unreadable)?.len() != file.bytes {
        return Err(changed());
    }
    let before = transfer.position();
    let sent = client.put(&file.digest.to_string(), file.bytes, &|| {
        transfer.back_to(before);
        let file = File::open(&file.path)?.take(file.bytes);
        Ok(Box::new(Watched { file, transfer, waiting: client.waiting() }))
    })?;
    sent.map_err(|refusal| match refusal.status {
        422 => changed(),
        _ => SubmitError::RefusedFile { manager: client.manager.clone(), file: file.path.clone(), refusal },
    })
}

/// Reader that advances the transfer bar and fails after an interruption.
struct Watched<'a> {
    file: io::Take<File>,
    transfer: &'a dyn TransferProgress,
    waiting: &'a InterruptibleWait,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.waiting.check().is_err() {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.file.read(buffer)?;
        self.transfer.advance(read as u64);
        Ok(read)
    }
}
