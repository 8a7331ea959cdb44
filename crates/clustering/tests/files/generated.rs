//! Generated workflows.

use std::collections::{BTreeMap, BTreeSet};

use pleach_clustering::{Family, Format, GenerateError, MAX_TASKS, ReadOptions, Workflow, generate};
use proptest::prelude::*;

use crate::{ASSUME_ZERO, data, read, rows, written};

fn widths(workflow: &Workflow) -> Vec<usize> {
    workflow.levels().iter().map(Vec::len).collect()
}

/// Table 5 of paper 002, exactly.
#[test]
fn level_widths_are_those_of_table_5() {
    let cases: [(Family, usize, &[usize]); 5] = [
        (Family::CyberShake, 700, &[4, 347, 348, 1]),
        (Family::Epigenomics, 165, &[3, 39, 39, 39, 39, 3, 1, 1, 1]),
        (Family::Ligo, 800, &[191, 191, 18, 191, 191, 18]),
        (Family::Montage, 300, &[49, 196, 1, 1, 49, 1, 1, 1, 1]),
        (Family::Sipht, 1000, &[712, 64, 128, 32, 32, 32]),
    ];
    for (family, tasks, expected) in cases {
        for seed in [0, 1, u64::MAX] {
            let workflow = generate(family, tasks, seed).unwrap();
            assert_eq!(widths(&workflow), expected, "{family}");
            assert_eq!(workflow.name(), format!("{family}-{tasks}"));
        }
    }
}

/// Sizes of the traces, whose graphs the generator makes too. SIPHT has its last level more.
#[test]
fn level_widths_are_those_of_traces() {
    let cases: [(Family, usize, &[usize]); 9] = [
        (Family::CyberShake, 30, &[2, 13, 14, 1]),
        (Family::CyberShake, 1000, &[4, 497, 498, 1]),
        (Family::Epigenomics, 24, &[1, 5, 5, 5, 5, 1, 1, 1]),
        (Family::Epigenomics, 100, &[1, 24, 24, 24, 24, 1, 1, 1]),
        (Family::Epigenomics, 997, &[7, 245, 245, 245, 245, 7, 1, 1, 1]),
        (Family::Ligo, 30, &[7, 7, 1, 7, 7, 1]),
        (Family::Montage, 25, &[5, 9, 1, 1, 5, 1, 1, 1, 1]),
        (Family::Montage, 1000, &[166, 662, 1, 1, 166, 1, 1, 1, 1]),
        (Family::Sipht, 30, &[21, 2, 4, 1, 1, 1]),
    ];
    for (family, tasks, expected) in cases {
        assert_eq!(widths(&generate(family, tasks, 5).unwrap()), expected, "{family} {tasks}");
    }
}

/// Table 3: mean size of inputs and outputs, each use counted, and mean run time. The paper rounds, and its workflows are other draws:
/// 25 % each way.
#[test]
fn means_are_those_of_table_3() {
    let cases = [
        (Family::Ligo, 800, 5e6, 228.0),
        (Family::Montage, 300, 3e6, 11.0),
        (Family::CyberShake, 700, 148e6, 23.0),
        (Family::Epigenomics, 165, 355e6, 2952.0),
        (Family::Sipht, 1000, 360e3, 180.0),
    ];
    for (family, tasks, bytes, seconds) in cases {
        let workflow = generate(family, tasks, 1).unwrap();
        let uses = workflow.tasks().iter().flat_map(|task| task.reads.iter().chain(&task.writes));
        let sizes: Vec<f64> = uses.map(|file| workflow.files()[*file as usize].bytes as f64).collect();
        let mean_bytes = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let mean_seconds = workflow.total_seconds() / workflow.tasks().len() as f64;
        for (ours, published) in [(mean_bytes, bytes), (mean_seconds, seconds)] {
            assert!((ours / published - 1.0).abs() < 0.25, "{family}: {ours} against {published}");
        }
    }
}

