//! A query's search for words on all shards.

use super::session::ShardSession;
use super::{Reply, RequestGraphs, ShardRequest};
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::{FoundTerm, WordSearch};
use std::time::Instant;

/// The ranges between consecutive ends of a column; `None` if the ends are not ascending, or the last one is not
/// `length`.
fn ranges(
    ends: &[u32],
    length: usize,
) -> Option<impl Iterator<Item = std::ops::Range<usize>> + '_> {
    let fits = ends.is_sorted() && ends.last().map_or(0, |&e| e as usize) == length;
    let mut start = 0;
    let range = move |&end: &u32| {
        let range = start..end as usize;
        start = range.end;
        range
    };
    fits.then(|| ends.iter().map(range))
}

impl ShardSession {
    /// As [`OtherShards::search_words`](jindou_graph::shard::OtherShards::search_words).
    pub(super) fn find_words(
        &self,
        asked: &WordSearch<'_>,
        take: &mut dyn FnMut(FoundTerm<'_>) -> bool,
    ) -> bool {
        let graphs = RequestGraphs::from_scope(asked.scope);
        let mut whole = true;
        // Shards that have more results, and the positions at which their searches continue.
        let mut open: Vec<(u32, u64)> = (0..self.blocks().shards()).map(|s| (s, 0)).collect();
        while !open.is_empty() {
            let left = asked.end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let micros = u32::try_from(left.as_micros()).unwrap_or(u32::MAX);
            let request = |&(shard, from): &(u32, u64)| {
                let request = ShardRequest::Words {
                    words: asked.words.as_bytes().to_vec(),
                    iris: asked.iris,
                    graphs: graphs.clone(),
                    labels: asked.labels.to_vec(),
                    from,
                    micros,
                };
                (shard, request)
            };
            let requests: Vec<(u32, ShardRequest)> = open.iter().map(request).collect();
            let replies = self.ask(&requests);
            let _charge = self.charge_now(replies.iter().map(Reply::bytes).sum());
            if replies.is_empty() || self.check().is_err() {
                return false;
            }
            let mut rest = Vec::new();
            for ((shard, from), reply) in open.into_iter().zip(replies) {
                let Some(page) = self.page(shard, reply, take) else {
                    self.fail_invalid_reply(shard);
                    return false;
                };
                whole &= !page.cut;
                match page.next {
                    Some(next) if next < from => {
                        self.fail_invalid_reply(shard);
                        return false;
                    }
                    Some(next) => rest.push((shard, next)),
                    None => {}
                }
            }
            open = rest;
        }
        whole
    }

    /// Passes the terms of a reply to `take`. `None` if the reply is invalid.
    fn page(
        &self,
        shard: u32,
        reply: Reply,
        take: &mut dyn FnMut(FoundTerm<'_>) -> bool,
    ) -> Option<WordsPage> {
        let Reply::Words {
            ids,
            ends,
            bytes,
            subject_ends,
            subjects,
            cut,
            more,
            next,
        } = reply
        else {
            return None;
        };
        let owns = |&id: &u32| self.blocks().place(id).is_some_and(|p| p.shard == shard);
        if [ends.len(), subject_ends.len()] != [ids.len(); 2] || !ids.iter().all(owns) {
            return None;
        }
        let terms = ranges(&ends, bytes.len())?.zip(ranges(&subject_ends, subjects.len())?);
        for (id, (term, labelled)) in ids.into_iter().zip(terms) {
            let found = FoundTerm {
                shard,
                id,
                canonical: bytes.get(term)?,
                subjects: subjects.get(labelled)?,
            };
            if !take(found) {
                return Some(WordsPage {
                    cut: true,
                    next: None,
                });
            }
        }
        Some(WordsPage {
            cut,
            next: more.then_some(next),
        })
    }

    /// As [`OtherShards::uses`](jindou_graph::shard::OtherShards::uses).
    pub(super) fn count_uses(&self, vertices: &[u32], scope: GraphScope<'_>) -> Vec<Option<u64>> {
        let mut counted = vec![None; vertices.len()];
        let graphs = RequestGraphs::from_scope(scope);
        let placed = (0..).zip(vertices);
        let placed = placed.filter_map(|(at, &v)| Some((self.blocks().place(v)?.shard, at, v)));
        let mut placed: Vec<(u32, usize, u32)> = placed.collect();
        placed.sort_unstable();
        let groups: Vec<&[(u32, usize, u32)]> = placed.chunk_by(|a, b| a.0 == b.0).collect();
        let request = |group: &&[(u32, usize, u32)]| {
            let request = ShardRequest::Uses {
                graphs: graphs.clone(),
                vertices: group.iter().map(|g| g.2).collect(),
            };
            (group[0].0, request)
        };
        let requests: Vec<(u32, ShardRequest)> = groups.iter().map(request).collect();
        for (group, reply) in groups.into_iter().zip(self.ask(&requests)) {
            match reply {
                Reply::Uses { seen, uses } if [seen.len(), uses.len()] == [group.len(); 2] => {
                    for ((&(_, at, _), seen), uses) in group.iter().zip(seen).zip(uses) {
                        counted[at] = (seen == 1).then_some(uses);
                    }
                }
                _ => self.fail_invalid_reply(group[0].0),
            }
        }
        counted
    }
}

/// State of a shard's search after a reply.
struct WordsPage {
    /// True if terms or subjects were left out.
    cut: bool,
    /// Position at which the search continues; `None` if it is complete.
    next: Option<u64>,
}
