//! Encoding of requests and replies: one tag per variant, and columns as their length followed by little-endian
//! numbers. Lengths are compared with the available bytes before anything is allocated, and trailing bytes are an
//! error. So a damaged message is rejected, and never takes more memory than its size warrants.

use super::{Reply, RequestGraphs, ShardRequest};
use jindou_model::Direction;

/// Smallest size in bytes of an encoded request or reply, which bounds their number in a message.
const LEAST: usize = 1;

/// Encodes a message of requests with their shards. `base` is the number of the base from which they must be answered.
#[must_use]
pub fn message(base: u64, requests: &[&(u32, ShardRequest)]) -> Vec<u8> {
    let mut out = Vec::new();
    base.put(&mut out);
    (requests.len() as u32).put(&mut out);
    for (shard, request) in requests {
        shard.put(&mut out);
        request.put(&mut out);
    }
    out
}

/// Decodes a [`message`] to the base and the requests; `None` if the bytes are invalid.
#[must_use]
pub fn requests(bytes: &[u8]) -> Option<(u64, Vec<(u32, ShardRequest)>)> {
    let mut reader = ShardWireReader { bytes };
    let base = u64::read(&mut reader)?;
    let all = reader.whole(|r| Some((u32::read(r)?, ShardRequest::read(r)?)))?;
    Some((base, all))
}

/// Encodes replies and appends them to `out`.
pub fn put_replies(replies: &[Reply], out: &mut Vec<u8>) {
    (replies.len() as u32).put(out);
    for reply in replies {
        reply.put(out);
    }
}

/// Decodes the replies that [`put_replies`] encoded; `None` if the bytes are invalid.
#[must_use]
pub fn replies(bytes: &[u8]) -> Option<Vec<Reply>> {
    ShardWireReader { bytes }.whole(Reply::read)
}

/// A field of a request or reply that can be encoded.
trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Decodes a value; `None` for bytes that [`Self::put`] does not write.
    fn read(r: &mut ShardWireReader<'_>) -> Option<Self>;
}

/// Implements [`Field`] for an enum, from each variant's tag and its fields in the order of encoding. Tests make random
/// values of it.
macro_rules! tagged {
    ($type:ty { $($tag:literal => $name:ident $(($value:ident))? $({ $($field:ident),+ })?,)+ }) => {
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name $(($value))? $({ $($field),+ })? => {
                        out.push($tag);
                        $($value.put(out);)?
                        $($($field.put(out);)+)?
                    })+
                }
            }

            fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
                Some(match u8::read(r)? {
                    $($tag => {
                        $(let $value = Field::read(r)?;)?
                        $($(let $field = Field::read(r)?;)+)?
                        Self::$name $(($value))? $({ $($field),+ })?
                    })+
                    _ => return None,
                })
            }
        }

        #[cfg(test)]
        impl tests::Made for $type {
            fn made(random: &mut u64) -> Self {
                let variants: &[fn(&mut u64) -> Self] = &[$(|_random| {
                    $(let $value = tests::Made::made(_random);)?
                    $($(let $field = tests::Made::made(_random);)+)?
                    Self::$name $(($value))? $({ $($field),+ })?
                }),+];
                let at = <u64 as tests::Made>::made(random) % variants.len() as u64;
                variants[at as usize](random)
            }
        }
    };
}

tagged! { Direction { 0 => Out, 1 => In, } }

tagged! {
    RequestGraphs {
        0 => Default,
        1 => Named(graph),
        2 => AnyNamed,
        3 => Union,
        4 => Set(graphs),
    }
}

tagged! {
    ShardRequest {
        0 => Lists { predicate, direction, graphs, merged, keys, within, most },
        1 => Contains { predicate, direction, graphs, keys, neighbours },
        2 => Degrees { predicate, direction, keys },
        3 => Keys { predicate, direction, graphs, from, most },
        4 => Predicates { direction, vertices },
        5 => Terms { ids },
        6 => Lookup { ends, bytes },
        7 => GraphSubjects { graph, predicate },
        8 => GraphPredicates { graph },
        9 => ObjectTerms { predicate },
        10 => Post(bytes),
        11 => Find { ends, bytes },
        12 => Words { words, iris, graphs, labels, from, micros },
        13 => Uses { graphs, vertices },
        14 => MergeResult,
        15 => Summary { predicate, direction },
    }
}

tagged! {
    Reply {
        0 => Lists { ends, neighbours, graphs },
        1 => There(there),
        2 => Degrees { default, named },
        3 => Ids { ids, more },
        4 => Predicates { ends, predicates },
        5 => Terms { ends, bytes },
        6 => Objects(kind),
        7 => Post(bytes),
        8 => Found { ids, ends, predicates, default, named },
        9 => Runs { ends, runs },
        10 => Words { ids, ends, bytes, subject_ends, subjects, cut, more, next },
        11 => Uses { seen, uses },
    }
}

/// Implements [`Field`] for number types and for columns of them.
macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Field for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
                let bytes = r.take(size_of::<Self>())?.try_into().ok()?;
                Some(Self::from_le_bytes(bytes))
            }
        }

        impl Field for Vec<$number> {
            fn put(&self, out: &mut Vec<u8>) {
                (self.len() as u64).put(out);
                out.reserve(size_of_val(&self[..]));
                for n in self {
                    n.put(out);
                }
            }

            fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
                let column = r.column(size_of::<$number>())?.as_chunks().0;
                Some(column.iter().map(|&b| <$number>::from_le_bytes(b)).collect())
            }
        }
    )+};
}

numbers!(u32, u64);

impl Field for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
        Some(r.take(1)?[0])
    }
}

impl Field for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self);
    }

    fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
        Some(r.column(1)?.to_vec())
    }
}

impl Field for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
        match u8::read(r)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Field for [u32; 2] {
    fn put(&self, out: &mut Vec<u8>) {
        self[0].put(out);
        self[1].put(out);
    }

    fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
        Some([u32::read(r)?, u32::read(r)?])
    }
}

/// A column of pairs is encoded like the column of its numbers, whose length is twice that of the pairs.
impl Field for Vec<[u32; 2]> {
    fn put(&self, out: &mut Vec<u8>) {
        let numbers = self.as_flattened();
        (numbers.len() as u64).put(out);
        out.reserve(size_of_val(numbers));
        for n in numbers {
            n.put(out);
        }
    }

    fn read(r: &mut ShardWireReader<'_>) -> Option<Self> {
        let column = Vec::<u32>::read(r)?;
        let (pairs, rest) = column.as_chunks();
        rest.is_empty().then(|| pairs.to_vec())
    }
}

struct ShardWireReader<'a> {
    bytes: &'a [u8],
}

impl<'a> ShardWireReader<'a> {
    /// Decodes a count, and then that many values. Trailing bytes are an error.
    fn whole<T>(mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = u32::read(&mut self)? as usize;
        if count > self.bytes.len() / LEAST {
            return None;
        }
        // Allocated as values are decoded, since a value in memory is larger than its smallest encoding.
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

    /// Takes the bytes of a column of numbers that have `size` bytes each.
    fn column(&mut self, size: usize) -> Option<&'a [u8]> {
        let length = u64::read(self)?;
        let bytes = usize::try_from(length).ok()?.checked_mul(size)?;
        self.take(bytes)
    }
}

#[cfg(test)]
mod tests;
