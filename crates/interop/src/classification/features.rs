//! Features of groups in each evaluation, from the responses of a study.

use super::Row;
use super::error::{ClassificationError, LabelsProblem};
use super::groups::{GroupLabels, text};
use crate::samples::{SampleTable, evaluation_number};
use pleach_pathology::both_empty_column;
use pleach_sensitivity::table::EVALUATION_COLUMN;
use pleach_tables::{ColumnRequest, Table, TableData};
use std::path::Path;

/// Columns that compare with a reference, beside those of [`both_empty_column`]. They measure no tissue.
const PIXEL_DIFFERENCE: &str = "pixel-difference";

/// Features of each group.
#[derive(Debug)]
pub struct GroupFeatures {
    /// Names of the features.
    pub names: Vec<String>,
    /// Mean over tiles, by evaluation and group. `None` if a run of the group failed.
    pub evaluations: Vec<Vec<Option<Row>>>,
    /// Mean over the evaluations of each group.
    pub consensus: Vec<Row>,
}

impl GroupFeatures {
    /// Reads the features of `labels`' groups from `responses.csv`: the columns `only`, or all that measure the
    /// segmented tissue if `only` is empty. Tiles without a label are left out.
    ///
    /// # Errors
    /// Returns [`ClassificationError`] with the file and column, or tile, that is missing.
    pub fn read(
        samples: &SampleTable,
        file: &Path,
        labels: &GroupLabels,
        only: &[String],
    ) -> Result<Self, ClassificationError> {
        let table = Table::open(file)?;
        let fail = |problem| ClassificationError::Content { file: file.to_owned(), problem };
        let header = table.names().unwrap_or_default().to_vec();
        let column = |name: &str| {
            let missing = || LabelsProblem::NoColumn { column: name.to_owned(), header: header.clone() };
            header.iter().position(|known| known == name).ok_or_else(missing).map_err(fail)
        };
        let (evaluation, tile) = (column(EVALUATION_COLUMN)?, column("tile")?);
        let is_feature = |name: &&String| {
            let compares = both_empty_column(name).is_some() || *name == PIXEL_DIFFERENCE;
            !compares && *name != EVALUATION_COLUMN && *name != "tile"
        };
        let names: Vec<String> = match only {
            [] => header.iter().filter(is_feature).cloned().collect(),
            only => only.to_vec(),
        };
        if names.is_empty() {
            return Err(fail(LabelsProblem::NoFeatures));
        }
        let mut wanted = vec![ColumnRequest::Numbers(evaluation), ColumnRequest::Labels(tile)];
        for name in &names {
            wanted.push(ColumnRequest::Numbers(column(name)?));
        }
        let content = table.read(&wanted)?;
        check_tiles(labels, &content)?;
        let evaluations = means(samples, labels, content, names.len()).map_err(fail)?;
        let consensus = consensus(&evaluations, labels).map_err(fail)?;
        Ok(Self { names, evaluations, consensus })
    }
}

/// Checks that each tile of the labels has responses.
fn check_tiles(labels: &GroupLabels, content: &TableData) -> Result<(), ClassificationError> {
    let Some(pleach_tables::Column::Labels { texts, .. }) = content.columns.get(1) else { return Ok(()) };
    match labels.tiles.iter().find(|tile| !texts.contains(tile)) {
        None => Ok(()),
        Some(tile) => Err(ClassificationError::Content {
            file: labels.file.clone(),
            problem: LabelsProblem::UnknownTile { tile: tile.clone(), tiles: texts.clone() },
        }),
    }
}

/// Returns the mean features of each group in each evaluation.
fn means(
    samples: &SampleTable,
    labels: &GroupLabels,
    mut content: TableData,
    features: usize,
) -> Result<Vec<Vec<Option<Row>>>, LabelsProblem> {
    let numbers = content.take_numbers(0);
    let columns: Vec<Vec<f64>> = (0..features).map(|feature| content.take_numbers(feature + 2)).collect();
    let mut sums = vec![vec![(vec![0.0; features], 0); labels.groups.len()]; samples.rows];
    let mut seen = std::collections::HashSet::new();
    for (row, number) in numbers.into_iter().enumerate() {
        let evaluation = evaluation_number(number, row, &content)?;
        let unknown = || LabelsProblem::UnknownEvaluation {
            row: content.row_label(row),
            evaluation,
            evaluations: samples.rows,
        };
        let place = samples.index_of(evaluation).ok_or_else(unknown)?;
        let Some(tile) = text(&content, 1, row) else { continue };
        let Some(&group) = labels.group_of.get(tile) else { continue };
        if !seen.insert((place, tile)) {
            return Err(LabelsProblem::DuplicateRow { row: content.row_label(row), tile: tile.to_owned() });
        }
        let (sum, tiles) = &mut sums[place][group];
        // The value of a failed run is NaN, which makes the sum NaN.
        sum.iter_mut().zip(&columns).for_each(|(sum, column)| *sum += column[row]);
        *tiles += 1;
    }
    let mut tiles = vec![0; labels.groups.len()];
    labels.group_of.values().for_each(|group| tiles[*group] += 1);
    let mean = |(group, (sum, found)): (usize, (Row, usize))| {
        let is_whole = found == tiles[group] && sum.iter().all(|sum| sum.is_finite());
        is_whole.then(|| sum.into_iter().map(|sum| sum / found as f64).collect())
    };
    Ok(sums.into_iter().map(|groups| groups.into_iter().enumerate().map(mean).collect()).collect())
}

/// Returns the mean of each group over its known evaluations.
fn consensus(evaluations: &[Vec<Option<Row>>], labels: &GroupLabels) -> Result<Vec<Row>, LabelsProblem> {
    let of_group = |(group, name): (usize, &String)| -> Result<Row, LabelsProblem> {
        let known: Vec<&Row> = evaluations.iter().filter_map(|groups| groups[group].as_ref()).collect();
        let first = known.first().ok_or_else(|| LabelsProblem::NoResponses { group: name.clone() })?;
        let mean = |feature: usize| known.iter().map(|row| row[feature]).sum::<f64>() / known.len() as f64;
        Ok((0..first.len()).map(mean).collect())
    };
    labels.groups.iter().enumerate().map(of_group).collect()
}
