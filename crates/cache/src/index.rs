//! Where every entry is: in memory, made from the headers in segments.
//!
//! What entries say is on disk only; about 100 bytes are kept for each.

use crate::record::{Header, Kind};
use crate::segment::{RecordLocation, Segment};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Entries by kind and id, and the segments they are in.
#[derive(Debug, Default)]
pub(crate) struct Index {
    traces: HashMap<[u8; 32], RecordLocation>,
    blobs: HashMap<[u8; 32], RecordLocation>,
    segments: BTreeMap<u64, Known>,
}

/// A segment, and how far its records are in the index.
#[derive(Debug)]
struct Known {
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

    /// Enters a record. Of several of one id the last one counts: they say the same, and an earlier one may have been
    /// replaced because it was damaged.
    pub(crate) fn add(&mut self, header: &Header, place: RecordLocation) {
        self.map_mut(header.kind).insert(header.id, place);
    }

    /// Knows a segment whose records up to `end` have been added.
    pub(crate) fn know(&mut self, segment: &Arc<Segment>, end: u64) {
        let known = || Known { segment: Arc::clone(segment), end };
        let slot = self.segments.entry(segment.number).or_insert_with(known);
        slot.end = slot.end.max(end);
    }

    /// Up to where a segment is known.
    pub(crate) fn known(&self, number: u64) -> Option<(Arc<Segment>, u64)> {
        self.segments.get(&number).map(|known| (Arc::clone(&known.segment), known.end))
    }

    /// The numbers of all segments known.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.segments.keys().copied()
    }

    /// Forgets a segment and everything in it.
    pub(crate) fn forget(&mut self, number: u64) {
        if self.segments.remove(&number).is_some() {
            self.traces.retain(|_, place| place.segment != number);
            self.blobs.retain(|_, place| place.segment != number);
        }
    }

    /// Whether there is an entry.
    pub(crate) fn contains(&self, kind: Kind, id: &[u8; 32]) -> bool {
        self.map(kind).contains_key(id)
    }

    /// Where an entry is.
    pub(crate) fn find(&self, kind: Kind, id: &[u8; 32]) -> Option<(Arc<Segment>, RecordLocation)> {
        let place = *self.map(kind).get(id)?;
        Some((Arc::clone(&self.segments.get(&place.segment)?.segment), place))
    }

    /// Forgets an entry, unless it is elsewhere by now.
    pub(crate) fn remove(&mut self, kind: Kind, id: &[u8; 32], place: &RecordLocation) {
        if self.map(kind).get(id) == Some(place) {
            self.map_mut(kind).remove(id);
        }
    }

    /// The traces of an operation, in no order.
    pub(crate) fn of_operation(&self, tag: u64) -> Vec<([u8; 32], RecordLocation)> {
        let of_tag = self.traces.iter().filter(|(_, place)| place.tag == tag);
        of_tag.map(|(key, place)| (*key, *place)).collect()
    }

    /// The entries of a segment, in the order in which they were written.
    pub(crate) fn of_segment(&self, number: u64) -> Vec<RecordLocation> {
        let places = self.traces.values().chain(self.blobs.values());
        let mut places: Vec<RecordLocation> =
            places.filter(|place| place.segment == number).copied().collect();
        places.sort_unstable_by_key(|place| place.offset);
        places
    }

    /// Traces and blobs there are.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.traces.len() as u64, self.blobs.len() as u64)
    }
}
