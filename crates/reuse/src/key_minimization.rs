//! Smallest key of a reusable result: paper 004, "Minimizing Data Size for Efficient Data Reuse".
//!
//! Statements (vertices) worth reusing read values. A stored result is found by those values (*attributes*),
//! which may be images. Including the statements that read an image from its file name replaces the image by
//! the name. [`FlowGraph`] records which statements read which outputs, [`Target`] is the code to reuse with
//! its possible extensions, and [`Target::attributes`] chooses the extension whose attributes take the fewest
//! bytes.
//!
//! Differences from the paper:
//!
//! - A statement may join the reused ones if all readers of its outputs are reused (condition C3). Its
//!   outputs must not be *flow-influenced* either: a branch decides such a value, so it stays an attribute,
//!   with all its past values ([`ValueHistory`]). The paper also marks loop-carried variables. Here a loop is
//!   recorded iteration by iteration, as far as it has run, and then only variables that branches decide need
//!   the mark. This removes `vec` from the attributes of the paper's Table 2.
//! - Attributes are the values that critical vertices read *from outside* of the reused set, as in Fig. 5.
//!   Equation (1) taken literally also counts values that they read from each other.
//! - Equation (4) removes a vertex from the critical ones as soon as one of its predecessors joins, even if
//!   it reads from other vertices too. Here (1) and (2) always give the attributes of an extended set.
//! - The paper follows one chain of predecessors at a time (Fig. 7) and never joins two chains. Here every
//!   extension that C3 allows is considered: the cheapest is a minimum cut (`key_minimization/cut.rs`).
//!
//! The caller owns names and values, and provides the bytes of a variable. If these are known only at run time
//! (Phase 3), the caller queries the same [`Target`] again then.

mod cut;
mod history;

pub use history::ValueHistory;

use cut::{FlowNetwork, ends};
use thiserror::Error;

/// A statement of a [`FlowGraph`], by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vertex(pub u32);

/// A variable of a [`FlowGraph`], by its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableId(pub u32);

/// Influence on the value of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The producer's computation alone decides it.
    Plain,
    /// Branches decide it as well. It stays an attribute, with the history of its values.
    Influenced,
}

/// A value that passes between statements.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Statements that may write it. Several if branches decide. None if it comes from outside (the paper's
    /// source).
    pub producers: Vec<Vertex>,
    /// Statements that read it.
    pub consumers: Vec<Vertex>,
    /// Influence on its value.
    pub flow: Flow,
}

/// Statements and the variables that pass between them, without cycles.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowGraph {
    vertices: usize,
    variables: Vec<Variable>,
}

/// Error of a flow graph or a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FlowError {
    /// A variable or a target names a vertex that does not exist.
    #[error("read the flow graph: vertex {vertex} of {vertices}")]
    NoVertex {
        /// The vertex.
        vertex: u32,
        /// Number of vertices.
        vertices: usize,
    },
    /// Statements form a cycle. The caller must distinguish the iterations of a loop.
    #[error("read the flow graph: vertex {vertex} depends on itself")]
    Circle {
        /// A statement on the cycle.
        vertex: u32,
    },
    /// A statement that is not reused reads from reused statements and writes to them. Its outputs would have to be
    /// known before the reused statements execute.
    #[error("read the target: vertex {vertex} is not in it, but between its vertices")]
    Between {
        /// The statement.
        vertex: u32,
    },
}

impl FlowGraph {
    /// Creates a graph of `vertices` statements, numbered from 0.
    ///
    /// # Errors
    /// [`FlowError`] if a variable names a statement that does not exist, or statements depend on themselves.
    pub fn new(vertices: usize, variables: Vec<Variable>) -> Result<Self, FlowError> {
        let graph = Self { vertices, variables };
        for variable in &graph.variables {
            graph.check(variable.producers.iter().chain(&variable.consumers))?;
        }
        match graph.circle() {
            Some(vertex) => Err(FlowError::Circle { vertex: vertex as u32 }),
            None => Ok(graph),
        }
    }

    /// Returns the variables, in the order of their ids.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    fn check<'a>(&self, mut vertices: impl Iterator<Item = &'a Vertex>) -> Result<(), FlowError> {
        match vertices.find(|vertex| vertex.0 as usize >= self.vertices) {
            Some(vertex) => Err(FlowError::NoVertex { vertex: vertex.0, vertices: self.vertices }),
            None => Ok(()),
        }
    }

    /// Returns pairs of statements where the second reads an output of the first.
    fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.variables.iter().flat_map(|variable| {
            let from = variable.producers.iter();
            from.flat_map(|u| variable.consumers.iter().map(|v| (u.0 as usize, v.0 as usize)))
        })
    }

    /// Returns a statement on a cycle. Returns `None` if the graph has no cycle.
    fn circle(&self) -> Option<usize> {
        let mut waits_for = vec![0_u32; self.vertices];
        let mut readers = vec![Vec::new(); self.vertices];
        for (u, v) in self.edges() {
            waits_for[v] += 1;
            readers[u].push(v);
        }
        let mut ready: Vec<usize> = (0..self.vertices).filter(|v| waits_for[*v] == 0).collect();
        while let Some(u) = ready.pop() {
            for &v in &readers[u] {
                waits_for[v] -= 1;
                if waits_for[v] == 0 {
                    ready.push(v);
                }
            }
        }
        waits_for.iter().position(|count| *count > 0)
    }

    /// Returns the statements reachable from the marked ones along edges, or against them, the marked ones
    /// included.
    fn reached(&self, from: &[bool], forward: bool) -> Vec<bool> {
        let mut reached = from.to_vec();
        // The number of rounds is at most that of the longest path's edges, plus one. Graphs of statements
        // are small.
        loop {
            let before = reached.iter().filter(|mark| **mark).count();
            for (u, v) in self.edges() {
                let (start, end) = if forward { (u, v) } else { (v, u) };
                reached[end] |= reached[start];
            }
            if reached.iter().filter(|mark| **mark).count() == before {
                return reached;
            }
        }
    }
}

