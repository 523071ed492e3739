//! Contents of a log, read without following it.

use jindou_replicas::{Beginning, Bucket, Failure, Fetch, Fetched, Group, Identity, Limits, Name};

/// Groups, bases and servers of a log, as found in its bucket. Times are the objects' modification times by the
/// bucket's clock, in microseconds since 1970 (UTC).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogContents {
    /// The log's id.
    pub log: u64,
    /// The store that the log began with.
    pub beginning: LogBeginning,
    /// True if that store was deliberately not uploaded ([`begin_log`](super::begin_log)), so that empty folders cannot
    /// be filled before the first merge.
    pub without_base: bool,
    /// Time at which the log was created.
    pub begun: Option<u64>,
    /// Number of group objects, without those that were trimmed or combined into spans.
    pub groups: usize,
    /// Number of the newest group; 0 for a log without groups.
    pub newest: u64,
    /// The server that wrote the newest group, and the time; `None` if only a base contains that group.
    pub newest_by: Option<(String, u64)>,
    /// The uploaded bases, by ascending number.
    pub bases: Vec<LogBase>,
    /// Names of missing objects: groups after the newest base that the log must have. Only the first ones, if there are
    /// very many.
    pub missing: Vec<String>,
    /// Highest group number that any object mentions, whether or not that group exists.
    pub known: u64,
    /// The servers that have an entry, ordered by name.
    pub servers: Vec<LogServer>,
}

/// The store that a log began with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LogBeginning {
    /// An empty store.
    Empty,
    /// A store with data, which the log's first server uploads as the first base.
    Store,
}

/// An uploaded base of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogBase {
    /// Number of the last group that the base contains.
    pub number: u64,
    /// Time at which the upload was complete.
    pub written: Option<u64>,
    /// Size in bytes; `None` if the base's document cannot be read.
    pub bytes: Option<u64>,
    /// Number of shards; 0 for a store that is not sharded.
    pub shards: u32,
}

/// A server's entry in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogServer {
    /// Name of the server.
    pub name: String,
    /// Addresses (HOST:PORT) at which other servers reach this one.
    pub addresses: Vec<String>,
    /// Numbers of the shards that the server holds; empty if the store is not sharded.
    pub shards: Vec<u32>,
    /// Time of the last write of this entry; servers write theirs every ten minutes.
    pub written: u64,
    /// False if the entry is so much older than the newest entry that the other servers consider this server gone.
    pub counts: bool,
}

/// Reads the contents of the log at `s3://BUCKET/PREFIX` or in a directory, without writing anything.
///
/// # Errors
/// A message for the operator.
pub fn inspect(place: &str) -> Result<LogContents, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let (bucket, identity) = existing(place, Limits::default()).await?;
        contents(&bucket, &identity)
            .await
            .map_err(|e| format!("{place}: {e}"))
    })
}

async fn contents(bucket: &Bucket, identity: &Identity) -> Result<LogContents, Failure> {
    let log = identity.epoch;
    let mut bases = Vec::new();
    for number in bucket.bases(log).await? {
        let document = bucket.base(log, number).await.ok();
        bases.push(LogBase {
            number,
            written: bucket.written(log, Name::Base(number)).await?,
            bytes: document.as_ref().map(|base| base.bytes()),
            shards: document.map_or(0, |base| base.shards.len() as u32),
        });
    }
    let listing = bucket.list(log, 0, true).await?;
    let (mut groups, mut newest) = (0, 0);
    for name in &listing.log {
        match Name::parse(log, name) {
            Some(Name::Group(number)) => {
                groups += 1;
                newest = newest.max(number);
            }
            Some(Name::Span(_, last)) => newest = newest.max(last),
            _ => {}
        }
    }
    let newest_base = bases.last().map_or(0, |base| base.number);
    let survey = bucket.survey(log, newest_base).await?;
    let missing = survey
        .missing
        .iter()
        .flat_map(|(first, last)| *first..=*last);
    let missing = missing
        .take(100)
        .map(|number| Name::Group(number).text(log))
        .collect();
    let mut newest_by = None;
    if newest > 0
        && let Some(written) = bucket.written(log, Name::Group(newest)).await?
        && let Fetched::Bytes(bytes) = bucket.fetch(log, Fetch::Group(newest)).await?
        && let Ok(group) = Group::read(log, &bytes)
    {
        newest_by = Some((group.writer.server.to_string(), written));
    }
    let mut servers: Vec<LogServer> = (bucket.all_servers().await?.into_iter())
        .map(|found| LogServer {
            name: found.entry.name,
            addresses: found.entry.addresses,
            shards: found.entry.shards,
            written: found.written,
            counts: found.counts,
        })
        .collect();
    servers.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(LogContents {
        log,
        beginning: match identity.beginning {
            Beginning::Empty => LogBeginning::Empty,
            Beginning::Loaded(_) | Beginning::Changed => LogBeginning::Store,
        },
        without_base: identity.without_base,
        begun: bucket.begun().await?,
        groups,
        newest: newest.max(bases.last().map_or(0, |base| base.number)),
        newest_by,
        missing,
        known: survey.newest,
        bases,
        servers,
    })
}

/// Opens an existing log, without writing anything.
///
/// # Errors
/// A message for the operator.
pub(super) async fn existing(place: &str, limits: Limits) -> Result<(Bucket, Identity), String> {
    // `Bucket::open` would create a missing directory.
    if !place.contains("://") && !std::path::Path::new(place).is_dir() {
        return Err(format!("{place}: no such directory"));
    }
    let bucket = Bucket::open(place, limits)?;
    match bucket.identity().await? {
        Some(identity) => {
            let failed = |e: Failure| format!("{place}: {e}");
            let bases = bucket.bases(identity.epoch).await.map_err(failed)?;
            let checked = bucket.check_log(identity.epoch, &bases).await;
            checked.map_err(failed)?;
            Ok((bucket, identity))
        }
        None => Err(match bucket.remains().await {
            Ok(Some(remains)) => format!(
                "{place}: {remains}; `jindou cluster repair --log {place}` can write log.json again"
            ),
            Ok(None) => format!("{place}: there is no log"),
            Err(e) => format!("{place}: {e}"),
        }),
    }
}
