//! Creation of the next snapshot, from changes or from a record of the log.

use super::record::{self, RecordPart};
use super::{ChangeTerm, Changes, NetChanges};
use crate::requests::DoneRequest;
use crate::snapshot::Snapshot;
use jindou_model::prefixes::PrefixChange;
use jindou_model::{
    CancelToken, DEFAULT_GRAPH, Error, NO_VERTEX, PredicateId, Resource, Result, VertexId,
};

/// Result of [`Snapshot::apply`].
pub struct Applied {
    /// The next snapshot, which no reader sees until it is published.
    pub snapshot: Snapshot,
    /// The record for the log, from which [`Snapshot::replay`] creates the same snapshot.
    pub record: Vec<u8>,
    /// Number of quads that were added.
    pub added: u64,
    /// Number of quads that were removed.
    pub removed: u64,
}

impl Snapshot {
    /// Creates the next snapshot, whose number is one higher, even if all changes are already in effect. O(changes
    /// log), whatever was changed before; shares all unchanged data.
    ///
    /// # Errors
    /// [`Error::Limit`] when ids or snapshot numbers run out; [`Error::Usage`] when a change names an id that this
    /// snapshot does not have. After an error nothing is changed.
    pub fn apply(&self, changes: &Changes, threads: usize) -> Result<Applied> {
        self.apply_while(changes, threads, false, &CancelToken::new())
    }

