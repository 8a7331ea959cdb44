//! Files of one image: objects arrive tile by tile and are written at once.

use crate::files::geojson::GeojsonWriter;
use crate::files::geoparquet::OutlineTable;
use crate::files::object_table::{self, COLUMNS};
use crate::files::ome;
use crate::files::part_file::{PartFile, PartFolder};
use crate::files::plane::LabelPlane;
use crate::files::spatialdata;
use crate::files::tiff::{self, TiffPixels};
use crate::format::ExportFormat;
use crate::geometry::Geometry;
use crate::objects::ExportedObject;
use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_pathology::image_io::{self, ImageFileError};
use pleach_regions::{Raster, ShapeError};
use pleach_tables::FrameWriter;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum side of the coarsest level of a pyramid, pixels: viewers show it at once.
const COARSEST_PX: u32 = 1_024;

/// Files to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportOptions {
    /// Formats, each once.
    pub formats: Vec<ExportFormat>,
    /// Class of the objects.
    pub class: String,
    /// Whether GeoJSON is compressed.
    pub gzip: bool,
}

impl ExportOptions {
    /// Returns whether a format needs outlines.
    #[must_use]
    pub fn needs_polygons(&self) -> bool {
        self.formats.iter().any(|of| matches!(of, ExportFormat::Geojson | ExportFormat::Spatialdata))
    }
}

/// A file of an export cannot be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The system refuses.
    #[error("{}: failed to write: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// An image cannot be written.
    #[error(transparent)]
    Image(#[from] ImageFileError),
    /// A mask does not have the size of its image.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Written files of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedImage {
    /// Name of the image.
    pub image: String,
    /// Number of objects.
    pub objects: u64,
    /// Pixels that two objects of neighboring tiles claim. The label image has the label of the first one.
    pub shared_px: u64,
    /// Names of the files.
    pub files: Vec<String>,
}

/// `SpatialData` store under its temporary name, and its open outlines.
type OpenStore = (PartFolder, OutlineTable<File>);

/// Open files of an image.
pub struct ImageExport {
    folder: PathBuf,
    image: String,
    is_slide: bool,
    geometry: Geometry,
    options: ExportOptions,
    outlines: Option<(PathBuf, GeojsonWriter<Compressed>)>,
    tables: Vec<(PathBuf, FrameWriter<PartFile>)>,
    labels: Option<(PartFolder, LabelPlane)>,
    spatialdata: Option<OpenStore>,
    count: u32,
    shared_px: u64,
}

/// File that is compressed or not.
enum Compressed {
    Plain(PartFile),
    Gzip(Box<GzEncoder<PartFile>>),
}

impl Write for Compressed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
        }
    }
}

impl ImageExport {
    /// Creates the files of an image under temporary names in `folder`.
    ///
    /// # Errors
    /// [`WriteError`] if one cannot be created.
    pub fn create(
        folder: &Path,
        image: &str,
        is_slide: bool,
        geometry: Geometry,
        options: &ExportOptions,
    ) -> Result<Self, WriteError> {
        let mut export = Self {
            folder: folder.to_owned(),
            image: image.to_owned(),
            is_slide,
            geometry,
            options: options.clone(),
            outlines: None,
            tables: Vec::new(),
            labels: None,
            spatialdata: None,
            count: 0,
            shared_px: 0,
        };
        for format in &options.formats {
            let path = export.path(*format);
            export.open(*format, &path).map_err(at(&path))?;
        }
        Ok(export)
    }

    fn path(&self, format: ExportFormat) -> PathBuf {
        self.folder.join(format.file_name(&self.image, self.is_slide, self.options.gzip))
    }

