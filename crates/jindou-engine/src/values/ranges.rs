//! Finds the terms of a set that are less than a given one, or greater, in the sense of `<` and its like, without comparing with
//! each.
//!
//! Terms that compare with one another are sorted: integers and decimals, floats and doubles each by themselves, dates and times of
//! one datatype, booleans, strings, and strings of one language. A number compares with one of another type in the wider one. Rounding
//! keeps the order, so its partners are a range of each of the three lists all the same.

use super::machine::Machine;
use super::val::Val;
use crate::batch::Charge;
use crate::explore::Run;
use jindou_model::term;
use jindou_model::{Holder, Result};
use jindou_plan::Relation;
use jindou_values::{Kind, Num, Number, Value};
use std::cmp::Ordering;

/// Terms between two looks at the clock.
const CHECK: usize = 1 << 12;
/// Bytes of texts that are charged at once.
const CHARGED: usize = 1 << 20;
/// Comparisons one by one between two looks at the clock.
const CHECK_PAIRS: usize = 1 << 6;
/// Lists of numbers: exact ones, floats, doubles.
const NUMBERS: usize = 3;

/// A list of an [`Ordered`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Numbers(usize),
    Times,
    Booleans,
    Texts,
    /// Terms that were found one by one.
    Found,
}

/// A part of a list.
#[derive(Clone, Copy)]
struct Span {
    list: List,
    from: usize,
    to: usize,
}

/// A string with the place of its bytes: the language tag, a zero, the text.
#[derive(Clone, Copy)]
struct Text {
    at: usize,
    len: usize,
    id: u32,
}

/// A set of terms, ready to be asked which of them come before or after another. O(n log n) to make.
pub(crate) struct Ordered {
    numbers: [Vec<(Number, u32)>; NUMBERS],
    times: Vec<((Kind, i128), u32)>,
    booleans: Vec<(bool, u32)>,
    texts: Vec<Text>,
    bytes: Vec<u8>,
    /// Durations, whose order is partial.
    others: Vec<u32>,
    /// Of the digits of long numbers.
    long_bytes: usize,
    charge: Charge,
}

impl Ordered {
    /// Of distinct ids.
    pub fn new(ids: &[u32], holder: Holder, run: &Run<'_>) -> Result<Self> {
        let mut out = Self {
            numbers: Default::default(),
            times: vec![],
            booleans: vec![],
            texts: vec![],
            bytes: vec![],
            others: vec![],
            long_bytes: 0,
            charge: Charge::of(holder, run.budget),
        };
        let mut m = Machine::empty(run);
        for part in ids.chunks(CHECK) {
            run.check()?;
            let mut charged = out.bytes.len();
            for &id in part {
                out.add(&mut m, run, id);
                if out.bytes.len() > charged + CHARGED {
                    charged = out.bytes.len();
                    out.charge.set(out.size())?;
                }
            }
            out.charge.set(out.size())?;
        }
        run.check()?;
        for list in &mut out.numbers {
            list.sort_unstable_by(|a, b| a.0.order(&b.0).unwrap_or(Ordering::Equal));
        }
        out.times.sort_unstable();
        out.others.sort_unstable();
        out.booleans.sort_unstable();
        let bytes = &out.bytes;
        out.texts
            .sort_unstable_by(|a, b| text(bytes, *a).cmp(text(bytes, *b)));
        run.check()?;
        Ok(out)
    }

    fn add(&mut self, m: &mut Machine, run: &Run<'_>, id: u32) {
        match value_of(m, run, id) {
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
        self.texts.push(Text { at, len, id });
    }

    fn size(&self) -> usize {
        let numbers: usize = self.numbers.iter().map(Vec::capacity).sum();
        numbers * size_of::<(Number, u32)>()
            + self.long_bytes
            + self.times.capacity() * size_of::<((Kind, i128), u32)>()
            + self.booleans.capacity() * size_of::<(bool, u32)>()
            + self.texts.capacity() * size_of::<Text>()
            + self.bytes.capacity()
            + self.others.capacity() * 4
    }

    /// Bytes that it holds.
    pub fn held(&self) -> u64 {
        self.charge.bytes()
    }
}

fn text(bytes: &[u8], t: Text) -> &[u8] {
    &bytes[t.at..t.at + t.len]
}

/// Tags have no zero byte, so keys sort by the tag, then by the text.
fn push_key(tag: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(tag.as_bytes());
    out.push(0);
    out.extend_from_slice(text.as_bytes());
}

/// The value of a term that compares with some; not NaN.
fn value_of<'m>(m: &'m mut Machine, run: &Run<'_>, id: u32) -> Option<Value<'m>> {
    if id == 0 {
        return None;
    }
    let tag = m.tag(run, id)?;
    if matches!(tag, term::IRI | term::BLANK | term::TRIPLE) {
        return None;
    }
    if term::NUMERIC_TAGS.contains(&tag)
        && let Some(n) = m.number(run, Val::Id(id))
    {
        return (!n.is_nan()).then(|| Value::Number(n.into()));
    }
    m.load(run, id);
    jindou_values::value(&m.term)
}

fn list_of(n: &Number) -> usize {
    match n {
        Number::Small(Num::Flt(_)) => 1,
        Number::Small(Num::Dbl(_)) => 2,
        _ => 0,
    }
}

/// Asks an [`Ordered`]. One a worker.
pub(crate) struct Later {
    machine: Machine,
    key: Vec<u8>,
    spans: Vec<Span>,
    found: Vec<u32>,
    /// Of the bound before.
    before: (Vec<Span>, Vec<u32>),
    charge: Charge,
}

impl Later {
    pub fn new(run: &Run<'_>) -> Self {
        Self {
            machine: Machine::empty(run),
            key: vec![],
            spans: vec![],
            found: vec![],
            before: Default::default(),
            charge: Charge::new(run.budget),
        }
    }

