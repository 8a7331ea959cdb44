//! Names of the numbers of an object, and of the responses.

use super::CHANNELS;

/// Names of the channels.
pub(super) const CHANNEL_NAMES: [&str; CHANNELS] = ["blue", "green", "red", "hematoxylin"];

/// Parts of an object with statistics of their own.
pub(super) const PARTS: [&str; 2] = ["nucleus", "cytoplasm"];

/// Columns of shape, the position first.
pub(super) const SHAPE: [&str; 10] = [
    "label",
    "x",
    "y",
    "area",
    "perimeter",
    "major-axis",
    "minor-axis",
    "eccentricity",
    "extent",
    "circularity",
];

/// Number of columns of [`SHAPE`] that are no measurement: label and centroid.
pub(super) const POSITION_COLUMNS: usize = 3;

/// Statistics of a gradient, of the pixels' intensity after [`INTENSITY_ONLY`].
pub(super) const STATISTICS: [&str; 7] =
    ["mean", "median", "sd", "entropy", "energy", "skewness", "kurtosis"];

/// Statistics of the intensity alone.
pub(super) const INTENSITY_ONLY: [&str; 2] = ["max", "min"];

/// Planes with the [`STATISTICS`], after the intensity.
pub(super) const MAGNITUDES: [&str; 2] = ["gradient", "sobel"];

/// Numbers of the edges.
pub(super) const EDGES: [&str; 2] = ["edge-count", "edge-mean"];

/// Number of statistics per channel.
pub(super) const PER_CHANNEL: usize =
    INTENSITY_ONLY.len() + (1 + MAGNITUDES.len()) * STATISTICS.len() + EDGES.len();

/// Columns of texture: R. M. Haralick, K. Shanmugam and I. Dinstein, Textural features for image classification, 1973, in
/// the order of the paper.
pub(super) const TEXTURE: [&str; 13] = [
    "texture-energy",
    "texture-contrast",
    "texture-correlation",
    "texture-variance",
    "texture-homogeneity",
    "texture-sum-average",
    "texture-sum-variance",
    "texture-sum-entropy",
    "texture-entropy",
    "texture-difference-variance",
    "texture-difference-entropy",
    "texture-information-1",
    "texture-information-2",
];

/// Returns the columns of one part, channel after channel.
pub(super) fn statistics(part: &str) -> Vec<String> {
    let of_channel = |channel: &&str| {
        let intensity = INTENSITY_ONLY.iter().chain(&STATISTICS).map(|name| (*name).to_owned());
        let magnitudes =
            MAGNITUDES.iter().flat_map(|plane| STATISTICS.iter().map(move |name| format!("{plane}-{name}")));
        let names = intensity.chain(magnitudes).chain(EDGES.map(str::to_owned));
        names.map(|name| format!("{part}-{channel}-{name}")).collect::<Vec<_>>()
    };
    CHANNEL_NAMES.iter().flat_map(of_channel).collect()
}

/// Returns all columns of an object.
pub(super) fn all() -> Vec<String> {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    [names(&SHAPE), statistics(PARTS[0]), statistics(PARTS[1]), names(&TEXTURE)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_as_many_as_numbers() {
        let all = all();
        assert_eq!(all.len(), SHAPE.len() + 2 * CHANNELS * PER_CHANNEL + TEXTURE.len());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(PER_CHANNEL, 25);
        assert_eq!(statistics("nucleus")[2..4], ["nucleus-blue-mean", "nucleus-blue-median"]);
        assert!(all.contains(&"cytoplasm-hematoxylin-sobel-kurtosis".to_owned()));
    }
}
