//! Operations on gray images of any size, and studies over them, with bytes that can be counted by hand.

use parking_lot::Mutex;
use pleach_actors::storage::Source;
use pleach_dispatch::InstanceId;
use pleach_dispatch::dry_run::rehearse;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::message::TaskFailure;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_regions::{DataRegion, ElementType, Raster, RegionKey, Table};
use pleach_workflow::{
    Accepts, Argument, InputOrigin, Operation, OperationError, Port, RegionDecl, Registry, Stage, StageInput,
    StageOutput, Task, TaskInput, Value,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Run of an operation: name, shades of the input images, pixels, and argument.
pub(crate) type Painted = (&'static str, Vec<u8>, u64, u64);

/// Observations of the operations: `lit` is the number of loaded lamps at each first task of a painting.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    lamps: AtomicUsize,
    pub(crate) lit: Mutex<Vec<usize>>,
    /// Number of runs by operation, shades, pixels and argument.
    pub(crate) runs: Mutex<HashMap<Painted, usize>>,
}

/// Images of this size take longer to compute than to decode, so that results are encoded.
pub(crate) const ENCODED_PIXELS: u64 = 1 << 16;

/// Multiplies all pixels of one or two images and adds a number (mod 251). With a table as output, it returns the value of
/// one pixel.
struct Shade {
    name: &'static str,
    inputs: &'static [Port],
    outputs: [Port; 1],
    /// Bytes per pixel, in addition to the output.
    scratch: u64,
    watch: Arc<Watch>,
}

const GRAY: Port = Port { name: "image", element: ElementType::Gray8 };

impl Operation for Shade {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        const ARGUMENTS: [Argument; 1] =
            [Argument { name: "add", accepts: Accepts::Integers { low: 0, high: 250 } }];
        &ARGUMENTS
    }

    fn inputs(&self) -> &[Port] {
        self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        // High enough for a lookup before each run, and for a digest of the inputs.
        1.0
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.outputs[0].element.bytes(pixels) + self.scratch * pixels
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        if self.name == "toy.first" {
            self.watch.lit.lock().push(self.watch.lamps.load(Ordering::SeqCst));
        }
        let image = inputs[0].raster(ElementType::Gray8)?;
        let mut shades = Vec::new();
        for input in inputs {
            shades.push(input.raster(ElementType::Gray8)?.data()[0]);
        }
        let add = arguments[0].as_f64() as u64;
        let shade = shade(shades.iter().copied().map(u64::from).sum(), add);
        if image.pixels() >= ENCODED_PIXELS {
            // Many times as long as decoding the output, on any machine.
            (0..64).for_each(|_| _ = std::hint::black_box(inputs[0].digest()));
        }
        let run = (self.name, shades, image.pixels(), add);
        *self.watch.runs.lock().entry(run).or_insert(0) += 1;
        Ok(vec![match self.outputs[0].element {
            ElementType::Table => DataRegion::Table(Table::new([("x", shade as f64)])),
            _ => DataRegion::Gray8(image.plane(vec![shade as u8; image.pixels() as usize])?),
        }])
    }
}

/// The shade of the output. Two consecutive numbers can return the same shade.
fn shade(before: u64, add: u64) -> u64 {
    (7 * before + add / 2) % 251
}

/// Tile of `pixels` pixels of one shade, or its lamp.
struct Tile {
    pixels: u32,
    shade: u8,
    lamp: Option<Arc<Watch>>,
}

impl Source for Tile {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        if let Some(watch) = &self.lamp {
            watch.lamps.fetch_add(1, Ordering::SeqCst);
        }
        Ok(DataRegion::Gray8(Raster::filled(self.pixels, 1, 1, self.shade).expect("some pixels")))
    }
}

/// Shade of all lamps.
const LAMP: u64 = 17;

/// Study over tiles of these sizes, with parameter sets of four numbers. One task prepares each tile. For each set and tile,
/// three tasks make an image of it, the last of them with the tile's lamp, and one task measures the image.
#[derive(Clone, Debug)]
pub(crate) struct Study {
    pub(crate) tiles: Vec<u32>,
    pub(crate) sets: Vec<[i64; 4]>,
    pub(crate) bucket: usize,
    /// Scratch bytes per pixel of the first task of a painting. The other tasks need none.
    pub(crate) scratch: u64,
    pub(crate) sharing: ReuseScope,
}

impl Study {
    pub(crate) fn registry(&self, watch: &Arc<Watch>) -> Registry {
        let table = Port { name: "table", element: ElementType::Table };
        let shade = |name, inputs, output, scratch| Shade {
            name,
            inputs,
            outputs: [output],
            scratch,
            watch: Arc::clone(watch),
        };
        let operations = [
            shade("toy.first", &[GRAY], GRAY, self.scratch),
            shade("toy.shade", &[GRAY], GRAY, 0),
            shade("toy.blend", &[GRAY, GRAY], GRAY, 0),
            shade("toy.measure", &[GRAY], table, 0),
        ];
        Registry::new(operations.into_iter().map(|operation| Arc::new(operation) as Arc<dyn Operation>))
    }

    /// Returns the memory of the tasks of a stage.
    fn bytes(&self, stage: usize, pixels: u64) -> Vec<TaskMemory> {
        let task = |element: ElementType, scratch| TaskMemory {
            scratch: scratch * pixels,
            outputs: vec![element.bytes(pixels)],
        };
        match stage {
            0 => vec![task(ElementType::Gray8, 0)],
            1 => [self.scratch, 0, 0].map(|scratch| task(ElementType::Gray8, scratch)).to_vec(),
            _ => vec![task(ElementType::Table, 0)],
        }
    }

