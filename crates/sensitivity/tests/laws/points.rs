//! Laws of point sequences of any size and seed.

use pleach_sensitivity::sampling::discrepancy::centered_l2;
use pleach_sensitivity::sampling::halton::radical_inverse;
use pleach_sensitivity::sampling::latin_hypercube::{Placement, smallest_distance};
use pleach_sensitivity::sampling::points::{PointsError, Sequence, UnitPoints};
use pleach_sensitivity::sampling::sampler::Sampler;
use proptest::prelude::*;

/// Sequences that study files name.
fn sequences() -> Vec<(&'static str, Sequence)> {
    let named = |name: &'static str| match Sampler::named(name, 40, 4) {
        Some(Sampler::Points(sequence)) => Some((name, sequence)),
        _ => None,
    };
    Sampler::NAMES.into_iter().filter_map(named).collect()
}

fn any_sequence() -> impl Strategy<Value = Sequence> {
    prop::sample::select(sequences()).prop_map(|(_, sequence)| sequence)
}

fn draw(sequence: Sequence, rows: usize, columns: usize, seed: u64) -> UnitPoints {
    sequence.points(rows, columns, seed).expect("points")
}

/// Returns the stratum of a coordinate, out of `count` equal ones.
fn stretch(coordinate: f64, count: usize) -> usize {
    (coordinate * count as f64) as usize
}

