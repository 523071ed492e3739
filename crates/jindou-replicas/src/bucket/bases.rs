//! Bases: a base is the store after a certain group, uploaded in parts, with a document that lists the parts.
//!
//! The document is the object with the base's name and is created last, so a listed base is complete. Two uploads never
//! share a part, since the names of parts contain the base's number and a random number of the uploading process. So
//! parts of abandoned uploads can be recognised without a clock: their number is below that of the second newest base,
//! and no base lists them. [`bases_to_keep`] decides which bases are kept.

use super::known::{read_known, write_known};
use super::past::micros;
use super::shards::ShardInBase;
use super::{Bucket, Failure, Lane, PAGE, Put};
use crate::blocking::blocking;
use crate::machine::{Base, Name};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::ObjectMeta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The files of a local base.
pub trait BaseFiles: Send + Sync + 'static {
    /// Names and lengths in bytes of the files.
    fn files(&self) -> Vec<(String, u64)>;
    /// Number of shards whose files are uploaded by their holders ([`Bucket::upload_shard`]); 0 for an unsharded store.
    fn shards(&self) -> u32 {
        0
    }
    /// Reads bytes of a file from offset `at`, filling `bytes`.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    fn read(&self, file: &str, at: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Receives a store. If the value is dropped before [`Self::finish`], the local store is unchanged.
pub trait Incoming<S>: Send + 'static {
    /// Appends to a file. Files are received one after the other, each from its beginning. For an empty file, this is
    /// called once with no bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write(&mut self, file: &str, bytes: &[u8]) -> io::Result<()>;
    /// True if the files of this shard are wanted. Shards are received after all other files, with names that begin
    /// with `shard-N/`.
    fn wants(&self, shard: u32) -> bool {
        let _ = shard;
        true
    }
    /// Durably replaces the local store by the received one, and opens it.
    ///
    /// # Errors
    /// If that fails; the local store is then unchanged.
    fn finish(self: Box<Self>, base: &Base) -> io::Result<S>;
}

/// The document of a base.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BaseInBucket {
    /// Hash of this document, computed with this field set to 0.
    sum: u64,
    epoch: u64,
    /// Number of the last group that the base contains.
    pub number: u64,
    /// Random number of the process that uploaded the base.
    start: u64,
    /// Request keys remembered at this base, encoded (`known.rs`).
    keys: FileInBase,
    /// The store's files, without those of shards.
    pub files: Vec<FileInBase>,
    /// The shards with their files, in ascending order of shard numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardInBase>,
}

/// A file of a base.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileInBase {
    /// Name of the file.
    pub name: String,
    /// Length in bytes and hash of each part, in order.
    parts: Vec<(u64, String)>,
}

/// Largest size of a part in bytes.
const PART: u64 = 8 << 20;
/// Number of parts that are uploaded or downloaded concurrently.
const AT_ONCE: usize = 4;
/// Number of repeated attempts for each part.
const ATTEMPTS: u32 = 6;

impl BaseInBucket {
    /// Total size of the base in bytes, including the remembered request keys.
    pub fn bytes(&self) -> u64 {
        let shards = self.shards.iter().flat_map(|shard| &shard.files);
        let files = self.files.iter().chain([&self.keys]).chain(shards);
        files
            .flat_map(|file| &file.parts)
            .map(|(bytes, _)| bytes)
            .sum()
    }

    fn part(&self, file: usize, part: usize) -> String {
        part_name(self.epoch, self.number, self.start, file, part)
    }

    /// The folders that contain the base's parts.
    pub(super) fn folders(&self) -> BTreeSet<String> {
        let starts = self.shards.iter().map(|shard| shard.start);
        let starts = starts.chain([self.start]);
        let names = starts.map(|start| part_name(self.epoch, self.number, start, 0, 0));
        names
            .filter_map(|name| Some(name.rsplit_once('/')?.0.to_owned()))
            .collect()
    }

