//! Traces of the test data.

use pleach_clustering::{Format, ReadOptions, ReadProblem, Workflow, read};

use crate::{ASSUME_ZERO, data, rows, written};

/// File, tasks, dependencies, level widths and seconds, counted by an independent script.
#[rustfmt::skip]
const TRACES: [(&str, usize, usize, &[usize], f64); 30] = [
    ("dax/CyberShake_100.xml", 100, 180, &[8, 45, 46, 1], 3215.75),
    ("dax/CyberShake_1000.xml.gz", 1000, 1988, &[4, 497, 498, 1], 22751.94),
    ("dax/CyberShake_30.xml", 30, 52, &[2, 13, 14, 1], 760.53),
    ("dax/CyberShake_500.xml.gz", 500, 988, &[4, 247, 248, 1], 11886.20),
    ("dax/Epigenomics_100.xml", 100, 122, &[1, 24, 24, 24, 24, 1, 1, 1], 403_400.20),
    ("dax/Epigenomics_24.xml", 24, 27, &[1, 5, 5, 5, 5, 1, 1, 1], 17720.15),
    ("dax/Epigenomics_997.xml.gz", 997, 1234, &[7, 245, 245, 245, 245, 7, 1, 1, 1], 3_854_790.77),
    ("dax/Genome_200.xml", 199, 244, &[2, 48, 48, 48, 48, 2, 1, 1, 1], 481_663.55),
    ("dax/Inspiral_100.xml", 100, 119, &[23, 23, 3, 24, 24, 3], 21023.96),
    ("dax/Inspiral_1000.xml.gz", 1000, 1233, &[229, 229, 20, 251, 251, 20], 227_702.63),
    ("dax/Inspiral_30.xml", 30, 35, &[7, 7, 1, 7, 7, 1], 6617.07),
    ("dax/LIGO_800.xml.gz", 800, 936, &[177, 177, 37, 186, 186, 37], 169_032.68),
    ("dax/Montage_100.xml", 100, 233, &[16, 62, 1, 1, 16, 1, 1, 1, 1], 1079.34),
    ("dax/Montage_1000.xml.gz", 1000, 2485, &[166, 662, 1, 1, 166, 1, 1, 1, 1], 11378.69),
    ("dax/Montage_25.xml", 25, 45, &[5, 9, 1, 1, 5, 1, 1, 1, 1], 227.75),
    ("dax/Montage_300.xml.gz", 300, 732, &[49, 196, 1, 1, 49, 1, 1, 1, 1], 3377.76),
    ("dax/SIPHT_200.xml.gz", 194, 218, &[146, 12, 24, 6, 6], 32157.43),
    ("dax/Sipht_100.xml.gz", 97, 109, &[73, 6, 12, 3, 3], 17379.73),
    ("dax/Sipht_30.xml.gz", 29, 33, &[21, 2, 4, 1, 1], 5546.46),
    ("dag/Montage_25.dag", 25, 45, &[5, 9, 1, 1, 5, 1, 1, 1, 1], 227.75),
    ("dag/Sipht_1000.dag.gz", 968, 1096, &[712, 64, 128, 32, 32], 181_419.15),
    ("wfformat/1000genome-chameleon-2ch-100k-001.json", 52, 76, &[22, 2, 28], 2771.295),
    ("wfformat/epigenomics-chameleon-hep-1seq-100k-001.json", 41, 48, &[1, 9, 9, 9, 9, 1, 1, 1, 1], 539.307),
    ("wfformat/epigenomics-chameleon-ilmn-1seq-100k-001.json.gz", 125, 153, &[1, 30, 30, 30, 30, 1, 1, 1, 1], 2578.345),
    ("wfformat/montage-chameleon-2mass-005d-001.json", 58, 114, &[12, 18, 3, 3, 12, 3, 3, 4], 221.726),
    ("wfformat/montage-chameleon-2mass-015d-001.json.gz", 310, 798, &[48, 198, 3, 3, 48, 3, 3, 4], 854.867),
    ("wfformat/montage-chameleon-dss-05d-001.json", 58, 114, &[12, 18, 3, 3, 12, 3, 3, 4], 5585.811),
    ("wfformat/seismology-chameleon-100p-001.json.gz", 101, 100, &[100, 1], 71.893),
    ("wfformat/soykb-chameleon-10fastq-10ch-001.json.gz", 96, 194, &[5, 5, 5, 5, 5, 5, 50, 11, 1, 2, 2], 11814.517),
    ("wfformat/srasearch-chameleon-10a-001.json", 22, 30, &[11, 10, 1], 6996.779),
];

