//! Transports by which servers that hold shards read lists from each other's memory.

use jindou_cluster::transport::Transport;
use jindou_cluster::transport::files::Files;
use jindou_cluster::transport::ucx::UcxTransport;
use jindou_model::{Error, Result};
use std::str::FromStr;
use std::sync::Arc;

/// How servers that hold shards of a store read lists from each other's memory, where that is faster than a request.
/// All servers of a log must use the same setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PeerReads {
    /// Servers only send requests.
    #[default]
    Off,
    /// From the files of the other servers, which all run on this machine.
    Files,
    /// Over UCX, on these devices, comma-separated, for example `mlx5_0:1`. There is neither authentication nor
    /// encryption: any program that can reach a device can read the server's memory.
    Ucx(String),
}

impl PeerReads {
    /// # Errors
    /// [`Error::Usage`] if UCX is not usable.
    pub(super) fn transport(&self) -> Result<Option<Arc<dyn Transport>>> {
        Ok(match self {
            Self::Off => None,
            Self::Files => Some(Arc::new(Files)),
            Self::Ucx(devices) => {
                let end = UcxTransport::new(devices);
                let cannot = |e| Error::Usage(format!("other servers' memory cannot be read: {e}"));
                Some(end.map_err(cannot)?)
            }
        })
    }
}

impl FromStr for PeerReads {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "files" => Ok(Self::Files),
            _ => match text.strip_prefix("ucx:") {
                Some(devices) if !devices.is_empty() => Ok(Self::Ucx(devices.to_owned())),
                _ => Err(format!(
                    "'{text}' is not one of off, files, or ucx:DEVICES as in ucx:mlx5_0:1,eth0"
                )),
            },
        }
    }
}