    /// Names and lengths in bytes of the base's parts.
    pub(super) fn all_parts(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let files = [&self.keys].into_iter().chain(&self.files).enumerate();
        let files = files.map(|(index, file)| (self.start, index, file));
        let shards = self.shards.iter().flat_map(|shard| {
            let files = shard.files.iter().enumerate();
            files.map(|(file, parts)| (shard.start, shard.index(file), parts))
        });
        files.chain(shards).flat_map(move |(start, index, file)| {
            let parts = file.parts.iter().enumerate();
            parts.map(move |(part, (length, _))| {
                let name = part_name(self.epoch, self.number, start, index, part);
                (name, *length)
            })
        })
    }

    fn sum(&self) -> Option<u64> {
        let unsummed = Self {
            sum: 0,
            ..self.clone()
        };
        Some(xxh3_64(&serde_json::to_vec(&unsummed).ok()?))
    }
}

pub(super) fn part_name(epoch: u64, number: u64, start: u64, file: usize, part: usize) -> String {
    format!("parts/{epoch:016x}-{number:016x}-{start:016x}/{file:06}-{part:08}")
}

impl Bucket {
    /// Numbers of the bases in the bucket, ascending.
    pub async fn bases(&self, epoch: u64) -> Result<Vec<u64>, Failure> {
        let (names, _) = self.parsed(epoch, "base", None, usize::MAX).await?;
        let mut numbers: Vec<u64> = names.into_iter().filter_map(Name::base).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Uploads a base. An existing base with this number is kept if it is complete; otherwise it is replaced.
    ///
    /// # Errors
    /// If a file cannot be read or a part cannot be put. The parts of the failed upload are deleted once later bases
    /// exist.
    pub async fn upload(
        &self,
        epoch: u64,
        start: u64,
        base: &Base,
        files: Arc<dyn BaseFiles>,
    ) -> Result<(), Failure> {
        let mut document = BaseInBucket {
            sum: 0,
            epoch,
            number: base.number,
            start,
            keys: FileInBase {
                name: String::new(),
                parts: Vec::new(),
            },
            files: Vec::new(),
            shards: Vec::new(),
        };
        let keys: Arc<dyn BaseFiles> = Arc::new(Memory(write_known(base)));
        let place = |index| (epoch, base.number, start, index);
        document.keys = self.upload_file(place(0), &keys, "", None).await?;
        for (index, (name, length)) in files.files().into_iter().enumerate() {
            let file = self
                .upload_file(place(index + 1), &files, &name, Some(length))
                .await?;
            document.files.push(file);
        }
        document.shards = self.all_shards(epoch, base.number, files.shards()).await?;
        document.sum = document.sum().unwrap_or_default();
        let bytes = serde_json::to_vec(&document).map_err(refused)?;
        let name = Name::Base(base.number).text(epoch);
        let bytes = Bytes::from(bytes);
        if self.create_with_retries(&name, bytes.clone()).await? == Put::Exists
            && self.examine_base(epoch, base.number).await?.is_err()
        {
            return self.replace(&name, bytes).await;
        }
        Ok(())
    }

    pub(super) async fn upload_file(
        &self,
        (epoch, number, start, index): (u64, u64, u64, usize),
        files: &Arc<dyn BaseFiles>,
        name: &str,
        length: Option<u64>,
    ) -> Result<FileInBase, Failure> {
        let length =
            length.unwrap_or_else(|| files.files().iter().map(|(_, length)| *length).sum());
        let count = length.div_ceil(PART);
        let puts = (0..count).map(|part| {
            let at = part * PART;
            let size = PART.min(length - at);
            let (files, file) = (files.clone(), name.to_owned());
            let object = part_name(epoch, number, start, index, part as usize);
            async move {
                let read = move || {
                    let mut bytes = vec![0; size as usize];
                    files.read(&file, at, &mut bytes).map(|()| bytes)
                };
                let bytes = blocking(read).await.map_err(refused)?;
                let hash = format!("{:032x}", xxh3_128(&bytes));
                let _ = self.create_with_retries(&object, bytes.into()).await?;
                Ok::<_, Failure>((size, hash))
            }
        });
        let mut puts = futures_util::stream::iter(puts).buffered(AT_ONCE);
        let mut parts = Vec::new();
        while let Some(part) = puts.next().await {
            parts.push(part?);
        }
        Ok(FileInBase {
            name: name.to_owned(),
            parts,
        })
    }

    /// Creates an object, and retries while the outcome is unknown.
    pub(super) async fn create_with_retries(
        &self,
        name: &str,
        bytes: Bytes,
    ) -> Result<Put, Failure> {
        Self::with_retries(|| async {
            match self.create_in(Lane::Bulk, name, bytes.clone()).await {
                Put::Failed(failure) => Err(failure),
                put => Ok(put),
            }
        })
        .await
    }

    /// Reads an object, and retries while the outcome is unknown.
    pub(super) async fn get_with_retries(
        &self,
        name: &str,
    ) -> Result<(Bytes, ObjectMeta), Failure> {
        Self::with_retries(|| self.get_in(Lane::Bulk, name)).await
    }

    /// Runs a request, and retries while its outcome is unknown.
    pub(super) async fn with_retries<T, F: Future<Output = Result<T, Failure>>>(
        mut ask: impl FnMut() -> F,
    ) -> Result<T, Failure> {
        let mut attempt = 0;
        loop {
            match ask().await {
                Err(Failure::Unknown(_)) if attempt < ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(Duration::from_millis(50) * (1 << attempt)).await;
                }
                result => return result,
            }
        }
    }

