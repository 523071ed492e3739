//! Values of an expression as sort keys, in the order of ORDER BY. They have no ids, so neither a dictionary nor a table
//! of terms is searched.
//!
//! A key is a number and some bytes, its *content*. The number has the value's class in its highest 8 bits and the
//! beginning of the content in the others, so that it decides most comparisons. Contents of most classes are compared
//! byte by byte; those of numbers, durations and triple terms by value where bytes do not decide.

use super::machine::{Interpreter, Maybe};
use super::order_keys::Added;
use super::val::Val;
use crate::batch::OperatorCharge;
use crate::eval::EvalContext;
use jindou_dictionary::SortKey;
use jindou_model::scope::worked;
use jindou_model::term;
use jindou_model::{Error, Holder, MemoryBudget, Resource, Result};
use jindou_values::{Num, Number, Value, value};
use std::cmp::Ordering;
use std::ops::Range;

/// Bits of a key's number that have the beginning of the content.
const CONTENT_BITS: u32 = 56;
/// Bytes of a double, with which the content of a number begins.
const DOUBLE: usize = 8;
/// Length in bytes from which on comparing contents counts as work.
const LONG: usize = 1 << 9;
/// Bytes of keys from which on they [keep headroom](ValueKeys::with_headroom), unless that is more than this share (1/n) of
/// the budget.
const MANY: u64 = 1 << 17;
const MANY_SHARE: u64 = 64;
/// Capacity in bytes that scratch memory keeps from one value to the next.
const KEPT: usize = 1 << 10;
/// Work of reading a byte of a value that is parsed.
const PARSED: usize = 8;

/// The value of a row that [`ValueKeys::add_within`] does not keep.
pub(crate) const BEYOND: u32 = u32::MAX;

/// Keys of values, which are numbered in the order in which they are added. Number 0 is that of an error, which sorts
/// first, as an unbound variable does.
pub(crate) struct ValueKeys {
    keys: Vec<KeyEnd>,
    contents: Vec<u8>,
    /// True if a content is long, so that sorting should check the deadline.
    has_long: bool,
    string: u8,
    number: u8,
    /// Scratch memory: the canonical bytes of a number.
    exact: Vec<u8>,
    /// See [`Self::with_headroom`].
    keeps_headroom: bool,
    charge: OperatorCharge,
}

/// A key's number, and the end of its content.
#[derive(Clone, Copy)]
struct KeyEnd {
    number: u64,
    end: usize,
}

impl ValueKeys {
    pub fn new(budget: &MemoryBudget) -> Self {
        let class = |bytes: &[u8]| SortKey::alone(bytes).0.class;
        Self {
            keys: vec![KeyEnd { number: 0, end: 0 }],
            contents: vec![],
            has_long: false,
            string: class(&[term::STRING]),
            number: class(&[term::FIRST_DATATYPE, b'0']),
            exact: vec![],
            keeps_headroom: false,
            charge: OperatorCharge::for_holder(Holder::OrderBy, budget),
        }
    }

    /// Keys of rows that can be written to files: once there are many, adding more leaves other operators the headroom
    /// ([`MemoryBudget::charge_with_headroom`]).
    pub fn with_headroom(budget: &MemoryBudget) -> Self {
        Self {
            keeps_headroom: true,
            ..Self::new(budget)
        }
    }

    /// True if the values take so many bytes that writing them to a file frees much memory.
    pub fn are_many(&self) -> bool {
        let many = (self.charge.budget().limit() / MANY_SHARE).min(MANY);
        (self.contents.len() + self.keys.len() * size_of::<KeyEnd>()) as u64 > many
    }

    /// Removes all values but keeps their memory.
    pub fn clear(&mut self) {
        self.keys.truncate(1);
        self.contents.clear();
        self.has_long = false;
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    pub fn has_long(&self) -> bool {
        self.has_long
    }

    /// The number of a value's key.
    #[inline]
    pub fn number(&self, value: u32) -> u64 {
        self.keys[value as usize].number
    }

    /// The content of a value.
    #[inline]
    pub fn content(&self, value: u32) -> &[u8] {
        &self.contents[self.span(value)]
    }

    /// True if the contents of values with this number are ordered byte by byte.
    #[inline]
    pub fn is_ordered_by_bytes(&self, number: u64) -> bool {
        let class = (number >> CONTENT_BITS) as u8;
        let key = SortKey { class, rank: 0 };
        class != self.number && !key.is_duration() && !key.is_triple()
    }

    #[inline]
    fn span(&self, value: u32) -> Range<usize> {
        let at = value as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.keys[before].end);
        start..self.keys[at].end
    }

