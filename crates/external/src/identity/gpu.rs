//! Model and driver of the GPUs that a process may use: part of the identity of operations whose results may depend on them.

use std::fs;
use std::path::Path;

/// Files of the NVIDIA driver. Containers with a GPU have them.
const NVIDIA: &str = "/proc/driver/nvidia";

/// Version of the AMD driver, and the cards.
const AMD: (&str, &str) = ("/sys/module/amdgpu/version", "/sys/class/drm");

/// Returns models and driver, such as `NVIDIA H100 80GB HBM3, driver 580.159.04`. `none` without a GPU.
pub(crate) fn description() -> String {
    nvidia(Path::new(NVIDIA))
        .or_else(|| amd(Path::new(AMD.0), Path::new(AMD.1)))
        .unwrap_or_else(|| "none".to_owned())
}

/// Reads the files of the NVIDIA driver. `None` without a device.
fn nvidia(folder: &Path) -> Option<String> {
    let cards = fs::read_dir(folder.join("gpus")).ok()?.flatten();
    let information = cards.filter_map(|card| fs::read_to_string(card.path().join("information")).ok());
    let models = information.filter_map(|text| {
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(model.trim().to_owned())
    });
    let version = fs::read_to_string(folder.join("version")).ok()?;
    let driver = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    joined(models.collect(), driver)
}

/// Reads the files of the AMD driver. `None` without a device. Without a version of its own, that of the kernel.
fn amd(driver: &Path, cards: &Path) -> Option<String> {
    let cards = fs::read_dir(cards).ok()?.flatten();
    let models = cards.filter_map(|card| {
        let device = card.path().join("device");
        let vendor = fs::read_to_string(device.join("vendor")).ok()?;
        let named =
            || fs::read_to_string(device.join("product_name")).ok().filter(|name| !name.trim().is_empty());
        // Connectors of a card are folders beside it, without a vendor.
        (vendor.trim() == "0x1002")
            .then(|| named().or_else(|| fs::read_to_string(device.join("device")).ok()))?
    });
    let models = models.map(|model| format!("AMD {}", model.trim())).collect();
    let version =
        fs::read_to_string(driver).or_else(|_| fs::read_to_string("/proc/sys/kernel/osrelease")).ok()?;
    joined(models, version.trim())
}

fn joined(mut models: Vec<String>, driver: &str) -> Option<String> {
    models.sort_unstable();
    models.dedup();
    (!models.is_empty()).then(|| format!("{}, driver {driver}", models.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvidia_driver_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(nvidia(folder.path()), None);
        let version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Thu Oct  2 10:04:22 UTC 2025\nGCC version:  gcc 13\n";
        fs::write(folder.path().join("version"), version).unwrap();
        for card in ["0000:01:00.0", "0000:02:00.0"] {
            let card = folder.path().join("gpus").join(card);
            fs::create_dir_all(&card).unwrap();
            fs::write(card.join("information"), "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 21\n")
                .unwrap();
        }
        assert_eq!(nvidia(folder.path()).unwrap(), "NVIDIA H100 80GB HBM3, driver 580.159.04");
    }

    #[test]
    fn amd_cards_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("cards/card0/device");
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(folder.path().join("cards/card0-DP-1")).unwrap();
        fs::write(folder.path().join("version"), "6.8.5\n").unwrap();
        fs::write(device.join("vendor"), "0x10de\n").unwrap();
        let read = || amd(&folder.path().join("version"), &folder.path().join("cards"));
        assert_eq!(read(), None, "a card of another vendor");
        fs::write(device.join("vendor"), "0x1002\n").unwrap();
        fs::write(device.join("device"), "0x740f\n").unwrap();
        assert_eq!(read().unwrap(), "AMD 0x740f, driver 6.8.5");
    }
}