    /// Looks for the terms of the set to which this one has the relation; says how many there are.
    ///
    /// # Errors
    /// `Limit`, `Timeout`, `Cancelled`.
    pub fn find(
        &mut self,
        run: &Run<'_>,
        set: &Ordered,
        relation: Relation,
        id: u32,
    ) -> Result<usize> {
        self.spans.clear();
        self.found.clear();
        let mut one_by_one = false;
        match value_of(&mut self.machine, run, id) {
            Some(Value::Number(n)) => {
                for (i, list) in set.numbers.iter().enumerate() {
                    let ends = ends(list.len(), |at, or| {
                        let order = list.get(at).and_then(|e| e.0.order(&n));
                        order == Some(Ordering::Less) || or && order == Some(Ordering::Equal)
                    });
                    add(
                        &mut self.spans,
                        List::Numbers(i),
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
                add(&mut self.spans, List::Times, within, ends, relation);
            }
            Some(Value::Boolean(b)) => {
                let ends = ends(set.booleans.len(), |at, or| {
                    set.booleans
                        .get(at)
                        .is_some_and(|e| !e.0 & b || or && e.0 == b)
                });
                let within = (0, set.booleans.len());
                add(&mut self.spans, List::Booleans, within, ends, relation);
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
                    run.check()?;
                }
                self.machine.clear();
                if self
                    .machine
                    .ordered(run, relation, Val::Id(id), Val::Id(other))
                    == Some(true)
                {
                    self.found.push(other);
                }
            }
            let found = self.found.capacity() + self.before.1.capacity();
            self.charge.set(found * 4)?;
            self.spans.push(Span {
                list: List::Found,
                from: 0,
                to: self.found.len(),
            });
        }
        Ok(self.spans.iter().map(|s| s.to - s.from).sum())
    }

    /// Keeps of the terms that were found those to which another one has a relation, too; says how many there are.
    ///
    /// # Errors
    /// `Limit`, `Timeout`, `Cancelled`.
    pub fn narrow(
        &mut self,
        run: &Run<'_>,
        set: &Ordered,
        relation: Relation,
        id: u32,
    ) -> Result<usize> {
        std::mem::swap(&mut self.spans, &mut self.before.0);
        std::mem::swap(&mut self.found, &mut self.before.1);
        self.find(run, set, relation, id)?;
        let (spans, found) = (&self.before.0, &self.before.1);
        // Ascending, as all that are found one by one.
        self.found.retain(|id| found.binary_search(id).is_ok());
        let all = self.found.len();
        self.spans.retain_mut(|span| {
            if matches!(span.list, List::Found) {
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

    /// Appends `take` of the terms that were found, from the one numbered `from` on.
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
                List::Numbers(i) => {
                    out.extend(set.numbers[i][a..b].iter().map(|e| e.1));
                }
                List::Times => out.extend(set.times[a..b].iter().map(|e| e.1)),
                List::Booleans => {
                    out.extend(set.booleans[a..b].iter().map(|e| e.1));
                }
                List::Texts => out.extend(set.texts[a..b].iter().map(|e| e.id)),
                List::Found => out.extend_from_slice(&self.found[a..b]),
            }
            take -= now;
            from = 0;
            if take == 0 {
                return;
            }
        }
    }
}

/// The places of the first entry that is not less, and of the first that is greater. `before(at, or_equal)` says whether the
/// entry there is less, or less or equal.
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

/// Adds the part of a list, within the entries that compare with the term, to which the term has the relation.
fn add(
    spans: &mut Vec<Span>,
    list: List,
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
        spans.push(Span { list, from, to });
    }
}

/// Of strings whose keys begin with the same tag.
fn texts(spans: &mut Vec<Span>, set: &Ordered, key: &[u8], tag: usize, relation: Relation) {
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
    add(spans, List::Texts, within, both, relation);
}