    /// The order of two values.
    #[inline]
    pub fn order(&self, value: u32, other: &Self, other_value: u32) -> Ordering {
        let (a, b) = (self.number(value), other.number(other_value));
        a.cmp(&b)
            .then_with(|| self.order_of_contents(value, other, other_value))
    }

    /// The order of two values whose keys have the same number.
    #[inline]
    pub fn order_of_contents(&self, value: u32, other: &Self, other_value: u32) -> Ordering {
        let (a, b) = (self.content(value), other.content(other_value));
        let number = self.number(value);
        if self.is_ordered_by_bytes(number) || a == b {
            return a.cmp(b);
        }
        if (number >> CONTENT_BITS) as u8 == self.number {
            return order_of_numbers(a, b);
        }
        Added::new(None, a.into()).order(&Added::new(None, b.into()))
    }

    /// Adds a value; returns its number.
    pub fn add(&mut self, m: &mut Interpreter, ctx: &EvalContext<'_>, value: Maybe) -> Result<u32> {
        match value {
            None => Ok(0),
            Some(Val::Num(n)) => self.add_number(&n.into()),
            Some(Val::Text(t)) if t.lang.is_none() => {
                self.add_content(self.string, m.bytes(t.text))
            }
            Some(v) => {
                m.canonical(ctx, v);
                self.add_term(m.canonical_bytes())
            }
        }
    }

    /// As [`Self::add`]. A value that sorts after the value number `bound` (with true: before it) is not kept, and
    /// [`BEYOND`] is returned.
    pub fn add_within(
        &mut self,
        m: &mut Interpreter,
        ctx: &EvalContext<'_>,
        value: Maybe,
        (bound, descending): (u32, bool),
    ) -> Result<u32> {
        let value = self.add(m, ctx, value)?;
        let beyond = match descending {
            false => Ordering::Greater,
            true => Ordering::Less,
        };
        if self.order(value, self, bound) != beyond {
            return Ok(value);
        }
        if value > 0 {
            self.contents.truncate(self.span(value).start);
            self.keys.pop();
        }
        Ok(BEYOND)
    }

    fn add_number(&mut self, n: &Number) -> Result<u32> {
        let double = n.to_f64();
        let bits = ordered(double);
        let is_double = match n {
            Number::Small(Num::Int(i)) => double as i128 == i128::from(*i),
            Number::Small(Num::Dbl(_) | Num::Flt(_)) => true,
            _ => double.is_nan(),
        };
        let start = self.reserve(DOUBLE)?;
        self.contents.extend_from_slice(&bits.to_be_bytes());
        if !is_double {
            let mut exact = std::mem::take(&mut self.exact);
            exact.clear();
            n.push(&mut exact);
            self.reserve(exact.len())?;
            self.contents.extend_from_slice(&exact);
            exact.shrink_to(KEPT);
            self.exact = exact;
        }
        Ok(self.end(self.number, start))
    }

    fn add_term(&mut self, bytes: &[u8]) -> Result<u32> {
        worked(bytes.len())?;
        let class = SortKey::alone(bytes).0.class;
        match value(bytes) {
            Some(Value::Number(n)) => self.add_number(&n),
            Some(Value::Boolean(b)) => self.add_content(class, &[b.into()]),
            Some(Value::Temporal(t)) => {
                let instant = (t.instant() as u128) ^ 1 << 127;
                self.add_content(class, &instant.to_be_bytes())
            }
            Some(Value::String(s)) => self.add_content(class, s.as_bytes()),
            Some(Value::Duration(_) | Value::Triple(_)) => {
                let start = self.reserve(bytes.len())?;
                self.contents.extend_from_slice(bytes);
                let value = self.end(class, start);
                // The first bytes say nothing about the order.
                self.keys[value as usize].number = u64::from(class) << CONTENT_BITS;
                Ok(value)
            }
            _ => self.add_content(class, bytes),
        }
    }

    #[inline]
    fn add_content(&mut self, class: u8, content: &[u8]) -> Result<u32> {
        let start = self.reserve(content.len())?;
        self.contents.extend_from_slice(content);
        Ok(self.end(class, start))
    }

