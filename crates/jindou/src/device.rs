//! Whether a query may run on a GPU.

use std::str::FromStr;

/// Whether queries may use a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuChoice {
    /// Never.
    #[default]
    Off,
    /// Every plan that the GPU's kernels can run; an error where there is no GPU, or where it fails.
    On,
    /// Heavy plans, if there is a GPU; the CPU's answer where it fails.
    Auto,
}

impl FromStr for GpuChoice {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "auto" => Ok(Self::Auto),
            other => Err(format!("'{other}' is none of on, off, auto")),
        }
    }
}