/// The traces of each family.
const TRACES: [(Family, &[&str]); 5] = [
    (
        Family::Montage,
        &["dax/Montage_25.xml", "dax/Montage_100.xml", "dax/Montage_300.xml.gz", "dax/Montage_1000.xml.gz"],
    ),
    (
        Family::CyberShake,
        &[
            "dax/CyberShake_30.xml",
            "dax/CyberShake_100.xml",
            "dax/CyberShake_500.xml.gz",
            "dax/CyberShake_1000.xml.gz",
        ],
    ),
    (
        Family::Epigenomics,
        &[
            "dax/Epigenomics_24.xml",
            "dax/Epigenomics_100.xml",
            "dax/Epigenomics_997.xml.gz",
            "dax/Genome_200.xml",
        ],
    ),
    (
        Family::Ligo,
        &["dax/Inspiral_30.xml", "dax/Inspiral_100.xml", "dax/Inspiral_1000.xml.gz", "dax/LIGO_800.xml.gz"],
    ),
    (Family::Sipht, &["dag/Sipht_1000.dag.gz"]),
];

/// Run times of each kind, above 0. Those of mapping are for each byte of the genome, whose size the traces do not share.
fn by_kind(workflows: &[Workflow]) -> BTreeMap<String, Vec<f64>> {
    let mut kinds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for workflow in workflows {
        for task in workflow.tasks().iter().filter(|task| task.seconds > 0.0) {
            let largest = task.reads.iter().map(|file| workflow.files()[*file as usize].bytes).max();
            let scale = if task.kind == "map_chr21" { largest.unwrap() as f64 } else { 1.0 };
            kinds.entry(task.kind.clone()).or_default().push(task.seconds / scale);
        }
    }
    kinds
}

fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt())
}