    /// Reads the document of a base.
    ///
    /// # Errors
    /// If the bucket fails, or the document is missing or damaged.
    pub async fn base(&self, epoch: u64, number: u64) -> Result<BaseInBucket, Failure> {
        let name = Name::Base(number).text(epoch);
        let (bytes, _) = self.get_with_retries(&name).await?;
        let document: Option<BaseInBucket> = serde_json::from_slice(&bytes).ok();
        let right =
            |d: &BaseInBucket| d.epoch == epoch && d.number == number && d.sum() == Some(d.sum);
        let damaged = || Failure::Lost(format!("{name} is damaged"));
        document.filter(right).ok_or_else(damaged)
    }

    /// Reads a base's number, hash and remembered request keys.
    ///
    /// # Errors
    /// If a part is missing or damaged.
    pub async fn known(&self, document: &BaseInBucket) -> Result<Base, Failure> {
        let mut keys = Vec::new();
        let mut parts = self.parts(document, (document.start, 0), &document.keys);
        while let Some(part) = parts.next().await {
            keys.extend_from_slice(&part?);
        }
        read_known(document.number, &keys)
            .ok_or_else(|| Failure::Lost(format!("{} is damaged", document.part(0, 0))))
    }

    /// Downloads a base, part by part in order, into `into`.
    ///
    /// # Errors
    /// If a part is missing or damaged, or cannot be written.
    pub async fn download<S: Send + 'static>(
        &self,
        document: &BaseInBucket,
        mut into: Box<dyn Incoming<S>>,
    ) -> Result<(Base, S), Failure> {
        let base = self.known(document).await?;
        for (i, file) in document.files.iter().enumerate() {
            let place = (document.start, i + 1);
            into = self
                .receive(document, place, (&file.name, file), into)
                .await?;
        }
        for of in &document.shards {
            // Asked only now, because the answer may depend on the files received before.
            if !into.wants(of.shard) {
                continue;
            }
            for (i, file) in of.files.iter().enumerate() {
                let name = format!("shard-{}/{}", of.shard, file.name);
                let place = (of.start, of.index(i));
                into = self.receive(document, place, (&name, file), into).await?;
            }
        }
        let finish = move || into.finish(&base).map(|store| (base, store));
        blocking(finish).await.map_err(refused)
    }

    /// Receives one file, part by part.
    async fn receive<S: Send + 'static>(
        &self,
        document: &BaseInBucket,
        place: (u64, usize),
        (name, file): (&str, &FileInBase),
        mut into: Box<dyn Incoming<S>>,
    ) -> Result<Box<dyn Incoming<S>>, Failure> {
        let mut parts = self.parts(document, place, file);
        let mut part = parts.next().await;
        loop {
            let bytes = part.transpose()?.unwrap_or_default();
            let name = name.to_owned();
            let write = move || into.write(&name, &bytes).map(|()| into);
            into = blocking(write).await.map_err(refused)?;
            part = parts.next().await;
            if part.is_none() {
                return Ok(into);
            }
        }
    }

    fn parts<'a>(
        &'a self,
        document: &'a BaseInBucket,
        (start, index): (u64, usize),
        file: &'a FileInBase,
    ) -> impl futures_util::Stream<Item = Result<Bytes, Failure>> + Unpin + 'a {
        let reads = file.parts.iter().enumerate();
        let reads = reads.map(move |(part, (length, hash))| async move {
            let name = part_name(document.epoch, document.number, start, index, part);
            let (bytes, _) = self.get_with_retries(&name).await.map_err(|e| match e {
                Failure::Missing => Failure::Lost(format!("{name} is missing")),
                failure => failure,
            })?;
            match bytes.len() as u64 == *length && format!("{:032x}", xxh3_128(&bytes)) == *hash {
                true => Ok(bytes),
                false => Err(Failure::Lost(format!("{name} is damaged"))),
            }
        });
        Box::pin(futures_util::stream::iter(reads).buffered(AT_ONCE))
    }

    /// Deletes old bases, and then old groups and spans. A base is old if no snapshot of the last `keep` needs it.
    /// Times are by the bucket's clock; the present time is taken from the object of `newest` (the newest known group),
    /// or of a later base. Groups and spans are deleted up to the first of `numbers`, and only if the oldest remaining
    /// base contains them. So no group after an existing base is ever trimmed.
    ///
    /// Returns the number up to which groups were trimmed. The second of `numbers` is the result of the previous call;
    /// if there is nothing more to trim, the log is not listed.
    ///
    /// # Errors
    /// If the bucket fails. The next call deletes the rest.
    pub async fn forget(
        &self,
        epoch: u64,
        numbers: (u64, u64),
        newest: u64,
        keep: Duration,
    ) -> Result<u64, Failure> {
        let (number, before) = numbers;
        let now = self.written(epoch, Name::Group(newest)).await?;
        let needless = self.delete_old_bases(epoch, now.unwrap_or(0), keep).await?;
        match needless.min(number) {
            number if number > before => self.trim(epoch, number).await.map(|()| number),
            _ => self.remove_staged().await.map(|()| before),
        }
    }

    /// Deletes bases that [`bases_to_keep`] does not keep, and the parts of deleted bases and of abandoned uploads.
    /// Returns the number up to which no groups are needed.
    async fn delete_old_bases(&self, epoch: u64, now: u64, keep: Duration) -> Result<u64, Failure> {
        let (found, _) = self.names("base", None, usize::MAX).await?;
        let mut bases: Vec<(u64, u64)> = (found.iter())
            .filter_map(|meta| {
                let name = Name::parse(epoch, &self.name(&meta.location)?)?;
                Some((name.base()?, micros(meta)))
            })
            .collect();
        bases.sort_unstable();
        let keep = u64::try_from(keep.as_micros()).unwrap_or(u64::MAX);
        let (to_keep, needless) = bases_to_keep(&bases, now, keep);
        let Some(second) = bases.len().checked_sub(2).map(|at| bases[at].0) else {
            return Ok(needless);
        };
        let old: Vec<String> = (bases.iter())
            .filter(|(number, _)| !to_keep.contains(number))
            .map(|(number, _)| Name::Base(*number).text(epoch))
            .collect();
        self.delete(&old).await?;
        let of = |number: u64| {
            let name = part_name(epoch, number, 0, 0, 0);
            name.split('-').take(2).collect::<Vec<_>>().join("-")
        };
        let (end, to_keep) = (of(second), to_keep.into_iter().map(of).collect::<Vec<_>>());
        let (parts, _) = self.names("parts", None, usize::MAX).await?;
        let mut old: Vec<String> = (parts.iter())
            .filter_map(|meta| self.name(&meta.location))
            .filter(|name| {
                let upload = &name[..name.len().min(end.len())];
                upload < &*end && !to_keep.iter().any(|kept| kept == upload)
            })
            .collect();
        old.sort_unstable();
        for names in old.chunks(PAGE) {
            self.delete(names).await?;
        }
        Ok(needless)
    }
}

