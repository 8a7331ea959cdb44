//! The ledger against a slow counterpart: seconds of workers and studies on a grid of seconds.

use super::*;
use pleach_provision::FORMAT_LINE;
use proptest::prelude::*;

fn prices() -> BTreeMap<String, PoolPrices> {
    let prices = PoolPrices {
        per_hour: 3600.0,
        billing_seconds: 60.0,
        egress_per_gb: 2.0,
        min: 1,
        ending_seconds: 40.0,
    };
    BTreeMap::from([("spot".to_owned(), prices)])
}

fn ledger() -> CostLedger {
    CostLedger::default().resume(prices())
}

fn running(studies: &[u32]) -> BTreeSet<u32> {
    studies.iter().copied().collect()
}

fn intended(name: &str) -> ProvisionRecord {
    ProvisionRecord::Intended { name: name.to_owned(), pool: "spot".to_owned() }
}

fn started(name: &str) -> ProvisionRecord {
    ProvisionRecord::Started { name: name.to_owned(), handle: "1".to_owned() }
}

fn ended(name: &str) -> ProvisionRecord {
    ProvisionRecord::Ended { name: name.to_owned() }
}

fn connected(name: &str) -> PoolWorker {
    PoolWorker { name: name.to_owned(), pool: "spot".to_owned(), is_draining: false }
}

/// Stores the ledger and continues it, as a manager that is killed and started again.
fn restarted(ledger: &CostLedger) -> CostLedger {
    let text = serde_json::to_string(ledger).unwrap();
    let StoredLedger(stored) = serde_json::from_str(&text).unwrap();
    stored.resume(prices())
}

#[test]
fn worker_is_paid_from_its_request_to_its_end_in_whole_periods() {
    let mut ledger = ledger();
    ledger.advance(1000.0, &running(&[1]), &[]);
    ledger.record(&intended("spot-1"), 1010.0);
    ledger.record(&started("spot-1"), 1011.0);
    ledger.advance(1040.0, &running(&[1]), &[connected("spot-1")]);
    let cost = ledger.cost(1).unwrap();
    assert_eq!((cost.cost, cost.pools[0].paid_seconds, cost.pools[0].starting_seconds), (60.0, 60.0, 30.0));
    ledger.predict(1, 100.0, 90.0);
    ledger.predict(1, 7.0, 7.0);
    // The study ends in the second period, and the worker in the third, which the study pays as well.
    ledger.advance(1100.0, &running(&[]), &[connected("spot-1")]);
    let cost = ledger.cost(1).unwrap();
    assert_eq!((cost.cost, cost.seconds, cost.is_final), (120.0, 100.0, false));
    ledger.leave("spot-1");
    ledger.record(&ended("spot-1"), 1131.0);
    ledger.advance(1140.0, &running(&[]), &[]);
    let cost = ledger.cost(1).unwrap();
    assert_eq!((cost.cost, cost.seconds, cost.is_final), (180.0, 100.0, true));
    assert_eq!((cost.predicted_seconds, cost.predicted_cost), (Some(140.0), Some(150.0)));
    assert_eq!((cost.workers_started, cost.workers_lost, cost.workers_replaced), (1, 0, 0));
}