#[test]
fn traces_have_the_documented_numbers() {
    let Some(data) = data("traces_have_the_documented_numbers") else { return };
    for (name, tasks, edges, widths, seconds) in TRACES {
        // Only Epigenomics_997 has negative run times and sizes.
        let options = if name.contains("997") { ASSUME_ZERO } else { ReadOptions::default() };
        let workflow = read(&data.join(name), options).unwrap();
        assert_eq!((workflow.tasks().len(), workflow.edges().count()), (tasks, edges), "{name}");
        assert_eq!(workflow.levels().iter().map(Vec::len).collect::<Vec<_>>(), widths, "{name}");
        assert!((workflow.total_seconds() - seconds).abs() < 0.006, "{name}: {}", workflow.total_seconds());
        for format in Format::ALL {
            survives(&workflow, format, name);
        }
    }
    let folders = ["dax", "dag", "wfformat"].map(|folder| std::fs::read_dir(data.join(folder)).unwrap());
    assert_eq!(folders.into_iter().flatten().count(), TRACES.len(), "each file is in the list");
}

/// Writes and reads a trace. Names of SIPHT have brackets, which WfFormat escapes.
fn survives(workflow: &Workflow, format: Format, name: &str) {
    assert_eq!(rows(&crate::read(&written(workflow, format))), rows(workflow), "{name} as {format}");
}

#[test]
fn montage_25_is_one_workflow_in_both_formats() {
    let Some(data) = data("montage_25_is_one_workflow_in_both_formats") else { return };
    let dax = read(&data.join("dax/Montage_25.xml"), ReadOptions::default()).unwrap();
    let dag = read(&data.join("dag/Montage_25.dag"), ReadOptions::default()).unwrap();
    // Sizes included: those that the DAX file gives last.
    assert_eq!(rows(&dax), rows(&dag));
    assert_eq!((dax.name(), dag.name()), ("test", "Montage_25"));
}

#[test]
fn negative_run_times_need_an_option() {
    let Some(data) = data("negative_run_times_need_an_option") else { return };
    let path = data.join("dax/Epigenomics_997.xml.gz");
    let error = read(&path, ReadOptions::default()).unwrap_err();
    assert!(matches!(error.problem(), ReadProblem::Value { .. }));
    let text = error.to_string();
    assert!(
        text.starts_with(&format!(
            "{}:{}: file \"chr21.0.21.sfq\": size \"-6585019\"; ",
            path.display(),
            error.line().unwrap()
        )),
        "{text}"
    );
}

#[test]
fn kinds_of_traces_are_program_names() {
    let Some(data) = data("kinds_of_traces_are_program_names") else { return };
    let kinds = |name: &str| {
        let workflow = read(&data.join(name), ReadOptions::default()).unwrap();
        let kinds = workflow.tasks().iter().map(|task| task.kind.clone());
        kinds.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(kinds("dax/Inspiral_30.xml"), ["Inspiral", "Thinca", "TmpltBank", "TrigBank"]);
    assert_eq!(
        kinds("wfformat/srasearch-chameleon-10a-001.json"),
        ["bowtie2", "bowtie2-build", "fasterq-dump", "merge"]
    );
}
