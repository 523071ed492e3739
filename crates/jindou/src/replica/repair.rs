//! Repair of a log that lost objects. Nothing is deleted or replaced, and updates that would be lost are listed first.
//!
//! A base makes the groups before it unnecessary. So a log with a gap is repaired by a base after the gap. There are
//! two ways: upload a store that contains the missing groups; or upload the store as of the last group before the gap,
//! under a number higher than any that an object mentions. The second way gives up the updates in between. It does so
//! at all servers alike: a server that is behind a base and cannot read the groups up to it replaces its store by that
//! base.

use super::application::LogFolder;
use super::folder::Folder;
use super::inspect::existing;
use super::restore::restore;
use super::{OpenOptions, fold_own_log, log_threads};
use crate::backup::RestoreTo;
use crate::runtime::Runtime;
use jindou_model::{CancelToken, Error, Progress, Result};
use jindou_replicas::{
    Base, Beginning, Bucket, Examined, Failure, FirstObject, Group, Identity, KnownKey, Limits,
    Local, Name, Survey,
};
use jindou_store::{LoadOptions, MergeOptions};
use std::path::Path;
use std::sync::Arc;

/// When a repair gives up groups, the new base's number exceeds the newest known group by this much, since a server
/// that runs an earlier version of the program may still put groups.
const SPARE: u64 = 1000;
/// Most request keys that such a base remembers; the newest are kept.
const REQUESTS: usize = 100_000;
/// Most groups that are described individually.
const DESCRIBED: usize = 20;

/// The state of a log, and what a repair would do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogDamage {
    /// The name of each missing or damaged object in the bucket, with a possible repair. Empty for an undamaged log.
    pub findings: Vec<String>,
    /// True if `log.json` is missing or damaged; then nothing else was examined.
    pub first_object: bool,
    /// The last snapshot that can be read; `None` if that is the newest known snapshot.
    pub whole_up_to: Option<u64>,
    /// Highest group number that any object mentions.
    pub newest: u64,
    /// Names of servers that knew of the missing groups.
    pub servers: Vec<String>,
    /// A sentence for each group, or run of consecutive groups, whose updates would be given up.
    pub given_up: Vec<String>,
}

/// A repair action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Repair<'a> {
    /// Write `log.json` again, where it is missing or damaged.
    FirstObject,
    /// Upload the store in this folder, which contains the missing groups.
    From(&'a Path),
    /// Give up all updates after this snapshot, which must be [`LogDamage::whole_up_to`].
    GiveUpAfter(u64),
}

/// Lists what a log lacks and what is damaged: `log.json`, the documents and parts of bases, groups, and spans. Of the
/// parts of bases only the lengths are checked. Writes nothing.
///
/// # Errors
/// [`Error::Usage`] if there is no log, or if reading the bucket fails.
pub fn diagnose(place: &str) -> Result<LogDamage> {
    let runtime = threads()?;
    runtime.block_on(async {
        let bucket = open(place)?;
        let wrong = match first_object(&bucket, place).await? {
            Ok(identity) => {
                return damage(&bucket, &identity)
                    .await
                    .map_err(|e| failed(place, e));
            }
            Err(wrong) => wrong,
        };
        let lost = lost_identity(&bucket, place).await?;
        Ok(LogDamage {
            findings: vec![match lost {
                Ok(identity) => format!(
                    "{wrong}; it said that the log {:016x} {}",
                    identity.epoch,
                    began(&identity)
                ),
                Err(why) => format!("{wrong}. {why}"),
            }],
            first_object: true,
            whole_up_to: None,
            newest: 0,
            servers: Vec::new(),
            given_up: Vec::new(),
        })
    })
}

/// The identity in `log.json`, or a sentence about what is wrong with that file.
async fn first_object(
    bucket: &Bucket,
    place: &str,
) -> Result<std::result::Result<Identity, String>> {
    Ok(
        match bucket.first_object().await.map_err(|e| failed(place, e))? {
            FirstObject::Missing => Err("log.json is missing".to_owned()),
            FirstObject::Damaged(why) => Err(format!("log.json is damaged: {why}")),
            FirstObject::Later(format) => {
                return Err(Error::Usage(format!(
                    "{place}: a later version wrote this log, in format {format}"
                )));
            }
            FirstObject::Right(identity) => {
                let other = bucket.of_other_log(identity.epoch).await;
                match other.map_err(|e| failed(place, e))? {
                    Some(other) => Err(other),
                    None => Ok(identity),
                }
            }
        },
    )
}

