//! Pictures of a finished study: replays a few of its evaluations on one tile.
//!
//! A study keeps no images. To illustrate its numbers, this module replays the reference, the default, and
//! the best and the worst evaluation of each response, one after the other. It keeps only the outlines within
//! one window.
//!
//! The same replays write the files of `--preview`. `sections::pictures` shows the pictures on the page.

pub mod choice;
mod compose;
pub mod overviews;
pub mod previews;
mod replays;
pub(crate) mod rows;
pub mod window;

use choice::{Choice, Panel};
use overviews::Overview;
use pleach_cache::PriorResults;
use pleach_pathology::image_io::{self, ImageFileError};
use pleach_pathology::outline::Loop;
use pleach_regions::{DataRegion, ElementType, ShapeError, WrongElement};
use pleach_results::analysis::CollectedResponses;
use pleach_results::analysis::extremes::{Extremes, Role, Setting};
use pleach_results::folder::{Folder, FolderError};
use pleach_slides::SlideError;
use pleach_study::PreparedStudy;
use pleach_study::references::ReferenceError;
use pleach_study::single_run::{self, ReplayError};
use pleach_workflow::{Parameter, Value};
use previews::Previews;
use replays::TileReplays;
use std::sync::Arc;
use thiserror::Error;
use window::Window;

/// Pictures for the page of a study, and the preview files written beside it.
#[derive(Debug)]
pub struct Gallery {
    /// Pictures, or the reason for their absence.
    pub(crate) pictures: Result<TilePictures, String>,
    /// Names of the files of `--preview` in the results folder.
    pub(crate) previews: Vec<String>,
    /// Pictures of each tile.
    pub(crate) tiles: rows::TileRows,
    /// Overviews of the slides. Empty for a study of tiles.
    pub(crate) slides: Vec<Overview>,
}

impl Gallery {
    /// Returns a line about the previews. `None` if none were requested.
    pub fn summary_line(&self, asked: &Previews, folder: &Folder) -> Option<String> {
        if asked.outputs.is_empty() {
            return None;
        }
        Some(match (self.previews.len(), &self.pictures) {
            (0, Err(why)) => format!("no previews: {why}"),
            (count, _) => format!("{count} previews in {}", folder.previews().display()),
        })
    }
}

/// Outlines of evaluations on one tile.
#[derive(Debug)]
pub(crate) struct TilePictures {
    /// Name of the tile.
    pub(crate) tile: String,
    /// Width and height of the tile.
    pub(crate) tile_px: [u32; 2],
    /// Reduced picture of the tile. `None` if the window is the whole tile.
    pub(crate) overview: Option<Jpeg>,
    /// Part of the tile shown at full resolution.
    pub(crate) window: Window,
    /// Pixels of the window.
    pub(crate) detail: Jpeg,
    /// Outlines of the reference in pixels of the window. Includes outlines in a rim around the window.
    pub(crate) reference: Vec<Loop>,
    /// Evaluations, the default first unless it is the reference.
    pub(crate) shown: Vec<ShownEvaluation>,
    /// Evaluation that determined the tile and the window.
    pub(crate) focus: usize,
}

/// Evaluation on the tile.
#[derive(Debug)]
pub(crate) struct ShownEvaluation {
    /// Number of the evaluation, from 1. 0 for the defaults beside the sample.
    pub(crate) evaluation: usize,
    /// Roles, each with its response as a column among the metrics of the workflow.
    pub(crate) roles: Vec<(usize, Role)>,
    /// Responses of its roles. All responses for the default.
    pub(crate) responses: Vec<EvaluationResponse>,
    /// Parameters with other values than their defaults, the most distant first.
    pub(crate) moved: Vec<Setting>,
    /// Outlines in pixels of the window, as for the reference.
    pub(crate) outlines: Vec<Loop>,
}

/// Response of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EvaluationResponse {
    /// Column among the metrics of the workflow.
    pub(crate) metric: usize,
    /// Response on the tile.
    pub(crate) on_tile: Option<f64>,
    /// Response over all tiles.
    pub(crate) over_tiles: Option<f64>,
}

