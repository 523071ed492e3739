//! The machine a comparison ran on.

use serde::{Deserialize, Serialize};
use std::fs;

/// Facts about the machine that a reader needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Threads that the system gives.
    pub cores: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Kernel and distribution.
    pub system: String,
    /// Load average of the last minute when the comparison began: above 0.3 something else was working too.
    pub load_before: f64,
}

impl Machine {
    /// The machine that this process runs on, as it is now.
    pub fn this() -> Self {
        let file = |p: &str| fs::read_to_string(p).unwrap_or_default();
        let value = |text: &str, key: &str, by: char| {
            text.lines()
                .find(|l| l.starts_with(key))
                .and_then(|l| l.split_once(by))
                .map(|(_, v)| v.trim().trim_matches('"').to_owned())
        };
        let memory = value(&file("/proc/meminfo"), "MemTotal", ':')
            .and_then(|v| v.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0)
            << 10;
        let kernel = file("/proc/sys/kernel/osrelease").trim().to_owned();
        let distribution =
            value(&file("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_else(|| "Linux".into());
        Self {
            processor: value(&file("/proc/cpuinfo"), "model name", ':')
                .unwrap_or_else(|| "unknown processor".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory,
            system: format!("{distribution}, Linux {kernel}"),
            load_before: load_average(),
        }
    }
}

/// Load average of the last minute.
pub fn load_average() -> f64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|t| t.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0)
}
