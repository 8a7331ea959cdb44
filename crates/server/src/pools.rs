//! Reader for files that describe worker pools. The manager derives the desired workers of each pool from them, and
//! simulated bursts also use their prices and start-up times.

mod driver;

pub use driver::{DriverKind, DriverSettings};

use pleach_dispatch::scaling::WorkerPool;
use pleach_workflow::toml_fields::{Document, FieldError, Section};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of workers of a pool, more than any cluster has.
const MAX_WORKERS: u32 = 100_000;

/// Maximum number of cores of a worker, as in `pleach worker`.
const MAX_CORES: u32 = 1024;

/// 7 days: a worker that starts more slowly is useless, and no cloud has a longer billing period.
const MAX_SECONDS: f64 = 604_800.0;

/// Maximum price per hour. A higher price is a mistake.
const DEAREST: f64 = 1e6;

/// Description of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSpec {
    /// Name: 1 to 40 ASCII letters, digits and hyphens, unique within its file.
    pub name: String,
    /// Slots of a worker.
    pub cores: u32,
    pub(crate) price_per_hour: f64,
    pub(crate) billing_seconds: f64,
    /// Average time from the request for a worker to its first task.
    pub(crate) startup_seconds: f64,
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// Price of 10^9 bytes that leave the pool.
    pub egress_price_per_gb: f64,
}

/// Pool of a manager.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedPool {
    /// Its description.
    pub spec: PoolSpec,
    /// Prefix of its workers' names.
    pub prefix: String,
    /// Driver that starts and ends its workers. `None` if an autoscaler does.
    pub driver: Option<DriverSettings>,
}

/// Pools of a manager.
#[derive(Clone, Debug, PartialEq)]
pub struct Pools(pub Vec<ManagedPool>);

impl PoolSpec {
    /// Reads the fields that all pools have.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that is wrong or missing.
    pub fn read(section: &Section<'_>) -> Result<Self, FieldError> {
        const NAME: &str = "letters, digits and hyphens are allowed";
        let name = section.needed_text("name", NAME)?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if name.is_empty() || name.len() > 40 || !name.chars().all(is_plain) {
            return section.not_allowed("name", &format!("{name:?}"), NAME);
        }
        let cores = needed_integer(section, "cores", 1, MAX_CORES)?;
        let number = |key: &str, range: [f64; 2], allowed: &str| {
            section.needed(key, section.number_in(key, range, allowed)?, allowed)
        };
        let price = "0 or more per worker and hour is allowed";
        let price_per_hour = number("price_per_hour", [0.0, DEAREST], price)?;
        let billing = "0 to 604800 is allowed: each started interval of this many seconds is billed";
        let billing_seconds = section.number_in("billing_seconds", [0.0, MAX_SECONDS], billing)?;
        let startup = "0 to 604800 is allowed: the seconds from the request of a worker to its first task";
        let startup_seconds = number("startup_seconds", [0.0, MAX_SECONDS], startup)?;
        let egress = "0 to 1e6 is allowed: price of 10^9 bytes that leave the pool";
        let egress_price_per_gb = section.number_in("egress_price_per_gb", [0.0, DEAREST], egress)?;
        let max = needed_integer(section, "max", 1, MAX_WORKERS)?;
        let min = section.integer("min", 0, max)?.unwrap_or(0);
        Ok(Self {
            name: name.to_owned(),
            cores,
            price_per_hour,
            billing_seconds: billing_seconds.unwrap_or(1.0),
            startup_seconds,
            min,
            max,
            egress_price_per_gb: egress_price_per_gb.unwrap_or(0.0),
        })
    }

    /// Returns the pool without workers.
    pub fn empty(&self) -> WorkerPool {
        WorkerPool {
            name: self.name.clone(),
            slots: f64::from(self.cores),
            price_per_hour: self.price_per_hour,
            billing_seconds: self.billing_seconds,
            startup_seconds: self.startup_seconds,
            min: self.min,
            max: self.max,
            running: 0,
            starting: 0,
            starting_seconds: 0.0,
            ending_seconds: 0.0,
        }
    }
}

/// Checks that no other pool has this name, and adds it to `names`.
///
/// # Errors
/// [`FieldError`] for the second pool of a name.
pub fn check_new(names: &mut BTreeSet<String>, section: &Section<'_>, name: &str) -> Result<(), FieldError> {
    if names.insert(name.to_owned()) {
        return Ok(());
    }
    section.not_allowed("name", &format!("{name:?}"), "names of pools must be unique")
}