/// Numbers of the bases to keep, ascending, and the number up to which no groups are needed. `bases` contains the
/// number and time of each base's document, by ascending number.
///
/// Kept are the two newest bases, and the newest base older than `keep` (the start), from which all later snapshots can
/// be restored. If no base is that old, the start is the oldest base. For restoring, one base and the groups after it
/// are enough, but the start can be deleted only when a newer base has become old enough to replace it. So at most one
/// base in between is kept, such that consecutive bases are at most `keep` apart unless none was uploaded for so long.
/// `now` and the documents' times are by the bucket's clock.
///
/// A base whose document is not older than that of a later base is not kept: its document was written so late that its
/// parts may have been deleted.
fn bases_to_keep(bases: &[(u64, u64)], now: u64, keep: u64) -> (Vec<u64>, u64) {
    let Some(second) = bases.len().checked_sub(2) else {
        return (bases.iter().map(|base| base.0).collect(), 0);
    };
    let now = bases.iter().fold(now, |now, base| now.max(base.1));
    let is_old = |time: u64| now.checked_sub(keep).is_some_and(|end| time <= end);
    // The bases whose documents were written in the order of their numbers, from the second newest backwards.
    let mut whole = vec![bases[second]];
    let mut earliest = bases[second].1.min(bases[second + 1].1);
    for base in bases[..second].iter().rev() {
        if base.1 < earliest {
            earliest = base.1;
            whole.push(*base);
        }
    }
    whole.reverse();
    let oldest = whole.iter().rposition(|base| is_old(base.1));
    let needless = oldest.map_or(0, |at| whole[at].0);
    let mut to_keep = vec![whole[oldest.unwrap_or(0)]];
    for pair in whole[oldest.unwrap_or(0)..].windows(2).skip(1) {
        let since = to_keep.last().map_or(0, |base| base.1);
        if pair[1].1.saturating_sub(since) > keep {
            to_keep.push(pair[0]);
        }
    }
    let mut to_keep: Vec<u64> = to_keep.into_iter().map(|base| base.0).collect();
    to_keep.extend(bases[second..].iter().map(|base| base.0));
    to_keep.dedup();
    (to_keep, needless)
}

