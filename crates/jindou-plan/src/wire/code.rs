//! Encoding of each part of a step, defined once for both directions. Decoding accepts inconsistent values;
//! [`super::check`] rejects them.

use super::{MAX_CONDITIONS, MAX_DEPTH};
use crate::{
    Condition, EdgeList, FarEnd, GraphRef, IdFilter, Member, Operand, PredicateRef, Relation,
    StartSource, Step, StepKind, TermTest, TouchedBy,
};
use jindou_model::{Direction, PredicateId};
use jindou_syntax::algebra::Canonical;

/// A tag that no decoder accepts.
const NEVER: u8 = u8::MAX;

/// Appends steps that have been checked: their lists have fewer than 2^32 members, and no condition is an expression.
pub(super) fn put(steps: &[Step], out: &mut Vec<u8>) {
    put_list(steps, out);
}

/// Decodes all steps; `None` if the bytes are not steps, or more bytes follow.
pub(super) fn take(bytes: &[u8]) -> Option<Vec<Step>> {
    let mut r = WireReader {
        bytes,
        room: MAX_CONDITIONS,
        depth: 0,
    };
    let steps = WireFormat::take(&mut r)?;
    r.bytes.is_empty().then_some(steps)
}

struct WireReader<'a> {
    bytes: &'a [u8],
    /// Number of conditions that are still allowed.
    room: usize,
    /// Depth of the next condition.
    depth: usize,
}

/// A type with an encoding.
trait WireFormat: Sized {
    /// Smallest encoding of a value, in bytes.
    const LEAST: usize;

    fn put(&self, out: &mut Vec<u8>);

    fn take(r: &mut WireReader<'_>) -> Option<Self>;

    /// Returns true if a list may have this many members; called before memory for them is allocated. By default, the
    /// remaining bytes must suffice. Lists of conditions nest, and each could claim all remaining bytes, so their total
    /// is limited as well.
    fn may_have(members: usize, r: &mut WireReader<'_>) -> bool {
        members <= r.bytes.len() / Self::LEAST
    }
}

macro_rules! numbers {
    ($($of:ty),*) => {$(
        impl WireFormat for $of {
            const LEAST: usize = size_of::<$of>();

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(r: &mut WireReader<'_>) -> Option<Self> {
                let (head, rest) = r.bytes.split_first_chunk()?;
                r.bytes = rest;
                Some(Self::from_le_bytes(*head))
            }
        }
    )*};
}

/// Implements [`WireFormat`] for a type with fields, which are encoded one after the other.
macro_rules! fields {
    ($of:ident { $($field:tt: $type:ty),* }) => {
        impl WireFormat for $of {
            const LEAST: usize = 0 $(+ <$type>::LEAST)*;

            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(r: &mut WireReader<'_>) -> Option<Self> {
                Some(Self { $($field: WireFormat::take(r)?),* })
            }
        }
    };
}

/// Implements [`WireFormat`] for a type with variants, encoded as a tag byte and the variant's fields.
macro_rules! variants {
    ($of:ident { $(
        $tag:literal $variant:ident $(($($part:ident),*))? $({$($field:ident),*})?
    ),* }) => {
        impl WireFormat for $of {
            const LEAST: usize = 1;

            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($part),*))? $({$($field),*})? => {
                        out.push($tag);
                        $($($part.put(out);)*)?
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn take(r: &mut WireReader<'_>) -> Option<Self> {
                Some(match u8::take(r)? {
                    $($tag => {
                        $($(let $part = WireFormat::take(r)?;)*)?
                        $($(let $field = WireFormat::take(r)?;)*)?
                        Self::$variant $(($($part),*))? $({$($field),*})?
                    })*
                    _ => return None,
                })
            }
        }
    };
}

numbers!(u8, u16, u32, f64);
fields!(PredicateId { 0: u32 });
variants!(Direction { 0 Out, 1 In });
variants!(Operand { 0 Slot(slot), 1 Const(id) });
variants!(PredicateRef { 0 Bind(to), 1 Slot(slot) });
variants!(FarEnd { 0 Bind(to), 1 Known(end) });
variants!(GraphRef {
    0 Default,
    1 Named(id),
    2 AnyNamed,
    3 Union,
    4 Set(ids),
    5 Slot(slot),
    6 Bind(to, only)
});
fields!(EdgeList {
    anchor: Operand,
    predicate: PredicateId,
    direction: Direction,
    graph: GraphRef
});
fields!(TouchedBy {
    predicate: PredicateId,
    direction: Direction,
    graph: GraphRef,
    neighbour: Option<u32>
});
fields!(Member { intervals: Vec<[u32; 2]>, touched: Option<TouchedBy> });
fields!(IdFilter { intervals: Vec<[u32; 2]>, members: Vec<Member> });
variants!(StartSource {
    0 Unit,
    1 IdFilter,
    2 List(list),
    3 Keys { predicate, direction, graph },
    4 Graphs(only)
});
variants!(StepKind {
    0 Start { to, source, within },
    1 Expand { to, lists, within },
    2 Check { list, other },
    3 Restrict { slot, within },
    4 ExpandAny { anchor, direction, predicate, far, graph },
    5 ScanAll { subject, predicate, object, graph },
    6 Cross { to, source, within }
});
variants!(Relation { 0 Equal, 1 NotEqual, 2 Less, 3 LessOrEqual, 4 Greater, 5 GreaterOrEqual });
variants!(TermTest { 0 Iri, 1 Blank, 2 Literal, 3 Numeric });