    /// As [`Self::apply`], for another operation of the transaction that created this unpublished snapshot: the number
    /// does not increase. The concatenated records of a transaction's operations are the transaction's record.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_within(&self, changes: &Changes, threads: usize) -> Result<Applied> {
        self.apply_while(changes, threads, true, &CancelToken::new())
    }

    /// As [`Self::apply`]; or as [`Self::apply_within`] if the transaction is `begun`. Can be cancelled, since millions
    /// of changes take seconds.
    ///
    /// # Errors
    /// As [`Self::apply`], and those of `cancel`.
    pub fn apply_while(
        &self,
        changes: &Changes,
        threads: usize,
        begun: bool,
        cancel: &CancelToken,
    ) -> Result<Applied> {
        let number = self.number_of(begun)?;
        let net = NetChanges::compute(self, changes, threads, cancel)?;
        cancel.check()?;
        Ok(Applied {
            record: record::encode(&net, number),
            added: net.added.len() as u64,
            removed: net.removed.len() as u64,
            snapshot: self.with_net_while(&net, number, threads, &|| cancel.check())?,
        })
    }

    /// Creates the next snapshot with changed prefixes, and its record. If a transaction is `begun`, changes the
    /// prefixes of its unpublished snapshot instead. `None` if the changes have no effect.
    ///
    /// # Errors
    /// [`Error::Limit`] when snapshot numbers run out.
    pub fn apply_prefixes(
        &self,
        changes: impl IntoIterator<Item = PrefixChange>,
        begun: bool,
    ) -> Result<Option<(Self, Vec<u8>)>> {
        let effective = self.prefixes().effective(changes);
        if effective.is_empty() {
            return Ok(None);
        }
        let number = self.number_of(begun)?;
        let record = record::encode_prefixes(&effective, number);
        Ok(Some((self.with_prefixes(&effective, number), record)))
    }

    /// Creates the next snapshot, which remembers this request as done, and its record. If a transaction is `begun`,
    /// adds the request to its unpublished snapshot instead.
    ///
    /// # Errors
    /// [`Error::Limit`] when snapshot numbers run out.
    pub fn apply_request(&self, request: &DoneRequest, begun: bool) -> Result<(Self, Vec<u8>)> {
        let number = self.number_of(begun)?;
        let request = DoneRequest {
            snapshot: number,
            ..*request
        };
        Ok((
            self.with_request(request, number),
            record::encode_request(&request, number),
        ))
    }

    fn with_request(&self, request: DoneRequest, number: u64) -> Self {
        let mut next = self.successor(number);
        next.requests_mut().note(request);
        next.finish(0, 0, false);
        next
    }

    fn with_prefixes(&self, changes: &[PrefixChange], number: u64) -> Self {
        let mut next = self.successor(number);
        next.set_prefixes(self.prefixes().with(changes));
        next.finish(0, 0, false);
        next
    }

    /// The changes of prefixes in a record.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a record that is damaged.
    pub fn prefix_changes_of(record: &[u8]) -> Result<Vec<PrefixChange>> {
        let mut out = Vec::new();
        for part in record::parts(record) {
            if let (_, RecordPart::Prefixes(mut changes)) = part? {
                out.append(&mut changes);
            }
        }
        Ok(out)
    }

    /// Creates the next snapshot from the record that [`Self::apply`] on this very snapshot returned, followed by those
    /// of [`Self::apply_within`], if any.
    ///
    /// A record that commits a merge of other servers does not change the base; see [`Self::commit_merge`].
    ///
    /// # Errors
    /// [`Error::Damaged`] for a record that is damaged or belongs to another snapshot.
    pub fn replay(&self, record: &[u8]) -> Result<Self> {
        let number = self.next_number()?;
        let mut next = self.clone();
        for part in record::parts(record) {
            let (of, part) = part?;
            if of != number {
                return Err(Error::damaged(
                    "log",
                    format!("a record has snapshot {of}, expected {number}"),
                ));
            }
            match part {
                RecordPart::Quads(net) => {
                    net.check(&next)?;
                    next = next.with_net(&net, number, 2);
                }
                RecordPart::Prefixes(changes) => next = next.with_prefixes(&changes, number),
                RecordPart::Request(request) => next = next.with_request(request, number),
                RecordPart::Freed(runs) => next = next.replay_freed(&runs, number)?,
                RecordPart::MergeStarted(plan) => next = next.with_merge_started(plan, number)?,
                RecordPart::MergeCommitted(committed) => {
                    next = next.with_merge_committed(&committed, number)?;
                }
            }
        }
        Ok(next)
    }

    /// The changes that a record made, with terms given by their bytes, so that they can be applied to a snapshot of
    /// another id epoch with the same quads. The record is that of this snapshot or of one of its predecessors, and no
    /// id was freed between the two.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a record that is damaged or names ids that this snapshot does not have.
    pub fn changes_of(&self, record: &[u8]) -> Result<Changes> {
        let unknown = || {
            Error::damaged(
                "log",
                "a record names a term that the store does not have; `jindou check` shows all damage",
            )
        };
        let mut out = Changes::new();
        let [mut subject, mut predicate, mut object, mut graph] = [const { Vec::new() }; 4];
        let mut last = [NO_VERTEX; 4];
        for part in record::parts(record) {
            let (_, RecordPart::Quads(net)) = part? else {
                continue;
            };
            for (quads, added) in [(&net.removed, false), (&net.added, true)] {
                for &[g, p, s, o] in quads {
                    let p = self.vertex_of(PredicateId(p)).0;
                    if [s, p, o].contains(&NO_VERTEX) {
                        return Err(unknown());
                    }
                    for ((v, last), bytes) in [s, p, o, g].into_iter().zip(&mut last).zip([
                        &mut subject,
                        &mut predicate,
                        &mut object,
                        &mut graph,
                    ]) {
                        if v == *last || v == DEFAULT_GRAPH {
                            continue;
                        }
                        bytes.clear();
                        if !self.term(VertexId(v), bytes) {
                            return Err(unknown());
                        }
                        *last = v;
                    }
                    let [s, p, o] = [&subject, &predicate, &object].map(|b| ChangeTerm::Bytes(b));
                    let g = (g != DEFAULT_GRAPH).then_some(ChangeTerm::Bytes(&graph));
                    if added {
                        out.insert(s, p, o, g);
                    } else {
                        out.remove(s, p, o, g);
                    }
                }
            }
        }
        Ok(out)
    }

    /// Number of the snapshot that a transaction makes, which this one has already if the transaction is `begun`.
    fn number_of(&self, begun: bool) -> Result<u64> {
        match begun {
            true => Ok(self.number()),
            false => self.next_number(),
        }
    }

    pub(super) fn next_number(&self) -> Result<u64> {
        let next = self.number().checked_add(1);
        next.ok_or_else(|| Error::limit(Resource::Numbers, "snapshot numbers are used up"))
    }
}
