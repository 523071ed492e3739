//! Replacements for text of Turtle and TriG that `oxttl` interprets differently from the specifications:
//!
//! - `oxiri`, with which `oxttl` resolves IRIs, does not remove dot segments from a base's path, nor those that follow
//!   an authority. A reference for which this matters is replaced by the absolute IRI that it stands for
//!   ([`jindou_model::iri`]).
//! - A second annotation block is attached to the reifier of the block before it, if that was named. By RDF 1.2 Turtle,
//!   section 7.3, the end of a block clears `curReifier`; a `~` inserted before the second block gives it a new
//!   reifier.

use jindou_model::iri::{has_dots, resolve};
use oxiri::{Iri, IriRef};

/// Length in bytes of the longest reference that is replaced. Longer ones are left to the parser.
const MAX_REFERENCE: usize = 1 << 16;

/// A replacement: a range of the document, and the text to use instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) text: Vec<u8>,
}

/// Finds the replacements while a document is scanned.
#[derive(Default)]
pub(super) struct Rewriter {
    base: Option<Iri<String>>,
    /// True if the parser resolves references against this base incorrectly.
    is_odd: bool,
    /// Position of the `<` of the reference that is being read, if it may have to be replaced, and its text so far.
    begun: Option<u64>,
    reference: Vec<u8>,
    pub(super) edits: Vec<Edit>,
}

/// True if `oxiri` does not resolve references against this base as RFC 3986 does.
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

    /// Position of an unfinished reference that may have to be replaced; text from there on is held back.
    pub(super) fn waits_from(&self) -> Option<u64> {
        self.begun
    }

    /// Begins a reference whose `<` is at a position.
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

    /// Ends a reference whose `>` is at a position.
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

    /// The IRI to use instead of a reference; `None` if the parser resolves it correctly, or will report its error.
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

    /// Records that an annotation block follows another one, and begins at a position.
    pub(super) fn next_block(&mut self, at: u64) {
        self.edits.push(Edit {
            from: at,
            to: at,
            text: b"~ ".to_vec(),
        });
    }
}

/// A reference with its escapes decoded; `None` if an escape is not valid.
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
    /// The positions at which the difference between the two changes: in the text that the parser was given, and in the
    /// document.
    all: Vec<(u64, u64)>,
}

/// Number of differences that are kept: enough for all positions that the parser may still report.
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
            // A position inside a replacement maps to at most the end of the text that it replaced.
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

        /// Checks that the parser resolves those references correctly that are left to it.
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
        // At position 10 two bytes were inserted; at position 22 of the document, four bytes were replaced by one.
        shifts.add(12, 10);
        shifts.add(25, 26);
        let places: Vec<u64> = [9, 12, 15, 24, 25, 30].map(|at| shifts.place(at)).into();
        assert_eq!(places, [9, 10, 13, 22, 26, 31]);
    }
}
