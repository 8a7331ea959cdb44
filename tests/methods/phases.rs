//! Studies in phases: a screening, then a decomposition or correlations of the survivors.

use crate::interrupted::{end, start, wait_for};
use crate::pleach::{Answer, pleach};
use crate::results::{json, text};
use crate::runs::{number, responses, run};
use crate::study::Study;
use crate::tables::rows;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const METHOD: &str = "[method]\nkind = \"moat\"\ntrajectories = 2\nlevels = 20\n";
const METRIC: &str = "metric = \"dice\"";
const MOAT: &str = "kind = \"moat\"\ntrajectories = 3\n";
const VBD: &str = "kind = \"vbd\"\nsamples = 8\n";
const MOST: &str = "survivors = { most_influential = 4 }\n";
const FIRST: &str = "phase-1-moat";
const SECOND: &str = "phase-2-vbd";

/// Result files that must not depend on how a study was executed.
const FINDINGS: [&str; 5] = ["samples.csv", "responses.csv", "failed.csv", "indices.csv", "indices.json"];

/// Replaces the method by two phases.
fn in_phases(study: &Study, first: &str, second: &str) {
    study.edit(&[(METHOD, &format!("[[phase]]\n{first}[[phase]]\n{second}"))]);
}

fn names(list: &Value) -> Vec<String> {
    let name = |name: &Value| name.as_str().expect("a name").to_owned();
    list.as_array().unwrap_or_else(|| panic!("{list} is no list")).iter().map(name).collect()
}

fn findings(study: &Study, out: &str) -> Vec<String> {
    FINDINGS.iter().map(|file| text(&study.path(out).join(file))).collect()
}

/// First-order and total indices of the mean over two tiles, by the estimators of Saltelli et al. (2010).
fn sobol(study: &Study, out: &str, varied: usize) -> Vec<[f64; 2]> {
    let dice: Vec<f64> = rows(&study.path(out).join("responses.csv"))
        .iter()
        .map(|row| row["dice"].parse().expect("a number"))
        .collect();
    let means: Vec<f64> = dice.chunks(2).map(|tiles| tiles[0].midpoint(tiles[1])).collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let centered: Vec<f64> = means.iter().map(|value| value - mean).collect();
    let blocks: Vec<&[f64]> = centered.chunks(varied + 2).collect();
    let ends: Vec<f64> = blocks.iter().flat_map(|block| [block[0], block[varied + 1]]).collect();
    let middle = ends.iter().sum::<f64>() / ends.len() as f64;
    let variance = ends.iter().map(|end| (end - middle).powi(2)).sum::<f64>() / ends.len() as f64;
    let of = |parameter: usize| {
        let terms = |term: &dyn Fn(f64, f64, f64) -> f64| {
            let terms = blocks.iter().map(|block| term(block[0], block[varied + 1], block[1 + parameter]));
            terms.sum::<f64>() / blocks.len() as f64 / variance
        };
        [terms(&|a, b, mixed| b * (mixed - a)), terms(&|a, _, mixed| (a - mixed).powi(2) / 2.0)]
    };
    (0..varied).map(of).collect()
}

