//! Cores, instruction sets and locale.

use crate::cli::DoctorArgs;
use crate::command::cluster::items::Items;
use std::{env, fs, thread};

/// Instruction sets of x86 with code of their own in OpenCV or in digests. Both choose by themselves.
const SETS: [&str; 4] = ["sse4_2", "avx2", "fma", "avx512f"];

pub(super) fn check(_: &DoctorArgs, items: &mut Items) {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let online = text.lines().filter(|line| line.starts_with("processor")).count();
    match thread::available_parallelism() {
        Ok(cores) if cores.get() < online => items.note(
            "cores",
            format!("{cores} of the {online} of this machine, by its control group or affinity"),
            "nothing, or raise the limit of the container or job",
        ),
        Ok(cores) => items.ok("cores", cores.to_string()),
        Err(error) => items.warning("cores", error.to_string(), "name a number by --workers or --cores"),
    }
    processor(items, &text);
    locale(items, &effective_locale(|name| env::var(name).ok()));
}

fn processor(items: &mut Items, cpuinfo: &str) {
    let field = |name: &str| {
        let line =
            cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    let architecture = env::consts::ARCH;
    let model = field("model name").unwrap_or("unknown model");
    let flags: Vec<&str> = field("flags").unwrap_or_default().split_whitespace().collect();
    let present: Vec<&str> = SETS.into_iter().filter(|set| flags.contains(set)).collect();
    if architecture == "x86_64" && !present.contains(&"avx2") {
        return items.note(
            "processor",
            format!("{model} without AVX2"),
            "nothing: image operations take longer; a virtual machine may hide it from its guest",
        );
    }
    let sets = if present.is_empty() { String::new() } else { format!(", {}", present.join(" ")) };
    items.ok("processor", format!("{model} ({architecture}{sets})"));
}

/// Returns the locale of characters: the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set (POSIX, 8.2).
fn effective_locale(variable: impl Fn(&str) -> Option<String>) -> String {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| variable(name).filter(|text| !text.is_empty()));
    set.unwrap_or_else(|| "C".to_owned())
}

fn locale(items: &mut Items, locale: &str) {
    let letters = locale.to_ascii_lowercase();
    if letters.contains("utf-8") || letters.contains("utf8") {
        items.ok("locale", locale);
    } else {
        items.note(
            "locale",
            format!("{locale}, which is not UTF-8"),
            "set LANG=C.UTF-8 if names of files have letters beyond ASCII: programs beside pleach may not read them",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::cluster::items::Severity;

    #[test]
    fn locale_is_that_of_the_strongest_variable() {
        let of = |set: &[(&str, &str)]| {
            effective_locale(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), "C");
        assert_eq!(of(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "")]), "de_DE.UTF-8");
        assert_eq!(of(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]), "C");
    }

    #[test]
    fn old_processor_is_noted() {
        let mut items = Items::default();
        processor(&mut items, "processor\t: 0\nmodel name\t: Old\nflags\t\t: sse4_2\n");
        processor(&mut items, "processor\t: 0\nmodel name\t: New\nflags\t\t: sse4_2 avx2\n");
        let notes = if env::consts::ARCH == "x86_64" { 1 } else { 0 };
        assert_eq!((items.count(Severity::Note), items.count(Severity::Ok)), (notes, 2 - notes));
    }
}
