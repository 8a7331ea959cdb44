//! Burst files: a study, a base cluster, cloud pools and the scaling policies to compare.
//!
//! This module reads and validates the files. `pleach-simulation` simulates them.

mod error;
mod study;
mod values;

pub(crate) use error::BurstError;
pub(crate) use study::SimulatedStudy;

use pleach_api::submission::MAX_OVERHEAD_SECONDS;
use pleach_dispatch::cost_model::{OperationWork, speed_with_accelerators};
use pleach_dispatch::plan::ReuseScope;
use pleach_server::pools::{PoolSpec, check_new, needed_integer, sections};
use pleach_simulation::burst::{BaseCluster, Burst, CloudPool, Policy, PolicyKind};
use pleach_simulation::cluster::SharedMachine;
use pleach_workflow::toml_fields::{Document, FieldError, Section};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Upper limits of a simulation: nodes, tiles, pixels per tile, and seconds (365 days). They exceed any
/// practical case.
const MAX_NODES: u32 = 100_000;
const MAX_TILES: u32 = 1_000_000;
const MAX_PIXELS: u32 = 1 << 30;
const MAX_SECONDS: f64 = 31_536_000.0;

/// Study of a burst file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StudySpec {
    pub(crate) file: PathBuf,
    /// `run.json` of a run of the study, with measured costs.
    pub(crate) run: Option<PathBuf>,
    /// Number of tiles and pixels per tile to simulate instead of the study's own.
    pub(crate) tiles: Option<(u32, u32)>,
    /// Coefficient of variation of task durations.
    pub(crate) variation: f64,
    /// Overhead of a bucket in seconds. `None`: that of the run, if it measured one.
    pub(crate) overhead: Option<f64>,
    /// Tree, or dataflow and value: all workers share the results of equal tasks.
    pub(crate) reuse: ReuseScope,
}

/// Content of a burst file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BurstFile {
    pub(crate) study: StudySpec,
    pub(crate) burst: Burst,
    /// Accelerators of each base node, then of a worker of each pool.
    pub(crate) accelerators: (u32, Vec<u32>),
    /// Deadline, in seconds or as a multiple of the time that the base cluster alone needs.
    pub(crate) deadline: Option<Deadline>,
    pub(crate) budget: Option<f64>,
    /// Policies, including their own deadlines and budgets.
    pub(crate) policies: Vec<Policy>,
}

/// Deadline of the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deadline {
    Seconds(f64),
    OfBase(f64),
}

impl BurstFile {
    /// # Errors
    /// [`FieldError`] names the file, the field, its value and the allowed values.
    pub(crate) fn read(file: &Path) -> Result<Self, FieldError> {
        let document = Document::read(file)?;
        let root = document.root();
        let study = table(&root, "study")?;
        let needed = "a table [study] with the file of a study is needed";
        let study = read_study(&root.needed("study", study, needed)?)?;
        let base = table(&root, "base")?;
        let (base, base_accelerators) =
            read_base(&root.needed("base", base, "a table [base] with nodes and cores is needed")?)?;
        let mut names = BTreeSet::new();
        let (mut sites, mut pool_accelerators) = (Vec::new(), Vec::new());
        for section in sections(&root, "pool")? {
            let (site, accelerators) = read_site(&section)?;
            pool_accelerators.push(accelerators);
            check_new(&mut names, &section, &site.pool.name)?;
            sites.push(site);
        }
        if sites.is_empty() {
            return root.missing("pool", "at least one [[pool]] is needed");
        }
        let limits = table(&root, "burst")?;
        let (deadline, budget) = match &limits {
            Some(section) => (read_deadline(section)?, read_budget(section)?),
            None => (None, None),
        };
        let seconds = |key: &'static str, otherwise: f64, range: [f64; 2], allowed: &str| {
            let given = limits.as_ref().map(|section| section.number_in(key, range, allowed)).transpose()?;
            Ok(given.flatten().unwrap_or(otherwise))
        };
        let step = "1 to 3600 is allowed: seconds between decisions";
        let step_seconds = seconds("step_seconds", 15.0, [1.0, 3600.0], step)?;
        let seed = limits.as_ref().map(|section| section.integer("seed", 0, u32::MAX)).transpose()?;
        if let Some(section) = &limits {
            section.end()?;
        }
        let burst = Burst {
            base,
            sites,
            bucket_overhead_seconds: 0.0,
            planned_buckets: None,
            step_seconds,
            seed: seed.flatten().map_or(0, u64::from),
            limit_seconds: MAX_SECONDS,
        };
        let (mut policies, mut names) = (Vec::new(), BTreeSet::new());
        for section in sections(&root, "policy")? {
            let policy = read_policy(&section, &burst, deadline.is_some(), budget)?;
            if !names.insert(policy.name.clone()) {
                let other = "names of policies must be unique";
                return section.not_allowed("name", &format!("{:?}", policy.name), other);
            }
            policies.push(policy);
        }
        root.end()?;
        if policies.is_empty() {
            return root.missing("policy", "at least one [[policy]] is needed");
        }
        let accelerators = (base_accelerators, pool_accelerators);
        Ok(Self { study, burst, accelerators, deadline, budget, policies })
    }

    /// Makes the cores of nodes with accelerators faster, by the speed of both together on this work.
    pub(crate) fn speed_up(&mut self, work: &[OperationWork]) {
        let (base, accelerators) = (&mut self.burst.base, &self.accelerators);
        base.speed *= speed_with_accelerators(work, base.cores, accelerators.0);
        for (site, accelerators) in self.burst.sites.iter_mut().zip(&accelerators.1) {
            let factor = speed_with_accelerators(work, site.cores, *accelerators);
            site.speed *= factor;
            site.pool.slots *= factor;
        }
    }
}

