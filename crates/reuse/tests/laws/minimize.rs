//! Key minimization on the worked examples of paper 004, compared with every possible extension.

#![expect(clippy::unwrap_used, reason = "what is not a test function here is part of one")]

use pleach_reuse::{Attributes, Flow, FlowGraph, Target, ValueHistory, Variable, VariableId, Vertex};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn vertices(numbers: &[u32]) -> Vec<Vertex> {
    numbers.iter().copied().map(Vertex).collect()
}

fn variable(producers: &[u32], consumers: &[u32], flow: Flow) -> Variable {
    Variable { producers: vertices(producers), consumers: vertices(consumers), flow }
}

// --- Fig. 5

/// Edges in the figure's alphabetical order: a (0,1), b (0,2), c (0,3), d (1,4), e (2,4), f (3,5), g (4,6), h
/// (5,6), i (6,7). Vertex 0 is the source: its outputs come from outside.
fn figure_5() -> FlowGraph {
    let edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 6), (5, 6), (6, 7)];
    let producers = |u: u32| if u == 0 { vec![] } else { vec![u] };
    let variables = edges.map(|(u, v)| variable(&producers(u), &[v], Flow::Plain));
    FlowGraph::new(8, variables.to_vec()).unwrap()
}

fn names(attributes: &Attributes) -> String {
    attributes.variables.iter().map(|id| char::from(b'a' + id.0 as u8)).collect()
}

#[test]
fn figure_5_replaces_g_by_d_and_e_when_g_is_larger() {
    let graph = figure_5();
    let target = Target::new(&graph, &vertices(&[3, 5, 6])).unwrap();
    // a and b are too large for a further extension, as in the figure.
    let sizes = |g: u64| move |id: VariableId| [100, 100, 7, 10, 20, 1, g, 1, 1][id.0 as usize];
    assert_eq!(names(&target.initial_attributes(sizes(31))), "cg");
    let found = target.attributes(sizes(31));
    assert_eq!((names(&found), found.bytes), ("cde".to_owned(), 37));
    assert_eq!(found.reused, vertices(&[3, 4, 5, 6]));
    // If g is not larger, the target is not extended.
    assert_eq!(names(&target.attributes(sizes(30))), "cg");
    assert_eq!(names(&target.attributes(sizes(29))), "cg");
    assert!(!target.depends_on_run_time());
    // Small a and b extend it to both. Fig. 7 alone would not try two chains at once.
    let small = |id: VariableId| [1, 2, 7, 10, 20, 1, 31, 1, 1][id.0 as usize];
    let found = target.attributes(small);
    assert_eq!((names(&found), found.bytes), ("abc".to_owned(), 10));
    let figure = Graph::copy_of(&graph, 8, &[3, 5, 6], small);
    assert_eq!(one_chain_at_a_time(&figure), 7 + 10 + 2, "b for e, and d stays");
}

// --- Fig. 4 and Table 2

/// The registration program of Fig. 4 as it has run when `hierarchies` is reached, and the bytes of its
/// variables. Vertex 0 reads the images (line 7), and vertex 1 creates the first `vec`. Each hierarchy then
/// has three assignments of `prm` behind their branches (lines 11, 13, 15), registration (16) and resampling
/// (17).
fn figure_4(hierarchies: u32, vec_bytes: u64) -> (FlowGraph, Vec<Vertex>, Vec<(String, u64)>) {
    let mut names = Vec::new();
    let mut variables = Vec::new();
    let mut add = |name: &str, bytes: u64, variable: Variable| {
        names.push((name.to_owned(), bytes));
        variables.push(variable);
    };
    let first = |hierarchy: u32| 2 + 5 * hierarchy;
    let both = |hierarchy: u32| [first(hierarchy) + 3, first(hierarchy) + 4];
    let all: Vec<u32> = (0..hierarchies).flat_map(both).collect();
    add("n1", 6, variable(&[], &[0], Flow::Plain));
    add("n2", 6, variable(&[], &[0], Flow::Plain));
    add("img", 680_000_000, variable(&[0], &all, Flow::Plain));
    for hierarchy in 0..hierarchies {
        let [registration, resampling] = both(hierarchy);
        let assignments: Vec<u32> = (0..3).map(|branch| first(hierarchy) + branch).collect();
        for (assignment, name) in assignments.iter().zip(["p1", "p2", "p3"]) {
            add(name, 8, variable(&[], &[*assignment], Flow::Plain));
        }
        add("prm", 8, variable(&assignments, &[registration, resampling], Flow::Influenced));
        add("deformation", vec_bytes, variable(&[registration], &[resampling], Flow::Plain));
        let before = if hierarchy == 0 { 1 } else { both(hierarchy - 1)[1] };
        add("vec", vec_bytes, variable(&[before], &[registration, resampling], Flow::Plain));
    }
    let graph = FlowGraph::new(first(hierarchies) as usize, variables).unwrap();
    (graph, vertices(&both(hierarchies - 1)), names)
}