#[test]
fn the_second_phase_decomposes_what_survives_the_first() {
    let study = Study::of_tissue(128);
    in_phases(&study, &format!("{MOAT}{MOST}"), VBD);
    let record = run(&study, "out", &["--workers", "1"]);

    // The survivors have the largest mean effects, in the order of the parameters.
    let mut ranked: Vec<(f64, String)> = rows(&study.path("out/phase-1-moat/indices.csv"))
        .iter()
        .map(|row| (row["mu_star"].parse().expect("a number"), row["parameter"].clone()))
        .collect();
    let all: Vec<String> = ranked.iter().map(|(_, name)| name.clone()).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most: Vec<&String> = ranked.iter().take(4).map(|(_, name)| name).collect();
    let expected: Vec<String> = all.iter().filter(|name| most.contains(name)).cloned().collect();
    let written = json(&study.path("out/phase-1-moat/survivors.json"));
    assert_eq!(names(&written["survivors"]), expected);
    assert_eq!((&written["rule"], &written["response"]), (&"most_influential = 4".into(), &"dice".into()));
    assert_eq!(names(&written["fixed"]).len(), 11);

    // The record of each phase, and the totals of both.
    let phases = record["phases"].as_array().expect("phases");
    let of = |phase: usize, pointer: &str| number(&phases[phase], pointer);
    assert_eq!((phases[0]["method"].as_str(), phases[1]["method"].as_str()), (Some("moat"), Some("vbd")));
    assert_eq!(
        (names(&phases[0]["survivors"]), names(&phases[1]["parameters"])),
        (expected.clone(), expected.clone())
    );
    assert_eq!((of(0, "/evaluations"), of(1, "/evaluations")), (3 * 16, 8 * 6));
    for total in [
        "/evaluations",
        "/runs",
        "/failed",
        "/tasks_executed",
        "/tasks_reused/value",
        "/tasks_reused/earlier",
    ] {
        assert_eq!(number(&record, total), of(0, total) + of(1, total), "{total}");
    }
    assert_eq!(of(0, "/tasks_reused/earlier"), 0);
    assert!(of(1, "/tasks_reused/earlier") > 0, "{record}");

    // Each phase equals a study of that phase alone. The second phase executes fewer tasks than such a study.
    study.edit(&[(METHOD, &format!("[method]\n{MOAT}"))]);
    run(&study, "screening", &["--workers", "1"]);
    assert_eq!(findings(&study, "screening"), findings(&study, "out/phase-1-moat"));
    let defaults = &rows(&study.path("out/phase-2-vbd/samples.csv"))[0];
    let held = all.iter().filter(|name| !expected.contains(name));
    let held: String =
        held.map(|name| format!("[parameters.{name}]\nfixed = {}\n", defaults[name])).collect();
    study.edit(&[(METHOD, &format!("[method]\n{VBD}")), (METRIC, &format!("{METRIC}\n{held}"))]);
    let alone = run(&study, "alone", &["--workers", "1"]);
    assert_eq!(findings(&study, "alone"), findings(&study, "out/phase-2-vbd"));
    assert!(of(1, "/tasks_executed") < number(&alone, "/tasks_executed"), "{record} {alone}");

    let listed = rows(&study.path("out/phase-2-vbd/indices.csv"));
    for ((row, name), by_hand) in listed.iter().zip(&expected).zip(sobol(&study, "out/phase-2-vbd", 4)) {
        assert_eq!(&row["parameter"], name);
        for (index, by_hand) in ["first", "total"].into_iter().zip(by_hand) {
            let found: f64 = row[index].parse().expect("a number");
            assert!((found - by_hand).abs() < 1e-9, "{name}: {index} {found}, {by_hand} by hand");
        }
    }
    assert_eq!(listed.len(), 4);

    let page = text(&study.path("out/report.html"));
    for words in [
        "Phase 1: screening",
        "Phase 2: decomposition of the variance",
        "most_influential = 4",
        "Morris one-at-a-time",
        "Saltelli’s design for variance-based decomposition",
        "Influence of each parameter",
        "Share of the variance of each parameter",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("NaN"));
}

