//! Label image of a slide on disk, in chunks: a Zarr v3 array of unsigned 32-bit labels.
//!
//! Objects cross the borders of tiles, so chunks are read back and changed. A few stay in memory, and the least recently used one
//! is written when another is needed. Chunks without labels have no file. An array in a complete store and the temporary array
//! behind a TIFF file are the same.

use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;

/// Side of a chunk, pixels: 4 MiB of labels. A slide of 120,000 px has 14,000 chunks at most.
pub(crate) const CHUNK_PX: u32 = 1_024;

/// Chunks in memory, 192 MiB: a tile of 4,096 px and its halo touch 36.
const MAX_CHUNKS: usize = 48;

/// Zstandard level: label images have long runs, which higher levels hardly compress further.
const LEVEL: i32 = 1;

/// Array of labels. 0 is background.
#[derive(Debug)]
pub(crate) struct LabelPlane {
    folder: PathBuf,
    /// Width of the image, pixels.
    pub(crate) width_px: u32,
    /// Height of the image, pixels.
    pub(crate) height_px: u32,
    chunks: HashMap<[u32; 2], Chunk>,
    stored: HashSet<[u32; 2]>,
    clock: u64,
}

#[derive(Debug)]
struct Chunk {
    labels: Vec<u32>,
    used: u64,
    is_changed: bool,
}

