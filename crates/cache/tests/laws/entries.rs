//! Test entries, each derived from a number, so that a test can verify the entries that it finds.

use pleach_cache::{Cache, CacheKey, InsertOutcome, KeyComponents, Limits, Output, StudyLabel, Trace};
use pleach_regions::{DataRegion, Digest, Raster, Table};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Limits that no test with few entries reaches.
pub(crate) const AMPLE: Limits = Limits { bytes: 1 << 30, age: None, user_bytes: None };

/// A trace and the data region of its first output.
pub(crate) struct Entry {
    pub(crate) key: CacheKey,
    pub(crate) trace: Trace,
    pub(crate) digest: Digest,
    pub(crate) region: DataRegion,
}

pub(crate) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(crate) fn open(path: &Path) -> Cache {
    Cache::open(path, AMPLE, at(1000)).unwrap()
}

/// Returns the entry of a number. Its region has 1–2,000 pixels and does not compress. Names and tables differ in length.
pub(crate) fn entry(number: u32) -> Entry {
    let mut state = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u32
    };
    let width_px = 1 + random() % 2000;
    let data = (0..width_px).map(|_| random() as u8).collect();
    let region = DataRegion::Gray8(Raster::new(width_px, 1, 1, data).unwrap());
    let digest = region.digest();
    let columns = (0..number % 4).map(|column| (format!("metric {column}"), f64::from(number + column)));
    let table = DataRegion::Table(Table::new(columns));
    let components = KeyComponents {
        operation: ["nuclei.candidates", "nuclei.final-area"][number as usize % 2].to_owned(),
        version: 1,
        arguments: vec![("G1".to_owned(), number.to_string()), ("FillHoles".to_owned(), "4".to_owned())],
        inputs: vec![("rc".to_owned(), Digest::of_bytes(&number.to_le_bytes()))],
    };
    let outputs = vec![Output::new(&region, digest), Output::new(&table, table.digest())];
    let trace = Trace { outputs, seconds: f64::from(number) / 7.0, components, label: None };
    Entry { key: trace.components.key(), trace, digest, region }
}

impl Entry {
    /// Labels the entry with study `study` of `user`.
    pub(crate) fn made_for(mut self, user: &str, study: u32) -> Self {
        let (name, user) = (format!("study-{study}"), user.to_owned());
        self.trace.label = Some(StudyLabel { study: name, id: Some(study), user });
        self
    }

    fn user(&self) -> &str {
        self.trace.label.as_ref().map_or("", |label| &label.user)
    }

    /// Stores the trace, or the region if `blob` is set.
    pub(crate) fn put(&self, cache: &Cache, blob: bool) -> InsertOutcome {
        if blob {
            cache.store(&self.digest, &self.region, self.user())
        } else {
            cache.insert(self.key, &self.trace)
        }
    }

    /// Returns whether the cache has the trace, or the region if `blob` is set. Panics if its content is wrong.
    pub(crate) fn is_in(&self, cache: &Cache, blob: bool) -> bool {
        if blob {
            let found = cache.load(&self.digest);
            assert!(found.as_ref().is_none_or(|region| *region == self.region), "a wrong region");
            found.is_some()
        } else {
            let found = cache.lookup(&self.key);
            assert!(found.as_ref().is_none_or(|trace| *trace == self.trace), "a wrong trace: {found:?}");
            found.is_some()
        }
    }
}

/// Returns the sum of the lengths of all files in a folder.
pub(crate) fn folder_bytes(path: &Path) -> u64 {
    std::fs::read_dir(path).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}
