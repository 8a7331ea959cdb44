//! Declared memory of each operation against its metered allocations, on tissue: memory planning relies on the
//! declarations. OpenCV's own scratch is not metered: a few rows.

use pleach_pages::{RecyclingAllocator, metered};
use pleach_pathology::{registry, tissue};
use pleach_regions::DataRegion;
use pleach_workflow::Value;

#[global_allocator]
static ALLOCATOR: RecyclingAllocator = RecyclingAllocator;

/// Operation, default arguments, regions read and written.
type Step = (&'static str, &'static [f64], &'static [&'static str], &'static [&'static str]);

const CHAIN: [Step; 27] = [
    ("nuclei.normalize", &[], &["tile"], &["normalized"]),
    ("nuclei.background", &[220.0, 220.0, 220.0, 5.0, 4.0], &["normalized"], &["rbc", "background"]),
    ("nuclei.reconstruct", &[8.0], &["normalized"], &["rc", "recon"]),
    ("nuclei.candidates", &[80.0, 4.0], &["rc", "recon"], &["diff", "bw1"]),
    ("nuclei.candidate-area", &[11.0, 1000.0], &["bw1"], &["bw1_t"]),
    ("nuclei.nuclei", &[45.0], &["diff", "bw1_t", "rbc", "background"], &["seg_open"]),
    ("nuclei.separate", &[30.0, 8.0], &["seg_open", "normalized"], &["seg_nonoverlap"]),
    ("nuclei.final-area", &[21.0, 1000.0, 4.0], &["seg_nonoverlap"], &["mask"]),
    ("compare.masks", &[], &["mask", "bw1"], &[]),
    ("levelset.hematoxylin", &[], &["tile", "normalized"], &["hematoxylin", "tissue"]),
    ("levelset.threshold", &[1.0], &["hematoxylin", "tissue"], &["candidates"]),
    // Few steps: memory does not depend on their number. l6 always takes 50, with the same memory.
    ("levelset.contour", &[0.8, 5.0], &["hematoxylin", "candidates"], &["contoured"]),
    ("levelset.min-size", &[3.0, 0.25], &["contoured"], &["sized"]),
    ("levelset.declump", &[1.0, 200.0, 20.0, 0.25], &["sized", "normalized"], &["declumped"]),
    ("features.channels", &[], &["tile"], &["channels"]),
    ("features.gradient", &[], &["channels"], &["gradient"]),
    ("features.sobel", &[], &["channels"], &["sobel"]),
    ("features.canny", &[], &["channels"], &["edges"]),
    ("features.labels", &[], &["mask"], &["labels"]),
    ("features.shape", &[], &["labels"], &["shapes"]),
    ("features.outlines", &[], &["labels"], &["outlines"]),
    ("features.rings", &[], &["labels"], &["rings"]),
    ("features.nucleus-statistics", &[], &["labels", "channels", "gradient", "sobel", "edges"], &["nucleus"]),
    ("features.ring-statistics", &[], &["rings", "channels", "gradient", "sobel", "edges"], &["ring"]),
    ("features.texture", &[32.0], &["labels", "channels"], &["texture"]),
    ("features.collect", &[], &["shapes", "nucleus", "ring", "texture"], &["nuclei"]),
    ("features.summary", &[], &["nuclei"], &[]),
];

/// Side of the tile, pixels.
const SIDE_PX: u32 = 2048;

/// Allowance beyond the declaration: names and numbers of a table, the list of outputs.
const SMALL_BYTES: f64 = 4096.0;

#[test]
fn operations_need_what_they_declare() {
    let registry = registry();
    let mut regions = vec![("tile", DataRegion::Bgr8(tissue::generate(1, 0, SIDE_PX).unwrap().image))];
    let mut wrong = Vec::new();
    for (name, numbers, reads, writes) in CHAIN {
        let operation = registry.get(name, 1).unwrap();
        let typed = operation.arguments().iter().zip(numbers);
        let arguments: Vec<Value> = typed
            .map(|(argument, number)| Value::from_f64(*number, argument.accepts.value_type()).unwrap())
            .collect();
        let find = |region: &&str| &regions.iter().find(|(name, _)| name == region).unwrap().1;
        let inputs: Vec<&DataRegion> = reads.iter().map(find).collect();
        // The first run allocates fresh blocks, the second recycled ones.
        let (outputs, peak) = metered(|| operation.run(&inputs, &arguments).unwrap());
        let (again, recycled) = metered(|| operation.run(&inputs, &arguments).unwrap());
        assert!(again == outputs, "{name}: a second run gives something else");
        assert!(recycled.abs_diff(peak) < 4096, "{name}: {peak} bytes, recycled {recycled}");

        let pixels = u64::from(SIDE_PX) * u64::from(SIDE_PX);
        let (declared, peak) = (operation.memory_bytes(pixels) as f64, peak as f64);
        let a_pixel = |bytes: f64| bytes / pixels as f64;
        println!("{name}: bytes a pixel {:.2} metered, {:.2} declared", a_pixel(peak), a_pixel(declared));
        if declared < 0.9 * peak - SMALL_BYTES || declared > 1.25 * peak + SMALL_BYTES {
            wrong.push(name);
        }
        regions.extend(writes.iter().copied().zip(outputs));
    }
    assert!(wrong.is_empty(), "declarations beyond 0.9 to 1.25 of what is metered: {wrong:?}");
}