/// Repairs a log. Returns one sentence that describes what was done.
///
/// # Errors
/// [`Error::Usage`] with the reason if the repair is impossible or not needed.
pub fn repair(place: &str, how: Repair<'_>) -> Result<String> {
    match how {
        Repair::FirstObject => threads()?.block_on(write_first_object(place)),
        Repair::From(store) => upload_from(place, store),
        Repair::GiveUpAfter(number) => give_up_after(place, number),
    }
}

pub(super) fn threads() -> Result<tokio::runtime::Runtime> {
    log_threads().map_err(|e| Error::Usage(format!("no threads to read the log: {e}")))
}

pub(super) fn failed(place: &str, failure: Failure) -> Error {
    Error::io(place, std::io::Error::other(failure))
}

fn open(place: &str) -> Result<Bucket> {
    if !place.contains("://") && !Path::new(place).is_dir() {
        return Err(Error::Usage(format!("{place}: no such directory")));
    }
    Bucket::open(place, Limits::default()).map_err(Error::Usage)
}

fn began(identity: &Identity) -> &'static str {
    match identity.beginning {
        Beginning::Empty => "began with the empty store",
        Beginning::Loaded(_) | Beginning::Changed => {
            "began with a store that its first server brought"
        }
    }
}

/// The content that a missing `log.json` must have had, or the reason why that cannot be determined.
async fn lost_identity(
    bucket: &Bucket,
    place: &str,
) -> Result<std::result::Result<Identity, String>> {
    let remains = bucket.remains().await.map_err(|e| failed(place, e))?;
    let remains = remains.ok_or_else(|| Error::Usage(format!("{place}: there is no log")))?;
    let entries = bucket.all_servers().await.map_err(|e| failed(place, e))?;
    let mut known = entries.into_iter().filter_map(|found| found.entry.log);
    if let Some(identity) = known.find(|of| of.epoch == remains.epoch) {
        return Ok(Ok(identity));
    }
    let bases = bucket.bases(remains.epoch).await;
    let bases = bases.map_err(|e| failed(place, e))?;
    Ok(match bases.is_empty() {
        // Once there is a base, the store that the log began with does not matter.
        false => Ok(Identity::of_store(remains.epoch)),
        true => Err(format!(
            "Objects of the log {:016x} are there, such as {}, and nothing says whether it began with the empty store. So \
             log.json is not written again: restore it from a copy",
            remains.epoch, remains.name
        )),
    })
}

async fn write_first_object(place: &str) -> Result<String> {
    let bucket = open(place)?;
    if first_object(&bucket, place).await?.is_ok() {
        return Err(Error::Usage(format!("{place}: log.json is there")));
    }
    let identity = lost_identity(&bucket, place).await?.map_err(Error::Usage)?;
    let written = match bucket.first_object().await.map_err(|e| failed(place, e))? {
        FirstObject::Missing => bucket.begin_as(identity).await,
        _ => (bucket.replace_identity(&identity).await).map(|()| identity),
    };
    let written = written.map_err(Error::Usage)?;
    Ok(format!(
        "log.json was written: the log {:016x} {}",
        written.epoch,
        began(&written)
    ))
}

async fn damage(bucket: &Bucket, identity: &Identity) -> std::result::Result<LogDamage, Failure> {
    let log = identity.epoch;
    let Examined {
        survey,
        findings,
        unreadable,
        ..
    } = bucket.examine(identity).await?;
    let first = unreadable.first().map(|(first, _)| *first);
    let mut given_up = Vec::new();
    for run in first.map(|first| runs(&survey, first)).unwrap_or_default() {
        describe(bucket, log, run, &mut given_up).await?;
    }
    let servers = survey.servers.iter();
    let servers = servers.filter(|(_, newest)| first.is_some_and(|first| *newest >= first));
    let findings = findings.iter();
    Ok(LogDamage {
        findings: findings
            .map(|found| format!("{found}. {}", found.remedy))
            .collect(),
        first_object: false,
        whole_up_to: first.map(|first| first - 1),
        newest: survey.newest,
        servers: servers.map(|(name, _)| name.clone()).collect(),
        given_up,
    })
}

