//! CyberShake: seismograms of ruptures, their peaks, and an archive of each.

use super::builder::Builder;
use super::fit;

/// One extraction with one seismogram.
pub(super) const MIN_TASKS: usize = 5;

/// Number of extractions of a large workflow, in the traces of 500 and 1,000 tasks and in table 5.
const EXTRACTIONS: usize = 4;

/// Workflows of fewer tasks have half as many extractions.
const SMALL: usize = 60;

/// Builds a workflow of this many tasks, or of 5 for 6.
pub(super) fn build(builder: &mut Builder, tasks: usize) {
    let (extractions, seismograms) = counts(tasks);
    let mut peaks = Parents::default();
    let mut waves = Parents::default();
    // The traces cut their ruptures into parts that differ by 10 %.
    let sizes = builder.draw.parts(seismograms, extractions, |draw| 0.9 + 0.2 * draw.unit());
    for (site, size) in sizes.into_iter().enumerate() {
        let extracted = extract(builder, site);
        for number in 0..size {
            let name = format!("FFI_{site}_{number}");
            let rupture = builder.random_file(format!("{name}_txt.variation"), 1_980_000, 5_590_000);
            let wave = builder.file(format!("Seismogram_{name}.grm"), 24_000);
            let reads = vec![rupture, extracted.files[0], extracted.files[1]];
            let time = (&fit::SEISMOGRAM_SYNTHESIS, 1.0);
            let task = builder.task("SeismogramSynthesis", time, reads, vec![wave], &[extracted.task]);
            waves.add(task, wave);
            let peak = builder.file(format!("PeakVals_{name}.bsa"), 216);
            let time = (&fit::PEAK_VAL_CALC_OKAYA, 1.0);
            let task = builder.task("PeakValCalcOkaya", time, vec![wave], vec![peak], &[task]);
            peaks.add(task, peak);
        }
    }
    let scale = seismograms as f64;
    let archive = builder.file("Cybershake_Seismograms.zip", 4_000 * seismograms as u64);
    builder.task("ZipSeis", (&fit::ZIP_SEIS, scale), waves.files, vec![archive], &waves.tasks);
    let archive = builder.file("Cybershake_PSA.zip", 21 * seismograms as u64);
    builder.task("ZipPSA", (&fit::ZIP_PSA, scale), peaks.files, vec![archive], &peaks.tasks);
}

/// Tasks and the file of each.
#[derive(Default)]
struct Parents {
    tasks: Vec<u32>,
    files: Vec<u32>,
}

impl Parents {
    fn add(&mut self, task: u32, file: u32) {
        self.tasks.push(task);
        self.files.push(file);
    }
}

/// The strain tensors of a rupture in two directions.
struct Extracted {
    task: u32,
    files: [u32; 2],
}

fn extract(builder: &mut Builder, site: usize) -> Extracted {
    let whole = builder.draw.between(19_467_000_000, 20_503_000_000);
    let part = builder.draw.between(130_000_000, 343_000_000);
    let reads = vec![
        builder.file(format!("FFI_{site}_fx.sgt"), whole),
        builder.file(format!("FFI_{site}_fy.sgt"), whole),
        builder.random_file(format!("FFI_{site}_txt.variation"), 1_980_000, 5_590_000),
    ];
    let files = [
        builder.file(format!("FFI_{site}_subfx.sgt"), part),
        builder.file(format!("FFI_{site}_subfy.sgt"), part),
    ];
    let time = (&fit::EXTRACT_SGT, 1.0);
    Extracted { task: builder.task("ExtractSGT", time, reads, files.to_vec(), &[]), files }
}

/// Returns the numbers of extractions and of seismograms, at least one of each extraction.
fn counts(tasks: usize) -> (usize, usize) {
    let most = if tasks < SMALL { EXTRACTIONS / 2 } else { EXTRACTIONS };
    // Each seismogram is two tasks: the parity is that of the extractions.
    let extractions = if (tasks - most).is_multiple_of(2) { most } else { most - 1 };
    let extractions = extractions.min((tasks - 2) / 3);
    (extractions, (tasks - extractions - 2) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_table_5_and_the_traces() {
        assert_eq!([30, 500, 700, 1000].map(counts), [(2, 13), (4, 247), (4, 347), (4, 497)]);
        assert_eq!([5, 6, 7, 8].map(counts), [(1, 1), (1, 1), (1, 2), (2, 2)]);
    }
}
