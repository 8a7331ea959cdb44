//! Memory of processes and of kept memory files.

use crate::python::{Package, entry, has_ended, until};
use pleach_regions::{DataRegion, Raster};

#[test]
fn least_recently_used_process_ends_first_when_memory_is_short() {
    // Operations of different variables have processes of their own.
    let kinds = ["a", "b", "c"];
    let entries =
        kinds.map(|kind| entry(kind, &format!("function = \"m:pid\"\nenv = {{ KIND = \"{kind}\" }}")));
    let test = "least_recently_used_process_ends_first_when_memory_is_short";
    let Some(package) = Package::new(test, &entries.concat(), "") else { return };
    let pid = |kind: &str| package.number(kind).unwrap() as u32;
    let [a, b, c] = kinds.map(pid);
    assert_eq!(pid("a"), a);
    let all = package.pool.resident_bytes();
    package.pool.set_limit_bytes(all - 1);
    until(|| has_ended(b));
    assert!(!has_ended(a) && !has_ended(c));
    package.pool.set_limit_bytes(all / 2);
    until(|| has_ended(c));
    assert!(!has_ended(a) && package.pool.resident_bytes() <= all / 2);
    // A single process always may run.
    package.pool.set_limit_bytes(1);
    until(|| has_ended(a));
    assert!(package.number("a").is_ok());
    assert_eq!(package.pool.resident_bytes(), 0, "it ends after its task");
}

const BUSY: &str = r#"
import time
def load():
    return b"x" * 200_000_000
def busy(model):
    path = os.path.join(HERE, f"busy-{os.getpid()}")
    open(path, "w").close()
    time.sleep(0.05)
    count = sum(name.startswith("busy-") for name in os.listdir(HERE))
    os.remove(path)
    return count
"#;

#[test]
fn processes_beyond_the_limit_are_not_started() {
    let lines = "setup = \"m:load\"\nmemory = { resident = \"250MB\" }";
    let test = "processes_beyond_the_limit_are_not_started";
    let Some(package) = Package::new(test, &entry("busy", lines), BUSY) else { return };
    let most = || {
        let counts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| package.number("busy").unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        counts.into_iter().fold(0.0, f64::max)
    };
    package.pool.set_limit_bytes(600_000_000);
    assert!(most() <= 2.0);
    package.pool.set_limit_bytes(300_000_000);
    assert_eq!(most(), 1.0);
    assert!(package.pool.resident_bytes() <= 300_000_000);
}

#[test]
fn kept_file_of_a_region_counts_until_the_region_is_dropped() {
    let lines = "inputs = [{ name = \"tile\", type = \"gray8\" }]";
    let module = "def first(tile):\n    return int(tile[0, 0])\ndef pages(tile):\n    return tile.sum()\n";
    let test = "kept_file_of_a_region_counts_until_the_region_is_dropped";
    let Some(package) = Package::new(test, &(entry("first", lines) + &entry("pages", lines)), module) else {
        return;
    };
    let tile = |value| DataRegion::Gray8(Raster::filled(1024, 1024, 1, value).unwrap());
    let run = |function: &str, tile: &DataRegion| package.run(function, &[tile], &[]).unwrap();
    let first = tile(1);
    assert_eq!(run("first", &first), [DataRegion::Scalar(1.0)]);
    assert_eq!(run("pages", &first), [DataRegion::Scalar(1048576.0)]);
    package.pool.clear();
    assert_eq!(package.pool.resident_bytes(), 0);
    run("first", &first);
    let with_file = package.pool.resident_bytes();
    drop(first);
    assert_eq!(with_file - package.pool.resident_bytes(), 1 << 20);
    // The next region may be at the same address.
    for value in 2..20 {
        assert_eq!(run("first", &tile(value)), [DataRegion::Scalar(f64::from(value))]);
    }
}
