//! Overviews of a study's slides: the whole slide, with the tiles of the study and the skipped ones.

use super::Jpeg;
use pleach_pathology::image_io::jpeg_bytes;
use pleach_regions::Raster;
use pleach_slides::Slide;
use pleach_study::slides::{grid, sides};
use pleach_workflow::{Real, SlideTile, Slides, Study, StudyTile, Tiling};
use std::collections::HashSet;

/// Maximum side in pixels of the overview in the report.
const SHOWN_PX: u32 = 960;

/// JPEG quality of the overview: sufficient for an overview, at a tenth of the bytes of a PNG.
const QUALITY: u8 = 80;

/// Overview of a slide in the report.
#[derive(Debug)]
pub(crate) struct Overview {
    /// Name of the slide.
    pub(crate) name: String,
    /// Reduced picture of the slide, or the reason for its absence.
    pub(crate) picture: Result<Jpeg, String>,
    /// Width and height in pixels at the magnification of the study. For a slide that cannot be opened, the
    /// extent of its tiles.
    pub(crate) size_px: [u32; 2],
    /// Magnification, if it is known.
    pub(crate) magnification: Option<f64>,
    /// Left, top, width and height of the cores of the study's tiles.
    pub(crate) taken: Vec<[u32; 4]>,
    /// Left, top, width and height of the cores of skipped tiles.
    pub(crate) skipped: Vec<[u32; 4]>,
}

/// Returns the overviews of a study's slides. Empty for a study of tiles.
pub(crate) fn overviews(study: &Study) -> Vec<Overview> {
    let Some(slides) = &study.slides else { return Vec::new() };
    slides.files.iter().map(|file| overview(study, slides, file)).collect()
}

fn overview(study: &Study, slides: &Slides, named: &StudyTile) -> Overview {
    let is_of = |tile: &&StudyTile| tile.name.rsplit_once('/').is_some_and(|(name, _)| name == named.name);
    // Use the present path of the file, which may differ from that in the study file.
    let path = study.tiles.iter().find(is_of).map_or(&named.path, |tile| &tile.path);
    let taken: Vec<&SlideTile> =
        study.tiles.iter().filter(is_of).filter_map(|tile| tile.slide.as_ref()).collect();
    let opened = || {
        let slide = Slide::open(path).map_err(|error| error.to_string())?;
        let scale = slide.scale(slides.magnification.map(Real::get)).map_err(|error| error.to_string())?;
        let cores: Vec<[u32; 4]> = match slides.tiling {
            Tiling::Grid(tile_px) => {
                let grid = grid(tile_px, slides.halo_px, &scale).map_err(|error| error.to_string())?;
                grid.tiles().map(|tile| sides(&tile.core)).collect()
            }
            Tiling::Regions => Vec::new(),
        };
        Ok((slide, scale, cores))
    };
    let taken: Vec<[u32; 4]> = taken.into_iter().map(|tile| tile.core).collect();
    let farthest = |axis: usize| taken.iter().map(|core| core[axis] + core[axis + 2]).max().unwrap_or(1);
    match opened() {
        Ok((slide, scale, cores)) => {
            let picture = slide.overview(SHOWN_PX).map_err(|error| error.to_string()).and_then(jpeg);
            let is_taken: HashSet<&[u32; 4]> = taken.iter().collect();
            let skipped = cores.into_iter().filter(|core| !is_taken.contains(core)).collect();
            let magnification = slides.magnification.map(Real::get).or_else(|| slide.magnification());
            let size_px = [scale.width_px, scale.height_px];
            Overview { name: named.name.clone(), picture, size_px, magnification, taken, skipped }
        }
        Err(error) => Overview {
            name: named.name.clone(),
            picture: Err(error),
            size_px: [farthest(0), farthest(1)],
            magnification: slides.magnification.map(Real::get),
            taken,
            skipped: Vec::new(),
        },
    }
}

fn jpeg(raster: Raster) -> Result<Jpeg, String> {
    let (width, height) = (raster.width_px(), raster.height_px());
    let bytes = jpeg_bytes(&raster, QUALITY).map_err(|error| error.to_string())?;
    Ok(Jpeg { bytes, width, height })
}
