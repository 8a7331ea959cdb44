//! Workflow of tasks: a directed acyclic graph with run times and files (paper 002, section 3).

pub(crate) mod lists;
mod variance;

use std::collections::HashMap;

use thiserror::Error;

/// A task of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Unique id in its workflow.
    pub id: String,
    /// Name of its program, such as `mProjectPP`.
    pub kind: String,
    /// Run time in seconds.
    pub seconds: f64,
    /// Files that it reads, as indices of [`Workflow::files`].
    pub reads: Vec<u32>,
    /// Files that it writes.
    pub writes: Vec<u32>,
}

/// A file that tasks read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Unique name in its workflow.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// A directed acyclic graph of tasks. Tasks keep the order of the file that they were read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    name: String,
    tasks: Vec<Task>,
    files: Vec<DataFile>,
    parents: Vec<Vec<u32>>,
    children: Vec<Vec<u32>>,
    levels: Vec<Vec<u32>>,
    level_of: Vec<u32>,
}

/// Defect of a workflow.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WorkflowError {
    /// Two tasks have the same id.
    #[error("task {id}: given twice; ids are unique")]
    DuplicateTask {
        /// The id.
        id: String,
    },
    /// Two files have the same name.
    #[error("file {name}: given twice; names are unique")]
    DuplicateFile {
        /// The name.
        name: String,
    },
    /// An edge or a task refers to a task or a file that is missing.
    #[error("{kind} {index}: does not exist")]
    Missing {
        /// "task" or "file".
        kind: &'static str,
        /// The index.
        index: u32,
    },
    /// A run time is negative, infinite or not a number.
    #[error("task {id}: run time {seconds} s; a run time is a finite number of seconds, 0 or more")]
    Seconds {
        /// The task.
        id: String,
        /// Its run time.
        seconds: f64,
    },
    /// Tasks depend on themselves.
    #[error("task {}: depends on itself: {}", path[0], path.join(" → "))]
    Cycle {
        /// Ids along the cycle. The first is also the last.
        path: Vec<String>,
    },
}

impl Workflow {
    /// Creates a workflow. `edges` are pairs of a parent and a child. An edge that is given twice counts once. A file that a
    /// task reads and writes is an output only.
    ///
    /// # Errors
    /// If an id or a name is given twice, an index does not exist, a run time is not a finite number of 0 or more, or edges
    /// form a cycle.
    pub fn new(
        name: impl Into<String>,
        mut tasks: Vec<Task>,
        files: Vec<DataFile>,
        edges: &[(u32, u32)],
    ) -> Result<Self, WorkflowError> {
        if let Some(id) = duplicate(tasks.iter().map(|task| task.id.as_str())) {
            return Err(WorkflowError::DuplicateTask { id });
        }
        if let Some(name) = duplicate(files.iter().map(|file| file.name.as_str())) {
            return Err(WorkflowError::DuplicateFile { name });
        }
        for task in &mut tasks {
            if !task.seconds.is_finite() || task.seconds < 0.0 {
                return Err(WorkflowError::Seconds { id: task.id.clone(), seconds: task.seconds });
            }
            for list in [&mut task.reads, &mut task.writes] {
                list.sort_unstable();
                list.dedup();
                if let Some(index) = list.last().filter(|index| **index as usize >= files.len()) {
                    return Err(WorkflowError::Missing { kind: "file", index: *index });
                }
            }
            let writes = &task.writes;
            task.reads.retain(|file| writes.binary_search(file).is_err());
        }
        let (parents, children) = adjacency(tasks.len(), edges)?;
        let level_of = levels(&tasks, &parents, &children)?;
        let depth = level_of.iter().max().map_or(0, |level| *level as usize + 1);
        let mut levels = vec![Vec::new(); depth];
        for (task, level) in (0..).zip(&level_of) {
            levels[*level as usize].push(task);
        }
        Ok(Self { name: name.into(), tasks, files, parents, children, levels, level_of })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the workflow with another name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Returns all tasks.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns all files.
    #[must_use]
    pub fn files(&self) -> &[DataFile] {
        &self.files
    }

    /// Returns the parents of a task, in ascending order.
    #[must_use]
    pub fn parents(&self, task: u32) -> &[u32] {
        &self.parents[task as usize]
    }

    /// Returns the children of a task, in ascending order.
    #[must_use]
    pub fn children(&self, task: u32) -> &[u32] {
        &self.children[task as usize]
    }

    /// Returns all dependencies as pairs of a parent and a child, in ascending order.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..)
            .zip(&self.children)
            .flat_map(|(task, children)| children.iter().map(move |child| (task, *child)))
    }

