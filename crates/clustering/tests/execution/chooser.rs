//! Choice by simulation and by rule, its regret, and the sensitivity table.

use super::support::{candidates, fair, five, hc, hrb, posterior, prior, vc, workers, workflow};
use crate::data::data;
use pleach_clustering::choose::{Candidate, Grid, HorizontalMethod, LevelSummary, advise, rank, sensitivity};
use pleach_clustering::simulate::{Overheads, Platform, gain};
use pleach_clustering::{Clustering, DataFile, ReadOptions, Task, Vertical, Workflow, read};

/// Metrics of each level without distances, which these traces do not need: their run times vary.
fn levels(workflow: &Workflow) -> Vec<LevelSummary> {
    let summary = |level: &Vec<u32>| {
        let tasks = || level.iter().map(|task| &workflow.tasks()[*task as usize]);
        let count = level.len() as f64;
        let mean_seconds = tasks().map(|task| task.seconds).sum::<f64>() / count;
        let squares: f64 = tasks().map(|task| (task.seconds - mean_seconds).powi(2)).sum();
        let inputs = tasks().flat_map(|task| &task.reads);
        let bytes: u64 = inputs.map(|file| workflow.files()[*file as usize].bytes).sum();
        LevelSummary {
            tasks: level.len(),
            hrv: if level.len() > 1 { (squares / (count - 1.0)).sqrt() / mean_seconds } else { 0.0 },
            hdv: 0.0,
            mean_seconds,
            mean_bytes: bytes as f64 / count,
        }
    };
    workflow.levels().iter().map(summary).collect()
}

#[test]
fn the_choice_by_simulation_has_no_regret_and_the_rule_little() {
    let Some(workflows) = five("the_choice_by_simulation_has_no_regret_and_the_rule_little") else { return };
    let platform = Platform::default();
    for workflow in workflows {
        let ranking = rank(&workflow, &candidates(&workflow, 20), &platform, 0);
        let best = ranking.best().unwrap();
        assert_eq!(ranking.regret(&best.method, &best.vertical), Some(0.0));
        for score in &ranking.scores {
            assert!(ranking.regret(&score.method, &score.vertical).unwrap() >= 0.0);
            assert_eq!(score.half_width.is_some(), score.method == "hc");
        }
        let joined = vc(&workflow);
        let chains = joined.jobs().iter().filter(|job| job.len() > 1).count();
        let clustered = joined.workflow(&workflow).unwrap();
        let advice = advise(chains, &levels(&clustered), &platform, true);
        let vertical = if advice.vertical == Vertical::Prior { "prior" } else { "none" };
        let regret = ranking.regret(advice.method.name(), vertical).unwrap_or(f64::NAN);
        println!(
            "{}: best {}/{} {:.3}; rule {}/{vertical}, regret {regret:.3}: {}",
            workflow.name(),
            best.method,
            best.vertical,
            ranking.gain(best),
            advice.method.name(),
            advice.reason,
        );
        assert!(regret <= 0.03, "{}: {regret}", workflow.name());
    }
}

/// Mosaics of few seconds a task: their levels pay more delays than they have work.
#[test]
fn the_rule_joins_levels_of_little_work() {
    let Some(data) = data("the_rule_joins_levels_of_little_work") else { return };
    let platform = Platform::default();
    for (file, least) in
        [("montage-chameleon-2mass-005d-001.json", 0.37), ("montage-chameleon-2mass-015d-001.json.gz", 0.13)]
    {
        let options = ReadOptions { assume_zero: true, ..ReadOptions::default() };
        let workflow = read(&data.join("workflows/wfformat").join(file), options).unwrap();
        let chains = vc(&workflow);
        let summaries = levels(&chains.workflow(&workflow).unwrap());
        let advice = advise(1, &summaries, &platform, true);
        assert_eq!((advice.method, advice.vertical), (HorizontalMethod::Dfjs, Vertical::Posterior));
        let limited = |workflow: &Workflow| fair(workflow, advice.max_seconds.unwrap(), u64::MAX);
        let joined = gain(&workflow, &posterior(&workflow, limited), &platform, 0).gain();
        let balanced = gain(&workflow, &prior(&workflow, |workflow| hrb(workflow, 20)), &platform, 0).gain();
        println!("{file}: {joined:.3} instead of {balanced:.3}: {}", advice.reason);
        assert!(joined > balanced + least, "{file}: {joined}, {balanced}");
    }
}

