//! Requests and replies as bytes: one tag per value, and columns as their length and little-endian numbers. Lengths are
//! compared with the available bytes before anything is allocated, and trailing bytes are an error, so a damaged
//! message is refused and never takes more memory than it has bytes.

use super::{Reply, RequestGraphs, ShardRequest};
use jindou_model::Direction;

/// Fewest bytes of a request with its shard, and of a reply, which bounds their number in a message.
const LEAST: usize = 1;

/// Appends requests with their shards.
pub fn put_requests(requests: &[(u32, ShardRequest)], out: &mut Vec<u8>) {
    put_u32(requests.len() as u32, out);
    for (shard, request) in requests {
        put_u32(*shard, out);
        put_request(request, out);
    }
}

/// The requests that [`put_requests`] wrote; `None` for other bytes.
#[must_use]
pub fn requests(bytes: &[u8]) -> Option<Vec<(u32, ShardRequest)>> {
    ShardWireReader { bytes }.whole(|r| Some((r.u32()?, r.request()?)))
}

/// Appends replies.
pub fn put_replies(replies: &[Reply], out: &mut Vec<u8>) {
    put_u32(replies.len() as u32, out);
    for reply in replies {
        put_reply(reply, out);
    }
}

/// The replies that [`put_replies`] wrote; `None` for other bytes.
#[must_use]
pub fn replies(bytes: &[u8]) -> Option<Vec<Reply>> {
    ShardWireReader { bytes }.whole(ShardWireReader::reply)
}