/// Reads a required integer.
///
/// # Errors
/// [`FieldError`] if it is missing or outside the range.
pub fn needed_integer(section: &Section<'_>, key: &str, low: u32, high: u32) -> Result<u32, FieldError> {
    let allowed = format!("a whole number from {low} to {high} is required");
    section.needed(key, section.integer(key, low, high)?, &allowed)
}

/// Reads an array of tables, such as `[[pool]]`.
///
/// # Errors
/// [`FieldError`] if the field is no array of tables.
pub fn sections<'a>(root: &Section<'a>, key: &str) -> Result<Vec<Section<'a>>, FieldError> {
    let sections = root.sections(key, &format!("tables [[{key}]] are allowed"), [" ", "."])?;
    Ok(sections.unwrap_or_default())
}

impl Pools {
    /// Reads the pools of a manager from a file.
    ///
    /// # Errors
    /// [`FieldError`] that names file, field, value and the allowed values.
    pub fn read(file: &Path) -> Result<Self, FieldError> {
        let document = Document::read(file)?;
        let root = document.root();
        let (mut pools, mut names) = (Vec::new(), BTreeSet::new());
        for section in sections(&root, "pool")? {
            let spec = PoolSpec::read(&section)?;
            check_new(&mut names, &section, &spec.name)?;
            let prefix = section.text("workers", "a prefix of worker names is allowed")?;
            let prefix = prefix.map_or_else(|| format!("{}-", spec.name), str::to_owned);
            let driver = DriverSettings::read(&section, &prefix)?;
            section.end()?;
            pools.push(ManagedPool { spec, prefix, driver });
        }
        root.end()?;
        if pools.is_empty() {
            return root.missing("pool", "at least one [[pool]] is required");
        }
        Ok(Self(pools))
    }

