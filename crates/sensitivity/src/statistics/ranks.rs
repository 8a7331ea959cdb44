//! Orders and ranks of numbers and of their bootstrap resamples.

use crate::statistics::bootstrap::drawn;

/// Returns the indices of the numbers in ascending order. Equal numbers keep their order.
pub(crate) fn order(numbers: &[f64]) -> Vec<u32> {
    // Designs have at most 10 million rows.
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    order.sort_by(|&a, &b| numbers[a as usize].total_cmp(&numbers[b as usize]));
    order
}

/// Writes the ranks from 1 in a resample with these weights, in the order of `numbers`. Equal numbers share
/// their middle rank.
///
/// `order` is the result of [`order`]. Entries of `ranks` for numbers with weight 0 have no meaning.
pub(crate) fn weighted_ranks(numbers: &[f64], order: &[u32], weights: &[f64], ranks: &mut [f64]) {
    let mut before = 0.0;
    let mut start = 0;
    while start < order.len() {
        let value = numbers[order[start] as usize];
        let mut end = start;
        let mut weight = 0.0;
        while end < order.len() && numbers[order[end] as usize] == value {
            weight += weights[order[end] as usize];
            end += 1;
        }
        for &row in &order[start..end] {
            // A value drawn w times has the ranks before + 1 to before + w, and this is their mean.
            ranks[row as usize] = before + (weight + 1.0) / 2.0;
        }
        before += weight;
        start = end;
    }
}

/// Returns the resample's number at `place` of its ascending order, from 0, and the next one. The last number
/// is paired with itself.
pub(crate) fn pair_at(numbers: &[f64], order: &[u32], weights: &[f64], place: usize) -> (f64, f64) {
    let mut before = 0.0;
    let mut found = None;
    let mut last = f64::NAN;
    for (row, weight) in drawn(order, weights) {
        last = numbers[row];
        if let Some(first) = found {
            return (first, last);
        }
        before += weight;
        if before > place as f64 + 1.0 {
            return (last, last);
        }
        if before > place as f64 {
            found = Some(last);
        }
    }
    (found.unwrap_or(last), last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(numbers: &[f64]) -> Vec<f64> {
        let mut ranks = vec![0.0; numbers.len()];
        weighted_ranks(numbers, &order(numbers), &vec![1.0; numbers.len()], &mut ranks);
        ranks
    }

    /// A resample has the ranks of its expanded list.
    #[test]
    fn ranks_of_a_resample_are_those_of_its_list() {
        let numbers = [3.0, 1.0, 2.0, 3.0, -1.0];
        let weights = [2.0, 0.0, 1.0, 1.0, 1.0];
        let mut found = vec![0.0; 5];
        weighted_ranks(&numbers, &order(&numbers), &weights, &mut found);
        let listed = ranks(&[3.0, 3.0, 2.0, 3.0, -1.0]);
        assert_eq!(listed, [4.0, 4.0, 2.0, 4.0, 1.0]);
        assert_eq!([found[0], found[2], found[3], found[4]], [4.0, 2.0, 4.0, 1.0]);
    }

    #[test]
    fn places_of_a_resample_are_those_of_its_list() {
        let numbers = [3.0, 1.0, 2.0, 9.0];
        let order = order(&numbers);
        let at = |place| pair_at(&numbers, &order, &[1.0, 2.0, 0.0, 1.0], place);
        assert_eq!([at(0), at(1), at(2), at(3)], [(1.0, 1.0), (1.0, 3.0), (3.0, 9.0), (9.0, 9.0)]);
    }
}