/// Statements to reuse (the paper's R), and those that may join them.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    graph: &'a FlowGraph,
    reused: Vec<bool>,
    /// Statements that belong to at least one extension.
    admissible: Vec<bool>,
}

/// Key of a result: the reused statements and their attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Reused statements, in order: those of the target, and those that joined them.
    pub reused: Vec<Vertex>,
    /// Variables of the key, in order. Flow-influenced ones contribute the history of their values.
    pub variables: Vec<VariableId>,
    /// Total bytes of the variables.
    pub bytes: u64,
}

impl<'a> Target<'a> {
    /// Marks the statements `reused` for reuse (Phase 1), and finds their possible extensions (Phase 2).
    ///
    /// # Errors
    /// [`FlowError`] if one of them does not exist, or another statement is between them.
    pub fn new(graph: &'a FlowGraph, reused: &[Vertex]) -> Result<Self, FlowError> {
        graph.check(reused.iter())?;
        let mut marks = vec![false; graph.vertices];
        reused.iter().for_each(|vertex| marks[vertex.0 as usize] = true);
        let (before, after) = (graph.reached(&marks, false), graph.reached(&marks, true));
        let between = |v: &usize| before[*v] && after[*v] && !marks[*v];
        if let Some(vertex) = (0..graph.vertices).find(between) {
            return Err(FlowError::Between { vertex: vertex as u32 });
        }
        // Checked before: a statement between reused ones could never precede all of them.
        let admissible = admissible(graph, &marks, &before);
        Ok(Self { graph, reused: marks, admissible })
    }

    /// Returns the attributes of the statements themselves (A_R), without any extension. `bytes` gives the size of
    /// a variable.
    #[must_use]
    pub fn initial_attributes(&self, bytes: impl Fn(VariableId) -> u64) -> Attributes {
        self.attributes_of(&self.reused, bytes)
    }

    /// Returns the attributes of the extension with the fewest bytes (Phase 3), on ties of the one with the fewest
    /// statements. `bytes` gives the size of a variable, for a flow-influenced one that of all its past values.
    #[must_use]
    pub fn attributes(&self, bytes: impl Fn(VariableId) -> u64) -> Attributes {
        self.attributes_of(&self.cheapest_extension(&bytes), bytes)
    }

    /// Returns whether a flow-influenced variable may be an attribute. Sizes are then known only at run time, and
    /// the caller has to query [`attributes`](Self::attributes) then.
    #[must_use]
    pub fn depends_on_run_time(&self) -> bool {
        let may_be_read = |v: &Vertex| self.reused[v.0 as usize] || self.admissible[v.0 as usize];
        let may_come_from_outside = |u: &Vertex| !self.reused[u.0 as usize];
        self.graph.variables.iter().any(|variable| {
            variable.flow == Flow::Influenced
                && variable.consumers.iter().any(may_be_read)
                && (variable.producers.is_empty() || variable.producers.iter().any(may_come_from_outside))
        })
    }

    /// Returns the attributes of a set of statements: the variables that it reads from outside.
    fn attributes_of(&self, set: &[bool], bytes: impl Fn(VariableId) -> u64) -> Attributes {
        let within = |v: &Vertex| set[v.0 as usize];
        let from_outside = |variable: &Variable| {
            variable.consumers.iter().any(within)
                && (variable.producers.is_empty() || !variable.producers.iter().all(within))
        };
        let ids = (0u32..).map(VariableId).zip(&self.graph.variables);
        let variables: Vec<VariableId> =
            ids.filter(|(_, variable)| from_outside(variable)).map(|(id, _)| id).collect();
        let bytes = variables.iter().fold(0_u64, |sum, id| sum.saturating_add(bytes(*id)));
        let reused = (0u32..).map(Vertex).zip(set).filter(|(_, set)| **set).map(|(vertex, _)| vertex);
        Attributes { reused: reused.collect(), variables, bytes }
    }

