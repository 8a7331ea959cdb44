//! Workflows, and the clusterings that the tests compare.

use crate::data::data;
use pleach_clustering::choose::Candidate;
use pleach_clustering::{
    Clustering, Method, Options, ReadOptions, Size, Task, Vertical, Workflow, cluster, read,
};
use std::num::NonZeroUsize;
use std::path::Path;

/// The five workflows of the prototype's table.
pub(crate) fn five(test: &str) -> Option<Vec<Workflow>> {
    let folder = data(test)?.join("workflows/dax");
    let names = [
        "LIGO_800.xml.gz",
        "Montage_300.xml.gz",
        "CyberShake_500.xml.gz",
        "Genome_200.xml",
        "SIPHT_200.xml.gz",
    ];
    Some(names.iter().map(|name| trace(&folder, name)).collect())
}

/// Reads a trace. Its name is that of the file: inside, all are called `test`.
fn trace(folder: &Path, file: &str) -> Workflow {
    let name = file.split('.').next().unwrap();
    read(&folder.join(file), ReadOptions::default()).unwrap().with_name(name)
}

pub(crate) fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// A method with at most `count` jobs a level.
pub(crate) fn clustered(workflow: &Workflow, method: Method, count: usize, seed: u64) -> Clustering {
    cluster(workflow, &Options { method, size: Size::Jobs(count), seed, ..Options::default() })
}

/// HRB with at most `count` jobs a level.
pub(crate) fn hrb(workflow: &Workflow, count: usize) -> Clustering {
    clustered(workflow, Method::Hrb, count, 0)
}

/// HC with at most `count` jobs a level. Seed 0 does not shuffle: consecutive tasks of a level are a job.
pub(crate) fn hc(workflow: &Workflow, count: usize, seed: u64) -> Clustering {
    if seed == 0 {
        let jobs = |level: &Vec<u32>| -> Vec<Vec<u32>> {
            level.chunks(level.len().div_ceil(count)).map(<[u32]>::to_vec).collect()
        };
        return Clustering::new(workflow, workflow.levels().iter().flat_map(jobs).collect()).unwrap();
    }
    clustered(workflow, Method::Hc, count, seed)
}

/// SplitMix64.
pub(crate) fn word(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// AFJS, and DFJS without a limit of bytes.
pub(crate) fn fair(workflow: &Workflow, max_seconds: f64, max_bytes: u64) -> Clustering {
    let method = match max_bytes {
        u64::MAX => Method::Dfjs { max_seconds },
        _ => Method::Afjs { max_seconds, max_bytes: max_bytes as f64 },
    };
    clustered(workflow, method, 1, 0)
}

/// Bytes that a task reads and writes.
pub(crate) fn data_bytes(workflow: &Workflow, task: &Task) -> u64 {
    task.reads.iter().chain(&task.writes).map(|file| workflow.files()[*file as usize].bytes).sum()
}

/// VC alone.
pub(crate) fn vc(workflow: &Workflow) -> Clustering {
    cluster(workflow, &Options { vertical: Vertical::Only, ..Options::default() })
}

/// VC, then a method.
pub(crate) fn prior(workflow: &Workflow, method: impl Fn(&Workflow) -> Clustering) -> Clustering {
    let chains = vc(workflow);
    chains.then(&method(&chains.workflow(workflow).unwrap()))
}

/// A method, then VC on its jobs.
pub(crate) fn posterior(workflow: &Workflow, method: impl Fn(&Workflow) -> Clustering) -> Clustering {
    let jobs = method(workflow);
    jobs.then(&vc(&jobs.workflow(workflow).unwrap()))
}

/// HC with 10 seeds and HRB, with vertical modes, in as many jobs as there are workers.
pub(crate) fn candidates(workflow: &Workflow, count: usize) -> Vec<Candidate> {
    let balanced = |workflow: &Workflow| hrb(workflow, count);
    let shuffled = |workflow: &Workflow, seed| hc(workflow, count, seed);
    let seeds = 1..=10;
    let none = seeds.clone().map(|seed| shuffled(workflow, seed)).collect();
    let first = seeds.map(|seed| prior(workflow, |workflow| shuffled(workflow, seed))).collect();
    vec![
        Candidate::new("none", "none", Clustering::single(workflow)),
        Candidate { method: "hc".into(), vertical: "none".into(), clusterings: none },
        Candidate { method: "hc".into(), vertical: "prior".into(), clusterings: first },
        Candidate::new("hrb", "none", balanced(workflow)),
        Candidate::new("hrb", "prior", prior(workflow, balanced)),
        Candidate::new("hrb", "posterior", posterior(workflow, balanced)),
        Candidate::new("none", "only", vc(workflow)),
    ]
}

/// A workflow of tasks without files, with kinds and run times in seconds.
pub(crate) fn workflow(tasks: &[(&str, f64)], edges: &[(u32, u32)]) -> Workflow {
    let task = |(number, (kind, seconds)): (usize, &(&str, f64))| Task {
        id: format!("t{}", number + 1),
        kind: (*kind).into(),
        seconds: *seconds,
        reads: vec![],
        writes: vec![],
    };
    Workflow::new("test", tasks.iter().enumerate().map(task).collect(), vec![], edges).unwrap()
}
