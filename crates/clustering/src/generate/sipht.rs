//! SIPHT: one search for each replicon, with scores of patterns beside it. Searches share programs and databases only.

use super::builder::Builder;
use super::draw::Quantiles;
use super::fit;

/// One replicon with one pattern.
pub(super) const MIN_TASKS: usize = REPLICON + 1;

/// Tasks of a replicon beside those of its patterns.
const REPLICON: usize = 13;

/// Tasks for each replicon in the traces, rounded up: 1,000 tasks of table 5 have 32 replicons, 100 have 3.
const TASKS_PER_REPLICON: usize = 31;

/// Databases of partners that each search reads, in the traces 850 to 910.
const PARTNERS: usize = 880;

/// The transfer of results, a task of 0 s: table 5 has its level, and the numbers in the names of the traces count it.
const LAST_TRANSFER: Quantiles = [0.0; 8];

/// Builds a workflow of this many tasks.
pub(super) fn build(builder: &mut Builder, tasks: usize) {
    let (replicons, patterns) = counts(tasks);
    let shared = Shared::new(builder);
    // Traces have 17 to 23 patterns for each replicon.
    let sizes = builder.draw.parts(patterns, replicons, |draw| 0.85 + 0.3 * draw.unit());
    for (replicon, size) in sizes.into_iter().enumerate() {
        let name = format!("NC_{replicon}");
        let genome = builder.random_file(format!("{name}.fna"), 4_430_000, 6_890_000);
        let scores = patser(builder, &shared, &name, genome, size);
        let search = Search::new(builder, &shared, &name, genome);
        annotate(builder, &shared, &name, &search, scores);
    }
}

/// Files that all replicons read.
struct Shared {
    blast: Vec<u32>,
    partners: Vec<u32>,
    pattern: Vec<u32>,
    folding: u32,
    motifs: u32,
    terminators: u32,
    known: Vec<u32>,
    settings: u32,
    scores: Vec<u32>,
    flanks: u32,
    sequences: u32,
    matrix: u32,
}

impl Shared {
    fn new(builder: &mut Builder) -> Self {
        let partner = |number| (format!("NC_partner_{number}.txt"), 145_000, 432_000);
        let partners = (0..PARTNERS).map(partner).collect::<Vec<_>>();
        let mut files = |list: &[(&str, u64)]| -> Vec<u32> {
            list.iter().map(|(name, bytes)| builder.file(*name, *bytes)).collect()
        };
        Self {
            blast: files(&[("blasta", 786_856), ("xdformat", 380_164), ("time", 11_944)]),
            pattern: files(&[("patser.in", 14), ("alphabet", 16)]),
            folding: files(&[("RNAfold", 591_942)])[0],
            motifs: files(&[("RNAMofficial_descriptor.txt", 17_626)])[0],
            terminators: files(&[("expterm.dat", 45_788)])[0],
            known: files(&[("access_genomes2.txt", 83_722), ("All_known_sRNAs.txt", 1_028_403)]),
            settings: files(&[("sRNAPredict.in", 1_198)])[0],
            scores: files(&[("RIBOPROB.mat", 8_350), ("BLOSUM62", 2_122), ("eqrna", 953_556)]),
            flanks: files(&[("Flanking_ORFs_known.txt", 1_419_426)])[0],
            sequences: files(&[("Seq_known_sRNAs_IGRs.txt", 172_432)])[0],
            matrix: files(&[("access_matrix.txt", 170_917)])[0],
            partners: partners
                .into_iter()
                .map(|(name, low, high)| builder.random_file(name, low, high))
                .collect(),
        }
    }
}

/// Tasks and the files that they write.
#[derive(Default)]
struct Outputs {
    tasks: Vec<u32>,
    files: Vec<u32>,
}

