//! Values while an expression is computed: small, copied, never on the heap. Text lies in the machine's arena, and so do numbers
//! beyond 64-bit integers and 128-bit decimals, as their literals.

use jindou_values::{Duration, Num, Temporal};

/// Bytes of the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
}

/// A string with or without language tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub text: Span,
    pub lang: Option<Span>,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Val {
    /// A term as it is.
    Id(u32),
    Bool(bool),
    Num(Num),
    Time(Temporal),
    Duration(Duration),
    Text(Text),
    /// Canonical bytes.
    Term(Span),
}

impl From<bool> for Val {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

const _: () = assert!(size_of::<Val>() <= 48);
