//! A row as functions see it, and the values with which they compute. Values are `Copy` and never on the heap. Texts
//! are in the row's arena, and so are numbers that do not fit 64-bit integers or 128-bit decimals, as literals.

use crate::{Duration, Num, Number, Temporal};
use jindou_model::term::Parts;

/// A range of bytes in the arena.
#[derive(Clone, Copy, Debug)]
pub struct ArenaSpan {
    /// Position of the first byte.
    pub start: u32,
    /// Position after the last byte.
    pub end: u32,
}

/// A string with or without a language tag.
#[derive(Clone, Copy, Debug)]
pub struct ArenaText {
    /// The text.
    pub text: ArenaSpan,
    /// The language tag.
    pub lang: Option<ArenaSpan>,
}

impl ArenaText {
    /// The empty string.
    pub const EMPTY: Self = Self {
        text: ArenaSpan { start: 0, end: 0 },
        lang: None,
    };
}

/// A value of an argument or a function.
#[derive(Clone, Copy, Debug)]
pub enum Val {
    /// A term with this id.
    Id(u32),
    /// `true` or `false`.
    Bool(bool),
    /// A number that is not large.
    Num(Num),
    /// A date or time.
    Time(Temporal),
    /// A duration.
    Duration(Duration),
    /// A string.
    Text(ArenaText),
    /// A term given by its canonical bytes.
    Term(ArenaSpan),
}

impl From<bool> for Val {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

const _: () = assert!(size_of::<Val>() <= 48);

/// The row for which a function computes a value.
pub trait Row {
    /// The text of a simple or language-tagged string; `None` for other values. For [`Val::Id`] and [`Val::Term`] each
    /// call appends a copy to the arena, so functions call this once per argument.
    fn text(&mut self, v: Val) -> Option<ArenaText>;

    /// Bytes in the arena.
    fn bytes(&self, s: ArenaSpan) -> &[u8];

    /// Text in the arena.
    fn str(&self, s: ArenaSpan) -> &str;

    /// Appends bytes to the arena.
    fn push(&mut self, bytes: &[u8]) -> ArenaSpan;

    /// Counts bytes of text that the function is about to process; for slow work, callers pass a multiple of their
    /// number. Required at least every 16 KiB of text, so that limits and cancellation take effect; the functions of
    /// `blocks.rs` do so. Returns false if the query is over, in which case the function's value will not be used.
    fn worked(&mut self, _bytes: usize) -> bool {
        true
    }

    /// Appends to the arena what `write` writes.
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> ArenaSpan;

    /// Calls `f` with the parts of a value's canonical bytes; `None` if there are none.
    fn parts(
        &mut self,
        v: Val,
        f: impl FnOnce(&mut Self, Option<Parts<'_>>) -> Option<Val>,
    ) -> Option<Val>;

    /// The value with these canonical bytes: a term's id if the store has the term, or else bytes in the arena.
    fn term(&mut self, bytes: &[u8]) -> Val;

    /// The tag of a value's canonical bytes.
    fn tag(&mut self, v: Val) -> u8;

    /// The value as an integer, clamped to 64 bits; `None` if it is not an integer.
    fn integer(&mut self, v: Val) -> Option<i64>;

    /// Applies `small` to a small number, and `any` to other numbers, or if `small` returns `None`; `None` for other
    /// values.
    fn each_number(
        &mut self,
        v: Val,
        small: impl FnOnce(Num) -> Option<Num>,
        any: impl FnOnce(&Number) -> Option<Number>,
    ) -> Option<Val>;

    /// The value as a date or time; `None` for other values.
    fn time(&mut self, v: Val) -> Option<Temporal>;

    /// The value as a duration; `None` for other values.
    fn duration(&mut self, v: Val) -> Option<Duration>;

    /// A string with this text, which is appended to the arena.
    fn make(&mut self, text: &[u8], lang: Option<ArenaSpan>) -> Val {
        let text = self.push(text);
        Val::Text(ArenaText { text, lang })
    }

    /// The text of a string without a language tag; `None` for other values.
    fn simple(&mut self, v: Val) -> Option<ArenaSpan> {
        let t = self.text(v)?;
        t.lang.is_none().then_some(t.text)
    }

    /// Both strings, by [`Self::text`], if they are compatible arguments: the second has no language tag, or the same
    /// as the first (SPARQL 1.1 §17.4.3.1.2).
    fn compatible(&mut self, a: Val, b: Val) -> Option<(ArenaText, ArenaText)> {
        let (a, b) = (self.text(a)?, self.text(b)?);
        let fits = match (a.lang, b.lang) {
            (_, None) => true,
            (Some(x), Some(y)) => self.bytes(x) == self.bytes(y),
            (None, Some(_)) => false,
        };
        fits.then_some((a, b))
    }

    /// Component `n` of a triple term (0, 1 or 2); `None` for other values.
    fn part_of_triple(&mut self, v: Val, n: usize) -> Option<Val> {
        self.parts(v, |row, parts| match parts? {
            Parts::Triple(parts) => Some(row.term(parts[n])),
            _ => None,
        })
    }
}
