//! Parameter sets of ports with several values: all combinations, or pairs where an iteration strategy is `dot`.

use super::super::error::{Place, WorkflowImportError, WorkflowImportProblem, failed};
use super::annotation::PortContent;
use super::flat::{FlatFlow, Source};
use super::xml::DotGroup;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of parameter sets: those of the largest study of the papers, ten times.
const MAX_SETS: usize = 100_000;

/// Values of a port: a column for each number, a row for each value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<f64>>,
}

impl Axis {
    /// Returns the axis of a port. `None` for a region.
    pub(super) fn of(port: &str, content: &PortContent) -> Option<Self> {
        match content {
            PortContent::Parameter(_, values) if !values.is_empty() => {
                let rows = values.iter().map(|value| vec![*value]).collect();
                Some(Self { columns: vec![port.to_owned()], rows })
            }
            PortContent::Array(arrays) if !arrays.is_empty() => {
                let columns = (0..arrays[0].len()).map(|place| format!("{port}.{place}")).collect();
                Some(Self { columns, rows: arrays.clone() })
            }
            _ => None,
        }
    }

    /// Returns the axis whose values are those of both, one after the other.
    fn paired(mut self, other: &Self) -> Self {
        self.columns.extend(other.columns.iter().cloned());
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            row.extend(more);
        }
        self
    }

    /// Returns the axis of all combinations. The last column varies fastest.
    fn crossed(self, other: &Self) -> Self {
        let rows = self.rows.iter().flat_map(|row| {
            other.rows.iter().map(|more| row.iter().chain(more).copied().collect::<Vec<f64>>())
        });
        let rows = rows.collect();
        Self { columns: self.columns.into_iter().chain(other.columns.iter().cloned()).collect(), rows }
    }
}

/// Returns the parameter sets of the ports with several values. `None` if each port has one.
pub(super) fn parameter_sets(
    file: &Path,
    flat: &FlatFlow,
    ports: &[(String, PortContent)],
) -> Result<Option<Axis>, WorkflowImportError> {
    let axes = ports.iter().filter_map(|(name, content)| Some((name.as_str(), Axis::of(name, content)?)));
    let swept: Vec<(&str, Axis)> = axes.filter(|(_, axis)| axis.rows.len() > 1).collect();
    // Group of each port: the index of its first member.
    let mut groups: BTreeMap<&str, usize> =
        swept.iter().enumerate().map(|(of, (name, _))| (*name, of)).collect();
    for processor in &flat.processors {
        for dot in &processor.dots {
            let members = members(dot, &processor.inputs, &groups);
            let lengths: Vec<usize> = members.iter().map(|member| rows(&swept, member)).collect();
            if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
                let problem = WorkflowImportProblem::Element {
                    element: "dot",
                    name: processor.name.clone(),
                    found: format!("ports {} have {lengths:?} values", members.join(", ")),
                    allowed: "ports with equally many values are allowed".to_owned(),
                };
                return Err(failed(file, Place::Line(dot.line), problem));
            }
            let joined: Vec<usize> = members.iter().map(|member| groups[member.as_str()]).collect();
            if let Some(first) = joined.iter().min() {
                groups.values_mut().filter(|group| joined.contains(group)).for_each(|group| *group = *first);
            }
        }
    }
    let mut sets: Option<Axis> = None;
    for group in 0..swept.len() {
        let of_group = swept.iter().filter(|(name, _)| groups[name] == group).map(|(_, axis)| axis);
        let Some(axis) = of_group.fold(None, |all: Option<Axis>, axis| {
            Some(all.map_or_else(|| axis.clone(), |all| all.paired(axis)))
        }) else {
            continue;
        };
        let count = sets.as_ref().map_or(1, |sets| sets.rows.len()).saturating_mul(axis.rows.len());
        if count > MAX_SETS {
            let message =
                format!("the values of its ports make {count} parameter sets; up to {MAX_SETS} are allowed");
            return Err(failed(file, Place::File, WorkflowImportProblem::Malformed(message)));
        }
        sets = Some(sets.map_or_else(|| axis.clone(), |sets| sets.crossed(&axis)));
    }
    Ok(sets)
}

/// Returns the workflow's ports with several values that a `dot` reads.
fn members(dot: &DotGroup, inputs: &[(String, Vec<Source>)], swept: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut members = Vec::new();
    for (port, sources) in inputs {
        for source in sources {
            if let Source::Input(name) = source
                && dot.ports.contains(port)
                && swept.contains_key(name.as_str())
                && !members.contains(name)
            {
                members.push(name.clone());
            }
        }
    }
    members
}

fn rows(swept: &[(&str, Axis)], name: &str) -> usize {
    swept.iter().find(|(known, _)| *known == name).map_or(0, |(_, axis)| axis.rows.len())
}