/// Kinds with 20 tasks or more: mean and deviation within 15 % and 25 %, within their range.
#[test]
fn run_times_are_those_of_the_traces() {
    let Some(data) = data("run_times_are_those_of_the_traces") else { return };
    let mut compared = 0;
    for (family, traces) in TRACES {
        let traces =
            traces.iter().map(|name| pleach_clustering::read(&data.join(name), ASSUME_ZERO).unwrap());
        let traces: Vec<Workflow> = traces.collect();
        let ours = generate(family, 4000, 2).unwrap();
        let (theirs, ours) = (by_kind(&traces), by_kind(&[ours]));
        assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{family}");
        for (kind, values) in theirs.iter().filter(|(_, values)| values.len() >= 20) {
            let ((mean, deviation), (our_mean, our_deviation)) = (moments(values), moments(&ours[kind]));
            assert!((our_mean / mean - 1.0).abs() < 0.15, "{kind}: mean {our_mean} against {mean}");
            let off = (our_deviation - deviation).abs();
            assert!(off <= 0.25 * deviation, "{kind}: deviation {our_deviation} against {deviation}");
            compared += 1;
        }
    }
    assert_eq!(compared, 3 - 1 + 2 + 4 + 4 + 13 + 1);
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn equal_seeds_give_equal_workflows() {
    let text = |family, seed| written(&generate(family, 60, seed).unwrap(), Format::Dax);
    let hashes = Family::ALL.map(|family| hash(&text(family, 42)));
    let pinned = [
        18_099_297_447_677_395_619,
        3_250_325_444_097_534_552,
        7_549_064_773_376_774_732,
        1_156_028_252_260_708_741,
        1_862_865_872_428_100_358,
    ];
    assert_eq!(hashes, pinned, "a change of the generator changes every generated workflow");
    for family in Family::ALL {
        assert_eq!(text(family, 7), text(family, 7));
        assert_ne!(text(family, 7), text(family, 8));
    }
}

#[test]
fn numbers_of_tasks_are_checked() {
    for (family, min) in Family::ALL.into_iter().zip([11, 5, 8, 6, 14]) {
        assert_eq!(family.min_tasks(), min);
        assert_eq!(generate(family, min, 0).unwrap().tasks().len(), min);
        for tasks in [0, min - 1, MAX_TASKS + 1] {
            let error = generate(family, tasks, 0).unwrap_err();
            assert_eq!(error, GenerateError::Tasks { family, tasks });
            assert_eq!(
                error.to_string(),
                format!("family {family}: {tasks} tasks; {min}–1000000 tasks are allowed")
            );
        }
        assert_eq!(family.to_string().parse::<Family>().unwrap(), family);
    }
    let error = "Montage\n".parse::<Family>().unwrap_err().to_string();
    let allowed = "montage, cybershake, epigenomics, ligo and sipht are allowed";
    assert_eq!(error, format!("family \"Montage\\n\": unknown; {allowed}"));
    let error = "xml".parse::<Format>().unwrap_err().to_string();
    assert_eq!(error, "format \"xml\": unknown; dax, dag and wfformat are allowed");
}

/// Most tasks that the nearest graph can be off: Montage lacks 12, 13 and 16 tasks, CyberShake lacks 6, Epigenomics
/// has few small graphs, and LIGO even numbers only.
fn max_off(family: Family) -> usize {
    match family {
        Family::Montage | Family::CyberShake | Family::Ligo => 1,
        Family::Sipht => 0,
        Family::Epigenomics => 4,
    }
}

#[test]
fn every_number_of_tasks_has_a_near_graph() {
    for family in [Family::Montage, Family::CyberShake, Family::Epigenomics, Family::Ligo] {
        for tasks in family.min_tasks()..300 {
            let found = generate(family, tasks, 3).unwrap().tasks().len();
            assert!(found.abs_diff(tasks) <= max_off(family), "{family}: {found} for {tasks}");
        }
    }
}

/// Checks the kinds of parents of each task, and that each input with one writer comes from a parent.
fn check_structure(workflow: &Workflow) {
    let mut writer = vec![None; workflow.files().len()];
    for (number, task) in (0..).zip(workflow.tasks()) {
        for file in &task.writes {
            assert_eq!(writer[*file as usize].replace(number), None, "a file has one writer");
        }
    }
    let exits = |task: u32| workflow.children(task).is_empty();
    for (number, task) in (0..).zip(workflow.tasks()) {
        let given: BTreeSet<u32> = task.reads.iter().filter_map(|file| writer[*file as usize]).collect();
        let parents: BTreeSet<u32> = workflow.parents(number).iter().copied().collect();
        assert!(given.is_subset(&parents), "{}: reads from tasks that it does not wait for", task.id);
        assert!(parents.is_empty() || !given.is_empty(), "{}: waits without an input", task.id);
        assert!(exits(number) || !task.writes.is_empty(), "{}: has children without an output", task.id);
        assert!(task.seconds >= 0.0 && (task.seconds * 100.0 - (task.seconds * 100.0).round()).abs() < 1e-4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn generated_workflows_are_consistent(family in 0..5_usize, extra in 0..400_usize, seed in any::<u64>()) {
        let family = Family::ALL[family];
        let tasks = family.min_tasks() + extra;
        let workflow = generate(family, tasks, seed).unwrap();
        let found = workflow.tasks().len();
        prop_assert!(found.abs_diff(tasks) <= max_off(family), "{} for {}", found, tasks);
        check_structure(&workflow);
        // A constant number of dependencies a task.
        prop_assert!(workflow.edges().count() < 4 * found);
        prop_assert_eq!(workflow.levels().last().map(|level| level.iter().all(|task| workflow.children(*task).is_empty())), Some(true));
    }
}

#[test]
fn generated_workflows_survive_each_format() {
    for family in Family::ALL {
        let workflow = generate(family, 100, 11).unwrap();
        for format in Format::ALL {
            let again =
                pleach_clustering::read_bytes("x", &written(&workflow, format), ReadOptions::default())
                    .unwrap();
            assert_eq!(rows(&again), rows(&workflow), "{family} as {format}");
        }
    }
    assert_eq!(read(&written(&generate(Family::Ligo, 6, 0).unwrap(), Format::WfFormat)).name(), "ligo-6");
}

/// Groups of a large LIGO workflow differ in size, some are linked, and each has two halves (figures 11 and 14).
#[test]
fn ligo_has_uneven_groups_and_links() {
    let workflow = generate(Family::Ligo, 800, 4).unwrap();
    let sizes: Vec<usize> = workflow.levels()[2].iter().map(|task| workflow.children(*task).len()).collect();
    assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (18, 191));
    assert!(sizes.iter().max() >= Some(&20) && sizes.iter().min() <= Some(&3), "{sizes:?}");
    let linked = workflow.levels()[1].iter().filter(|task| workflow.children(**task).len() == 2).count();
    assert_eq!(linked, 1);
}

/// Edges and inputs of large workflows grow with the number of tasks.
#[test]
fn large_workflows_have_a_constant_number_of_edges_a_task() {
    for family in [Family::Montage, Family::CyberShake, Family::Epigenomics, Family::Ligo] {
        let workflow = generate(family, 20_000, 0).unwrap();
        let tasks = workflow.tasks().len();
        let uses: usize = workflow.tasks().iter().map(|task| task.reads.len() + task.writes.len()).sum();
        assert!(tasks.abs_diff(20_000) <= 4, "{family}: {tasks}");
        assert!(workflow.edges().count() < 3 * tasks && uses < 11 * tasks, "{family}");
    }
}
