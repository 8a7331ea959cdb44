//! Speed of cores and accelerators together on a mix of operations.

/// Work of one operation in a study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperationWork {
    /// Seconds of all its runs on a core.
    pub core_seconds: f64,
    /// Seconds on a core / seconds on an accelerator, above 0. `None` without a variant for accelerators.
    pub gain: Option<f64>,
    /// Whether it may run on a core.
    pub on_core: bool,
}

/// Returns how many times faster `cores` cores and `accelerators` accelerators together do the work than the cores alone.
///
/// It is the speed of the best assignment, which PATS (001 §2.2) comes close to: operations of the greatest gain run on
/// accelerators, as many of them as let both kinds end at once. 1 without accelerators and without work.
#[must_use]
pub fn speed_with_accelerators(work: &[OperationWork], cores: u32, accelerators: u32) -> f64 {
    let all: f64 = work.iter().map(|operation| operation.core_seconds).sum();
    if accelerators == 0 || all <= 0.0 {
        return 1.0;
    }
    let (cores, accelerators) = (f64::from(cores.max(1)), f64::from(accelerators));
    let (mut on_cores, mut on_accelerators) = (all, 0.0);
    let mut movable = Vec::new();
    for operation in work {
        match operation.gain {
            Some(gain) if operation.on_core => movable.push((gain, operation.core_seconds)),
            Some(gain) => {
                on_cores -= operation.core_seconds;
                on_accelerators += operation.core_seconds / gain;
            }
            None => {}
        }
    }
    movable.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (gain, seconds) in movable {
        // The share x with (on_accelerators + x * seconds / gain) / accelerators = (on_cores - x * seconds) / cores.
        let gap = on_cores / cores - on_accelerators / accelerators;
        let share = (gap / (seconds / gain / accelerators + seconds / cores)).clamp(0.0, 1.0);
        // Not a number for an operation without seconds.
        if share > 0.0 {
            on_cores -= share * seconds;
            on_accelerators += share * seconds / gain;
        }
    }
    all / cores / (on_cores / cores).max(on_accelerators / accelerators)
}

#[cfg(test)]
mod tests {
    use super::{OperationWork, speed_with_accelerators};

    /// Milliseconds of Region Templates' example on a core and on an accelerator (`runtime/examples/PipelineTasks`).
    const EXAMPLE: [(f64, f64); 10] = [
        (394.1, 29.91),
        (152.2, 16.54),
        (1748.3, 318.9),
        (129.5, 28.1),
        (1587.3, 229.9),
        (355.5, 62.0),
        (1096.9, 78.15),
        (151.7, 8.97),
        (1723.1, 96.83),
        (294.2, 17.89),
    ];

    fn both(core_seconds: f64, gain: f64) -> OperationWork {
        OperationWork { core_seconds, gain: Some(gain), on_core: true }
    }

    #[test]
    fn example_has_the_lower_bound_of_the_prototype() {
        let work = EXAMPLE.map(|(core, device)| both(core, core / device));
        let alone = EXAMPLE.iter().map(|(core, _)| core).sum::<f64>() / 16.0 * 300.0 / 1000.0;
        let together = alone / speed_with_accelerators(&work, 16, 1);
        assert!((together - 72.7).abs() < 0.1, "{together} s");
    }

    #[test]
    fn kinds_that_an_operation_lacks_get_none_of_it() {
        let core = OperationWork { core_seconds: 6.0, gain: None, on_core: true };
        let device = OperationWork { core_seconds: 8.0, gain: Some(4.0), on_core: false };
        // 6 s on two cores, 2 s on the accelerator; the cores alone are taken to do the 14 s in 7 s.
        assert!((speed_with_accelerators(&[core, device], 2, 1) - 7.0 / 3.0).abs() < 1e-12);
        // Half of 8 s: 4 s on a core, and 4 s at a gain of 1 on the accelerator.
        assert!((speed_with_accelerators(&[both(8.0, 1.0)], 1, 1) - 2.0).abs() < 1e-12);
        for work in [&[][..], &[both(0.0, 2.0)], &[core]] {
            assert!((speed_with_accelerators(work, 3, 2) - 1.0).abs() < 1e-12, "{work:?}");
        }
        assert!((speed_with_accelerators(&[both(1.0, 9.0)], 3, 0) - 1.0).abs() < 1e-12);
    }
}