    /// Returns the pool with the longest prefix of this worker's name. `None` if no prefix fits.
    pub fn of(&self, worker: &str) -> Option<usize> {
        let pools = self.0.iter().enumerate().filter(|(_, pool)| worker.starts_with(pool.prefix.as_str()));
        pools.max_by_key(|(_, pool)| pool.prefix.len()).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str) -> Result<Pools, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pools.toml");
        fs::write(&file, text).unwrap();
        let place = format!("{}: ", file.display());
        Pools::read(&file).map_err(|error| error.to_string().replacen(&place, "", 1))
    }

    const SPOT: &str =
        "[[pool]]\nname = \"spot\"\ncores = 4\nprice_per_hour = 0.1\nstartup_seconds = 90\nmax = 20\n";

    #[test]
    fn pools_are_read_and_workers_found_by_their_names() {
        let text = format!("{SPOT}{}workers = \"spot-large-\"\n", SPOT.replace("\"spot\"", "\"large\""));
        let pools = read(&text).unwrap();
        assert_eq!(pools.0[0].spec.billing_seconds, 1.0);
        let of = ["spot-1", "spot-large-1", "base-1"].map(|name| pools.of(name));
        assert_eq!(of, [Some(0), Some(1), None]);
    }

    const PROCESS: &str = "[pool.provision]\ndriver = \"process\"\n";
    const COMMAND: &str = "[pool.provision]\ndriver = \"command\"\nstart = [\"./start\", \"{name}\"]\nstop = [\"./stop\"]\nlist = [\"squeue\"]\n";

    #[test]
    fn drivers_are_read_with_their_settings() {
        let pools = read(&format!("{SPOT}{}{COMMAND}", SPOT.replace("\"spot\"", "\"large\""))).unwrap();
        let Some(DriverSettings { idle_seconds, manager: None, kind }) = &pools.0[1].driver else {
            panic!("{pools:?}")
        };
        assert!(pools.0[0].driver.is_none() && *idle_seconds == 60.0);
        let DriverKind::Command { start, list, .. } = kind else { panic!("{kind:?}") };
        // Paths are relative to the file, and names are looked up in PATH.
        assert!(Path::new(&start[0]).is_absolute() && start[0].ends_with("/start"), "{start:?}");
        assert_eq!((&*start[1], &*list[0]), ("{name}", "squeue"));
        let text = format!(
            "{SPOT}{PROCESS}options = [\"--memory\", \"1GB\"]\nidle_seconds = 5\ntoken = \"token\"\n"
        );
        let pools = read(&text).unwrap();
        let Some(DriverSettings { kind: DriverKind::Process { options, token }, .. }) = &pools.0[0].driver
        else {
            panic!("{pools:?}")
        };
        assert_eq!(options, &["--memory", "1GB"]);
        assert!(token.as_ref().is_some_and(|token| token.is_absolute() && token.ends_with("token")));
    }

    #[test]
    fn invalid_driver_error_names_field_value_and_range() {
        let wrong = [
            (
                "[pool.provision]\n",
                "pool 1.provision.driver: missing; process, command or kubernetes is allowed",
            ),
            (
                "[pool.provision]\ndriver = \"ssh\"\n",
                "pool 1.provision.driver: \"ssh\" is not allowed; process, command or kubernetes",
            ),
            ("provision = 1\n", "pool 1.provision: 1 is not allowed; a table [pool.provision]"),
            (
                &COMMAND.replace("list = [\"squeue\"]", ""),
                "pool 1.provision.list: missing; a program and its arguments",
            ),
            (
                &COMMAND.replace("[\"./stop\"]", "[]"),
                "pool 1.provision.stop: missing; a program and its arguments",
            ),
            (
                &COMMAND.replace("[\"./stop\"]", "\"./stop\""),
                "pool 1.provision.stop: \"./stop\" is not allowed; a list",
            ),
            (
                &format!("{PROCESS}idle_seconds = -1\n"),
                "pool 1.provision.idle_seconds: -1 is not allowed; 0 to 604800",
            ),
            (
                &format!("{PROCESS}manager = \"host\"\n"),
                "pool 1.provision.manager: \"host\" is not allowed; HOST:PORT",
            ),
            (
                "[pool.provision]\ndriver = \"kubernetes\"\n",
                "pool 1.provision.deployment: missing; the name of a deployment",
            ),
            (
                "[pool.provision]\ndriver = \"kubernetes\"\ndeployment = \"../a\"\n",
                "pool 1.provision.deployment: \"../a\" is not allowed; at most 63 lower-case letters",
            ),
            (
                "[pool.provision]\ndriver = \"kubernetes\"\ndeployment = \"rel-spot\"\n",
                "pool 1.provision.deployment: \"rel-spot\" is not allowed; its pods are named rel-spot-…, but workers of the pool \
                 have the prefix \"spot-\"; workers = \"rel-spot-\" is allowed",
            ),
            (
                "[pool.provision]\ndriver = \"kubernetes\"\ndeployment = \"spot\"\noptions = []\n",
                "pool 1.provision.options: unknown; known are driver, deployment",
            ),
            (
                &format!("{PROCESS}start = [\"a\"]\n"),
                "pool 1.provision.start: unknown; known are driver, options",
            ),
            (
                &format!("workers = \"Spot\"\n{PROCESS}"),
                "pool 1.workers: \"Spot\" is not allowed; with provision, a prefix",
            ),
        ];
        for (table, expected) in wrong {
            let found = read(&format!("{SPOT}{table}")).unwrap_err();
            assert!(found.starts_with(expected), "{found}\n{table}");
        }
    }

    #[test]
    fn invalid_pool_error_names_field_value_and_range() {
        let wrong = [
            (String::new(), "pool: missing; at least one [[pool]] is required"),
            (SPOT.replace("0.1", "-0.1"), "pool 1.price_per_hour: -0.1 is not allowed; 0 or more"),
            (SPOT.replace("0.1", "nan"), "pool 1.price_per_hour: nan is not allowed; 0 or more"),
            (SPOT.replace("startup_seconds = 90\n", ""), "pool 1.startup_seconds: missing; 0 to 604800"),
            (SPOT.replace("cores = 4", "cores = 0"), "pool 1.cores: 0 is not allowed; a whole number from 1"),
            (SPOT.replace("= 20", "= 20\nmin = 21"), "pool 1.min: 21 is not allowed; a whole number from 0"),
            (format!("{SPOT}{SPOT}"), "pool 2.name: \"spot\" is not allowed; names of pools must be unique"),
            (format!("{SPOT}color = 1\n"), "pool 1.color: unknown; known are name, cores"),
            (SPOT.replace("\"spot\"", "\"a b\""), "pool 1.name: \"a b\" is not allowed; letters"),
            (format!("x = 1\n{SPOT}"), "x: unknown; known are pool"),
        ];
        for (text, expected) in wrong {
            let found = read(&text).unwrap_err();
            assert!(found.starts_with(expected), "{found}\n{text}");
        }
    }
}