#[test]
fn minimized_keys_have_the_bytes_of_table_2() {
    // The text gives the sizes of `vec` and the sums at H1 and H5. The table gives one size of `vec` between
    // them.
    let vec_bytes = [58_000, 58_000, 408_000, 408_000, 3_000_000];
    let published = [(Some(680), 20), (None, 28), (None, 36), (None, 44), (Some(683), 52)];
    println!(
        "| hierarchy | published, MB | ours, MB | minimized: published, bytes | ours, bytes | attributes |"
    );
    for (hierarchy, (vec_bytes, (published_mb, published_bytes))) in
        (1..).zip(vec_bytes.into_iter().zip(published))
    {
        let (graph, reused, names) = figure_4(hierarchy, vec_bytes);
        let target = Target::new(&graph, &reused).unwrap();
        let bytes = |id: VariableId| names[id.0 as usize].1;
        let named = |attributes: &Attributes| -> Vec<&str> {
            attributes.variables.iter().map(|id| &*names[id.0 as usize].0).collect()
        };
        let before = target.initial_attributes(bytes);
        let after = target.attributes(bytes);
        let before_mb = before.bytes / 1_000_000;
        let shown = published_mb.map_or_else(|| "-".to_owned(), |mb| mb.to_string());
        let attributes = named(&after).join(" ");
        println!(
            "| H{hierarchy} | {shown} | {before_mb} | {published_bytes} | {} | {attributes} |",
            after.bytes
        );
        assert_eq!(named(&before), ["img", "prm", "vec"]);
        assert_eq!(before_mb, published_mb.unwrap_or(before_mb));
        // n1, n2 and the value history of prm.
        let history = vec!["prm"; hierarchy as usize];
        assert_eq!(named(&after), [&["n1", "n2"], &history[..]].concat());
        assert_eq!(after.bytes, published_bytes);
        assert!(target.depends_on_run_time());
    }
}

/// The history of `prm` has the bytes that Table 2 counts.
#[test]
fn the_history_of_prm_takes_as_many_bytes_as_its_variables() {
    let mut history = ValueHistory::default();
    for hierarchy in 1..=5 {
        history.record(&(0.5_f64).to_le_bytes());
        let (graph, reused, names) = figure_4(hierarchy, 58_000);
        let found = Target::new(&graph, &reused).unwrap().attributes(|id| names[id.0 as usize].1);
        assert_eq!(found.bytes - 12, history.bytes());
    }
}

// --- Any graph

/// Reference implementation: bytes of the variables that a set reads from outside, one after the other.
fn bytes_of(graph: &Graph, set: &BTreeSet<u32>) -> u64 {
    let inside = |vertex: &Vertex| set.contains(&vertex.0);
    let mut sum = 0;
    for (variable, bytes) in graph.variables.iter().zip(&graph.bytes) {
        let read = variable.consumers.iter().any(inside);
        let outside =
            variable.producers.is_empty() || variable.producers.iter().any(|vertex| !inside(vertex));
        sum += if read && outside { *bytes } else { 0 };
    }
    sum
}

/// Returns whether statements can join the reused ones one after the other, each allowed by C3 at that time,
/// and none with a flow-influenced output. Any order is possible, because joining never forbids another
/// statement.
fn is_extension(graph: &Graph, set: &BTreeSet<u32>) -> bool {
    let mut joined: BTreeSet<u32> = graph.reused.iter().copied().collect();
    loop {
        let written = |u: u32| graph.variables.iter().filter(move |v| v.producers.contains(&Vertex(u)));
        let allowed = |u: u32| {
            written(u).all(|variable| {
                variable.flow == Flow::Plain && variable.consumers.iter().all(|v| joined.contains(&v.0))
            }) && written(u).any(|variable| !variable.consumers.is_empty())
        };
        let Some(next) = set.iter().copied().find(|u| !joined.contains(u) && allowed(*u)) else { break };
        joined.insert(next);
    }
    joined == *set
}

