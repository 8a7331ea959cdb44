//! A cluster on hosts that share no address, no memory and no files of the study: everything is sent over the network.

use crate::chaos::{moment, seeds};
use crate::cluster::{self, Cluster, expected};
use crate::namespaces::Hosts;
use crate::pyramid::{AT_20, write_image};
use crate::skipped;
use crate::study::Study;
use std::time::Duration;

/// Starts a manager and two workers, each on its host, and submits the study from a client that alone has its files. Returns
/// `None` if the system denies mounts.
fn submitted<'a>(study: &'a Study, hosts: &Hosts) -> Option<(Cluster<'a>, String)> {
    let mut cluster = Cluster::to_be(study);
    for name in ["manager", "w0", "w1"] {
        cluster.places.insert(name.to_owned(), hosts.place(name));
    }
    cluster.places.insert("client".to_owned(), hosts.place("manager"));
    cluster.start_manager();
    for name in ["w0", "w1"] {
        cluster.start_worker(name, &["--shm-dir", "nowhere"]);
    }
    let id = cluster.submit_from_elsewhere()?;
    Some((cluster, id))
}

#[test]
fn hosts_fetch_missing_regions_from_each_other() {
    let test = "hosts_fetch_missing_regions_from_each_other";
    let study = cluster::study(12, 192);
    // One tile: with more, each worker has its own, and fetches little.
    study.edit(&[("trajectories = 2", "trajectories = 12"), ("tiles/*.png", "tiles/tissue_01.png")]);
    let expected = expected(&study);
    let Some(hosts) = Hosts::of(["manager", "w0", "w1"]) else {
        return skipped(test, "the system does not let us make network namespaces");
    };
    let Some((cluster, id)) = submitted(&study, &hosts) else {
        return skipped(test, "the system does not let us mount");
    };
    assert_eq!(cluster.completed(&id), expected);
    let status = cluster.status();
    let workers = status["workers"].as_array().expect("a list");
    let addresses: Vec<&str> = workers.iter().filter_map(|worker| worker["address"].as_str()).collect();
    assert_eq!(addresses, ["10.77.0.2", "10.77.0.3"], "{status}");
    cluster.nothing_is_left();
    // The manager sends input files to workers. Only input files are named by their digests.
    let tile = std::fs::read(study.path("tiles/tissue_01.png")).expect("a tile");
    let name = blake3::hash(&tile).to_hex();
    let had = |worker: &&str| cluster.path(&format!("{worker}-ssd/inputs/{name}")).is_file();
    assert!(["w0", "w1"].iter().any(had), "the tile has been sent to some worker");
    // Regions between workers: all bytes that workers sent, without the bytes that the manager received.
    let sent: u64 = ["w0", "w1"].iter().map(|name| hosts.traffic(name).0).sum();
    let between = sent.saturating_sub(hosts.traffic("manager").1);
    // At least the normalized tile.
    assert!(between > 192 * 192 * 3, "{between} of {sent} bytes");
}

/// A slide is sent as one file, independent of the number and the workers of its tiles.
#[test]
fn slide_is_sent_to_hosts_that_compute_its_tiles() {
    let test = "slide_is_sent_to_hosts_that_compute_its_tiles";
    let study = cluster::study(3, 192);
    let tissue = image::open(study.path("tiles/tissue_01.png")).expect("a tile").into_rgb8();
    write_image(&study.path("tiles/s.svs"), tissue.as_raw(), 192, AT_20);
    let slides = "slides = [\"tiles/s.svs\"]\nmagnification = 20\ntile = 64\nhalo = 16";
    study.edit(&[("tiles = [\"tiles/*.png\"]", slides), ("\"dice\"", "\"nuclei\"")]);
    let expected = expected(&study);
    assert!(expected.contains(",s/128_64,"), "{expected}");
    let Some(hosts) = Hosts::of(["manager", "w0", "w1"]) else {
        return skipped(test, "the system does not let us make network namespaces");
    };
    let Some((cluster, id)) = submitted(&study, &hosts) else {
        return skipped(test, "the system does not let us mount");
    };
    assert_eq!(cluster.completed(&id), expected);
    cluster.nothing_is_left();
    let slide = blake3::hash(&std::fs::read(study.path("tiles/s.svs")).expect("the slide")).to_hex();
    for worker in ["w0", "w1"] {
        let inputs = std::fs::read_dir(cluster.path(&format!("{worker}-ssd/inputs"))).expect("a folder");
        for input in inputs {
            assert_eq!(input.expect("an entry").file_name().to_string_lossy(), *slide);
        }
    }
}

#[test]
fn host_unplugged_for_10_s_reattaches() {
    let test = "host_unplugged_for_10_s_reattaches";
    let study = cluster::study(12, 256);
    let expected = expected(&study);
    for seed in seeds() {
        let Some(hosts) = Hosts::of(["manager", "w0", "w1"]) else {
            return skipped(test, "the system does not let us make network namespaces");
        };
        let Some((cluster, id)) = submitted(&study, &hosts) else {
            return skipped(test, "the system does not let us mount");
        };
        cluster.wait_for_responses(&id, moment(seed));
        hosts.plug("w1", false);
        cluster.let_pass(Duration::from_secs(10));
        hosts.plug("w1", true);
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        cluster.wait_until(|cluster| cluster.log("w1").matches("connected to manager").count() == 2);
        assert!(cluster.log("manager").contains("worker w1 is lost"), "{}", cluster.log("manager"));
        cluster.nothing_is_left();
    }
}