/// JPEG file and its size in pixels.
#[derive(Debug)]
pub(crate) struct Jpeg {
    pub(crate) bytes: Vec<u8>,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// A requested preview cannot be written.
#[derive(Debug, Error)]
pub enum PreviewError {
    /// The tile cannot be read or a replay fails.
    #[error("--preview: {0}")]
    Replay(String),
    /// The result folder cannot be written.
    #[error("{0}")]
    Folder(#[from] FolderError),
}

/// Reason for the absence of pictures.
#[derive(Debug, Error)]
enum GalleryError {
    #[error("no evaluation has responses on all tiles")]
    NothingComplete,
    #[error("the workflow has no reference, so outlines cannot be compared")]
    NoReference,
    #[error("the reference is a region of type {0}; outlines need a mask")]
    NotAMask(ElementType),
    #[error("the size of a mask differs from its tile")]
    SizesDiffer,
    #[error("images of more dimensions have no pictures")]
    Volume,
    #[error(transparent)]
    Tile(#[from] ImageFileError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error(transparent)]
    Slide(#[from] SlideError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(transparent)]
    NotColor(#[from] WrongElement),
    /// A preview could not be written. This error ends the command.
    #[error("failed to write a preview")]
    Stopped(#[source] FolderError),
}

/// Replays the selected evaluations and writes the previews.
///
/// # Errors
/// [`PreviewError`] if previews are requested and reading the tile, a replay or writing a preview fails.
/// Other failures leave their reason in `Gallery::pictures`.
pub fn make(
    prepared: &PreparedStudy,
    prior: &PriorResults,
    collected: &CollectedResponses,
    extremes: &[Extremes],
    previews: &Previews,
    folder: &Folder,
) -> Result<Gallery, PreviewError> {
    let mut written = Vec::new();
    let pictures = pictures(prepared, prior, collected, extremes, previews, folder, &mut written);
    let pictures = match pictures {
        Ok(pictures) => Ok(pictures),
        Err(GalleryError::Stopped(error)) => return Err(error.into()),
        Err(error @ (GalleryError::Tile(_) | GalleryError::Slide(_) | GalleryError::Replay(_)))
            if !previews.outputs.is_empty() =>
        {
            return Err(PreviewError::Replay(error.to_string()));
        }
        Err(error) => Err(error.to_string()),
    };
    let tiles = rows::rows(prepared, prior, collected, extremes);
    Ok(Gallery { pictures, previews: written, tiles, slides: overviews::overviews(&prepared.study) })
}

/// Replays the selected evaluations, writes their previews, and composes the pictures.
fn pictures(
    prepared: &PreparedStudy,
    prior: &PriorResults,
    collected: &CollectedResponses,
    extremes: &[Extremes],
    previews: &Previews,
    folder: &Folder,
    written: &mut Vec<String>,
) -> Result<TilePictures, GalleryError> {
    let study = &prepared.study;
    let workflow = &study.workflow;
    let choice = choose(prepared, collected, extremes).ok_or(GalleryError::NothingComplete)?;
    let own = workflow.reference.as_ref().map(|own| single_run::of_stage(workflow, own.stage, own.output));
    if own.is_none() && previews.outputs.is_empty() {
        return Err(GalleryError::NoReference);
    }

    let file = &study.tiles[choice.tile];
    let mut replays = TileReplays::new(prepared, prior, choice.tile, own, &previews.outputs)?;
    let mut masks: Vec<(usize, Arc<DataRegion>)> = Vec::new();
    for evaluation in evaluations(prepared, &choice) {
        let mut regions = replays.regions(evaluation)?;
        let names = previews.files(evaluation, &file.name, workflow);
        // The mask comes first, if the workflow has one. All other regions are previews.
        for (region, name) in regions.drain(own.iter().count()..).zip(names) {
            let name =
                folder.write_preview(&name, &image_io::png_bytes(&region)?).map_err(GalleryError::Stopped)?;
            written.push(name);
        }
        match regions.pop() {
            Some(region) if evaluation == 0 && prepared.reference_run() => {
                replays.reference = Some(region);
            }
            Some(region) => masks.push((evaluation, region)),
            None => {}
        }
    }
    let TileReplays { image, reference, .. } = replays;
    let reference = reference.ok_or(GalleryError::NoReference)?;
    let mut shown = Vec::new();
    for (evaluation, mask) in masks {
        let Some(panel) = choice.panels.iter().find(|panel| panel.evaluation == evaluation) else { continue };
        shown.push((shown_as(prepared, collected, choice.tile, panel), mask));
    }
    compose::pictures(&file.name, &image, &reference, choice.focus, shown)
}

/// Selects the evaluations and the tile by the first analyzed response.
fn choose(prepared: &PreparedStudy, collected: &CollectedResponses, extremes: &[Extremes]) -> Option<Choice> {
    let study = &prepared.study;
    let (_, over_tiles) = &study.workflow.response.metrics[study.metric];
    let responses = collected.responses(study.metric, *over_tiles);
    let shows_default = !prepared.reference_run();
    choice::choose(extremes, &responses, &collected.runs, &collected.defaults, shows_default)
}

/// Returns the evaluations in the order of their replay. The run at defaults is first if it is the reference,
/// since the others are compared with it.
fn evaluations(prepared: &PreparedStudy, choice: &Choice) -> Vec<usize> {
    let reference = prepared.reference_run().then_some(0);
    // The reference run comes first, because the other runs read its mask.
    reference.into_iter().chain(choice.panels.iter().map(|panel| panel.evaluation)).collect()
}

fn shown_as(
    prepared: &PreparedStudy,
    collected: &CollectedResponses,
    tile: usize,
    panel: &Panel,
) -> ShownEvaluation {
    let &Panel { evaluation, ref roles } = panel;
    let study = &prepared.study;
    let metrics = &study.workflow.response.metrics;
    let is_default = roles.iter().any(|(_, role)| *role == Role::Default);
    let is_told = |metric: &usize| is_default || roles.iter().any(|(of, _)| of == metric);
    let runs = if evaluation == 0 { &collected.defaults } else { &collected.runs };
    let run = runs.iter().find(|run| run.evaluation == evaluation && run.tile == tile);
    let shows = |metric: usize| EvaluationResponse {
        metric,
        on_tile: run.and_then(|run| run.result.as_ref().ok()?.get(metric).copied()),
        over_tiles: match evaluation {
            0 => collected.default(metric, metrics[metric].1),
            _ => collected.responses(metric, metrics[metric].1)[evaluation - 1],
        },
    };
    let values = replays::values(prepared, evaluation);
    ShownEvaluation {
        evaluation,
        roles: roles.clone(),
        responses: study.metrics().filter(is_told).map(shows).collect(),
        moved: moved(&study.workflow.parameters, values),
        outlines: Vec::new(),
    }
}

/// Returns the parameters with other values than their defaults, by descending distance as a share of their
/// range. Ties keep the workflow's order.
fn moved(parameters: &[Parameter], values: &[Value]) -> Vec<Setting> {
    let distance = |(parameter, value): &(&Parameter, &Value)| {
        let (low, high) = parameter.domain.bounds();
        let default = parameter.default.as_f64();
        let range = if high > low { high - low } else { default.abs().max(1.0) };
        (value.as_f64() - default).abs() / range
    };
    let mut moved: Vec<_> = parameters.iter().zip(values).filter(|(p, value)| p.default != **value).collect();
    moved.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let named = moved.into_iter().map(|(parameter, &value)| Setting {
        name: parameter.name.clone(),
        value,
        default: parameter.default,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::{Domain, ValueType};

    fn parameter(name: &str, default: f64, bounds: [f64; 2]) -> Parameter {
        Parameter {
            name: name.to_owned(),
            value_type: ValueType::Real,
            default: Value::from_f64(default, ValueType::Real).unwrap(),
            domain: Domain::Continuous { low: bounds[0], high: bounds[1] },
        }
    }

    #[test]
    fn parameter_moved_farthest_is_listed_first() {
        let mut fixed = parameter("fixed", 4.0, [0.0, 1.0]);
        fixed.domain = Domain::Fixed { value: fixed.default };
        let parameters = [
            parameter("a", 0.0, [0.0, 10.0]),
            parameter("b", 0.0, [0.0, 2.0]),
            parameter("c", 1.0, [0.0, 2.0]),
            fixed,
        ];
        let values = [5.0, 2.0, 1.0, 5.0].map(|value| Value::from_f64(value, ValueType::Real).unwrap());
        let moved = moved(&parameters, &values);
        let names: Vec<&str> = moved.iter().map(|moved| moved.name.as_str()).collect();
        assert_eq!(names, ["b", "a", "fixed"]);
        assert_eq!((moved[0].value, moved[0].default), (values[1], parameters[1].default));
    }
}
