//! Hit rates of the eviction policies in a level that is too small for a recorded study.
//!
//! `benches/trace.csv` was recorded at the RAM tier of a worker, which had space for every region. Sizes are bytes in
//! memory. Seconds are the time that the storing thread took to compute the region. After a miss, the region is recomputed
//! and stored again. No region is stored here: the bench uses the eviction queue of the stack.
//!
//! The last lines are of regions that must not be dropped: a full level demotes them to an object store, from where they are read.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use pleach_regions::RegionKey;
use pleach_storage::{EvictionPolicy, EvictionQueue};
use std::collections::HashMap;

/// One line of the trace: an operation on the region with this number.
#[derive(Clone, Copy, Debug)]
enum Event {
    Store { number: u64, bytes: u64, seconds: f64 },
    Read(u64),
    Remove(u64),
}

fn trace() -> Vec<Event> {
    let event = |line: &str| {
        let mut fields = line.split(',');
        let what = fields.next()?;
        let number = fields.next()?.parse().ok()?;
        Some(match what {
            "store" => Event::Store {
                number,
                bytes: fields.next()?.parse().ok()?,
                seconds: fields.next()?.parse().ok()?,
            },
            "read" => Event::Read(number),
            "remove" => Event::Remove(number),
            _ => return None,
        })
    };
    include_str!("trace.csv").lines().skip(1).map(|line| event(line).expect("an event")).collect()
}

fn key(number: u64) -> RegionKey {
    RegionKey(u128::from(number).to_be_bytes())
}

/// Level with a capacity, simulated on sizes.
struct Level {
    ranking: EvictionQueue,
    held: HashMap<u64, u64>,
    held_bytes: u64,
    capacity_bytes: u64,
}

impl Level {
    fn remove(&mut self, number: u64) {
        self.held_bytes -= self.held.remove(&number).unwrap_or(0);
    }

    fn store(&mut self, number: u64, bytes: u64, seconds: f64) {
        if self.held.contains_key(&number) || bytes > self.capacity_bytes {
            return;
        }
        while self.held_bytes + bytes > self.capacity_bytes {
            let Some(victim) = self.ranking.victim(true, |_| true) else { return };
            self.ranking.evict(victim);
            self.remove(u128::from_be_bytes(victim.0) as u64);
        }
        self.held.insert(number, bytes);
        self.held_bytes += bytes;
        self.ranking.touch(key(number), bytes, seconds, false);
    }
}

/// Returns the hit rates of a level by reads, by bytes and by seconds to recompute the region, each from 0 to 1.
fn served(events: &[Event], policy: EvictionPolicy, capacity_bytes: u64) -> [f64; 3] {
    let (held, held_bytes) = (HashMap::new(), 0);
    let mut level = Level { ranking: EvictionQueue::new(policy), held, held_bytes, capacity_bytes };
    let mut about = HashMap::new();
    let (mut all, mut hit) = ([0.0; 3], [0.0; 3]);
    for event in events {
        match *event {
            Event::Store { number, bytes, seconds } => {
                about.insert(number, (bytes, seconds));
                level.store(number, bytes, seconds);
            }
            Event::Read(number) => {
                let Some(&(bytes, seconds)) = about.get(&number) else { continue };
                let is_hit = level.held.contains_key(&number);
                for (place, worth) in [1.0, bytes as f64, seconds].into_iter().enumerate() {
                    all[place] += worth;
                    hit[place] += if is_hit { worth } else { 0.0 };
                }
                if is_hit {
                    level.ranking.touch(key(number), bytes, seconds, false);
                } else {
                    level.store(number, bytes, seconds);
                }
            }
            Event::Remove(number) => {
                level.ranking.forget(key(number));
                level.remove(number);
            }
        }
    }
    [0, 1, 2].map(|place| hit[place] / all[place])
}

/// Returns the reads from an object store and their seconds, where a level demotes its regions to it, 30 ms and 1 s per 50 MB for
/// each read.
fn read_below(events: &[Event], policy: EvictionPolicy, capacity_bytes: u64) -> (usize, f64) {
    let (held, held_bytes) = (HashMap::new(), 0);
    let mut level = Level { ranking: EvictionQueue::new(policy), held, held_bytes, capacity_bytes };
    let mut sizes = HashMap::new();
    let cost = |bytes: u64| 0.03 + bytes as f64 / 50e6;
    let (mut reads, mut seconds) = (0, 0.0);
    for event in events {
        match *event {
            Event::Store { number, bytes, .. } => {
                sizes.insert(number, bytes);
                level.store(number, bytes, cost(bytes));
            }
            Event::Read(number) if level.held.contains_key(&number) => {
                level.ranking.touch(key(number), sizes[&number], cost(sizes[&number]), false);
            }
            Event::Read(number) => {
                let Some(bytes) = sizes.get(&number) else { continue };
                reads += 1;
                seconds += cost(*bytes);
            }
            Event::Remove(number) => {
                level.ranking.forget(key(number));
                level.remove(number);
            }
        }
    }
    (reads, seconds)
}

/// Returns the maximum bytes stored at the same time.
fn peak_bytes(events: &[Event]) -> u64 {
    let (mut held, mut now, mut peak) = (HashMap::new(), 0, 0);
    for event in events {
        match *event {
            Event::Store { number, bytes, .. } => {
                now += bytes - held.insert(number, bytes).unwrap_or(0);
                peak = peak.max(now);
            }
            Event::Remove(number) => now -= held.remove(&number).unwrap_or(0),
            Event::Read(_) => {}
        }
    }
    peak
}

fn main() {
    let events = trace();
    let peak_bytes = peak_bytes(&events);
    println!("{} events, {peak_bytes} bytes at most", events.len());
    for percent in [5, 10, 25, 50, 75] {
        for policy in [EvictionPolicy::None, EvictionPolicy::Lru, EvictionPolicy::CostBenefit] {
            let [reads, bytes, seconds] =
                served(&events, policy, peak_bytes * percent / 100).map(|part| 100.0 * part);
            let name = policy.name();
            println!(
                "{percent} % of that, {name}: {reads:.1} % of reads, {bytes:.1} % of bytes, {seconds:.1} % of seconds"
            );
        }
    }
    for percent in [5, 10, 25, 50, 75] {
        let [lru, cost_benefit] = [EvictionPolicy::Lru, EvictionPolicy::CostBenefit]
            .map(|policy| read_below(&events, policy, peak_bytes * percent / 100));
        println!(
            "{percent} % of that, the rest demoted to an object store: lru {} reads in {:.2} s, cost-benefit {} in {:.2} s",
            lru.0, lru.1, cost_benefit.0, cost_benefit.1
        );
    }
}
