//! Appends new entries to the active segment of this process. The segment grows in steps, and a full one is replaced.
//!
//! The writer extends a segment before it writes there, under the folder lock, and only while all files together stay within
//! the limit. The limit therefore holds at every moment for any number of writers. The caller indexes the written entries.

use crate::eviction::{Evicted, Limits, Room, SpaceRequest, make_room};
use crate::folder::Folder;
use crate::label::UserTag;
use crate::record::Header;
use crate::segment::{RecordLocation, START, Segment};
use pleach_files::{OpenFile, OpenMode};
use std::io;
use std::sync::Arc;

/// Extension step: 1 MiB keeps locking rare and the unused end of a short study small.
const STEP_BYTES: u64 = 1 << 20;

/// Maximum number of active segments, one for each user with recent entries. Each may keep 1 MiB of preallocated space.
const MAX_ACTIVE: usize = 8;

/// Appends entries.
#[derive(Debug)]
pub(crate) struct Writer {
    lock: Box<dyn OpenFile>,
    space: Space,
    /// At most one for each user, the last one used last.
    active: Vec<Active>,
}

/// Space of the folder and of its users.
#[derive(Debug)]
struct Space {
    folder: Folder,
    limits: Limits,
    /// Evicted since the last call of [`Writer::take_evicted`].
    evicted: Evicted,
}

/// The active segment of a user, locked by this process.
#[derive(Debug)]
struct Active {
    user: UserTag,
    segment: Arc<Segment>,
    /// Offset of the next record.
    end: u64,
    /// Length of the file.
    reserved: u64,
}

/// Outcome of writing an entry.
#[derive(Debug)]
pub(crate) enum Append {
    Written(Written),
    /// The entry exceeds half of the folder's limit, or eviction cannot free enough space.
    FolderFull,
    /// The entry exceeds half of its user's quota, or evicting the user's other entries cannot free enough of it.
    QuotaFull,
}

/// A written entry.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) location: RecordLocation,
    pub(crate) segment: Arc<Segment>,
    /// Offset of the end of its record.
    pub(crate) end: u64,
}

impl Writer {
    /// Creates a writer without an active segment.
    pub(crate) fn new(folder: Folder, lock: Box<dyn OpenFile>, limits: Limits) -> Self {
        let space = Space { folder, limits, evicted: Evicted::default() };
        Self { lock, space, active: Vec::new() }
    }

    /// Writes an entry of a user.
    ///
    /// # Errors
    /// Returns the system error. Earlier entries stay intact, and nothing more should be written.
    pub(crate) fn append(
        &mut self,
        user: UserTag,
        header: &Header,
        body: &[u8],
        now_seconds: u64,
    ) -> io::Result<Append> {
        let record_bytes = header.record_bytes();
        if START + record_bytes > self.space.limits.bytes / 2 {
            return Ok(Append::FolderFull);
        }
        if self
            .space
            .limits
            .quota(user)
            .is_some_and(|(_, quota_bytes)| START + record_bytes > quota_bytes / 2)
        {
            return Ok(Append::QuotaFull);
        }
        match self.room_for(user, record_bytes, now_seconds)? {
            Room::Made(_) => {}
            Room::FolderFull => return Ok(Append::FolderFull),
            Room::QuotaFull => return Ok(Append::QuotaFull),
        }
        let Some(active) = self.active.last_mut() else { return Ok(Append::FolderFull) };
        assert!(active.user == user, "an entry of {user:?} is written to a segment of {:?}", active.user);
        let (end, reserved) = (active.end + record_bytes, active.reserved);
        assert!(end <= reserved, "a record ends at {end}, and {reserved} bytes of the segment are granted");
        let location = active.segment.write(active.end, header, body)?;
        active.end = end;
        Ok(Append::Written(Written { location, segment: Arc::clone(&active.segment), end: active.end }))
    }

    /// Returns the segments evicted since the last call.
    pub(crate) fn take_evicted(&mut self) -> Evicted {
        std::mem::take(&mut self.space.evicted)
    }

    /// Ensures an active segment of the user with space for a record, as the last one.
    fn room_for(&mut self, user: UserTag, record_bytes: u64, now_seconds: u64) -> io::Result<Room> {
        let segment_bytes = self.space.limits.segment_bytes(user);
        let Some(place) = self.active.iter().position(|active| active.user == user) else {
            return self.begin(user, record_bytes, segment_bytes, now_seconds);
        };
        let active = self.active.remove(place);
        let is_full = active.end + record_bytes > segment_bytes;
        let (end, reserved) = (active.end, active.reserved);
        self.active.push(active);
        if is_full {
            self.close_last()?;
            return self.begin(user, record_bytes, segment_bytes, now_seconds);
        }
        let missing = (end + record_bytes).saturating_sub(reserved);
        if missing == 0 {
            return Ok(Room::Made(Evicted::default()));
        }
        let step = STEP_BYTES.min(segment_bytes.saturating_sub(reserved)).max(missing);
        if let room @ Room::Made(_) = self.lengthen(user, missing, step, now_seconds)? {
            return Ok(room);
        }
        // Evicting all other segments does not suffice. The active segment can be evicted once it is closed.
        self.close_last()?;
        self.begin(user, record_bytes, segment_bytes, now_seconds)
    }