#[test]
fn scores_are_gains_of_simulations() {
    let bag = workflow(&[("run", 10.0); 40], &[]);
    let clustering = hrb(&bag, 4);
    let platform = Platform::default().with_workers(workers(4));
    let ranking = rank(&bag, &[Candidate::new("hrb", "none", clustering.clone())], &platform, 0);
    let expected = gain(&bag, &clustering, &platform, 0);
    assert_eq!(ranking.baseline, expected.baseline);
    assert_eq!(ranking.gain(&ranking.scores[0]), expected.gain());
    // 10 tasks behind each other: 700 s without clustering, 60 + 1 + 100 s with it.
    assert_eq!((expected.baseline, expected.makespan), (700.0, 161.0));
}

/// 39 short tasks and a long one.
fn uneven() -> Workflow {
    let mut tasks = vec![("short", 1.0); 40];
    tasks[0].1 = 100.0;
    workflow(&tasks, &[])
}

fn three(workflow: &Workflow, platform: &Platform) -> Vec<Candidate> {
    let count = platform.workers().get();
    vec![
        Candidate::new("none", "none", Clustering::single(workflow)),
        Candidate::new("hc", "none", hc(workflow, count, 0)),
        Candidate::new("hrb", "none", hrb(workflow, count)),
    ]
}

#[test]
fn the_choice_turns_with_overheads_and_workers() {
    let workflow = uneven();
    let platform = Platform::default();
    let platform =
        platform.with_overheads(Overheads { queue: Overheads::NONE.queue, ..platform.overheads() });
    let grid = Grid {
        workers: vec![workers(4), workers(40)],
        queue_seconds: vec![0.0, 2.0, 60.0],
        ..Grid::default()
    };
    let rows = sensitivity(&workflow, &platform.unwrap(), &grid, 0, three).unwrap();
    let choices: Vec<_> = rows
        .iter()
        .map(|row| (row.platform.workers().get(), row.ranking.best().unwrap().method.as_str()))
        .collect();
    // Without a queue nothing is saved. With more workers than tasks nothing is joined, and the first of equals is chosen.
    assert_eq!(choices[0], (4, "none"));
    assert_ne!(choices[2], (4, "none"));
    assert_eq!(choices[3..], [(40, "none"); 3]);
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row.data_factor == 1.0 && row.ranking.scores.len() == 3));
}

#[test]
fn the_choice_turns_with_data_and_bandwidth() {
    // Four groups of ten tasks read a file of their group. Tasks of the first group are longer.
    let files = (0..4).map(|file| DataFile { name: file.to_string(), bytes: 1_000_000 }).collect();
    let task = |number: u32| Task {
        id: number.to_string(),
        kind: "run".into(),
        seconds: if number < 10 { 10.0 } else { 1.0 },
        reads: vec![number / 10],
        writes: vec![],
    };
    let groups = Workflow::new("groups", (0..40).map(task).collect(), files, &[]).unwrap();
    let platform = Platform::default().with_workers(workers(4));
    let grid =
        Grid { data_factors: vec![1.0, 1000.0], bytes_per_second: vec![15e6, 15e9], ..Grid::default() };
    let rows = sensitivity(&groups, &platform, &grid, 0, three).unwrap();
    let choices: Vec<_> = rows.iter().map(|row| row.ranking.best().unwrap().method.as_str()).collect();
    // HRB spreads each group over the workers, so that each of them fetches all files: 67 s each in the third row.
    assert_eq!(choices, ["hrb", "hrb", "hc", "hrb"]);
}

#[test]
fn a_grid_has_all_combinations_and_refuses_impossible_ones() {
    let workflow = uneven();
    let grid = Grid {
        data_factors: vec![1.0, 100.0],
        workers: vec![workers(5), workers(25)],
        bytes_per_second: vec![1e6, 15e6, 1e9],
        queue_seconds: vec![],
    };
    let mut calls = 0;
    let rows = sensitivity(&workflow, &Platform::default(), &grid, 0, |workflow, platform| {
        calls += 1;
        three(workflow, platform)
    });
    assert_eq!((rows.unwrap().len(), calls), (12, 12));
    let wrong = Grid { bytes_per_second: vec![0.0], ..Grid::default() };
    assert!(sensitivity(&workflow, &Platform::default(), &wrong, 0, three).is_err());
    let wrong = Grid { queue_seconds: vec![f64::NAN], ..Grid::default() };
    assert!(sensitivity(&workflow, &Platform::default(), &wrong, 0, three).is_err());
}
