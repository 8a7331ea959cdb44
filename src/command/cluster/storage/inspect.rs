//! `pleach storage ls` and `verify`: list the regions of tiers and verify their checksums.

use super::opened;
use crate::cli::TierArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use crate::tiers::OpenTier;
use pleach_planner::memory_size::human;
use pleach_storage::{RegionFile, RegionLoss, TierError};
use serde::Serialize;
use std::path::PathBuf;
use std::time::SystemTime;

/// Contents of one tier.
#[derive(Debug, Serialize)]
struct ListedTier {
    tier: String,
    held_bytes: u64,
    capacity_bytes: u64,
    regions: Vec<Region>,
}

#[derive(Debug, Serialize)]
struct Region {
    key: String,
    taken_bytes: u64,
    age_seconds: u64,
    /// Whether the region shares a segment with others.
    packed: bool,
}

/// Runs `pleach storage ls`.
pub(super) fn list(args: &TierArgs) -> CommandResult {
    let tiers: Vec<ListedTier> =
        opened(args)?.iter().map(listed).collect::<Result<_, _>>().map_err(CommandError::input)?;
    if args.json {
        return print_json(&tiers);
    }
    for tier in tiers {
        let (held, capacity) = (human(tier.held_bytes), human(tier.capacity_bytes));
        let count = tier.regions.len();
        print_line(&format!("{}: {count} regions, {held} of {capacity}", tier.tier));
        for region in tier.regions {
            let (bytes, age) = (human(region.taken_bytes), format!("{} s", region.age_seconds));
            let packed = if region.packed { "packed" } else { "" };
            print_line(format!("  {}  {bytes:>8}  {age:>10}  {packed}", region.key).trim_end());
        }
    }
    Ok(())
}

fn listed(opened: &OpenTier) -> Result<ListedTier, TierError> {
    let now = SystemTime::now();
    let tier = &opened.level.tier;
    let region = |region: RegionFile| Region {
        key: region.key.to_string(),
        taken_bytes: region.disk_bytes,
        age_seconds: now.duration_since(region.modified).unwrap_or_default().as_secs(),
        packed: region.is_packed,
    };
    let regions = opened.upkeep.inventory()?.into_iter().map(region).collect();
    let (held_bytes, capacity_bytes) = (tier.held_bytes(), tier.capacity_bytes());
    Ok(ListedTier { tier: opened.level.name.clone(), held_bytes, capacity_bytes, regions })
}

/// Result of verifying one tier.
#[derive(Debug, Default, Serialize)]
struct Verified {
    tier: String,
    intact: u64,
    bytes: u64,
    corrupt: Vec<Damaged>,
}

#[derive(Debug, Serialize)]
struct Damaged {
    key: String,
    problem: String,
    /// Path in the quarantine folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined: Option<PathBuf>,
}

/// Runs `pleach storage verify`.
pub(super) fn verify(args: &TierArgs) -> CommandResult {
    let tiers: Vec<Verified> =
        opened(args)?.iter().map(verified).collect::<Result<_, _>>().map_err(CommandError::input)?;
    let damaged: usize = tiers.iter().map(|tier| tier.corrupt.len()).sum();
    if args.json {
        print_json(&tiers)?;
    } else {
        for tier in &tiers {
            print_line(&format!("{}: {} regions are intact ({})", tier.tier, tier.intact, human(tier.bytes)));
            tier.corrupt.iter().for_each(|damaged| print_line(&format!("  {}", damaged.problem)));
        }
    }
    if damaged > 0 {
        return Err(CommandError::SomeFailed(format!(
            "{damaged} regions are corrupt and were removed from their tiers"
        )));
    }
    Ok(())
}

/// Reads every region of a tier.
fn verified(opened: &OpenTier) -> Result<Verified, TierError> {
    let tier = &opened.level.tier;
    let mut found = Verified { tier: opened.level.name.clone(), ..Verified::default() };
    for key in tier.list()? {
        match tier.get(key) {
            Ok(Some(region)) => {
                found.intact += 1;
                found.bytes += region.bytes();
            }
            // Another process has removed the region since the listing.
            Ok(None) => {}
            Err(error) => {
                let quarantined = match &error {
                    TierError::Lost { source: RegionLoss::Damaged { quarantined, .. }, .. } => {
                        quarantined.clone()
                    }
                    _ => None,
                };
                let (key, problem) = (key.to_string(), error.to_string());
                found.corrupt.push(Damaged { key, problem, quarantined });
            }
        }
    }
    Ok(found)
}