    /// Reserves space for one more value, or for more content of the current one. Returns the length of all contents
    /// so far.
    #[inline]
    fn reserve(&mut self, more: usize) -> Result<usize> {
        let (keys, contents) = (self.keys.len() + 1, self.contents.len() + more);
        if keys > self.keys.capacity() || contents > self.contents.capacity() {
            self.grow(keys, contents)?;
        }
        Ok(self.contents.len())
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, keys: usize, contents: usize) -> Result<()> {
        if keys > BEYOND as usize {
            return Err(Error::limit(
                Resource::Numbers,
                "ORDER BY takes at most 4 billion values of an expression",
            ));
        }
        let room = |want: usize, has: usize, least: usize| match want > has {
            true => want.max(has + has / 2).max(least),
            false => has,
        };
        let keys = room(keys, self.keys.capacity(), 64);
        let contents = room(contents, self.contents.capacity(), 1 << 10);
        let held = keys * size_of::<KeyEnd>() + contents;
        // While a vector is moved, the old and the new memory exist together.
        let moved = self.keys.capacity() * size_of::<KeyEnd>() + self.contents.capacity();
        match self.keeps_headroom && self.are_many() {
            true => self.charge.set_with_headroom(held + moved)?,
            false => self.charge.set(held + moved)?,
        }
        self.keys.reserve_exact(keys - self.keys.len());
        self.contents.reserve_exact(contents - self.contents.len());
        self.charge.set(held)
    }

    /// Adds a value that has this number and content in other keys; returns its number here.
    pub fn add_key(&mut self, number: u64, content: &[u8]) -> Result<u32> {
        if number == 0 && content.is_empty() {
            return Ok(0);
        }
        self.reserve(content.len())?;
        self.contents.extend_from_slice(content);
        self.has_long |= content.len() > LONG;
        self.keys.push(KeyEnd {
            number,
            end: self.contents.len(),
        });
        Ok((self.keys.len() - 1) as u32)
    }

