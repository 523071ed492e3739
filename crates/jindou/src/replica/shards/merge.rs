//! This server's part in merges by all servers, and committing them.

use super::{LogFolder, ShardFolder};
use crate::replica::notes::write_durably;
use jindou_cluster::servers::Holding;
use jindou_log::{Directory, Files};
use jindou_model::{Error, Invariant, Progress, Result, private};
use jindou_replicas::{Base as LogBase, now};
use jindou_store::directory::{BaseLocation, MANIFEST, NEXT_MANIFEST};
use jindou_store::shard::{Cluster, shard_folder};
use jindou_store::{Base, MergeCommitted, ShardFiles, ShardMerge, ShardResult, Snapshot};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a merge polls for the results of other servers.
const POLL: Duration = Duration::from_millis(20);
/// Shortest time between two attempts to write a merge.
const RETRY: Duration = Duration::from_secs(1);
/// Longest time for which applying the log waits for this server's files of a committed merge.
const OWN_FILES: Duration = Duration::from_secs(3600);

/// Encodes the result of a shard's merge for other servers: the hash, then the statistics.
pub(super) fn result_to_bytes(result: &ShardResult) -> Vec<u8> {
    let mut out = result.hash.to_le_bytes().to_vec();
    out.extend_from_slice(&result.statistics);
    out
}

fn result_of_bytes(bytes: &[u8]) -> Option<ShardResult> {
    let (hash, statistics) = bytes.split_first_chunk()?;
    Some(ShardResult {
        hash: u64::from_le_bytes(*hash),
        statistics: statistics.to_vec(),
    })
}

impl ShardFolder {
    /// File with the results of this server's shards in the merge that made a base.
    fn results_path(&self, number: u64) -> Result<PathBuf> {
        let place = BaseLocation::find(&self.dir)?.number();
        Ok(self.notes.merge_path(place, number))
    }

    /// Writes this server's part of the new base, and completes the base once the results of all shards are known.
    pub(super) fn write_base(&self, contained: &LogBase, snapshot: &Snapshot) -> Result<()> {
        let number = snapshot.number();
        let Some(open) = snapshot.open_merge() else {
            return Err(Error::Internal("a merge that was not started".into()));
        };
        let cluster = self.cluster()?;
        let bases = self.bases_of(snapshot, &cluster)?;
        let files = Opened::files(&self.dir, &self.held(), &cluster)?;
        let (progress, files) = (Progress::default(), files.of(&self.dir));
        let write =
            || ShardMerge::write(&files, snapshot, &bases, open.plan, &self.merge, &progress);
        let merge = loop {
            match write() {
                // The merge is the same whenever it is made.
                Err(error @ Error::Shard { .. }) => self.wait_for_holders(&error)?,
                written => break written?,
            }
        };
        let own = merge
            .results()
            .map(|(s, r)| (s, r.clone()))
            .collect::<Vec<_>>();
        let bytes = own.iter().map(|(s, r)| (*s, result_to_bytes(r))).collect();
        self.save_results(number, &own)?;
        self.members.set_written(number, bytes);
        let committed = self.all_results(number, cluster.shards, &own)?;
        let place = BaseLocation::find(&self.dir)?.number();
        let log = self.state().log;
        let log = log.invariant("a store that merges by the log follows it");
        self.notes.write(place, number, (log, contained))?;
        let merging = merge.finish(&files, &committed, &self.merge)?;
        merging.remove_replaced_in(&files.shards);
        self.notes.remove_others(place, number);
        let bases = Arc::new(merging.bases().to_vec());
        let base = self.serve(bases, number, contained.number);
        let others = self.others(&base)?;
        let mut state = self.state();
        state.report = merging.report().clone();
        state.done = Some((Arc::new(merging), others));
        Ok(())
    }

