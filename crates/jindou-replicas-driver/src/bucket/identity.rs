//! The store that a log is of, and the servers that follow it.

use super::past::micros;
use super::{Bucket, Failure, Lane, Put};
use bytes::Bytes;
use object_store::ObjectMeta;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The object that a log begins with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Version of groups, spans, bases and names.
    pub format: u32,
    /// A random number, which every group, base and span of the log has.
    pub epoch: u64,
    /// The store that the log begins with.
    pub beginning: Beginning,
}

/// A state without groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// The empty store.
    Empty,
    /// A store of this id epoch as it was loaded. Its first base is in the bucket.
    Loaded(u64),
    /// A store that was changed before it had the log. Its first base is in the bucket.
    Changed,
}

/// The version that this program reads and writes.
const FORMAT: u32 = 1;
pub(super) const IDENTITY: &str = "log.json";
const SERVERS: &str = "servers";

/// A server of the list in the bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServerEntry {
    /// Its name.
    pub name: String,
    /// The random number of its process.
    pub start: u64,
    /// Places where others reach it; empty for one that only follows the bucket.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Hash of the certificate that it shows there.
    #[serde(default)]
    pub certificate: Option<String>,
    /// The newest version of groups that it reads; 0 in entries of servers that read version 1 only.
    #[serde(default)]
    pub groups: u32,
    /// The newest group that it knew of when it wrote the entry, whatever is in the log now.
    #[serde(default)]
    pub newest: u64,
    /// The store that the log began with: as much as `log.json` says.
    #[serde(default)]
    pub log: Option<Identity>,
}

impl ServerEntry {
    /// The newest version of groups that all these servers read.
    pub fn common_groups(servers: &[Self]) -> u32 {
        let versions = servers.iter().map(|server| server.groups.max(1));
        versions.min().unwrap_or(1)
    }
}

/// A server's entry, and what its age says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundServer {
    /// The entry.
    pub entry: ServerEntry,
    /// The time at which it was written, by the bucket's clock: microseconds since 1970 (UTC).
    pub written: u64,
    /// False for an entry that is so much older than the youngest one that the server counts as gone.
    pub counts: bool,
}

/// Age beyond the own entry's at which a server counts as gone.
const GONE: Duration = Duration::from_secs(20 * 60);

impl Bucket {
    /// The store that the log is of; `None` where there is none yet.
    ///
    /// # Errors
    /// One sentence.
    pub async fn identity(&self) -> Result<Option<Identity>, String> {
        let bytes = match self.get(IDENTITY).await {
            Ok(bytes) => bytes,
            Err(Failure::Missing) => return Ok(None),
            Err(failure) => return Err(format!("{IDENTITY} cannot be read: {failure}")),
        };
        // A later version's may have anything else in it.
        let format = serde_json::from_slice::<serde_json::Value>(&bytes)
            .ok()
            .and_then(|value| value.get("format")?.as_u64())
            .ok_or_else(|| format!("{IDENTITY} in the bucket is not the beginning of a log"))?;
        if format != u64::from(FORMAT) {
            return Err(format!(
                "the log in the bucket has format {format}, and this program reads format {FORMAT}"
            ));
        }
        let identity = serde_json::from_slice(&bytes);
        identity
            .map_err(|e| format!("{IDENTITY} is damaged: {e}"))
            .map(Some)
    }

    /// Begins a log, unless there is one. Gives that which is there in the end.
    ///
    /// # Errors
    /// One sentence.
    pub async fn begin(&self, epoch: u64, beginning: Beginning) -> Result<Identity, String> {
        let mine = Identity {
            format: FORMAT,
            epoch,
            beginning,
        };
        let bytes = serde_json::to_vec(&mine).map_err(|e| e.to_string())?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            if let Some(there) = self.identity().await? {
                return Ok(there);
            }
            match self.create(IDENTITY, Bytes::from(bytes.clone())).await {
                Put::Created | Put::Exists => {}
                Put::Failed(failure) => last = Some(failure),
            }
        }
        let why = last.map_or_else(String::new, |failure| format!(": {failure}"));
        Err(format!("{IDENTITY} cannot be put into the bucket{why}"))
    }

    /// Writes this server's entry and gives those that are not much older, by the bucket's clock.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn servers(&self, me: &ServerEntry) -> Result<Vec<ServerEntry>, Failure> {
        let unwritable = |e: serde_json::Error| Failure::Refused(e.to_string());
        let bytes = serde_json::to_vec(me).map_err(unwritable)?;
        let own = format!("{SERVERS}/{}", me.name);
        self.replace(&own, bytes.into()).await?;
        self.list_servers(Some(&own)).await
    }

    /// The entries that are not much older than the one at this key, or than the youngest.
    pub async fn list_servers(&self, than: Option<&str>) -> Result<Vec<ServerEntry>, Failure> {
        let (found, _) = self.names(SERVERS, None, usize::MAX).await?;
        let own = than.map(|own| self.key(own));
        let at = found
            .iter()
            .filter(|meta| own.as_ref().is_none_or(|own| meta.location == *own));
        let newest = at.map(micros).max();
        let mut servers = Vec::new();
        for meta in found.iter().filter(|meta| !is_gone(meta, newest)) {
            servers.extend(self.entry(meta).await?);
        }
        Ok(servers)
    }

    /// All entries, also those of servers that count as gone.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn all_servers(&self) -> Result<Vec<FoundServer>, Failure> {
        let (found, _) = self.names(SERVERS, None, usize::MAX).await?;
        let newest = found.iter().map(micros).max();
        let mut servers = Vec::new();
        for meta in &found {
            servers.extend(self.entry(meta).await?.map(|entry| FoundServer {
                entry,
                written: micros(meta),
                counts: !is_gone(meta, newest),
            }));
        }
        Ok(servers)
    }

    /// The entry in an object; `None` if it is missing now, or a later version wrote it.
    async fn entry(&self, meta: &ObjectMeta) -> Result<Option<ServerEntry>, Failure> {
        let Some(name) = self.name(&meta.location) else {
            return Ok(None);
        };
        let bytes = match self.get_in(Lane::Get, &name).await {
            Ok((bytes, _)) => bytes,
            Err(Failure::Missing) => return Ok(None),
            // A list without it would say that it is gone.
            Err(failure) => return Err(failure),
        };
        let entry = serde_json::from_slice::<ServerEntry>(&bytes).ok();
        Ok(entry.filter(|entry| self.key(&format!("{SERVERS}/{}", entry.name)) == meta.location))
    }

    /// The entry of this name; `None` without one, or where it cannot be read.
    pub async fn server(&self, name: &str) -> Option<ServerEntry> {
        let bytes = self.get(&format!("{SERVERS}/{name}")).await.ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// True for an entry that is much older than this time, in microseconds.
fn is_gone(meta: &ObjectMeta, newest: Option<u64>) -> bool {
    let age = newest.map(|newest| newest.saturating_sub(micros(meta)));
    age.is_some_and(|age| Duration::from_micros(age) > GONE)
}

/// Attempts to begin a log.
const ATTEMPTS: usize = 8;