    /// Ends the content that begins at `start`; returns the number of the value.
    #[inline]
    fn end(&mut self, class: u8, start: usize) -> u32 {
        let content = &self.contents[start..];
        self.has_long |= content.len() > LONG;
        let first = match content.first_chunk::<8>() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                bytes[..content.len()].copy_from_slice(content);
                u64::from_be_bytes(bytes)
            }
        };
        self.keys.push(KeyEnd {
            number: u64::from(class) << CONTENT_BITS | first >> (64 - CONTENT_BITS),
            end: self.contents.len(),
        });
        (self.keys.len() - 1) as u32
    }

    /// Adds the values of another worker, and changes their numbers in `values` to those here.
    pub fn append(&mut self, other: &Self, values: &mut [u32]) -> Result<()> {
        let (keys, contents) = (self.keys.len(), self.contents.len());
        self.grow(keys + other.keys.len(), contents + other.contents.len())?;
        self.contents.extend_from_slice(&other.contents);
        let moved = other.keys.iter().map(|k| KeyEnd {
            number: k.number,
            end: k.end + contents,
        });
        self.keys.extend(moved);
        self.has_long |= other.has_long;
        values.iter_mut().for_each(|v| *v += keys as u32);
        Ok(())
    }

    /// Removes the values whose numbers are not in `values`, which are changed to the new ones.
    pub fn keep(&mut self, values: &mut [u32]) -> Result<()> {
        let held = self.charge.bytes() as usize;
        self.charge.set(held + 4 * self.keys.len())?;
        let mut places = vec![BEYOND; self.keys.len()];
        for &v in &*values {
            places[v as usize] = 0;
        }
        places[0] = 0;
        let (mut kept, mut start, mut end) = (0, 0, 0);
        for (at, place) in places.iter_mut().enumerate() {
            let key = self.keys[at];
            let content = start..key.end;
            start = key.end;
            if *place == 0 {
                *place = kept as u32;
                let length = content.len();
                self.contents.copy_within(content, end);
                end += length;
                self.keys[kept] = KeyEnd { end, ..key };
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.contents.truncate(end);
        values.iter_mut().for_each(|v| *v = places[*v as usize]);
        drop(places);
        self.charge.set(held)
    }

    /// Counts the work of comparing two values, if they are long.
    pub fn count_work(&self, value: u32, other: u32) -> Result<()> {
        worked(PARSED * self.content(value).len().min(self.content(other).len()))
    }
}

/// A double as a number with the same order; NaN is the largest.
fn ordered(double: f64) -> u64 {
    if double.is_nan() {
        return u64::MAX;
    }
    let bits = double.to_bits();
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// The inverse of [`ordered`].
fn double_of(ordered: u64) -> f64 {
    f64::from_bits(match ordered >> 63 {
        1 => ordered & !(1 << 63),
        _ => !ordered,
    })
}

/// The order of two numbers by their contents: the nearest double, followed by the canonical bytes of a number that is
/// not a double.
fn order_of_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((x, exact_a)), Some((y, exact_b))) =
        (a.split_first_chunk::<DOUBLE>(), b.split_first_chunk())
    else {
        return a.cmp(b);
    };
    if x != y || exact_a == exact_b {
        return x.cmp(y);
    }
    let double = Number::from(Num::Dbl(double_of(u64::from_be_bytes(*x))));
    let number = |exact: &[u8]| match value(exact) {
        Some(Value::Number(n)) => n,
        _ => double.clone(),
    };
    number(exact_a).total_order(&number(exact_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canonical bytes of terms of all kinds.
    fn terms() -> Vec<Vec<u8>> {
        let lexical: Vec<&str> = " 0 -0 1 1.0 -1.5 0.1 0.10 1e0 NaN INF -INF 3e300 9007199254740992 9007199254740993 \
            9007199254740992.5 16777217 true a 99999999999999999999999 99999999999999999999998.5 2020-01-01 \
            -0001-01-01 2020-01-01T00:00:00Z 2020-01-01T01:00:00+01:00 12:00:00 P1D PT24H P1M P30D ab \
            abcdefgh abcdefghi \u{10FFFF}"
            .split(' ')
            .collect();
        let mut all = vec![];
        for code in term::DATATYPES
            .iter()
            .chain(&["token", "dateTimeStamp", "other"])
        {
            for s in &lexical {
                let mut bytes = vec![];
                let datatype = format!("http://www.w3.org/2001/XMLSchema#{code}");
                term::push_typed(s, &datatype, &mut bytes);
                all.push(bytes);
            }
        }
        for s in &lexical {
            for tag in [&b"<"[..], b"_:", b"\"", b"@en\0", b"@de\0"] {
                all.push([tag, s.as_bytes()].concat());
            }
        }
        for at in (0..all.len()).step_by(37) {
            let mut triple = vec![term::TRIPLE];
            for part in [&b"<s"[..], b"<p", &all[at]] {
                triple.extend_from_slice(&(part.len() as u32).to_le_bytes());
                triple.extend_from_slice(part);
            }
            all.push(triple);
        }
        all
    }

    #[test]
    fn keys_have_the_order_of_terms() {
        let terms = terms();
        let mut keys = ValueKeys::new(&MemoryBudget::unlimited());
        let mut values: Vec<u32> = terms.iter().map(|t| keys.add_term(t).unwrap()).collect();
        let by_content: Vec<_> = terms.iter().map(|t| Added::new(None, t.into())).collect();
        let agree = |keys: &ValueKeys, other: &ValueKeys, values: &[u32], others: &[u32]| {
            let texts = terms.iter().map(|t| String::from_utf8_lossy(t));
            for ((a, x), text) in values.iter().zip(&by_content).zip(texts) {
                assert_eq!(keys.order(*a, other, 0), Ordering::Greater);
                for (b, y) in others.iter().zip(&by_content) {
                    assert_eq!(keys.order(*a, other, *b), x.order(y), "{text} {a} {b}");
                }
            }
        };
        agree(&keys, &keys, &values, &values);
        let mut more = ValueKeys::new(&MemoryBudget::unlimited());
        more.add_term(b"\"first").unwrap();
        let mut moved = values.clone();
        more.append(&keys, &mut moved).unwrap();
        agree(&keys, &more, &values, &moved);
        // Drops the first term of `more`, and every value that is not in `moved`.
        more.keep(&mut moved).unwrap();
        agree(&more, &keys, &moved, &values);
        values.truncate(1);
        keys.keep(&mut values).unwrap();
        assert_eq!((keys.keys.len(), &values[..]), (2, &[1][..]));
    }
}
