//! Finds the terms of a set that are less or greater than a given term, in the sense of `<` and similar comparisons,
//! without comparing with each of them.
//!
//! Terms that compare with one another are in a sorted list: integers and decimals, floats, and doubles in one list
//! each, dates and times by datatype, booleans, strings, and strings by language tag. Numbers of two types are compared
//! in the wider type. Rounding preserves the order, so the terms that match a number are a range of each of the three
//! lists.

use super::machine::Interpreter;
use super::val::Val;
use crate::batch::OperatorCharge;
use crate::eval::EvalContext;
use jindou_model::term;
use jindou_model::{Holder, Result};
use jindou_plan::Relation;
use jindou_values::{Num, Number, TemporalKind, Value};
use std::cmp::Ordering;

/// Number of terms between two checks of the deadline.
const CHECK: usize = 1 << 12;
/// Texts are charged whenever they have grown by this many bytes.
const CHARGED: usize = 1 << 20;
/// Number of single comparisons between two checks of the deadline.
const CHECK_PAIRS: usize = 1 << 6;
/// Number of lists of numbers: integers and decimals, floats, doubles.
const NUMBERS: usize = 3;

/// One of the lists of an [`Ordered`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum OrderedList {
    Numbers(usize),
    Times,
    Booleans,
    Texts,
    /// Terms in [`Later::found`], which were compared one by one.
    Found,
}

/// A range of a list.
#[derive(Clone, Copy)]
struct ListSpan {
    list: OrderedList,
    from: usize,
    to: usize,
}

/// A string, as a range of [`Ordered::bytes`]: the language tag, a zero byte, the text.
#[derive(Clone, Copy)]
struct TaggedText {
    at: usize,
    len: usize,
    id: u32,
}

/// A set of terms, prepared for finding those before or after a given term. O(n log n) to build.
pub(crate) struct Ordered {
    numbers: [Vec<(Number, u32)>; NUMBERS],
    times: Vec<((TemporalKind, i128), u32)>,
    booleans: Vec<(bool, u32)>,
    texts: Vec<TaggedText>,
    bytes: Vec<u8>,
    /// Durations, which have no total order and so are compared one by one.
    others: Vec<u32>,
    /// Bytes of the digits of long numbers.
    long_bytes: usize,
    charge: OperatorCharge,
}

impl Ordered {
    /// Builds the set of terms with these ids, which must be distinct.
    pub fn new(ids: &[u32], holder: Holder, ctx: &EvalContext<'_>) -> Result<Self> {
        let mut out = Self {
            numbers: Default::default(),
            times: vec![],
            booleans: vec![],
            texts: vec![],
            bytes: vec![],
            others: vec![],
            long_bytes: 0,
            charge: OperatorCharge::for_holder(holder, ctx.budget),
        };
        let mut m = Interpreter::empty(ctx);
        for part in ids.chunks(CHECK) {
            ctx.check()?;
            let mut charged = out.bytes.len();
            for &id in part {
                out.add(&mut m, ctx, id);
                if out.bytes.len() > charged + CHARGED {
                    charged = out.bytes.len();
                    out.charge.set(out.size())?;
                }
            }
            out.charge.set(out.size())?;
        }
        ctx.check()?;
        for list in &mut out.numbers {
            list.sort_unstable_by(|a, b| a.0.order(&b.0).unwrap_or(Ordering::Equal));
        }
        out.times.sort_unstable();
        out.others.sort_unstable();
        out.booleans.sort_unstable();
        let bytes = &out.bytes;
        out.texts
            .sort_unstable_by(|a, b| text(bytes, *a).cmp(text(bytes, *b)));
        ctx.check()?;
        Ok(out)
    }

    fn add(&mut self, m: &mut Interpreter, ctx: &EvalContext<'_>, id: u32) {
        match value_of(m, ctx, id) {
            Some(Value::Number(n)) => {
                if let Number::Integer(e) | Number::Decimal(e) = &n {
                    self.long_bytes += e.bytes();
                }
                if let Some(list) = self.numbers.get_mut(list_of(&n)) {
                    list.push((n, id));
                }
            }
            Some(Value::Temporal(t)) => self.times.push(((t.kind(), t.instant()), id)),
            Some(Value::Boolean(b)) => self.booleans.push((b, id)),
            Some(Value::String(s)) => self.text("", s, id),
            Some(Value::Lang(s, tag)) => self.text(tag, s, id),
            Some(Value::Duration(_)) => self.others.push(id),
            _ => {}
        }
    }

    fn text(&mut self, tag: &str, text: &str, id: u32) {
        let at = self.bytes.len();
        push_key(tag, text, &mut self.bytes);
        let len = self.bytes.len() - at;
        self.texts.push(TaggedText { at, len, id });
    }

