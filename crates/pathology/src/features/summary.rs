//! Responses: means and standard deviations over the nuclei of a tile.

use super::columns::{EDGES, INTENSITY_ONLY, POSITION_COLUMNS, SHAPE, STATISTICS, TEXTURE};
use super::invalid;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{AnnotatedObjects, DataRegion, ElementType, PixelRectangle, Table};
use pleach_workflow::{OperationError, core_of};

/// Means over all nuclei.
pub(crate) const SUMMARY: TypedOperation = TypedOperation {
    name: "features.summary",
    version: 1,
    arguments: &[],
    inputs: &[port("nuclei", ElementType::Objects)],
    outputs: &[port("feature_metrics", ElementType::Table)],
    nanoseconds_a_pixel: 0.2,
    bytes_a_pixel: 0.006,
    fixed_bytes: 4096,
    within_core: Some(&CORE_SUMMARY),
    device: None,
    run: all,
};

/// Means over the nuclei whose centroid is in the core of a slide's tile.
pub(crate) const CORE_SUMMARY: TypedOperation = TypedOperation {
    name: "features.core-summary",
    version: 1,
    arguments: &[],
    inputs: &[port("nuclei", ElementType::Objects), port("core", ElementType::Table)],
    outputs: &[port("feature_metrics", ElementType::Table)],
    nanoseconds_a_pixel: 0.2,
    bytes_a_pixel: 0.006,
    fixed_bytes: 4096,
    within_core: None,
    device: None,
    run: owned,
};

fn all(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    summary(inputs.annotated(0)?, None)
}

fn owned(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let core = core_of(inputs.table(1)?).ok_or_else(|| invalid("the table has no core"))?;
    summary(inputs.annotated(0)?, Some(core))
}

/// Returns the columns whose means are responses: 16 numbers of the reference application with the median, for the
/// blue channel of nuclei, the mean amount of hematoxylin of nuclei and their cytoplasm, and the texture.
fn mean_columns() -> Vec<String> {
    let intensity = INTENSITY_ONLY.iter().chain(&STATISTICS).map(|name| (*name).to_owned());
    let gradient = STATISTICS.iter().map(|name| format!("gradient-{name}"));
    let blue = intensity.chain(gradient).chain(EDGES.map(str::to_owned));
    let mut names: Vec<String> = blue.map(|name| format!("nucleus-blue-{name}")).collect();
    names.extend(["nucleus-hematoxylin-mean", "cytoplasm-hematoxylin-mean"].map(str::to_owned));
    names.extend(TEXTURE.map(str::to_owned));
    names
}

/// Builds the table of responses over the nuclei in `core`, or over all.
fn summary(
    nuclei: &AnnotatedObjects,
    core: Option<PixelRectangle>,
) -> Result<Vec<DataRegion>, OperationError> {
    let column = |name: &str| {
        let at = nuclei.columns().iter().position(|column| column == name);
        at.ok_or_else(|| invalid(format!("objects without the column {name}")))
    };
    let (x, y) = (column("x")?, column("y")?);
    let within = |start: u32, length: u32, at: f64| {
        let start = f64::from(start);
        (start..start + f64::from(length)).contains(&at)
    };
    let is_counted = |numbers: &&[f64]| {
        core.is_none_or(|core| {
            within(core.x_px, core.width_px, numbers[x]) && within(core.y_px, core.height_px, numbers[y])
        })
    };
    let rows: Vec<&[f64]> =
        nuclei.numbers().chunks_exact(nuclei.columns().len()).filter(is_counted).collect();
    let mut responses = vec![("nuclei".to_owned(), rows.len() as f64)];
    for name in &SHAPE[POSITION_COLUMNS..] {
        let (mean, sd) = spread(&rows, column(name)?);
        responses.extend([(format!("mean-{name}"), mean), (format!("sd-{name}"), sd)]);
    }
    for name in mean_columns() {
        let mean = spread(&rows, column(&name)?).0;
        responses.push((name, mean));
    }
    Ok(vec![DataRegion::Table(Table::new(responses))])
}

/// Returns mean and standard deviation (of the population) of a column. Both are 0 without rows.
fn spread(rows: &[&[f64]], column: usize) -> (f64, f64) {
    if rows.is_empty() {
        return (0.0, 0.0);
    }
    let count = rows.len() as f64;
    let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
    let variance = rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}
