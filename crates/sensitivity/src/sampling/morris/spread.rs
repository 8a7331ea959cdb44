//! Selection of the most distant among many trajectories.
//!
//! Sources: Campolongo, Cariboni and Saltelli, "An effective screening design for sensitivity analysis of large
//! models", Environmental Modelling & Software 22 (2007), for the distance d of two trajectories (over all pairs of
//! their points, the sum of their Euclidean distances in the unit cube) and the spread D of several, D² = Σ d² over
//! pairs. Ruano et al., "An improved sampling strategy based on trajectory design for application of the Morris
//! method to systems with many input factors", Environmental Modelling & Software 37 (2012), for selection without
//! an exhaustive search. The caller generates the trajectories.

/// Squared distances between trajectories, all pairs.
#[derive(Debug)]
pub(super) struct Distances {
    count: usize,
    squared: Vec<f64>,
}

impl Distances {
    /// Computes the distances. Each of `trajectories` holds its points row by row, with `columns`
    /// coordinates.
    pub(super) fn of(trajectories: &[Vec<f64>], columns: usize) -> Self {
        let count = trajectories.len();
        let mut squared = vec![0.0; count * count];
        for one in 0..count {
            for other in one + 1..count {
                let distance = distance(&trajectories[one], &trajectories[other], columns);
                squared[one * count + other] = distance * distance;
                squared[other * count + one] = distance * distance;
            }
        }
        Self { count, squared }
    }

    fn between(&self, one: usize, other: usize) -> f64 {
        self.squared[one * self.count + other]
    }

    /// Returns the increase of D² by adding a trajectory to the chosen ones.
    fn added(&self, chosen: &[usize], one: usize) -> f64 {
        chosen.iter().map(|&other| self.between(one, other)).sum()
    }

    /// Returns D² of some trajectories.
    pub(super) fn spread(&self, chosen: &[usize]) -> f64 {
        chosen.iter().enumerate().map(|(place, &one)| self.added(&chosen[..place], one)).sum()
    }
}

/// Returns Campolongo's d. 0 for equal trajectories, although the points of one are apart.
fn distance(one: &[f64], other: &[f64], columns: usize) -> f64 {
    if one == other {
        return 0.0;
    }
    let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
    one.chunks_exact(columns)
        .map(|a| other.chunks_exact(columns).map(|b| squared(a, b).sqrt()).sum::<f64>())
        .sum()
}

/// Returns the number of ways to choose `few` of `many`. Returns `None` beyond a u64.
pub(super) fn choices(many: u64, few: u64) -> Option<u64> {
    // Each step computes the number of ways to choose r + 1 from that to choose r, which divides without
    // remainder.
    let few = few.min(many.checked_sub(few)?);
    (0..few).try_fold(1_u64, |ways, taken| Some(ways.checked_mul(many - taken)? / (taken + 1)))
}

/// Returns the `few` trajectories of largest spread by trying all choices (Campolongo), in ascending order. On ties
/// returns the first.
pub(super) fn exhaustive(distances: &Distances, few: usize) -> Vec<usize> {
    let mut best = (f64::NEG_INFINITY, Vec::new());
    let mut chosen = Vec::with_capacity(few);
    extend(distances, few, 0, 0.0, &mut chosen, &mut best);
    best.1
}

fn extend(
    distances: &Distances,
    few: usize,
    from: usize,
    spread: f64,
    chosen: &mut Vec<usize>,
    best: &mut (f64, Vec<usize>),
) {
    if chosen.len() == few {
        // Only a larger spread replaces the choice, so ties go to the first combination.
        if spread > best.0 {
            *best = (spread, chosen.clone());
        }
        return;
    }
    // Ends early enough for the remaining picks, and ascending picks visit each combination once.
    let missing = few - chosen.len();
    for next in from..=distances.count - missing {
        let wider = spread + distances.added(chosen, next);
        chosen.push(next);
        extend(distances, few, next + 1, wider, chosen, best);
        chosen.pop();
    }
}

