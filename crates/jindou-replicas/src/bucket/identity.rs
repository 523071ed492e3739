//! The identity of a log, and the list of servers that follow it.

use super::past::micros;
use super::{Bucket, Failure, PAGE, Put, if_there};
use crate::machine::Name;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Content of a log's first object, `log.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Format version of groups, spans, bases and names.
    pub format: u32,
    /// The log's id epoch: a random number in every group, base and span.
    pub epoch: u64,
    /// The store's state before the first group.
    pub beginning: Beginning,
    /// True if the state before the first group is not uploaded, because each server was given a copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_base: bool,
}

impl Identity {
    /// The identity of a log that began with a store whose base is in the bucket.
    pub fn of_store(epoch: u64) -> Self {
        Self {
            format: FORMAT,
            epoch,
            beginning: Beginning::Changed,
            without_base: false,
        }
    }
}

/// The state of a store before the log's first group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// The empty store.
    Empty,
    /// A loaded store with this id epoch. Its first base is in the bucket.
    Loaded(u64),
    /// A store that was changed before the log was created. Its first base is in the bucket.
    Changed,
}

/// The format version that this program reads and writes.
const FORMAT: u32 = 1;
pub(super) const IDENTITY: &str = "log.json";
const SERVERS: &str = "servers";

/// A server's entry in the bucket's list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServerEntry {
    /// The server's name.
    pub name: String,
    /// Random number of the server's process.
    pub start: u64,
    /// Addresses (HOST:PORT) at which other servers reach this one; empty for a server that accepts no connections.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Hash of the TLS certificate that the server presents at these addresses.
    #[serde(default)]
    pub certificate: Option<String>,
    /// The newest group version that the server reads; 0 in entries of servers that read only version 1.
    #[serde(default)]
    pub groups: u32,
    /// The newest group that the server knew when it wrote the entry, whether or not the log still has that group.
    #[serde(default)]
    pub newest: u64,
    /// The log's identity, a copy of `log.json`.
    #[serde(default)]
    pub log: Option<Identity>,
    /// Numbers of the shards that the server holds; empty if the store is not sharded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<u32>,
}

impl ServerEntry {
    /// The newest group that the server knew; 0 if the number is implausibly large, which means that the entry is
    /// damaged.
    pub fn noted(&self) -> u64 {
        match self.newest <= MOST_GROUPS {
            true => self.newest,
            false => 0,
        }
    }

    /// The newest group version that all these servers read.
    pub fn common_groups(servers: &[Self]) -> u32 {
        let versions = servers.iter().map(|server| server.groups.max(1));
        versions.min().unwrap_or(1)
    }
}

/// An entry of the list of servers, and its age.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundServer {
    /// Content of the entry.
    pub entry: ServerEntry,
    /// Time of the entry's last write, by the bucket's clock, in microseconds since 1970 (UTC).
    pub written: u64,
    /// False if the entry is so much older than the newest entry that the server is considered gone.
    pub counts: bool,
}

/// State of a log's first object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FirstObject {
    /// The object does not exist.
    Missing,
    /// The object is valid.
    Right(Identity),
    /// The object cannot be read, for this reason.
    Damaged(String),
    /// The object was written by a later version, in this format.
    Later(u64),
}

/// Folders of objects whose names contain an id epoch.
const FOLDERS: [&str; 4] = ["log", "span", "base", "parts"];

/// The id epoch in the name of an object or of a part of a base.
fn epoch_of(name: &str) -> Option<u64> {
    match name.strip_prefix("parts/") {
        Some(part) => u64::from_str_radix(part.split_once('-')?.0, 16).ok(),
        None => Name::epoch(name),
    }
}

/// Largest plausible group number in an entry: more groups than are written in a thousand years.
const MOST_GROUPS: u64 = 1 << 50;

/// A server is considered gone if its entry is older than a reference entry (this server's own, or the newest) by more
/// than this.
const GONE: Duration = Duration::from_secs(20 * 60);

/// Objects of a log whose first object, `log.json`, is missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remains {
    /// The log's id epoch.
    pub epoch: u64,
    /// Name of one of the objects.
    pub name: String,
    /// Number of objects in the same folder.
    pub count: usize,
}

impl std::fmt::Display for Remains {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { epoch, name, count } = self;
        let others = match count {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        write!(
            f,
            "{IDENTITY} is missing, and objects of the log {epoch:016x} are there: {name}{others}"
        )
    }
}

