//! `pleach storage gc`: deletes expired regions and quarantined files, then compacts segments. Leftovers of killed
//! writers are removed whenever a tier is opened.

use super::opened;
use crate::cli::GcArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use crate::tiers::OpenTier;
use pleach_planner::memory_size::human;
use pleach_storage::{RegionFile, TierError, TierMaintenance};
use serde::Serialize;
use std::time::SystemTime;

/// Regions and files removed from one tier, or to be removed in a dry run.
#[derive(Debug, Default, Serialize)]
struct Cleaned {
    tier: String,
    quarantined: u64,
    regions: u64,
    /// Compacted segments.
    compacted: u64,
    held_bytes_before: u64,
    held_bytes: u64,
    dry_run: bool,
}

/// Runs the command.
pub(super) fn execute(args: &GcArgs) -> CommandResult {
    let tiers = opened(&args.tiers)?;
    let clean = |opened: &OpenTier| {
        let mut cleaned = clean(&*opened.upkeep, args)?;
        cleaned.tier = opened.level.name.clone();
        cleaned.held_bytes = opened.level.tier.held_bytes();
        Ok::<_, TierError>(cleaned)
    };
    let cleaned: Vec<Cleaned> =
        tiers.iter().map(clean).collect::<Result<_, _>>().map_err(CommandError::input)?;
    if args.tiers.json {
        return print_json(&cleaned);
    }
    let would = if args.dry_run { "would remove" } else { "removed" };
    for Cleaned { tier, quarantined, regions, compacted, held_bytes_before, held_bytes, .. } in cleaned {
        let (before, now) = (human(held_bytes_before), human(held_bytes));
        print_line(&format!(
            "{tier}: {would} {regions} regions and {quarantined} quarantined files; compacted {compacted} segments; \
             {before} before, {now} now"
        ));
    }
    Ok(())
}

fn clean(tier: &dyn TierMaintenance, args: &GcArgs) -> Result<Cleaned, TierError> {
    let held_bytes_before = tier.held_bytes();
    let mut cleaned = Cleaned { held_bytes_before, dry_run: args.dry_run, ..Cleaned::default() };
    for file in tier.quarantine_files()? {
        cleaned.quarantined += 1;
        if !args.dry_run {
            tier.discard(&file)?;
        }
    }
    let mut regions = tier.inventory()?;
    // Oldest first: `--max-size` removes regions in this order until the others fit.
    regions.sort_by_key(|region| region.modified);
    // Ages in object storage compare two clocks: this machine's and the server's.
    let now = SystemTime::now();
    let is_old = |region: &RegionFile| {
        let age = now.duration_since(region.modified).unwrap_or_default();
        args.older_than.is_some_and(|limit| age > limit.0)
    };
    let mut held_bytes = tier.held_bytes();
    for region in regions {
        let is_too_much = args.max_size.is_some_and(|max| held_bytes > max.bytes());
        if !is_too_much && !is_old(&region) {
            continue;
        }
        cleaned.regions += 1;
        held_bytes = held_bytes.saturating_sub(region.disk_bytes);
        if !args.dry_run {
            tier.remove(region.key)?;
        }
    }
    if !args.dry_run {
        // After the removals, whose dead bytes in segments it frees.
        cleaned.compacted = tier.compact() as u64;
    }
    Ok(cleaned)
}