/// Returns the path of a burst file's study. `None` if the file does not name one.
pub(crate) fn study_of(file: &Path) -> Option<PathBuf> {
    let document = Document::read(file).ok()?;
    let study = table(&document.root(), "study").ok()??;
    let given = study.text("file", "the path of a study file is allowed").ok()??;
    Some(study.path(given))
}

fn table<'a>(parent: &Section<'a>, key: &str) -> Result<Option<Section<'a>>, FieldError> {
    parent.section(key, &format!("a table [{key}] is allowed"))
}

fn read_study(section: &Section<'_>) -> Result<StudySpec, FieldError> {
    let given = section.needed_text("file", "the path of a study file is needed")?;
    let file = section.path(given);
    if !file.is_file() {
        let shown = format!("{:?}", given);
        return section.not_allowed("file", &shown, "file not found; the path of a study file is needed");
    }
    let run = section.text("run", "the path of the run.json of this study is allowed")?;
    if let Some(given) = run.filter(|given| !section.path(given).is_file()) {
        let shown = format!("{given:?}");
        let allowed = "file not found; the path of the run.json of this study is allowed";
        return section.not_allowed("run", &shown, allowed);
    }
    let tiles = section.integer("tiles", 1, MAX_TILES)?;
    let pixels = section.integer("tile_pixels", 1, MAX_PIXELS)?;
    let tiles = match (tiles, pixels) {
        (Some(tiles), Some(pixels)) => Some((tiles, pixels)),
        (None, None) => None,
        (Some(_), None) => return section.missing("tile_pixels", "needed if tiles is set"),
        (None, Some(_)) => return section.missing("tiles", "needed if tile_pixels is set"),
    };
    let variation = "0 to 2 is allowed: coefficient of variation of task durations";
    let variation = section.number_in("variation", [0.0, 2.0], variation)?.unwrap_or(0.0);
    let overhead = "0 to 1000000 is allowed: seconds of a bucket on its slot before its first task";
    let overhead = section.number_in("overhead", [0.0, MAX_OVERHEAD_SECONDS], overhead)?;
    let reuse = match section.text("reuse", REUSE)? {
        None | Some("dataflow") => ReuseScope::Dataflow,
        Some("tree") => ReuseScope::Tree,
        Some("value") if run.is_none() => {
            let needed = "needed with reuse = \"value\": the run.json of pleach run --reuse value, whose records have the equal results";
            return section.missing("run", needed);
        }
        Some("value") => ReuseScope::Value,
        Some(other) => return section.not_allowed("reuse", &format!("{other:?}"), REUSE),
    };
    section.end()?;
    let run = run.map(|given| section.path(given));
    Ok(StudySpec { file, run, tiles, variation, overhead, reuse })
}

