//! `pleach storage` lists, verifies, cleans and measures tiers, and refuses invalid requests by name.

use crate::pleach::pleach;
use pleach_regions::{DataRegion, Raster, RegionKey};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Tier};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn key(number: u8) -> RegionKey {
    RegionKey([number; 16])
}

/// A region of `bytes` bytes of gray noise.
fn region(number: u8, bytes: u32) -> Arc<DataRegion> {
    let noise = (0..bytes).map(|place| (place.wrapping_mul(2_654_435_761 + u32::from(number)) >> 24) as u8);
    Arc::new(DataRegion::Gray8(
        Raster::new(bytes, 1, 1, noise.collect()).expect("a tier in a folder of ours"),
    ))
}

fn open(path: &Path) -> FolderTier {
    open_as(FolderKind::Ssd, path)
}

fn open_as(kind: FolderKind, path: &Path) -> FolderTier {
    let settings = FolderSettings::new(kind, 1 << 30).packed();
    FolderTier::open(Arc::new(OsFileSystem), path, settings).expect("a tier in a folder of ours")
}

/// Stores two small regions, which are packed, and two large ones.
fn fill(path: &Path) {
    fs::create_dir(path).expect("a tier in a folder of ours");
    let tier = open(path);
    for (number, bytes) in [(1, 500), (2, 800), (3, 200_000), (4, 300_000)] {
        tier.insert(key(number), &region(number, bytes)).expect("a tier in a folder of ours");
    }
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let answer = pleach(folder, args);
    assert!(matches!(answer.code, 0 | 3), "{answer:?}");
    serde_json::from_str(&answer.stdout).expect("a tier in a folder of ours")
}

#[test]
fn stored_regions_are_listed_and_collected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fill(&folder.join("ssd"));
    let listed = json(folder, &["storage", "ls", "--ssd", "ssd", "--json"]);
    let regions = listed[0]["regions"].as_array().unwrap();
    let packed: Vec<bool> = regions.iter().map(|region| region["packed"].as_bool().unwrap()).collect();
    assert_eq!(packed, [true, true, false, false]);
    assert_eq!(regions[2]["key"], key(3).to_string());
    assert!(regions[2]["taken_bytes"].as_u64().unwrap() >= 200_000);
    let answer = pleach(folder, &["storage", "ls", "--ssd", "ssd"]);
    assert!(
        answer.stdout.starts_with("ssd: 4 regions, ") && answer.stdout.lines().count() == 5,
        "{answer:?}"
    );

    let would = json(folder, &["storage", "gc", "--ssd", "ssd", "--max-size", "1B", "--dry-run", "--json"]);
    assert_eq!((&would[0]["regions"], &would[0]["dry_run"]), (&4.into(), &true.into()));
    let kept = json(folder, &["storage", "gc", "--ssd", "ssd", "--older-than", "1h", "--json"]);
    assert_eq!(kept[0]["regions"], 0);
    let gone = json(folder, &["storage", "gc", "--ssd", "ssd", "--max-size", "1B", "--json"]);
    assert_eq!(gone[0]["regions"], 4);
    assert!(gone[0]["held_bytes"].as_u64() < gone[0]["held_bytes_before"].as_u64());
    assert_eq!(open(&folder.join("ssd")).list().unwrap(), []);
}