#[test]
fn every_survivor_rule_and_phase_count_runs() {
    let study = Study::of_tissue(96);
    let printed = |options: &[&str]| {
        let command = [&["run", "study.toml", "--out", "out"], options].concat();
        let printed = pleach(study.folder(), &command).done();
        assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
        printed
    };
    let mut chosen = Vec::new();
    for rule in ["threshold = 0.01", "cumulative_share = 0.7", "most_influential = 1, metric = \"nuclei\""] {
        let edits = format!(
            "[[phase]]\n{MOAT}survivors = {{ {rule} }}\n[[phase]]\nkind = \"correlation\"\nsamples = 20\n"
        );
        study.edit(&[(METHOD, &edits), (METRIC, "metric = [\"dice\", \"nuclei\"]")]);
        let said = printed(&[]);
        let survivors = names(&json(&study.path("out/phase-1-moat/survivors.json"))["survivors"]);
        assert!(
            said.contains("phase 1: moat, 48 evaluations") && said.contains("phase 2: correlation, 20"),
            "{said}"
        );
        assert!(
            said.contains(&format!("survivors by {}", rule.split(',').next().expect("a rule"))),
            "{said}"
        );
        let by = if rule.contains("nuclei") { "nuclei" } else { "dice" };
        let mu_stars: Vec<(f64, String)> = rows(&study.path("out/phase-1-moat/indices.csv"))
            .iter()
            .filter(|row| row["response"] == by)
            .map(|row| (row["mu_star"].parse().expect("a number"), row["parameter"].clone()))
            .collect();
        let kept = |name: &String| survivors.contains(name);
        let least =
            mu_stars.iter().filter(|(_, name)| kept(name)).map(|(mu, _)| *mu).fold(f64::INFINITY, f64::min);
        assert!(mu_stars.iter().all(|(mu, name)| kept(name) || *mu <= least), "{rule}: {survivors:?}");
        if rule.starts_with("threshold") {
            assert!(mu_stars.iter().all(|(mu, name)| kept(name) == (*mu >= 0.01)), "{survivors:?}");
        }
        // All survivors vary in the second phase, and no other parameter does.
        let samples = rows(&study.path("out/phase-2-correlation/samples.csv"));
        for (name, value) in samples[0].iter().filter(|(name, _)| *name != "evaluation") {
            assert_eq!(samples.iter().any(|row| &row[name] != value), kept(name), "{name}");
        }
        let found = (findings(&study, "out/phase-1-moat"), findings(&study, "out/phase-2-correlation"));
        for way in [&["--strategy", "none"][..], &["--reuse", "tree"], &["--cache", "kept", "--workers", "2"]]
        {
            fs::remove_dir_all(study.path("out")).expect("removed");
            printed(way);
            let again = (findings(&study, "out/phase-1-moat"), findings(&study, "out/phase-2-correlation"));
            assert_eq!(again, found, "{way:?}");
        }
        fs::remove_dir_all(study.path("out")).expect("removed");
        fs::remove_dir_all(study.path("kept")).expect("removed");
        chosen.push(survivors);
    }
    assert_eq!(chosen[2].len(), 1);
    // A third phase continues with the survivors of the second.
    let three = format!(
        "[[phase]]\n{MOAT}{MOST}[[phase]]\n{MOAT}survivors = {{ most_influential = 2 }}\n[[phase]]\n{VBD}"
    );
    study.edit(&[(METHOD, &three)]);
    let record = run(&study, "three", &[]);
    let evaluations: Vec<u64> =
        (0..3).map(|phase| number(&record, &format!("/phases/{phase}/evaluations"))).collect();
    assert_eq!(evaluations, [48, 15, 32]);
}

#[test]
fn a_study_that_is_killed_within_and_between_phases_comes_out_the_same() {
    let study = Study::of_tissue(128);
    in_phases(&study, &format!("{MOAT}{MOST}"), VBD);
    run(&study, "whole", &["--workers", "1"]);
    let parts = |out: &str| {
        let survivors = text(&study.path(out).join(FIRST).join("survivors.json"));
        (findings(&study, &format!("{out}/{FIRST}")), survivors, findings(&study, &format!("{out}/{SECOND}")))
    };
    let whole = parts("whole");
    let journals = [format!("out/{FIRST}/journal"), format!("out/{SECOND}/journal")];
    let survivors = format!("out/{FIRST}/survivors.json");
    for (file, bytes, signal) in [
        (&journals[0], 3_000, "KILL"),
        (&journals[0], 1_000, "INT"),
        (&survivors, 1, "KILL"),
        (&journals[1], 1, "KILL"),
        (&journals[1], 3_000, "INT"),
        (&journals[1], 3_000, "KILL"),
    ] {
        let mut child = start(&study, "out");
        let ended = wait_for(&study, &mut child, file, bytes);
        assert_eq!(ended, None, "it ended before {file} had {bytes} bytes");
        let (code, said) = end(child, signal);
        if signal == "INT" {
            assert_eq!(code, Some(5), "{said}");
            assert!(said.contains("journal; --resume continues the study"), "{said}");
        }
        assert!(!study.path("out/run.json").exists());
        // Without --resume the command leaves the folder unchanged.
        let refused = pleach(study.folder(), &["run", "study.toml", "--out", "out"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("holds an interrupted run of this study"), "{refused:?}");
        if bytes == 1 && file == &journals[1] {
            // The state before the second phase began.
            fs::remove_dir_all(study.path("out").join(SECOND)).expect("removed");
        }
        run(&study, "out", &["--resume", "--workers", "1"]);
        assert_eq!(parts("out"), whole, "{signal} at {bytes} bytes of {file}");
        assert!(journals.iter().all(|journal| !study.path(journal).exists()), "nothing is left to resume");
        let printed = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]).done();
        assert_eq!(printed, "nothing to resume: out contains all results of this study\n");
        fs::remove_dir_all(study.path("out")).expect("removed");
    }
}