    /// Waits after a failure to read another shard: some time, and until each shard has a connected holder. There may be
    /// none just after a start, or while all holders are down.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the server stops.
    fn wait_for_holders(&self, error: &Error) -> Result<()> {
        (self.report)(&format!(
            "{error}; the merge here waits for a server that holds it"
        ));
        let begun = Instant::now();
        let lacks_holder = || {
            self.members
                .figures()
                .iter()
                .any(|shard| shard.holders.is_empty())
        };
        while begun.elapsed() < RETRY || lacks_holder() {
            self.stop.check()?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// The bases that a snapshot reads, indexed by shard; `None` for shards that this server does not hold.
    fn bases_of(&self, snapshot: &Snapshot, cluster: &Cluster) -> Result<Vec<Option<Arc<Base>>>> {
        let number = snapshot.base().number();
        let found = self.members.bases(number);
        let found = found.filter(|bases| bases.len() == cluster.shards as usize);
        found.map(|bases| bases.to_vec()).ok_or_else(|| {
            Error::Internal(format!("base {number} of a snapshot is not open any more"))
        })
    }

    /// Merge results of all shards, collected from this server, the other servers, or the log; `None` if no connected
    /// server has some shard's result, yet or any more.
    fn results(
        &self,
        number: u64,
        shards: u32,
        own: &[(u32, ShardResult)],
    ) -> Option<MergeCommitted> {
        if let Some(of_log) = self.committed(number) {
            return Some(of_log);
        }
        let of_shard = |shard: u32| match own.iter().find(|(s, _)| *s == shard) {
            Some((_, result)) => Some(result.clone()),
            None => {
                let bytes = self.members.merge_result(number, shard, &self.stop);
                bytes.as_deref().and_then(result_of_bytes)
            }
        };
        Some(MergeCommitted {
            merged: number,
            shards: (0..shards).map(of_shard).collect::<Option<_>>()?,
        })
    }

    /// Like [`Self::results`], but waits until all results are available.
    fn all_results(
        &self,
        number: u64,
        shards: u32,
        own: &[(u32, ShardResult)],
    ) -> Result<MergeCommitted> {
        loop {
            if let Some(all) = self.results(number, shards, own) {
                return Ok(all);
            }
            self.stop.check()?;
            std::thread::sleep(POLL);
        }
    }

    /// Results of the merge that made base `number`, if that merge is already committed.
    pub(super) fn committed(&self, number: u64) -> Option<MergeCommitted> {
        let state = self.state();
        state.committed.clone().filter(|c| c.merged == number)
    }

    /// Commits a merge. Returns the snapshot over the new base, and the log record. If `waits` is set, first waits
    /// until this server's files of the new base are complete.
    pub(super) fn commit(
        &self,
        head: &Snapshot,
        committed: &MergeCommitted,
        waits: bool,
    ) -> Result<(Snapshot, Vec<u8>)> {
        let number = committed.merged;
        if head.base().number() >= number {
            self.check_own(committed)?;
            return head.commit_merge(committed);
        }
        let begun = Instant::now();
        let mut state = self.state();
        state.committed = Some(committed.clone());
        loop {
            let done = state.done.clone();
            if let Some((merging, others)) = done.filter(|(m, _)| m.base().number() == number) {
                drop(state);
                self.check_own(committed)?;
                return merging.rebase_shards(head, others)?.commit_merge(committed);
            }
            if !waits || begun.elapsed() >= OWN_FILES {
                let why = "this server has not completed its files of the merge";
                return Err(Error::external(why));
            }
            if let Some(why) = &state.failed {
                return Err(Error::external(format!("the merge failed here: {why}")));
            }
            self.stop.check()?;
            let waited = self.changed.wait_timeout(state, POLL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Checks that this server's shards of a base have the results that the log committed. A shard that differs loses
    /// its manifest, so that it is received again at the next start.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Io`].
    fn check_own(&self, committed: &MergeCommitted) -> Result<()> {
        for (shard, own) in self.read_results(committed.merged)? {
            if committed.shards.get(shard as usize) == Some(&own) {
                continue;
            }
            let folder = self.dir.join(shard_folder(shard));
            // A shard without its manifest counts as missing.
            for name in [MANIFEST, NEXT_MANIFEST] {
                match std::fs::remove_file(folder.join(name)) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::io(folder.join(name), e));
                    }
                    _ => {}
                }
            }
            return Err(Error::damaged(
                folder,
                "its files of the last merge are not those of the other servers; start the server again, and it receives the shard \
                 from the log",
            ));
        }
        Ok(())
    }

    /// The results of the open merge, once this server should propose to commit it.
    pub(super) fn result_of_merge(
        &self,
        number: u64,
        is_writer: bool,
    ) -> Result<Option<MergeCommitted>> {
        let shards = self.cluster()?.shards;
        let members = self.members.members().into_iter();
        let connected = members.filter_map(|m| m.holdings);
        let open = |all: Vec<Holding>| -> Vec<(u32, u64)> {
            let open = all.into_iter().filter(|h| h.is_open);
            open.map(|h| (h.shard, h.base)).collect()
        };
        let servers = std::iter::once(self.members.holdings()).chain(connected);
        let servers: Vec<_> = servers.map(open).collect();
        let mut state = self.state();
        let base = (number, shards);
        let due = (state.bases).proposes_commit(base, &servers, is_writer, now());
        drop(state);
        if !due {
            return Ok(None);
        }
        let own = self.read_results(number)?;
        Ok(self.results(number, shards, &own))
    }

    fn save_results(&self, number: u64, results: &[(u32, ShardResult)]) -> Result<()> {
        let mut out = number.to_le_bytes().to_vec();
        for (shard, result) in results {
            let bytes = result_to_bytes(result);
            out.extend_from_slice(&shard.to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(&bytes);
        }
        self.notes.folder()?;
        write_durably(&self.results_path(number)?, &out)
    }

    /// Merge results of this server's shards of a base; empty if the file is missing or belongs to another base.
    pub(super) fn read_results(&self, number: u64) -> Result<Vec<(u32, ShardResult)>> {
        let path = self.results_path(number)?;
        let bytes = match private::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io(path, e)),
        };
        let mut all = Vec::new();
        let Some(mut rest) = bytes.strip_prefix(&number.to_le_bytes()) else {
            return Ok(all);
        };
        while let Some((shard, after)) = rest.split_first_chunk()
            && let Some((length, after)) = after.split_first_chunk()
            && let Ok(length) = usize::try_from(u64::from_le_bytes(*length))
            && let Some((result, after)) = after.split_at_checked(length)
        {
            let result = result_of_bytes(result);
            all.extend(result.map(|r| (u32::from_le_bytes(*shard), r)));
            rest = after;
        }
        Ok(all)
    }
}

/// Opened files of the shards in a folder, and of the root.
struct Opened {
    root: Directory,
    shards: Vec<Option<Directory>>,
}

impl Opened {
    fn files(dir: &Path, held: &[u32], cluster: &Cluster) -> Result<Self> {
        let open = |folder: &Path| Directory::open(folder).map_err(|e| Error::io(folder, e));
        let shards = (0..cluster.shards).map(|s| {
            let held = held.contains(&s);
            held.then(|| open(&dir.join(shard_folder(s)))).transpose()
        });
        Ok(Self {
            root: open(dir)?,
            shards: shards.collect::<Result<_>>()?,
        })
    }

    fn of<'f>(&'f self, dir: &'f Path) -> ShardFiles<'f> {
        let shard = |files: &'f Option<Directory>| files.as_ref().map(|f| f as &dyn Files);
        ShardFiles {
            dir,
            root: &self.root,
            shards: self.shards.iter().map(shard).collect(),
        }
    }
}
