//! Verification of a log: finds missing and damaged objects.
//!
//! A base is complete if its document and its remembered request keys can be read, and each part that the document
//! lists exists with the listed length. The content of the other parts is verified when a base is downloaded. Groups
//! and spans are read completely.

use super::{BaseInBucket, Beginning, Bucket, Failure, Identity, Survey, if_there};
use crate::machine::{Base, Damage, Group, Name, read_span};
use futures_util::StreamExt;
use std::collections::{BTreeMap, HashMap};

/// Number of objects that are read concurrently.
const AT_ONCE: usize = 8;
/// Number of attempts to verify a log while bases are added and deleted.
const ATTEMPTS: usize = 3;

/// A problem with one object of a log, or with several consecutive ones.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{object} {what}")]
pub struct Finding {
    /// Name of the object in the bucket; for several consecutive ones the names of the first and the last.
    pub object: String,
    /// The predicate of a sentence whose subject is `object`.
    pub what: String,
    /// A sentence that says which other objects replace the object, or what can be done.
    pub remedy: String,
}

/// The result of verifying a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Examined {
    /// The groups that exist or are missing after the newest complete base.
    pub survey: Survey,
    /// Number of the newest complete base; `None` if there is none. 0 for a log that begins with the empty store and
    /// has no base.
    pub base: Option<u64>,
    /// All missing or damaged objects.
    pub findings: Vec<Finding>,
    /// The groups after the base that cannot be read, as ascending ranges (first number, last number).
    pub unreadable: Vec<(u64, u64)>,
}

/// Hash of a group, and the hash of its predecessor that the group contains.
#[derive(Clone, Copy)]
struct Link {
    hash: u64,
    previous: Option<u64>,
}

impl Link {
    fn of(group: &Group, epoch: u64) -> Self {
        Self {
            hash: group.hash(epoch),
            previous: group.previous,
        }
    }

    /// True if the group may follow one with this hash. 0 means that the hash is unknown.
    fn follows(self, hash: u64) -> bool {
        self.previous
            .is_none_or(|previous| previous == 0 || hash == 0 || previous == hash)
    }
}

/// State of the object that contains only this group, as opposed to its copy in a span.
enum Own {
    Right(Link),
    Wrong(String),
}