    /// Returns the statements on the target's side of a minimum cut. That side holds the reused statements
    /// and, with each statement, all its readers (C3). The cost of a variable counts once, if that side reads
    /// it and it comes from outside or has a producer on the other side.
    fn cheapest_extension(&self, bytes: impl Fn(VariableId) -> u64) -> Vec<bool> {
        let (vertices, variables) = (self.graph.vertices, &self.graph.variables);
        let mut network = FlowNetwork::new(vertices + 2 * variables.len());
        let node = |v: &Vertex| match (self.reused[v.0 as usize], self.admissible[v.0 as usize]) {
            (true, _) => ends::NEAR,
            (_, true) => ends::inner(v.0 as usize),
            _ => ends::FAR,
        };
        for (number, (id, variable)) in (0u32..).map(VariableId).zip(variables).enumerate() {
            let read = ends::inner(vertices + 2 * number);
            let wanted = ends::inner(vertices + 2 * number + 1);
            for consumer in variable.consumers.iter().map(node) {
                network.bind(consumer, read);
                variable.producers.iter().map(node).for_each(|producer| network.bind(producer, consumer));
            }
            network.pay(read, wanted, bytes(id));
            // A value from outside has no producer that could join, so reading it always costs its bytes.
            if variable.producers.is_empty() {
                network.bind(wanted, ends::FAR);
            }
            variable.producers.iter().map(node).for_each(|producer| network.bind(wanted, producer));
        }
        let near = network.source_side_of_minimum_cut();
        (0..vertices).map(|v| self.reused[v] || (self.admissible[v] && near[ends::inner(v)])).collect()
    }
}

/// Returns the statements that some extension includes: those that lead to the target, write nothing
/// flow-influenced, and have only readers that are reused or admissible themselves. Unions of extensions are
/// extensions, so each of these is in the largest.
fn admissible(graph: &FlowGraph, reused: &[bool], before: &[bool]) -> Vec<bool> {
    let mut admissible: Vec<bool> =
        before.iter().zip(reused).map(|(before, reused)| *before && !reused).collect();
    loop {
        let mut changed = false;
        for variable in &graph.variables {
            let allowed = |v: &Vertex| reused[v.0 as usize] || admissible[v.0 as usize];
            if variable.flow == Flow::Plain && variable.consumers.iter().all(allowed) {
                continue;
            }
            for producer in &variable.producers {
                // A removal may exclude further producers, hence the repetition until nothing changes.
                changed |= std::mem::take(&mut admissible[producer.0 as usize]);
            }
        }
        if !changed {
            return admissible;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(producers: &[u32], consumers: &[u32]) -> Variable {
        let vertices = |list: &[u32]| list.iter().copied().map(Vertex).collect();
        Variable { producers: vertices(producers), consumers: vertices(consumers), flow: Flow::Plain }
    }

    #[test]
    fn graphs_and_targets_are_checked() {
        let error = FlowGraph::new(2, vec![variable(&[0], &[2])]).unwrap_err();
        assert_eq!(error, FlowError::NoVertex { vertex: 2, vertices: 2 });
        let error = FlowGraph::new(3, vec![variable(&[0], &[1]), variable(&[1], &[2]), variable(&[2], &[1])]);
        assert_eq!(error.unwrap_err(), FlowError::Circle { vertex: 1 });
        let graph = FlowGraph::new(3, vec![variable(&[0], &[1]), variable(&[1], &[2])]).unwrap();
        let error = Target::new(&graph, &[Vertex(0), Vertex(2)]).unwrap_err();
        assert_eq!(error, FlowError::Between { vertex: 1 });
        assert!(Target::new(&graph, &[Vertex(3)]).is_err());
    }

    #[test]
    fn a_statement_that_reads_nothing_costs_nothing() {
        let graph = FlowGraph::new(2, vec![variable(&[0], &[1])]).unwrap();
        let target = Target::new(&graph, &[Vertex(1)]).unwrap();
        let found = target.attributes(|_| 5);
        assert_eq!(found, Attributes { reused: vec![Vertex(0), Vertex(1)], variables: vec![], bytes: 0 });
        assert!(!target.depends_on_run_time());
    }

    #[test]
    fn statement_with_another_reader_does_not_join() {
        // C3: vertex 0 is read by 1, which is reused, and by 2, which is not.
        let graph = FlowGraph::new(3, vec![variable(&[], &[0]), variable(&[0], &[1, 2])]).unwrap();
        let target = Target::new(&graph, &[Vertex(1)]).unwrap();
        let bytes = |id: VariableId| [1, 1000][id.0 as usize];
        assert_eq!(target.attributes(bytes), target.initial_attributes(bytes));
        let target = Target::new(&graph, &[Vertex(1), Vertex(2)]).unwrap();
        assert_eq!(target.attributes(bytes).variables, [VariableId(0)]);
    }

    #[test]
    fn sizes_beyond_counting_are_no_bargain() {
        let graph =
            FlowGraph::new(2, vec![variable(&[], &[0]), variable(&[0], &[1]), variable(&[], &[1])]).unwrap();
        let target = Target::new(&graph, &[Vertex(1)]).unwrap();
        let found = target.attributes(|id| [1, u64::MAX, u64::MAX][id.0 as usize]);
        assert_eq!((found.variables, found.bytes), (vec![VariableId(0), VariableId(2)], u64::MAX));
    }
}
