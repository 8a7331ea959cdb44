//! A task that crashes every worker that starts it.
//!
//! No operation crashes, so a file size limit does (RLIMIT_FSIZE): one tile is larger than workers may write. A worker that
//! fetches it gets SIGXFSZ and ends at once.

use crate::chaos::seeds;
use crate::cluster::{self, Cluster, DEADLINE, LOOK_AGAIN, expected};
use crate::place::Place;
use crate::skipped;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

/// Signal of a write beyond RLIMIT_FSIZE (signal(7), on all supported systems, which exclude MIPS).
const SIGXFSZ: i32 = 25;

/// Limit in KiB per file: enough for the small tiles of 31 KB each and for logs.
const LIMIT: &str = "200";

/// Splits the lines of a table into those of the poisoned tile and all others. The first two columns are evaluation and
/// tile.
fn split(table: &str) -> (Vec<&str>, Vec<&str>) {
    table.lines().skip(1).partition(|line| line.split(',').nth(1) == Some("poisoned"))
}

fn runs(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|line| line.split(',').take(2).collect::<Vec<_>>().join(",")).collect()
}

#[test]
fn crashing_instance_fails_at_crash_limit_and_others_finish() {
    let test = "crashing_instance_fails_at_crash_limit_and_others_finish";
    let study = cluster::study(2, 128);
    let poison = cluster::study(1, 512);
    let tile = study.path("tiles/poisoned.png");
    fs::copy(poison.path("tiles/tissue_01.png"), &tile).expect("a tile");
    assert!(fs::metadata(&tile).expect("a file").len() > 400_000, "it is longer than workers may write");
    let all = expected(&study);

    for seed in seeds() {
        let mut cluster = Cluster::new(&study);
        // The study is submitted from another machine, because a worker that can open the tile does not write it.
        let Some(id) = cluster.submit_from_elsewhere() else {
            return skipped(test, "the system does not let us mount");
        };
        let limited = Place::by(["bash", "-c", r#"ulimit -c 0 -f "$0" && exec "$@""#, LIMIT]);
        let start = |cluster: &mut Cluster<'_>, number: u32| {
            let name = format!("w{number}");
            cluster.places.insert(name.clone(), limited.clone());
            cluster.start_worker(&name, &["--shm-dir", "nowhere"]);
        };
        let workers = 1 + (seed >> 32) as u32 % 3;
        (0..workers).for_each(|number| start(&mut cluster, number));
        let (begun, mut lost) = (Instant::now(), 0);
        while !cluster.has_ended(&id) {
            for (name, status) in cluster.ended() {
                assert_eq!(status.signal(), Some(SIGXFSZ), "{name}: {}", cluster.log(&name));
                start(&mut cluster, workers + lost);
                lost += 1;
            }
            assert!(begun.elapsed() < DEADLINE, "{lost} workers are lost: {}", cluster.log("manager"));
            std::thread::park_timeout(LOOK_AGAIN);
        }
        // Two crashes make the instance suspect, and three isolated ones reach the crash limit. One more worker may crash if
        // a speculative lease was granted before.
        assert!((5..=6).contains(&lost), "seed {seed}: {lost} are lost: {}", cluster.log("manager"));
        cluster.wait_for_completion(&id);
        let responses = cluster.responses(&id);
        let failed = fs::read_to_string(cluster.path(&format!("out-{id}/failed.csv"))).expect("a table");
        let (poisoned, others) = split(&all);
        assert_eq!(split(&responses), (Vec::new(), others), "every other run is as if nothing had been");
        let (given_up, accidents) = split(&failed);
        assert_eq!((runs(&given_up), accidents.len()), (runs(&poisoned), 0), "{failed}");
        let cause = "workers were lost while they ran it, the last 3 with nothing else to do";
        assert!(!poisoned.is_empty() && given_up.iter().all(|line| line.contains(cause)), "{failed}");
        cluster.nothing_is_left();
    }
}