proptest! {
    #[test]
    fn points_are_in_the_unit_cube(sequence in any_sequence(), rows in 1_usize..80, columns in 1_usize..20, seed: u64) {
        let points = draw(sequence, rows, columns, seed);
        prop_assert_eq!((points.rows(), points.columns(), points.data().len()), (rows, columns, rows * columns));
        prop_assert!(points.data().iter().all(|x| (0.0..1.0).contains(x)));
        prop_assert!(points.iter().enumerate().all(|(row, point)| point == points.row(row)));
    }

    #[test]
    fn equal_seeds_make_equal_points(sequence in any_sequence(), rows in 2_usize..40, columns in 1_usize..9, seed: u64) {
        let points = draw(sequence, rows, columns, seed);
        prop_assert_eq!(&points, &draw(sequence, rows, columns, seed));
        let seedless = matches!(sequence, Sequence::Halton { scrambled: false } | Sequence::Hammersley { scrambled: false });
        // Two hypercubes of two centered points, and the evenly spaced dimension of Hammersley's, may be
        // equal by chance.
        if rows > 30 && columns > 2 {
            prop_assert_eq!(points == draw(sequence, rows, columns, seed ^ 1), seedless);
        }
    }

    /// In an extensible sequence, the points of a shorter sample are the first of a longer one. Other
    /// sequences return an error.
    #[test]
    fn extensible_samples_keep_their_points(
        sequence in any_sequence(), rows in 1_usize..60, more in 1_usize..60, columns in 1_usize..9, seed: u64,
    ) {
        let (short, long) = (draw(sequence, rows, columns, seed), draw(sequence, rows + more, columns, seed));
        let kept = short.data() == &long.data()[..rows * columns];
        match sequence.extensible() {
            Ok(()) => prop_assert!(kept),
            Err(error) => {
                prop_assert!(!kept);
                prop_assert!(error.to_string().contains("cannot be extended: the"), "{}", error);
            }
        }
    }

    /// More dimensions do not change the coordinates of earlier ones.
    #[test]
    fn dimensions_do_not_disturb_each_other(
        name in prop::sample::select(vec!["lhs", "lhs-centered", "halton", "halton-plain", "hammersley", "sobol"]),
        rows in 1_usize..40, columns in 1_usize..9, seed: u64,
    ) {
        let Some(Sampler::Points(sequence)) = Sampler::named(name, 40, 4) else { return Ok(()) };
        let (few, many) = (draw(sequence, rows, columns, seed), draw(sequence, rows, columns + 3, seed));
        prop_assert!(few.iter().zip(many.iter()).all(|(few, many)| few == &many[..columns]));
    }

    #[test]
    fn each_stretch_of_a_hypercube_is_hit_once(
        rows in 1_usize..200, columns in 1_usize..9, seed: u64,
        placement in prop_oneof![
            Just(Placement::Random), Just(Placement::Centered), Just(Placement::Maximin { swaps: 50 }),
        ],
    ) {
        let points = draw(Sequence::LatinHypercube(placement), rows, columns, seed);
        for column in 0..columns {
            let mut hit = vec![0; rows];
            points.iter().for_each(|point| hit[stretch(point[column], rows)] += 1);
            prop_assert!(hit.iter().all(|&hits| hits == 1), "{:?}", hit);
            if placement == Placement::Centered {
                let off = |point: &[f64]| (point[column] * rows as f64).fract() - 0.5;
                prop_assert!(points.iter().all(|point| off(point).abs() < 1e-9));
            }
        }
    }

    #[test]
    fn spreading_never_brings_points_together(rows in 3_usize..60, columns in 1_usize..9, swaps in 0_u32..300, seed: u64) {
        let plain = draw(Sequence::LatinHypercube(Placement::Random), rows, columns, seed);
        let spread = draw(Sequence::LatinHypercube(Placement::Maximin { swaps }), rows, columns, seed);
        prop_assert!(smallest_distance(&spread) >= smallest_distance(&plain));
        // Spreading only recombines the same coordinates.
        for column in 0..columns {
            let sorted = |points: &UnitPoints| {
                let mut found: Vec<f64> = points.iter().map(|point| point[column]).collect();
                found.sort_by(f64::total_cmp);
                found
            };
            prop_assert_eq!(sorted(&plain), sorted(&spread));
        }
    }

    /// A radical inverse has the digits of its number in reverse order.
    #[test]
    fn radical_inverses_have_the_digits_of_their_number(number in 0_u64..1_000_000_000, base in prop::sample::select(vec![2_u32, 3, 5, 7, 11, 53])) {
        let mut left = number;
        let mut value = 0.0;
        let mut unit = 1.0 / f64::from(base);
        while left > 0 {
            value += (left % u64::from(base)) as f64 * unit;
            unit /= f64::from(base);
            left /= u64::from(base);
        }
        prop_assert!((radical_inverse(number, base) - value).abs() < 1e-15);
    }

    /// Of the first bᵏ points, each of bᵏ strata of the dimension of base b holds one, scrambled or not.
    #[test]
    fn halton_points_fill_the_stretches_of_their_base(
        dimension in 0_usize..6, power in 1_u32..4, part in 0_usize..3, scrambled: bool, seed: u64,
    ) {
        let base = [2_usize, 3, 5, 7, 11, 13][dimension];
        let count = base.pow(power.min(if base > 5 { 2 } else { 3 }));
        let points = draw(Sequence::Halton { scrambled }, (part + 1) * count + 1, 6, seed);
        // Any bᵏ consecutive numbers have all combinations of their last k digits.
        let first = part * count;
        let mut hit = vec![0; count];
        for row in first..first + count {
            // The lower end of a stratum is a point, which rounding must not move below it.
            hit[stretch(points.row(row)[dimension] + 1e-9, count)] += 1;
        }
        prop_assert!(hit.iter().all(|&hits| hits == 1), "{:?}", hit);
    }

    #[test]
    fn hammersley_points_are_even_in_the_first_dimension(rows in 1_usize..100, columns in 1_usize..6, seed: u64) {
        let points = draw(Sequence::Hammersley { scrambled: true }, rows, columns, seed);
        let halton = draw(Sequence::Halton { scrambled: true }, rows, columns, seed);
        for (row, point) in points.iter().enumerate() {
            prop_assert!((point[0] * rows as f64 - row as f64 - 0.5).abs() < 1e-9);
            prop_assert_eq!(&point[1..], &halton.row(row)[..columns - 1]);
        }
    }
}

