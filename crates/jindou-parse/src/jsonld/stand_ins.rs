//! Stand-ins for numbers while the parser handles them.

use super::token::JsonNumber;
use crate::limits::Limits;
use jindou_model::{Charge, Error, Holder};
use oxrdf::{Literal, Term};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::rc::Rc;

/// The stand-ins of a document, shared by its reader and the code that receives the parser's literals.
pub(crate) type SharedStandIns = Rc<RefCell<StandIns>>;

/// Number of digits of a stand-in. With fewer than 21 the parser treats it as an integer.
const DIGITS: usize = 20;
/// Number of digits in its prefix.
const PREFIX: usize = 6;
/// Number of digits in its number. Together with the prefix there are 15, as many as the nearest 64-bit number
/// preserves: canonical JSON shows them all.
const PLACE: usize = 9;
/// Bytes that a value takes in both tables.
const ENTRY: u64 = 128;
/// Number of values that are not charged.
const FREE: usize = 1 << 10;
/// Distance behind the parser for which positions are kept: more than it reads ahead.
const BEHIND: u64 = 1 << 20;

/// The values for which numbers of a document stand. A stand-in consists of a prefix drawn for this document, a value's
/// index in a list, and five zeros. Numbers that already have the prefix are replaced by a stand-in as well, so that
/// none is mistaken for another. A string could be mistaken, if it guessed the prefix and an index in use.
pub(crate) struct StandIns {
    prefix: String,
    values: Vec<JsonNumber>,
    places: FxHashMap<JsonNumber, usize>,
    charge: Charge,
    /// Set when there is no room for more values.
    failed: Option<Error>,
    /// Positions after stand-ins that are longer than their numbers: in the generated text, and in the document.
    shifts: VecDeque<(u64, u64)>,
}

impl StandIns {
    pub(super) fn new(limits: &Limits) -> Self {
        // From 100001 to 999999, not a multiple of ten.
        let drawn = RandomState::new().hash_one(0) % 90_000;
        let prefix = 100_000 + drawn as u32 * 10 + 1 + (drawn % 9) as u32;
        Self {
            prefix: prefix.to_string(),
            values: Vec::new(),
            places: FxHashMap::default(),
            charge: Charge::new(Holder::Text, &limits.memory),
            failed: None,
            shifts: VecDeque::new(),
        }
    }

    /// The number to write for a value; `None` for the value itself.
    pub(super) fn stand_in(&mut self, value: JsonNumber) -> io::Result<Option<Vec<u8>>> {
        if let JsonNumber::Integer(n) = value
            && n.unsigned_abs() < 10u128.pow(DIGITS as u32)
            && !n.unsigned_abs().to_string().starts_with(&self.prefix)
        {
            return Ok(None);
        }
        let place = match self.places.get(&value) {
            Some(&place) => place,
            None => {
                let place = self.values.len();
                if place >= FREE
                    && let Err(e) = self.charge.add(ENTRY)
                {
                    self.failed = Some(e);
                    return Err(io::Error::other("no room for numbers"));
                }
                if place >= 10usize.pow(PLACE as u32) {
                    return Err(io::Error::other("too many numbers of 21 digits"));
                }
                self.values.push(value);
                self.places.insert(value, place);
                place
            }
        };
        Ok(Some(
            format!("{}{place:0PLACE$}00000", self.prefix).into_bytes(),
        ))
    }

    /// The reason why there was no room.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Records that `made` bytes were generated from `read` bytes, from here on.
    pub(super) fn shift(&mut self, made: u64, read: u64) {
        self.shifts.push_back((made, read));
        while self.shifts.get(1).is_some_and(|s| s.0 + BEHIND < made) {
            self.shifts.pop_front();
        }
    }

    /// The document's byte at this position of the generated text.
    pub(crate) fn place(&self, made: u64) -> u64 {
        let n = self.shifts.partition_point(|s| s.0 <= made);
        match n.checked_sub(1).map(|n| self.shifts[n]) {
            Some((to, from)) => from + (made - to),
            None => made,
        }
    }

    /// True if positions differ at all.
    pub(crate) fn shifted(&self) -> bool {
        !self.shifts.is_empty()
    }

    /// The literal that the document means, if this one was made from a stand-in.
    pub(crate) fn meant(&self, term: &Term) -> Option<Literal> {
        let Term::Literal(literal) = term else {
            return None;
        };
        if self.values.is_empty() || literal.language().is_some() {
            return None;
        }
        let text = literal.value();
        let meant = if let Some(value) = self.as_integer(text) {
            value.integer()
        } else if let Some(value) = self.as_double(text) {
            value.double()
        } else if literal.datatype() == oxrdf::vocab::rdf::JSON {
            self.spelled(text)?
        } else {
            return None;
        };
        Some(Literal::new_typed_literal(meant, literal.datatype()))
    }

    /// A text with the intended numbers, in the form of canonical JSON.
    pub(crate) fn restored(&self, text: String) -> String {
        match self.values.is_empty() {
            true => text,
            false => self.spelled(&text).unwrap_or(text),
        }
    }

    fn as_integer(&self, text: &str) -> Option<JsonNumber> {
        let rest = (text.len() == DIGITS).then_some(text)?;
        let rest = rest.strip_prefix(&self.prefix)?;
        let place = rest.strip_suffix("00000")?;
        let all = place.bytes().all(|b| b.is_ascii_digit());
        let place: usize = all.then(|| place.parse().ok()).flatten()?;
        self.values.get(place).copied()
    }

    fn as_double(&self, text: &str) -> Option<JsonNumber> {
        let digits = text.strip_suffix("E19")?;
        let (first, rest) = digits.split_once('.')?;
        let len = first.len() + rest.len();
        if first.len() != 1 || len > PREFIX + PLACE {
            return None;
        }
        self.as_integer(&format!("{first}{rest:0<width$}", width = DIGITS - 1))
    }

    /// The text with stand-ins replaced, if there are any.
    fn spelled(&self, text: &str) -> Option<String> {
        let (mut out, mut from) = (Cow::Borrowed(""), 0);
        for at in memchr::memmem::find_iter(text.as_bytes(), &self.prefix) {
            let run = text.as_bytes()[at..]
                .iter()
                .take_while(|b| b.is_ascii_digit());
            let alone = run.count() == DIGITS
                && at >= from
                && !(at > 0 && text.as_bytes()[at - 1].is_ascii_digit());
            if alone && let Some(value) = self.as_integer(&text[at..at + DIGITS]) {
                let out = out.to_mut();
                out.push_str(&text[from..at]);
                out.push_str(&value.json());
                from = at + DIGITS;
            }
        }
        (from > 0).then(|| out.into_owned() + &text[from..])
    }
}