impl Bucket {
    /// The log's identity; `None` if there is no log yet.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn identity(&self) -> Result<Option<Identity>, String> {
        match self.first_object().await {
            Ok(FirstObject::Missing) => Ok(None),
            Ok(FirstObject::Right(identity)) => Ok(Some(identity)),
            Ok(FirstObject::Damaged(why)) => Err(format!(
                "{IDENTITY} is damaged: {why}; \"jindou cluster repair --log PLACE\" can write it again"
            )),
            Ok(FirstObject::Later(format)) => Err(format!(
                "{IDENTITY} says that the log has format {format}, and this program reads format {FORMAT}"
            )),
            Err(failure) => Err(format!("{IDENTITY} cannot be read: {failure}")),
        }
    }

    /// Reads the log's first object.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn first_object(&self) -> Result<FirstObject, Failure> {
        let Some(bytes) = if_there(self.get(IDENTITY).await)? else {
            return Ok(FirstObject::Missing);
        };
        // An object of a later format version may have other fields, so read only the version first.
        let format = serde_json::from_slice::<serde_json::Value>(&bytes)
            .ok()
            .and_then(|value| value.get("format")?.as_u64());
        Ok(match format {
            None | Some(0) => FirstObject::Damaged("it is not the beginning of a log".into()),
            Some(format) if format > u64::from(FORMAT) => FirstObject::Later(format),
            Some(_) => match serde_json::from_slice(&bytes) {
                Ok(identity) => FirstObject::Right(identity),
                Err(e) => FirstObject::Damaged(e.to_string()),
            },
        })
    }

    /// Finds objects that exist only if a log was created, with its id epoch: groups, spans, bases, parts of bases, and
    /// entries of servers that know of groups. `None` if there are none, so that a log may be created here.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn remains(&self) -> Result<Option<Remains>, Failure> {
        for folder in FOLDERS {
            let names = self.of_any_log(folder, usize::MAX).await?;
            if let Some((name, epoch)) = names.last().cloned() {
                let count = names.len();
                return Ok(Some(Remains { epoch, name, count }));
            }
        }
        let entries = self.all_servers().await?;
        let known = entries.into_iter().filter(|found| found.entry.noted() > 0);
        let known = known.max_by_key(|found| found.entry.noted());
        Ok(known.and_then(|found| {
            Some(Remains {
                epoch: found.entry.log?.epoch,
                name: format!("{SERVERS}/{}", found.entry.name),
                count: 1,
            })
        }))
    }

    /// Names and id epochs of objects in a folder, of any log. Returns at most `most` of them, in any order.
    async fn of_any_log(&self, folder: &str, most: usize) -> Result<Vec<(String, u64)>, Failure> {
        let (found, _) = self.names(folder, None, most).await?;
        let names = found.iter().filter_map(|meta| self.name(&meta.location));
        Ok(names
            .filter_map(|name| Some((name.clone(), epoch_of(&name)?)))
            .collect())
    }

    /// A sentence for the operator if the bucket has objects or servers' entries of another log and none of this one,
    /// which may mean that `log.json` was changed.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn of_other_log(&self, epoch: u64) -> Result<Option<String>, Failure> {
        let mut other = None;
        for folder in FOLDERS {
            for (name, of) in self.of_any_log(folder, PAGE).await? {
                if of == epoch {
                    return Ok(None);
                }
                other = other.or(Some((name, of)));
            }
        }
        let entries = self.all_servers().await?;
        let known = entries.into_iter().filter(|found| found.entry.noted() > 0);
        for entry in known.map(|found| found.entry) {
            match entry.log {
                Some(log) if log.epoch == epoch => return Ok(None),
                Some(log) => {
                    other = other.or(Some((format!("{SERVERS}/{}", entry.name), log.epoch)))
                }
                None => {}
            }
        }
        Ok(other.map(|(name, of)| {
            format!("{IDENTITY} is of the log {epoch:016x}, and {name} is of the log {of:016x}")
        }))
    }

    /// Checks that a bucket without bases of this log does not contain another log's objects.
    ///
    /// # Errors
    /// [`Failure::Lost`] if the bucket contains another log's objects; if the bucket fails.
    pub async fn check_log(&self, epoch: u64, bases: &[u64]) -> Result<(), Failure> {
        if bases.is_empty()
            && let Some(other) = self.of_other_log(epoch).await?
        {
            return Err(Failure::Lost(format!(
                "{other}. One of the two is damaged, or two logs were put into one place: restore log.json from a copy. \
                 Run \"jindou cluster repair --log PLACE\""
            )));
        }
        Ok(())
    }

    /// Replaces the damaged `log.json` of a log.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn replace_identity(&self, identity: &Identity) -> Result<(), String> {
        let bytes = serde_json::to_vec(identity).map_err(|e| e.to_string())?;
        let put = self.replace(IDENTITY, bytes.into()).await;
        put.map_err(|e| format!("{IDENTITY} cannot be put into the bucket: {e}"))
    }

    /// Creates a log, unless one exists. Returns the identity of the log that exists afterwards.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn begin(&self, epoch: u64, beginning: Beginning) -> Result<Identity, String> {
        let mine = Identity {
            beginning,
            ..Identity::of_store(epoch)
        };
        self.begin_as(mine).await
    }

    /// Creates a log with this identity, or its lost `log.json`, unless one exists. Returns the identity of the log that
    /// exists afterwards.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn begin_as(&self, mine: Identity) -> Result<Identity, String> {
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

    /// Writes this server's entry. Returns the entries of all servers that are not considered gone.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn servers(&self, me: &ServerEntry) -> Result<Vec<ServerEntry>, Failure> {
        self.write_entry(me).await?;
        let own = format!("{SERVERS}/{}", me.name);
        self.list_servers(Some(&own)).await
    }

    /// Writes this server's entry.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn write_entry(&self, me: &ServerEntry) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(me).map_err(|e| Failure::Refused(e.to_string()))?;
        self.replace(&format!("{SERVERS}/{}", me.name), bytes.into())
            .await
    }

    /// The entries that are not much older, by the bucket's clock, than the entry `than`, or than the newest entry if
    /// `than` is `None`.
    pub async fn list_servers(&self, than: Option<&str>) -> Result<Vec<ServerEntry>, Failure> {
        let found = self.newest_entries().await?;
        let own = than.map(|own| self.key(own));
        let at = found
            .iter()
            .filter(|meta| own.as_ref().is_none_or(|own| meta.location == *own));
        let newest = at.map(micros).max();
        let found = found.into_iter().filter(|meta| !is_gone(meta, newest));
        let servers = self.entries(found.collect()).await?;
        Ok(servers.into_iter().map(|(_, entry)| entry).collect())
    }

    /// All entries, including those of servers that are considered gone. If there are very many, only the newest.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn all_servers(&self) -> Result<Vec<FoundServer>, Failure> {
        let found = self.newest_entries().await?;
        let newest = found.iter().map(micros).max();
        let servers = self.entries(found).await?.into_iter();
        let servers = servers.map(|(meta, entry)| FoundServer {
            entry,
            written: micros(&meta),
            counts: !is_gone(&meta, newest),
        });
        Ok(servers.collect())
    }

    /// The most recently written entries. An entry names the newest group that its server knew, including those named
    /// by entries that it had read. Therefore older entries add no information.
    async fn newest_entries(&self) -> Result<Vec<ObjectMeta>, Failure> {
        let (mut found, _) = self.names(SERVERS, None, usize::MAX).await?;
        found.sort_unstable_by_key(|meta| std::cmp::Reverse(micros(meta)));
        found.truncate(MOST_ENTRIES);
        Ok(found)
    }

    /// Reads these entries, several concurrently.
    async fn entries(
        &self,
        found: Vec<ObjectMeta>,
    ) -> Result<Vec<(ObjectMeta, ServerEntry)>, Failure> {
        let reads = found.into_iter().map(|meta| async move {
            let entry = self.entry(&meta).await?;
            Ok(entry.map(|entry| (meta, entry)))
        });
        let reads = futures_util::stream::iter(reads).buffered(AT_ONCE);
        let entries: Vec<Option<_>> = reads.try_collect().await?;
        Ok(entries.into_iter().flatten().collect())
    }

    /// Reads an entry; `None` if it no longer exists, or a later version wrote it.
    async fn entry(&self, meta: &ObjectMeta) -> Result<Option<ServerEntry>, Failure> {
        let Some(name) = self.name(&meta.location) else {
            return Ok(None);
        };
        // A failure must be an error: a list without the entry would mean that the server is gone.
        let Some(bytes) = if_there(self.get(&name).await)? else {
            return Ok(None);
        };
        let entry = serde_json::from_slice::<ServerEntry>(&bytes).ok();
        Ok(entry.filter(|entry| self.key(&format!("{SERVERS}/{}", entry.name)) == meta.location))
    }

    /// The entry with this name; `None` if it does not exist or cannot be read.
    pub async fn server(&self, name: &str) -> Option<ServerEntry> {
        self.entry_of(name).await.ok().flatten()
    }

    /// The entry with this name; `None` if it does not exist or is damaged.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn entry_of(&self, name: &str) -> Result<Option<ServerEntry>, Failure> {
        let bytes = if_there(self.get(&format!("{SERVERS}/{name}")).await)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }
}

/// True if an entry is much older than `newest` (in microseconds).
fn is_gone(meta: &ObjectMeta, newest: Option<u64>) -> bool {
    let age = newest.map(|newest| newest.saturating_sub(micros(meta)));
    age.is_some_and(|age| Duration::from_micros(age) > GONE)
}

/// Largest number of entries that are read, newest first. No log is expected to have as many servers.
const MOST_ENTRIES: usize = 64;
/// Number of entries that are read concurrently.
const AT_ONCE: usize = 16;
/// Number of attempts to create a log.
const ATTEMPTS: usize = 8;