impl WireFormat for Step {
    const LEAST: usize = StepKind::LEAST + 2 * Vec::<u8>::LEAST + 2 * f64::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.kind.put(out);
        self.filters.put(out);
        self.live.put(out);
        self.rows.put(out);
        self.cost.put(out);
    }

    fn take(r: &mut WireReader<'_>) -> Option<Self> {
        Some(Self {
            kind: WireFormat::take(r)?,
            filters: WireFormat::take(r)?,
            live: WireFormat::take(r)?,
            rows: WireFormat::take(r)?,
            cost: WireFormat::take(r)?,
            why: String::new(),
        })
    }
}

impl WireFormat for Condition {
    const LEAST: usize = 1;

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Same(a, b) => {
                out.push(0);
                a.put(out);
                b.put(out);
            }
            Self::Compare(slot, relation, constant) => {
                out.push(1);
                slot.put(out);
                relation.put(out);
                constant.put(out);
            }
            Self::Kind(slot, test) => {
                out.push(2);
                slot.put(out);
                test.put(out);
            }
            Self::Bound(slot) => {
                out.push(3);
                slot.put(out);
            }
            Self::And(all) => {
                out.push(4);
                all.put(out);
            }
            Self::Or(all) => {
                out.push(5);
                all.put(out);
            }
            Self::Not(inner) => {
                out.push(6);
                inner.put(out);
            }
            // Not reached: [`super::check`] rejects expressions.
            Self::General(_) => out.push(NEVER),
        }
    }

    /// Recurses at most [`MAX_DEPTH`] times.
    fn take(r: &mut WireReader<'_>) -> Option<Self> {
        if r.depth == MAX_DEPTH {
            return None;
        }
        r.depth += 1;
        let condition = match u8::take(r)? {
            0 => Self::Same(WireFormat::take(r)?, WireFormat::take(r)?),
            1 => Self::Compare(
                WireFormat::take(r)?,
                WireFormat::take(r)?,
                WireFormat::take(r)?,
            ),
            2 => Self::Kind(WireFormat::take(r)?, WireFormat::take(r)?),
            3 => Self::Bound(WireFormat::take(r)?),
            4 => Self::And(WireFormat::take(r)?),
            5 => Self::Or(WireFormat::take(r)?),
            6 if Self::may_have(1, r) => Self::Not(Box::new(WireFormat::take(r)?)),
            _ => return None,
        };
        r.depth -= 1;
        Some(condition)
    }

    fn may_have(members: usize, r: &mut WireReader<'_>) -> bool {
        let left = r.room.checked_sub(members);
        r.room = left.unwrap_or(0);
        left.is_some() && members <= r.bytes.len()
    }
}

impl WireFormat for [u32; 2] {
    const LEAST: usize = 2 * u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|n| n.put(out));
    }

    fn take(r: &mut WireReader<'_>) -> Option<Self> {
        Some([WireFormat::take(r)?, WireFormat::take(r)?])
    }
}

impl<T: WireFormat> WireFormat for Option<T> {
    const LEAST: usize = 1;

    fn put(&self, out: &mut Vec<u8>) {
        u8::from(self.is_some()).put(out);
        self.iter().for_each(|x| x.put(out));
    }

    fn take(r: &mut WireReader<'_>) -> Option<Self> {
        match u8::take(r)? {
            0 => Some(None),
            1 => Some(Some(T::take(r)?)),
            _ => None,
        }
    }
}

impl WireFormat for Canonical {
    const LEAST: usize = Vec::<u8>::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    fn take(r: &mut WireReader<'_>) -> Option<Self> {
        Some(Vec::<u8>::take(r)?.into())
    }
}

impl<T: WireFormat> WireFormat for Vec<T> {
    const LEAST: usize = u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    fn take(r: &mut WireReader<'_>) -> Option<Self> {
        let members = u32::take(r)? as usize;
        if !T::may_have(members, r) {
            return None;
        }
        let mut all = Self::with_capacity(members);
        for _ in 0..members {
            all.push(T::take(r)?);
        }
        Some(all)
    }
}

fn put_list<T: WireFormat>(all: &[T], out: &mut Vec<u8>) {
    (all.len() as u32).put(out);
    all.iter().for_each(|x| x.put(out));
}