const REUSE: &str = "\"tree\", \"dataflow\" or \"value\" is allowed: reuse within buckets, of equal tasks of all workers, or of equal contents";

const SPEED: &str = "0.01 to 100 is allowed: seconds of work that a core does in 1 s";

/// More than any node has.
const MAX_ACCELERATORS: u32 = 64;

/// More than any machine has.
const MAX_PROCESSORS: u32 = 4096;

/// Reads a cluster, and the accelerators of each node.
fn read_base(section: &Section<'_>) -> Result<(BaseCluster, u32), FieldError> {
    let base = BaseCluster {
        nodes: needed_integer(section, "nodes", 1, MAX_NODES)?,
        cores: needed_integer(section, "cores", 1, 1024)?,
        speed: section.number_in("speed", [0.01, 100.0], SPEED)?.unwrap_or(1.0),
        machine: read_machine(section)?,
    };
    let accelerators = section.integer("accelerators", 0, MAX_ACCELERATORS)?.unwrap_or(0);
    if let Some(machine) = base.machine.filter(|_| accelerators > 0) {
        let both = "accelerators is set as well, whose tasks take no processor; one of the two is allowed";
        return section.not_allowed("processors", &machine.processors.to_string(), both);
    }
    section.end()?;
    Ok((base, accelerators))
}

/// Reads the machine that all nodes of a cluster share. `None` without `processors`.
fn read_machine(section: &Section<'_>) -> Result<Option<SharedMachine>, FieldError> {
    let work = "0 to 1000 is allowed: milliseconds of a processor";
    let milliseconds = |key: &'static str| section.number_in(key, [0.0, 1000.0], work);
    let (task, megapixel) = (milliseconds("task_work_ms")?, milliseconds("megapixel_work_ms")?);
    let Some(processors) = section.integer("processors", 1, MAX_PROCESSORS)? else {
        for (key, value) in [("task_work_ms", task), ("megapixel_work_ms", megapixel)] {
            if let Some(value) = value {
                let alone =
                    "processors is not set; without it, each core has a processor of its own for its tasks";
                return section.not_allowed(key, &value.to_string(), alone);
            }
        }
        return Ok(None);
    };
    let measured = SharedMachine::with_processors(processors);
    Ok(Some(SharedMachine {
        task_seconds: task.map_or(measured.task_seconds, |ms| ms / 1e3),
        pixel_seconds: megapixel.map_or(measured.pixel_seconds, |ms| ms / 1e9),
        ..measured
    }))
}

/// Reads a pool, and the accelerators of each of its workers.
fn read_site(section: &Section<'_>) -> Result<(CloudPool, u32), FieldError> {
    let spec = PoolSpec::read(section)?;
    let variation = "0 to 5 is allowed: coefficient of variation of startup_seconds";
    let rate = "0 to 60 is allowed: interruptions of a worker per hour";
    let notice = "0 to 3600 is allowed: seconds from the notice to the interruption of a worker";
    let bytes = "1e3 to 1e12 is allowed, in bytes per second";
    let bandwidth = |key: &'static str| section.number_in(key, [1e3, 1e12], bytes);
    let speed = section.number_in("speed", [0.01, 100.0], SPEED)?.unwrap_or(1.0);
    let mut pool = spec.empty();
    // A slot counts the seconds of work that it does in 1 s, so a fast core counts as several.
    pool.slots *= speed;
    let site = CloudPool {
        pool,
        cores: spec.cores,
        speed,
        startup_variation: section.number_in("startup_variation", [0.0, 5.0], variation)?.unwrap_or(0.0),
        interruptions_per_hour: section
            .number_in("interruptions_per_hour", [0.0, 60.0], rate)?
            .unwrap_or(0.0),
        notice_seconds: section.number_in("notice_seconds", [0.0, 3600.0], notice)?.unwrap_or(120.0),
        wide_bytes_per_second: bandwidth("wide_bytes_per_second")?.unwrap_or(f64::INFINITY),
        store_bytes_per_second: bandwidth("store_bytes_per_second")?.unwrap_or(f64::INFINITY),
        egress_price_per_gb: spec.egress_price_per_gb,
    };
    let accelerators = section.integer("accelerators", 0, MAX_ACCELERATORS)?.unwrap_or(0);
    section.end()?;
    Ok((site, accelerators))
}

