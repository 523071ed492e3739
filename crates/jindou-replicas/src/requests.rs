//! Requests to the bucket that the machine's actions require.

use crate::application::{Application, Report};
use crate::blocking::blocking;
use crate::bucket::{Failure, Put};
use crate::driver::{Done, Driver};
use crate::machine::{Blob, Event, Fetch, Fetched, write_span};
use crate::peers::Peers;
use bytes::Bytes;
use std::sync::atomic::Ordering::Relaxed;

impl<A: Application, P: Peers> Driver<A, P> {
    pub(crate) fn put(&mut self, number: u64, attempt: u32, bytes: Blob) {
        let (bucket, epoch) = (self.bucket.clone(), self.epoch);
        let figures = self.inbox.figures.clone();
        self.spawn(async move {
            let name = crate::machine::Name::Group(number).text(epoch);
            let begun = tokio::time::Instant::now();
            let put = bucket.create(&name, Bytes::from_owner(bytes)).await;
            figures.puts.fetch_add(1, Relaxed);
            let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            figures.put_micros.fetch_add(micros, Relaxed);
            let event = Event::Put(number, attempt, put.result());
            Some(match put {
                Put::Failed(failure) => Done::Failed(event, "putting a group", failure),
                _ => Done::Event(event),
            })
        });
    }

    pub(crate) fn list(&mut self, listing_id: u64, after: u64, all: bool) {
        let (bucket, epoch, unusable_bases) =
            (self.bucket.clone(), self.epoch, self.unusable_bases.clone());
        let sender = self.sender.clone();
        self.inbox.figures.listings.fetch_add(1, Relaxed);
        self.spawn(async move {
            Some(match bucket.list(epoch, after, all).await {
                Ok(mut listing) => {
                    let found = unusable_bases
                        .remove_from(&bucket, epoch, &mut listing, all)
                        .await;
                    if let Some(why) = found {
                        let _ = sender.send(Done::Report(Report::Base(why)));
                    }
                    Done::Event(Event::Listed(listing_id, Some(listing)))
                }
                Err(failure) => Done::Failed(Event::Listed(listing_id, None), "listing", failure),
            })
        });
    }

    /// Reads a group or a span. Postponed while too many bytes of groups wait to be applied.
    pub(crate) fn fetch(&mut self, fetch: Fetch) {
        match self.apply_queue.is_full() {
            true => self.fetches.push_back(fetch),
            false => self.begin_fetch(fetch),
        }
    }

    pub(crate) fn begin_fetch(&mut self, fetch: Fetch) {
        let (bucket, epoch) = (self.bucket.clone(), self.epoch);
        self.spawn(async move {
            Some(match bucket.fetch(epoch, fetch).await {
                Ok(fetched) => Done::Event(Event::Fetched(fetch, fetched)),
                Err(failure) => {
                    let event = Event::Fetched(fetch, Fetched::Unknown);
                    Done::Failed(event, "reading a group", failure)
                }
            })
        });
    }

    /// Restores the object of a group that the log has lost. If the group is no longer in memory, merges and uploads the
    /// store, which contains that group.
    pub(crate) fn write_back(&mut self, number: u64) {
        let Some(group) = self
            .apply_queue
            .span(number, number)
            .and_then(|mut all| all.pop())
        else {
            if !self.saving {
                self.merge_for_upload();
            }
            return;
        };
        let (bucket, epoch) = (self.bucket.clone(), self.epoch);
        self.spawn(async move {
            let bytes = group.write(epoch).ok()?;
            let name = crate::machine::Name::Group(number).text(epoch);
            let report = match bucket.create(&name, Bytes::from_owner(bytes)).await {
                Put::Created => Report::WrittenBack(name),
                Put::Exists => return None,
                Put::Failed(failure) => Report::Bucket("writing a lost group back", failure),
            };
            Some(Done::Report(report))
        });
    }

    /// Merges the store, so that a new base is uploaded.
    fn merge_for_upload(&mut self) {
        if self.store.shards().is_empty() {
            self.upload_saved = true;
            return self.save(None);
        }
        self.saving = true;
        let store = self.store.clone();
        self.spawn(async move {
            let merged = blocking(move || store.merge_everywhere()).await;
            Some(Done::MergedEverywhere(merged))
        });
    }

    pub(crate) fn span(&mut self, first: u64, last: u64) {
        let Some(groups) = self.apply_queue.span(first, last) else {
            return;
        };
        let (bucket, epoch) = (self.bucket.clone(), self.epoch);
        self.spawn(async move {
            let write = move || {
                let groups: Result<Vec<Blob>, _> =
                    groups.iter().map(|group| group.write(epoch)).collect();
                groups.map(|groups| write_span(&groups))
            };
            let bytes = tokio::task::spawn_blocking(write).await.ok()?.ok()?;
            let put = bucket.create_span(epoch, first, last, Bytes::from_owner(bytes));
            match put.await {
                Put::Failed(failure) => {
                    Some(Done::Report(Report::Bucket("putting a span", failure)))
                }
                _ => None,
            }
        });
    }

    /// Deletes old bases, and those groups and spans up to `number` that the remaining bases do not need.
    pub(crate) fn trim(&mut self, number: u64) {
        self.trim_to = self.trim_to.max(number);
        if std::mem::replace(&mut self.trimming, true) {
            // The trim that starts after the running one includes this number.
            return;
        }
        let (bucket, epoch) = (self.bucket.clone(), self.epoch);
        let numbers = (self.trim_to, self.trimmed);
        let (newest, keep) = (self.machine.committed(), self.keep);
        self.spawn(async move {
            let result = bucket.forget(epoch, numbers, newest, keep).await;
            Some(Done::Trimmed(result))
        });
    }

    /// Writes the newest known group into this server's entry, so that servers that start later know that it existed.
    pub(crate) fn record_newest(&mut self) {
        self.me.newest = self.machine.newest_known();
        let (bucket, me) = (self.bucket.clone(), self.me.clone());
        self.spawn(async move {
            // Errors are ignored here; the next refresh of the entry reports them.
            if bucket
                .server(&me.name)
                .await
                .is_some_and(|there| there.start == me.start)
            {
                let _ = bucket.write_entry(&me).await;
            }
            Some(Done::EntryWritten)
        });
    }

    pub(crate) fn list_servers(&mut self) {
        self.me.newest = self.me.newest.max(self.machine.newest_known());
        let (bucket, me) = (self.bucket.clone(), self.me.clone());
        self.spawn(async move {
            // If another process uses this name, its entry must not be overwritten: the entry is how that process is
            // detected.
            if let Some(there) = bucket.server(&me.name).await
                && there.start != me.start
            {
                return Some(Done::Servers(Ok(vec![there])));
            }
            if let (Ok(None), Some(log)) = (bucket.identity().await, me.log.clone())
                && let Err(why) = bucket.begin_as(log).await
            {
                return Some(Done::Servers(Err(Failure::Unknown(why))));
            }
            Some(Done::Servers(bucket.servers(&me).await))
        });
    }
}
