//! Otsu's threshold: N. Otsu, "A threshold selection method from gray-level histograms" (1979), with 256 bins.

/// Returns the level `t` that splits the values of `plane` into `0..=t` and `t + 1..=255` with the largest variance
/// between both classes, the smallest such level if several are equal. Returns `None` without two distinct values.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a ratio of variances; sums of a plane are far below 2^53")]
pub fn otsu(plane: &[u8]) -> Option<u8> {
    let mut histogram = [0_u64; 256];
    plane.iter().for_each(|&value| histogram[usize::from(value)] += 1);
    let count = plane.len() as f64;
    let sum: f64 = (0_u64..).zip(&histogram).map(|(level, pixels)| (level * pixels) as f64).sum();
    let (mut below, mut sum_below) = (0.0, 0.0);
    let mut best = (0.0, None);
    for (level, &pixels) in (0_u8..=255).zip(&histogram) {
        below += pixels as f64;
        sum_below += f64::from(level) * pixels as f64;
        let above = count - below;
        if below == 0.0 || above == 0.0 {
            continue;
        }
        let difference = sum_below / below - (sum - sum_below) / above;
        let between = below * above * difference * difference;
        if between > best.0 {
            best = (between, Some(level));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_is_the_lowest_between_two_classes() {
        assert_eq!(otsu(&[10, 10, 200, 200]), Some(10));
        assert_eq!(otsu(&[0, 1, 2, 250, 255]), Some(2));
        assert_eq!(otsu(&[0, 255]), Some(0));
        assert_eq!(otsu(&[7; 9]), None);
        assert_eq!(otsu(&[]), None);
    }
}