/// Low-discrepancy points fill the cube more evenly than random ones. Hypercubes do as well, but less so.
#[test]
fn even_points_have_less_discrepancy_than_random_ones() {
    let mean = |sequence: Sequence, columns| {
        (0..8).map(|seed| centered_l2(&draw(sequence, 128, columns, seed))).sum::<f64>() / 8.0
    };
    for columns in [2, 5] {
        let random = mean(Sequence::MonteCarlo, columns);
        for (name, sequence) in sequences() {
            let found = mean(sequence, columns);
            println!("{columns} dimensions, {name}: {found:.2e}, random {random:.2e}");
            let most = match name {
                "mc" => 1.01,
                "lhs" | "lhs-centered" | "lhs-maximin" => 0.7,
                _ => 0.4,
            };
            assert!(found < most * random, "{columns} dimensions, {name}: {found} {random}");
        }
    }
}

/// Expected values are mean squared discrepancies of 128 points over 100 seeds in 2 and 5 dimensions: of
/// SALib 1.6's `latin.sample`, of the points A of its `sobol.sample`, and of SciPy 1.17's `qmc.Halton` and
/// random numbers. Each has the relative tolerance of a mean of 100, four times its deviation.
#[test]
fn discrepancies_are_those_of_salib_and_scipy() {
    let expected: [(&str, [(f64, f64); 2]); 4] = [
        ("lhs", [(2.297e-4, 0.24), (3.312e-3, 0.08)]),
        ("sobol", [(4.155e-5, 0.03), (7.309e-4, 0.02)]),
        ("halton", [(7.783e-5, 0.16), (1.2256e-3, 0.05)]),
        ("mc", [(3.185e-3, 0.4), (1.1779e-2, 0.17)]),
    ];
    for (name, means) in expected {
        for (columns, (theirs, apart)) in [2, 5].into_iter().zip(means) {
            let Some(Sampler::Points(sequence)) = Sampler::named(name, 128, 4) else { continue };
            let ours =
                (0..100).map(|seed| centered_l2(&draw(sequence, 128, columns, seed))).sum::<f64>() / 100.0;
            println!("{name}, {columns} dimensions: {ours:.4e}, theirs {theirs:.4e}");
            assert!((ours / theirs - 1.0).abs() < apart, "{name}, {columns} dimensions: {ours} {theirs}");
        }
    }
}

#[test]
fn maximin_hypercubes_are_wider_than_the_widest_of_many() {
    let widest = (0..50)
        .map(|seed| smallest_distance(&draw(Sequence::LatinHypercube(Placement::Random), 30, 4, seed)))
        .fold(0.0, f64::max);
    let spread = Sequence::LatinHypercube(Placement::Maximin { swaps: 3_000 });
    let found = smallest_distance(&draw(spread, 30, 4, 500));
    assert!(found > 1.1 * widest, "{found} {widest}");
}

#[test]
fn invalid_point_requests_are_refused_with_the_cause() {
    let said = |sequence: Sequence, rows, columns| match sequence.points(rows, columns, 1) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{sequence:?} has such points"),
    };
    assert_eq!(said(Sequence::Sobol, 0, 3), "samples = 0 gives no evaluations; at least 1 is needed");
    assert_eq!(
        said(Sequence::Sobol, 4, 257),
        "sampler \"sobol\" has up to 256 dimensions, but 257 are needed; use \"mc\" or \"lhs\", which have \
         no limit"
    );
    assert!(
        said(Sequence::Halton { scrambled: true }, 4, 257).starts_with("sampler \"halton\" has up to 256")
    );
    assert!(
        said(Sequence::Hammersley { scrambled: false }, 4, 258)
            .starts_with("sampler \"hammersley\" has up to 257")
    );
    let spread = Sequence::LatinHypercube(Placement::Maximin { swaps: 1 });
    assert!(said(spread, 2_001, 2).starts_with("samples = 2001 are too many for a maximin hypercube"));
    assert_eq!(
        Sequence::LatinHypercube(Placement::Random).extensible(),
        Err(PointsError::NotExtensible {
            sampler: "lhs",
            reason: "the number of strata equals the number of points, so a larger sample has other points",
        })
    );
}
