//! Compaction: merges small segments. Every run of a study leaves a segment, and 100 short studies should not leave 100 open
//! files. Segments of one user are merged with each other only, so that each counts against one quota.
//!
//! Duplicate and buried records are not copied. Copies are synced before the originals are removed. This is the only place
//! where the cache waits for an fsync.

use crate::eviction::{Limits, Room, SpaceRequest, make_room};
use crate::folder::Folder;
use crate::index::Index;
use crate::label::UserTag;
use crate::record::HEADER_BYTES;
use crate::segment::{RecordLocation, START, Segment};
use crate::writer::new_segment;
use pleach_files::OpenFile;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Minimum number of small segments to merge: merging fewer would copy the same entries at every open.
pub(crate) const SMALL_SEGMENTS: usize = 16;

/// Divisor for small segments: below 1/4 of the maximum segment size.
const SMALL_PART: u64 = 4;

/// A closed segment that may be merged.
#[derive(Debug)]
pub(crate) struct SealedSegment {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) used_seconds: u64,
    pub(crate) user: UserTag,
}

/// Merges the small segments of each user among `closed` if there are many and their entries have space. Returns the
/// segments evicted for that. The caller holds the folder lock.
pub(crate) fn merge(
    folder: &Folder,
    lock: &dyn OpenFile,
    limits: Limits,
    index: &mut Index,
    closed: Vec<SealedSegment>,
    now_seconds: u64,
) -> io::Result<Vec<u64>> {
    let mut of_users: BTreeMap<UserTag, Vec<SealedSegment>> = BTreeMap::new();
    closed.into_iter().for_each(|segment| of_users.entry(segment.user).or_default().push(segment));
    let mut all_evicted = Vec::new();
    for (user, mut closed) in of_users {
        // Making space for the segments of one user may have evicted those of another.
        closed.retain(|segment| !all_evicted.contains(&segment.number));
        all_evicted.extend(merge_of_user(folder, lock, limits, index, closed, (user, now_seconds))?);
    }
    Ok(all_evicted)
}

fn merge_of_user(
    folder: &Folder,
    lock: &dyn OpenFile,
    limits: Limits,
    index: &mut Index,
    closed: Vec<SealedSegment>,
    (user, now_seconds): (UserTag, u64),
) -> io::Result<Vec<u64>> {
    let (segment_bytes, limit_bytes) = (limits.segment_bytes(user), limits.bytes);
    let mut sources: Vec<SealedSegment> =
        closed.into_iter().filter(|segment| segment.bytes < segment_bytes / SMALL_PART).collect();
    if sources.len() < SMALL_SEGMENTS {
        return Ok(Vec::new());
    }
    // Merges the least recently used first: the merged segment takes the time of its most recently used source.
    sources.sort_unstable_by_key(|segment| (segment.used_seconds, segment.number));
    let mut bytes = START;
    sources.retain(|segment| {
        // Refused segments count too, so that only the least recently used ones at the start stay.
        bytes += segment.bytes;
        bytes <= segment_bytes
    });
    let bytes = START + sources.iter().map(|segment| segment.bytes).sum::<u64>();
    // Without the quota: the copies exceed it only until their originals are removed.
    let request = SpaceRequest { extra_bytes: bytes, limit_bytes, quota: None, now_seconds };
    let Room::Made(evicted) = make_room(folder, request)? else { return Ok(Vec::new()) };
    let evicted = evicted.numbers;
    evicted.iter().for_each(|number| index.forget(*number));
    // Making space may evict the sources themselves.
    sources.retain(|segment| !evicted.contains(&segment.number));
    let used_seconds = sources.iter().map(|segment| segment.used_seconds).max().unwrap_or(now_seconds);

    let target = Arc::new(new_segment(folder, lock, bytes, (user, used_seconds))?);
    let mut end = START;
    for source in &sources {
        let Some((segment, _)) = index.indexed(source.number) else { continue };
        for place in index.of_segment(source.number) {
            end += copy(&segment, &place, &target, end, index)?;
        }
    }
    target.file.set_length(end)?;
    // Syncs the copies before the originals are removed.
    target.file.sync()?;
    target.file.unlock()?;
    index.know(&target, end);
    // The index drops only entries that still point to a source: copies have replaced the others.
    for source in &sources {
        index.forget(source.number);
        folder.remove(source.number)?;
    }
    Ok(evicted)
}

/// Copies a record to `end`. Returns the bytes copied, 0 if the record is corrupt.
fn copy(
    from: &Segment,
    place: &RecordLocation,
    to: &Segment,
    end: u64,
    index: &mut Index,
) -> io::Result<u64> {
    let Some((header, body)) = from.read(place)? else { return Ok(0) };
    let copied = to.write(end, &header, &body)?;
    index.add(&header, copied);
    Ok(HEADER_BYTES as u64 + place.body_bytes)
}