/// A run of consecutive groups.
struct Run {
    first: u64,
    last: u64,
    /// True if the groups are missing, as objects and in spans.
    is_missing: bool,
}

/// The runs of groups from number `from` on, in ascending order.
fn runs(survey: &Survey, from: u64) -> Vec<Run> {
    let there = survey.groups.iter().map(|run| (run, false));
    let missing = survey.missing.iter().map(|run| (run, true));
    let mut runs: Vec<Run> = there
        .chain(missing)
        .filter(|((_, last), _)| *last >= from)
        .map(|(&(first, last), is_missing)| Run {
            first: first.max(from),
            last,
            is_missing,
        })
        .collect();
    runs.sort_unstable_by_key(|run| (run.first, run.last));
    runs
}

/// Reads a group; `None` if it is missing or damaged.
async fn read_group(
    bucket: &Bucket,
    log: u64,
    number: u64,
) -> std::result::Result<Option<Group>, Failure> {
    let mut found = None;
    let each = |group: Group, _| {
        found = Some(group);
        Ok::<(), ()>(())
    };
    match bucket.read_groups(log, number..=number, 0, each).await {
        Ok(_) | Err(Failure::Lost(_)) => Ok(found),
        Err(failure) => Err(failure),
    }
}

/// Appends to `said` a description of the groups that would be given up.
async fn describe(
    bucket: &Bucket,
    log: u64,
    run: Run,
    said: &mut Vec<String>,
) -> std::result::Result<(), Failure> {
    let Run { first, last, .. } = run;
    if run.is_missing {
        said.push(match first < last {
            true => {
                format!("groups {first} to {last}: missing, so their updates are not known")
            }
            false => format!("group {first}: missing, so its updates are not known"),
        });
        return Ok(());
    }
    for number in first..=last {
        if said.len() >= DESCRIBED {
            said.push(format!("groups {number} to {last}"));
            return Ok(());
        }
        let written = bucket.written(log, Name::Group(number)).await?;
        let found = read_group(bucket, log, number).await?;
        said.push(match (found, written) {
            (Some(group), Some(written)) => format!(
                "group {number}: {} updates that {} wrote at {}",
                group.records.len(),
                group.writer.server,
                crate::backup::time_text(written - written % 1_000_000)
            ),
            (Some(group), None) => format!(
                "group {number}: {} updates that {} wrote",
                group.records.len(),
                group.writer.server
            ),
            (None, Some(_)) => {
                format!("group {number}: damaged, so its updates are not known")
            }
            (None, None) => format!("group {number}: missing, so its updates are not known"),
        });
    }
    Ok(())
}

/// Opens a store's directory. Returns also which part of the log the store contains.
fn folder(store: &Path) -> Result<(Arc<Folder>, Local<jindou_store::Snapshot>)> {
    if !store.is_dir() {
        return Err(Error::Usage(format!(
            "{}: no such directory",
            store.display()
        )));
    }
    let load = LoadOptions::default();
    let merge = MergeOptions::default().with_threads(1);
    let folder = Folder::open_locked(store, &Default::default(), load, merge)?;
    let local = folder.open()?;
    Ok((Arc::new(folder), local))
}

async fn upload(
    bucket: &Bucket,
    place: &str,
    log: u64,
    base: &Base,
    (folder, number): (&Folder, u64),
) -> Result<()> {
    let files = folder.files(number)?;
    let files =
        files.ok_or_else(|| Error::Internal("the store's files have another number".into()))?;
    let start = super::random() as u64;
    let uploaded = bucket.upload(log, start, base, files).await;
    uploaded.map_err(|e| failed(place, e))
}

