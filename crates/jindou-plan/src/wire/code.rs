//! The bytes of each part of a step, written down once for both ways. Whatever the bytes say is read: [`super::check`] looks at what it
//! means.

use super::{MAX_CONDITIONS, MAX_DEPTH};
use crate::{
    Condition, EdgeList, FarEnd, GraphRef, IdFilter, Member, Operand, PredicateRef, Relation,
    StartSource, Step, StepKind, TermTest, TouchedBy,
};
use jindou_model::{Direction, PredicateId};
use jindou_syntax::algebra::Canonical;

/// A tag that no reader takes.
const NEVER: u8 = u8::MAX;

/// Appends steps that were checked: their lists have fewer than 2^32 members, and their conditions are not expressions.
pub(super) fn put(steps: &[Step], out: &mut Vec<u8>) {
    put_list(steps, out);
}

/// All steps, and nothing after them.
pub(super) fn take(bytes: &[u8]) -> Option<Vec<Step>> {
    let mut r = Reader {
        bytes,
        room: MAX_CONDITIONS,
        depth: 0,
    };
    let steps = Wire::take(&mut r)?;
    r.bytes.is_empty().then_some(steps)
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// Conditions that there may still be.
    room: usize,
    /// Conditions around the next one.
    depth: usize,
}

/// A value with its bytes.
trait Wire: Sized {
    /// Fewest bytes.
    const LEAST: usize;

    fn put(&self, out: &mut Vec<u8>);

    fn take(r: &mut Reader<'_>) -> Option<Self>;

    /// Whether this many more may be read: asked before there is memory for them. Only lists of conditions are in lists of their own kind,
    /// which could each claim all the bytes that are left.
    fn may_have(members: usize, r: &mut Reader<'_>) -> bool {
        members <= r.bytes.len() / Self::LEAST
    }
}

macro_rules! numbers {
    ($($of:ty),*) => {$(
        impl Wire for $of {
            const LEAST: usize = size_of::<$of>();

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(r: &mut Reader<'_>) -> Option<Self> {
                let (head, rest) = r.bytes.split_first_chunk()?;
                r.bytes = rest;
                Some(Self::from_le_bytes(*head))
            }
        }
    )*};
}

/// A type with fields, one after the other.
macro_rules! fields {
    ($of:ident { $($field:tt: $type:ty),* }) => {
        impl Wire for $of {
            const LEAST: usize = 0 $(+ <$type>::LEAST)*;

            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(r: &mut Reader<'_>) -> Option<Self> {
                Some(Self { $($field: Wire::take(r)?),* })
            }
        }
    };
}

/// A type with variants: a byte, and the parts of the variant.
macro_rules! variants {
    ($of:ident { $(
        $tag:literal $variant:ident $(($($part:ident),*))? $({$($field:ident),*})?
    ),* }) => {
        impl Wire for $of {
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

            fn take(r: &mut Reader<'_>) -> Option<Self> {
                Some(match u8::take(r)? {
                    $($tag => {
                        $($(let $part = Wire::take(r)?;)*)?
                        $($(let $field = Wire::take(r)?;)*)?
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

impl Wire for Step {
    const LEAST: usize = StepKind::LEAST + 2 * Vec::<u8>::LEAST + 2 * f64::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.kind.put(out);
        self.filters.put(out);
        self.live.put(out);
        self.rows.put(out);
        self.cost.put(out);
    }

    fn take(r: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            kind: Wire::take(r)?,
            filters: Wire::take(r)?,
            live: Wire::take(r)?,
            rows: Wire::take(r)?,
            cost: Wire::take(r)?,
            why: String::new(),
        })
    }
}

impl Wire for Condition {
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
            // Checked before: none comes here.
            Self::General(_) => out.push(NEVER),
        }
    }

    /// Recurses [`MAX_DEPTH`] times at most.
    fn take(r: &mut Reader<'_>) -> Option<Self> {
        if r.depth == MAX_DEPTH {
            return None;
        }
        r.depth += 1;
        let condition = match u8::take(r)? {
            0 => Self::Same(Wire::take(r)?, Wire::take(r)?),
            1 => Self::Compare(Wire::take(r)?, Wire::take(r)?, Wire::take(r)?),
            2 => Self::Kind(Wire::take(r)?, Wire::take(r)?),
            3 => Self::Bound(Wire::take(r)?),
            4 => Self::And(Wire::take(r)?),
            5 => Self::Or(Wire::take(r)?),
            6 if Self::may_have(1, r) => Self::Not(Box::new(Wire::take(r)?)),
            _ => return None,
        };
        r.depth -= 1;
        Some(condition)
    }

    fn may_have(members: usize, r: &mut Reader<'_>) -> bool {
        let left = r.room.checked_sub(members);
        r.room = left.unwrap_or(0);
        left.is_some() && members <= r.bytes.len()
    }
}

impl Wire for [u32; 2] {
    const LEAST: usize = 2 * u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|n| n.put(out));
    }

    fn take(r: &mut Reader<'_>) -> Option<Self> {
        Some([Wire::take(r)?, Wire::take(r)?])
    }
}

impl<T: Wire> Wire for Option<T> {
    const LEAST: usize = 1;

    fn put(&self, out: &mut Vec<u8>) {
        u8::from(self.is_some()).put(out);
        self.iter().for_each(|x| x.put(out));
    }

    fn take(r: &mut Reader<'_>) -> Option<Self> {
        match u8::take(r)? {
            0 => Some(None),
            1 => Some(Some(T::take(r)?)),
            _ => None,
        }
    }
}

impl Wire for Canonical {
    const LEAST: usize = Vec::<u8>::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    fn take(r: &mut Reader<'_>) -> Option<Self> {
        Some(Vec::<u8>::take(r)?.into())
    }
}

impl<T: Wire> Wire for Vec<T> {
    const LEAST: usize = u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    fn take(r: &mut Reader<'_>) -> Option<Self> {
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

fn put_list<T: Wire>(all: &[T], out: &mut Vec<u8>) {
    (all.len() as u32).put(out);
    all.iter().for_each(|x| x.put(out));
}
