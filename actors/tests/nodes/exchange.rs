//! Workers exchange data regions over the network and through shared memory, with correct and with faulty holders.

use crate::cluster::{ANYWHERE, Cluster, patient, soon, until};
use crate::holder::{Holder, HolderMessage};
use crate::stranger;
use crate::worker::Worker;
use pleach_actors::exchange::{HolderError, SendFileError, file_key, send_file};
use pleach_actors::transport::hello::Hello;
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::QuicRuntime;
use pleach_actors::transport::refusal::Cause;
use pleach_actors::transport::settings::Settings;
use pleach_regions::{DataRegion, Digest, LabelMap, Raster, RegionKey, Table};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn key(n: u8) -> RegionKey {
    RegionKey([n; 16])
}

/// Returns an image of colors that do not repeat, 2.1 MB.
fn image(seed: u32) -> Arc<DataRegion> {
    let byte = |n: u32| (n.wrapping_add(seed).wrapping_mul(0x9e37_79b9) >> 24) as u8;
    let data = (0..1000 * 700 * 3).map(byte).collect();
    Arc::new(DataRegion::Bgr8(Raster::new(1000, 700, 3, data).expect("as many bytes")))
}

/// Returns a plane of 180 kB.
fn plane(seed: u8) -> Arc<DataRegion> {
    Arc::new(DataRegion::Gray8(Raster::filled(600, 300, 1, seed).expect("some pixels")))
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

#[tokio::test]
async fn every_kind_of_region_arrives_as_it_is() {
    let cluster = Cluster::new(patient());
    let folder = tempfile::tempdir().unwrap();
    let labels = (0..300 * 200).map(|n| if n % 7 == 0 { n / 100 } else { 0 }).collect();
    let noise = (0..300 * 200_u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let regions = [
        image(1),
        Arc::new(DataRegion::Gray8(Raster::filled(900, 700, 1, 7).unwrap())),
        Arc::new(DataRegion::Mask(Raster::filled(900, 701, 1, 255).unwrap())),
        Arc::new(DataRegion::Labels(LabelMap::new(300, 200, labels).unwrap())),
        Arc::new(DataRegion::Labels(LabelMap::new(300, 200, noise).unwrap())),
        Arc::new(DataRegion::Table(Table::new([("dice", 0.25), ("jaccard", f64::INFINITY)]))),
        Arc::new(DataRegion::Mask(Raster::filled(1, 1, 1, 0).unwrap())),
    ];
    for shared in [None, Some(folder.path().to_owned())] {
        let (near, far) = if shared.is_some() { ("w1", "w2") } else { ("w3", "w4") };
        let (near, far) =
            (Worker::new(&cluster, near, shared.clone()), Worker::new(&cluster, far, shared.clone()));
        // Twice, to reuse the buffers in shared memory.
        for round in 0..2 {
            for (n, region) in regions.iter().enumerate() {
                let key = key((round * regions.len() + n) as u8);
                far.ram.insert(key, Arc::clone(region)).unwrap();
                assert_eq!(near.fetch(key, &[far.address()]).await.unwrap(), *region);
            }
        }
        let (near_counts, far_counts) = (near.exchange.counts(), far.exchange.counts());
        let by_memory = if shared.is_some() { 10 } else { 0 };
        assert_eq!((near_counts.fetched, near_counts.fetched_shared), (14, by_memory));
        until(|| far.exchange.counts().sent == 14).await;
        assert_eq!(far.exchange.counts().sent_shared, by_memory, "{far_counts:?}");
        let bytes: u64 = regions.iter().map(|region| region.bytes()).sum();
        assert_eq!(near_counts.fetched_bytes, 2 * bytes);
        // Fetched regions are in no tier yet. The holder counts its own once.
        assert_eq!((near.ledger.held_bytes(), near.ram.len()), (0, 0));
        assert_eq!((far.ledger.held_bytes(), far.ram.held_bytes()), (2 * bytes, 2 * bytes));
        assert_eq!((near.exchange.peers(), far.exchange.peers()), (1, 1));
        if shared.is_some() {
            assert_eq!(files(folder.path()), 2, "the two locks");
        }
        soon(near.exchange.close()).await;
        soon(far.exchange.close()).await;
    }
    assert_eq!(files(folder.path()), 0);
    assert_eq!(cluster.notices(), []);
}

#[tokio::test]
async fn hundred_fetches_of_one_region_share_one_transfer() {
    let cluster = Cluster::new(patient());
    let region = image(2);
    let far = Worker::new(&cluster, "w2", None).holds(key(1), &region);
    let near = Worker::new(&cluster, "w1", None);
    let fetching: Vec<_> = (0..100).map(|_| near.exchange.fetch(key(1), &[far.address()])).collect();
    let mut fetched = Vec::new();
    for fetching in fetching {
        fetched.push(soon(tokio::spawn(fetching)).await.unwrap().unwrap());
    }
    assert!(fetched.iter().all(|one| Arc::ptr_eq(one, &fetched[0])) && fetched[0] == region);
    assert_eq!(near.exchange.counts().fetched, 1);
    until(|| far.exchange.counts().sent > 0).await;
    soon(far.exchange.clone().close()).await;
    assert_eq!(far.exchange.counts().sent, 1);
}

#[tokio::test]
async fn many_regions_at_once_both_ways() {
    let cluster = Cluster::new(patient());
    let folder = tempfile::tempdir().unwrap();
    for shared in [None, Some(folder.path().to_owned())] {
        let names = if shared.is_some() { ["w1", "w2", "w3"] } else { ["w4", "w5", "w6"] };
        let workers = names.map(|name| Worker::new(&cluster, name, shared.clone()));
        for (n, worker) in workers.iter().enumerate() {
            for m in 0..20 {
                worker.ram.insert(key((20 * n + m) as u8), plane((20 * n + m) as u8)).unwrap();
            }
        }
        let mut fetching = Vec::new();
        for (n, worker) in workers.iter().enumerate() {
            for m in (0..60).filter(|m| m / 20 != n) {
                let fetched = worker.exchange.fetch(key(m as u8), &[workers[m / 20].address()]);
                fetching.push((m, tokio::spawn(fetched)));
            }
        }
        for (m, fetched) in fetching {
            assert!(soon(fetched).await.unwrap().unwrap() == plane(m as u8), "region {m}");
        }
        for worker in &workers {
            assert_eq!(worker.exchange.counts().fetched, 40);
            // Two workers that connect to each other at the same time have two connections.
            assert!((2..=4).contains(&worker.exchange.peers()));
        }
        for worker in workers {
            soon(worker.exchange.close()).await;
        }
    }
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test]
async fn holders_are_tried_until_one_gives_it() {
    let cluster = Cluster::new(patient());
    let region = image(3);
    let near = Worker::new(&cluster, "w1", None);
    let lacking = Worker::new(&cluster, "w2", None);
    let far = Worker::new(&cluster, "w3", None).holds(key(1), &region);
    for n in 0..20 {
        let key = key(100 + n);
        far.ram.insert(key, Arc::clone(&region)).unwrap();
        assert_eq!(near.fetch(key, &[lacking.address(), far.address()]).await.unwrap(), region);
    }
    assert_eq!(near.fetch(key(2), &[lacking.address()]).await, Err(vec![HolderError::Missing]));
    assert_eq!(near.fetch(key(2), &[]).await, Err(vec![]));
    let twice = [lacking.address(), far.address(), lacking.address()];
    assert_eq!(near.fetch(key(2), &twice).await, Err(vec![HolderError::Missing, HolderError::Missing]));
    // A region in memory is not fetched.
    let here = near.holds(key(1), &region);
    assert!(here.fetch(key(1), &[]).await.is_ok());
    assert_eq!(here.exchange.counts().fetched, 20);
}

#[tokio::test]
async fn holders_share_the_work() {
    let cluster = Cluster::new(patient());
    let near = Worker::new(&cluster, "w1", None);
    let table = Arc::new(DataRegion::Table(Table::new([("x", 1.0)])));
    let holders = ["w2", "w3"].map(|name| Worker::new(&cluster, name, None));
    for n in 0..100 {
        holders.iter().for_each(|holder| holder.ram.insert(key(n), Arc::clone(&table)).unwrap());
        near.fetch(key(n), &[holders[0].address(), holders[1].address()]).await.unwrap();
    }
    until(|| holders.iter().map(|holder| holder.exchange.counts().sent).sum::<u64>() == 100).await;
    // Five standard deviations of a fair coin.
    for holder in holders {
        assert!((25..=75).contains(&holder.exchange.counts().sent), "{:?}", holder.exchange.counts());
    }
}

#[tokio::test]
async fn unreachable_holder_fails_all_waiters_and_is_tried_last() {
    let cluster = Cluster::new(Settings { handshake: Duration::from_millis(500), ..patient() });
    let near = Worker::new(&cluster, "w1", None);
    let region = image(4);
    let far = Worker::new(&cluster, "w2", None).holds(key(1), &region);
    // The bound socket reserves the port and never answers.
    let silent = std::net::UdpSocket::bind(ANYWHERE).unwrap();
    let nobody = silent.local_addr().unwrap();
    let fetching: Vec<_> = (50..80).map(|n| tokio::spawn(near.exchange.fetch(key(n), &[nobody]))).collect();
    for fetching in fetching {
        let error = soon(fetching).await.unwrap().unwrap_err();
        let [tried] = &error.tried[..] else { panic!("{error}") };
        assert!(
            matches!(&tried.failure, HolderError::Refused(why) if why.cause == Cause::Unreachable),
            "{error}"
        );
    }
    for n in 0..20 {
        far.ram.insert(key(100 + n), Arc::clone(&region)).unwrap();
        let before = std::time::Instant::now();
        near.fetch(key(100 + n), &[nobody, far.address()]).await.unwrap();
        assert!(before.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_holder_that_ends_in_the_midst_of_it_is_replaced() {
    let cluster = Cluster::new(patient());
    let near = Worker::new(&cluster, "w1", None);
    let region = image(5);
    let far = Worker::new(&cluster, "w3", None).holds(key(1), &region);
    let mut dying = Holder::new(&cluster, "w2");
    let fetching = tokio::spawn(near.exchange.fetch(key(1), &[dying.address()]));
    let asked = soon(dying.asked()).await;
    let (pieces, sent) = tokio::sync::mpsc::channel(1);
    let regions = asked.peer.regions.clone();
    let sending =
        tokio::spawn(async move { regions.send_pieces(key(1), Digest([0; 32]), 2_000_000, sent).await });
    soon(pieces.send(vec![0; 1_000_000].into())).await.unwrap();
    // A later caller of the same key knows another holder.
    let joined = near.exchange.fetch(key(1), &[far.address()]);
    soon(dying.server.close()).await;
    drop(pieces);
    assert!(soon(sending).await.unwrap().is_err());
    assert_eq!(soon(joined).await.unwrap(), region);
    assert_eq!(soon(fetching).await.unwrap().unwrap(), region);
    assert_eq!(near.exchange.counts().fetched, 1);
}

#[tokio::test]
async fn damaged_bytes_are_not_taken_and_the_next_one_is_asked() {
    let cluster = Cluster::new(patient());
    let near = Worker::new(&cluster, "w1", None);
    let region = image(6);
    let far = Worker::new(&cluster, "w3", None).holds(key(1), &region);
    let mut liar = Holder::new(&cluster, "w2");
    let fetching = tokio::spawn(near.exchange.fetch(key(1), &[liar.address()]));
    let asked = soon(liar.asked()).await;
    let digest = region.digest();
    let (head, body) = region.encode_parts(&digest, false);
    let mut body = body.into_owned();
    body[1_234_567] ^= 1;
    soon(asked.peer.regions.send_encoded(key(1), head, body.into(), Duration::from_secs(60))).await.unwrap();
    let error = soon(fetching).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("content does not match digest"), "{error}");
    assert_eq!(near.fetch(key(1), &[far.address()]).await.unwrap(), region);
}

#[tokio::test]
async fn silent_holder_is_abandoned() {
    let stalled = Duration::from_millis(300);
    let cluster = Cluster::new(patient());
    let near = Worker::with(&cluster, "w1", None, Settings { stalled, ..patient() });
    let region = image(7);
    let far = Worker::new(&cluster, "w3", None).holds(key(1), &region);
    let silent = Holder::new(&cluster, "w2");
    assert_eq!(near.fetch(key(1), &[silent.address()]).await, Err(vec![HolderError::Silent(stalled)]));
    assert_eq!(near.fetch(key(1), &[far.address()]).await.unwrap(), region);
}

/// A transfer without waiting callers is canceled, so that the next caller does not wait for the silent holder.
#[tokio::test]
async fn fetch_without_waiters_is_canceled() {
    let cluster = Cluster::new(patient());
    let near = Worker::new(&cluster, "w1", None);
    let mut silent = Holder::new(&cluster, "w2");
    let region = image(8);
    let far = Worker::new(&cluster, "w3", None).holds(key(1), &region);
    let fetching = near.exchange.fetch(key(1), &[silent.address()]);
    let _asked = soon(silent.asked()).await;
    // The next fetch begins before the threads of the network have canceled the transfer.
    drop(fetching);
    let next = near.exchange.fetch(key(1), &[far.address()]);
    assert_eq!(soon(next).await.unwrap(), region);
    assert!(near.exchange.peers() <= 2);
}

#[tokio::test]
async fn peer_without_worker_certificate_is_refused() {
    let cluster = Cluster::new(patient());
    let worker = Worker::new(&cluster, "w1", None);
    let (endpoint, config) = stranger::stranger(&cluster, None);
    let connecting = endpoint.connect_with(config, worker.address(), "worker.pleach").unwrap();
    let connection = soon(connecting).await.unwrap();
    assert!(stranger::close_reason(&connection).await.contains("no certificate"));
    let client = cluster.connector("c1", Role::Client);
    let refused = soon(client.connect(worker.address(), Role::Worker, Hello::default())).await.unwrap_err();
    assert_eq!(refused.cause, Cause::Role);
    // A manager at any address is not accepted as a holder.
    let (manager, _peers) = cluster.listen(cluster.setup());
    let failures = worker.fetch(key(1), &[manager.address()]).await.unwrap_err();
    assert!(
        matches!(&failures[..], [HolderError::Refused(why)] if why.cause == Cause::Certificate),
        "{failures:?}"
    );
    assert_eq!(worker.exchange.peers(), 0);
}

#[tokio::test]
async fn unavailable_shared_memory_falls_back_to_network() {
    let cluster = Cluster::new(patient());
    let region = image(9);
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let at = |n: usize| Some(folders[n].path().to_owned());
    // Separate folders, no space, no folder for one of the two, a folder that vanishes.
    let none = Settings { shared_bytes: 2_000_000, ..patient() };
    let pairs = [
        (Worker::new(&cluster, "w1", at(0)), Worker::new(&cluster, "w2", at(1))),
        (Worker::new(&cluster, "w3", at(0)), Worker::with(&cluster, "w4", at(0), none)),
        (Worker::new(&cluster, "w5", at(0)), Worker::new(&cluster, "w6", None)),
        (Worker::new(&cluster, "w7", at(2)), Worker::new(&cluster, "w8", at(2))),
    ];
    std::fs::remove_dir_all(folders[2].path()).unwrap();
    for (near, far) in pairs {
        let far = far.holds(key(1), &region);
        assert_eq!(near.fetch(key(1), &[far.address()]).await.unwrap(), region);
        assert_eq!((near.exchange.counts().fetched, near.exchange.counts().fetched_shared), (1, 0));
        soon(near.exchange.close()).await;
        soon(far.exchange.close()).await;
    }
    assert_eq!((files(folders[0].path()), files(folders[1].path())), (0, 0));
    // A missing folder is not used.
    let odd = Worker::new(&cluster, "w9", Some(folders[0].path().join("nowhere")));
    assert!(!odd.exchange.is_shared());
}

/// A peer offers a missing file, a truncated one, one with other content, a symbolic link, and a path outside the folder.
/// Each region is fetched over the network instead.
#[tokio::test]
async fn corrupt_shared_memory_falls_back_to_network() {
    let cluster = Cluster::new(patient());
    let folder = tempfile::tempdir().unwrap();
    let region = image(10);
    let digest = region.digest();
    let (head, body) = region.encode_parts(&digest, false);
    let name = |n: u32| format!("pleach-lent-{n}");
    let mut wrong = body.to_vec();
    wrong[7] ^= 1;
    std::fs::write(folder.path().join(name(1)), &body[1..]).unwrap();
    std::fs::write(folder.path().join(name(2)), &wrong).unwrap();
    std::os::unix::fs::symlink(folder.path().join(name(2)), folder.path().join(name(3))).unwrap();
    std::fs::write(folder.path().join(name(5)), &body).unwrap();
    for n in 0..6 {
        let near = Worker::new(&cluster, &format!("n{n}"), Some(folder.path().to_owned()));
        let mut odd = Holder::new(&cluster, &format!("w{n}"));
        let fetching = tokio::spawn(near.exchange.fetch(key(1), &[odd.address()]));
        let mut asked = soon(odd.asked()).await;
        let file = if n == 4 { "../pleach-lent-2".to_owned() } else { name(n) };
        asked.lend(key(1), Some(file), body.len() as u64, head);
        if n < 5 {
            let said = soon(asked.hears(|said| matches!(said, HolderMessage::Ask { .. }))).await;
            assert_eq!(said, HolderMessage::Ask { key: key(1), way: 1 }, "case {n}: over the network now");
            let body = body.clone().into_owned().into();
            soon(asked.peer.regions.send_encoded(key(1), head, body, Duration::from_secs(60))).await.unwrap();
        } else {
            let said = soon(asked.hears(|said| !matches!(said, HolderMessage::Opened { .. }))).await;
            assert_eq!(
                said,
                HolderMessage::Returned { slot: 0, is_read: true },
                "nothing is wrong with the last one"
            );
        }
        assert_eq!(soon(fetching).await.unwrap().unwrap(), region, "case {n}");
        assert_eq!(near.exchange.counts().fetched_shared, u64::from(n == 5));
        soon(near.exchange.close()).await;
    }
}

#[tokio::test]
async fn connections_are_closed_when_they_are_not_used_and_opened_again() {
    let cluster = Cluster::new(patient());
    let settings = Settings { unused: Duration::from_millis(100), ..patient() };
    let region = image(11);
    let near = Worker::with(&cluster, "w1", None, settings);
    let far = Worker::new(&cluster, "w2", None).holds(key(1), &region);
    for _ in 0..3 {
        assert_eq!(near.fetch(key(1), &[far.address()]).await.unwrap(), region);
        until(|| near.exchange.peers() == 0 && far.exchange.peers() == 0).await;
    }
    assert_eq!(cluster.notices(), []);
}

#[tokio::test]
async fn connections_are_bounded() {
    let cluster = Cluster::new(patient());
    let near = Worker::with(&cluster, "w1", None, Settings { neighbors: 2, ..patient() });
    let region = image(12);
    let holders =
        ["w2", "w3", "w4", "w5"].map(|name| Worker::new(&cluster, name, None).holds(key(1), &region));
    for _ in 0..3 {
        for holder in &holders {
            assert_eq!(near.fetch(key(1), &[holder.address()]).await.unwrap(), region);
            assert!(near.exchange.peers() <= 2);
        }
    }
}

/// With all connections busy, the fetch fails and keeps them.
#[tokio::test]
async fn busy_connections_are_not_closed_for_others() {
    let cluster = Cluster::new(patient());
    let near = Worker::with(&cluster, "w1", None, Settings { neighbors: 1, ..patient() });
    let mut slow = Holder::new(&cluster, "w2");
    let _fetching = near.exchange.fetch(key(1), &[slow.address()]);
    let _asked = soon(slow.asked()).await;
    let far = Worker::new(&cluster, "w3", None).holds(key(2), &image(13));
    assert_eq!(near.fetch(key(2), &[far.address()]).await, Err(vec![HolderError::Busy]));
}

#[tokio::test]
async fn closed_exchange_fails_its_pending_fetches() {
    let cluster = Cluster::new(patient());
    let near = Worker::new(&cluster, "w1", None);
    let mut silent = Holder::new(&cluster, "w2");
    let fetching = near.exchange.fetch(key(1), &[silent.address()]);
    let _asked = soon(silent.asked()).await;
    soon(near.exchange.clone().close()).await;
    assert!(matches!(&soon(fetching).await.unwrap_err().tried[..], [_]));
    assert!(near.fetch(key(1), &[silent.address()]).await.is_err());
}

/// If the network's threads end first, waiting callers get an error.
#[tokio::test]
async fn an_exchange_without_a_network_gives_up() {
    let mut cluster = Cluster::new(patient());
    let near = Worker::new(&cluster, "w1", None);
    let mut silent = Holder::new(&cluster, "w2");
    let fetching = near.exchange.fetch(key(1), &[silent.address()]);
    let _asked = soon(silent.asked()).await;
    drop(std::mem::replace(&mut cluster.network, QuicRuntime::start(1).unwrap()));
    assert_eq!(soon(fetching).await.unwrap_err().tried[0].failure, HolderError::Ended);
    assert_eq!(near.fetch(key(1), &[silent.address()]).await, Err(vec![HolderError::Ended]));
}

#[tokio::test]
async fn files_arrive_by_their_digest() {
    let cluster = Cluster::new(patient());
    let (server, mut peers) = cluster.listen(cluster.setup());
    let connector = cluster.connector("w1", Role::Worker);
    let mut worker =
        soon(connector.connect(server.address(), Role::Manager, Hello::default())).await.unwrap();
    let manager = soon(peers.recv()).await.unwrap();
    let path = cluster.folder("tile.png");
    for length in [0, 1, 1 << 20, 5_000_001_usize] {
        let content: Vec<u8> = (0..length).map(|n| ((n * n) >> 7) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let digest = Digest::of_bytes(&content);
        let key = file_key(&digest);
        assert_eq!(key.0, digest.0[..16]);
        let (sent, arrival) =
            tokio::join!(soon(send_file(&manager.regions, key, digest, &path)), soon(worker.arrivals.recv()));
        sent.unwrap();
        let region = arrival.unwrap().unwrap();
        assert!(region.key == key && region.digest == digest && region.bytes == content);
        // The file has changed.
        std::fs::write(&path, [&content[..], b"x"].concat()).unwrap();
        let (sent, arrival) =
            tokio::join!(soon(send_file(&manager.regions, key, digest, &path)), soon(worker.arrivals.recv()));
        assert!(matches!(sent, Err(SendFileError::Changed { .. })));
        assert!(arrival.unwrap().is_err());
    }
    std::fs::remove_file(&path).unwrap();
    let gone = soon(send_file(&manager.regions, key(1), Digest([0; 32]), &path)).await;
    assert!(matches!(gone, Err(SendFileError::File { .. })));
}

#[tokio::test]
async fn result_with_other_content_is_refused_and_the_next_holder_asked() {
    let cluster = Cluster::new(patient());
    let (announced, other) = (plane(1), plane(2));
    let faulty = Worker::new(&cluster, "w2", None).holds(key(1), &other);
    let sound = Worker::new(&cluster, "w3", None).holds(key(1), &announced);
    let near = Worker::new(&cluster, "w1", None);
    let fetch = |from: &[std::net::SocketAddr]| near.exchange.fetch_result(key(1), announced.digest(), from);
    let refused = soon(fetch(&[faulty.address()])).await.unwrap_err();
    let [tried] = &refused.tried[..] else { panic!("{refused}") };
    assert!(matches!(tried.failure, HolderError::Corrupt(_)), "{refused}");
    assert!(refused.to_string().contains("differs from the announced one"), "{refused}");
    // Whatever the order of the two.
    assert_eq!(soon(fetch(&[faulty.address(), sound.address()])).await.unwrap(), announced);
    assert_eq!(near.exchange.counts().fetched, 1, "a refused region does not count");
}
