//! `pleach storage bench`: measures the throughput of tiers, beside plain files in the same folder.
//!
//! Each region is read right after it was written. Reads from a folder therefore come from the page cache where they
//! fit.

use super::opened;
use crate::cli::BenchArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use crate::tiers::OpenTier;
use pleach_regions::{DataRegion, Raster, RegionKey};
use pleach_storage::TierError;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Sides of the square test regions: about 16 MB, as a tile, and 768 bytes, as a packed region.
const SIDES_PX: [u32; 2] = [2309, 16];

/// Maximum number of regions, because each insert waits for the medium.
const MAX_REGIONS: u64 = 2000;

/// Measurement of one tier with regions of one size.
#[derive(Debug, Serialize)]
struct Measured {
    tier: String,
    region_bytes: u64,
    regions: u64,
    insert_gb_per_second: f64,
    get_gb_per_second: f64,
    insert_per_second: f64,
    get_per_second: f64,
    /// Throughput of as many plain files in the same folder, each synced. `None` for object storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    plain_write_gb_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plain_read_gb_per_second: Option<f64>,
}

/// Runs the command.
pub(super) fn execute(args: &BenchArgs) -> CommandResult {
    let mut all = Vec::new();
    for opened in opened(&args.tiers)? {
        for side_px in SIDES_PX {
            all.push(measure(&opened, side_px, args.size.bytes()).map_err(CommandError::input)?);
        }
    }
    if args.tiers.json {
        return print_json(&all);
    }
    for one in all {
        let plain = match (one.plain_write_gb_per_second, one.plain_read_gb_per_second) {
            (Some(write), Some(read)) => {
                format!("; plain files: write and sync {write:.3} GB/s, read {read:.3} GB/s")
            }
            _ => String::new(),
        };
        print_line(&format!(
            "{}: {} regions of {} bytes: insert {:.3} GB/s ({:.0} per second), get {:.3} GB/s ({:.0} per second){plain}",
            one.tier,
            one.regions,
            one.region_bytes,
            one.insert_gb_per_second,
            one.insert_per_second,
            one.get_gb_per_second,
            one.get_per_second,
        ));
    }
    Ok(())
}

/// Returns a region of incompressible noise, different for each number.
fn region(number: u64, side_px: u32) -> Result<DataRegion, TierError> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut data = vec![0; (side_px * side_px * 3) as usize];
    for piece in data.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        piece.copy_from_slice(&state.to_le_bytes()[..piece.len()]);
    }
    let raster = Raster::new(side_px, side_px, 3, data);
    raster
        .map(DataRegion::Bgr8)
        .map_err(|error| failed("make regions for", Path::new("bench"))(io::Error::other(error)))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TierError {
    move |source| TierError::Io { action, path: path.to_owned(), source }
}

/// Returns a key that no study uses, made from the time and a number.
fn key(number: u64) -> RegionKey {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(now.as_nanos() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    RegionKey(bytes)
}

fn measure(opened: &OpenTier, side_px: u32, size_bytes: u64) -> Result<Measured, TierError> {
    let tier = &opened.level.tier;
    let region_bytes = u64::from(side_px) * u64::from(side_px) * 3;
    let count = (size_bytes / region_bytes).clamp(1, MAX_REGIONS);
    let regions: Vec<(RegionKey, Arc<DataRegion>)> = (0..count)
        .map(|number| Ok((key(number), Arc::new(region(number, side_px)?))))
        .collect::<Result<_, TierError>>()?;
    let began = Instant::now();
    let mut done = Ok(());
    let mut stored = 0;
    for (key, region) in &regions {
        done = tier.insert(*key, region).map(drop);
        if done.is_err() {
            break;
        }
        stored += 1;
    }
    let insert_seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let read = regions[..stored].iter().try_for_each(|(key, _)| tier.get(*key).map(drop));
    let get_seconds = began.elapsed().as_secs_f64();
    // Remove all test regions, also after an error.
    let removed = regions[..stored].iter().try_for_each(|(key, _)| tier.remove(*key).map(drop));
    done.and(read).and(removed)?;
    let plain = opened.folder.as_ref().map(|_| plain(&regions, opened)).transpose()?;
    let (bytes, regions) = ((count * region_bytes) as f64, count);
    Ok(Measured {
        tier: opened.level.name.clone(),
        region_bytes,
        regions,
        insert_gb_per_second: bytes / insert_seconds / 1e9,
        get_gb_per_second: bytes / get_seconds / 1e9,
        insert_per_second: count as f64 / insert_seconds,
        get_per_second: count as f64 / get_seconds,
        plain_write_gb_per_second: plain.map(|(write, _)| bytes / write / 1e9),
        plain_read_gb_per_second: plain.map(|(_, read)| bytes / read / 1e9),
    })
}

/// Returns the seconds to write and sync the regions as plain files, and to read them.
fn plain(regions: &[(RegionKey, Arc<DataRegion>)], opened: &OpenTier) -> Result<(f64, f64), TierError> {
    let Some(folder) = &opened.folder else { return Ok((0.0, 0.0)) };
    let place = tempfile::tempdir_in(folder).map_err(failed("write to", folder))?;
    let path = |number: usize| place.path().join(number.to_string());
    let began = Instant::now();
    for (number, (_, region)) in regions.iter().enumerate() {
        let DataRegion::Bgr8(raster) = &**region else { continue };
        let path = path(number);
        let write = || -> io::Result<()> {
            let mut file = File::create_new(&path)?;
            file.write_all(raster.data())?;
            file.sync_all()
        };
        write().map_err(failed("write", &path))?;
    }
    let write_seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for number in 0..regions.len() {
        std::hint::black_box(fs::read(path(number)).map_err(failed("read", &path(number)))?);
    }
    Ok((write_seconds, began.elapsed().as_secs_f64()))
}
