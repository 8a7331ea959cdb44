//! Exact rows of the reference application's feature stage on an annotated tile.

use crate::Features;
use crate::data::data;
use pleach_pathology::image_io::{read_bgr, read_labels};

const COLUMNS: [&str; 15] = [
    "area",
    "perimeter",
    "major-axis",
    "minor-axis",
    "eccentricity",
    "extent",
    "circularity",
    "nucleus-blue-mean",
    "nucleus-blue-max",
    "nucleus-blue-min",
    "nucleus-blue-sd",
    "nucleus-blue-entropy",
    "nucleus-blue-energy",
    "nucleus-blue-skewness",
    "nucleus-blue-kurtosis",
];

/// Label and numbers, each with all of its digits.
const ROWS: [(u32, [&str; 15]); 2] = [
    (
        1,
        [
            "732", "110.8112", "41.1214", "22.9753", ".82936", ".63542", ".74912", "160.5164", "206", "131",
            "11.7326", "5.4849", ".0259", ".1007", "3.0782",
        ],
    ),
    (
        50,
        [
            "660", "119.2965", "49.4448", "17.4943", ".93532", ".50575", ".58277", "137.4682", "173", "111",
            "11.7165", "5.4736", ".0269", ".5422", "2.9172",
        ],
    ),
];

#[test]
fn annotated_nuclei_have_the_numbers_of_the_reference_application() {
    let Some(data) = data("annotated_nuclei_have_the_numbers_of_the_reference_application") else { return };
    let tile = read_bgr(&data.join("annotated/gbm40/gbm40_03.png")).unwrap();
    let labels = read_labels(&data.join("annotated/gbm40/gbm40_03_labels.png")).unwrap();
    let features = Features::of(tile, labels, 32);
    assert_eq!(features.objects().len(), 108);
    for (label, expected) in ROWS {
        let object = features.of_label(label);
        for (column, expected) in COLUMNS.into_iter().zip(expected) {
            let digits = expected.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let half = 0.5 * 10_f64.powi(-(digits as i32)) * (1.0 + 1e-9);
            let (found, expected) = (features.number(object, column), expected.parse::<f64>().unwrap());
            assert!((found - expected).abs() <= half, "{label} {column}: {found}, expected {expected}");
        }
    }
}
