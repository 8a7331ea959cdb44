//! Image files of a study as storage sources: each file is loaded only if its content is unchanged since the
//! study began.
//!
//! Journaled and cached results refer to the files by digest, so a file that has changed since then fails its
//! runs. `inputs/slide.rs` reads slides tile by tile.

mod slide;

use pleach_actors::input_files::InputFileStore;
use pleach_actors::storage::{Preparation, Source};
use pleach_actors::worker::InputReader;
use pleach_dispatch::message::{FileContent, InputFile, TaskFailure};
use pleach_pathology::image_io;
use pleach_regions::{DataRegion, ElementType, RegionIdentity, RegionKey, Table};
use pleach_results::cache_walk;
use pleach_study::PreparedStudy;
use pleach_study::file_digest::digest;
use pleach_study::references::ReferenceFile;
use pleach_study::{inputs, volumes};
use pleach_workflow::{AnnotationPart, AnnotationRules, ReferenceSource, SlideTile, VolumeBlock};
use slide::{Core, SlideFile, Window};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Image file and its use.
struct File {
    path: PathBuf,
    /// BLAKE3 digest of its content when the study began. `None` if it could not be read.
    digest: Option<[u8; 32]>,
    read_as: ReadAs,
}

enum ReadAs {
    Tile,
    Reference(Reference),
}

/// Reference of a tile, and what to read of it.
struct Reference {
    /// The tile's file, or the slide.
    tile: PathBuf,
    slide: Option<SlideTile>,
    element: ElementType,
    rules: AnnotationRules,
    part: AnnotationPart,
}

impl Source for File {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        let (region, is_verified) = match &self.read_as {
            ReadAs::Tile => {
                (image_io::read_bgr(&self.path).map_err(|error| failure(error.to_string()))?, false)
            }
            ReadAs::Reference(of) => {
                let Reference { tile, slide, element, rules, part } = of;
                let (path, digest, slide) = (&self.path, self.digest, slide.as_ref());
                let read = ReferenceFile { path, digest, tile, slide, rules }.read(*part, *element);
                // The annotations of a slide are in memory, under their digest.
                (read.map_err(|error| failure(error.to_string()))?, slide.is_some())
            }
        };
        // Check the digest after reading. It matched before, so the content read is the digested content.
        if !is_verified && digest(&self.path) != self.digest {
            return Err(changed(&self.path));
        }
        Ok(region)
    }
}

/// Source of a table that travels with the study: a layout, or fitted values.
struct Given(Table);

impl Source for Given {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        Ok(DataRegion::Table(self.0.clone()))
    }
}

/// Source of a block of an image of more dimensions. Its digest is that of the block's numbers.
struct Block {
    path: PathBuf,
    block: VolumeBlock,
}

impl Source for Block {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        volumes::read(&self.path, &self.block).map_err(|error| failure(error.to_string()))
    }
}

/// Returns the failure of a task whose input cannot be read.
fn failure(cause: String) -> TaskFailure {
    TaskFailure { at: "input".to_owned(), cause }
}

/// Returns the failure of a task whose input file has other content than at the start of the study.
fn changed(file: &Path) -> TaskFailure {
    failure(format!("{}: it has changed since the study began", file.display()))
}

/// Returns the sources of a study's input files for storage, by key.
pub(crate) fn sources(prepared: &PreparedStudy) -> HashMap<RegionKey, Arc<dyn Source>> {
    let elements = prepared.study.workflow.reference_elements();
    let digests = prepared.file_digests();
    let mut sources: HashMap<RegionKey, Arc<dyn Source>> = HashMap::new();
    let mut slides: HashMap<&Path, Arc<SlideFile>> = HashMap::new();
    let workflow = &prepared.study.workflow;
    let declared = &workflow.inputs;
    for (number, (tile, facts)) in prepared.study.tiles.iter().zip(&prepared.tiles).enumerate() {
        let reference = |element, part| {
            let ReferenceSource::Masks(masks) = &prepared.study.reference else { return None };
            let (path, digest) = (masks[number].clone(), digests[prepared.tiles.len() + number]);
            let (slide, rules) = (tile.slide.clone(), prepared.study.annotation_rules.clone());
            let read_as =
                ReadAs::Reference(Reference { tile: tile.path.clone(), slide, element, rules, part });
            let source: Arc<dyn Source> = Arc::new(File { path, digest, read_as });
            Some(source)
        };
        for (place, (&key, input)) in facts.inputs.iter().zip(declared).enumerate() {
            let table = inputs::table(&prepared.study, prepared.units.as_ref(), (place, number));
            let block = tile.block.clone().map(|block| Block { path: tile.path.clone(), block });
            let source: Option<Arc<dyn Source>> = match (&tile.slide, input.element) {
                _ if table.is_some() => table.map(|table| Arc::new(Given(table)) as Arc<dyn Source>),
                _ if block.is_some() => block.map(|block| Arc::new(block) as Arc<dyn Source>),
                _ if input.is_counted() => reference(input.element, AnnotationPart::Counted),
                (Some(part), ElementType::Table) => Some(Arc::new(Core(part.clone()))),
                (Some(part), _) => {
                    let new = || SlideFile::new(&tile.path, digests[number]);
                    let file = Arc::clone(slides.entry(&tile.path).or_insert_with(new));
                    Some(Arc::new(Window { file, tile: part.clone() }))
                }
                (None, _) => {
                    let (path, digest) = (tile.path.clone(), digests[number]);
                    Some(Arc::new(File { path, digest, read_as: ReadAs::Tile }))
                }
            };
            sources.extend(source.map(|source| (key, source)));
        }
        let references = facts.inputs[declared.len()..].iter().zip(&elements);
        sources.extend(references.filter_map(|(&key, &element)| {
            reference(element, AnnotationPart::Objects).map(|source| (key, source))
        }));
    }
    sources
}