fn refused(e: impl std::fmt::Display) -> Failure {
    Failure::Refused(e.to_string())
}

/// A single file that is in memory.
struct Memory(Vec<u8>);

impl BaseFiles for Memory {
    fn files(&self) -> Vec<(String, u64)> {
        vec![(String::new(), self.0.len() as u64)]
    }

    fn read(&self, _: &str, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let part = usize::try_from(at)
            .ok()
            .and_then(|at| self.0.get(at..)?.get(..bytes.len()));
        bytes.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::bases_to_keep;

    #[test]
    fn bases_that_stay() {
        // Without a base older than `keep`, the oldest is kept.
        assert_eq!(bases_to_keep(&[], 0, 10), (vec![], 0));
        assert_eq!(bases_to_keep(&[(5, 100)], 0, 10), (vec![5], 0));
        assert_eq!(bases_to_keep(&[(5, 100), (6, 101)], 0, 10), (vec![5, 6], 0));
        let many = [(5, 100), (6, 101), (7, 102), (8, 109)];
        assert_eq!(bases_to_keep(&many, 0, 10), (vec![5, 7, 8], 0));
        // The newest of the old bases is kept.
        assert_eq!(bases_to_keep(&many, 0, 8), (vec![6, 7, 8], 6));
        assert_eq!(bases_to_keep(&many, 0, 7), (vec![7, 8], 7));
        assert_eq!(bases_to_keep(&many, 0, 0), (vec![7, 8], 7));
        assert_eq!(bases_to_keep(&many, 110, 10), (vec![5, 7, 8], 5));
        assert_eq!(bases_to_keep(&many, 112, 10), (vec![7, 8], 7));
        assert_eq!(bases_to_keep(&many, 500, 10), (vec![7, 8], 7));
        // One base in between is kept, which will replace the oldest kept base later.
        let many = [(5, 100), (6, 105), (7, 109), (8, 111), (9, 114), (10, 115)];
        assert_eq!(bases_to_keep(&many, 0, 12), (vec![5, 8, 9, 10], 5));
        assert_eq!(bases_to_keep(&many, 0, 15), (vec![5, 9, 10], 5));
        // Bases whose documents were written after those of later bases are not kept: their parts may be missing.
        let many = [(5, 100), (6, 130), (7, 115), (8, 120), (9, 130)];
        assert_eq!(bases_to_keep(&many, 0, 10), (vec![8, 9], 8));
        assert_eq!(bases_to_keep(&many, 0, 12), (vec![7, 8, 9], 7));
        let many = [(5, 100), (6, 130), (7, 130), (8, 130)];
        assert_eq!(bases_to_keep(&many, 0, 10), (vec![5, 7, 8], 5));
    }

    /// A base in the simulated bucket: the time at which its document was put, and the time of its last group.
    struct Put {
        number: u64,
        time: u64,
    }

    #[test]
    fn every_moment_within_keep_has_its_base_and_groups_and_few_bases_stay() {
        let mut random = 1_u64;
        let mut below = |n: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        for run in 0..300 {
            let keep = 1 + below(400);
            let pause = 1 + below(2 * keep);
            let (mut now, mut number, mut trimmed) = (1000, 0, 0);
            // The log begins with a base 0.
            let mut there = vec![Put {
                number: 0,
                time: now,
            }];
            // The number of the newest group, from each time on.
            let mut groups: Vec<(u64, u64)> = vec![(now, 0)];
            for _ in 0..400 {
                now += below(pause);
                number += 1 + below(5);
                groups.push((now, number));
                let base = number;
                if below(2) == 0 {
                    // Other servers write during the upload.
                    now += below(5);
                    number += below(5);
                    groups.push((now, number));
                }
                there.push(Put {
                    number: base,
                    time: now,
                });
                if below(3) > 0 {
                    let bases: Vec<(u64, u64)> =
                        there.iter().map(|base| (base.number, base.time)).collect();
                    let (left, needless) = bases_to_keep(&bases, now * below(2), keep);
                    let newest = bases.len() - 2;
                    assert!(bases[newest..].iter().all(|b| left.contains(&b.0)));
                    assert!(
                        needless <= bases[newest].0,
                        "never behind the second newest"
                    );
                    assert!(left.len() <= 4, "{run}: {left:?} of {bases:?}, {keep}");
                    assert!(left.contains(&needless) || needless == 0);
                    there.retain(|base| left.contains(&base.number));
                    trimmed = trimmed.max(needless);
                }
                assert!(there[0].number >= trimmed, "a base without its groups");
                // For times within `keep`, a base and all groups after it must exist.
                for age in [0, keep / 2, keep] {
                    let moment = (now - age.min(now)).max(1000);
                    let at = groups.partition_point(|group| group.0 <= moment);
                    let wanted = groups[at - 1].1;
                    let base = there.iter().rev().find(|base| base.number <= wanted);
                    assert!(base.is_some_and(|base| base.number >= trimmed), "{run}");
                }
            }
            // Old bases are deleted eventually if new ones come often.
            if pause < keep / 4 {
                assert!(
                    there[0].time + 2 * keep + pause + 10 >= now - 4 * (pause + 5),
                    "{run}"
                );
            }
        }
    }
}
