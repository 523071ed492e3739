//! Orderly shutdown: the last work that only this server can do for the log.

use crate::application::{Application, Report};
use crate::bucket::{Failure, Put};
use crate::driver::Driver;
use crate::machine::Name;
use crate::peers::Peers;
use bytes::Bytes;
use futures_util::StreamExt;
use std::collections::BTreeSet;
use std::time::Duration;

/// Time limit for restoring groups and writing the last entry together.
const LAST_WORK: Duration = Duration::from_secs(3);
/// Groups that are restored concurrently.
const AT_ONCE: usize = 8;

impl<A: Application, P: Peers> Driver<A, P> {
    /// Restores groups that the log has lost, and writes the newest group number into this server's entry, for servers
    /// that start later.
    pub(crate) async fn shut_down(&mut self) {
        // Abort running tasks: a write of an older entry could overwrite the last one.
        self.tasks.abort_all();
        let end = tokio::time::Instant::now() + LAST_WORK;
        // Half of the time is reserved for the entry.
        let written = tokio::time::timeout(LAST_WORK / 2, self.restore_lost_groups()).await;
        let noted = tokio::time::timeout_at(end, self.write_final_entry()).await;
        for (what, done) in [
            ("looking for lost groups at the end", written.ok()),
            ("the last entry in servers/", noted.ok()),
        ] {
            if let Err(failure) = done.unwrap_or_else(|| Err(Failure::late())) {
                self.store.report(Report::Bucket(what, failure));
            }
        }
    }

    /// Restores the objects of lost groups after the newest base, as far as this server has them in memory.
    async fn restore_lost_groups(&mut self) -> Result<(), Failure> {
        let last = self.machine.committed();
        if !self.machine.may_write_back() {
            return Ok(());
        }
        let base = self.machine.newest_base().unwrap_or(0);
        let mut listing = self.bucket.list(self.epoch, base, true).await?;
        let (unusable_bases, bucket) = (self.unusable_bases.clone(), self.bucket.clone());
        unusable_bases
            .remove_from(&bucket, self.epoch, &mut listing, true)
            .await;
        let parsed = |text: &String| Name::parse(self.epoch, text);
        let base = listing
            .bases
            .iter()
            .filter_map(parsed)
            .fold(base, |newest, name| match name {
                Name::Base(number) => newest.max(number),
                _ => newest,
            });
        let mut lost: BTreeSet<u64> = match last.checked_sub(base) {
            // Only recent groups are checked: older ones are not in memory.
            Some(count) => (last - count.min(MOST)..=last)
                .filter(|n| *n > base)
                .collect(),
            None => return Ok(()),
        };
        for name in listing.log.iter().filter_map(parsed) {
            match name {
                Name::Group(number) => drop(lost.remove(&number)),
                Name::Span(first, last) => lost.retain(|number| !(first..=last).contains(number)),
                Name::Base(_) => {}
            }
        }
        let mut groups = Vec::new();
        for number in lost {
            groups.extend(self.apply_queue.span(number, number).into_iter().flatten());
        }
        let puts = groups.into_iter().map(|group| {
            let (bucket, epoch) = (self.bucket.clone(), self.epoch);
            async move {
                let name = Name::Group(group.number).text(epoch);
                let bytes = group
                    .write(epoch)
                    .map_err(|e| Failure::Refused(e.to_string()))?;
                match bucket.create(&name, Bytes::from_owner(bytes)).await {
                    Put::Created => Ok(Some(name)),
                    Put::Exists => Ok(None),
                    Put::Failed(failure) => Err(failure),
                }
            }
        });
        let mut puts = std::pin::pin!(futures_util::stream::iter(puts).buffered(AT_ONCE));
        while let Some(put) = puts.next().await {
            if let Some(name) = put? {
                self.store.report(Report::WrittenBack(name));
            }
        }
        Ok(())
    }

    /// Writes the newest known group into this server's entry, unless the entry belongs to another process.
    async fn write_final_entry(&mut self) -> Result<(), Failure> {
        // Write the entry even if nothing has changed: an earlier write may not have completed.
        self.me.newest = self.me.newest.max(self.machine.newest_known());
        match self.bucket.entry_of(&self.me.name).await? {
            Some(there) if there.start != self.me.start => Ok(()),
            Some(_) | None => self.bucket.write_entry(&self.me).await,
        }
    }
}

/// Number of groups before the last one that are checked for loss at most.
const MOST: u64 = 100_000;