/// A study that was killed between its phases, and the file of survivors.
fn killed_between_phases() -> (Study, PathBuf) {
    let study = Study::of_tissue(96);
    in_phases(&study, &format!("{MOAT}{MOST}"), VBD);
    let mut child = start(&study, "out");
    assert_eq!(wait_for(&study, &mut child, &format!("out/{SECOND}/journal"), 1), None, "ended too soon");
    end(child, "KILL");
    fs::remove_dir_all(study.path("out").join(SECOND)).expect("removed");
    let file = study.path("out").join(FIRST).join("survivors.json");
    (study, file)
}

#[test]
fn recorded_survivors_are_used_on_resume() {
    let (study, file) = killed_between_phases();
    let mut written = json(&file);
    written.as_object_mut().expect("fields").remove("checksum").expect("as of an earlier version");
    let mut fixed = [names(&written["survivors"]), names(&written["fixed"])].concat();
    fixed.retain(|name| name != "T1" && name != "G1");
    (written["survivors"], written["fixed"]) = (serde_json::json!(["T1", "G1"]), fixed.into());
    fs::write(&file, written.to_string()).expect("written");
    let record = run(&study, "out", &["--resume"]);
    assert_eq!(names(&record["phases"][1]["parameters"]), ["T1", "G1"]);
    assert_eq!(number(&record, "/phases/1/evaluations"), 8 * 4);
    // Survivors by another rule belong to another study.
    in_phases(&study, &format!("{MOAT}survivors = {{ most_influential = 3 }}\n"), VBD);
    fs::remove_file(study.path("out/run.json")).expect("removed");
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = "chosen by most_influential = 4 of dice, and the study says most_influential = 3 of dice";
    let is_told = |said| refused.stderr.contains(said);
    assert!(is_told(said) || is_told("has no journal to continue from"), "{refused:?}");
}

#[test]
fn survivors_that_are_corrupt_are_chosen_again_on_resume() {
    let (study, file) = killed_between_phases();
    run(&study, "whole", &[]);
    let (written, mut changed) = (text(&file), json(&file));
    let swapped = (changed["fixed"][0].take(), changed["survivors"][0].take());
    (changed["survivors"][0], changed["fixed"][0]) = swapped;
    fs::write(&file, changed.to_string()).expect("written");
    let said = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]).done();
    assert!(said.contains("survivors.json: corrupt: its checksum does not match"), "{said}");
    assert_eq!(text(&file), written);
    assert_eq!(findings(&study, &format!("out/{SECOND}")), findings(&study, &format!("whole/{SECOND}")));
}

#[test]
fn study_resumes_with_a_lower_survivor_threshold() {
    let study = Study::of_tissue(96);
    in_phases(&study, &format!("{MOAT}survivors = {{ threshold = 1e9 }}\n"), VBD);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = "study.toml: phase[1].survivors: threshold = 1000000000: no parameter has a mu* of 1000000000 or more for \
                dice; the largest is ";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert!(refused.stderr.contains("results of the phase are in out/phase-1-moat"), "{refused:?}");
    let screening = findings(&study, "out/phase-1-moat");
    assert!(!study.path("out").join(SECOND).exists() && !study.path("out/run.json").exists());
    in_phases(&study, &format!("{MOAT}survivors = {{ threshold = 0.001 }}\n"), VBD);
    run(&study, "out", &["--resume"]);
    assert_eq!(findings(&study, "out/phase-1-moat"), screening);
}