/// Opens input files on a worker.
pub struct InputFileReader;

impl InputReader for InputFileReader {
    fn source(&self, input: &InputFile, files: &Arc<InputFileStore>) -> Arc<dyn Source> {
        match &input.table {
            Some(table) => Arc::new(Given(table.clone())),
            None => Arc::new(WorkersFile { input: input.clone(), files: Arc::clone(files) }),
        }
    }

    fn identity(&self, input: &InputFile) -> Option<RegionIdentity> {
        Some(cache_walk::identity_of_input(input))
    }
}

/// Input file that a worker may have to fetch.
struct WorkersFile {
    input: InputFile,
    files: Arc<InputFileStore>,
}

impl WorkersFile {
    fn contents(&self) -> impl Iterator<Item = &FileContent> {
        let tile = self.input.reference.iter().map(|(_, tile)| tile);
        std::iter::once(&self.input.file).chain(tile)
    }

    /// Returns the path of the file on this worker.
    fn local(&self, file: &FileContent) -> Result<PathBuf, TaskFailure> {
        let changed = |path| failure(format!("{path}: it has changed since the study was submitted"));
        self.files.open_local(file).map_err(changed)
    }
}

impl Source for WorkersFile {
    fn prepare(&self) -> Option<Preparation> {
        // Of an image in a folder, only its metadata is in the input store.
        let is_in_folder =
            self.input.block.is_some() && volumes::is_in_folder(Path::new(&self.input.file.path));
        if is_in_folder || matches!(self.input.slide, Some((ElementType::Table, _))) {
            return None;
        }
        let contents: Vec<FileContent> = self.contents().cloned().collect();
        let files = Arc::clone(&self.files);
        Some(Box::pin(async move {
            for file in contents {
                files.fetch(&file).await.map_err(failure)?;
            }
            Ok(())
        }))
    }

    fn load(&self) -> Result<DataRegion, TaskFailure> {
        if let Some((ElementType::Table, tile)) = &self.input.slide {
            return Core(tile.clone()).load();
        }
        if let Some(block) = self.input.block.clone() {
            let named = PathBuf::from(&self.input.file.path);
            let path = if volumes::is_in_folder(&named) { named } else { self.local(&self.input.file)? };
            return Block { path, block }.load();
        }
        let path = self.local(&self.input.file)?;
        if let (Some((_, tile)), None) = (&self.input.slide, &self.input.reference) {
            let pixels = slide::pixels(&path, tile)?;
            // Check after reading, as for other files. A file with unchanged metadata is not digested again.
            return self.local(&self.input.file).map(|_| pixels);
        }
        let read_as = match &self.input.reference {
            None => ReadAs::Tile,
            Some((element, tile)) => {
                let (rules, part) = self
                    .input
                    .annotations
                    .clone()
                    .unwrap_or((AnnotationRules::default(), AnnotationPart::Objects));
                let slide = self.input.slide.as_ref().map(|(_, part)| part.clone());
                ReadAs::Reference(Reference {
                    tile: self.local(tile)?,
                    slide,
                    element: *element,
                    rules,
                    part,
                })
            }
        };
        let loaded = File { path, digest: Some(self.input.file.digest), read_as }.load();
        if loaded.is_err() {
            // A fetched copy may be corrupt: the store removes it, so that the next task fetches it again.
            self.files.handle_corrupt(&self.input.file.digest);
        }
        loaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::Raster;

    #[test]
    fn changed_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tile.png");
        let image = |value| DataRegion::Bgr8(Raster::filled(4, 3, 3, value).unwrap());
        std::fs::write(&path, image_io::png_bytes(&image(1)).unwrap()).unwrap();
        let file = File { path: path.clone(), digest: digest(&path), read_as: ReadAs::Tile };
        assert_eq!(file.load().unwrap(), image(1));
        std::fs::write(&path, image_io::png_bytes(&image(2)).unwrap()).unwrap();
        let failure = file.load().unwrap_err();
        assert_eq!(failure.cause, format!("{}: it has changed since the study began", path.display()));
    }
}