fn upload_from(place: &str, store: &Path) -> Result<String> {
    let (folder, local) = folder(store)?;
    let Local::Following { log, base, .. } = local else {
        return Err(Error::Usage(format!(
            "{}: this store follows no log",
            store.display()
        )));
    };
    threads()?.block_on(async {
        let (bucket, identity) = existing(place, Limits::default())
            .await
            .map_err(Error::Usage)?;
        if identity.epoch != log {
            return Err(Error::Usage(format!(
                "{} follows the log {log:016x}, and {place} is the log {:016x}",
                store.display(),
                identity.epoch
            )));
        }
        let before = bucket
            .examine(&identity)
            .await
            .map_err(|e| failed(place, e))?;
        let first = before.unreadable.first().map(|(first, _)| *first);
        if before.findings.is_empty() {
            return Err(Error::Usage(format!("{place}: the log lacks nothing")));
        }
        if first.is_some_and(|first| base.number < first) {
            return Err(Error::Usage(format!(
                "the store in {} is at snapshot {}, and group {} is the first that cannot be read",
                store.display(),
                base.number,
                first.unwrap_or(0)
            )));
        }
        same_history(&bucket, place, log, &base).await?;
        upload(&bucket, place, log, &base, (&*folder, base.number)).await?;
        Ok(format!(
            "the store in {} was uploaded as the base of snapshot {}; no update was given up",
            store.display(),
            base.number
        ))
    })
}

/// Rejects a store whose newest group differs from the log's group with the same number.
async fn same_history(bucket: &Bucket, place: &str, log: u64, base: &Base) -> Result<()> {
    let found = read_group(bucket, log, base.number).await;
    let found = found.map_err(|e| failed(place, e))?;
    match found.is_some_and(|group| base.hash != 0 && group.hash(log) != base.hash) {
        true => Err(Error::Usage(format!(
            "group {} of the log is not the one that this store has: it is another copy of the log",
            base.number
        ))),
        false => Ok(()),
    }
}

/// A temporary folder, removed on drop.
struct TemporaryFolder(std::path::PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn give_up_after(place: &str, number: u64) -> Result<String> {
    let found = diagnose(place)?;
    match found.whole_up_to {
        Some(last) if last == number => {}
        Some(last) => {
            return Err(Error::Usage(format!(
                "{place}: the last snapshot that can be read is {last}: say --give-up-after {last}"
            )));
        }
        None => {
            return Err(Error::Usage(format!(
                "{place}: no group is missing or damaged, so nothing needs to be given up"
            )));
        }
    }
    let work = TemporaryFolder(
        std::env::temp_dir().join(format!("jindou-repair-{:032x}", super::random())),
    );
    let store = work.0.clone();
    let to = RestoreTo::Snapshot(number);
    restore(place, &store, to, &CancelToken::new(), &Progress::default())?;
    fold_own_log(&store, &OpenOptions::default(), &Runtime::default())?;
    let (folder, _) = folder(&store)?;
    threads()?.block_on(async {
        let (bucket, identity) = existing(place, Limits::default()).await.map_err(Error::Usage)?;
        let log = identity.epoch;
        folder.follow(log)?;
        let keys = requests(&bucket, log, number).await.map_err(|e| failed(place, e))?;
        let now = bucket.examine(&identity).await.map_err(|e| failed(place, e))?;
        let still = now.whole_up_to();
        let now = now.survey;
        if (still, now.newest) != (Some(number), found.newest) {
            return Err(Error::Conflict(format!("{place}: the log was changed meanwhile; look again")));
        }
        let base = Base {
            number: now.newest.saturating_add(SPARE),
            hash: 0,
            keys,
        };
        upload(&bucket, place, log, &base, (&*folder, 0)).await?;
        Ok(format!(
            "the updates of groups {} to {} were given up: the log continues with snapshot {}, which is the store of snapshot {number}",
            number + 1,
            now.newest,
            base.number
        ))
    })
}

/// The newest request keys up to the group `last`, which make repeated requests recognizable.
async fn requests(
    bucket: &Bucket,
    log: u64,
    last: u64,
) -> std::result::Result<Vec<KnownKey>, Failure> {
    let bases = bucket.bases(log).await?;
    let (mut base, mut known) = (None, Vec::new());
    for number in bases.into_iter().rev().filter(|base| *base <= last) {
        if let Ok((_, whole)) = bucket.examine_base(log, number).await? {
            (base, known) = (Some(number), whole.keys);
            break;
        }
    }
    let first = base.unwrap_or(0).saturating_add(1);
    let each = |group: Group, _| {
        let number = group.number;
        let records = group.records.iter();
        known.extend(records.map(|record| KnownKey::of(record, number)));
        if known.len() > 2 * REQUESTS {
            known.drain(..known.len() - REQUESTS);
        }
        Ok::<(), ()>(())
    };
    if first <= last {
        let _ = bucket.read_groups(log, first..=last, 0, each).await?;
    }
    Ok(known)
}