fn put_u32(n: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_u64(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_u32s(column: &[u32], out: &mut Vec<u8>) {
    out.extend_from_slice(&(column.len() as u64).to_le_bytes());
    out.reserve(4 * column.len());
    for n in column {
        out.extend_from_slice(&n.to_le_bytes());
    }
}

fn put_u64s(column: &[u64], out: &mut Vec<u8>) {
    out.extend_from_slice(&(column.len() as u64).to_le_bytes());
    out.reserve(8 * column.len());
    for n in column {
        out.extend_from_slice(&n.to_le_bytes());
    }
}

fn put_direction(direction: Direction, out: &mut Vec<u8>) {
    out.push(match direction {
        Direction::Out => 0,
        Direction::In => 1,
    });
}

fn put_graphs(graphs: &RequestGraphs, out: &mut Vec<u8>) {
    match graphs {
        RequestGraphs::Default => out.push(0),
        RequestGraphs::Named(g) => {
            out.push(1);
            put_u32(*g, out);
        }
        RequestGraphs::AnyNamed => out.push(2),
        RequestGraphs::Union => out.push(3),
        RequestGraphs::Set(gs) => {
            out.push(4);
            put_u32s(gs, out);
        }
    }
}

fn put_request(request: &ShardRequest, out: &mut Vec<u8>) {
    match request {
        ShardRequest::Lists {
            predicate,
            direction,
            graphs,
            merged,
            keys,
            within,
            most,
        } => {
            out.push(0);
            put_u32(*predicate, out);
            put_direction(*direction, out);
            put_graphs(graphs, out);
            out.push(u8::from(*merged));
            put_u32s(keys, out);
            put_u32(within[0], out);
            put_u32(within[1], out);
            put_u32(*most, out);
        }
        ShardRequest::Contains {
            predicate,
            direction,
            graphs,
            keys,
            neighbours,
        } => {
            out.push(1);
            put_u32(*predicate, out);
            put_direction(*direction, out);
            put_graphs(graphs, out);
            put_u32s(keys, out);
            put_u32s(neighbours, out);
        }
        ShardRequest::Degrees {
            predicate,
            direction,
            keys,
        } => {
            out.push(2);
            put_u32(*predicate, out);
            put_direction(*direction, out);
            put_u32s(keys, out);
        }
        ShardRequest::Keys {
            predicate,
            direction,
            graphs,
            from,
            most,
        } => {
            out.push(3);
            put_u32(*predicate, out);
            put_direction(*direction, out);
            put_graphs(graphs, out);
            put_u32(*from, out);
            put_u32(*most, out);
        }
        ShardRequest::Predicates {
            direction,
            vertices,
        } => {
            out.push(4);
            put_direction(*direction, out);
            put_u32s(vertices, out);
        }
        ShardRequest::Terms { ids } => {
            out.push(5);
            put_u32s(ids, out);
        }
        ShardRequest::Lookup { ends, bytes } => {
            out.push(6);
            put_u32s(ends, out);
            put_bytes(bytes, out);
        }
        ShardRequest::GraphSubjects { graph, predicate } => {
            out.push(7);
            put_u32(*graph, out);
            put_u32(*predicate, out);
        }
        ShardRequest::GraphPredicates { graph } => {
            out.push(8);
            put_u32(*graph, out);
        }
        ShardRequest::ObjectTerms { predicate } => {
            out.push(9);
            put_u32(*predicate, out);
        }
        ShardRequest::Find { ends, bytes } => {
            out.push(11);
            put_u32s(ends, out);
            put_bytes(bytes, out);
        }
        ShardRequest::Words {
            words,
            iris,
            graphs,
            labels,
            from,
            micros,
        } => {
            out.push(12);
            put_bytes(words, out);
            out.push(u8::from(*iris));
            put_graphs(graphs, out);
            put_u32s(labels, out);
            put_u64(*from, out);
            put_u32(*micros, out);
        }
        ShardRequest::Uses { graphs, vertices } => {
            out.push(13);
            put_graphs(graphs, out);
            put_u32s(vertices, out);
        }
        ShardRequest::Post(bytes) => {
            out.push(10);
            put_bytes(bytes, out);
        }
    }
}

fn put_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Lists {
            ends,
            neighbours,
            graphs,
        } => {
            out.push(0);
            put_u32s(ends, out);
            put_u32s(neighbours, out);
            put_u32s(graphs, out);
        }
        Reply::Runs { ends, runs } => {
            out.push(9);
            put_u32s(ends, out);
            put_u32s(runs.as_flattened(), out);
        }
        Reply::There(there) => {
            out.push(1);
            put_bytes(there, out);
        }
        Reply::Degrees { default, named } => {
            out.push(2);
            put_u64s(default, out);
            put_u64s(named, out);
        }
        Reply::Ids { ids, more } => {
            out.push(3);
            put_u32s(ids, out);
            out.push(u8::from(*more));
        }
        Reply::Predicates { ends, predicates } => {
            out.push(4);
            put_u32s(ends, out);
            put_u32s(predicates, out);
        }
        Reply::Terms { ends, bytes } => {
            out.push(5);
            put_u32s(ends, out);
            put_bytes(bytes, out);
        }
        Reply::Objects(kind) => {
            out.push(6);
            out.push(*kind);
        }
        Reply::Found {
            ids,
            ends,
            predicates,
            default,
            named,
        } => {
            out.push(8);
            put_u32s(ids, out);
            put_u32s(ends, out);
            put_u32s(predicates, out);
            put_u64s(default, out);
            put_u64s(named, out);
        }
        Reply::Words {
            ids,
            ends,
            bytes,
            subject_ends,
            subjects,
            cut,
            more,
            next,
        } => {
            out.push(10);
            put_u32s(ids, out);
            put_u32s(ends, out);
            put_bytes(bytes, out);
            put_u32s(subject_ends, out);
            put_u32s(subjects, out);
            out.push(u8::from(*cut));
            out.push(u8::from(*more));
            put_u64(*next, out);
        }
        Reply::Uses { seen, uses } => {
            out.push(11);
            put_bytes(seen, out);
            put_u64s(uses, out);
        }
        Reply::Post(bytes) => {
            out.push(7);
            put_bytes(bytes, out);
        }
    }
}

struct ShardWireReader<'a> {
    bytes: &'a [u8],
}

