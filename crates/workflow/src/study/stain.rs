//! Stain normalization of a study: the scope of its fit, and its target.
//!
//! A fit has values only after the images are read (`pleach-study`). They are an input of the workflow, a table, and
//! so part of the identity of every result that depends on them.

use super::wording::{SECTION, TEXT, fail};
use super::{Study, StudyError, StudyProblem, StudyTile};
use crate::operation::Registry;
use crate::toml_fields::Section;
use crate::value::Real;
use crate::workflow::{InputOrigin, RegionDecl, StageInput, TaskInput, Workflow};
use pleach_regions::{ElementType, Table};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Name of the workflow input with the fitted values.
const STAIN: &str = "stain";

/// Axes of the color space.
const AXES: [&str; 3] = ["l", "alpha", "beta"];

/// Mean and population standard deviation of l, α and β over tissue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StainStatistics {
    /// Means.
    pub mean: [Real; 3],
    /// Standard deviations, 0 or more.
    pub deviation: [Real; 3],
}

/// Fitted values of a stain normalization. All fields are always serialized: messages to workers are positional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StainFit {
    /// Statistics that normalized tissue gets. `None` uses those built into the operation.
    pub target: Option<StainStatistics>,
    /// Statistics of the tissue of the tile's slide. `None` uses those of the tile.
    pub source: Option<StainStatistics>,
}

impl StainFit {
    /// Returns the values by column, in a fixed order.
    pub fn columns(&self) -> impl Iterator<Item = (String, Real)> {
        let parts = [("target", self.target), ("source", self.source)];
        parts.into_iter().filter_map(|(part, of)| Some((part, of?))).flat_map(|(part, of)| {
            let column = move |(number, value): (usize, Real)| {
                let kind = if number < 3 { "mean" } else { "deviation" };
                (format!("{part}_{kind}_{}", AXES[number % 3]), value)
            };
            of.mean.into_iter().chain(of.deviation).enumerate().map(column)
        })
    }

    /// Returns the table that operations read.
    #[must_use]
    pub fn table(&self) -> Table {
        let columns: Vec<(String, Real)> = self.columns().collect();
        Table::new(columns.iter().map(|(name, value)| (name.as_str(), value.get())))
    }

    /// Returns the fit that a table describes. `None` for any other table.
    #[must_use]
    pub fn of_table(table: &Table) -> Option<Self> {
        let read = |part: &str| -> Option<StainStatistics> {
            let value = |kind: &str, axis: &str| {
                table.get(&format!("{part}_{kind}_{axis}")).and_then(|value| Real::try_from(value).ok())
            };
            let [mean, deviation] = ["mean", "deviation"].map(|kind| AXES.map(|axis| value(kind, axis)));
            let all = |[l, alpha, beta]: [Option<Real>; 3]| Some([l?, alpha?, beta?]);
            Some(StainStatistics { mean: all(mean)?, deviation: all(deviation)? })
        };
        let fit = Self { target: read("target"), source: read("source") };
        (fit.columns().count() == table.columns().count() && fit.is_sound()).then_some(fit)
    }

    /// Returns whether all deviations are possible.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.target.iter().chain(&self.source).flat_map(|of| of.deviation).all(|value| value.get() >= 0.0)
    }
}

/// Pixels whose statistics determine the normalization of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FitScope {
    /// The window of the tile.
    Tile,
    /// The tissue of the slide, so that all tiles have the same mapping of colors.
    Slide,
}

/// Stain normalization with fitted values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Normalization {
    /// Scope of the fit.
    pub scope: FitScope,
    /// Image whose statistics are the target. `None` uses those built into the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PathBuf>,
    /// Fits of the tiles, which refer to them by index. Empty until the images are read.
    #[serde(default)]
    pub fits: Vec<StainFit>,
}

impl RegionDecl {
    /// Returns whether this workflow input is the table of a [`StainFit`].
    #[must_use]
    pub fn is_stain_fit(&self) -> bool {
        self.element == ElementType::Table && self.region == STAIN
    }
}

impl Study {
    /// Returns the fit that a tile has as this workflow input. `None` for other inputs.
    #[must_use]
    pub fn fit_of(&self, input: &RegionDecl, tile: &StudyTile) -> Option<&StainFit> {
        let fits = &self.normalization.as_ref().filter(|_| input.is_stain_fit())?.fits;
        fits.get(tile.fit?)
    }
}

