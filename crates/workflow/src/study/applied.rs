//! Studies applied to other images: the workflow, the parameters and the cutting of slides of a study file, with images of the caller.

use super::annotations::{KEY as ANNOTATIONS, RULES};
use super::images::volumes::KEYS as VOLUME_KEYS;
use super::slides::KEYS as SLIDE_KEYS;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Images in place of those of a study file.
#[derive(Clone, Debug, PartialEq)]
pub enum AppliedImages {
    /// Image files that are read whole.
    Tiles(Vec<PathBuf>),
    /// Slides, cut as the study file cuts its slides, or by the defaults if it has none.
    Slides {
        /// The slide files.
        files: Vec<PathBuf>,
        /// Magnification in place of that of the study file.
        magnification: Option<f64>,
        /// Side of a tile's core in place of that of the study file, pixels.
        tile_px: Option<u32>,
        /// Halo in place of that of the study file, pixels.
        halo_px: Option<u32>,
    },
}

impl AppliedImages {
    /// Replaces the images of a study file, and leaves out all that selects or weighs its images by their annotations. Without
    /// `[input]`, the document stays as it is, and its reader reports the section.
    pub(super) fn replace(&self, document: &mut Table) {
        if let Some(Value::Table(response)) = document.get_mut("response") {
            response.remove("weights");
        }
        let Some(Value::Table(input)) = document.get_mut("input") else { return };
        ["tiles", "slides", "reference", ANNOTATIONS, RULES].iter().for_each(|key| drop(input.remove(*key)));
        VOLUME_KEYS.iter().for_each(|key| drop(input.remove(*key)));
        // Other slides have no annotations, and so no regions of interest.
        if input.get("tile").is_some_and(Value::is_str) {
            input.remove("tile");
        }
        match self {
            Self::Tiles(files) => {
                SLIDE_KEYS.iter().for_each(|key| drop(input.remove(*key)));
                input.insert("tiles".to_owned(), paths(files));
                // Images have no slide that normalization could be fitted to.
                for settings in input.iter_mut().filter_map(|(_, value)| value.as_table_mut()) {
                    if settings.get("fit").and_then(Value::as_str) == Some("slide") {
                        settings.remove("fit");
                    }
                }
            }
            Self::Slides { files, magnification, tile_px, halo_px } => {
                input.insert("slides".to_owned(), paths(files));
                let mut set = |key: &str, value: Option<Value>| {
                    value.map(|value| input.insert(key.to_owned(), value));
                };
                set("magnification", magnification.map(Value::Float));
                set("tile", tile_px.map(|side| Value::Integer(side.into())));
                set("halo", halo_px.map(|side| Value::Integer(side.into())));
            }
        }
    }
}

/// Returns paths that do not depend on the folder of the study file.
fn paths(files: &[PathBuf]) -> Value {
    let whole = |file: &PathBuf| std::path::absolute(file).unwrap_or_else(|_| file.clone());
    let text = |file: &Path| Value::String(file.to_string_lossy().into_owned());
    Value::Array(files.iter().map(|file| text(&whole(file))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(images: &AppliedImages) -> Table {
        let mut document: Table =
            "[input]\nslides = [\"a\"]\ntile = \"regions\"\nhalo = 8\nreference = \"r\"\nnormalize = false\n\
                                   annotations = { regions = [\"ROI\"] }\n[response]\nweights = \"annotated\""
                .parse()
                .expect("a document");
        images.replace(&mut document);
        assert_eq!(document.remove("response"), Some(Value::Table(Table::new())));
        let Some(Value::Table(input)) = document.remove("input") else { panic!("no input") };
        input
    }

    #[test]
    fn images_of_the_caller_replace_those_of_the_file() {
        let tiles = applied(&AppliedImages::Tiles(vec!["/t/x.png".into()]));
        assert_eq!(tiles, "normalize = false\ntiles = [\"/t/x.png\"]".parse().expect("a table"));
        let slides = AppliedImages::Slides {
            files: vec!["/s/[1].svs".into()],
            magnification: Some(20.0),
            tile_px: None,
            halo_px: Some(16),
        };
        let expected = "halo = 16\nnormalize = false\nslides = [\"/s/[1].svs\"]\nmagnification = 20.0";
        assert_eq!(applied(&slides), expected.parse().expect("a table"));
    }
}