    fn open(&mut self, format: ExportFormat, path: &Path) -> io::Result<()> {
        match format {
            ExportFormat::Geojson => {
                let file = PartFile::create(path)?;
                let file = if self.options.gzip {
                    Compressed::Gzip(Box::new(GzEncoder::new(file, Compression::fast())))
                } else {
                    Compressed::Plain(file)
                };
                let writer = GeojsonWriter::create(file, self.geometry, &self.options.class)?;
                self.outlines = Some((path.to_owned(), writer));
            }
            ExportFormat::Csv => {
                let table = FrameWriter::csv(PartFile::create(path)?, &COLUMNS)?;
                self.tables.push((path.to_owned(), table));
            }
            ExportFormat::Parquet => {
                let table = FrameWriter::parquet(PartFile::create(path)?, &COLUMNS)?;
                self.tables.push((path.to_owned(), table));
            }
            _ => self.open_labels(format)?,
        }
        Ok(())
    }

    /// Opens the label image, and for `SpatialData` its store with the outlines.
    fn open_labels(&mut self, format: ExportFormat) -> io::Result<()> {
        if format == ExportFormat::Spatialdata {
            let store = PartFolder::create(&self.path(format))?;
            let file = spatialdata::shapes_file(&store.path());
            fs::create_dir_all(file.parent().unwrap_or(&self.folder))?;
            let scale = self.geometry.slide_px_a_px;
            let table = OutlineTable::create(File::create(file)?, &self.options.class, scale)?;
            self.spatialdata = Some((store, table));
        }
        if self.labels.is_none() {
            // The store of OME-Zarr, which a study without this format removes at the end.
            let store = PartFolder::create(&self.path(ExportFormat::OmeZarr))?;
            let array = store.path().join("labels").join(ome::LABELS).join("0");
            let plane = LabelPlane::create(array, self.geometry.width_px, self.geometry.height_px)?;
            self.labels = Some((store, plane));
        }
        Ok(())
    }

    /// Writes objects and numbers them on.
    ///
    /// # Errors
    /// [`WriteError`] of the first file that fails.
    pub fn add(&mut self, objects: &[ExportedObject]) -> Result<(), WriteError> {
        for object in objects {
            self.count += 1;
            let label = self.count;
            if let Some((path, outlines)) = &mut self.outlines {
                outlines.object(label, object).map_err(at(path))?;
            }
            let names = [self.image.as_str(), self.options.class.as_str()];
            for (path, table) in &mut self.tables {
                object_table::write_object(table, names, &self.geometry, label, object).map_err(at(path))?;
            }
            if let Some((store, table)) = &mut self.spatialdata {
                table.object(label, object).map_err(at(&store.path()))?;
            }
            if let Some((store, plane)) = &mut self.labels {
                for &(start, length) in &object.runs {
                    self.shared_px += plane.add_run(start, length, label).map_err(at(&store.path()))?;
                }
            }
        }
        Ok(())
    }

    /// Completes the files and gives them their names.
    ///
    /// # Errors
    /// [`WriteError`] of the first file that fails.
    pub fn finish(mut self) -> Result<ExportedImage, WriteError> {
        if let Some((path, outlines)) = self.outlines.take() {
            let publish = || match outlines.finish()? {
                Compressed::Plain(file) => file.publish(),
                Compressed::Gzip(file) => file.finish()?.publish(),
            };
            publish().map_err(at(&path))?;
        }
        for (path, table) in std::mem::take(&mut self.tables) {
            table.finish().and_then(PartFile::publish).map_err(at(&path))?;
        }
        if let Some((store, plane)) = self.labels.take() {
            let spatialdata = self.spatialdata.take();
            self.finish_labels(store, plane, spatialdata)?;
        }
        let name = |format: &ExportFormat| format.file_name(&self.image, self.is_slide, self.options.gzip);
        Ok(ExportedImage {
            files: self.options.formats.iter().map(name).collect(),
            image: self.image,
            objects: self.count.into(),
            shared_px: self.shared_px,
        })
    }

