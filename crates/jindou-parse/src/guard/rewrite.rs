//! Text of Turtle and TriG that `oxttl` reads otherwise than the specifications do, and what it is given in its place.
//!
//! - `oxiri`, which resolves IRIs inside of `oxttl`, keeps the dot segments of a base's path and those behind an authority. A
//!   reference that is concerned is replaced by the IRI that it means ([`jindou_model::iri`]).
//! - A second annotation block takes the reifier of the one before it, if that had a name (RDF 1.2 Turtle, section 7.3: the end
//!   of a block clears `curReifier`). A `~` before it gives it a reifier of its own.

use jindou_model::iri::{has_dots, resolve};
use oxiri::{Iri, IriRef};

/// Longest reference that is replaced. Longer ones are left to the parser.
const MAX_REFERENCE: usize = 1 << 16;

/// A change of the text: a range of the document is replaced by other bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) text: Vec<u8>,
}

/// Finds the changes while a document is lexed.
#[derive(Default)]
pub(super) struct Rewriter {
    base: Option<Iri<String>>,
    /// True if the parser resolves references incorrectly for this base.
    is_odd: bool,
    /// Position of the `<` of the reference that is read, if it may have to be replaced, and its text.
    begun: Option<u64>,
    reference: Vec<u8>,
    pub(super) edits: Vec<Edit>,
}

/// True if `oxiri` resolves references against this base otherwise than RFC 3986 does.
fn is_odd(base: &Iri<String>) -> bool {
    let path = base.path();
    base.authority().is_none() || has_dots(path.rfind('/').map_or("", |slash| &path[..=slash]))
}

impl Rewriter {
    pub(super) fn new(base: Option<&str>) -> Self {
        let mut made = Self::default();
        if let Some(base) = base.and_then(|b| Iri::parse(b.to_owned()).ok()) {
            made.set_base(base);
        }
        made
    }

    fn set_base(&mut self, base: Iri<String>) {
        self.is_odd = is_odd(&base);
        self.base = Some(base);
    }

    /// Position of a reference that may have to be replaced and has not ended.
    pub(super) fn waits_from(&self) -> Option<u64> {
        self.begun
    }

    /// The beginning of a reference, whose `<` is at a position.
    pub(super) fn begin(&mut self, at: u64, first: u8, is_base: bool) {
        if self.is_odd || is_base || matches!(first, b'/' | b'\\') {
            self.begun = Some(at);
            self.reference.clear();
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        if self.begun.is_none() {
            return;
        }
        if self.reference.len() + bytes.len() > MAX_REFERENCE {
            self.begun = None;
            return;
        }
        self.reference.extend_from_slice(bytes);
    }

    /// The end of a reference, whose `>` is at a position.
    pub(super) fn end(&mut self, at: u64, is_base: bool) {
        let Some(from) = self.begun.take() else {
            return;
        };
        let text = std::mem::take(&mut self.reference);
        if let Some(iri) = self.replacement(&text, is_base) {
            let text = [b"<", iri.as_bytes()].concat();
            self.edits.push(Edit { from, to: at, text });
        }
        self.reference = text;
    }

    /// The IRI to write in place of a reference; `None` if the parser resolves it correctly, or reports its error.
    fn replacement(&mut self, text: &[u8], is_base: bool) -> Option<String> {
        let text = unescaped(std::str::from_utf8(text).ok()?)?;
        let given = IriRef::parse(text.as_str()).ok()?;
        let was_odd = self.is_odd;
        let iri = match &self.base {
            _ if given.is_absolute() => text.clone(),
            Some(base) => resolve(base, &text).ok()?,
            None => return None,
        };
        if is_base {
            self.set_base(Iri::parse(iri.clone()).ok()?);
        }
        let is_wrong = was_odd || given.authority().is_some() && has_dots(given.path());
        (is_wrong && !given.is_absolute()).then_some(iri)
    }

    /// An annotation block that begins at a position, after another one.
    pub(super) fn next_block(&mut self, at: u64) {
        self.edits.push(Edit {
            from: at,
            to: at,
            text: b"~ ".to_vec(),
        });
    }
}

/// A reference without its escapes; `None` if one is not valid.
fn unescaped(text: &str) -> Option<String> {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        made.push_str(before);
        let digits = match escape.as_bytes().first()? {
            b'u' => 4,
            b'U' => 8,
            _ => return None,
        };
        let code = escape.get(1..=digits)?;
        if !code.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        made.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        rest = &escape[digits + 1..];
    }
    made.push_str(rest);
    Some(made)
}

/// Maps positions in the text that the parser was given to positions in the document.
#[derive(Default)]
pub(super) struct Shifts {
    /// For each position after which the offset between the two changes: the position in the given text, and in the
    /// document.
    all: Vec<(u64, u64)>,
}

/// Number of shifts that are kept, enough for all positions that the parser may still report.
const MOST_SHIFTS: usize = 1 << 20;

impl Shifts {
    pub(super) fn add(&mut self, given: u64, read: u64) {
        if self.all.len() >= 2 * MOST_SHIFTS {
            self.all.drain(..MOST_SHIFTS);
        }
        self.all.push((given, read));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The position in the document.
    pub(super) fn place(&self, given: u64) -> u64 {
        let after = self.all.partition_point(|s| s.0 <= given);
        match after.checked_sub(1).and_then(|n| self.all.get(n)) {
            // What was put in ends where the text that it replaced does.
            Some(&(from, read)) => {
                let next = self.all.get(after).map_or(u64::MAX, |s| s.1);
                (read + (given - from)).min(next)
            }
            None => given,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// References that are left to the parser are resolved by it as they should be.
        #[test]
        fn what_is_not_replaced_is_resolved_alike(
            base in "(http://h|http://|a:|urn:x)(/(\\.|\\.\\.|a|b|))*(\\?q)?",
            reference in "(//g|/)?((\\.|\\.\\.|a|b|)/)*(\\.|\\.\\.|a|)(\\?y)?(#f)?",
        ) {
            let mut rewriter = Rewriter::new(Some(&base));
            rewriter.begin(0, reference.bytes().next().unwrap_or(b'>'), false);
            rewriter.add(reference.as_bytes());
            rewriter.end(1 + reference.len() as u64, false);
            if rewriter.edits.is_empty()
                && let Ok(base) = Iri::parse(base)
                && let Ok(want) = resolve(&base, &reference)
            {
                let theirs = base.resolve(&reference).map(Iri::into_inner).ok();
                prop_assert_eq!(theirs, Some(want));
            }
        }
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(
            unescaped(r"a\u002E\U0001F600b").as_deref(),
            Some("a.\u{1F600}b")
        );
        for wrong in [r"\u00", r"\n", r"\uD800", "\\", r"\u+123"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn positions_are_those_of_the_document() {
        let mut shifts = Shifts::default();
        // At 10 two bytes were put in; at 22 of the document four became one.
        shifts.add(12, 10);
        shifts.add(25, 26);
        let places: Vec<u64> = [9, 12, 15, 24, 25, 30].map(|at| shifts.place(at)).into();
        assert_eq!(places, [9, 10, 13, 22, 26, 31]);
    }
}
