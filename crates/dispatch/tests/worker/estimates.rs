//! Memory estimates of operations, against a list of all measurements.

use pleach_dispatch::memory_estimates::MemoryEstimates;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn estimate_covers_the_largest_measurement(
        runs in vec((0usize..2, 0u64..1000, 0u64..2000), 0..60), declared in 1u64..1_000_000,
    ) {
        let names = ["a", "b"];
        let mut estimates = MemoryEstimates::default();
        for &(name, declared, measured) in &runs {
            estimates.observe(names[name], 1, declared, measured);
        }
        for (name, operation) in names.into_iter().enumerate() {
            // A declaration of 0 bytes has no ratio to learn.
            let seen: Vec<(u64, u64)> =
                runs.iter().filter(|run| run.0 == name && run.1 > 0).map(|run| (run.1, run.2)).collect();
            let believed = estimates.bytes(operation, 1, declared);
            // Compared as rationals: no measurement, scaled to the declared bytes, exceeds the estimate.
            let above = seen.iter().any(|(d, m)| u128::from(*m) * u128::from(declared) > u128::from(*d) * u128::from(believed));
            prop_assert!(!above, "more was seen than {believed}");
            let most = seen.iter().map(|(d, m)| *m as f64 / *d as f64 * declared as f64).fold(0.0, f64::max);
            if seen.len() < 16 {
                prop_assert!(believed >= declared);
                prop_assert!(believed as f64 <= most.max(declared as f64) + 1.5);
            } else {
                prop_assert!(believed as f64 <= most + 1.5);
            }
            prop_assert_eq!(estimates.bytes(operation, 2, declared), declared, "another version is another operation");
        }
    }
}