#[test]
fn runs_that_fail_are_listed_with_their_phase() {
    let study = Study::of_tissue(96);
    let whole = fs::read(study.path("tiles/tissue_01.png")).expect("a tile");
    study.write("tiles/zz.png", &whole[..whole.len() / 2]);
    in_phases(&study, &format!("{MOAT}{MOST}"), VBD);
    let answer = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    let said = "48 of 144 runs failed, listed in out/phase-1-moat/failed.csv";
    assert!(answer.stderr.contains(said), "{answer:?}");
    let record = json(&study.path("out/run.json"));
    assert_eq!(number(&record, "/failed"), 96);
    assert_eq!((number(&record, "/phases/0/failed"), number(&record, "/phases/1/failed")), (48, 48));
    for phase in [FIRST, SECOND] {
        assert_eq!(rows(&study.path("out").join(phase).join("failed.csv")).len(), 48);
        assert!(study.path("out").join(phase).join("journal").exists(), "they may be tried again");
    }
    fs::write(study.path("tiles/zz.png"), whole).expect("written");
    let again = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--resume"]);
    assert_eq!(again.code, 2, "the tile is another one: {again:?}");
}

#[test]
fn plan_lists_phases_with_known_evaluations() {
    let study = Study::of_tissue(64);
    in_phases(&study, &format!("{MOAT}{MOST}"), VBD);
    let printed = pleach(study.folder(), &["plan", "study.toml"]).done();
    for line in [
        "the plan covers phase 1; the survivors are known only after it has run",
        "phase 1: moat, 15 parameters, 48 evaluations; survivors by most_influential = 4 of dice",
        "phase 2: vbd, 4 parameters, 48 evaluations",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line}: {printed}");
    }
    in_phases(&study, &format!("{MOAT}survivors = {{ cumulative_share = 0.9 }}\n"), VBD);
    let plan = pleach(study.folder(), &["plan", "study.toml", "--json"]).done();
    let plan: Value = serde_json::from_str(&plan).expect("a JSON document");
    assert_eq!(number(&plan, "/plans/0/evaluations"), 48);
    assert_eq!(plan["parts"][1]["evaluations"], serde_json::json!({ "least": 8 * 3, "most": 8 * 17 }));
    let document = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--json"]).done();
    let document: Value = serde_json::from_str(&document).expect("a JSON document");
    assert_eq!(document, json(&study.path("out/run.json")));
}

