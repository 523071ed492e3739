//! Downloads: the local store is replaced by the newest complete base of the log.

use crate::application::{Application, Report};
use crate::blocking::blocking;
use crate::bucket::{BaseInBucket, Bucket, Failure, Finding};
use crate::driver::{Done, Driver};
use crate::machine::{Base, Event, Listing, Name};
use crate::peers::Peers;
use jindou_model::sync;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Delay after a failed download.
const DOWNLOAD_AGAIN: Duration = Duration::from_secs(1);

/// A base that cannot be used.
#[derive(Clone, Debug)]
struct UnusableBase {
    /// The first object that is missing or damaged, with the reason.
    why: String,
    /// The base's document, if it was valid but one of its parts was not.
    tried: Option<BaseInBucket>,
}

impl UnusableBase {
    fn of(findings: &[Finding]) -> Self {
        let mut why = findings
            .first()
            .map_or_else(String::new, ToString::to_string);
        if findings.len() > 1 {
            why = format!("{why}, and {} more of its objects", findings.len() - 1);
        }
        Self { why, tried: None }
    }
}

/// Bases that cannot be used, by number. They are omitted from the listings that the machine receives.
#[derive(Clone, Default)]
pub(crate) struct UnusableBases(Arc<Mutex<BTreeMap<u64, UnusableBase>>>);

impl UnusableBases {
    /// Number of the newest unusable base, and the reason why it cannot be used.
    pub fn newest(&self) -> Option<(u64, String)> {
        let all = sync::lock(&self.0);
        all.last_key_value()
            .map(|(number, base)| (*number, base.why.clone()))
    }

    /// Adds an unusable base. Returns true if it was not known before.
    fn add(&self, number: u64, base: UnusableBase) -> bool {
        sync::lock(&self.0).insert(number, base).is_none()
    }

    /// Removes the unusable bases from a listing. With `all`, also verifies the newest base, and readmits bases that
    /// were repaired. Returns the reason if the newest base was found unusable by this call.
    pub async fn remove_from(
        &self,
        bucket: &Bucket,
        epoch: u64,
        listing: &mut Listing,
        all: bool,
    ) -> Option<String> {
        let bases = listing.bases.iter();
        let newest = bases.filter_map(|name| Name::parse(epoch, name)?.base());
        let mut found = None;
        if let Some(number) = newest.max().filter(|_| all)
            && let Ok(Err(findings)) = bucket.examine_base(epoch, number).await
        {
            let base = UnusableBase::of(&findings);
            found = Some(base.why.clone());
            found = found.filter(|_| self.add(number, base));
        }
        let unusable_bases = sync::lock(&self.0).clone();
        for (number, base) in unusable_bases {
            let name = Name::Base(number).text(epoch);
            let listed = listing.bases.contains(&name);
            let mended = listed
                && all
                && match bucket.examine_base(epoch, number).await {
                    Ok(Ok((document, _))) => base.tried.is_none_or(|tried| tried != document),
                    Ok(Err(_)) | Err(_) => false,
                };
            match listed && !mended {
                true => listing.bases.retain(|base| *base != name),
                false => drop(sync::lock(&self.0).remove(&number)),
            }
        }
        found
    }
}

impl<A: Application, P: Peers> Driver<A, P> {
    /// Replaces the local store by the newest usable base, unless that base is older than the store.
    pub(crate) fn download(&mut self) {
        let (bucket, epoch) = (self.bucket.clone(), self.epoch);
        let (store, committed): (Arc<A>, u64) = (self.store.clone(), self.machine.committed());
        let (unusable_bases, sender) = (self.unusable_bases.clone(), self.sender.clone());
        self.spawn(async move {
            let received = async {
                let bases = bucket.bases(epoch).await?;
                for number in bases
                    .into_iter()
                    .rev()
                    .take_while(|number| *number >= committed)
                {
                    let base = match receive(&store, &bucket, epoch, number).await {
                        Ok(Ok(done)) => return Ok(Some(done)),
                        Ok(Err(base)) => base,
                        // The base was deleted in the meantime.
                        Err(Failure::Missing) => continue,
                        Err(failure) => return Err(failure),
                    };
                    let why = base.why.clone();
                    if unusable_bases.add(number, base) {
                        let _ = sender.send(Done::Report(Report::Base(why)));
                    }
                }
                match unusable_bases.newest() {
                    Some(_) => Ok(None),
                    None => Err(Failure::Missing),
                }
            };
            match received.await {
                Ok(Some((base, snapshot))) => Some(Done::Downloaded(base, snapshot)),
                Ok(None) => Some(Done::Event(Event::NoBase)),
                Err(failure) => {
                    // The pause is here because the machine retries at once.
                    tokio::time::sleep(DOWNLOAD_AGAIN).await;
                    let event = Event::Downloaded(None);
                    Some(Done::Failed(event, "downloading a base", failure))
                }
            }
        });
    }
}

/// Downloads and installs a base. Returns the inner error if the base is missing objects or damaged.
async fn receive<A: Application>(
    store: &Arc<A>,
    bucket: &Bucket,
    epoch: u64,
    number: u64,
) -> Result<Result<(Base, A::Snapshot), UnusableBase>, Failure> {
    let document = match bucket.examine_base(epoch, number).await? {
        Ok((document, _)) => document,
        Err(findings) => return Ok(Err(UnusableBase::of(&findings))),
    };
    let store = store.clone();
    let into = blocking(move || store.receive(epoch)).await;
    let into = into.map_err(|e| Failure::Refused(e.to_string()))?;
    match bucket.download(&document, into).await {
        Ok(done) => Ok(Ok(done)),
        Err(Failure::Lost(why)) => match bucket.written(epoch, Name::Base(number)).await? {
            Some(_) => Ok(Err(UnusableBase {
                why: format!("{why}, so {} is of no use", Name::Base(number).text(epoch)),
                tried: Some(document),
            })),
            None => Err(Failure::Missing),
        },
        Err(failure) => Err(failure),
    }
}
