//! Listings.

use super::{Bucket, Failure, Lane, PAGE, failure, generic};
use futures_util::StreamExt;
use jindou_replicas::{Listing, Name};
use object_store::{ObjectMeta, ObjectStoreExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Groups behind the own end that are looked for by their names: one takes less time than a listing.
const NEAR: usize = 1;
/// The same in a directory.
const NEAR_IN_DIRECTORY: usize = 64;

impl Bucket {
    /// Names of objects of a folder of the bucket, of those after `after` in the order of names. Ends early, with true,
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
            // A missing folder would be listed as an empty one.
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
                Err(_) => {
                    return Err(Failure::Unknown(
                        "the bucket does not answer in time".into(),
                    ));
                }
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

    /// Names in the log after a number, then those of bases. Where there are very many groups, those that spans have are
    /// left out.
    pub async fn list(&self, epoch: u64, after: u64) -> Result<Listing, Failure> {
        let mut found = None;
        if let Some(log) = self.near(epoch, after).await? {
            let bases = self.bases(epoch).await?;
            // Trimming goes up to the second newest base. So where none is after `after`, no later group was ever
            // trimmed.
            if bases.iter().all(|base| *base <= after) {
                found = Some((log, bases));
            }
        }
        let (log, bases) = match found {
            Some(found) => found,
            None => (self.log(epoch, after).await?, self.bases(epoch).await?),
        };
        let text = |names: Vec<Name>| names.into_iter().map(|name| name.text(epoch)).collect();
        Ok(Listing {
            log: text(log),
            bases: text(bases.into_iter().map(Name::Base).collect()),
        })
    }

    /// Groups after a number, looked for one by one: `None` where there are many. A directory is read as a whole, which
    /// takes 150 ms where it has a day of one update a second; a bucket's listing costs what twelve looks do.
    ///
    /// A group is created when the one before it is there, so after a missing one there is none, unless it was trimmed.
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
            // A client of a network's file system remembers for a while that a name is missing. Opening a folder makes it
            // ask the server whether the folder has changed.
            let open = move || match folder.map(std::fs::File::open) {
                Some(Err(e)) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
                Some(opened) => Ok(opened.ok()),
                None => Ok(None),
            };
            let _opened = match tokio::task::spawn_blocking(open).await {
                Ok(Ok(opened)) => opened,
                Ok(Err(e)) => return Err(generic(e)),
                Err(e) => return Err(generic(e)),
            };
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

    /// Groups and spans after a number.
    async fn log(&self, epoch: u64, after: u64) -> Result<Vec<Name>, Failure> {
        let (mut log, more) = (self.parsed(epoch, "log", Some(Name::Group(after)), PAGE)).await?;
        if more {
            let behind = Name::Span(u64::MAX, after);
            let (mut spans, _) = (self.parsed(epoch, "span", Some(behind), usize::MAX)).await?;
            spans.sort_unstable();
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
            log.extend(spans);
        }
        Ok(log)
    }
}
