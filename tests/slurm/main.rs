//! Studies on a real Slurm: `deploy/slurm` as its README describes it, on three nodes of a private Slurm. Jobs are drained,
//! canceled, requeued and run into their time limit, and a node fails. The responses equal those of `pleach run`, byte for
//! byte.

#[path = "../support/pleach.rs"]
mod pleach;
mod site;
mod slurm;
#[path = "../support/study.rs"]
mod study;

use site::{Site, WORKER, block, line, read};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn array_of_workers_runs_a_study_and_drains() {
    let (study, expected) = site::study(150);
    let Some(mut site) = Site::open("array_of_workers_runs_a_study_and_drains", &study) else { return };
    let manager = site.start_manager();
    // Two processors each: a node of four has room for two workers.
    let array = site.workers(&format!("--array=0-4 --cpus-per-task=2 {WORKER}"));
    let workers = site.active(5);
    assert!(workers.values().all(|cores| *cores == 2), "{workers:?}");
    let nodes: BTreeSet<&str> = workers.keys().filter_map(|name| name.split('-').next()).collect();
    assert_eq!(nodes, slurm::NODES.into());
    let names: Vec<String> = (0..5).map(|index| site.worker(&format!("{array}_{index}"))).collect();
    assert!(names.iter().all(|name| workers.contains_key(name)), "{names:?} {workers:?}");

    site.start_study();
    site.some_responses();
    site.shell(&line("Workers", "scancel --signal=TERM").replace("JOB", &format!("{array}_0")));
    site.wait_for(&manager, &format!("worker {} has left", names[0]), 1);
    site.is_still_running();
    site.client(&line("Workers", "pleach drain").replace("n017-4711", &names[1]));
    site.wait_for(&manager, &format!("worker {} has left", names[1]), 1);
    assert_eq!(site.responses(), expected);
    let (executed, lost) = site.executed();
    assert!(names.iter().all(|name| executed.contains_key(name)), "{names:?} {executed:?}");
    assert_eq!(lost, 0, "drained workers lose nothing");

    // A second signal would end a step that still removes its files.
    (0..2).for_each(|index| _ = site.slurm.ended(&format!("{array}_{index}")));
    site.slurm.ask("scancel", &["--signal=TERM", &array]);
    for index in 0..5 {
        let ended = site.slurm.ended(&format!("{array}_{index}"));
        assert_eq!(ended, "COMPLETED", "{index}: {}", site.logs());
    }
    assert!(!read(&manager).contains("is lost"), "{}", read(&manager));
    site.scratch_is_empty();
}

#[test]
fn node_failure_and_requeue_of_the_manager_cost_no_response() {
    let (study, expected) = site::study(150);
    let test = "node_failure_and_requeue_of_the_manager_cost_no_response";
    let Some(mut site) = Site::open(test, &study) else { return };
    let manager_job = site.submit(&block("The manager", "sbatch deploy"), "--cpus-per-task=1 --mem=1000M");
    let manager = site.log("manager", &manager_job);
    site.wait_for_manager(&manager, 1);
    let job = site.workers("--nodes=3 --cpus-per-task=1 --mem=1000M --time=20");
    let names = ["n0", "n1", "n2"].map(|node| format!("{node}-{job}"));
    let workers = site.active(3);
    assert!(names.iter().all(|name| workers.get(name) == Some(&1)), "{workers:?}");

    site.start_study();
    site.some_responses();
    site.all_execute(&names);
    // The script of the job runs on its first node.
    assert_eq!(site.slurm.job(&job, "BatchHost"), "n0");
    site.slurm.fail_node("n2");
    site.wait_for(&manager, &format!("worker {} is lost", names[2]), 1);
    // The end of one task does not end its step, although this Slurm has a WaitTime of 2 s.
    site.client(&line("Workers", "pleach drain").replace("n017-4711", &names[1]));
    site.wait_for(&manager, &format!("worker {} has left", names[1]), 1);
    site.is_still_running();
    site.slurm.ask("scontrol", &["requeue", &manager_job]);
    site.wait_for_manager(&manager, 2);
    assert_eq!(site.slurm.job(&manager_job, "Restarts"), "1");
    assert_eq!(site.responses(), expected);
    let (executed, _) = site.executed();
    assert!(names.iter().all(|name| executed.contains_key(name)), "{executed:?}");

    // Slurm notices the failure later than the manager, and keeps the job's last worker.
    site.slurm.wait_until(|slurm| slurm.nodes().get("n2").is_some_and(|state| state.starts_with("down")));
    site.slurm.wait_until(|slurm| slurm.job(&job, "NodeList") == "n[0-1]");
    assert_eq!(site.slurm.job(&job, "JobState"), "RUNNING");
    assert_eq!(site.active(1).into_keys().collect::<Vec<_>>(), names[..1]);
}

