//! Quantiles of run times in seconds of each task kind over all traces of its family, written by `fit.py`.

use super::draw::Quantiles;

/// `mProjectPP` of Montage: 236 tasks.
pub(super) const M_PROJECT_PP: Quantiles = [13.05, 13.17, 13.428, 13.585, 13.75, 13.963, 14.199, 14.23];
/// `mDiffFit` of Montage: 929 tasks.
pub(super) const M_DIFF_FIT: Quantiles = [10.3, 10.42, 10.52, 10.59, 10.65, 10.75, 10.82, 10.91];
/// `mConcatFit` of Montage, divided by its size in `fit.py`: 4 tasks.
pub(super) const M_CONCAT_FIT: Quantiles = [0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08];
/// `mBgModel` of Montage, divided by its size in `fit.py`: 4 tasks.
pub(super) const M_BG_MODEL: Quantiles = [0.284, 0.29146, 0.32131, 0.43531, 0.5627, 0.6247, 0.6371, 0.6402];
/// `mBackground` of Montage: 236 tasks.
pub(super) const M_BACKGROUND: Quantiles = [9.99, 10.45, 10.62, 10.73, 10.86, 11.002, 11.12, 11.21];
/// `mImgTbl` of Montage, divided by its size in `fit.py`: 4 tasks.
pub(super) const M_IMG_TBL: Quantiles = [0.278, 0.29462, 0.36108, 0.39291, 0.417, 0.4649, 0.47448, 0.47687];
/// `mAdd` of Montage, divided by its size in `fit.py`: 4 tasks.
pub(super) const M_ADD: Quantiles = [0.59837, 0.59855, 0.59928, 0.59979, 0.6015, 0.6051, 0.60582, 0.606];
/// `mShrink` of Montage, divided by its size in `fit.py`: 4 tasks.
pub(super) const M_SHRINK: Quantiles = [1.7262, 1.7263, 1.7268, 1.727, 1.7272, 1.7274, 1.7275, 1.7275];
/// `mJPEG` of Montage, divided by its size in `fit.py`: 4 tasks.
pub(super) const M_JPEG: Quantiles = [0.19559, 0.19644, 0.19983, 0.20437, 0.27527, 0.43791, 0.47044, 0.47857];

/// `ZipPSA` of CyberShake, divided by its size in `fit.py`: 4 tasks.
pub(super) const ZIP_PSA: Quantiles =
    [0.0053846, 0.0057103, 0.0070128, 0.0076108, 0.0089681, 0.012093, 0.012718, 0.012874];
/// `ZipSeis` of CyberShake, divided by its size in `fit.py`: 4 tasks.
pub(super) const ZIP_SEIS: Quantiles =
    [0.0051822, 0.0065972, 0.012257, 0.016197, 0.018052, 0.018709, 0.01884, 0.018873];
/// `ExtractSGT` of CyberShake: 18 tasks.
pub(super) const EXTRACT_SGT: Quantiles = [83.96, 93.004, 101.13, 120.37, 171.81, 199.74, 202.97, 203.78];
/// `SeismogramSynthesis` of CyberShake: 802 tasks.
pub(super) const SEISMOGRAM_SYNTHESIS: Quantiles =
    [21.76, 24.424, 33.733, 44.11, 54.707, 63.006, 64.749, 65.08];
/// `PeakValCalcOkaya` of CyberShake: 802 tasks.
pub(super) const PEAK_VAL_CALC_OKAYA: Quantiles = [0.55, 0.61, 0.82, 1.09, 1.36, 1.56, 1.6299, 1.63];

/// `fastqSplit_chr21` of Epigenomics: 11 tasks.
pub(super) const FASTQ_SPLIT: Quantiles = [26.02, 29.4, 39.35, 55.07, 69.295, 87.92, 100.4, 103.52];
/// `filterContams_chr21` of Epigenomics: 303 tasks.
pub(super) const FILTER_CONTAMS: Quantiles = [0.01, 0.331, 0.895, 1.36, 2.04, 4.035, 8.1272, 11.89];
/// `sol2sanger_chr21` of Epigenomics: 301 tasks.
pub(super) const SOL2SANGER: Quantiles = [0.01, 0.1, 0.26, 0.38, 0.56, 0.98, 3.06, 5.02];
/// `fastq2bfq_chr21` of Epigenomics: 301 tasks.
pub(super) const FASTQ2BFQ: Quantiles = [0.01, 0.13, 0.41, 0.61, 0.89, 1.73, 4.72, 5.91];
/// `map_chr21` of Epigenomics, divided by its size in `fit.py`: 322 tasks.
pub(super) const MAP: Quantiles = [1811.1, 1972.9, 2405.0, 2819.7, 3388.1, 4424.9, 5047.7, 5236.1];
/// `mapMerge_chr21` of Epigenomics, divided by its size in `fit.py`: 13 tasks.
pub(super) const MAP_MERGE: Quantiles = [0.27857, 0.306, 0.455, 0.52086, 0.628, 1.7719, 3.1112, 3.446];
/// `maqindex_chr21` of Epigenomics: 4 tasks.
pub(super) const MAQINDEX: Quantiles = [0.02, 0.0245, 0.0425, 0.055, 0.0975, 0.1875, 0.2055, 0.21];
/// `pileup_chr21` of Epigenomics, divided by its size in `fit.py`: 4 tasks.
pub(super) const PILEUP: Quantiles = [1100.9, 1106.3, 1127.8, 1137.2, 1148.2, 1173.6, 1178.7, 1180.0];

