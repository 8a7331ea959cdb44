//! Labels of tiles and their groups, from a file with the columns `tile`, `label` and optionally `group`.

use super::error::{ClassificationError, LabelsProblem};
use pleach_tables::{Column, ColumnRequest, Table, TableData};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Groups with their labels and tiles.
#[derive(Debug)]
pub struct GroupLabels {
    pub(super) file: PathBuf,
    /// Names of the groups, in order of occurrence.
    pub groups: Vec<String>,
    /// Different labels, in alphabetic order.
    pub labels: Vec<String>,
    /// Index of each group's label.
    pub label_of: Vec<usize>,
    /// Group of each tile.
    pub(super) group_of: HashMap<String, usize>,
    /// Tiles of the file, in its order.
    pub(super) tiles: Vec<String>,
}

impl GroupLabels {
    /// Reads a file. Without a column `group`, each tile is a group of its own.
    ///
    /// # Errors
    /// Returns [`ClassificationError`] with the file, row and column of a missing or contradictory label.
    pub fn read(file: &Path) -> Result<Self, ClassificationError> {
        let table = Table::open(file)?;
        let fail = |problem| ClassificationError::Content { file: file.to_owned(), problem };
        let names = table.names().unwrap_or_default().to_vec();
        let column = |name: &str| names.iter().position(|known| known == name);
        let needed = |name: &str| {
            let missing = || LabelsProblem::NoColumn { column: name.to_owned(), header: names.clone() };
            column(name).ok_or_else(missing).map_err(fail)
        };
        let (tile, label) = (needed("tile")?, needed("label")?);
        let group = column("group").unwrap_or(tile);
        let content = table.read(&[tile, label, group].map(ColumnRequest::Labels))?;
        Self::of_rows(file, &content).map_err(fail)
    }

    fn of_rows(file: &Path, content: &TableData) -> Result<Self, LabelsProblem> {
        let (mut groups, mut label_of_group) = (Vec::new(), Vec::<String>::new());
        let (mut tiles, mut group_of) = (Vec::new(), HashMap::new());
        let mut known = HashMap::new();
        for row in 0..content.rows {
            let field = |place: usize, column: &'static str| match text(content, place, row) {
                Some(text) if !text.is_empty() => Ok(text.to_owned()),
                _ => Err(LabelsProblem::Empty { row: content.row_label(row), column }),
            };
            let (tile, label, group) = (field(0, "tile")?, field(1, "label")?, field(2, "group")?);
            let index = *known.entry(group.clone()).or_insert_with(|| {
                groups.push(group.clone());
                label_of_group.push(label.clone());
                groups.len() - 1
            });
            if label_of_group[index] != label {
                let (row, one) = (content.row_label(row), label_of_group[index].clone());
                return Err(LabelsProblem::TwoLabels { row, group, one, other: label });
            }
            if group_of.insert(tile.clone(), index).is_some() {
                return Err(LabelsProblem::DuplicateTile { row: content.row_label(row), tile });
            }
            tiles.push(tile);
        }
        let mut labels = label_of_group.clone();
        labels.sort_unstable();
        labels.dedup();
        if labels.len() < 2 {
            return Err(LabelsProblem::OneLabel { count: labels.len() });
        }
        let label_of = label_of_group.iter().filter_map(|label| labels.binary_search(label).ok()).collect();
        Ok(Self { file: file.to_owned(), groups, labels, label_of, group_of, tiles })
    }

    /// Returns whether each label has two groups or more.
    pub(super) fn has_pairs(&self) -> bool {
        (0..self.labels.len()).all(|label| self.label_of.iter().filter(|of| **of == label).count() > 1)
    }
}

/// Returns the text of a field.
pub(super) fn text(content: &TableData, place: usize, row: usize) -> Option<&str> {
    match content.columns.get(place)? {
        Column::Labels { texts, of } => texts.get(*of.get(row)? as usize).map(String::as_str),
        Column::Numbers(_) => None,
    }
}
