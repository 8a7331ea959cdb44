//! Finds the tasks of a sample whose outputs have equal content: the input of the simulation of the result directory
//! (`pleach-simulation`, bench `directory`).
//!
//! Run with `cargo bench -p pleach-pathology --bench value_classes -- TILE SAMPLE`, with a tile and the CSV file of
//! `pleach sample`. Each distinct task (operation, values, content of its inputs) runs once on the normalized tile.
//!
//! Prints a line for each evaluation. Its first 7 numbers identify the values that tasks t1 to t7 consume, its last 10 the
//! content of their outputs: rbc, background, rc, recon, diff, bw1, bw1_t, seg_open, seg_nonoverlap, mask. Equal numbers of
//! one column mean equal values or equal content.

use pleach_pathology::{image_io, registry};
use pleach_regions::{DataRegion, Digest};
use pleach_workflow::Value;
use std::collections::HashMap;
use std::path::Path;

/// Operation, parameters, and inputs: outputs of tasks, by their position among all outputs, or `None` for the tile.
type Row = (&'static str, &'static [&'static str], &'static [Option<usize>]);

const ROWS: [Row; 7] = [
    ("nuclei.background", &["B", "G", "R", "T1", "T2"], &[None]),
    ("nuclei.reconstruct", &["MorphRecon"], &[None]),
    ("nuclei.candidates", &["G1", "FillHoles"], &[Some(2), Some(3)]),
    ("nuclei.candidate-area", &["minSize", "maxSize"], &[Some(5)]),
    ("nuclei.nuclei", &["G2"], &[Some(4), Some(6), Some(0), Some(1)]),
    ("nuclei.separate", &["minSizePl", "Watershed"], &[Some(7), None]),
    ("nuclei.final-area", &["minSizeSeg", "maxSizeSeg", "FillHoles"], &[Some(8)]),
];

/// Distinct items, numbered in the order of their first occurrence.
struct Numbers<T>(HashMap<T, usize>);

impl<T: std::hash::Hash + Eq> Numbers<T> {
    fn of(&mut self, item: T) -> usize {
        let next = self.0.len();
        *self.0.entry(item).or_insert(next)
    }
}

/// A task: its row, its values, and the content of its inputs.
type TaskId = (usize, usize, Vec<usize>);

/// Outputs of a finished task.
type Outputs = Vec<(Digest, DataRegion)>;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test` builds and starts benches to check that they run. It passes no files.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let [tile, sample] = arguments.as_slice() else { return Ok(()) };
    opencv::core::set_num_threads(1)?;
    let registry = registry();
    let raw = image_io::read_bgr(Path::new(tile))?;
    let normalize = registry.get("nuclei.normalize", 1).ok_or("no normalization")?;
    let tile = normalize.run(&[&raw], &[])?.swap_remove(0);
    let mut sets = csv::Reader::from_path(sample)?;
    let names: Vec<String> = sets.headers()?.iter().map(str::to_owned).collect();
    let mut done: HashMap<TaskId, Outputs> = HashMap::new();
    let mut values: Vec<Numbers<Vec<String>>> = ROWS.iter().map(|_| Numbers(HashMap::new())).collect();
    let mut contents: Vec<Numbers<Digest>> = Vec::new();
    for set in sets.records() {
        let set = set?;
        let mut line = Vec::new();
        let mut written: Vec<(usize, TaskId, usize)> = Vec::new();
        for (task, (name, parameters, reads)) in ROWS.iter().enumerate() {
            let operation = registry.get(name, 1).ok_or("an unknown operation")?;
            let text = |parameter: &&str| {
                let column = names.iter().position(|name| name == parameter).ok_or("a missing parameter")?;
                Ok::<String, &str>(set[column].to_owned())
            };
            let texts = parameters.iter().map(text).collect::<Result<Vec<String>, _>>()?;
            let typed = |(text, argument): (&String, &pleach_workflow::Argument)| {
                Ok(Value::from_f64(text.parse()?, argument.accepts.value_type()).ok_or("an invalid value")?)
            };
            let typed: Result<Vec<Value>, Box<dyn std::error::Error>> =
                texts.iter().zip(operation.arguments()).map(typed).collect();
            let number = values[task].of(texts);
            line.push(number);
            let inputs: Vec<usize> = reads.iter().flatten().map(|output| written[*output].0).collect();
            let key = (task, number, inputs);
            if !done.contains_key(&key) {
                let region = |read: &Option<usize>| match read {
                    None => &tile,
                    Some(output) => &done[&written[*output].1][written[*output].2].1,
                };
                let regions: Vec<&DataRegion> = reads.iter().map(region).collect();
                let outputs = operation.run(&regions, &typed?)?;
                let outputs = outputs.into_iter().map(|region| (region.digest(), region)).collect();
                done.insert(key.clone(), outputs);
            }
            for (output, (digest, _)) in done[&key].iter().enumerate() {
                if contents.len() == written.len() {
                    contents.push(Numbers(HashMap::new()));
                }
                let class = contents[written.len()].of(*digest);
                written.push((class, key.clone(), output));
            }
        }
        line.extend(written.iter().map(|(class, ..)| *class));
        println!("{}", line.iter().map(usize::to_string).collect::<Vec<_>>().join(" "));
    }
    eprintln!("{} distinct tasks", done.len());
    Ok(())
}
