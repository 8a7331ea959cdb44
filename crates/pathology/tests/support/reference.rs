//! The masks of the original program, and the chain of the seven tasks that makes them from their parameter sets.
//!
//! Parameter sets share results by task and by the parameters that the task depends on, like a study with reuse.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use pleach_pathology::{image_io, registry};
use pleach_regions::DataRegion;
use pleach_workflow::{Operation, Value};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One record of a CSV file, by column.
pub(crate) type Row = HashMap<String, String>;

/// Returns every record of a CSV file.
pub(crate) fn rows(path: &Path) -> Vec<Row> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

/// Returns the operation of this name, version 1.
pub(crate) fn operation(name: &str) -> Arc<dyn Operation> {
    Arc::clone(registry().get(name, 1).unwrap())
}

/// Reads a color tile.
pub(crate) fn bgr(path: &Path) -> DataRegion {
    image_io::read_bgr(path).unwrap()
}

/// Task, its parameters, and its inputs as number of the task (0 is the normalized image) and number of the output.
type Task = (&'static str, &'static [&'static str], &'static [(usize, usize)]);

const TASKS: [Task; 7] = [
    ("nuclei.background", &["B", "G", "R", "T1", "T2"], &[(0, 0)]),
    ("nuclei.reconstruct", &["RC"], &[(0, 0)]),
    ("nuclei.candidates", &["G1", "FH"], &[(2, 0), (2, 1)]),
    ("nuclei.candidate-area", &["minSize", "maxSize"], &[(3, 1)]),
    ("nuclei.nuclei", &["G2"], &[(3, 0), (4, 0), (1, 0), (1, 1)]),
    ("nuclei.separate", &["minSizePl", "W"], &[(5, 0), (0, 0)]),
    ("nuclei.final-area", &["minSizeSeg", "maxSizeSeg", "FH"], &[(6, 0)]),
];

/// Name in `stages.csv`, task, output, and whether the count is a sum of values instead of a number of object pixels.
const COUNTS: [(&str, usize, usize, bool); 7] = [
    ("rbc_nz", 1, 0, false),
    ("rc_recon_sum", 2, 1, true),
    ("diff_sum", 3, 0, true),
    ("bw1_nz", 3, 1, false),
    ("bw1t_nz", 4, 0, false),
    ("seg_open_nz", 5, 0, false),
    ("seg_nonoverlap_nz", 6, 0, false),
];

type Outputs = Arc<Vec<DataRegion>>;

/// Runs a task.
pub(crate) type Run<'r> = &'r dyn Fn(&dyn Operation, &[&DataRegion], &[Value]) -> Vec<DataRegion>;

/// Runs a task on a core.
pub(crate) fn on_core(
    operation: &dyn Operation,
    inputs: &[&DataRegion],
    arguments: &[Value],
) -> Vec<DataRegion> {
    operation.run(inputs, arguments).unwrap()
}

/// Runs the tasks of one image, each once for all parameter sets that agree on its dependencies.
pub(crate) struct Memo<'r> {
    image: Outputs,
    results: HashMap<(usize, Vec<String>), Outputs>,
    run: Run<'r>,
}

impl<'r> Memo<'r> {
    pub(crate) fn new(image: DataRegion, run: Run<'r>) -> Self {
        Self { image: Arc::new(vec![image]), results: HashMap::new(), run }
    }

    /// Returns the parameters that the output of task `number` depends on.
    fn lineage(number: usize, row: &Row) -> Vec<String> {
        if number == 0 {
            return Vec::new();
        }
        let (_, parameters, reads) = TASKS[number - 1];
        let mut lineage: Vec<String> =
            parameters.iter().map(|name| format!("{name}={}", row[*name])).collect();
        lineage.extend(reads.iter().flat_map(|(task, _)| Self::lineage(*task, row)));
        lineage
    }

    fn get(&mut self, number: usize, row: &Row) -> Outputs {
        if number == 0 {
            return Arc::clone(&self.image);
        }
        let key = (number, Self::lineage(number, row));
        if let Some(known) = self.results.get(&key) {
            return Arc::clone(known);
        }
        let (name, parameters, reads) = TASKS[number - 1];
        let read: Vec<(Outputs, usize)> = reads.iter().map(|(task, n)| (self.get(*task, row), *n)).collect();
        let inputs: Vec<&DataRegion> = read.iter().map(|(outputs, n)| &outputs[*n]).collect();
        let operation = operation(name);
        let arguments: Vec<_> = parameters
            .iter()
            .zip(operation.arguments())
            .map(|(column, argument)| Value::parse(&row[*column], argument.accepts.value_type()).unwrap())
            .collect();
        let outputs = Arc::new((self.run)(&*operation, &inputs, &arguments));
        self.results.insert(key, Arc::clone(&outputs));
        outputs
    }

    pub(crate) fn mask(&mut self, row: &Row) -> DataRegion {
        self.get(7, row)[0].clone()
    }
}

pub(crate) fn bytes(region: &DataRegion) -> &[u8] {
    region.raster(region.element()).unwrap().data()
}

/// Describes the first stage whose count differs.
fn first_difference(memo: &mut Memo<'_>, row: &Row, stages: &Row) -> String {
    for (column, task, output, sum) in COUNTS {
        let outputs = memo.get(task, row);
        let values = bytes(&outputs[output]);
        let found: u64 = if sum {
            values.iter().map(|value| u64::from(*value)).sum()
        } else {
            values.iter().filter(|value| **value != 0).count() as u64
        };
        if found.to_string() != stages[column] {
            return format!("{column} is {found}, the original's {}", stages[column]);
        }
    }
    "all counts of the stages agree".to_owned()
}

/// Returns the rows of `index.csv` by image, the largest first, so that each thread can process whole images.
pub(crate) fn by_image(index: Vec<Row>) -> Vec<Vec<Row>> {
    let mut images: Vec<Vec<Row>> = Vec::new();
    for row in index {
        let same =
            |rows: &&mut Vec<Row>| ["tile", "normalization"].iter().all(|key| rows[0][*key] == row[*key]);
        match images.iter_mut().find(same) {
            Some(rows) => rows.push(row),
            None => images.push(vec![row]),
        }
    }
    images.sort_by_key(|rows| std::cmp::Reverse(rows[0]["width"].parse::<u32>().unwrap()));
    images
}

/// Calls `each` for every image on two threads and collects the results.
pub(crate) fn for_images<T: Send>(images: &[Vec<Row>], each: impl Fn(&[Row]) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || images.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(take).map(|rows| each(rows)).collect::<Vec<T>>()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns the number of masks compared and the differences of one image's masks from the original's.
pub(crate) fn compare(data: &Path, rows: &[Row], stages: &[Row], run: Run<'_>) -> (usize, Vec<String>) {
    let reference = data.join("reference/nscale");
    let normalized = &rows[0]["normalized_image"];
    let image = if normalized.is_empty() { data.join(&rows[0]["tile"]) } else { reference.join(normalized) };
    let mut memo = Memo::new(bgr(&image), run);
    let mut differences = Vec::new();
    for row in rows {
        let wanted = image_io::read_mask(&reference.join(&row["mask"])).unwrap();
        let differing = bytes(&memo.mask(row)).iter().zip(bytes(&wanted)).filter(|(a, b)| a != b).count();
        if differing > 0 {
            let same = |s: &&Row| ["tile", "normalization", "set"].iter().all(|key| s[*key] == row[*key]);
            let stage = first_difference(&mut memo, row, stages.iter().find(same).unwrap());
            differences.push(format!("{}: {differing} px differ; {stage}", row["mask"]));
        }
    }
    (rows.len(), differences)
}
