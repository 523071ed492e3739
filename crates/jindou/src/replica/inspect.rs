//! Contents of a log, without following it.

use jindou_replicas::{Beginning, Bucket, Failure, Fetch, Fetched, Group, Identity, Limits, Name};

/// The groups, bases and servers of a log, as its bucket has them. Times are those of the objects, by the bucket's clock, in
/// microseconds since 1970 (UTC).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogContents {
    /// The log's identity.
    pub log: u64,
    /// The store that it began with.
    pub beginning: LogBeginning,
    /// True if that was not uploaded on purpose ([`begin_log`](super::begin_log)), so that empty folders cannot be filled before
    /// the first merge.
    pub without_base: bool,
    /// The time at which it was begun.
    pub begun: Option<u64>,
    /// Number of groups that were neither trimmed nor put together into spans.
    pub groups: usize,
    /// Number of the newest group; 0 for a log without one.
    pub newest: u64,
    /// The server that wrote it, and when; `None` where only a base has it.
    pub newest_by: Option<(String, u64)>,
    /// The uploaded bases, ascending.
    pub bases: Vec<LogBase>,
    /// Names of the objects that are missing after the newest base: each is a group that the log must have. Of very many
    /// the first ones.
    pub missing: Vec<String>,
    /// The newest group that any object names, whether or not it exists.
    pub known: u64,
    /// The servers that have an entry, in the order of their names.
    pub servers: Vec<LogServer>,
}

/// A store that a log began with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LogBeginning {
    /// The empty store.
    Empty,
    /// Existing data of the log's first server, which uploads it as the first base.
    Store,
}

/// A base in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogBase {
    /// The last group in it.
    pub number: u64,
    /// The time at which it was complete.
    pub written: Option<u64>,
    /// Its bytes; `None` where its document cannot be read.
    pub bytes: Option<u64>,
    /// Number of its shards; 0 for a store that is not sharded.
    pub shards: u32,
}

/// A server's entry in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogServer {
    /// Its name.
    pub name: String,
    /// Addresses at which other servers reach it.
    pub addresses: Vec<String>,
    /// The shards that it has, if the store is sharded.
    pub shards: Vec<u32>,
    /// The time at which it wrote the entry, which it does every ten minutes.
    pub written: u64,
    /// False if the entry is so much older than the newest one that the other servers consider this one gone.
    pub counts: bool,
}

/// Reads the contents of the log at `s3://BUCKET/PREFIX` or in a directory. Writes nothing.
///
/// # Errors
/// One sentence.
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
        newest_by = Some((group.author.server.to_string(), written));
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

/// Opens an existing log. Writes nothing.
///
/// # Errors
/// One sentence.
pub(super) async fn existing(place: &str, limits: Limits) -> Result<(Bucket, Identity), String> {
    // Opening would make it.
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