impl LabelPlane {
    /// Creates an empty array in a new folder.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(folder: PathBuf, width_px: u32, height_px: u32) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let document = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": [height_px, width_px],
            "data_type": "uint32",
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [CHUNK_PX, CHUNK_PX] } },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": 0,
            "codecs": [
                { "name": "bytes", "configuration": { "endian": "little" } },
                { "name": "zstd", "configuration": { "level": LEVEL, "checksum": false } },
            ],
            "attributes": {},
            "dimension_names": ["y", "x"],
        });
        fs::write(folder.join("zarr.json"), serde_json::to_vec_pretty(&document)?)?;
        let (chunks, stored) = (HashMap::new(), HashSet::new());
        Ok(Self { folder, width_px, height_px, chunks, stored, clock: 0 })
    }

    /// Returns the number of chunks along x and y.
    #[must_use]
    pub(crate) fn grid(&self) -> [u32; 2] {
        [self.width_px.div_ceil(CHUNK_PX), self.height_px.div_ceil(CHUNK_PX)]
    }

    /// Labels a run of pixels. Pixels of an earlier object keep their label. Returns the number of these pixels.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn add_run(&mut self, [mut x, y]: [u32; 2], length: u32, label: u32) -> io::Result<u64> {
        let (mut remaining, mut kept) = (length, 0);
        while remaining > 0 {
            let (column, offset) = (x / CHUNK_PX, x % CHUNK_PX);
            let part = remaining.min(CHUNK_PX - offset);
            let chunk = self.chunk([column, y / CHUNK_PX])?;
            chunk.is_changed = true;
            let start = ((y % CHUNK_PX) * CHUNK_PX + offset) as usize;
            for pixel in &mut chunk.labels[start..start + part as usize] {
                if *pixel == 0 {
                    *pixel = label;
                } else {
                    kept += 1;
                }
            }
            x += part;
            remaining -= part;
        }
        Ok(kept)
    }

    fn chunk(&mut self, key: [u32; 2]) -> io::Result<&mut Chunk> {
        self.clock += 1;
        if !self.chunks.contains_key(&key) {
            if self.chunks.len() == MAX_CHUNKS {
                let oldest = self.chunks.iter().min_by_key(|(_, chunk)| chunk.used).map(|(key, _)| *key);
                if let Some(oldest) = oldest {
                    self.write(oldest)?;
                    self.chunks.remove(&oldest);
                }
            }
            let labels = self.read(key)?.unwrap_or_else(|| vec![0; (CHUNK_PX * CHUNK_PX) as usize]);
            self.chunks.insert(key, Chunk { labels, used: 0, is_changed: false });
        }
        let chunk = self.chunks.get_mut(&key).ok_or_else(|| io::Error::other("a chunk is missing"))?;
        chunk.used = self.clock;
        Ok(chunk)
    }

    /// Returns the labels of a chunk, row by row. `None` for a chunk without labels. The caller has flushed the array.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn read(&self, key: [u32; 2]) -> io::Result<Option<Vec<u32>>> {
        if !self.stored.contains(&key) {
            return Ok(None);
        }
        let bytes = zstd::bulk::decompress(&fs::read(self.file(key))?, (CHUNK_PX * CHUNK_PX * 4) as usize)?;
        let (words, _) = bytes.as_chunks();
        Ok(Some(words.iter().map(|word| u32::from_le_bytes(*word)).collect()))
    }

    fn write(&mut self, key: [u32; 2]) -> io::Result<()> {
        let Some(chunk) = self.chunks.get_mut(&key).filter(|chunk| chunk.is_changed) else { return Ok(()) };
        chunk.is_changed = false;
        let labels = std::mem::take(&mut chunk.labels);
        self.store(key, &labels)?;
        if let Some(chunk) = self.chunks.get_mut(&key) {
            chunk.labels = labels;
        }
        Ok(())
    }

    fn store(&mut self, key: [u32; 2], labels: &[u32]) -> io::Result<()> {
        let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        let file = self.file(key);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, zstd::bulk::compress(&bytes, LEVEL)?)?;
        self.stored.insert(key);
        Ok(())
    }

    fn file(&self, [column, row]: [u32; 2]) -> PathBuf {
        self.folder.join("c").join(row.to_string()).join(column.to_string())
    }

    /// Writes all changed chunks and frees their memory.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let keys: Vec<[u32; 2]> = self.chunks.keys().copied().collect();
        for key in keys {
            self.write(key)?;
        }
        self.chunks.clear();
        Ok(())
    }

    /// Creates the array of half the size, rounded up: every second pixel of every second row, since labels have no mean.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn halved(&self, folder: PathBuf) -> io::Result<Self> {
        let (width, height) = (self.width_px.div_ceil(2), self.height_px.div_ceil(2));
        let mut half = Self::create(folder, width, height)?;
        let [columns, rows] = half.grid();
        let side = CHUNK_PX as usize;
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let mut labels: Option<Vec<u32>> = None;
            for (down, right) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let Some(finer) = self.read([2 * column + right, 2 * row + down])? else { continue };
                let labels = labels.get_or_insert_with(|| vec![0; side * side]);
                for (y, line) in finer.chunks_exact(side).step_by(2).enumerate() {
                    let start = (down as usize * side / 2 + y) * side + right as usize * side / 2;
                    let coarse = labels[start..start + side / 2].iter_mut();
                    coarse.zip(line.iter().step_by(2)).for_each(|(to, from)| *to = *from);
                }
            }
            if let Some(labels) = labels {
                half.store([column, row], &labels)?;
            }
        }
        Ok(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cross_chunks_and_earlier_labels_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut plane = LabelPlane::create(folder.path().join("a"), 70_000, 3_000).unwrap();
        assert_eq!(plane.add_run([1_000, 2_050], 100, 7).unwrap(), 0);
        assert_eq!(plane.add_run([1_020, 2_050], 10, 8).unwrap(), 10);
        // More chunks than stay in memory.
        for column in 0..68 {
            plane.add_run([column * 1_024 + 1_023, 0], 2, column + 1).unwrap();
        }
        plane.add_run([1_100, 2_050], 1, 9).unwrap();
        plane.flush().unwrap();
        let at = |plane: &LabelPlane, x: u32, y: u32| {
            let chunk = plane.read([x / 1_024, y / 1_024]).unwrap();
            chunk.map(|chunk| chunk[((y % 1_024) * 1_024 + x % 1_024) as usize])
        };
        assert_eq!(
            [999, 1_000, 1_023, 1_024, 1_099].map(|x| at(&plane, x, 2_050)),
            [0, 7, 7, 7, 7].map(Some)
        );
        assert_eq!(at(&plane, 1_100, 2_050), Some(9));
        assert_eq!((at(&plane, 67 * 1_024 + 1_023, 0), at(&plane, 68 * 1_024, 0)), (Some(68), Some(68)));
        assert_eq!(at(&plane, 5_000, 1_500), None);
        let half = plane.halved(folder.path().join("b")).unwrap();
        assert_eq!((half.width_px, half.height_px), (35_000, 1_500));
        for x in [990, 1_000, 1_024, 1_098, 1_100] {
            assert_eq!(at(&half, x / 2, 1_025), at(&plane, x, 2_050), "{x}");
        }
    }
}