    fn size(&self) -> usize {
        let numbers: usize = self.numbers.iter().map(Vec::capacity).sum();
        numbers * size_of::<(Number, u32)>()
            + self.long_bytes
            + self.times.capacity() * size_of::<((TemporalKind, i128), u32)>()
            + self.booleans.capacity() * size_of::<(bool, u32)>()
            + self.texts.capacity() * size_of::<TaggedText>()
            + self.bytes.capacity()
            + self.others.capacity() * 4
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        self.charge.bytes()
    }
}

fn text(bytes: &[u8], t: TaggedText) -> &[u8] {
    &bytes[t.at..t.at + t.len]
}

/// Appends a string's sort key. Language tags have no zero byte, so keys sort by the tag, then by the text.
fn push_key(tag: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(tag.as_bytes());
    out.push(0);
    out.extend_from_slice(text.as_bytes());
}

/// The value of a term, if it can be compared; `None` also for NaN.
fn value_of<'m>(m: &'m mut Interpreter, ctx: &EvalContext<'_>, id: u32) -> Option<Value<'m>> {
    if id == 0 {
        return None;
    }
    let tag = m.tag(ctx, id)?;
    if matches!(tag, term::IRI | term::BLANK | term::TRIPLE) {
        return None;
    }
    if term::NUMERIC_TAGS.contains(&tag)
        && let Some(n) = m.number(ctx, Val::Id(id))
    {
        return (!n.is_nan()).then(|| Value::Number(n.into()));
    }
    m.load(ctx, id);
    jindou_values::value(&m.term)
}

fn list_of(n: &Number) -> usize {
    match n {
        Number::Small(Num::Flt(_)) => 1,
        Number::Small(Num::Dbl(_)) => 2,
        _ => 0,
    }
}

/// One worker's lookups in an [`Ordered`].
pub(crate) struct Later {
    machine: Interpreter,
    key: Vec<u8>,
    spans: Vec<ListSpan>,
    found: Vec<u32>,
    /// Spans and terms found for the previous bound.
    before: (Vec<ListSpan>, Vec<u32>),
    charge: OperatorCharge,
}

impl Later {
    pub fn new(ctx: &EvalContext<'_>) -> Self {
        Self {
            machine: Interpreter::empty(ctx),
            key: vec![],
            spans: vec![],
            found: vec![],
            before: Default::default(),
            charge: OperatorCharge::new(ctx.budget),
        }
    }

    /// Finds the terms `x` of the set for which `id relation x` is true; returns their number.
    ///
    /// # Errors
    /// `Limit`, `Timeout`, `Cancelled`.
    pub fn find(
        &mut self,
        ctx: &EvalContext<'_>,
        set: &Ordered,
        relation: Relation,
        id: u32,
    ) -> Result<usize> {
        self.spans.clear();
        self.found.clear();
        let mut one_by_one = false;
        match value_of(&mut self.machine, ctx, id) {
            Some(Value::Number(n)) => {
                for (i, list) in set.numbers.iter().enumerate() {
                    let ends = ends(list.len(), |at, or| {
                        let order = list.get(at).and_then(|e| e.0.order(&n));
                        order == Some(Ordering::Less) || or && order == Some(Ordering::Equal)
                    });
                    add(
                        &mut self.spans,
                        OrderedList::Numbers(i),
                        (0, list.len()),
                        ends,
                        relation,
                    );
                }
            }
            Some(Value::Temporal(t)) => {
                let of_kind = |end: bool| {
                    set.times
                        .partition_point(|e| e.0.0 < t.kind() || end && e.0.0 == t.kind())
                };
                let key = (t.kind(), t.instant());
                let ends = ends(set.times.len(), |at, or| {
                    set.times
                        .get(at)
                        .is_some_and(|e| e.0 < key || or && e.0 == key)
                });
                let within = (of_kind(false), of_kind(true));
                add(&mut self.spans, OrderedList::Times, within, ends, relation);
            }
            Some(Value::Boolean(b)) => {
                let ends = ends(set.booleans.len(), |at, or| {
                    set.booleans
                        .get(at)
                        .is_some_and(|e| !e.0 & b || or && e.0 == b)
                });
                let within = (0, set.booleans.len());
                add(
                    &mut self.spans,
                    OrderedList::Booleans,
                    within,
                    ends,
                    relation,
                );
            }
            Some(Value::String(s)) => {
                self.key.clear();
                push_key("", s, &mut self.key);
                texts(&mut self.spans, set, &self.key, 1, relation);
            }
            Some(Value::Lang(s, tag)) => {
                self.key.clear();
                push_key(tag, s, &mut self.key);
                texts(&mut self.spans, set, &self.key, tag.len() + 1, relation);
            }
            Some(Value::Duration(_)) => one_by_one = true,
            _ => {}
        }
        if one_by_one {
            for (i, &other) in set.others.iter().enumerate() {
                if i % CHECK_PAIRS == 0 {
                    ctx.check()?;
                }
                self.machine.clear();
                if self
                    .machine
                    .ordered(ctx, relation, Val::Id(id), Val::Id(other))
                    == Some(true)
                {
                    self.found.push(other);
                }
            }
            let found = self.found.capacity() + self.before.1.capacity();
            self.charge.set(found * 4)?;
            self.spans.push(ListSpan {
                list: OrderedList::Found,
                from: 0,
                to: self.found.len(),
            });
        }
        Ok(self.spans.iter().map(|s| s.to - s.from).sum())
    }

