//! Uploads of bases, one at a time. If a newer base is saved before an upload starts, the newer one is uploaded
//! instead.

use crate::application::{Application, Report, ShardFiles};
use crate::blocking::blocking;
use crate::bucket::{BaseFiles, Bucket, Failure};
use crate::driver::{Done, Driver};
use crate::machine::{Base, Event};
use crate::peers::Peers;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Shortest and longest delay before a failed upload or merge is repeated.
pub(crate) const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// A base to upload, and its files once they are open. A repeated attempt uses the same content, so that parts uploaded
/// by the first attempt are found under their names.
pub(crate) struct Upload {
    base: Base,
    files: Option<Arc<dyn BaseFiles>>,
}

impl From<Base> for Upload {
    fn from(base: Base) -> Self {
        Self { base, files: None }
    }
}

impl Upload {
    /// Closes the files on a blocking thread, since closing large unlinked files takes long.
    fn close(self) {
        if self.files.is_some() {
            tokio::task::spawn_blocking(move || drop(self));
        }
    }
}

/// The running upload, and the one to start next.
pub(crate) struct Uploads {
    /// Number of the base that is being uploaded.
    running: Option<u64>,
    /// The next upload: the base that the log begins with, a base saved during another upload, or a base whose upload
    /// failed.
    next: Option<Upload>,
    /// Number of the newest base that was saved locally.
    saved: u64,
    /// Delay after the next failure.
    pause: Duration,
    /// True while a repeated attempt waits for its delay.
    waits_for_retry: bool,
}

impl Uploads {
    pub fn new(first: Option<Base>) -> Self {
        Self {
            running: None,
            next: first.map(Upload::from),
            saved: 0,
            pause: AGAIN.0,
            waits_for_retry: false,
        }
    }

    /// True while the base that the log begins with is not uploaded yet.
    pub fn is_first(&self) -> bool {
        let first = self.running == Some(0);
        first || self.next.as_ref().is_some_and(|next| next.base.number == 0)
    }
}

/// Uploads those of the given shards of a base that the bucket does not have. Returns true if the base is already
/// complete.
///
/// # Errors
/// As [`Bucket::upload_shard`].
pub async fn upload_missing(
    bucket: &Bucket,
    (epoch, number, start): (u64, u64, u64),
    files: ShardFiles,
) -> Result<bool, Failure> {
    if bucket.bases(epoch).await?.contains(&number) {
        return Ok(true);
    }
    let there = bucket.shards(epoch, number).await?;
    for (shard, files) in files {
        if there.iter().all(|s| s.shard != shard) {
            let place = (epoch, number, start);
            bucket.upload_shard(place, shard, files).await?;
        }
    }
    Ok(false)
}

/// Reason why an upload ended without creating a base.
pub(crate) enum Failed {
    /// The local store was saved with a later number in the meantime.
    FilesReplaced,
    Report(Report),
}

impl<A: Application, P: Peers> Driver<A, P> {
    /// Uploads the local store if its last group is still the base's. If another upload is running, this one starts
    /// after it.
    pub(crate) fn upload(&mut self, base: Base) {
        let uploads = &mut self.uploads;
        let number = base.number;
        if uploads.running == Some(number) {
            return;
        }
        if (uploads.next.as_ref()).is_none_or(|next| next.base.number < number)
            && let Some(before) = uploads.next.replace(base.into())
        {
            before.close();
        }
        self.upload_next();
    }

