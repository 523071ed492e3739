//! Lookups of terms and ids at all shards.

use super::ShardSession;
use crate::shards::{Reply, ShardRequest};
use jindou_graph::TermSource;
use jindou_model::NO_VERTEX;

/// Largest number of ids whose terms are requested in one message.
const TERMS: usize = 1 << 16;
/// A query's lookup of at most this many terms is assumed to be for a query's constants, so that their edges are counted as
/// well.
const CONSTANTS: usize = 16;

impl TermSource for ShardSession {
    fn lookup_many(&self, terms: &[&[u8]], out: &mut Vec<u32>) {
        let from = out.len();
        self.own().lookup(terms, out);
        let mut missing: Vec<usize> = (0..terms.len())
            .filter(|i| out[from + i] == NO_VERTEX)
            .collect();
        let lookups = self.lookups();
        if let Some(lookups) = lookups {
            lookups.fill_ids(terms, &mut out[from..], &mut missing);
        }
        for part in missing.chunks(TERMS) {
            let (mut ends, mut bytes) = (Vec::with_capacity(part.len()), Vec::new());
            for &i in part {
                bytes.extend_from_slice(terms[i]);
                ends.push(bytes.len() as u32);
            }
            let few = terms.len() <= CONSTANTS && lookups.is_none();
            let request = match few {
                true => ShardRequest::Find { ends, bytes },
                false => ShardRequest::Lookup { ends, bytes },
            };
            for (shard, reply) in self.ask_others(&request) {
                match reply {
                    Reply::Found {
                        ids,
                        ends,
                        predicates,
                        default,
                        named,
                    } if few
                        && [ids.len(), ends.len()] == [part.len(); 2]
                        && [default.len(), named.len()] == [predicates.len(); 2]
                        && ends.is_sorted()
                        && ends.last().is_none_or(|&e| e as usize <= predicates.len()) =>
                    {
                        let mut start = 0;
                        for ((&i, id), end) in part.iter().zip(ids).zip(ends) {
                            let range = start..end as usize;
                            start = range.end;
                            if id == NO_VERTEX {
                                continue;
                            }
                            out[from + i] = id;
                            let owner = self.blocks().place(id).map(|p| p.shard);
                            if owner == Some(shard) && !range.is_empty() {
                                let edges = range.map(|e| (predicates[e], [default[e], named[e]]));
                                self.cache_counts(shard, id, edges);
                            }
                        }
                    }
                    Reply::Ids { ids, more: false } if ids.len() == part.len() => {
                        for (&i, id) in part.iter().zip(ids) {
                            if id != NO_VERTEX {
                                out[from + i] = id;
                            }
                        }
                    }
                    _ => self.fail_invalid_reply(shard),
                }
            }
        }
        if let Some(lookups) = lookups
            && self.check().is_ok()
        {
            lookups.keep_ids(terms, &out[from..], &missing);
        }
    }

    fn prefetch(&self, ids: &[u32]) {
        let own = self.own().number();
        let owned = |&id: &u32| Some((self.blocks().place(id)?.shard, id));
        let owned = ids.iter().filter_map(owned);
        let far: Vec<(u32, u32)> = owned.filter(|&(shard, _)| shard != own).collect();
        self.fetch_missing_terms(&far);
    }

    fn terms_many(&self, ids: &[u32], take: &mut dyn FnMut(usize, &[u8])) {
        let here = self.own();
        let mut buffer = Vec::new();
        // Positions in `ids`, by shard.
        let mut far: Vec<Vec<u32>> = vec![Vec::new(); self.blocks().shards() as usize];
        for (at, &id) in (0..).zip(ids) {
            buffer.clear();
            if here.term(id, &mut buffer) || self.kept_term(id, &mut buffer) {
                take(at as usize, &buffer);
            } else if let Some(place) = self.blocks().place(id)
                && place.shard != self.own().number()
                && let Some(list) = far.get_mut(place.shard as usize)
            {
                list.push(at);
            }
        }
        let mut from = 0;
        while far.iter().any(|list| list.len() > from) {
            let mut places = Vec::new();
            let mut requests = Vec::new();
            for (shard, list) in (0..).zip(&far) {
                let part = list.get(from..list.len().min(from + TERMS)).unwrap_or(&[]);
                if !part.is_empty() {
                    let ids = part.iter().map(|&at| ids[at as usize]).collect();
                    requests.push((shard, ShardRequest::Terms { ids }));
                    places.push(part);
                }
            }
            let replies = self.ask(&requests);
            if replies.is_empty() {
                return;
            }
            for ((part, (shard, _)), reply) in places.into_iter().zip(&requests).zip(replies) {
                let Reply::Terms { ends, bytes } = reply else {
                    self.fail_invalid_reply(*shard);
                    return;
                };
                let mut start = 0;
                for (&at, &end) in part.iter().zip(&ends) {
                    match bytes.get(start as usize..end as usize) {
                        Some([]) => {}
                        Some(term) => take(at as usize, term),
                        None => self.fail_invalid_reply(*shard),
                    }
                    start = end;
                }
                if ends.len() != part.len() {
                    self.fail_invalid_reply(*shard);
                }
            }
            from += TERMS;
        }
    }
}