    /// Of the terms that were found, keeps those that also satisfy another comparison; returns their number.
    ///
    /// # Errors
    /// `Limit`, `Timeout`, `Cancelled`.
    pub fn narrow(
        &mut self,
        ctx: &EvalContext<'_>,
        set: &Ordered,
        relation: Relation,
        id: u32,
    ) -> Result<usize> {
        std::mem::swap(&mut self.spans, &mut self.before.0);
        std::mem::swap(&mut self.found, &mut self.before.1);
        self.find(ctx, set, relation, id)?;
        let (spans, found) = (&self.before.0, &self.before.1);
        // `found` is ascending, like the set's durations.
        self.found.retain(|id| found.binary_search(id).is_ok());
        let all = self.found.len();
        self.spans.retain_mut(|span| {
            if matches!(span.list, OrderedList::Found) {
                span.to = all;
                return all > 0;
            }
            let Some(other) = spans.iter().find(|o| o.list == span.list) else {
                return false;
            };
            span.from = span.from.max(other.from);
            span.to = span.to.min(other.to);
            span.from < span.to
        });
        Ok(self.spans.iter().map(|s| s.to - s.from).sum())
    }

    /// Appends some of the terms that were found: `take` of them, beginning with number `from`.
    pub fn copy(&self, set: &Ordered, mut from: usize, mut take: usize, out: &mut Vec<u32>) {
        for span in &self.spans {
            let len = span.to - span.from;
            if from >= len {
                from -= len;
                continue;
            }
            let now = take.min(len - from);
            let (a, b) = (span.from + from, span.from + from + now);
            match span.list {
                OrderedList::Numbers(i) => {
                    out.extend(set.numbers[i][a..b].iter().map(|e| e.1));
                }
                OrderedList::Times => out.extend(set.times[a..b].iter().map(|e| e.1)),
                OrderedList::Booleans => {
                    out.extend(set.booleans[a..b].iter().map(|e| e.1));
                }
                OrderedList::Texts => out.extend(set.texts[a..b].iter().map(|e| e.id)),
                OrderedList::Found => out.extend_from_slice(&self.found[a..b]),
            }
            take -= now;
            from = 0;
            if take == 0 {
                return;
            }
        }
    }
}

/// Positions of the first entry that is not less than a key, and of the first that is greater. `before(at, or_equal)`
/// tells whether the entry at a position is less than the key, or (`or_equal`) at most the key.
fn ends(len: usize, before: impl Fn(usize, bool) -> bool) -> (usize, usize) {
    let first = |or: bool| {
        let (mut from, mut to) = (0, len);
        while from < to {
            let at = from + (to - from) / 2;
            if before(at, or) {
                from = at + 1;
            } else {
                to = at;
            }
        }
        from
    };
    (first(false), first(true))
}

/// Adds the range of a list whose terms match the relation. `within` are the entries that can be compared with the
/// term.
fn add(
    spans: &mut Vec<ListSpan>,
    list: OrderedList,
    within: (usize, usize),
    (first, after): (usize, usize),
    relation: Relation,
) {
    let (from, to) = match relation {
        Relation::Less => (after, within.1),
        Relation::LessOrEqual => (first, within.1),
        Relation::Greater => (within.0, first),
        Relation::GreaterOrEqual => (within.0, after),
        Relation::Equal | Relation::NotEqual => return,
    };
    if from < to {
        spans.push(ListSpan { list, from, to });
    }
}

/// Adds the range of strings that match the relation, among those whose keys begin with the same `tag` bytes.
fn texts(spans: &mut Vec<ListSpan>, set: &Ordered, key: &[u8], tag: usize, relation: Relation) {
    let tag = &key[..tag];
    let of = |at: usize| text(&set.bytes, set.texts[at]);
    let both = ends(set.texts.len(), |at, or| {
        of(at) < key || or && of(at) == key
    });
    let within = ends(set.texts.len(), |at, or| {
        let own = of(at);
        let own = own.get(..tag.len()).unwrap_or(own);
        own < tag || or && own == tag
    });
    add(spans, OrderedList::Texts, within, both, relation);
}