impl<'a> ShardWireReader<'a> {
    /// A number of values, with nothing after them.
    fn whole<T>(mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()? as usize;
        if count > self.bytes.len() / LEAST {
            return None;
        }
        // Grows as values are read: a value in memory is larger than its smallest serialised form.
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(one(&mut self)?);
        }
        self.bytes.is_empty().then_some(all)
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// The bytes of a column of numbers of `size` bytes.
    fn column(&mut self, size: usize) -> Option<&'a [u8]> {
        let length = self.u64()?;
        let bytes = usize::try_from(length).ok()?.checked_mul(size)?;
        self.take(bytes)
    }

    fn u32s(&mut self) -> Option<Vec<u32>> {
        let column = self.column(4)?.as_chunks::<4>().0;
        Some(column.iter().map(|&b| u32::from_le_bytes(b)).collect())
    }

    fn u64s(&mut self) -> Option<Vec<u64>> {
        let column = self.column(8)?.as_chunks::<8>().0;
        Some(column.iter().map(|&b| u64::from_le_bytes(b)).collect())
    }

    fn direction(&mut self) -> Option<Direction> {
        match self.u8()? {
            0 => Some(Direction::Out),
            1 => Some(Direction::In),
            _ => None,
        }
    }

    fn graphs(&mut self) -> Option<RequestGraphs> {
        Some(match self.u8()? {
            0 => RequestGraphs::Default,
            1 => RequestGraphs::Named(self.u32()?),
            2 => RequestGraphs::AnyNamed,
            3 => RequestGraphs::Union,
            4 => RequestGraphs::Set(self.u32s()?),
            _ => return None,
        })
    }

    fn request(&mut self) -> Option<ShardRequest> {
        Some(match self.u8()? {
            0 => ShardRequest::Lists {
                predicate: self.u32()?,
                direction: self.direction()?,
                graphs: self.graphs()?,
                merged: self.bool()?,
                keys: self.u32s()?,
                within: [self.u32()?, self.u32()?],
                most: self.u32()?,
            },
            1 => ShardRequest::Contains {
                predicate: self.u32()?,
                direction: self.direction()?,
                graphs: self.graphs()?,
                keys: self.u32s()?,
                neighbours: self.u32s()?,
            },
            2 => ShardRequest::Degrees {
                predicate: self.u32()?,
                direction: self.direction()?,
                keys: self.u32s()?,
            },
            3 => ShardRequest::Keys {
                predicate: self.u32()?,
                direction: self.direction()?,
                graphs: self.graphs()?,
                from: self.u32()?,
                most: self.u32()?,
            },
            4 => ShardRequest::Predicates {
                direction: self.direction()?,
                vertices: self.u32s()?,
            },
            5 => ShardRequest::Terms { ids: self.u32s()? },
            6 => ShardRequest::Lookup {
                ends: self.u32s()?,
                bytes: self.column(1)?.to_vec(),
            },
            7 => ShardRequest::GraphSubjects {
                graph: self.u32()?,
                predicate: self.u32()?,
            },
            8 => ShardRequest::GraphPredicates { graph: self.u32()? },
            9 => ShardRequest::ObjectTerms {
                predicate: self.u32()?,
            },
            10 => ShardRequest::Post(self.column(1)?.to_vec()),
            11 => ShardRequest::Find {
                ends: self.u32s()?,
                bytes: self.column(1)?.to_vec(),
            },
            12 => ShardRequest::Words {
                words: self.column(1)?.to_vec(),
                iris: self.bool()?,
                graphs: self.graphs()?,
                labels: self.u32s()?,
                from: self.u64()?,
                micros: self.u32()?,
            },
            13 => ShardRequest::Uses {
                graphs: self.graphs()?,
                vertices: self.u32s()?,
            },
            _ => return None,
        })
    }

    fn reply(&mut self) -> Option<Reply> {
        Some(match self.u8()? {
            0 => Reply::Lists {
                ends: self.u32s()?,
                neighbours: self.u32s()?,
                graphs: self.u32s()?,
            },
            1 => Reply::There(self.column(1)?.to_vec()),
            2 => Reply::Degrees {
                default: self.u64s()?,
                named: self.u64s()?,
            },
            3 => Reply::Ids {
                ids: self.u32s()?,
                more: self.bool()?,
            },
            4 => Reply::Predicates {
                ends: self.u32s()?,
                predicates: self.u32s()?,
            },
            5 => Reply::Terms {
                ends: self.u32s()?,
                bytes: self.column(1)?.to_vec(),
            },
            6 => Reply::Objects(self.u8()?),
            7 => Reply::Post(self.column(1)?.to_vec()),
            8 => Reply::Found {
                ids: self.u32s()?,
                ends: self.u32s()?,
                predicates: self.u32s()?,
                default: self.u64s()?,
                named: self.u64s()?,
            },
            9 => {
                let (ends, column) = (self.u32s()?, self.u32s()?);
                let (runs, rest) = column.as_chunks::<2>();
                if !rest.is_empty() {
                    return None;
                }
                Reply::Runs {
                    ends,
                    runs: runs.to_vec(),
                }
            }
            10 => Reply::Words {
                ids: self.u32s()?,
                ends: self.u32s()?,
                bytes: self.column(1)?.to_vec(),
                subject_ends: self.u32s()?,
                subjects: self.u32s()?,
                cut: self.bool()?,
                more: self.bool()?,
                next: self.u64()?,
            },
            11 => Reply::Uses {
                seen: self.column(1)?.to_vec(),
                uses: self.u64s()?,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