#[test]
fn canceled_and_requeued_workers_cost_no_response() {
    let (study, expected) = site::study(150);
    let Some(mut site) = Site::open("canceled_and_requeued_workers_cost_no_response", &study) else { return };
    let manager = site.start_manager();
    let one = format!("--cpus-per-task=1 {WORKER}");
    let (canceled, requeued) = (site.workers(&one), site.workers(&one));
    site.active(2);
    let gone = site.worker(&canceled);

    site.start_study();
    site.some_responses();
    site.shell(&line("Workers", "scancel JOB").replace("JOB", &canceled));
    assert_eq!(site.slurm.ended(&canceled), "CANCELLED");
    assert!(!site.active(1).contains_key(&gone));
    // No worker is left: the study waits for the requeued job.
    site.slurm.ask("scontrol", &["requeue", &requeued]);
    site.is_still_running();
    site.wait_for(&site.log("workers", &requeued), "connected to", 2);
    assert_eq!(site.slurm.job(&requeued, "Restarts"), "1");
    let again = site.worker(&requeued);
    site.wait_for(&manager, &format!("worker {again} joined"), 1);
    assert_eq!(site.responses(), expected);
    let (executed, _) = site.executed();
    assert!([&gone, &again].iter().all(|name| executed.contains_key(*name)), "{gone} {again} {executed:?}");
}

#[test]
fn workers_drain_before_the_time_limit_of_their_job() {
    let (study, expected) = site::study(240);
    let Some(mut site) = Site::open("workers_drain_before_the_time_limit_of_their_job", &study) else {
        return;
    };
    let manager = site.start_manager();
    // The first worker drains 15 s after its job's start, by its own clock: Slurm would send SIGTERM 35 s before the end at the
    // earliest, because it looks each 30 s.
    site.start_study();
    let limited = site.workers_with(
        "PLEACH_DRAIN_TIMEOUT=105s",
        "--array=0 --cpus-per-task=1 --nodes=1 --mem=1000M --time=2 --signal=TERM@5",
    );
    let log = site.log("workers", &limited);
    site.wait_for(&log, "the time limit is near (--until): the worker drains", 1);
    let name = site.worker(&limited);
    site.wait_for(&manager, &format!("worker {name} has left"), 1);
    assert_eq!(site.slurm.ended(&format!("{limited}_0")), "COMPLETED", "{}", read(&log));
    assert!(!read(&log).contains("stop requested"), "{}", read(&log));
    // For the rest of the study.
    site.workers(&format!("--cpus-per-task=2 {WORKER}"));
    assert_eq!(site.responses(), expected);
    let (executed, lost) = site.executed();
    assert!(executed.contains_key(&name), "{executed:?}");
    assert_eq!(lost, 0, "a drained worker loses nothing");
}

#[test]
fn manager_submits_replaces_and_ends_jobs_of_workers() {
    let (study, expected) = site::study(150);
    let test = "manager_submits_replaces_and_ends_jobs_of_workers";
    let Some(mut site) = Site::open(test, &study) else { return };
    let heading = "Workers by the manager";
    let start = line(heading, "PLEACH_MANAGER_OPTIONS");
    // The same pool with small jobs, beside the folder of the project.
    let pools = fs::read_to_string(study.path("deploy/slurm/pools.toml")).expect("a pool file");
    let small = [
        ("./driver", "./deploy/slurm/driver"),
        ("--cpus-per-task=16", "--cpus-per-task=1"),
        ("--mem=64G", "--mem=1000M"),
        ("cores = 16", "cores = 1"),
        ("startup_seconds = 120", "startup_seconds = 5"),
        ("price_per_hour = 0 ", "price_per_hour = 36\nbilling_seconds = 1 "),
        ("driver = \"command\"", "driver = \"command\"\nidle_seconds = 1"),
    ];
    let pools = small.iter().fold(pools, |pools, (old, new)| {
        assert!(pools.contains(old), "{old} in {pools}");
        pools.replace(old, new)
    });
    fs::write(study.path("pools.toml"), pools).expect("a folder");
    let manager = site.start_manager_by(&start.replace("deploy/slurm/pools.toml", "pools.toml"));
    let jobs = |site: &Site<'_>| site.slurm.ask("squeue", &["-h", "-o", "%j %i"]);
    assert_eq!(jobs(&site), "", "no study, no job");

    let submit = line(heading, "pleach submit");
    site.start_client(&format!("{}\n{submit}", line("Studies", "export")));
    site.some_responses();
    let (first, job) =
        jobs(&site).trim().split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a job");
    assert!(site.active(1).keys().eq([&first]));
    // The manager counts a worker that ends before it was seen to run as a failed start.
    site.have_joined(1);
    site.slurm.ask("scancel", &[&job]);
    site.wait_for(&manager, &format!("worker {first} has ended"), 1);
    assert_eq!(site.responses(), expected);
    let (executed, _) = site.executed();
    assert!(executed.len() == 2 && executed.contains_key(&first), "{executed:?}");
    // The last job ends with the study.
    site.slurm.wait_until(|slurm| slurm.ask("squeue", &["-h", "-o", "%i"]).is_empty());
    assert_eq!(read(&manager).matches("is being started").count(), 2, "{}", read(&manager));
    site.scratch_is_empty();
    // A job costs 0.01 for each second, from its submission to its end. The study has a deadline, which it meets.
    let cost = site.final_cost();
    let number = |key: &str| cost[key].as_f64().expect("a number");
    assert_eq!((&cost["workers_started"], &cost["workers_lost"]), (&2.into(), &1.into()), "{cost}");
    assert!(submit.contains("--deadline 90m") && number("seconds") < 5400.0, "{cost}");
    let paid = cost["pools"][0]["paid_seconds"].as_f64().expect("a number");
    assert!(paid > 0.0 && (number("cost") - 0.01 * paid).abs() < 1e-6, "{cost}");
    assert!(number("predicted_cost") > 0.0, "{cost}");
}