    /// Starts the next upload, unless one is running or the bucket already has a base that is as new.
    pub(crate) fn upload_next(&mut self) {
        if self.uploads.running.is_some() {
            return;
        }
        let Some(mut upload) = self.uploads.next.take() else {
            return;
        };
        let number = upload.base.number;
        if self
            .machine
            .newest_base()
            .is_some_and(|newest| newest >= number)
        {
            self.uploads.pause = AGAIN.0;
            return upload.close();
        }
        self.uploads.running = Some(number);
        let (bucket, epoch, start) = (self.bucket.clone(), self.epoch, self.me.start);
        let store = self.store.clone();
        self.spawn(async move {
            let begun = Instant::now();
            let files = match upload.files.clone() {
                Some(files) => Ok(Some(files)),
                None => blocking(move || store.files(number)).await,
            };
            let failed = match files {
                Ok(Some(files)) => {
                    upload.files = Some(files.clone());
                    match bucket.upload(epoch, start, &upload.base, files).await {
                        Ok(()) => return Some(Done::Uploaded(number)),
                        Err(e) => Failed::Report(Report::Bucket("uploading a base", e)),
                    }
                }
                Ok(None) => Failed::FilesReplaced,
                Err(e) => Failed::Report(Report::Disk(e.to_string())),
            };
            Some(Done::UploadFailed(upload, failed, begun.elapsed()))
        });
    }

    /// Uploads this server's share of the shards of a base, and later those that other servers should have uploaded and
    /// did not.
    pub(crate) fn upload_shards(&mut self, number: u64) {
        let (bucket, store) = (self.bucket.clone(), self.store.clone());
        let place = (self.epoch, number, self.me.start);
        self.spawn(async move {
            let mut pause = AGAIN.0;
            loop {
                let of = store.clone();
                let files = match blocking(move || of.shard_files(number)).await {
                    Ok(Some(files)) => files,
                    Ok(None) => return None,
                    Err(e) => return Some(Done::Report(Report::Disk(e.to_string()))),
                };
                match upload_missing(&bucket, place, files).await {
                    Ok(true) => return None,
                    Ok(false) => pause = AGAIN.0,
                    Err(e) => {
                        store.report(Report::Bucket("uploading a shard", e));
                        pause = (pause * 2).min(AGAIN.1);
                    }
                }
                tokio::time::sleep(pause).await;
            }
        });
    }

    pub(crate) fn uploaded(&mut self, number: u64) {
        (self.uploads.running, self.uploads.pause) = (None, AGAIN.0);
        self.pending_events.push_back(Event::Uploaded(number));
        // The new base may make an older one unnecessary, so trim again. The machine's limit for trimming stays the
        // same.
        self.trim(self.trim_to);
        self.upload_next();
    }

    /// Schedules another attempt after an upload that failed after `took`. That attempt may have to send everything
    /// again, so the delay is at least `took`.
    pub(crate) fn upload_failed(&mut self, upload: Upload, failed: Failed, took: Duration) {
        let number = upload.base.number;
        let uploads = &mut self.uploads;
        uploads.running = None;
        match uploads.next {
            Some(_) => upload.close(),
            None => uploads.next = Some(upload),
        }
        self.use_newest_save();
        let uploads = &mut self.uploads;
        match failed {
            // A later save has replaced the files. If that save is not known here yet (next case), its completion will
            // start the next upload.
            Failed::FilesReplaced if uploads.saved > number => return self.upload_next(),
            Failed::FilesReplaced => {}
            Failed::Report(report) => self.store.report(report),
        }
        if std::mem::replace(&mut uploads.waits_for_retry, true) {
            return;
        }
        let pause = uploads.pause.max(took);
        uploads.pause = (uploads.pause * 2).min(AGAIN.1);
        self.spawn(async move {
            tokio::time::sleep(pause).await;
            Some(Done::UploadAgain)
        });
    }

    pub(crate) fn upload_again(&mut self) {
        self.uploads.waits_for_retry = false;
        self.upload_next();
    }

    /// Records that the local store was saved with this number, and updates the next upload.
    pub(crate) fn saved(&mut self, number: u64) {
        self.uploads.saved = number;
        self.use_newest_save();
        self.pending_events.push_back(Event::Merged(number));
    }

    /// Replaces the next upload by the newest saved base, since files of an older one may be gone.
    fn use_newest_save(&mut self) {
        let saved = self.uploads.saved;
        if let Some(next) = &mut self.uploads.next
            && next.base.number < saved
        {
            std::mem::replace(next, self.machine.base(saved).into()).close();
        }
    }
}