/// Returns `few` trajectories of large spread by adding one after the other (Ruano), in ascending order.
///
/// Starts from each trajectory with its i farthest ones, keeps the best of these, adds the one that increases the
/// spread most up to `few`, and takes the best over i = 1 … few − 1. Unlike Ruano's, it also considers the first
/// `few` trajectories, so the result is never less spread than without selection.
pub(super) fn sequential(distances: &Distances, few: usize) -> Vec<usize> {
    let count = distances.count;
    // For each trajectory: the other trajectories, farthest first, and its spread with those taken so far.
    let mut starts: Vec<(Vec<usize>, f64)> = (0..count)
        .map(|one| {
            let mut set: Vec<usize> = (0..count).filter(|&other| other != one).collect();
            set.sort_by(|&a, &b| distances.between(one, b).total_cmp(&distances.between(one, a)));
            set.insert(0, one);
            set.truncate(few);
            (set, 0.0)
        })
        .collect();
    let first: Vec<usize> = (0..few).collect();
    let mut best = (distances.spread(&first), first);
    for size in 1..few {
        for (set, spread) in &mut starts {
            *spread += distances.added(&set[..size], set[size]);
        }
        let Some((set, spread)) = starts.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let widened = widen(distances, &set[..=size], *spread, few);
        if widened.0 > best.0 {
            best = widened;
        }
    }
    // Trajectories keep the order of their drawing, as in the exhaustive search.
    best.1.sort_unstable();
    best.1
}

/// Adds the trajectory that increases the spread most, up to `few`. Returns the spread and the trajectories.
fn widen(distances: &Distances, set: &[usize], spread: f64, few: usize) -> (f64, Vec<usize>) {
    let (mut spread, mut chosen) = (spread, set.to_vec());
    // Gain of each trajectory. `None` if it is already chosen.
    let mut gains: Vec<Option<f64>> = (0..distances.count)
        .map(|one| (!chosen.contains(&one)).then(|| distances.added(&chosen, one)))
        .collect();
    while chosen.len() < few {
        let left = gains.iter().enumerate().filter_map(|(one, gain)| Some((one, (*gain)?)));
        let Some((next, gain)) = left.max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
        spread += gain;
        chosen.push(next);
        gains[next] = None;
        for (one, gain) in gains.iter_mut().enumerate() {
            if let Some(gain) = gain {
                // Gains are updated by the last pick alone: a recomputation would cost a factor of the batch size.
                *gain += distances.between(one, next);
            }
        }
    }
    (spread, chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns distances of trajectories of three parameters and four levels that SALib 1.6 drew, one digit
    /// per level.
    fn of_salib(trajectories: [&str; 10]) -> Distances {
        let places = |digits: &str| digits.bytes().map(|digit| f64::from(digit - b'0') / 3.0).collect();
        Distances::of(&trajectories.map(places), 3)
    }

    /// Selections equal those of SALib 1.6's `BruteForce` and `LocalOptimisation`, and distances those that
    /// it computes in 32 bits.
    #[test]
    fn the_trajectories_chosen_are_those_of_salib() {
        let distances = of_salib([
            "320120100102",
            "213211231031",
            "110130330332",
            "232212012010",
            "021221223203",
            "333133131111",
            "210230030032",
            "203003023021",
            "300100102122",
            "023003001201",
        ]);
        assert_eq!(exhaustive(&distances, 4), [2, 6, 7, 9]);
        assert_eq!(sequential(&distances, 4), [2, 6, 7, 9]);
        assert!((distances.spread(&[2, 6, 7, 9]).sqrt() - 40.033_493).abs() < 1e-5);

        let distances = of_salib([
            "333133131111",
            "100102122322",
            "111113313333",
            "211231233033",
            "113133131331",
            "320120122102",
            "102122322320",
            "130132332312",
            "000002022222",
            "230030010012",
        ]);
        assert_eq!(exhaustive(&distances, 4), [2, 7, 8, 9]);
        assert!((distances.spread(&[2, 7, 8, 9]).sqrt() - 36.205_395).abs() < 1e-5);
        // The greedy search misses the best selection of these trajectories.
        assert_eq!(sequential(&distances, 4), [2, 3, 8, 9]);
        assert!((distances.spread(&[2, 3, 8, 9]).sqrt() - 35.811_214).abs() < 1e-5);
    }

    #[test]
    fn number_of_selections_is_binomial() {
        assert_eq!(choices(10, 4), Some(210));
        assert_eq!(choices(10, 10), Some(1));
        assert_eq!(choices(3, 4), None);
        assert_eq!(choices(100, 50), None);
        assert_eq!(choices(62, 31), Some(465_428_353_255_261_088));
    }

    #[test]
    fn equal_trajectories_have_no_distance() {
        let one = vec![0.0, 0.0, 1.0, 0.0];
        let other = vec![0.0, 1.0, 1.0, 1.0];
        // The distances of all pairs are 1, √2, √2 and 1.
        assert!((distance(&one, &other, 2) - 2.0 * (1.0 + 2.0_f64.sqrt())).abs() < 1e-15);
        assert_eq!(distance(&one, &one, 2), 0.0);
    }
}
