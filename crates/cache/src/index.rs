//! In-memory index of all entries, built from the record headers in segments.
//!
//! Bodies are only on disk. An entry takes about 100 bytes of memory.

use crate::record::{Header, Kind};
use crate::segment::{RecordLocation, Segment};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Entries by kind and id, and their segments.
#[derive(Debug, Default)]
pub(crate) struct Index {
    traces: HashMap<[u8; 32], RecordLocation>,
    blobs: HashMap<[u8; 32], RecordLocation>,
    segments: BTreeMap<u64, IndexedSegment>,
}

/// A segment and the end of its indexed part.
#[derive(Debug)]
struct IndexedSegment {
    segment: Arc<Segment>,
    end: u64,
}

impl Index {
    fn map(&self, kind: Kind) -> &HashMap<[u8; 32], RecordLocation> {
        match kind {
            Kind::Trace => &self.traces,
            Kind::Blob => &self.blobs,
        }
    }

    fn map_mut(&mut self, kind: Kind) -> &mut HashMap<[u8; 32], RecordLocation> {
        match kind {
            Kind::Trace => &mut self.traces,
            Kind::Blob => &mut self.blobs,
        }
    }

    /// Adds a record. The last of several records with one id counts: their content is the same, and an earlier one may have
    /// been replaced because it was corrupt.
    pub(crate) fn add(&mut self, header: &Header, place: RecordLocation) {
        self.map_mut(header.kind).insert(header.id, place);
    }

    /// Adds a segment whose records up to `end` have been indexed.
    pub(crate) fn know(&mut self, segment: &Arc<Segment>, end: u64) {
        let known = || IndexedSegment { segment: Arc::clone(segment), end };
        let slot = self.segments.entry(segment.number).or_insert_with(known);
        assert!(
            slot.segment.number == segment.number,
            "{} is known as {}",
            segment.number,
            slot.segment.number
        );
        slot.end = slot.end.max(end);
    }

    /// Returns a segment and the end of its indexed part. `None` if it is not indexed.
    pub(crate) fn indexed(&self, number: u64) -> Option<(Arc<Segment>, u64)> {
        self.segments.get(&number).map(|known| (Arc::clone(&known.segment), known.end))
    }

    /// Returns the numbers of all indexed segments.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.segments.keys().copied()
    }

    /// Removes a segment and all of its entries.
    pub(crate) fn forget(&mut self, number: u64) {
        if self.segments.remove(&number).is_some() {
            self.traces.retain(|_, place| place.segment != number);
            self.blobs.retain(|_, place| place.segment != number);
        }
    }

    /// Returns whether an entry exists.
    pub(crate) fn contains(&self, kind: Kind, id: &[u8; 32]) -> bool {
        self.map(kind).contains_key(id)
    }

    /// Returns the location of an entry.
    pub(crate) fn find(&self, kind: Kind, id: &[u8; 32]) -> Option<(Arc<Segment>, RecordLocation)> {
        let place = *self.map(kind).get(id)?;
        Some((Arc::clone(&self.segments.get(&place.segment)?.segment), place))
    }

    /// Removes an entry, unless its location has changed.
    pub(crate) fn remove(&mut self, kind: Kind, id: &[u8; 32], place: &RecordLocation) {
        if self.map(kind).get(id) == Some(place) {
            self.map_mut(kind).remove(id);
        }
    }

    /// Returns the traces, or those of an operation, in no particular order.
    pub(crate) fn traces(&self, tag: Option<u64>) -> Vec<([u8; 32], RecordLocation)> {
        let of_tag = self.traces.iter().filter(|(_, place)| tag.is_none_or(|tag| place.tag == tag));
        of_tag.map(|(key, place)| (*key, *place)).collect()
    }

    /// Returns the entries of a segment in file order.
    pub(crate) fn of_segment(&self, number: u64) -> Vec<RecordLocation> {
        let places = self.traces.values().chain(self.blobs.values());
        let mut places: Vec<RecordLocation> =
            places.filter(|place| place.segment == number).copied().collect();
        places.sort_unstable_by_key(|place| place.offset);
        places
    }

    /// Returns the numbers of traces and blobs.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.traces.len() as u64, self.blobs.len() as u64)
    }
}