    /// Extends the last active segment by `step` bytes, by `missing` if `step` does not fit, or not at all.
    fn lengthen(&mut self, user: UserTag, missing: u64, step: u64, now_seconds: u64) -> io::Result<Room> {
        let _locked = Folder::lock(&*self.lock)?;
        let (room, bytes) = self.space.make_one_of(user, [step, missing], now_seconds)?;
        if let (Room::Made(_), Some(active)) = (&room, self.active.last_mut()) {
            assert!(bytes >= missing, "{bytes} bytes are granted, {missing} are missing");
            active.segment.file.set_length(active.reserved + bytes)?;
            active.reserved += bytes;
        }
        Ok(room)
    }

    /// Creates a segment of the user with space for a record and makes it the last active one.
    fn begin(
        &mut self,
        user: UserTag,
        record_bytes: u64,
        segment_bytes: u64,
        now_seconds: u64,
    ) -> io::Result<Room> {
        if self.active.len() == MAX_ACTIVE {
            // The one that has not been used for longest.
            let active = self.active.remove(0);
            self.close(active)?;
        }
        let needed = START + record_bytes;
        let wanted = STEP_BYTES.min(segment_bytes).max(needed);
        let _locked = Folder::lock(&*self.lock)?;
        let (room, bytes) = self.space.make_one_of(user, [wanted, needed], now_seconds)?;
        if matches!(room, Room::Made(_)) {
            let segment = new_segment(&self.space.folder, &*self.lock, bytes, (user, now_seconds))?;
            assert!(bytes >= needed, "{bytes} bytes are granted, {needed} are needed");
            assert!(
                self.active.iter().all(|active| active.user != user),
                "segment {} begins beside another segment of {user:?}",
                segment.number
            );
            self.active.push(Active { user, segment: Arc::new(segment), end: START, reserved: bytes });
        }
        Ok(room)
    }

    fn close_last(&mut self) -> io::Result<()> {
        self.active.pop().map_or(Ok(()), |active| self.close(active))
    }

    /// Closes an active segment: truncates it to its records and allows its eviction.
    fn close(&self, active: Active) -> io::Result<()> {
        // Needs no folder lock: closing only shrinks the folder, and the segment lock keeps other processes from
        // evicting it.
        let Active { end, reserved, .. } = active;
        assert!((START..=reserved).contains(&end), "a segment ends at {end}, {reserved} bytes are granted");
        if active.end == START {
            self.space.folder.remove(active.segment.number)?;
        } else {
            active.segment.file.set_length(active.end)?;
        }
        // Unlocked last: another process may evict an unlocked segment.
        active.segment.file.unlock()
    }
}

impl Space {
    /// Evicts segments for the first of two numbers of bytes of a user that fits. Returns it, with the reason if neither
    /// fits. The caller holds the folder lock.
    fn make_one_of(
        &mut self,
        user: UserTag,
        [first, second]: [u64; 2],
        now_seconds: u64,
    ) -> io::Result<(Room, u64)> {
        let (limit_bytes, quota) = (self.limits.bytes, self.limits.quota(user));
        let mut made = (Room::FolderFull, 0);
        for extra_bytes in [first, second] {
            let request = SpaceRequest { extra_bytes, limit_bytes, quota, now_seconds };
            made = (make_room(&self.folder, request)?, extra_bytes);
            if let (Room::Made(evicted), _) = &mut made {
                self.evicted.append(std::mem::take(evicted));
                break;
            }
        }
        Ok(made)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After a failure, the next process that opens the folder repairs the segment.
        while !self.active.is_empty() {
            let _ = self.close_last();
        }
    }
}

/// Creates a locked segment of `bytes` bytes. The caller holds the folder lock, and the folder has space for it.
pub(crate) fn new_segment(
    folder: &Folder,
    lock: &dyn OpenFile,
    bytes: u64,
    (user, used_seconds): (UserTag, u64),
) -> io::Result<Segment> {
    let (number, file) = folder.new_segment(lock)?;
    if !file.try_lock()? {
        // Only a holder of the folder lock may lock segments, so no other process can hold this lock.
        return Err(io::Error::other(format!(
            "segment {number} is locked by a process without the folder \
                                             lock"
        )));
    }
    file.set_length(bytes)?;
    let segment = Segment::new(number, file, true);
    segment.begin(user, used_seconds)?;
    Ok(segment)
}

/// Opens a segment for reading, and with `writable` for recording its use. `None` if it does not exist.
pub(crate) fn open_segment(folder: &Folder, number: u64, writable: bool) -> io::Result<Option<Segment>> {
    let how = if writable { OpenMode::Write } else { OpenMode::Read };
    Ok(folder.segment(number, how)?.map(|file| Segment::new(number, file, writable)))
}
