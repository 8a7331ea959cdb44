//! State directory across starts, with corrupt files and with removed studies.

use super::*;
use pleach_api::schema::StudyState;
use pleach_api::submission::fixture::submission;
use time::OffsetDateTime;

fn kept(name: &str) -> StoredSubmission {
    StoredSubmission {
        submission: submission(name, Vec::new()),
        key: None,
        submitted: OffsetDateTime::UNIX_EPOCH,
        user: None,
    }
}

fn ended(state: StudyState) -> StudyEnd {
    StudyEnd {
        state,
        message: None,
        evaluations_done: 12,
        tasks_executed: 84,
        failed: 1,
        ended: None,
        results: None,
    }
}

/// Returns a state directory with studies 1 to `count`.
fn with_studies(folder: &Path, count: u32) -> StateDir {
    let state = StateDir::open(folder).unwrap();
    (1..=count).for_each(|id| state.store(id, &kept(&format!("study {id}"))).unwrap());
    state
}

fn ids(state: &StateDir) -> Vec<u32> {
    state.studies().unwrap().iter().map(|study| study.id).collect()
}

#[test]
fn state_directory_is_locked_by_one_manager() {
    let folder = tempfile::tempdir().unwrap();
    let first = StateDir::open(folder.path()).unwrap();
    let Err(error @ StateError::Locked(_)) = StateDir::open(folder.path()) else { panic!("two managers") };
    assert!(error.to_string().contains("locked by another manager"), "{error}");
    let number = first.number();
    assert_eq!(first.starts(), 1);
    drop(first);
    let again = StateDir::open(folder.path()).unwrap();
    assert_eq!((again.number(), again.starts()), (number, 2));
    assert!(again.studies().unwrap().is_empty());
}

#[test]
fn identity_that_is_corrupt_is_refused_with_its_file_and_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    drop(StateDir::open(folder.path()).unwrap());
    let file = folder.path().join(IDENTITY);
    let sound = fs::read(&file).unwrap();
    let last = format!(r#"{{"number":1,"starts":{}}}"#, u32::MAX);
    let wrong = [&sound[..sound.len() / 2], b"", b"{", b"[]", last.as_bytes()];
    for bytes in wrong {
        fs::write(&file, bytes).unwrap();
        let error = StateDir::open(folder.path()).unwrap_err();
        let is_last = matches!(error, StateError::LastStart(_));
        assert!(is_last == (bytes == last.as_bytes()), "{error:?}");
        assert!(is_last || matches!(error, StateError::CorruptIdentity { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("manager.json: ") && text.contains("restore it from a backup"), "{text}");
        assert_eq!(fs::read(&file).unwrap(), bytes, "it is left as it is");
    }
    // The format of an earlier version, without a checksum.
    fs::write(&file, r#"{"number":7,"starts":3}"#).unwrap();
    let state = StateDir::open(folder.path()).unwrap();
    assert_eq!((state.number(), state.starts()), (7, 4));
}

#[test]
fn corrupt_submission_is_set_aside_and_its_id_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    drop(with_studies(folder.path(), 3));
    fs::write(folder.path().join("studies/3/submission.json"), "{").unwrap();
    fs::write(folder.path().join("studies/notes.txt"), "").unwrap();
    fs::create_dir(folder.path().join("studies/01")).unwrap();
    let state = StateDir::open(folder.path()).unwrap();
    assert_eq!(ids(&state), [1, 2]);
    let aside = state.set_aside_of(3).unwrap();
    assert_eq!(aside.path, folder.path().join("quarantine/study-3"));
    assert!(aside.reason.contains("studies/3/submission.json: corrupt: EOF"), "{aside:?}");
    assert_eq!(fs::read(aside.path.join("submission.json")).unwrap(), b"{");
    assert!(!state.knows_all(|id| id < 3), "inputs of a study in quarantine are needed");
    drop(state);
    let state = StateDir::open(folder.path()).unwrap();
    assert_eq!((ids(&state), state.last_study()), (vec![1, 2], 3));
    fs::remove_dir_all(folder.path().join("quarantine")).unwrap();
    assert!(state.knows_all(|id| id < 3) && !state.knows_all(|id| id < 2));
}

#[test]
fn record_of_an_end_that_is_corrupt_is_restored_from_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let state = with_studies(folder.path(), 3);
    let run = r#"{"evaluations": 12, "tasks_executed": 84, "failed": 1, "study": "of which more is said"}"#;
    for id in 1..=3 {
        fs::create_dir_all(state.results(id)).unwrap();
        state.end(id, &ended(StudyState::Complete)).unwrap();
        fs::write(state.study(id).join(record::ENDED), r#"{"state":"running"}"#).unwrap();
    }
    fs::write(state.results(1).join("run.json"), run).unwrap();
    fs::write(state.results(2).join("run.json"), run).unwrap();
    fs::write(state.results(2).join("journal"), "").unwrap();
    let studies = state.studies().unwrap();
    let found: Vec<(StudyState, u64)> = studies
        .iter()
        .map(|study| study.ended.as_ref().unwrap())
        .map(|ended| (ended.state, ended.evaluations_done))
        .collect();
    let canceled = (StudyState::Canceled, 0);
    assert_eq!(found, [(StudyState::Complete, 12), canceled, canceled]);
    let first = studies[0].ended.as_ref().unwrap();
    assert!(first.message.as_ref().unwrap().contains("ended.json was restored"), "{first:?}");
    let names: Vec<&String> = first.results.as_ref().unwrap().keys().collect();
    assert_eq!(names, ["run.json"]);
    assert_eq!(quarantine::list(folder.path()).unwrap().len(), 3);
    // A second read finds the restored records and sets nothing more aside.
    let again = state.studies().unwrap();
    assert_eq!(again[0].ended, studies[0].ended);
    assert_eq!(quarantine::list(folder.path()).unwrap().len(), 3);
    // Missing records: study 1 was killed after its results were written, study 2 before, because its journal still
    // exists.
    (1..=3).for_each(|id| fs::remove_file(state.study(id).join(record::ENDED)).unwrap());
    let found: Vec<Option<StudyState>> =
        state.studies().unwrap().iter().map(|study| Some(study.ended.as_ref()?.state)).collect();
    assert_eq!(found, [Some(StudyState::Complete), None, None]);
}

#[test]
fn removed_study_is_deleted_at_the_latest_at_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let state = with_studies(folder.path(), 2);
    state.remove(2).unwrap();
    // A process killed here leaves the study in the folder of removed studies.
    assert!(folder.path().join("removed/2/submission.json").exists());
    assert_eq!(ids(&state), [1]);
    drop(state);
    let state = StateDir::open(folder.path()).unwrap();
    assert_eq!(fs::read_dir(folder.path().join(REMOVED)).unwrap().count(), 0);
    assert_eq!((ids(&state), state.last_study()), (vec![1], 2));
    state.remove(2).unwrap();
}

#[test]
fn results_without_a_submission_are_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let state = with_studies(folder.path(), 2);
    fs::create_dir_all(state.results(1)).unwrap();
    [1, 2].iter().for_each(|id| fs::remove_file(state.study(*id).join(record::SUBMISSION)).unwrap());
    assert!(ids(&state).is_empty());
    assert!(state.set_aside_of(1).unwrap().reason.contains("missing, although"));
    assert!(state.set_aside_of(2).is_none() && state.study(2).exists(), "it was being submitted");
}