impl Bucket {
    /// Verifies a base. Returns its document and content, or the problems that were found.
    ///
    /// # Errors
    /// [`Failure::Missing`] if the base has no document; other failures of the bucket.
    pub async fn examine_base(
        &self,
        epoch: u64,
        number: u64,
    ) -> Result<Result<(BaseInBucket, Base), Vec<Finding>>, Failure> {
        let finding = |object: String, what: &str| Finding {
            object,
            what: what.to_owned(),
            remedy: String::new(),
        };
        let name = Name::Base(number).text(epoch);
        let document = match self.base(epoch, number).await {
            Ok(document) => document,
            Err(Failure::Lost(_)) => return Ok(Err(vec![finding(name, "is damaged")])),
            Err(failure) => return Err(failure),
        };
        let mut found = Vec::new();
        for folder in document.folders() {
            found.extend(self.names(&folder, None, usize::MAX).await?.0);
        }
        let there: HashMap<String, u64> = (found.iter())
            .filter_map(|meta| Some((self.name(&meta.location)?, meta.size)))
            .collect();
        let mut findings: Vec<Finding> = (document.all_parts())
            .filter_map(|(part, length)| match there.get(&part) {
                Some(size) if *size == length => None,
                Some(size) => {
                    let what = format!("has {size} bytes and not {length}, so {name} is of no use");
                    Some(finding(part, &what))
                }
                None => {
                    let what = format!("is missing, so {name} is of no use");
                    Some(finding(part, &what))
                }
            })
            .collect();
        if findings.is_empty() {
            match self.known(&document).await {
                Ok(base) => return Ok(Ok((document, base))),
                Err(Failure::Lost(why)) => {
                    let (part, what) = why.split_once(' ').unwrap_or((&name, &why));
                    let what = format!("{what}, so {name} is of no use");
                    findings.push(finding(part.to_owned(), &what));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Err(findings))
    }

    /// Reads every group and span after the newest complete base, and verifies bases against their parts.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn examine(&self, identity: &Identity) -> Result<Examined, Failure> {
        let epoch = identity.epoch;
        let mut attempt = 0;
        loop {
            let before = self.bases(epoch).await?;
            let examined = self.examine_now(identity, &before).await;
            attempt += 1;
            // A base that was completed meanwhile may have caused the deletion of objects that this attempt found
            // missing.
            if attempt == ATTEMPTS || self.bases(epoch).await? == before {
                return examined;
            }
        }
    }

    async fn examine_now(&self, identity: &Identity, bases: &[u64]) -> Result<Examined, Failure> {
        let epoch = identity.epoch;
        let mut findings = Vec::new();
        let mut whole: Option<(u64, u64)> = None;
        for number in bases.iter().rev() {
            match self.examine_base(epoch, *number).await? {
                Ok((_, base)) if whole.is_none() => whole = Some((*number, base.hash)),
                Ok(_) => {}
                Err(found) => findings.extend(found),
            }
        }
        if identity.beginning == Beginning::Empty {
            whole = whole.or(Some((0, 0)));
        }
        let remedy = match whole {
            Some((0, _)) if identity.beginning == Beginning::Empty => "Servers start from the empty store and read all groups. A new base is uploaded after a merge".to_owned(),
            Some((base, _)) => format!("Servers start from base {base} and the groups after it. A new base is uploaded after a merge"),
            None => "Without it servers with empty folders cannot start. Put it back from a copy, or start a server whose folder has the store".to_owned(),
        };
        findings
            .iter_mut()
            .for_each(|finding| finding.remedy.clone_from(&remedy));
        if whole.is_none() && bases.is_empty() && !identity.without_base {
            findings.push(Finding {
                object: Name::Base(0).text(epoch),
                what: "is missing, the store that the log began with, or was not uploaded yet"
                    .into(),
                remedy,
            });
        }
        let after = whole.map_or(0, |(number, _)| number);
        let survey = self.survey(epoch, after).await?;
        for (server, newest) in &survey.implausible {
            findings.push(Finding {
                object: format!("servers/{server}"),
                what: format!("names {newest} as the newest group, to which nothing else in the log comes near"),
                remedy: "The entry is damaged. Remove it; the server writes a new one".into(),
            });
        }
        let mut examined = Examined {
            survey,
            base: whole.map(|(number, _)| number),
            findings,
            unreadable: Vec::new(),
        };
        self.examine_groups(
            epoch,
            (after, whole.map_or(0, |(_, hash)| hash)),
            &mut examined,
        )
        .await?;
        Ok(examined)
    }

    /// Verifies all groups and spans after a base (its number, and the hash of its last group), and adds the findings.
    async fn examine_groups(
        &self,
        epoch: u64,
        (after, hash): (u64, u64),
        examined: &mut Examined,
    ) -> Result<(), Failure> {
        let (names, _) = self
            .parsed(epoch, "log", Some(Name::Group(after)), usize::MAX)
            .await?;
        let behind = Some(Name::Span(u64::MAX, after));
        let (spans, _) = self.parsed(epoch, "span", behind, usize::MAX).await?;
        let numbers = names.iter().filter_map(|name| match name {
            Name::Group(number) => Some(*number),
            _ => None,
        });
        let reads =
            numbers.map(|number| async move { (number, self.own_object(epoch, number).await) });
        let mut reads = std::pin::pin!(futures_util::stream::iter(reads).buffer_unordered(AT_ONCE));
        let mut own: BTreeMap<u64, Own> = BTreeMap::new();
        while let Some((number, read)) = reads.next().await {
            if let Some(read) = read? {
                own.insert(number, read);
            }
        }
        let mut copies: BTreeMap<u64, Vec<Link>> = BTreeMap::new();
        for name in spans {
            let Name::Span(first, last) = name else {
                continue;
            };
            match self.groups_of_span(epoch, (first, last)).await? {
                Some(groups) => {
                    for group in groups.iter().filter(|group| group.number > after) {
                        let known = copies.entry(group.number).or_default();
                        known.push(Link::of(group, epoch));
                    }
                }
                None => examined.findings.push(Finding {
                    object: name.text(epoch),
                    what: "is missing or damaged".into(),
                    remedy:
                        "It is a copy of groups, and is not needed if their own objects exist. Remove it"
                            .into(),
                }),
            }
        }
        follow(epoch, (after, hash), &own, &copies, examined);
        Ok(())
    }

    /// Reads a group's own object; `None` if the object is missing.
    async fn own_object(&self, epoch: u64, number: u64) -> Result<Option<Own>, Failure> {
        let name = Name::Group(number).text(epoch);
        let Some((bytes, _)) = if_there(self.get_with_retries(&name).await)? else {
            return Ok(None);
        };
        let read = Group::read(epoch, &bytes).and_then(|group| match group.number == number {
            true => Ok(Link::of(&group, epoch)),
            false => Err(Damage::Number),
        });
        Ok(Some(match read {
            Ok(link) => Own::Right(link),
            Err(damage) => Own::Wrong(format!("is damaged: {damage}")),
        }))
    }

    /// Reads the groups of a span; `None` if the span is missing or damaged.
    pub(super) async fn groups_of_span(
        &self,
        epoch: u64,
        (first, last): (u64, u64),
    ) -> Result<Option<Vec<Group>>, Failure> {
        let name = Name::Span(first, last).text(epoch);
        let read = if_there(self.get_with_retries(&name).await)?;
        let groups = read.and_then(|(bytes, _)| read_span(epoch, &bytes).ok());
        Ok(groups.filter(|groups| groups.iter().map(|g| g.number).eq(first..=last)))
    }
}

/// Follows the chain of hashes from group to group, and records the groups that cannot be read.
fn follow(
    epoch: u64,
    (after, mut hash): (u64, u64),
    own: &BTreeMap<u64, Own>,
    copies: &BTreeMap<u64, Vec<Link>>,
    examined: &mut Examined,
) {
    let copies_of = |number: u64| copies.get(&number).map_or(&[][..], Vec::as_slice);
    let of = |number: u64| -> Vec<Link> {
        let own = match own.get(&number) {
            Some(Own::Right(link)) => Some(*link),
            _ => None,
        };
        own.into_iter()
            .chain(copies_of(number).iter().copied())
            .collect()
    };
    let mut next = after.saturating_add(1);
    let mut numbers: Vec<u64> = own.keys().chain(copies.keys()).copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        if next < number {
            examined.lost((next, number - 1), epoch, "missing");
            hash = 0;
        }
        next = number.saturating_add(1);
        let later = of(next);
        let right = |link: &&Link| {
            link.follows(hash) && (later.is_empty() || later.iter().any(|l| l.follows(link.hash)))
        };
        let links = of(number);
        let chosen = links.iter().find(right).copied();
        let wrong = match (own.get(&number), chosen) {
            (Some(Own::Right(link)), Some(chosen)) if link.hash == chosen.hash => None,
            (Some(Own::Right(_)), _) => Some(
                "is not the group that the next one continues: it was lost and written again"
                    .to_owned(),
            ),
            (Some(Own::Wrong(what)), _) => Some(what.clone()),
            (None, _) => Some("is missing".to_owned()),
        };
        match (wrong, chosen) {
            (None, _) => {}
            (Some(what), Some(_)) => examined.findings.push(Finding {
                object: Name::Group(number).text(epoch),
                what,
                remedy: "A span has the group, from which it is read".into(),
            }),
            (Some(what), None) => examined.lost((number, number), epoch, &what),
        }
        hash = chosen.map_or(0, |link| link.hash);
    }
    let newest = examined.survey.newest;
    if next <= newest {
        examined.lost((next, newest), epoch, "missing");
    }
}