/// Returns the bytes that the paper's algorithm reaches as printed (Figs. 6 and 7), one chain of predecessors
/// at a time. It carries the set of statements instead of the critical ones, because Equation (4) would lose
/// inputs.
fn one_chain_at_a_time(graph: &Graph) -> u64 {
    fn extension(graph: &Graph, v: u32, set: &BTreeSet<u32>, best: &mut u64) {
        for variable in graph.variables.iter().filter(|variable| variable.consumers.contains(&Vertex(v))) {
            for u in &variable.producers {
                let mut extended = set.clone();
                if variable.flow == Flow::Plain && extended.insert(u.0) && is_extension(graph, &extended) {
                    *best = bytes_of(graph, &extended).min(*best);
                    extension(graph, u.0, &extended, best);
                }
            }
        }
    }
    let set: BTreeSet<u32> = graph.reused.iter().copied().collect();
    let mut best = bytes_of(graph, &set);
    graph.reused.iter().for_each(|v| extension(graph, *v, &set, &mut best));
    best
}

#[derive(Clone, Debug)]
struct Graph {
    vertices: u32,
    variables: Vec<Variable>,
    bytes: Vec<u64>,
    reused: Vec<u32>,
}

impl Graph {
    fn copy_of(graph: &FlowGraph, vertices: u32, reused: &[u32], bytes: impl Fn(VariableId) -> u64) -> Self {
        let variables = graph.variables().to_vec();
        let bytes = (0..variables.len() as u32).map(|id| bytes(VariableId(id))).collect();
        Self { vertices, variables, bytes, reused: reused.to_vec() }
    }
}

/// Up to nine statements, variables from earlier to later ones, and the last few statements reused.
fn graph() -> impl Strategy<Value = Graph> {
    (2..10_u32).prop_flat_map(|count| {
        let ends = prop::collection::btree_set(0..count, 1..4);
        let flow = prop_oneof![6 => Just(Flow::Plain), 1 => Just(Flow::Influenced)];
        let variable = (ends, 0..3_usize, flow).prop_map(|(ends, producers, flow)| {
            let ends: Vec<u32> = ends.into_iter().collect();
            let (producers, consumers) = ends.split_at(producers.min(ends.len() - 1));
            variable(producers, consumers, flow)
        });
        let variables = prop::collection::vec((variable, 0..12_u64), 0..16);
        (Just(count), variables, prop::collection::btree_set(0..count, 1..4)).prop_map(
            |(vertices, variables, reused)| {
                let (variables, bytes) = variables.into_iter().unzip();
                Graph { vertices, variables, bytes, reused: reused.into_iter().collect() }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Among all extensions the result is the cheapest, and on ties the smallest.
    #[test]
    fn no_extension_is_cheaper(graph in graph()) {
        let flow = FlowGraph::new(graph.vertices as usize, graph.variables.clone()).unwrap();
        let Ok(target) = Target::new(&flow, &vertices(&graph.reused)) else { return Ok(()) };
        let found = target.attributes(|id| graph.bytes[id.0 as usize]);
        let set: BTreeSet<u32> = found.reused.iter().map(|vertex| vertex.0).collect();
        prop_assert!(is_extension(&graph, &set), "{:?} cannot be reached", set);
        prop_assert_eq!(found.bytes, bytes_of(&graph, &set));

        let mut best: Option<(u64, usize)> = None;
        for mask in 0..1_u32 << graph.vertices {
            let candidate: BTreeSet<u32> = (0..graph.vertices).filter(|v| mask >> v & 1 == 1).collect();
            if graph.reused.iter().all(|v| candidate.contains(v)) && is_extension(&graph, &candidate) {
                let this = (bytes_of(&graph, &candidate), candidate.len());
                best = Some(best.map_or(this, |best| best.min(this)));
            }
        }
        prop_assert_eq!(Some((found.bytes, found.reused.len())), best);
        prop_assert!(found.bytes <= one_chain_at_a_time(&graph));
    }

    /// With sizes of 0 an extension saves nothing, so the target is not extended.
    #[test]
    fn without_sizes_nothing_is_extended(graph in graph()) {
        let flow = FlowGraph::new(graph.vertices as usize, graph.variables.clone()).unwrap();
        let Ok(target) = Target::new(&flow, &vertices(&graph.reused)) else { return Ok(()) };
        prop_assert_eq!(target.attributes(|_| 0), target.initial_attributes(|_| 0));
    }
}
