//! Tests of valid and invalid tier lists.

use super::*;
use std::fs;

fn read(folder: &Path, text: &str) -> Result<TierList, String> {
    let file = folder.join("tiers.toml");
    fs::write(&file, text).unwrap();
    let shown = file.display().to_string();
    TierList::read(&file).map_err(|error| error.to_string().replace(&shown, "FILE"))
}

#[test]
fn tier_list_of_all_kinds_is_read() {
    let folder = tempfile::tempdir().unwrap();
    ["scratch", "slow", "lustre"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
    let text = r#"
        [[tier]]
        kind = "ssd"
        path = "scratch"
        policy = "lru"
        capacity = "2MB"
        reserve = "1MB"
        write = "through"
        [[tier]]
        kind = "hdd"
        path = "slow"
        capacity = "3MB"
        policy = "none"
        durable = true
        [[tier]]
        kind = "lustre"
        path = "lustre"
        capacity = "4MB"
        stripe_count = -1
        stripe_size = "1MiB"
        [[tier]]
        kind = "s3"
        bucket = "studies"
        endpoint = "http://localhost:9000"
        prefix = "a/b"
        capacity = "5TB"
    "#;
    let TierList(tiers) = read(folder.path(), text).unwrap();
    let kinds: Vec<StorageKind> = tiers.iter().map(|tier| tier.kind).collect();
    assert_eq!(kinds, StorageKind::ALL);
    let TierTarget::Folder { path, reserve_bytes, .. } = &tiers[0].target else { panic!() };
    assert_eq!((path, *reserve_bytes), (&folder.path().join("scratch"), 1_000_000));
    assert_eq!(
        (tiers[0].capacity_bytes, tiers[0].write, tiers[0].policy),
        (2_000_000, WriteMode::Through, EvictionPolicy::Lru)
    );
    assert_eq!((tiers[2].write, tiers[2].policy), (WriteMode::Back, EvictionPolicy::CostBenefit));
    // A node's own disk is not durable by default. Shared tiers are always durable.
    let durable = |place: &TierTarget| match place {
        TierTarget::Folder { durability, .. } => Some(*durability == Durability::PowerLoss),
        _ => None,
    };
    let all: Vec<_> = tiers.iter().map(|tier| durable(&tier.target)).collect();
    assert_eq!(all, [Some(false), Some(true), Some(true), None]);
    let TierTarget::Folder { striping, .. } = tiers[2].target else { panic!() };
    assert_eq!(striping, Striping { count: Some(-1), size_bytes: Some(1 << 20) });
    let TierTarget::Bucket(bucket) = &tiers[3].target else { panic!() };
    assert_eq!(bucket.address(), "s3://studies/a/b");
    assert!(tiers[3].kind.is_shared() && !tiers[1].kind.is_shared());
}

#[test]
fn invalid_tier_list_is_refused_with_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    ["a", "a/in", "b"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
    fs::write(at("file"), "").unwrap();
    std::os::unix::fs::symlink("a", at("link")).unwrap();
    let a = "[[tier]]\nkind = \"ssd\"\npath = \"a\"\ncapacity = \"1MB\"\n";
    let bucket = "[[tier]]\nkind = \"s3\"\nbucket = \"abc\"\n";
    let memory = "\"ssd\", \"hdd\", \"lustre\" and \"s3\" are allowed; --memory sets the memory above them";
    let hdd = |path: &str| format!("{a}[[tier]]\nkind = \"hdd\"\npath = \"{path}\"\ncapacity = \"1MB\"\n");
    let s3 = |fields: &str| format!("[[tier]]\nkind = \"s3\"\ncapacity = \"1MB\"\n{fields}\n");
    let shown = |name: &str| at(name).display().to_string();
    let cases = [
        ("".to_owned(), "FILE: tier: missing; at least one [[tier]] is needed".to_owned()),
        ("tier = 3".into(), "FILE: \"tier\": not allowed; only [[tier]] tables are allowed".into()),
        ("x = 3".into(), "FILE: \"x\": not allowed; only [[tier]] tables are allowed".into()),
        ("\n[[tier".into(), "FILE:2:7: no TOML: ".into()),
        ("[[tier]]\n".into(), "FILE: tier 1: kind: missing; \"ssd\", \"hdd\", ".into()),
        ("[[tier]]\nkind = \"tape\"".into(), "FILE: tier 1: kind: \"tape\" is not allowed; \"ssd\", ".into()),
        ("[[tier]]\nkind = 3".into(), "FILE: tier 1: kind: \"3\" is not allowed; \"ssd\", ".into()),
        (
            "[[tier]]\nkind = \"ram\"\ncapacity = \"1MB\"".into(),
            format!("FILE: tier 1: kind: \"ram\" is not allowed; {memory}"),
        ),
        (
            bucket.into(),
            "FILE: tier 1: capacity: missing; a size is needed, as in \"20GB\"".into(),
        ),
        (
            format!("{bucket}capacity = \"0GB\""),
            "FILE: tier 1: capacity: \"0GB\" is not a size; 1 byte or more is allowed".into(),
        ),
        (
            format!("{bucket}capacity = 20"),
            "FILE: tier 1: capacity: \"20\" is not allowed; a size in quotes is allowed, as in \"20GB\"".into(),
        ),
        (
            s3("bucket = \"abc\"\npath = \"a\""),
            "FILE: tier 1: path: unknown; this kind of tier has kind, capacity, policy, write, bucket, ".into(),
        ),
        (
            format!("{a}policy = \"fifo\""),
            "FILE: tier 1: policy: \"fifo\" is not allowed; \"lru\", \"cost-benefit\" and \"none\" are allowed".into(),
        ),
        (
            format!("{a}write = \"later\""),
            "FILE: tier 1: write: \"later\" is not allowed; \"back\" and \"through\" are allowed".into(),
        ),
        (
            format!("{a}durable = \"yes\""),
            "FILE: tier 1: durable: \"yes\" is not allowed; true and false are allowed".into(),
        ),
        (
            a.replace("ssd", "lustre") + "durable = false",
            "FILE: tier 1: durable: unknown; this kind of tier has kind, capacity, policy, write, path, ".into(),
        ),
        (format!("{a}stripe_count = 1"), "FILE: tier 1: stripe_count: unknown; ".into()),
        (
            format!("{}{}", a.replace("ssd", "hdd"), a.replace("\"a\"", "\"b\"")),
            "FILE: tier 2: kind: \"ssd\" after \"hdd\" is not allowed; the order from fast to slow is ssd, hdd, lustre, s3".into(),
        ),
        (
            hdd("a"),
            format!("FILE: tier 2: path: {}: same folder as tier 1; each tier needs its own folder", shown("a")),
        ),
        (hdd("link"), format!("FILE: tier 2: path: {}: same folder as tier 1; ", shown("link"))),
        (hdd("b/../a"), format!("FILE: tier 2: path: {}: same folder as tier 1; ", shown("b/../a"))),
        (hdd("a/in"), format!("FILE: tier 2: path: {}: inside the folder of tier 1; ", shown("a/in"))),
        (hdd("."), format!("FILE: tier 2: path: {}: contains the folder of tier 1; ", shown("."))),
        (
            hdd("none"),
            format!("FILE: tier 2: path: {}: No such file or directory (os error 2); ", shown("none")),
        ),
        (hdd("file"), format!("FILE: tier 2: path: {}: not a folder; ", shown("file"))),
        (hdd(&"n".repeat(300)), format!("FILE: tier 2: path: {}: File name too long", shown(&"n".repeat(300)))),
        (hdd("a\\u0000"), "FILE: tier 2: path: \"a\\0\" is not allowed; the path of a folder is needed".into()),
        (a.replace("1MB", "9000000TB"), "FILE: tier 1: capacity: 9.00 EB is not allowed; at most the size of the disk, ".into()),
        (s3(""), "FILE: tier 1: bucket: missing; ".into()),
        (s3("bucket = \"Studies\""), "FILE: tier 1: bucket: \"Studies\" is not allowed; ".into()),
        (
            s3("bucket = \"abc\"\nprefix = \"a/../b\""),
            "FILE: tier 1: prefix: \"a/../b\" is not allowed; ".into(),
        ),
        (
            s3("bucket = \"abc\"\nendpoint = \"localhost\""),
            "FILE: tier 1: endpoint: \"localhost\" is not allowed; an address with http".into(),
        ),
        (
            format!("{}{}", s3("bucket = \"abc\""), s3("bucket = \"abc\"")),
            "FILE: tier 2: bucket: same bucket and prefix as tier 1; each tier needs its own".into(),
        ),
    ];
    for (text, expected) in cases {
        let error = read(folder.path(), &text).unwrap_err();
        assert!(error.starts_with(&expected), "{text}\n{error}\n{expected}");
    }
    let error = TierList::read(&at("no-list")).unwrap_err().to_string();
    assert!(error.ends_with("failed to read: No such file or directory (os error 2)"), "{error}");
}