    fn finish_labels(
        &self,
        store: PartFolder,
        mut plane: LabelPlane,
        spatialdata: Option<OpenStore>,
    ) -> Result<(), WriteError> {
        let wanted = |format: ExportFormat| self.options.formats.contains(&format);
        let in_store = |cause| at(&store.path())(cause);
        plane.flush().map_err(in_store)?;
        let mut levels = vec![plane];
        if wanted(ExportFormat::OmeZarr) || wanted(ExportFormat::OmeTiff) || spatialdata.is_some() {
            while let Some(finest) = levels.last()
                && finest.width_px.max(finest.height_px) > COARSEST_PX
            {
                let array = store.path().join("labels").join(ome::LABELS).join(levels.len().to_string());
                levels.push(finest.halved(array).map_err(in_store)?);
            }
        }
        if wanted(ExportFormat::Masks) {
            let path = self.path(ExportFormat::Masks);
            if self.is_slide {
                self.tiff(&path, &[&levels[0]], TiffPixels::Mask, "")?;
            } else {
                image_io::write_mask(&path, &mask(&levels[0]).map_err(in_store)?)?;
            }
        }
        if wanted(ExportFormat::Labels) {
            self.tiff(&self.path(ExportFormat::Labels), &[&levels[0]], TiffPixels::Labels, "")?;
        }
        if wanted(ExportFormat::OmeTiff) {
            let text = ome::xml(&self.image, &self.geometry);
            let levels: Vec<&LabelPlane> = levels.iter().collect();
            self.tiff(&self.path(ExportFormat::OmeTiff), &levels, TiffPixels::Labels, &text)?;
        }
        if let Some((target, outlines)) = spatialdata {
            let finished = self.finish_spatialdata(&store, (target, outlines), levels.len());
            finished.map_err(at(&self.path(ExportFormat::Spatialdata)))?;
        }
        if wanted(ExportFormat::OmeZarr) {
            let path = self.path(ExportFormat::OmeZarr);
            ome::write_groups(&store.path(), &self.image, &self.geometry, levels.len()).map_err(at(&path))?;
            store.publish().map_err(at(&path))?;
        }
        Ok(())
    }

    /// Completes a `SpatialData` store with the arrays of the OME-Zarr store, which has no groups yet.
    fn finish_spatialdata(
        &self,
        store: &PartFolder,
        (target, outlines): OpenStore,
        levels: usize,
    ) -> io::Result<()> {
        outlines.finish()?.sync_all()?;
        let [from, to] = [store, &target].map(|of| spatialdata::labels_folder(&of.path()));
        if self.options.formats.contains(&ExportFormat::OmeZarr) {
            spatialdata::copy_folder(&from, &to)?;
        } else {
            fs::create_dir_all(target.path().join("labels"))?;
            fs::rename(from, to)?;
        }
        spatialdata::write_groups(&target.path(), &self.image, &self.geometry, levels)?;
        target.publish()
    }

    fn tiff(
        &self,
        path: &Path,
        levels: &[&LabelPlane],
        pixels: TiffPixels,
        description: &str,
    ) -> Result<(), WriteError> {
        let microns = self.geometry.microns_a_px();
        let written = PartFile::create(path)
            .and_then(|file| tiff::write(file, levels, pixels, description, microns))
            .and_then(PartFile::publish);
        written.map_err(at(path))
    }
}

fn at(file: &Path) -> impl Fn(io::Error) -> WriteError + use<> {
    let file = file.to_owned();
    move |cause| WriteError::File { file: file.clone(), cause }
}

/// Returns the mask of a label image that fits in memory.
fn mask(plane: &LabelPlane) -> io::Result<Raster> {
    let (width, height) = (plane.width_px as usize, plane.height_px as usize);
    let side = crate::files::plane::CHUNK_PX as usize;
    let mut pixels = vec![0; width * height];
    let [columns, rows] = plane.grid();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let Some(labels) = plane.read([column, row])? else { continue };
        let (left, top) = (column as usize * side, row as usize * side);
        let part = side.min(width - left);
        for (y, line) in labels.chunks_exact(side).take(side.min(height - top)).enumerate() {
            let start = (top + y) * width + left;
            let target = pixels[start..start + part].iter_mut();
            target.zip(line).for_each(|(pixel, label)| *pixel = if *label == 0 { 0 } else { 255 });
        }
    }
    Raster::new(plane.width_px, plane.height_px, 1, pixels).map_err(io::Error::other)
}