    /// Returns the tasks of each level, in the order of the file. The level of a task is 0 without parents, otherwise 1 more
    /// than the highest level of its parents. Concatenated levels are a topological order.
    #[must_use]
    pub fn levels(&self) -> &[Vec<u32>] {
        &self.levels
    }

    /// Returns the level of a task, from 0.
    #[must_use]
    pub fn level_of(&self, task: u32) -> usize {
        self.level_of[task as usize] as usize
    }

    /// Returns the sum of all run times in seconds.
    #[must_use]
    pub fn total_seconds(&self) -> f64 {
        self.tasks.iter().map(|task| task.seconds).sum()
    }

    /// Returns the workflow with other dependencies among the same tasks.
    ///
    /// # Errors
    /// If an index does not exist, or edges form a cycle.
    pub fn with_edges(&self, edges: &[(u32, u32)]) -> Result<Self, WorkflowError> {
        Self::new(self.name.clone(), self.tasks.clone(), self.files.clone(), edges)
    }

    /// Multiplies the sizes of all files by a factor, rounded to whole bytes.
    #[must_use]
    pub fn with_scaled_files(mut self, factor: f64) -> Self {
        for file in &mut self.files {
            file.bytes = (file.bytes as f64 * factor).round() as u64;
        }
        self
    }

    /// Multiplies all run times by a factor.
    ///
    /// # Errors
    /// If a product is not a finite number of 0 or more.
    pub fn with_scaled_seconds(mut self, factor: f64) -> Result<Self, WorkflowError> {
        for task in &mut self.tasks {
            task.seconds *= factor;
            if !task.seconds.is_finite() || task.seconds < 0.0 {
                return Err(WorkflowError::Seconds { id: task.id.clone(), seconds: task.seconds });
            }
        }
        Ok(self)
    }
}

fn duplicate<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name)).map(str::to_owned)
}

type Lists = Vec<Vec<u32>>;

/// Returns parents and children of each task.
fn adjacency(tasks: usize, edges: &[(u32, u32)]) -> Result<(Lists, Lists), WorkflowError> {
    let mut parents = vec![Vec::new(); tasks];
    let mut children = vec![Vec::new(); tasks];
    for (parent, child) in edges {
        if let Some(index) = [parent, child].into_iter().find(|task| **task as usize >= tasks) {
            return Err(WorkflowError::Missing { kind: "task", index: *index });
        }
        children[*parent as usize].push(*child);
    }
    for (parent, list) in (0..).zip(&mut children) {
        list.sort_unstable();
        list.dedup();
        for child in list {
            parents[*child as usize].push(parent);
        }
    }
    Ok((parents, children))
}

/// Returns the level of each task (Kahn 1962).
fn levels(tasks: &[Task], parents: &Lists, children: &Lists) -> Result<Vec<u32>, WorkflowError> {
    let mut level_of = vec![0_u32; tasks.len()];
    let mut waits_for: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut ready: Vec<u32> = (0..tasks.len() as u32).filter(|task| waits_for[*task as usize] == 0).collect();
    let mut done = 0;
    while let Some(task) = ready.pop() {
        done += 1;
        for child in &children[task as usize] {
            let index = *child as usize;
            level_of[index] = level_of[index].max(level_of[task as usize] + 1);
            waits_for[index] -= 1;
            if waits_for[index] == 0 {
                ready.push(*child);
            }
        }
    }
    if done == tasks.len() {
        return Ok(level_of);
    }
    Err(WorkflowError::Cycle { path: cycle(tasks, parents, &waits_for) })
}

