//! Agreement with scikit-image and NumPy, which the environment of `scripts/install-python` has.

use crate::{Features, label_map};
use pleach_pathology::tissue;
use pleach_regions::DataRegion;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Reads the tile, its labels and all numbers, and compares them with its own. Definitions that differ: axes, whose
/// squares have 4/3 px² more here, as in MATLAB, since a pixel is a square and not a point; and the perimeter. `regionprops` has
/// `perimeter` (of border pixels, by their neighbors) and `perimeter_crofton`, neither of them over 2 × 2 px cells.
const SCRIPT: &str = r#"
import sys, numpy as np
from skimage.measure import label, regionprops
from skimage.feature import graycomatrix, graycoprops
from skimage.filters import sobel
from scipy import ndimage, stats
folder, side = sys.argv[1], int(sys.argv[2])
load = lambda name, kind: np.fromfile(f"{folder}/{name}", kind)
labels = load("labels", "<u4").reshape(side, side).astype(int)
channels, gradient, sobels = (load(name, "u1").reshape(side, side, 4) for name in ("channels", "gradient", "sobel"))
names = open(f"{folder}/names").read().split("\n")
rows = load("numbers", "<f8").reshape(-1, len(names))
of = {row[0]: dict(zip(names, row)) for row in rows}
for c in range(4):
    y, x = np.gradient(channels[..., c].astype(float))
    assert (np.minimum(255, np.rint(np.hypot(x, y))) == gradient[..., c]).all()
    expected = sobel(channels[..., c].astype(float))
    assert np.abs(expected - sobels[..., c]).max() <= 0.5 + 1e-6, np.abs(expected - sobels[..., c]).max()
disk = np.hypot(*np.mgrid[-8:9, -8:9]) <= 8
properties = regionprops(labels, intensity_image=channels)
assert len(properties) == len(of) > 20
close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
perimeters = []
for p in properties:
    ours = of[p.label]
    close([ours["y"] - 0.5, ours["x"] - 0.5], p.centroid)
    # A pixel is a square here, with second moments of 1/12, and a point there.
    major, minor = np.hypot(p.axis_major_length, (4 / 3) ** 0.5), np.hypot(p.axis_minor_length, (4 / 3) ** 0.5)
    close([ours["area"], ours["major-axis"], ours["minor-axis"], ours["eccentricity"], ours["extent"]],
          [p.area, major, minor, np.sqrt(1 - (minor / major) ** 2), p.extent])
    perimeters.append((ours["perimeter"] / p.perimeter, ours["perimeter"] / p.perimeter_crofton))
    ring = ndimage.binary_dilation(labels == p.label, disk) & (labels == 0)
    for part, where in (("nucleus", labels == p.label), ("cytoplasm", ring)):
        for c, channel in enumerate(("blue", "green", "red", "hematoxylin")):
            for plane, prefix in ((channels, ""), (gradient, "gradient-"), (sobels, "sobel-")):
                v = plane[..., c][where].astype(float)
                share = np.bincount(v.astype(int), minlength=256) / len(v)
                share = share[share > 0]
                expected = [v.mean(), np.median(v), v.std(), -(share * np.log2(share)).sum(), (share**2).sum(),
                            stats.skew(v), stats.kurtosis(v, fisher=False)]
                keys = ("mean", "median", "sd", "entropy", "energy", "skewness", "kurtosis")
                close([ours[f"{part}-{channel}-{prefix}{key}"] for key in keys], expected)
    close([ours["nucleus-blue-max"], ours["nucleus-blue-min"]], [p.image_intensity[..., 0][p.image].max(), p.image_intensity[..., 0][p.image].min()])
    # Class 0 is outside. Its pairs are removed, and the matrices normalized again.
    classes = np.where(p.image, p.image_intensity[..., 3].astype(int) * 32 // 256 + 1, 0).astype(np.uint8)
    m = graycomatrix(classes, [1], [0, np.pi / 4, np.pi / 2, 3 * np.pi / 4], 33, symmetric=True).astype(float)[1:, 1:]
    m /= m.sum(axis=(0, 1), keepdims=True)
    for key, name in (("ASM", "energy"), ("contrast", "contrast"), ("correlation", "correlation"), ("homogeneity", "homogeneity")):
        close(ours[f"texture-{name}"], graycoprops(m, key).mean())
    close(ours["texture-entropy"], np.mean([stats.entropy(m[..., 0, a].ravel(), base=2) for a in range(4)]))
perimeters = np.array(perimeters)
print(len(properties), "objects; perimeter over that of regionprops, over Crofton's:", perimeters.mean(axis=0))
assert (np.abs(np.median(perimeters, axis=0) - 1) < 0.15).all()
"#;

/// Returns the environment that `scripts/install-python` installs, or the reason why it cannot.
fn environment() -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-python");
    let output = Command::new(script).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
    }
}

#[test]
fn numbers_agree_with_scikit_image() {
    let environment = match environment() {
        Ok(environment) => environment,
        Err(reason) => {
            println!("SKIPPED numbers_agree_with_scikit_image: {reason}");
            return;
        }
    };
    const SIDE_PX: u32 = 256;
    let tile = tissue::generate(9, 0, SIDE_PX).unwrap();
    let labels: Vec<u32> = tile.labels.data.iter().map(|label| u32::from(*label)).collect();
    let features =
        Features::of(DataRegion::Bgr8(tile.image), label_map(SIDE_PX as usize, labels.clone()), 32);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder.path().join(name), bytes).unwrap();
    write("labels", labels.iter().flat_map(|label| label.to_le_bytes()).collect());
    for plane in ["channels", "gradient", "sobel"] {
        write(plane, features.plane(plane).to_vec());
    }
    let objects = features.objects();
    write("names", objects.columns().join("\n").into_bytes());
    write("numbers", objects.numbers().iter().flat_map(|number| number.to_le_bytes()).collect());
    let mut python = Command::new(Path::new(&environment).join("bin/python"));
    let output = python.args(["-c", SCRIPT]).arg(folder.path()).arg(SIDE_PX.to_string()).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