#[test]
fn phases_that_cannot_be_are_refused() {
    let study = Study::of_tissue(64);
    let refused = |words: &str| {
        for command in [&["run", "study.toml", "--out", "out"][..], &["plan", "study.toml"]] {
            let Answer { code, stdout, stderr } = pleach(study.folder(), command);
            assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
            assert!(stderr.contains(words) && stderr.lines().count() == 1, "{stderr}, not {words}");
            assert!(!study.path("out").exists(), "nothing was begun");
        }
    };
    for (first, second, words) in [
        (
            format!("{MOAT}{MOST}"),
            "kind = \"vbd\"\nsample = 8\n",
            "study.toml: phase[2].sample: unknown; known are kind, sampler, samples, second_order, base, until",
        ),
        (
            format!("{MOAT}{MOST}size = 3\n"),
            VBD,
            "study.toml: phase[1].size: unknown; known are kind, sampler, trajectories, levels, base, candidates, until, survivors",
        ),
        (
            MOAT.to_owned(),
            VBD,
            "study.toml: phase[1].survivors: missing; a rule such as { most_influential = 8 } is needed",
        ),
        (
            format!("{MOAT}survivors = {{ }}\n"),
            VBD,
            "study.toml: phase[1].survivors: give exactly one of threshold, most_influential and cumulative_share",
        ),
        (
            format!("{MOAT}survivors = {{ threshold = 0.1, most_influential = 3 }}\n"),
            VBD,
            "study.toml: phase[1].survivors: give exactly one of",
        ),
        (
            format!("{MOAT}survivors = {{ threshold = \"0.1\" }}\n"),
            VBD,
            "study.toml: phase[1].survivors.threshold: the text \"0.1\" has the wrong type; allowed: a number",
        ),
        (
            format!("{MOAT}survivors = {{ threshold = 0 }}\n"),
            VBD,
            "study.toml: phase[1].survivors.threshold: 0 is not allowed; allowed: a number above 0",
        ),
        (
            format!("{MOAT}survivors = {{ threshold = nan }}\n"),
            VBD,
            "study.toml: phase[1].survivors.threshold: NaN is not allowed",
        ),
        (
            format!("{MOAT}survivors = {{ most_influential = 16 }}\n"),
            VBD,
            "study.toml: phase[1].survivors.most_influential: 16 is not allowed; allowed: 1 to 15",
        ),
        (
            format!("{MOAT}survivors = {{ most_influential = 0 }}\n"),
            VBD,
            "study.toml: phase[1].survivors.most_influential: 0 is not allowed; allowed: 1 to 15",
        ),
        (
            format!("{MOAT}survivors = {{ cumulative_share = 1.5 }}\n"),
            VBD,
            "study.toml: phase[1].survivors.cumulative_share: 1.5 is not allowed; allowed: a share above 0 and up to 1",
        ),
        (
            format!("{MOAT}survivors = {{ threshold = 1, by = \"dice\" }}\n"),
            VBD,
            "study.toml: phase[1].survivors.by: unknown; known are threshold, most_influential, cumulative_share, metric",
        ),
        (
            format!("{MOAT}survivors = {{ threshold = 1, metric = \"nuclei\" }}\n"),
            VBD,
            "study.toml: phase[1].survivors.metric: \"nuclei\" is not allowed; allowed: a metric of [response]: \"dice\"",
        ),
        (
            format!("{MOAT}survivors = 3\n"),
            VBD,
            "study.toml: phase[1].survivors: 3 has the wrong type; allowed: a section",
        ),
        (
            format!("{VBD}{MOST}"),
            VBD,
            "study.toml: phase[1].kind: \"vbd\" is not allowed; allowed: \"moat\" before the last phase",
        ),
        (
            format!("{MOAT}{MOST}"),
            "kind = \"table\"\nfile = \"t.csv\"\n",
            "study.toml: phase[2].kind: \"table\" is not allowed; allowed: \"moat\", \"vbd\", \"fast\" or \"correlation\" in a phase",
        ),
        (
            format!("{MOAT}{MOST}"),
            "kind = \"vbd\"\nsamples = 8\nsurvivors = { threshold = 1 }\n",
            "study.toml: phase[2].survivors: unknown; known are",
        ),
    ] {
        in_phases(&study, &first, second);
        refused(words);
    }
    study.edit(&[(METHOD, &format!("[[phase]]\n{MOAT}{MOST}"))]);
    refused(
        "study.toml: phase: 1 of them is not allowed; allowed: 2 or more; a study of one part has [method]",
    );
    study.edit(&[(METHOD, &format!("{METHOD}[[phase]]\n{MOAT}{MOST}[[phase]]\n{VBD}"))]);
    refused("study.toml: method: the study has phases as well; give [method] or [[phase]]");
    study.edit(&[(METHOD, "[phase]\nkind = \"moat\"\n")]);
    refused("study.toml: phase: a section has the wrong type; allowed: sections [[phase]]");

    in_phases(&study, &format!("{MOAT}{MOST}"), VBD);
    let little = pleach(study.folder(), &["run", "study.toml", "--out", "out", "--memory", "1kB"]);
    assert!(little.code == 2 && little.stderr.contains("or more is allowed"), "{little:?}");
    assert!(!study.path("out").exists(), "nothing was begun");
    run(&study, "whole", &[]);
    let table =
        pleach(study.folder(), &["run", "study.toml", "--parameter-sets", "whole/phase-1-moat/samples.csv"]);
    assert!(table.stderr.contains("study.toml has phases, whose parameter sets are drawn"), "{table:?}");
    let other = responses(&study, "whole/phase-1-moat");
    in_phases(&study, &format!("kind = \"moat\"\ntrajectories = 4\n{MOST}"), VBD);
    let other_study = pleach(study.folder(), &["run", "study.toml", "--out", "whole"]);
    assert!(other_study.stderr.contains("of another study"), "{other_study:?}");
    assert_eq!(responses(&study, "whole/phase-1-moat"), other);
}
