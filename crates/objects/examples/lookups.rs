//! Measures a task cache in a folder or a bucket: time to open it, look-ups, loads of regions, and bytes of an entry.
//!
//! `lookups LOCATION TRACES REGIONS` stores entries in a new cache, opens it again, and prints one line of JSON.
//! `benches/cache_lookups.py` calls it.

#![expect(clippy::print_stdout, reason = "the result")]

use pleach_cache::{Access, Cache, KeyComponents, Limits, Output, StudyLabel, Trace};
use pleach_objects::S3Location;
use pleach_regions::{DataRegion, Digest, Raster};
use std::error::Error;
use std::path::Path;
use std::time::{Instant, SystemTime};

/// Side of a stored mask in pixels.
const SIDE_PX: u32 = 512;

fn open(location: &str) -> Result<Cache, Box<dyn Error>> {
    let limits = Limits { bytes: 8 << 30, ..Limits::default() };
    let now = SystemTime::now();
    if location.starts_with("s3://") {
        let bucket = S3Location::parse(location)?;
        let objects = pleach_objects::open_task_cache(&bucket)?;
        return Ok(Cache::open_objects(objects, &bucket.address(), limits, Access::Write, now)?);
    }
    Ok(Cache::open(Path::new(location), limits, now)?)
}

/// A trace like that of a segmentation task, whose outputs are as large as `mask`.
fn trace(number: u32, mask: &DataRegion) -> Trace {
    let digest = |name: u32| Digest::of_bytes(&(number * 4 + name).to_le_bytes());
    let components = KeyComponents {
        operation: "nuclei.candidates".to_owned(),
        version: 1,
        arguments: vec![("G1".to_owned(), number.to_string()), ("FillHoles".to_owned(), "4".to_owned())],
        inputs: vec![("rc".to_owned(), digest(0)), ("recon".to_owned(), digest(1))],
    };
    let label = StudyLabel { study: "nuclei-moat".to_owned(), id: Some(1), user: "alice".to_owned() };
    let outputs = vec![Output::new(mask, digest(2)), Output::new(mask, digest(3))];
    Trace { outputs, seconds: 0.65, components, label: Some(label) }
}

/// A mask of discs on a grid, with about as many edges as nuclei have.
fn mask(number: u32) -> DataRegion {
    let inside = |x: u32, y: u32| {
        let (dx, dy) = (((x + number) % 29).cast_signed() - 14, (y % 31).cast_signed() - 15);
        dx * dx + dy * dy < 100 + (number % 50).cast_signed()
    };
    let pixels = (0..SIDE_PX).flat_map(|y| (0..SIDE_PX).map(move |x| if inside(x, y) { 255 } else { 0 }));
    let raster = Raster::new(SIDE_PX, SIDE_PX, 1, pixels.collect());
    raster.map_or_else(|error| panic!("{error}"), DataRegion::Mask)
}

/// Returns the median and the 99th percentile of the times of calls, in microseconds.
fn times(calls: impl Iterator<Item = bool>) -> (f64, f64, u32) {
    let mut begun = Instant::now();
    let (mut micros, mut hits) = (Vec::new(), 0);
    for hit in calls {
        micros.push(begun.elapsed().as_secs_f64() * 1e6);
        hits += u32::from(hit);
        begun = Instant::now();
    }
    micros.sort_by(f64::total_cmp);
    let at = |share: usize| micros.get(micros.len() * share / 100).copied().unwrap_or(0.0);
    (at(50), at(99), hits)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("lookups LOCATION TRACES REGIONS");
    let (location, traces, regions): (String, u32, u32) = (next()?, next()?.parse()?, next()?.parse()?);
    let stored: Vec<(Digest, DataRegion)> =
        (0..regions).map(mask).map(|region| (region.digest(), region)).collect();
    let one = mask(0);
    let made: Vec<Trace> = (0..traces).map(|number| trace(number, &one)).collect();
    let cache = open(&location)?;
    let begun = Instant::now();
    for (digest, region) in &stored {
        cache.store(digest, region, "alice");
    }
    for trace in &made {
        cache.insert(trace.components.key(), trace);
    }
    let store_seconds = begun.elapsed().as_secs_f64();
    cache.flush();
    let flush_seconds = begun.elapsed().as_secs_f64();
    drop(cache);

    let begun = Instant::now();
    let cache = open(&location)?;
    let open_seconds = begun.elapsed().as_secs_f64();
    let keys: Vec<_> = made.iter().map(|trace| trace.components.key()).collect();
    let (hit_50, hit_99, hits) = times(keys.iter().map(|key| cache.lookup(key).is_some()));
    let absent: Vec<_> = (traces..2 * traces).map(|number| trace(number, &one).components.key()).collect();
    let (miss_50, miss_99, _) = times(absent.iter().map(|key| cache.lookup(key).is_some()));
    let (load_50, load_99, loads) = times(stored.iter().map(|(digest, _)| cache.load(digest).is_some()));
    if (hits, loads) != (traces, regions) {
        return Err(format!("{hits} of {traces} traces and {loads} of {regions} regions found").into());
    }
    let of_traces: u64 = cache.search(&pleach_cache::Query::default()).iter().map(|entry| entry.bytes).sum();
    let region_bytes: u64 =
        stored.iter().map(|(digest, region)| region.encode(digest).len() as u64).sum::<u64>();
    println!(
        "{{\"store_s\": {store_seconds:.3}, \"flush_s\": {flush_seconds:.3}, \"open_s\": {open_seconds:.3}, \
         \"hit_us\": [{hit_50:.1}, {hit_99:.1}], \"miss_us\": [{miss_50:.1}, {miss_99:.1}], \
         \"load_us\": [{load_50:.0}, {load_99:.0}], \"trace_bytes\": {}, \"region_bytes\": {}}}",
        of_traces / u64::from(traces.max(1)),
        region_bytes / u64::from(regions.max(1)),
    );
    Ok(())
}