impl Workflow {
    /// Returns the same workflow with fitted values as its last input. Operations with a variant that reads them
    /// ([`Operation::with_stain`](crate::Operation::with_stain)) are replaced by it. Returns `None` if no operation has
    /// one.
    #[must_use]
    pub fn with_stain_fits(&self, registry: &Registry) -> Option<Self> {
        let mut workflow = self.clone();
        let region = RegionDecl { region: STAIN.to_owned(), element: ElementType::Table };
        let (input, mut is_read) = (workflow.inputs.len(), false);
        workflow.inputs.push(region.clone());
        for stage in &mut workflow.stages {
            let (number, mut reads) = (stage.inputs.len(), false);
            for task in &mut stage.tasks {
                let variant = registry.get(&task.operation, task.version).and_then(|of| of.with_stain());
                let Some((name, version)) = variant else { continue };
                (task.operation, task.version) = (name.to_owned(), version);
                task.push_operand(TaskInput::StageInput(number));
                reads = true;
            }
            if reads {
                stage.inputs.push(StageInput::new(region.clone(), InputOrigin::Input(input)));
            }
            is_read |= reads;
        }
        is_read.then_some(workflow)
    }
}

/// Reads a switch that is a section: `normalize = { fit = "slide", target = "image.png" }`. `None` if it is no section.
fn section(input: &Section<'_>, name: &str, is_slides: bool) -> Result<Option<Normalization>, StudyError> {
    if input.value(name, SECTION, |value| Some(value.is_table()))? != Some(true) {
        return Ok(None);
    }
    let Some(section) = input.section(name, SECTION)? else { return Ok(None) };
    section.allow(&["fit", "target"])?;
    let scope = match (section.text("fit", TEXT)?, is_slides) {
        (None, false) | (Some("tile"), _) => FitScope::Tile,
        (None | Some("slide"), true) => FitScope::Slide,
        (Some("slide"), false) => {
            return section.not_allowed("fit", "\"slide\"", "\"tile\" in a study of tiles");
        }
        (Some(other), _) => {
            return section.not_allowed("fit", &format!("\"{other}\""), "\"tile\", \"slide\"");
        }
    };
    let target = section.text("target", TEXT)?.map(|target| section.path(target));
    if let Some(path) = &target
        && !path.is_file()
    {
        let (path, wanted) = (path.clone(), "no such file; an image (PNG, JPEG or TIFF) is allowed");
        return fail(&section, "target", StudyProblem::NotThere { path, wanted });
    }
    Ok(Some(Normalization { scope, target, fits: Vec::new() }))
}

/// Reads the normalization of a study whose workflow has these stages. Returns the workflow that reads fitted values, or
/// the given one if tiles are fitted to themselves and to the built-in target.
pub(super) fn normalization(
    input: &Section<'_>,
    workflow: Workflow,
    switches: &[String],
    is_slides: bool,
    registry: &Registry,
) -> Result<(Workflow, Option<Normalization>), StudyError> {
    let mut given = None;
    for name in switches {
        if let Some(found) = section(input, name, is_slides)? {
            given = Some((name, found));
        }
    }
    let fitted = workflow.with_stain_fits(registry);
    let scope = if is_slides { FitScope::Slide } else { FitScope::Tile };
    let normalization = match (given, &fitted) {
        (Some((name, _)), None) => {
            return input.not_allowed(
                name,
                "a section",
                "true or false: no operation of the workflow is fitted",
            );
        }
        (Some((_, given)), Some(_)) => given,
        (None, _) => Normalization { scope, target: None, fits: Vec::new() },
    };
    match fitted {
        Some(fitted) if normalization.scope == FitScope::Slide || normalization.target.is_some() => {
            Ok((fitted, Some(normalization)))
        }
        _ => Ok((workflow, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(first: f64) -> StainStatistics {
        let real = |value: f64| Real::try_from(value).unwrap_or_else(|_| unreachable!("finite"));
        StainStatistics { mean: [first, 2.0, -3.5].map(real), deviation: [0.25, 0.5, 0.0].map(real) }
    }

    #[test]
    fn fit_survives_its_table() {
        for fit in [
            StainFit::default(),
            StainFit { target: Some(statistics(1.0)), source: None },
            StainFit { target: None, source: Some(statistics(0.125)) },
            StainFit { target: Some(statistics(1.0)), source: Some(statistics(-0.125)) },
        ] {
            assert_eq!(StainFit::of_table(&fit.table()), Some(fit));
        }
        let partial = Table::new([("source_mean_l", 1.0)]);
        assert_eq!(StainFit::of_table(&partial), None);
        let mut negative = statistics(1.0);
        negative.deviation[0] = negative.mean[2];
        let negative = StainFit { target: Some(negative), source: None };
        assert_eq!(StainFit::of_table(&negative.table()), None);
    }
}
