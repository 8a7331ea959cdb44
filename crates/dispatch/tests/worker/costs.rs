//! Cost model, against a plain recount of all runs.

use pleach_dispatch::SlotKind;
use pleach_dispatch::cost_model::{CostModel, DeviceGain};
use pleach_regions::DataRegion;
use pleach_workflow::{Accepts, Argument, Operation, OperationError, Port, Value};
use proptest::collection::vec;
use proptest::prelude::*;

/// Operation with declared seconds per pixel. One of its arguments has few values, the other many.
struct Toy(f64);

impl Operation for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn version(&self) -> u32 {
        3
    }

    fn arguments(&self) -> &[Argument] {
        const ARGUMENTS: [Argument; 2] = [
            Argument { name: "threshold", accepts: Accepts::Integers { low: 0, high: 255 } },
            Argument { name: "connectivity", accepts: Accepts::OneOf(&[4, 8]) },
        ];
        &ARGUMENTS
    }

    fn inputs(&self) -> &[Port] {
        &[]
    }

    fn outputs(&self) -> &[Port] {
        &[]
    }

    #[expect(clippy::cast_precision_loss, reason = "few pixels")]
    fn cost_seconds(&self, pixels: u64) -> f64 {
        self.0 * pixels as f64
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        0
    }

    fn run(&self, _: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        Ok(Vec::new())
    }
}

fn arguments(threshold: i64, connectivity: i64) -> [Value; 2] {
    [Value::Integer(threshold), Value::Integer(connectivity)]
}

/// Returns the mean of the first 10 ratios. Each newer ratio then gets a weight of 0.1.
fn weighted(ratios: &[f64]) -> Option<f64> {
    let (first, rest) = ratios.split_at(ratios.len().min(10));
    let mean = (!first.is_empty()).then(|| first.iter().sum::<f64>() / first.len() as f64)?;
    Some(rest.iter().fold(mean, |believed, ratio| 0.9 * believed + 0.1 * ratio))
}

proptest! {
    #[test]
    fn predicted_cost_is_the_weighted_measured_cost(
        runs in vec((0i64..255, prop_oneof![Just(4i64), Just(8)], 1u64..1000, 0.0..3.0f64), 0..60),
        pixels in 1u64..1000,
    ) {
        let toy = Toy(0.5);
        let mut costs = CostModel::default();
        for &(threshold, connectivity, pixels, ratio) in &runs {
            let seconds = ratio * toy.cost_seconds(pixels);
            costs.observe(&toy, &arguments(threshold, connectivity), pixels, seconds);
        }
        let again = CostModel::of_lines(costs.lines().iter().map(String::as_str));
        prop_assert_eq!(&again, &costs);
        for connectivity in [4, 8] {
            let of = |wanted: Option<i64>| -> Vec<f64> {
                runs.iter().filter(|run| wanted.is_none_or(|wanted| wanted == run.1)).map(|run| run.3).collect()
            };
            let believed = weighted(&of(Some(connectivity))).or_else(|| weighted(&of(None))).unwrap_or(1.0);
            let predicted = costs.predict(&toy, &arguments(7, connectivity), pixels) / toy.cost_seconds(pixels);
            prop_assert!((predicted - believed).abs() < 1e-9, "{predicted}, not {believed}");
        }
    }

    #[test]
    fn noise_is_read_or_left_out(lines in vec(".{0,40}", 0..8), pixels in 1u64..1000) {
        let costs = CostModel::of_lines(lines.iter().map(String::as_str));
        let predicted = costs.predict(&Toy(0.5), &arguments(1, 4), pixels);
        prop_assert!(predicted.is_finite() && predicted >= 0.0);
    }
}

#[test]
fn invalid_measurements_are_ignored() {
    let toy = Toy(0.5);
    let mut costs = CostModel::default();
    for seconds in [f64::NAN, f64::INFINITY, -1.0] {
        costs.observe(&toy, &arguments(1, 4), 10, seconds);
    }
    // A declaration of 0 s has no ratio to learn.
    costs.observe(&Toy(0.0), &arguments(1, 4), 10, 1.0);
    assert_eq!(costs, CostModel::default());
    assert_eq!(costs.predict(&toy, &arguments(1, 4), 10), 5.0);
    for line in ["toy\t3\t\t0\t1e0", "toy\t3\t\t5\tNaN", "toy\t3\t\t5\t-1e0", "toy\t3\t\t5\t1e0\tmore", "toy"]
    {
        assert_eq!(CostModel::of_lines([line]), CostModel::default(), "{line}");
    }
}

#[test]
fn gain_is_declared_until_eight_runs_of_each_kind_are_known() {
    let (toy, arguments) = (Toy(1e-6), arguments(1, 4));
    let mut costs = CostModel::default();
    let gain = |costs: &CostModel| costs.device_gain(&toy, &arguments, 12.5);
    let declared = |kind| DeviceGain { thousandths: 12_500, trial: Some(kind) };
    let run = |costs: &mut CostModel, kind, seconds| {
        costs.observe_on(kind, &toy, &arguments, 1_000_000, seconds);
    };
    for _ in 0..7 {
        run(&mut costs, SlotKind::Accelerator, 0.5);
        assert_eq!(gain(&costs), declared(SlotKind::Accelerator));
    }
    assert_eq!(costs.predict_on(SlotKind::Accelerator, &toy, &arguments, 1_000_000, 12.5), 1.0 / 12.5);
    run(&mut costs, SlotKind::Accelerator, 0.5);
    assert_eq!(costs.predict_on(SlotKind::Accelerator, &toy, &arguments, 1_000_000, 12.5), 0.5);
    for _ in 0..7 {
        assert_eq!(gain(&costs), declared(SlotKind::Core));
        run(&mut costs, SlotKind::Core, 2.0);
    }
    run(&mut costs, SlotKind::Core, 2.0);
    assert_eq!(gain(&costs), DeviceGain { thousandths: 4000, trial: None });
    // The time on a core is that of cores alone.
    assert_eq!(costs.predict(&toy, &arguments, 1_000_000), 2.0);

    let lines = costs.lines();
    assert!(lines.iter().all(|line| line.split('\t').count() == 5), "{lines:?}");
    assert!(lines.contains(&"toy@accelerator\t3\t4\t8\t5e-1".to_owned()), "{lines:?}");
    let read = CostModel::of_lines(lines.iter().map(String::as_str));
    assert_eq!(read, costs);
    assert_eq!(gain(&read).thousandths, 4000);
}
