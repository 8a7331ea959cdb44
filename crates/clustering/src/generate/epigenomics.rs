//! Epigenomics: lanes of a sequencer, each cut into equal numbers of chains of four tasks, mapped and merged.

use super::builder::Builder;
use super::draw::Quantiles;
use super::fit;

/// One lane with one chain.
pub(super) const MIN_TASKS: usize = 8;

/// Size of the reference genome: the mean over the traces, of 1.2 to 5.3 GB. Run times of mapping and of the pileup grow with it.
const GENOME_BYTES: u64 = 3_824_572_577;

/// The same in GB.
const GENOME_GB: f64 = GENOME_BYTES as f64 / 1e9;

/// Quantiles of the size in bytes of a part of a lane, over all traces.
const PART_BYTES: Quantiles = [0.0732e6, 2.55e6, 7.92e6, 11.2e6, 14.2e6, 23.8e6, 80.6e6, 98.6e6];

/// Builds a workflow of this many tasks, or of the nearest possible number.
pub(super) fn build(builder: &mut Builder, tasks: usize) {
    let (lanes, chains) = counts(tasks);
    let genome = builder.file("chr21.BS.bfa", GENOME_BYTES);
    let mut merges = Vec::with_capacity(lanes);
    let mut maps = Vec::with_capacity(lanes);
    for lane in 0..lanes {
        let (task, map) = merged_lane(builder, lane, chains, genome);
        merges.push(task);
        maps.push(map);
    }
    let (last, map) = if lanes == 1 {
        (merges[0], maps[0])
    } else {
        let bytes = maps.iter().map(|map| builder.bytes(*map)).sum();
        let map = builder.file("chr21.nocontam.map", bytes);
        let time = (&fit::MAP_MERGE, (lanes * chains) as f64);
        (builder.task("mapMerge_chr21", time, maps, vec![map], &merges), map)
    };
    let bytes = builder.bytes(map);
    let index = builder.file("chr21.nocontam.chr.map", bytes / 56);
    let task = builder.task("maqindex_chr21", (&fit::MAQINDEX, 1.0), vec![map], vec![index], &[last]);
    let genome = builder.file("chr21.BSnull.bfa", GENOME_BYTES);
    let pileup = builder.random_file("chr21.nocontam.chr.pileup", 3_000_000, 9_500_000);
    builder.task("pileup_chr21", (&fit::PILEUP, GENOME_GB), vec![genome, index], vec![pileup], &[task]);
}

/// Adds the tasks of a lane. Returns its merge and the file that this writes.
fn merged_lane(builder: &mut Builder, lane: usize, chains: usize, genome: u32) -> (u32, u32) {
    let parts: Vec<u32> = (0..chains)
        .map(|chain| {
            let bytes = builder.draw.quantile(&PART_BYTES) as u64;
            builder.file(format!("chr21.{lane}.{chain}.sfq"), bytes)
        })
        .collect();
    let bytes = parts.iter().map(|part| builder.bytes(*part)).sum();
    let whole = builder.file(format!("chr21{lane}.sfq"), bytes);
    let time = (&fit::FASTQ_SPLIT, 1.0);
    let split = builder.task("fastqSplit_chr21", time, vec![whole], parts.clone(), &[]);
    let mut tasks = Vec::with_capacity(chains);
    let mut maps = Vec::with_capacity(chains);
    for (chain, part) in parts.into_iter().enumerate() {
        let (task, map) = mapped_chain(builder, &format!("chr21.{lane}.{chain}"), part, split, genome);
        tasks.push(task);
        maps.push(map);
    }
    let bytes = maps.iter().map(|map| builder.bytes(*map)).sum();
    let merged = builder.file(format!("chr21_{lane}.nocontam.map"), bytes);
    let time = (&fit::MAP_MERGE, chains as f64);
    (builder.task("mapMerge_chr21", time, maps, vec![merged], &tasks), merged)
}

/// Adds the tasks of a chain. Returns the last one and the file that it writes.
fn mapped_chain(builder: &mut Builder, name: &str, part: u32, split: u32, genome: u32) -> (u32, u32) {
    // Sizes of a chain in the traces: 0.5, 0.8, 0.24 and 1.09 times that of the file before.
    let bytes = builder.bytes(part);
    let clean = builder.file(format!("{name}.nocontam.sfq"), bytes / 2);
    let dirty = builder.file(format!("{name}.contam.sfq"), bytes - bytes / 2);
    let sanger = builder.file(format!("{name}.nocontam.fq"), bytes / 2 * 80 / 100);
    let binary = builder.file(format!("{name}.nocontam.bfq"), bytes / 2 * 19 / 100);
    let map = builder.file(format!("{name}.nocontam.map"), bytes / 2 * 21 / 100);
    let time = (&fit::FILTER_CONTAMS, 1.0);
    let task = builder.task("filterContams_chr21", time, vec![part], vec![clean, dirty], &[split]);
    let task = builder.task("sol2sanger_chr21", (&fit::SOL2SANGER, 1.0), vec![clean], vec![sanger], &[task]);
    let task = builder.task("fastq2bfq_chr21", (&fit::FASTQ2BFQ, 1.0), vec![sanger], vec![binary], &[task]);
    (builder.task("map_chr21", (&fit::MAP, GENOME_GB), vec![genome, binary], vec![map], &[task]), map)
}

/// Returns the numbers of lanes and of chains in each. Lanes grow with the square root of tasks: 3 of 165 tasks in table 5, 7 of 997
/// tasks in a trace. Of half to twice as many, those are taken that are nearest to `tasks`.
fn counts(tasks: usize) -> (usize, usize) {
    let wanted = ((tasks as f64).sqrt() / 4.3).round().max(1.0) as usize;
    let graphs = (wanted.div_ceil(2)..=2 * wanted).map(|lanes| {
        let single = if lanes == 1 { 4 } else { 2 * lanes + 3 };
        let chains = ((tasks.saturating_sub(single) + 2 * lanes) / (4 * lanes)).max(1);
        (lanes, chains, (single + 4 * lanes * chains).abs_diff(tasks))
    });
    let nearest = graphs.min_by_key(|(lanes, _, off)| (*off, lanes.abs_diff(wanted)));
    nearest.map_or((1, 1), |(lanes, chains, _)| (lanes, chains))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_table_5_and_the_traces() {
        assert_eq!([8, 24, 100, 165, 997].map(counts), [(1, 1), (1, 5), (1, 24), (3, 13), (7, 35)]);
    }
}