/// Allowed values of `deadline_seconds`, up to [`MAX_SECONDS`].
const DEADLINE: &str = "1 to 31536000 is allowed: seconds from the submission";

fn read_deadline(section: &Section<'_>) -> Result<Option<Deadline>, FieldError> {
    const PART: &str = "0.001 to 100 is allowed: multiple of the makespan of the base cluster alone";
    let seconds = section.number_in("deadline_seconds", [1.0, MAX_SECONDS], DEADLINE)?;
    let part = section.number_in("deadline_of_base", [0.001, 100.0], PART)?;
    match (seconds, part) {
        (Some(_), Some(part)) => {
            let both = "deadline_seconds is set as well; one of the two is allowed";
            section.not_allowed("deadline_of_base", &part.to_string(), both)
        }
        (seconds, part) => Ok(seconds.map(Deadline::Seconds).or(part.map(Deadline::OfBase))),
    }
}

fn read_budget(section: &Section<'_>) -> Result<Option<f64>, FieldError> {
    section.number_in("budget", [0.0, 1e12], "0 to 1e12 is allowed, in the currency of the prices")
}

fn read_policy(
    section: &Section<'_>,
    burst: &Burst,
    has_deadline: bool,
    budget: Option<f64>,
) -> Result<Policy, FieldError> {
    const KINDS: &str = "\"fixed\", \"deadline\", \"budget\", \"queue-length\" and \"trtma\" are allowed";
    let kind = section.needed_text("kind", KINDS)?;
    let name = section.text("name", "a text is allowed")?.unwrap_or(kind).to_owned();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_plain) {
        let allowed = "1 to 40 letters, digits and hyphens are allowed, for the names of figures";
        return section.not_allowed("name", &format!("{name:?}"), allowed);
    }
    let own = section.number_in("deadline_seconds", [1.0, MAX_SECONDS], DEADLINE)?;
    let own_budget = read_budget(section)?;
    let needs_deadline = || -> Result<(), FieldError> {
        if own.is_some() || has_deadline {
            return Ok(());
        }
        section.missing("deadline_seconds", "a policy of this kind needs a deadline, here or in [burst]")
    };
    let rule = match kind {
        "fixed" => PolicyKind::Fixed(fixed(section, burst)?),
        "deadline" => {
            needs_deadline()?;
            PolicyKind::Deadline
        }
        "trtma" => {
            needs_deadline()?;
            PolicyKind::Trtma
        }
        "budget" => {
            if own_budget.or(budget).is_none() {
                let needed = "a policy of this kind needs a budget, here or in [burst]";
                return section.missing("budget", needed);
            }
            PolicyKind::Budget
        }
        "queue-length" => {
            let allowed = "0.1 to 1000 is allowed: waiting buckets per slot";
            PolicyKind::QueueLength(
                section.number_in("buckets_a_slot", [0.1, 1000.0], allowed)?.unwrap_or(1.0),
            )
        }
        other => return section.not_allowed("kind", &format!("{other:?}"), KINDS),
    };
    section.end()?;
    // The budget of [burst] does not apply to policies with fixed workers or by queue length: they cannot
    // react to it.
    let keeps = matches!(rule, PolicyKind::Deadline | PolicyKind::Budget | PolicyKind::Trtma);
    let budget = own_budget.or(budget.filter(|_| keeps));
    Ok(Policy { name, rule, deadline_seconds: own, budget })
}

/// Reads the number of workers of each pool. Pools that the table does not name have their minimum.
fn fixed(section: &Section<'_>, burst: &Burst) -> Result<Vec<u32>, FieldError> {
    let least = || burst.sites.iter().map(|site| site.pool.min).collect();
    let Some(table) = table(section, "workers")? else { return Ok(least()) };
    let mut workers: Vec<u32> = least();
    for (site, workers) in burst.sites.iter().zip(&mut workers) {
        let given = table.integer(&site.pool.name, site.pool.min, site.pool.max)?;
        *workers = given.unwrap_or(*workers);
    }
    table.allow(&burst.sites.iter().map(|site| &site.pool.name).collect::<Vec<_>>())?;
    Ok(workers)
}