    pub(crate) fn sources(&self, watch: &Arc<Watch>) -> HashMap<RegionKey, Arc<dyn Source>> {
        let mut sources: HashMap<RegionKey, Arc<dyn Source>> = HashMap::new();
        for (tile, &pixels) in self.tiles.iter().enumerate() {
            let lamp = Some(Arc::clone(watch));
            sources.insert(tile_key(tile), Arc::new(Tile { pixels, shade: tile as u8, lamp: None }));
            sources.insert(lamp_key(tile), Arc::new(Tile { pixels, shade: LAMP as u8, lamp }));
        }
        sources
    }

    /// Returns the expected results.
    pub(crate) fn expected(&self) -> HashMap<InstanceId, f64> {
        let plan = self.plan();
        let results = plan.instances.iter().enumerate().filter(|(_, instance)| instance.stage == 2);
        let runs = self.sets.iter().flat_map(|set| (0..self.tiles.len()).map(move |tile| (tile, set)));
        let expected = |(tile, set): (usize, &[i64; 4])| {
            let painted = set[..2].iter().fold(shade(tile as u64, 5), |x, add| shade(x, *add as u64));
            shade(shade(painted + LAMP, set[2] as u64), set[3] as u64) as f64
        };
        results.zip(runs.map(expected)).map(|((id, _), x)| (InstanceId(id as u32), x)).collect()
    }

    pub(crate) fn plan(&self) -> ExecutionPlan {
        let stages = vec![
            stage(&["toy.shade"], &[InputOrigin::Input(0)]),
            stage(
                &["toy.first", "toy.shade", "toy.blend"],
                &[InputOrigin::Stage { stage: 0, output: 0 }, InputOrigin::Input(1)],
            ),
            stage(&["toy.measure"], &[InputOrigin::Stage { stage: 1, output: 0 }]),
        ];
        let mut plan = ExecutionPlan { stages, sharing: self.sharing, ..ExecutionPlan::default() };
        let prepared: Vec<InstanceId> =
            (0..self.tiles.len()).map(|tile| add(&mut plan, 0, &[5], &[tile_key(tile)], None)).collect();
        let mut painted = vec![Vec::new(); self.tiles.len()];
        for set in &self.sets {
            for (tile, prepared) in prepared.iter().enumerate() {
                painted[tile].push(add(
                    &mut plan,
                    1,
                    &set[..3],
                    &[output_key(*prepared), lamp_key(tile)],
                    Some(*prepared),
                ));
            }
        }
        let mut measured = vec![Vec::new(); self.tiles.len()];
        for (number, set) in self.sets.iter().enumerate() {
            for (tile, painted) in painted.iter().enumerate() {
                let read = painted[number];
                measured[tile].push(add(&mut plan, 2, &set[3..], &[output_key(read)], Some(read)));
            }
        }
        for (stages, size) in
            [(prepared.iter().map(|id| vec![*id]).collect(), 1), (painted, self.bucket), (measured, 1)]
        {
            for (tile, ids) in stages.iter().enumerate() {
                let bucket = |ids: &[InstanceId]| BucketPlan {
                    instances: ids.to_vec(),
                    pixels: self.tiles[tile].into(),
                };
                plan.buckets.extend(ids.chunks(size).map(bucket));
            }
        }
        plan.needs = rehearse(&plan, |stage, pixels| self.bytes(stage, pixels))
            .expect("a plan that keeps the rules")
            .needs;
        plan
    }
}

/// Returns a stage of consecutive operations, each with its own parameter. The last operation also reads the stage's second
/// input.
fn stage(operations: &[&str], origins: &[InputOrigin]) -> Stage {
    let element = if operations == ["toy.measure"] { ElementType::Table } else { ElementType::Gray8 };
    let region = |name: String, element| RegionDecl { region: name, element };
    let task = |(number, operation): (usize, &&str)| {
        let first = match number {
            0 => TaskInput::StageInput(0),
            _ => TaskInput::Task { task: number - 1, output: 0 },
        };
        let second = (1..origins.len()).map(TaskInput::StageInput).filter(|_| number + 1 == operations.len());
        Task {
            name: format!("{operation}{number}"),
            description: String::new(),
            operation: (*operation).to_owned(),
            version: 1,
            arguments: vec![number],
            reads: std::iter::once(first).chain(second).collect(),
            writes: vec![region(format!("{operation}{number}"), element)],
            guard: None,
        }
    };
    let input = |(number, &origin): (usize, &InputOrigin)| {
        StageInput::new(region(format!("x{number}"), ElementType::Gray8), origin)
    };
    Stage {
        name: operations[0].to_owned(),
        description: String::new(),
        inputs: origins.iter().enumerate().map(input).collect(),
        outputs: vec![StageOutput::new(region("y".to_owned(), element), operations.len() - 1, 0)],
        parameters: (0..operations.len()).collect(),
        tasks: operations.iter().enumerate().map(task).collect(),
        switch: None,
    }
}

fn add(
    plan: &mut ExecutionPlan,
    stage: usize,
    values: &[i64],
    inputs: &[RegionKey],
    parent: Option<InstanceId>,
) -> InstanceId {
    let id = InstanceId(plan.instances.len() as u32);
    plan.instances.push(InstancePlan {
        stage,
        parameters: values.iter().map(|n| Value::Integer(*n)).collect(),
        inputs: inputs.to_vec(),
        outputs: vec![OutputPlan { key: output_key(id), stored: stage < 2, reported: stage == 2 }],
        parents: parent.into_iter().collect(),
    });
    id
}

fn tile_key(tile: usize) -> RegionKey {
    RegionKey([255, tile as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

fn lamp_key(tile: usize) -> RegionKey {
    RegionKey([254, tile as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

fn output_key(id: InstanceId) -> RegionKey {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&id.0.to_le_bytes());
    RegionKey(key)
}
