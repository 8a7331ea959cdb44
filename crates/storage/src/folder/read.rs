//! Reads regions from files, and quarantines corrupt files.
//!
//! The digest is computed while reading. A corrupt file is moved to quarantine, so that it is not read again and an operator
//! can inspect it. Refetching or recomputing the region is left to the caller.

use super::layout::shard_of;
use super::pack::CorruptRecord;
use super::{FolderTier, failed};
use crate::{RegionLoss, TierError};
use pleach_regions::{DataRegion, DecodeError, Decoder, Head, RegionKey};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// 128 KiB fill the lanes of the hash and still fit into the L2 cache.
const PIECE_BYTES: usize = 128 * 1024;

/// Content of a file.
enum Content {
    Region(Arc<DataRegion>),
    /// The file does not exist.
    Nothing,
    Damaged(DecodeError),
}

impl FolderTier {
    pub(super) fn read(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        match self.pack.get(key)? {
            Some(Ok(region)) => return Ok(Some(region)),
            Some(Err(damaged)) => return Err(self.set_aside(key, damaged)),
            None => {}
        }
        let known = self.books.lock().contains(key);
        if !known && !self.is_shared() {
            return Ok(None);
        }
        // Reads without the leaf lock, which would block insertions for the whole read. Only a failure is repeated
        // under it.
        match self.content(&self.layout.region(key))? {
            Content::Region(region) => Ok(Some(region)),
            Content::Nothing if !known => Ok(None),
            Content::Nothing | Content::Damaged(_) => self.read_again(key),
        }
    }

    /// Reads again under the leaf lock: no file of the leaf changes its name here, so an error found now is real.
    fn read_again(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        let path = self.layout.region(key);
        let _held = self.hold(shard_of(key));
        let known = self.books.lock().contains(key);
        if !known && !self.is_shared() {
            return Ok(None); // removed meanwhile
        }
        match self.content(&path)? {
            Content::Region(region) => Ok(Some(region)),
            Content::Nothing => {
                self.books.lock().forget(key);
                // Other processes may remove regions from a shared folder.
                if self.is_shared() {
                    return Ok(None);
                }
                Err(TierError::Lost { key, path, source: RegionLoss::Missing })
            }
            Content::Damaged(source) => self.quarantine(key, path, source),
        }
    }

    fn quarantine(
        &self,
        key: RegionKey,
        path: PathBuf,
        source: DecodeError,
    ) -> Result<Option<Arc<DataRegion>>, TierError> {
        let away = self.layout.quarantined(key, self.unique());
        // If the rename fails, the corrupt file stays, and the region counts as lost all the same.
        let moved = self.files.rename(&path, &away).is_ok();
        // Another process may have replaced the file just before it was moved.
        if moved
            && self.is_shared()
            && let Content::Region(region) = self.content(&away)?
        {
            self.files.rename(&away, &path).map_err(failed("move back", &away))?;
            self.sync_leaf(key)?;
            return Ok(Some(region));
        }
        // The corruption may have changed the length of the file.
        let taken_bytes =
            if moved { self.files.metadata(&away).ok().map(|found| found.disk_bytes) } else { None };
        let mut books = self.books.lock();
        if let Some(bytes) = books.forget(key) {
            books.add_overhead(taken_bytes.unwrap_or(bytes));
        }
        Err(TierError::Lost {
            key,
            path,
            source: RegionLoss::Damaged { quarantined: moved.then_some(away), source },
        })
    }

    /// Quarantines the content of a corrupt packed region.
    fn set_aside(&self, key: RegionKey, damaged: CorruptRecord) -> TierError {
        let CorruptRecord { path, body, source } = damaged;
        let away = self.layout.quarantined(key, self.unique());
        // Not synced: the copy is only for inspection by an operator.
        let write = || {
            let mut file = self.files.create(&away)?;
            file.write_all(&body)?;
            Ok::<_, io::Error>(self.files.metadata(&away)?.disk_bytes)
        };
        let taken_bytes = write();
        if let Ok(bytes) = taken_bytes {
            self.books.lock().add_overhead(bytes);
        }
        self.count_packed();
        TierError::Lost {
            key,
            path,
            source: RegionLoss::Damaged { quarantined: taken_bytes.is_ok().then_some(away), source },
        }
    }

    fn content(&self, path: &Path) -> Result<Content, TierError> {
        let (mut file, length_bytes) = match self.files.open(path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Nothing),
            Err(error) => return Err(failed("read", path)(error)),
        };
        let decoded = decode(&mut *file, length_bytes).map_err(failed("read", path))?;
        Ok(decoded.map_or_else(Content::Damaged, |region| Content::Region(Arc::new(region))))
    }
}

/// Decodes a file of `length_bytes`.
pub(super) fn decode(file: &mut dyn Read, length_bytes: u64) -> io::Result<Result<DataRegion, DecodeError>> {
    let mut head = Head([0; Head::BYTES]);
    match file.read_exact(&mut head.0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Ok(Err(DecodeError::NoHeader {
                bytes: usize::try_from(length_bytes).unwrap_or(usize::MAX),
            }));
        }
        read => read?,
    }
    let mut decoder = match Decoder::new(&head) {
        Ok(decoder) => decoder,
        Err(error) => return Ok(Err(error)),
    };
    let length = usize::try_from(length_bytes.saturating_sub(Head::BYTES as u64)).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    // A failed reservation is an error of this read. An ordinary allocation would abort the process.
    body.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    while body.len() < length {
        let from = body.len();
        let piece_bytes = PIECE_BYTES.min(length - from) as u64;
        if Read::take(&mut *file, piece_bytes).read_to_end(&mut body)? == 0 {
            break; // it has become shorter; the length tells
        }
        decoder.see(&body[from..]);
    }
    Ok(decoder.finish(body))
}
