//! Parameter groups: a method measures the joint influence of a group at the cost of one parameter.
//!
//! As in SALib, a parameter is in one group. A parameter without a group forms its own, named after it.

use pleach_workflow::Parameter;
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// Partition of the parameters into groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Names, in the order of the groups' first parameters.
    names: Vec<String>,
    /// Index of the group of each parameter.
    of: Vec<usize>,
}

/// Error of a grouping.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupError {
    /// An unknown parameter name.
    #[error("group {group}: \"{parameter}\" is not a parameter; allowed are {known}")]
    UnknownParameter {
        /// The group.
        group: String,
        /// The name.
        parameter: String,
        /// Known parameters.
        known: String,
    },
    /// A parameter in two groups, or twice in one.
    #[error(
        "parameter {parameter} is in the groups {first} and {second}; one group per parameter is \
             allowed"
    )]
    InTwoGroups {
        /// The parameter.
        parameter: String,
        /// One group.
        first: String,
        /// The other.
        second: String,
    },
    /// Two groups with the same name, or a group named like a parameter outside it.
    #[error(
        "two groups are named {name}; names must be unique, and a parameter without a group counts as a \
             group of its name"
    )]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The number of labels differs from the number of parameters.
    #[error("{labels} groups for {parameters} parameters; one per parameter is needed")]
    Count {
        /// Labels given.
        labels: usize,
        /// Parameters.
        parameters: usize,
    },
}

/// The varying parameters of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// Columns of its varying parameters, at least one.
    pub(crate) columns: Vec<usize>,
}

impl Groups {
    /// Creates one group per parameter.
    #[must_use]
    pub fn alone(parameters: &[Parameter]) -> Self {
        let names = parameters.iter().map(|parameter| parameter.name.clone()).collect();
        Self { names, of: (0..parameters.len()).collect() }
    }

    /// Creates groups from names and the names of their parameters. All other parameters form their own
    /// groups.
    ///
    /// # Errors
    /// [`GroupError`] for unknown names, and for parameters and groups that occur twice.
    pub fn named(parameters: &[Parameter], groups: &[(String, Vec<String>)]) -> Result<Self, GroupError> {
        let mut labels: Vec<Option<&String>> = vec![None; parameters.len()];
        for (group, members) in groups {
            for member in members {
                let place = parameters.iter().position(|parameter| parameter.name == *member);
                let Some(place) = place else {
                    let known: Vec<_> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
                    let (group, parameter, known) = (group.clone(), member.clone(), known.join(", "));
                    return Err(GroupError::UnknownParameter { group, parameter, known });
                };
                if let Some(first) = labels[place].replace(group) {
                    let (parameter, first, second) = (member.clone(), first.clone(), group.clone());
                    return Err(GroupError::InTwoGroups { parameter, first, second });
                }
            }
        }
        let mut seen = HashSet::new();
        let lone = parameters.iter().zip(&labels).filter(|(_, label)| label.is_none());
        let all = groups.iter().map(|(name, _)| name).chain(lone.map(|(parameter, _)| &parameter.name));
        for name in all {
            if !seen.insert(name) {
                return Err(GroupError::DuplicateName { name: name.clone() });
            }
        }
        let labels: Vec<&String> = labels
            .iter()
            .zip(parameters)
            .map(|(label, parameter)| label.unwrap_or(&parameter.name))
            .collect();
        Ok(Self::of_labels(&labels))
    }

    /// Creates groups from one label per parameter, as SALib's `groups`. Equal labels form one group.
    ///
    /// # Errors
    /// [`GroupError::Count`] if the number of labels differs from that of the parameters.
    pub fn labeled(parameters: &[Parameter], labels: &[String]) -> Result<Self, GroupError> {
        if labels.len() != parameters.len() {
            return Err(GroupError::Count { labels: labels.len(), parameters: parameters.len() });
        }
        Ok(Self::of_labels(&labels.iter().collect::<Vec<_>>()))
    }

    fn of_labels(labels: &[&String]) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut places: HashMap<&String, usize> = HashMap::new();
        let of = labels.iter().map(|&label| {
            *places.entry(label).or_insert_with(|| {
                names.push(label.clone());
                names.len() - 1
            })
        });
        let of = of.collect();
        Self { names, of }
    }

    /// Names of the groups, in the order of their first parameters.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the groups with at least one varying parameter, reduced to these.
    pub(crate) fn varying(&self, parameters: &[Parameter]) -> Vec<Group> {
        self.with(parameters.len(), |column| parameters[column].domain.varies())
    }

    /// Returns the groups with at least one column that `wanted` selects, reduced to these.
    pub(crate) fn with(&self, columns: usize, wanted: impl Fn(usize) -> bool) -> Vec<Group> {
        let mut groups: Vec<Group> =
            self.names.iter().map(|name| Group { name: name.clone(), columns: Vec::new() }).collect();
        for (column, &group) in (0..columns).zip(&self.of) {
            if wanted(column) {
                groups[group].columns.push(column);
            }
        }
        groups.retain(|group| !group.columns.is_empty());
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::examples::{integers, reals};

    fn parameters() -> [Parameter; 4] {
        [reals("T1", 0.0, 1.0), integers("G1", &[1.0, 2.0]), integers("W", &[4.0]), reals("T2", 0.0, 1.0)]
    }

    fn named(groups: &[(&str, &[&str])]) -> Result<Groups, GroupError> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let groups: Vec<(String, Vec<String>)> =
            groups.iter().map(|(name, members)| ((*name).to_owned(), own(members))).collect();
        Groups::named(&parameters(), &groups)
    }

    #[test]
    fn groups_hold_what_varies() {
        let groups = named(&[("T", &["T2", "T1"]), ("connectivity", &["W"])]).unwrap();
        assert_eq!(groups.names(), ["T", "G1", "connectivity"]);
        let varying = groups.varying(&parameters());
        let shown: Vec<_> =
            varying.iter().map(|group| (group.name.as_str(), group.columns.clone())).collect();
        assert_eq!(shown, [("T", vec![0, 3]), ("G1", vec![1])]);
        let labels = ["T", "G1", "connectivity", "T"].map(str::to_owned);
        assert_eq!(Groups::labeled(&parameters(), &labels), Ok(groups));
        assert_eq!(Groups::alone(&parameters()), named(&[]).unwrap());
    }

    #[test]
    fn invalid_groups_are_refused_with_the_cause() {
        let said = |groups: &[(&str, &[&str])]| named(groups).unwrap_err().to_string();
        assert_eq!(said(&[("T", &["T3"])]), "group T: \"T3\" is not a parameter; allowed are T1, G1, W, T2");
        assert!(said(&[("a", &["T1"]), ("b", &["T1"])]).starts_with("parameter T1 is in the groups a and b"));
        assert!(said(&[("a", &["T1", "T1"])]).starts_with("parameter T1 is in the groups a and a"));
        assert!(said(&[("a", &["T1"]), ("a", &["T2"])]).starts_with("two groups are named a"));
        assert!(said(&[("G1", &["T1", "T2"])]).starts_with("two groups are named G1"));
        let short = Groups::labeled(&parameters(), &["a".to_owned()]).unwrap_err();
        assert_eq!(short.to_string(), "1 groups for 4 parameters; one per parameter is needed");
    }
}
