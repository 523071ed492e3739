//! Contents of a log, without following it.

use jindou_replicas::Name;
use jindou_replicas_driver::{Bucket, Identity, Limits};

/// The servers and the groups of a log, as its bucket has them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogContents {
    /// The log's identity.
    pub log: u64,
    /// Number of groups that were neither trimmed nor put together into spans.
    pub groups: usize,
    /// Number of the newest group; 0 for a log without one.
    pub newest: u64,
    /// The last groups in the uploaded bases, ascending.
    pub bases: Vec<u64>,
    /// Names and addresses of the servers whose entries are not older than the youngest one's by 20 minutes.
    pub servers: Vec<(String, Vec<String>)>,
}

/// Reads what is in the log at a place: `s3://BUCKET/PREFIX` or a directory. Writes nothing.
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
        let log = identity.epoch;
        let failed = |e| format!("{place}: {e}");
        let bases = bucket.bases(log).await.map_err(failed)?;
        let listing = bucket.list(log, 0).await.map_err(failed)?;
        let (mut groups, mut newest) = (0, None);
        for name in &listing.log {
            match Name::parse(log, name) {
                Some(Name::Group(number)) => {
                    groups += 1;
                    newest = newest.max(Some(number));
                }
                Some(Name::Span(_, last)) => newest = newest.max(Some(last)),
                _ => {}
            }
        }
        let servers = bucket.list_servers(None).await.map_err(failed)?;
        Ok(LogContents {
            log,
            groups,
            newest: newest.unwrap_or(0).max(bases.last().copied().unwrap_or(0)),
            bases,
            servers: servers.into_iter().map(|s| (s.name, s.addresses)).collect(),
        })
    })
}

/// A log that is there. Writes nothing.
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
        Some(identity) => Ok((bucket, identity)),
        None => Err(format!("{place}: there is no log")),
    }
}