#[test]
fn time_to_end_after_the_work_is_measured_beyond_the_minimum_and_survives_a_restart() {
    let mut ledger = ledger();
    assert_eq!((ledger.ending_seconds("spot"), ledger.ending_seconds("other")), (40.0, 0.0));
    ledger.advance(0.0, &running(&[1]), &[]);
    for (number, name) in ["spot-1", "spot-2", "spot-3", "spot-4"].into_iter().enumerate() {
        ledger.record(&intended(name), number as f64);
        ledger.record(&started(name), number as f64);
    }
    let connected = ["spot-1", "spot-2", "spot-3"].map(connected);
    ledger.advance(50.0, &running(&[1]), &connected);
    ledger.note_work(50.0, true);
    // Lost while work remains, and never joined: neither is the end of a worker after the work.
    ledger.record(&ended("spot-1"), 60.0);
    ledger.note_work(100.0, false);
    ledger.note_work(102.0, false);
    ledger.record(&ended("spot-4"), 105.0);
    assert_eq!(ledger.ending_seconds("spot"), 40.0);
    ledger.record(&ended("spot-2"), 110.0);
    assert_eq!(ledger.ending_seconds("spot"), 10.0);
    // The last one is the minimum, and ends with the manager.
    ledger.record(&ended("spot-3"), 900.0);
    let mut next = restarted(&ledger);
    assert_eq!(next.ending_seconds("spot"), 10.0);
    // A worker that came after the work counts from its request.
    for name in ["spot-5", "spot-6"] {
        next.record(&intended(name), 1000.0);
        next.record(&started(name), 1000.0);
    }
    next.advance(1001.0, &running(&[]), &["spot-5", "spot-6"].map(self::connected));
    next.record(&ended("spot-5"), 1020.0);
    assert_eq!(next.ending_seconds("spot"), 15.0);
}

#[test]
fn lost_worker_is_counted_with_its_replacement_and_a_refused_start_costs_nothing() {
    let mut ledger = ledger();
    ledger.advance(0.0, &running(&[1]), &[]);
    for (number, name) in ["spot-1", "spot-2", "spot-3"].into_iter().enumerate() {
        ledger.record(&intended(name), number as f64);
        ledger.record(&started(name), number as f64);
    }
    ledger.record(&intended("spot-4"), 3.0);
    ledger.record(&ended("spot-4"), 4.0);
    ledger.record(&ended("spot-2"), 10.0);
    ledger.record(&intended("spot-5"), 11.0);
    ledger.record(&started("spot-5"), 12.0);
    ledger.advance(20.0, &running(&[1]), &[]);
    let cost = ledger.cost(1).unwrap();
    assert_eq!((cost.workers_started, cost.workers_lost, cost.workers_replaced), (4, 1, 1));
    assert_eq!(cost.cost, 4.0 * 60.0);
}

#[test]
fn restarted_manager_charges_the_time_in_between_and_drops_what_it_does_not_know() {
    let mut before = ledger();
    before.advance(0.0, &running(&[1]), &[]);
    before.record(&intended("spot-1"), 0.0);
    before.record(&started("spot-1"), 1.0);
    before.record(&intended("spot-2"), 0.0);
    before.record(&started("spot-2"), 1.0);
    before.advance(
        30.0,
        &running(&[1]),
        &[connected("spot-1"), connected("spot-2"), connected("spot-other")],
    );
    assert_eq!(before.cost(1).unwrap().cost, 120.0);
    // The journal has the end of one worker, and the start of another that the stored ledger lacks.
    let mut text = FORMAT_LINE.to_owned();
    for name in ["spot-1", "spot-3"] {
        text += &intended(name).line(if name == "spot-1" { 0 } else { 35_000 });
        text += &started(name).line(36_000);
    }
    let mut next = restarted(&before);
    next.adopt(&ProvisionJournal::parse(text.as_bytes()).unwrap(), 300.0);
    next.advance(300.0, &running(&[1]), &[connected("spot-1")]);
    // 300 s of the first, one period of the second, and 265 s of the third. The other one begins again.
    assert_eq!(next.cost(1).unwrap().cost, 300.0 + 60.0 + 300.0);
    assert_eq!(next.open_cost(), 660.0);
}

#[test]
fn time_between_studies_belongs_to_the_study_only_if_its_workers_end() {
    let mut ledger = ledger();
    ledger.advance(0.0, &running(&[1]), &[connected("spot-1")]);
    ledger.advance(60.0, &running(&[]), &[connected("spot-1")]);
    ledger.advance(600.0, &running(&[2]), &[connected("spot-1")]);
    ledger.advance(660.0, &running(&[2]), &[connected("spot-1")]);
    let first = ledger.cost(1).unwrap();
    assert_eq!((first.cost, first.is_final), (60.0, true));
    assert_eq!(ledger.cost(2).unwrap().cost, 60.0);
}

