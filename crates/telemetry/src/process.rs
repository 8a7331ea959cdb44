//! Reads the metrics of this process from Linux' `/proc`, under the names that Prometheus' client libraries use.
//!
//! A family is omitted if its file is missing or unreadable. Other systems lack these files. Values bypass the metrics
//! facade, whose counters are integers: CPU seconds are not.

use crate::catalog::{PROCESS_CPU, PROCESS_MAX_FDS, PROCESS_OPEN_FDS, PROCESS_RESIDENT, PROCESS_START};
use crate::family::Family;
use prometheus::{CounterVec, GaugeVec, Opts, Registry};
use std::fs;
use std::path::{Path, PathBuf};

/// Clock ticks per second in `/proc/self/stat` (USER_HZ): part of the kernel's interface, 100 on every architecture
/// except Alpha and Itanium.
const TICKS_PER_SECOND: f64 = 100.0;

/// The registered families of [`SeriesLifetime::Process`](crate::SeriesLifetime::Process).
pub(crate) struct Process {
    /// The folder `/proc`.
    root: PathBuf,
    cpu: CounterVec,
    resident: GaugeVec,
    open_fds: GaugeVec,
    max_fds: GaugeVec,
    start: GaugeVec,
}

impl Process {
    /// Registers the families.
    pub(crate) fn new(registry: &Registry, root: &Path) -> Result<Self, prometheus::Error> {
        let options = |family: &Family| Opts::new(family.name, family.help);
        let gauge = |family: &Family| {
            let gauge = GaugeVec::new(options(family), &[])?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let cpu = CounterVec::new(options(PROCESS_CPU.family()), &[])?;
        registry.register(Box::new(cpu.clone()))?;
        Ok(Self {
            root: root.to_owned(),
            cpu,
            resident: gauge(PROCESS_RESIDENT.family())?,
            open_fds: gauge(PROCESS_OPEN_FDS.family())?,
            max_fds: gauge(PROCESS_MAX_FDS.family())?,
            start: gauge(PROCESS_START.family())?,
        })
    }

    /// Sets each family to its current value, or removes its series.
    pub(crate) fn sample(&self) {
        // A counter cannot be set, so it restarts at 0 and is increased by the total.
        self.cpu.reset();
        let none: &[&str] = &[];
        let stat = self.text("self/stat");
        if let Some(seconds) = stat.as_deref().and_then(cpu_seconds) {
            self.cpu.with_label_values(none).inc_by(seconds);
        }
        let start =
            stat.as_deref().and_then(start_seconds).zip(self.text("stat").as_deref().and_then(boot_seconds));
        for (gauge, value) in [
            (&self.resident, self.text("self/status").as_deref().and_then(resident_bytes)),
            (&self.open_fds, self.open_fds()),
            (&self.max_fds, self.text("self/limits").as_deref().and_then(max_fds)),
            (&self.start, start.map(|(after_boot, boot)| boot + after_boot)),
        ] {
            gauge.reset();
            if let Some(value) = value {
                gauge.with_label_values(none).set(value);
            }
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// Returns the number of open file descriptors, without the one of this directory listing.
    fn open_fds(&self) -> Option<f64> {
        let count = fs::read_dir(self.root.join("self/fd")).ok()?.count();
        u32::try_from(count.saturating_sub(1)).ok().map(f64::from)
    }
}

/// Returns a field of `/proc/self/stat` by its number in proc(5). The name of the program, field 2, may contain spaces
/// and parentheses.
fn field(stat: &str, number: usize) -> Option<f64> {
    // From the last parenthesis: the name before it may contain others.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
}

/// Returns user and system time, seconds.
fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS_PER_SECOND)
}

/// Returns the start of the process, seconds after the boot of the system.
fn start_seconds(stat: &str) -> Option<f64> {
    Some(field(stat, 22)? / TICKS_PER_SECOND)
}

/// Returns the boot of the system in seconds since 1970, from `/proc/stat`.
fn boot_seconds(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Returns `VmRSS` of `/proc/self/status`, bytes.
fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

/// Returns the soft limit of open files in `/proc/self/limits`. Returns `None` if there is no limit.
fn max_fds(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse::<u32>().ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::TextEncoder;

    fn shown(root: &Path) -> String {
        let registry = Registry::new();
        let process = Process::new(&registry, root).unwrap();
        // Sampling sets counters and does not add to them.
        process.sample();
        process.sample();
        TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }

    fn values(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn proc_files_give_every_family_its_value() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("self/fd")).unwrap();
        // Three descriptors, one of them for the directory listing.
        for fd in ["0", "1", "2"] {
            fs::write(root.path().join("self/fd").join(fd), "").unwrap();
        }
        for (path, text) in [
            ("self/stat", "42 (a (b) c) S 1 42 42 0 -1 4194560 9 0 0 0 250 75 0 0 20 0 9 0 1500 9 9 9\n"),
            ("self/status", "Name:\ta\nVmHWM:\t  9000 kB\nVmRSS:\t    2048 kB\n"),
            (
                "self/limits",
                "Limit  Soft Hard Units\nMax open files            1024                 524288               files\n",
            ),
            ("stat", "cpu 1 2 3\nbtime 1700000000\n"),
        ] {
            fs::write(root.path().join(path), text).unwrap();
        }
        let text = shown(root.path());
        let expected = [
            "process_cpu_seconds_total 3.25",
            "process_max_fds 1024",
            "process_open_fds 2",
            "process_resident_memory_bytes 2097152",
            "process_start_time_seconds 1700000015",
        ];
        assert_eq!(values(&text), expected);
        assert!(text.contains("# TYPE process_cpu_seconds_total counter"), "{text}");
    }

    #[test]
    fn families_without_their_file_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(values(&shown(root.path())), Vec::<&str>::new());
        fs::create_dir(root.path().join("self")).unwrap();
        for (path, text) in [
            ("self/stat", "42 (truncated"),
            ("self/status", "VmRSS:\tmuch\n"),
            ("self/limits", "Max open files            unlimited            unlimited            files\n"),
            ("stat", "btime 1700000000\n"),
        ] {
            fs::write(root.path().join(path), text).unwrap();
        }
        assert_eq!(values(&shown(root.path())), Vec::<&str>::new());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_measured() {
        let text = shown(Path::new("/proc"));
        let value = |name: &str| {
            let line = values(&text).into_iter().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse::<f64>().unwrap()
        };
        assert!((1e6..1e11).contains(&value("process_resident_memory_bytes")), "{text}");
        assert!(value("process_open_fds") >= 3.0, "{text}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let start = value("process_start_time_seconds");
        assert!(start <= now + 1.0 && start > now - 86_400.0, "{start}, now {now}");
        assert!(value("process_cpu_seconds_total") < 86_400.0, "{text}");
    }
}
