//! Listings of the bucket.

use super::{Bucket, Failure, Lane, PAGE, failure, generic};
use crate::blocking::blocking;
use crate::machine::{Listing, Name};
use futures_util::StreamExt;
use object_store::{ObjectMeta, ObjectStoreExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Number of groups after the last known one that are requested by name before the whole log is listed. Such a request
/// is faster than a listing.
const NEAR: usize = 2;
/// As [`NEAR`], for a bucket in a directory.
const NEAR_IN_DIRECTORY: usize = 64;

impl Bucket {
    /// Metadata of the objects in a folder of the bucket whose names sort after `after`. Stops early and returns true
    /// if there are more than `most`.
    pub(super) async fn names(
        &self,
        folder: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<(Vec<ObjectMeta>, bool), Failure> {
        let limit = self.0.limits.request;
        let permit = self.permit(Lane::List, Instant::now() + limit).await?;
        let (store, prefix) = (self.0.store.clone(), self.key(folder));
        let after = after.map(|name| self.key(name));
        let anchor = self.0.anchor.clone();
        let (pages, mut page) = mpsc::channel(2);
        tokio::spawn(async move {
            let _permit = permit;
            // A missing directory would be listed as empty, so check its identity as well.
            let is_there = async || match anchor.clone() {
                Some(anchor) => anchor.is_there().await,
                None => Ok(()),
            };
            if let Err(e) = is_there().await {
                let _ = pages.send(Some(Err(e))).await;
                return;
            }
            let listed = match after {
                Some(after) => store.list_with_offset(Some(&prefix), &after),
                None => store.list(Some(&prefix)),
            };
            let mut chunks = listed.ready_chunks(PAGE);
            while let Some(chunk) = chunks.next().await {
                let chunk: object_store::Result<Vec<ObjectMeta>> = chunk.into_iter().collect();
                let failed = chunk.is_err();
                if pages.send(Some(chunk)).await.is_err() || failed {
                    return;
                }
            }
            let _ = pages.send(is_there().await.err().map(Err)).await;
        });
        let mut names = Vec::new();
        loop {
            match timeout(limit, page.recv()).await {
                Ok(Some(Some(Ok(chunk)))) => names.extend(chunk),
                Ok(Some(Some(Err(e)))) => return Err(failure(&e)),
                Ok(Some(None)) => return Ok((names, false)),
                Ok(None) => return Err(Failure::Unknown("the listing was dropped".into())),
                Err(_) => return Err(Failure::late()),
            }
            if names.len() > most {
                return Ok((names, true));
            }
        }
    }

    pub(super) async fn parsed(
        &self,
        epoch: u64,
        folder: &str,
        after: Option<Name>,
        most: usize,
    ) -> Result<(Vec<Name>, bool), Failure> {
        let after = after.map(|name| name.text(epoch));
        let (found, more) = self.names(folder, after.as_deref(), most).await?;
        let names = found.iter().filter_map(|meta| {
            let name = self.name(&meta.location)?;
            Name::parse(epoch, &name)
        });
        Ok((names.collect(), more))
    }

    /// Names of groups after number `after`, then names of bases. If there are very many groups, those contained in
    /// spans are omitted. Without `all`, names after the first missing group may be omitted.
    pub async fn list(&self, epoch: u64, after: u64, all: bool) -> Result<Listing, Failure> {
        let mut found = None;
        if !all && let Some(log) = self.near(epoch, after).await? {
            let bases = self.bases(epoch).await?;
            // Trimming goes up to the second newest base. So if no base is newer than `after`, no group after `after`
            // was ever trimmed.
            if bases.iter().all(|base| *base <= after) {
                found = Some((log, bases));
            }
        }
        let (log, bases) = match found {
            Some(found) => found,
            None => {
                let log = self.log(epoch, after, all).await?;
                let bases = self.bases(epoch).await?;
                let newest = bases.last().copied().unwrap_or(0);
                (
                    self.without_gaps(epoch, after.max(newest), log).await?,
                    bases,
                )
            }
        };
        let text = |names: Vec<Name>| names.into_iter().map(|name| name.text(epoch)).collect();
        Ok(Listing {
            log: text(log),
            bases: text(bases.into_iter().map(Name::Base).collect()),
        })
    }

    /// Completes a listing by existing groups after `after` that it lacks. A listing may lack some because a directory
    /// is not read atomically while other servers add files.
    async fn without_gaps(
        &self,
        epoch: u64,
        after: u64,
        mut log: Vec<Name>,
    ) -> Result<Vec<Name>, Failure> {
        for _ in 0..PAGE {
            let Some((first, _)) = missing(after, &log).next() else {
                break;
            };
            let name = Name::Group(first);
            if self.written(epoch, name).await?.is_none() {
                break;
            }
            log.push(name);
        }
        Ok(log)
    }

    /// Requests the groups after a number by name, one by one. Returns `None` if there are many. In a directory this is
    /// faster than reading all names, which takes 150 ms for a day of one update per second. In a bucket, a listing
    /// costs as much as twelve such requests.
    ///
    /// A group is created only after its predecessor. So after a missing group there are no further groups, unless the
    /// missing one was trimmed or lost. Lost groups are found by listings of all names.
    async fn near(&self, epoch: u64, after: u64) -> Result<Option<Vec<Name>>, Failure> {
        let end = Instant::now() + self.0.limits.request;
        let permit = self.permit(Lane::List, end).await?;
        let bucket = self.clone();
        let folder = self.folder().map(|folder| folder.join("log"));
        let most = match folder {
            Some(_) => NEAR_IN_DIRECTORY,
            None => NEAR,
        };
        let request = async move {
            // A network file system's client caches for a while that a name is missing. Opening the folder makes the
            // client ask the file server whether the folder has changed.
            let open = move || match folder.map(std::fs::File::open) {
                Some(Err(e)) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
                Some(opened) => Ok(opened.ok()),
                None => Ok(None),
            };
            let _opened = blocking(open).await.map_err(generic)?;
            let mut found = Vec::new();
            for number in (after..u64::MAX).take(most) {
                let name = Name::Group(number + 1);
                match bucket.0.store.head(&bucket.key(&name.text(epoch))).await {
                    Ok(_) => found.push(name),
                    Err(object_store::Error::NotFound { .. }) => return Ok(Some(found)),
                    Err(e) => return Err(e),
                }
            }
            Ok(None)
        };
        Ok(self.within(end, permit, request).await?.0)
    }

    /// Names of groups after a number. Spans are included if there are many groups or `all` is set, since a span may
    /// contain a lost group.
    async fn log(&self, epoch: u64, after: u64, all: bool) -> Result<Vec<Name>, Failure> {
        let (mut log, more) = (self.parsed(epoch, "log", Some(Name::Group(after)), PAGE)).await?;
        let mut spans = Vec::new();
        if more || all {
            let behind = Name::Span(u64::MAX, after);
            (spans, _) = (self.parsed(epoch, "span", Some(behind), usize::MAX)).await?;
            spans.sort_unstable();
        }
        if more {
            let mut reach = after;
            for span in &spans {
                if let Name::Span(first, last) = span
                    && *first <= reach.saturating_add(1)
                {
                    reach = reach.max(*last);
                }
            }
            let groups = Some(Name::Group(reach));
            (log, _) = self.parsed(epoch, "log", groups, usize::MAX).await?;
        }
        log.extend(spans);
        Ok(log)
    }
}

/// Ranges of groups after `after` that these names lack, up to the last group that they contain, as ascending pairs
/// (first number, last number).
pub(super) fn missing(after: u64, log: &[Name]) -> impl Iterator<Item = (u64, u64)> {
    let mut runs: Vec<(u64, u64)> = (log.iter())
        .filter_map(|name| match name {
            Name::Group(number) => Some((*number, *number)),
            Name::Span(first, last) => Some((*first, *last)),
            Name::Base(_) => None,
        })
        .collect();
    runs.sort_unstable();
    let mut end = after;
    runs.into_iter().filter_map(move |(first, last)| {
        let gap = (first > end.saturating_add(1)).then(|| (end + 1, first - 1));
        end = end.max(last);
        gap
    })
}

#[cfg(test)]
mod tests {
    use super::{Name, missing};

    #[test]
    fn missing_groups_are_found() {
        let of = |after, log: &[Name]| missing(after, log).collect::<Vec<_>>();
        assert!(of(3, &[]).is_empty());
        assert_eq!(of(3, &[Name::Group(4), Name::Group(7)]), [(5, 6)]);
        let log = [Name::Group(2), Name::Span(4, 9), Name::Group(6)];
        assert_eq!(of(0, &log), [(1, 1), (3, 3)]);
        assert!(of(5, &[Name::Group(2), Name::Group(6)]).is_empty());
        let end = u64::MAX;
        assert_eq!(of(end - 2, &[Name::Group(end)]), [(end - 1, end - 1)]);
        assert!(of(end, &[Name::Group(end)]).is_empty());
    }
}
