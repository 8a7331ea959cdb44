//! Known objects of a cache in object storage, and the traces of its bundles.

use super::ObjectInfo;
use crate::key::CacheKey;
use crate::label::UserTag;
use crate::record::{HEADER_BYTES, Header, Kind, RecordState};
use pleach_regions::Digest;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

const REGIONS: &str = "regions/";
const BUNDLES: &str = "traces/";

/// Returns the name of a region.
pub(super) fn region_name(user: UserTag, digest: &Digest) -> String {
    format!("{REGIONS}{:016x}/{digest}", user.0)
}

/// Returns the name of a bundle, by its content. Equal bundles are the same object.
pub(super) fn bundle_name(user: UserTag, bundle: &[u8]) -> String {
    format!("{BUNDLES}{:016x}/{}", user.0, Digest::of_bytes(bundle))
}

/// Returns the user in the name of an object.
pub(super) fn user_of(name: &str) -> UserTag {
    let digits = name.split('/').nth(1).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    digits.map_or(UserTag::UNKNOWN, UserTag)
}

/// A trace in memory. Its checksum has been verified.
#[derive(Clone, Debug)]
pub(crate) struct StoredTrace {
    pub(super) body: Arc<[u8]>,
    pub(super) tag: u64,
    pub(super) written_seconds: u64,
}

/// An object in storage.
#[derive(Clone, Copy, Debug)]
struct KnownObject {
    bytes: u64,
    written_seconds: u64,
    /// Orders the objects that this process has added within a second.
    number: u64,
}

/// Known objects and traces.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    traces: HashMap<CacheKey, StoredTrace>,
    /// Names of regions by digest.
    regions: HashMap<String, String>,
    objects: HashMap<String, KnownObject>,
    /// Number of objects added.
    added: u64,
    /// Bundles that have been read or written.
    known_bundles: HashSet<String>,
}

impl Contents {
    pub(super) fn trace(&self, key: &CacheKey) -> Option<&StoredTrace> {
        self.traces.get(key)
    }

    /// Returns the name and the bytes of a region's object.
    pub(super) fn region(&self, digest: &Digest) -> Option<(String, u64)> {
        let name = self.regions.get(&digest.to_string())?;
        Some((name.clone(), self.objects.get(name)?.bytes))
    }

    /// Returns the bundles of a listing that have not been read.
    pub(super) fn new_bundles(&self, listed: &[ObjectInfo]) -> Vec<String> {
        let names = listed.iter().map(|object| &object.name);
        names
            .filter(|name| name.starts_with(BUNDLES) && !self.known_bundles.contains(*name))
            .cloned()
            .collect()
    }

    /// Adds the traces of a bundle, up to the first corrupt record. Returns whether all are intact.
    pub(super) fn add_bundle(&mut self, bundle: &[u8]) -> bool {
        let mut rest = bundle;
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let RecordState::Live(header) = RecordState::in_bytes(header) else { return false };
            let Some((body, next)) =
                usize::try_from(header.body_bytes).ok().and_then(|bytes| behind.split_at_checked(bytes))
            else {
                return false;
            };
            if header.kind != Kind::Trace || !header.fits(body) {
                return false;
            }
            self.add_trace(&header, body.to_vec());
            rest = next;
        }
        rest.is_empty()
    }

    pub(super) fn add_trace(&mut self, header: &Header, body: Vec<u8>) {
        let (tag, written_seconds) = (header.tag, header.written_seconds);
        self.traces.insert(CacheKey(header.id), StoredTrace { body: body.into(), tag, written_seconds });
    }

    /// Adds a written object.
    pub(super) fn add(&mut self, name: String, bytes: u64, now_seconds: u64) {
        if let Some(digest) = name.strip_prefix(REGIONS).and_then(|rest| rest.split_once('/')) {
            self.regions.insert(digest.1.to_owned(), name.clone());
        } else {
            self.known_bundles.insert(name.clone());
        }
        self.insert(name, bytes, now_seconds);
    }

    fn insert(&mut self, name: String, bytes: u64, written_seconds: u64) {
        self.added += 1;
        self.objects.insert(name, KnownObject { bytes, written_seconds, number: self.added });
    }

    /// Removes a missing object. Traces stay: they are in memory, and their regions may still exist.
    pub(super) fn forget(&mut self, name: &str) {
        self.objects.remove(name);
        if let Some((_, digest)) = name.strip_prefix(REGIONS).and_then(|rest| rest.split_once('/'))
            && self.regions.get(digest).is_some_and(|known| known == name)
        {
            self.regions.remove(digest);
        }
    }

    /// Replaces the known objects by a listing. `read` are its new bundles.
    pub(super) fn set_listing(&mut self, listed: &[ObjectInfo], read: HashSet<String>) {
        self.objects.clear();
        self.regions.clear();
        for object in listed {
            if object.name.starts_with(REGIONS) {
                self.add(object.name.clone(), object.bytes, object.written_seconds);
            } else {
                self.insert(object.name.clone(), object.bytes, object.written_seconds);
            }
        }
        self.known_bundles.extend(read);
    }

    /// Returns the least recently written objects to remove so that `extra_bytes` more fit into `limit_bytes`: those of a user,
    /// or all.
    pub(super) fn oldest(
        &self,
        user: Option<UserTag>,
        extra_bytes: u64,
        limit_bytes: u64,
    ) -> Vec<(String, u64)> {
        let of_user = |name: &str| name.contains('/') && user.is_none_or(|user| user_of(name) == user);
        let objects = self.objects.iter().filter(|(name, _)| of_user(name));
        let mut objects: Vec<(&String, KnownObject)> =
            objects.map(|(name, object)| (name, *object)).collect();
        let held_bytes: u64 = objects.iter().map(|(_, object)| object.bytes).sum();
        let mut excess = held_bytes.saturating_add(extra_bytes).saturating_sub(limit_bytes);
        if excess == 0 {
            return Vec::new();
        }
        // 1/32 more, as the segments of a folder, so that not every upload removes objects.
        excess += limit_bytes / 32;
        objects.sort_unstable_by_key(|(_, object)| (object.written_seconds, object.number));
        let mut oldest = Vec::new();
        for (name, object) in objects {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(object.bytes);
            oldest.push((name.clone(), object.bytes));
        }
        oldest
    }

    /// Returns the traces, or those of an operation, in no particular order.
    pub(super) fn traces(&self, tag: Option<u64>) -> Vec<(CacheKey, StoredTrace)> {
        let of_tag = self.traces.iter().filter(|(_, stored)| tag.is_none_or(|tag| stored.tag == tag));
        of_tag.map(|(key, stored)| (*key, stored.clone())).collect()
    }

    /// Returns the numbers of traces, regions and bundles.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let bundles = self.objects.keys().filter(|name| name.starts_with(BUNDLES)).count();
        (self.traces.len() as u64, self.regions.len() as u64, bundles as u64)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.objects.values().map(|object| object.bytes).sum()
    }

    pub(super) fn bytes_of_users(&self) -> BTreeMap<UserTag, u64> {
        let mut bytes: BTreeMap<UserTag, u64> = BTreeMap::new();
        for (name, object) in self.objects.iter().filter(|(name, _)| name.contains('/')) {
            *bytes.entry(user_of(name)).or_default() += object.bytes;
        }
        bytes
    }
}