#[test]
fn egress_is_counted_for_each_connection_and_shared() {
    let mut ledger = ledger();
    ledger.advance(0.0, &running(&[1, 2]), &[connected("spot-1")]);
    for received in [1_000_000_000, 1_500_000_000, 500_000_000] {
        ledger.count_egress([("spot-1", received), ("base-1", received)].into_iter());
    }
    let part = &ledger.cost(2).unwrap().pools[0];
    assert_eq!((part.sent_bytes, part.egress_cost), (1_000_000_000, 2.0));
    assert_eq!(ledger.totals()["spot"], [0.0, 4.0]);
}

#[test]
fn costs_of_earlier_versions_are_read_and_impossible_ones_are_refused() {
    let StoredLedger(stored) = serde_json::from_str("{\"3\": 1.5}").unwrap();
    let mut ledger = stored.resume(prices());
    ledger.advance(0.0, &running(&[3]), &[connected("spot-1")]);
    ledger.advance(1.0, &running(&[3]), &[connected("spot-1")]);
    assert_eq!(ledger.cost(3).unwrap().cost, 61.5);
    let error = serde_json::from_str::<StoredLedger>("{\"1\": -5}").unwrap_err().to_string();
    assert!(error.starts_with("a negative time or cost"), "{error}");
    assert!(serde_json::from_str::<StoredLedger>("[]").is_err());
}

/// A worker of the property: its start, its length, and its studies follow from the grid.
#[derive(Clone, Debug)]
struct Life {
    from: u32,
    seconds: u32,
}

proptest! {
    /// Costs by the ledger, which is stored and restarted at some second, equal those of a loop over seconds.
    #[test]
    fn ledger_equals_a_loop_over_seconds(
        lives in prop::collection::vec((0..200_u32, 1..200_u32), 1..6),
        studies in prop::collection::vec((0..200_u32, 1..200_u32), 1..4),
        restart in 0..400_u32,
    ) {
        let lives: Vec<Life> = lives.into_iter().map(|(from, seconds)| Life { from, seconds }).collect();
        let runs = |second: u32| -> BTreeSet<u32> {
            let all = (1..).zip(&studies);
            all.filter(|(_, (from, length))| (*from..from + length).contains(&second)).map(|(id, _)| id).collect()
        };
        let last = 420;
        let mut ledger = ledger();
        let name = |number: usize| format!("spot-{number}");
        for second in 0..=last {
            for (number, life) in lives.iter().enumerate() {
                if life.from == second {
                    ledger.record(&intended(&name(number)), f64::from(second));
                    ledger.record(&started(&name(number)), f64::from(second));
                }
                if life.from + life.seconds == second {
                    ledger.leave(&name(number));
                    ledger.record(&ended(&name(number)), f64::from(second));
                }
            }
            ledger.advance(f64::from(second), &runs(second), &[]);
            if second == restart {
                ledger = restarted(&ledger);
            }
        }
        // By second: the studies that pay for it, and whether they run.
        let mut payers: Vec<(BTreeSet<u32>, bool)> = Vec::new();
        for second in 0..last {
            let running = runs(second);
            let before = payers.last().map(|(payers, _)| payers.clone()).unwrap_or_default();
            payers.push(if running.is_empty() { (before, false) } else { (running, true) });
        }
        let mut expected: BTreeMap<u32, f64> = BTreeMap::new();
        for life in &lives {
            let end = life.from + life.seconds;
            for second in life.from..end {
                // A period is billed in its first second.
                if (second - life.from) % 60 != 0 {
                    continue;
                }
                let (studies, is_busy) = &payers[second as usize];
                let is_paid = *is_busy || (second..end).all(|later| !payers[later as usize].1);
                if is_paid {
                    for study in studies {
                        *expected.entry(*study).or_default() += 60.0 / studies.len() as f64;
                    }
                }
            }
        }
        for id in (1..).take(studies.len()) {
            let paid = ledger.cost(id).map_or(0.0, |cost| cost.cost);
            let slow = expected.get(&id).copied().unwrap_or(0.0);
            prop_assert!((paid - slow).abs() < 1e-6, "study {id}: {paid} and {slow}, {lives:?} {studies:?}");
        }
    }
}