/// A task of a search: its kind, distribution, further inputs and outputs with the range of their sizes.
type Step<'a> = (&'a str, &'a Quantiles, Vec<u32>, &'a [(&'a str, u64, u64)]);

impl Outputs {
    /// Adds a task and the files that it writes, each with the name of the replicon before its own.
    fn add(&mut self, builder: &mut Builder, name: &str, step: Step<'_>, parents: &[u32]) {
        let (kind, time, reads, writes) = step;
        let file =
            |(own, low, high): &(&str, u64, u64)| builder.random_file(format!("{name}_{own}"), *low, *high);
        let writes: Vec<u32> = writes.iter().map(file).collect();
        self.files.extend(&writes);
        self.tasks.push(builder.task(kind, (time, 1.0), reads, writes, parents));
    }
}

/// Adds the scores of patterns, and their concatenation, which is returned.
fn patser(builder: &mut Builder, shared: &Shared, name: &str, genome: u32, patterns: usize) -> Outputs {
    let mut scores = Outputs::default();
    for pattern in 0..patterns {
        let matrix = builder.file(format!("{name}_{pattern}_matrix.txt"), 170_917);
        let reads = vec![shared.pattern[0], shared.pattern[1], genome, matrix];
        let output = format!("PatserOut{pattern}.txt");
        let step = ("Patser", &fit::PATSER, reads, &[(output.as_str(), 46_100, 137_300)][..]);
        scores.add(builder, name, step, &[]);
    }
    let bytes: u64 = scores.files.iter().map(|file| builder.bytes(*file)).sum();
    let mut joined = Outputs::default();
    let step = ("Patser_concate", &fit::PATSER_CONCATE, scores.files, &[("PatserOut.txt", bytes, bytes)][..]);
    joined.add(builder, name, step, &scores.tasks);
    joined
}

/// The prediction of a replicon.
struct Search {
    table: u32,
    prediction: Outputs,
}

impl Search {
    /// Adds four searches and the prediction that joins them.
    fn new(builder: &mut Builder, shared: &Shared, name: &str, genome: u32) -> Self {
        let table = builder.random_file(format!("{name}.ptt"), 312_000, 341_000);
        let partners = builder.random_file(format!("{name}_IGR_partners.txt"), 163_000, 427_000);
        let mut found = Outputs::default();
        let terms = &[
            ("term.txt", 11_000_000, 24_600_000),
            ("term_candidates", 193_000, 512_000),
            ("vienna_input", 3_836_000, 4_880_000),
            ("vienna_output", 4_300_000, 10_300_000),
            ("vienna_index", 4_320_000, 7_130_000),
        ];
        let step = ("Findterm", &fit::FINDTERM, vec![genome, shared.folding], &terms[..]);
        found.add(builder, name, step, &[]);
        let motifs = &[("rnamotif.out", 922_000, 1_158_000)][..];
        found.add(builder, name, ("RNAMotif", &fit::RNAMOTIF, vec![genome, shared.motifs], motifs), &[]);
        let reads = vec![genome, shared.terminators, table];
        let terms = &[("transterm.out", 423_000, 480_000)][..];
        found.add(builder, name, ("Transterm", &fit::TRANSTERM, reads, terms), &[]);
        let reads = shared.blast.iter().chain(&shared.partners).copied().chain([partners]).collect();
        let sorted = &[("BLAST_sorted.out", 3_160_000, 7_765_000)][..];
        found.add(builder, name, ("Blast", &fit::BLAST, reads, sorted), &[]);

        let bank = builder.random_file(format!("{name}.gbk"), 10_260_000, 15_300_000);
        let own = [shared.settings, bank, genome, table];
        let reads = own.into_iter().chain(shared.known.iter().copied()).chain(found.files).collect();
        let outputs = &[
            ("Seq", 78_000, 86_000),
            ("srna.out", 303_000, 351_000),
            ("Blast_Out", 1_251_000, 3_714_000),
            ("OutBlastParsed", 755_000, 1_478_000),
            ("OutCandidates", 191_000, 328_000),
            ("OutConsIG", 319_000, 603_000),
            ("OutIG", 592_000, 618_000),
            ("OutORF", 282_000, 380_000),
            ("OutTerms", 39_000, 66_000),
        ];
        let mut prediction = Outputs::default();
        prediction.add(builder, name, ("SRNA", &fit::SRNA, reads, &outputs[..]), &found.tasks);
        Self { table, prediction }
    }
}

/// Adds five comparisons of the prediction, the annotation and the transfer of its results.
fn annotate(builder: &mut Builder, shared: &Shared, name: &str, search: &Search, scores: Outputs) {
    let (prediction, sequence) = (&search.prediction.tasks, search.prediction.files[0]);
    let genes = builder.random_file(format!("{name}.ffn"), 3_745_000, 4_952_000);
    let mut parsed = Outputs::default();
    let writes = &[("parsed.ffn", 585_000, 1_017_000)][..];
    let reads = vec![genes, search.table, sequence];
    parsed.add(builder, name, ("FFN_Parse", &fit::FFN_PARSE, reads, writes), prediction);

    let blast = |more: &[u32]| shared.blast.iter().chain(more).copied().collect::<Vec<u32>>();
    let mut compared = scores;
    let reads = blast(&[shared.sequences, sequence]);
    let writes = &[("blast_candidate.out", 2_700, 3_160), ("BLAST", 11_400, 13_000)][..];
    compared.add(builder, name, ("Blast_candidate", &fit::BLAST_CANDIDATE, reads, writes), prediction);
    let reads = blast(&[&shared.scores[..], &shared.partners, &[sequence]].concat());
    let writes = &[("QRNA.gff", 163_000, 183_000), ("QRNAblast.txt", 1_777_000, 3_997_000)][..];
    compared.add(builder, name, ("Blast_QRNA", &fit::BLAST_QRNA, reads, writes), prediction);
    let reads = blast(&[shared.flanks, sequence, parsed.files[0]]);
    let writes = &[("synteny.txt", 611_000, 1_709_000)][..];
    let parents = [prediction[0], parsed.tasks[0]];
    compared.add(builder, name, ("Blast_synteny", &fit::BLAST_SYNTENY, reads, writes), &parents);
    let writes = &[("paralogues.txt", 365_000, 986_000)][..];
    let step = ("Blast_paralogues", &fit::BLAST_PARALOGUES, blast(&[sequence]), writes);
    compared.add(builder, name, step, prediction);

    let own = [shared.matrix, shared.settings, sequence, search.prediction.files[1]];
    let reads = own.into_iter().chain(compared.files).collect();
    let writes = &[("srna_annotate.out", 311_000, 830_000), ("Block0_Parsed.txt", 311_000, 835_000)][..];
    let parents: Vec<u32> = compared.tasks.iter().chain(prediction).copied().collect();
    let mut annotated = Outputs::default();
    annotated.add(builder, name, ("SRNA_annotate", &fit::SRNA_ANNOTATE, reads, writes), &parents);
    Outputs::default().add(
        builder,
        name,
        ("Last_transfer", &LAST_TRANSFER, annotated.files, &[]),
        &annotated.tasks,
    );
}

/// Returns the numbers of replicons and of patterns.
fn counts(tasks: usize) -> (usize, usize) {
    let replicons = (tasks / TASKS_PER_REPLICON).max(1);
    (replicons, tasks - REPLICON * replicons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_table_5_and_the_traces() {
        assert_eq!([14, 30, 100, 200, 1000].map(counts), [(1, 1), (1, 17), (3, 61), (6, 122), (32, 584)]);
    }
}
