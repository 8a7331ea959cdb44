//! Images that programs in Python write: OME-Zarr by zarr, OME-TIFF by tifffile.

use crate::{expected, read};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes `z.ome.zarr`, `sharded.ome.zarr` and `t.ome.tif` with the numbers of `value`, t, c, z, y and x from the slowest axis.
const WRITER: &str = r#"
import sys, numpy, zarr, tifffile
folder = sys.argv[1]
t, c, z, y, x = numpy.meshgrid(*map(numpy.arange, (2, 2, 3, 50, 60)), indexing="ij")
data = (x + 7 * y + 61 * z + 331 * t + 1511 * c).astype(numpy.uint16)
axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}] + [{"name": n, "type": "space"} for n in "zyx"]
for name, shards in (("z", None), ("sharded", (1, 2, 2, 32, 32))):
    group = zarr.open_group(f"{folder}/{name}.ome.zarr", mode="w", zarr_format=3)
    group.create_array("0", data=data, chunks=(1, 1, 2, 16, 32), shards=shards, compressors="auto")
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [{"path": "0"}]}]}
tifffile.imwrite(f"{folder}/t.ome.tif", data, metadata={"axes": "TCZYX"}, compression="deflate", tile=(16, 32))
"#;

/// Returns the environment that `scripts/install-python` installs. `None`, with a line that names the test, if it cannot.
#[expect(clippy::print_stdout, reason = "a test that does not run prints it")]
fn environment(test: &str) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-python");
    let output = Command::new(script).output().unwrap();
    if !output.status.success() {
        println!("SKIPPED {test}: no Python environment");
        return None;
    }
    Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()))
}

#[test]
fn images_of_other_programs_are_read() {
    let Some(environment) = environment("images_of_other_programs_are_read") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut python = Command::new(environment.join("bin/python"));
    let written = python.args(["-c", WRITER]).arg(folder.path()).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    for name in ["z.ome.zarr/zarr.json", "sharded.ome.zarr/zarr.json", "t.ome.tif"] {
        for (start, length) in [([0, 0, 0, 1], [60, 50, 3]), ([13, 15, 1, 0], [40, 18, 2])] {
            let block = read(&folder.path().join(name), start, length, &[1, 0]);
            assert_eq!(block, Ok(expected(start, length, &[1, 0], 3)), "{name}");
        }
    }
}