/// Two tiers packed regions into a shared folder, and one of them still has it open.
#[test]
fn packed_regions_of_a_shared_folder_are_maintained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shared = folder.join("shared");
    fs::create_dir(&shared).unwrap();
    let [one, other] = [(); 2].map(|()| open_as(FolderKind::Lustre, &shared));
    (0..8).for_each(|number| assert!(one.insert(key(number), &region(number, 5000)).is_ok()));
    (8..12).for_each(|number| assert!(other.insert(key(number), &region(number, 5000)).is_ok()));
    drop(other);
    let listed = json(folder, &["storage", "ls", "--lustre", "shared", "--json"]);
    let regions = listed[0]["regions"].as_array().unwrap();
    assert_eq!(regions.len(), 12);
    assert!(regions.iter().all(|region| region["packed"] == true), "{listed}");
    assert_eq!(one.list().unwrap().len(), 12);
    assert_eq!(listed[0]["held_bytes"], one.held_bytes());
    let verify = |code: i32| {
        let answer = pleach(folder, &["storage", "verify", "--lustre", "shared", "--json"]);
        assert_eq!(answer.code, code, "{answer:?}");
        serde_json::from_str::<Value>(&answer.stdout).unwrap()
    };
    assert_eq!(verify(0)[0]["intact"], 12);
    // Corrupts a record in a segment of the tier that has the folder open.
    let pack = shared.join("pack/0000-");
    let pack = fs::read_dir(shared.join("pack"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().starts_with(&*pack.to_string_lossy()));
    let pack = pack.unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    bytes[300] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let found = verify(3);
    assert_eq!(
        (&found[0]["intact"], &found[0]["corrupt"][0]["key"]),
        (&11.into(), &key(0).to_string().into())
    );
    assert_eq!(verify(0)[0]["intact"], 11);
    assert_eq!(one.get(key(0)).unwrap(), None);

    let gone = json(folder, &["storage", "gc", "--lustre", "shared", "--max-size", "1B", "--json"]);
    assert_eq!((&gone[0]["regions"], &gone[0]["quarantined"]), (&11.into(), &1.into()));
    assert_eq!(one.list().unwrap(), []);
    // The segment of the open tier is compacted once no tier owns it. Then it needs no tombstones.
    drop(one);
    let gone = json(folder, &["storage", "gc", "--lustre", "shared", "--json"]);
    assert!(gone[0]["compacted"].as_u64() > Some(0), "{gone}");
    let packs = fs::read_dir(shared.join("pack")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(packs.filter(|name| name.to_string_lossy().ends_with(".pack")).count(), 0);
}

#[test]
fn corrupt_regions_are_detected_and_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ssd = folder.join("ssd");
    fill(&ssd);
    let whole = json(folder, &["storage", "verify", "--ssd", "ssd", "--json"]);
    assert_eq!((&whole[0]["intact"], &whole[0]["bytes"]), (&4.into(), &501_300.into()));
    let damage = |path: &Path, place: usize| {
        let mut bytes = fs::read(path).unwrap();
        bytes[place] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    damage(&ssd.join(format!("0/4/{}.region", key(4))), 1000);
    let pack = fs::read_dir(ssd.join("pack")).unwrap().next().unwrap().unwrap().path();
    damage(&pack, 300);
    let answer = pleach(folder, &["storage", "verify", "--ssd", "ssd", "--json"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).unwrap();
    let damaged = found[0]["corrupt"].as_array().unwrap();
    let keys: Vec<&str> = damaged.iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys, [key(1).to_string(), key(4).to_string()]);
    assert!(Path::new(damaged[0]["quarantined"].as_str().unwrap()).starts_with("ssd/quarantine"));
    assert_eq!(found[0]["intact"], 2);
    let again = pleach(folder, &["storage", "verify", "--ssd", "ssd"]);
    assert_eq!((again.code, again.stdout.lines().count()), (0, 1), "{again:?}");
    let cleaned = json(folder, &["storage", "gc", "--ssd", "ssd", "--json"]);
    assert_eq!(cleaned[0]["quarantined"], damaged.len());
    assert_eq!(fs::read_dir(ssd.join("quarantine")).unwrap().count(), 0);
}

#[test]
fn tiers_of_a_file_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ["fast", "shared"].iter().for_each(|name| fs::create_dir(folder.join(name)).unwrap());
    let list = "[[tier]]\nkind = \"ssd\"\npath = \"fast\"\ncapacity = \"1GB\"\n\
                [[tier]]\nkind = \"lustre\"\npath = \"shared\"\ncapacity = \"1GB\"\n";
    fs::write(folder.join("tiers.toml"), list).unwrap();
    let measured = json(folder, &["storage", "bench", "--tiers", "tiers.toml", "--size", "20kB", "--json"]);
    let measured = measured.as_array().unwrap();
    assert_eq!(measured.len(), 4);
    for one in measured {
        assert!(one["insert_gb_per_second"].as_f64().unwrap() > 0.0, "{one}");
        assert!(one["plain_write_gb_per_second"].as_f64().unwrap() > 0.0, "{one}");
    }
    // The benchmark leaves no region.
    assert_eq!(open(&folder.join("fast")).list().unwrap(), []);
}

#[test]
fn invalid_tier_options_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("a")).unwrap();
    let refused = |args: &[&str]| {
        let answer = pleach(folder, &[&["storage", "ls"], args].concat());
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
        answer.stderr
    };
    let error = refused(&["--ssd", "none"]);
    let expected = "error: command line: tier 1: path: none: No such file or directory (os error 2); ";
    assert!(error.starts_with(expected), "{error}");
    let error = refused(&["--ssd", "a", "--lustre", "a"]);
    assert!(error.contains("tier 2: path: a: same folder as tier 1; "), "{error}");
    fs::write(folder.join("tiers.toml"), "[[tier]]\nkind = \"tape\"\n").unwrap();
    let error = refused(&["--tiers", "tiers.toml"]);
    assert!(error.starts_with("error: tiers.toml: tier 1: kind: \"tape\" is not allowed; "), "{error}");
    let _open = open(&folder.join("a"));
    assert!(refused(&["--ssd", "a"]).contains("the folder is in use by another tier"));
    assert!(refused(&[]).contains("--ssd"));
}