/// Returns the ids of a cycle, in the direction of its edges.
fn cycle(tasks: &[Task], parents: &Lists, waits_for: &[usize]) -> Vec<String> {
    // Each waiting task has a waiting parent: following parents from any of them enters a cycle.
    let waiting = |task: &&u32| waits_for[**task as usize] > 0;
    let mut position = HashMap::new();
    let mut path: Vec<u32> = Vec::new();
    let mut next = (0..tasks.len() as u32).find(|task| waiting(&task));
    while let Some(task) = next {
        if let Some(start) = position.insert(task, path.len()) {
            path.drain(..start);
            path.push(task);
            break;
        }
        path.push(task);
        next = parents[task as usize].iter().find(waiting).copied();
    }
    path.iter().rev().map(|task| tasks[*task as usize].id.clone()).collect()
}

/// Workflows of tests.
#[cfg(test)]
pub(crate) mod fixture {
    use super::{Task, Workflow};

    /// Returns a workflow of tasks `t0`, `t1`, … with these run times and no files.
    pub(crate) fn workflow(seconds: &[f64], edges: &[(u32, u32)]) -> Workflow {
        let task = |(number, seconds): (usize, &f64)| Task {
            id: format!("t{number}"),
            kind: "run".into(),
            seconds: *seconds,
            reads: vec![],
            writes: vec![],
        };
        Workflow::new("test", seconds.iter().enumerate().map(task).collect(), vec![], edges)
            .expect("a workflow")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str) -> Task {
        Task { id: id.into(), kind: "run".into(), seconds: 1.0, reads: vec![], writes: vec![] }
    }

    fn workflow(edges: &[(u32, u32)]) -> Result<Workflow, WorkflowError> {
        Workflow::new("test", ["a", "b", "c", "d"].map(task).to_vec(), vec![], edges)
    }

    #[test]
    fn levels_are_longest_distances_from_the_roots() {
        let workflow = workflow(&[(0, 1), (1, 3), (0, 3), (2, 3), (0, 1)]).unwrap();
        assert_eq!(workflow.levels(), [vec![0, 2], vec![1], vec![3]]);
        assert_eq!(workflow.edges().collect::<Vec<_>>(), [(0, 1), (0, 3), (1, 3), (2, 3)]);
        assert_eq!(
            (workflow.parents(3), workflow.children(0), workflow.level_of(3)),
            (&[0, 1, 2][..], &[1, 3][..], 2)
        );
    }

    #[test]
    fn a_cycle_is_refused_with_its_path() {
        let error = workflow(&[(0, 1), (1, 2), (2, 3), (3, 1)]).unwrap_err().to_string();
        assert_eq!(error, "task b: depends on itself: b → c → d → b");
        assert_eq!(workflow(&[(2, 2)]).unwrap_err().to_string(), "task c: depends on itself: c → c");
    }

    #[test]
    fn defects_are_refused() {
        let twice = Workflow::new("test", vec![task("a"), task("a")], vec![], &[]).unwrap_err();
        assert_eq!(twice.to_string(), "task a: given twice; ids are unique");
        for seconds in [-1.0, f64::NAN, f64::INFINITY] {
            let wrong = Task { seconds, ..task("a") };
            assert!(matches!(
                Workflow::new("test", vec![wrong], vec![], &[]),
                Err(WorkflowError::Seconds { .. })
            ));
        }
        let reads = Task { reads: vec![0], ..task("a") };
        let missing = Workflow::new("test", vec![reads], vec![], &[]).unwrap_err();
        assert_eq!(missing, WorkflowError::Missing { kind: "file", index: 0 });
        assert_eq!(workflow(&[(0, 4)]).unwrap_err(), WorkflowError::Missing { kind: "task", index: 4 });
    }

    #[test]
    fn a_file_that_is_read_and_written_is_no_input() {
        let files = vec![DataFile { name: "x".into(), bytes: 10 }, DataFile { name: "y".into(), bytes: 5 }];
        let both = Task { reads: vec![1, 0, 1], writes: vec![0], ..task("a") };
        let workflow = Workflow::new("test", vec![both], files, &[]).unwrap().with_scaled_files(1.5);
        assert_eq!(workflow.tasks()[0].reads, [1]);
        assert_eq!(workflow.files()[1].bytes, 8);
    }

    #[test]
    fn a_workflow_without_tasks_has_no_levels() {
        let workflow = Workflow::new("test", vec![], vec![], &[]).unwrap();
        assert!(workflow.levels().is_empty());
    }
}