impl Examined {
    /// Records that a range of groups cannot be read, for the reason `what`.
    fn lost(&mut self, (first, last): (u64, u64), epoch: u64, what: &str) {
        let name = |number| Name::Group(number).text(epoch);
        let (object, what) = match (first == last, what) {
            (true, "missing") => (name(first), "is missing".to_owned()),
            (true, what) => (name(first), what.to_owned()),
            (false, what) => (
                format!("{} to {}", name(first), name(last)),
                format!("are {what}"),
            ),
        };
        let remedy = match what.contains("missing") {
            true => {
                "Put it back from a copy or an older version of the bucket's, or start the servers that may have it"
            }
            false => {
                "Put the right one back from a copy or an older version of the bucket's; or remove it while a server runs that has \
                 the group, which writes it back"
            }
        };
        self.findings.push(Finding {
            object,
            what,
            remedy: remedy.to_owned(),
        });
        match self.unreadable.last_mut() {
            Some(run) if run.1.checked_add(1) == Some(first) => run.1 = last,
            _ => self.unreadable.push((first, last)),
        }
    }

    /// The last snapshot that can be restored; `None` if all known groups can be read.
    pub fn whole_up_to(&self) -> Option<u64> {
        self.unreadable.first().map(|(first, _)| first - 1)
    }
}
