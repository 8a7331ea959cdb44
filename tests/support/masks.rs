//! Masks in PNG files, compared pixel by pixel.

use std::collections::BTreeMap;
use std::path::Path;

/// Whether each pixel of a mask or label map is object.
pub(crate) fn mask(path: &Path) -> Vec<bool> {
    let image = image::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    image.into_luma16().pixels().map(|pixel| pixel.0[0] > 0).collect()
}

/// Eight-connected components of a mask by flood fill, numbered from 1. 0 is background.
pub(crate) fn components(mask: &[bool], width: usize) -> Vec<u32> {
    let (columns, rows) = (width as i64, (mask.len() / width) as i64);
    let mut labels = vec![0; mask.len()];
    let mut last = 0;
    for start in 0..mask.len() {
        if !mask[start] || labels[start] > 0 {
            continue;
        }
        last += 1;
        labels[start] = last;
        let mut reached = vec![start];
        while let Some(pixel) = reached.pop() {
            let (x, y) = (pixel as i64 % columns, pixel as i64 / columns);
            for (x, y) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (x + dx, y + dy))) {
                if (0..columns).contains(&x) && (0..rows).contains(&y) {
                    let next = (y * columns + x) as usize;
                    if mask[next] && labels[next] == 0 {
                        labels[next] = last;
                        reached.push(next);
                    }
                }
            }
        }
    }
    labels
}

/// Dice, Jaccard and the number of differing pixels, as `responses.csv` writes them.
pub(crate) fn compare(mask: &[bool], reference: &[bool]) -> BTreeMap<String, String> {
    assert_eq!(mask.len(), reference.len());
    let count = |test: fn(bool, bool) -> bool| {
        mask.iter().zip(reference).filter(|(a, b)| test(**a, **b)).count() as f64
    };
    let (first, second) = (count(|a, _| a), count(|_, b| b));
    let (both, either) = (count(|a, b| a && b), count(|a, b| a || b));
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
    BTreeMap::from([
        ("dice".to_owned(), share(2.0 * both, first + second).to_string()),
        ("jaccard".to_owned(), share(both, either).to_string()),
        ("pixel-difference".to_owned(), count(|a, b| a != b).to_string()),
    ])
}
