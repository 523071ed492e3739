//! The store that a log is of, and the servers that follow it.

use super::past::micros;
use super::{Bucket, Failure, Lane, PAGE, Put};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use jindou_replicas::Name;
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

impl Identity {
    /// That of a log which began with some store, as a base of it is in the bucket.
    pub fn of_store(epoch: u64) -> Self {
        Self {
            format: FORMAT,
            epoch,
            beginning: Beginning::Changed,
        }
    }
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
    /// The newest group that it knew of; 0 where that is a number which no log gets to, since the entry is damaged.
    pub fn noted(&self) -> u64 {
        match self.newest <= MOST_GROUPS {
            true => self.newest,
            false => 0,
        }
    }

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

/// The object that a log begins with, as it is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FirstObject {
    /// Absence of it.
    Missing,
    /// Its content.
    Right(Identity),
    /// Reason why it cannot be read.
    Damaged(String),
    /// The format of a later version that wrote it.
    Later(u64),
}

/// Folders of objects that have an id epoch in their names.
const FOLDERS: [&str; 4] = ["log", "span", "base", "parts"];

/// The id epoch in the name of a log's object, parts of bases included.
fn epoch_of(name: &str) -> Option<u64> {
    match name.strip_prefix("parts/") {
        Some(part) => u64::from_str_radix(part.split_once('-')?.0, 16).ok(),
        None => Name::epoch(name),
    }
}

/// The most groups that an entry is believed to have seen: more than are written in a thousand years.
const MOST_GROUPS: u64 = 1 << 50;

/// Age beyond the own entry's at which a server counts as gone.
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
    /// The store that the log is of; `None` where there is none yet.
    ///
    /// # Errors
    /// One sentence.
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

    /// The object that the log begins with.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn first_object(&self) -> Result<FirstObject, Failure> {
        let bytes = match self.get(IDENTITY).await {
            Ok(bytes) => bytes,
            Err(Failure::Missing) => return Ok(FirstObject::Missing),
            Err(failure) => return Err(failure),
        };
        // A later version's may have anything else in it.
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

    /// Objects of a log that can only be there if it was begun, with the id epoch of that log: groups, spans, bases, their
    /// parts, and entries of servers that know of groups. `None` where there are none, so that a log may begin here.
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

    /// Names of objects in a folder, of any log, with its id epoch; of very many the first ones, in any order.
    async fn of_any_log(&self, folder: &str, most: usize) -> Result<Vec<(String, u64)>, Failure> {
        let (found, _) = self.names(folder, None, most).await?;
        let names = found.iter().filter_map(|meta| self.name(&meta.location));
        Ok(names
            .filter_map(|name| Some((name.clone(), epoch_of(&name)?)))
            .collect())
    }

    /// A sentence where objects or servers' entries of another log are here, and none of this one: `log.json` may have been
    /// changed.
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

    /// Checks that a place without bases of this log does not have another one's objects.
    ///
    /// # Errors
    /// [`Failure::Lost`] if it has; if the bucket fails.
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

    /// Puts the first object of a log in the place of a damaged one.
    ///
    /// # Errors
    /// One sentence.
    pub async fn replace_identity(&self, identity: &Identity) -> Result<(), String> {
        let bytes = serde_json::to_vec(identity).map_err(|e| e.to_string())?;
        let put = self.replace(IDENTITY, bytes.into()).await;
        put.map_err(|e| format!("{IDENTITY} cannot be put into the bucket: {e}"))
    }

    /// Puts the first object of a log again, which was lost. Returns the one that is there in the end.
    ///
    /// # Errors
    /// One sentence.
    pub async fn write_identity(&self, identity: Identity) -> Result<Identity, String> {
        self.begin(identity.epoch, identity.beginning).await
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

    /// The entries that are not much older than the one at this key, or than the youngest.
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

    /// All entries, also those of servers that count as gone; of very many the newest.
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

    /// The objects of the entries that were written last. Each has the newest group that its server knew of, which
    /// includes the entries that it found. So older ones say nothing more.
    async fn newest_entries(&self) -> Result<Vec<ObjectMeta>, Failure> {
        let (mut found, _) = self.names(SERVERS, None, usize::MAX).await?;
        found.sort_unstable_by_key(|meta| std::cmp::Reverse(micros(meta)));
        found.truncate(MOST_ENTRIES);
        Ok(found)
    }

    /// The entries in these objects, several read at once.
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
        self.entry_of(name).await.ok().flatten()
    }

    /// The entry of this name; `None` without one, or where it is damaged.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn entry_of(&self, name: &str) -> Result<Option<ServerEntry>, Failure> {
        match self.get(&format!("{SERVERS}/{name}")).await {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(Failure::Missing) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// True for an entry that is much older than this time, in microseconds.
fn is_gone(meta: &ObjectMeta, newest: Option<u64>) -> bool {
    let age = newest.map(|newest| newest.saturating_sub(micros(meta)));
    age.is_some_and(|age| Duration::from_micros(age) > GONE)
}

/// Most entries that are read, the newest first. No log has this number of servers.
const MOST_ENTRIES: usize = 64;
/// Entries that are read at once.
const AT_ONCE: usize = 16;
/// Attempts to begin a log.
const ATTEMPTS: usize = 8;