/// `TmpltBank` of Ligo: 436 tasks.
pub(super) const TMPLT_BANK: Quantiles = [16.95, 17.418, 17.87, 18.14, 18.43, 18.802, 19.096, 19.17];
/// `Inspiral` of Ligo: 904 tasks.
pub(super) const INSPIRAL: Quantiles = [231.01, 253.23, 345.71, 461.75, 561.86, 665.44, 684.42, 690.31];
/// `Thinca` of Ligo: 122 tasks.
pub(super) const THINCA: Quantiles = [4.61, 4.9025, 5.2, 5.34, 5.5175, 5.78, 5.9179, 5.94];
/// `TrigBank` of Ligo: 468 tasks.
pub(super) const TRIG_BANK: Quantiles = [3.91, 4.5635, 4.91, 5.145, 5.35, 5.64, 5.8633, 6.32];

/// `Patser_concate` of Sipht: 42 tasks.
pub(super) const PATSER_CONCATE: Quantiles = [0.04, 0.0405, 0.06, 0.07, 0.1, 0.11, 0.1159, 0.12];
/// `Patser` of Sipht: 784 tasks.
pub(super) const PATSER: Quantiles = [0.65, 0.78, 1.0696, 1.29, 1.48, 1.7458, 1.86, 1.89];
/// `Findterm` of Sipht: 42 tasks.
pub(super) const FINDTERM: Quantiles = [687.0, 713.09, 822.14, 1293.6, 1453.9, 1855.8, 1946.4, 1997.8];
/// `RNAMotif` of Sipht: 42 tasks.
pub(super) const RNAMOTIF: Quantiles = [19.62, 24.971, 29.76, 34.26, 39.079, 45.8, 48.993, 50.02];
/// `Transterm` of Sipht: 42 tasks.
pub(super) const TRANSTERM: Quantiles = [29.79, 36.831, 45.248, 55.778, 68.355, 79.912, 82.495, 83.2];
/// `Blast` of Sipht: 42 tasks.
pub(super) const BLAST: Quantiles = [1253.7, 1642.8, 2113.3, 2529.2, 2805.5, 3252.7, 3360.9, 3380.3];
/// `SRNA` of Sipht: 42 tasks.
pub(super) const SRNA: Quantiles = [185.14, 208.99, 288.62, 369.26, 427.1, 515.26, 520.78, 523.12];
/// `FFN_Parse` of Sipht: 42 tasks.
pub(super) const FFN_PARSE: Quantiles = [0.99, 1.3311, 1.445, 1.62, 1.74, 1.994, 2.0662, 2.1];
/// `Blast_candidate` of Sipht: 42 tasks.
pub(super) const BLAST_CANDIDATE: Quantiles = [3.09, 3.5045, 4.2534, 4.805, 5.7925, 6.396, 6.6888, 6.82];
/// `Blast_QRNA` of Sipht: 42 tasks.
pub(super) const BLAST_QRNA: Quantiles = [1213.1, 1257.8, 1355.0, 1433.2, 1470.5, 1537.2, 1582.8, 1613.2];
/// `Blast_synteny` of Sipht: 42 tasks.
pub(super) const BLAST_SYNTENY: Quantiles = [33.0, 33.0, 33.0, 33.0, 33.0, 33.0, 33.0, 33.0];
/// `Blast_paralogues` of Sipht: 42 tasks.
pub(super) const BLAST_PARALOGUES: Quantiles = [2.63, 3.4506, 3.985, 5.0497, 5.8725, 7.0761, 7.2862, 7.36];
/// `SRNA_annotate` of Sipht: 42 tasks.
pub(super) const SRNA_ANNOTATE: Quantiles = [0.86, 0.91038, 1.315, 1.655, 1.8428, 2.327, 2.4274, 2.4325];
