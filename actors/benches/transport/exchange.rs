//! Throughput of regions between two workers, with verified digests: through shared memory and over the network,
//! alternating.

use crate::{ANYWHERE, Outcome, REGION_BYTES, REGIONS, median, rate};
use pleach_actors::exchange::{Exchange, ExchangeSetup};
use pleach_actors::transport::certs::{Authority, Credentials, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::hello::{Hello, Version};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use pleach_actors::transport::quic::{QuicRuntime, RefusalReporter};
use pleach_actors::transport::settings::Settings;
use pleach_regions::{DataRegion, MemoryCounter, RamTier, Raster, RegionKey};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Folder in memory, if the system has one.
const SHARED: &str = "/dev/shm";

/// Concurrent fetches, as of a worker that fetches inputs ahead of its tasks.
const AT_ONCE: usize = 4;

/// Medians in GB/s, and of their ratio.
pub(crate) struct Rates {
    pub(crate) shared: f64,
    pub(crate) network: f64,
    pub(crate) ratio: f64,
}

/// Measures both rates. `None` without shared memory.
pub(crate) fn rates(near: &QuicRuntime, far: &QuicRuntime, rounds: usize) -> Outcome<Option<Rates>> {
    if !Path::new(SHARED).is_dir() {
        return Ok(None);
    }
    let place = tempfile::tempdir()?;
    let authority = Authority::init(&place.path().join("ca"), SystemClock.now())?;
    let worker = |network, name: &str, shared: Option<PathBuf>| -> Outcome<(Exchange, Arc<RamTier>)> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let folder = place.path().join(name);
        let identity = NodeIdentity { name: name.parse()?, role: Role::Worker };
        authority.issue(&identity, Validity::days(1, clock.now())?, &folder)?;
        let ram = Arc::new(RamTier::new(Arc::new(MemoryCounter::default())));
        let setup = ExchangeSetup {
            credentials: Arc::new(Credentials::load(&folder)?),
            hello: Hello::default(),
            version: Version::current(),
            settings: Settings::default(),
            board: RefusalReporter::new(Arc::clone(&clock), Arc::new(|_| {})),
            clock,
            ram: Arc::clone(&ram),
            spill: None,
            shared,
        };
        Ok((Exchange::start(network, ANYWHERE, setup)?, ram))
    };
    let noise = (0..REGION_BYTES).map(|at| ((at * at) >> 9) as u8).collect();
    let region = Arc::new(DataRegion::Bgr8(Raster::new(4096, 4096, 3, noise)?));
    let pair = |shared: Option<&str>, names: [&str; 2]| -> Outcome<(Exchange, Exchange)> {
        let (holder, ram) = worker(near, names[0], shared.map(PathBuf::from))?;
        for n in 0..REGIONS {
            ram.insert(RegionKey([n as u8; 16]), Arc::clone(&region))?;
        }
        Ok((worker(far, names[1], shared.map(PathBuf::from))?.0, holder))
    };
    let pairs = [pair(Some(SHARED), ["w1", "w2"])?, pair(None, ["w3", "w4"])?];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..=rounds {
        for ((asks, holds), found) in pairs.iter().zip(&mut found) {
            let start = Instant::now();
            runtime.block_on(fetch_all(asks, holds))?;
            found.push(rate(start));
        }
        let ratio = found[0].last().zip(found[1].last()).map(|(shared, network)| shared / network);
        found[2].extend(ratio);
    }
    for (asks, holds) in pairs {
        runtime.block_on(async { tokio::join!(asks.close(), holds.close()) });
    }
    // The first round also determines the packet size and creates the buffers.
    let [shared, network, ratio] = found.map(|mut values| median(&mut values[1..]));
    Ok(Some(Rates { shared, network, ratio }))
}

/// Fetches all regions, a number of them at once, and drops them.
async fn fetch_all(asks: &Exchange, holds: &Exchange) -> Outcome<()> {
    let fetch = |first: usize| async move {
        for n in (first..REGIONS).step_by(AT_ONCE) {
            asks.fetch(RegionKey([n as u8; 16]), &[holds.address()]).await?;
        }
        Outcome::Ok(())
    };
    let all = tokio::join!(fetch(0), fetch(1), fetch(2), fetch(3));
    all.0.and(all.1).and(all.2).and(all.3)
}
