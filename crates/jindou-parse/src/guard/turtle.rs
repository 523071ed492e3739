//! A scanner of Turtle and TriG that follows brackets and the growth of base IRIs.

use super::Seen;
use super::rewrite::Rewriter;
use crate::line::MAX_NESTING;

/// Longest base IRI in bytes, since each IRI of the document may begin with it.
const MAX_BASE: usize = 1 << 16;
/// Longest base IRI in bytes that relative @base directives may build up. Each of them copies the previous base, and a
/// piece of text between two checks of the clock may have thousands.
const MAX_BUILT_BASE: usize = 1 << 12;

/// Follows the depth of `<<( … )>>` and of other brackets, with just enough of a lexer not to mistake strings, IRIs and
/// comments.
#[derive(Default)]
pub(super) struct Turtle {
    state: TurtleState,
    /// Depth of triple terms.
    depth: usize,
    /// Depth of all brackets. A parser keeps state for each level.
    pub(super) open: usize,
    /// The last letters in lower case, if only white space has followed them, to recognise `@base`.
    word: [u8; 4],
    letters: usize,
    spaced: bool,
    iri: IriState,
    /// Upper bound on the length of the base that relative directives have built up.
    base: usize,
    /// `bar`: the last byte was `|`. `block_ended`: an annotation block ended, and only white space and comments
    /// followed.
    bar: bool,
    block_ended: bool,
    /// Position of the last `<` outside of strings, IRIs and comments.
    less: u64,
    pub(super) rewriter: Rewriter,
}

/// The IRI being read.
#[derive(Default)]
struct IriState {
    /// True if the IRI is a new base.
    is_base: bool,
    /// True if only letters, digits, `+`, `-` and `.` were read so far, so that this may be a scheme.
    may_be_scheme: bool,
    absolute: bool,
    len: usize,
}

impl IriState {
    fn add(&mut self, bytes: &[u8]) {
        if self.is_base && self.may_be_scheme {
            for &b in bytes {
                if b == b':' {
                    self.absolute = true;
                }
                if !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')) {
                    self.may_be_scheme = false;
                    break;
                }
            }
        }
        self.len += bytes.len();
    }
}

#[derive(Default, Clone, Copy, PartialEq)]
enum TurtleState {
    #[default]
    Plain,
    /// After a backslash outside strings.
    PlainEscape,
    Comment,
    /// After one or two `<`.
    Less(u8),
    Iri,
    /// After `)`, and after `)>`.
    Close(u8),
    /// After a `>` that does not end an IRI.
    Greater,
    /// After opening quotes: which kind, and whether one or two.
    Open(u8, u8),
    /// In a string: the kind of quote, whether it is long, whether an escape began, and the number of closing quotes so
    /// far.
    Text(u8, bool, bool, u8),
}

impl Turtle {
    /// `base` is that of the references until the first directive.
    pub(super) fn new(base: Option<&str>) -> Self {
        Self {
            rewriter: Rewriter::new(base),
            ..Self::default()
        }
    }

    /// Position from which on text is held back, since it may have to be replaced.
    pub(super) fn waits_from(&self) -> Option<u64> {
        match self.state {
            TurtleState::Less(1) => Some(self.less),
            _ => self.rewriter.waits_from(),
        }
    }

    /// Follows annotation blocks: `b` is a byte outside of strings, IRIs and comments.
    fn block(&mut self, b: u8, at: u64) {
        if b == b'{' && self.block_ended {
            self.rewriter.next_block(at);
        }
        self.block_ended = match b {
            b' ' | b'\t' | b'\r' | b'\n' | b'#' => self.block_ended,
            _ => self.bar && b == b'}',
        };
        self.bar = b == b'|';
    }

    fn letter(&mut self, b: u8) {
        if self.spaced {
            self.letters = 0;
            self.spaced = false;
        }
        if let Some(place) = self.word.get_mut(self.letters) {
            *place = b.to_ascii_lowercase();
        }
        self.letters += 1;
    }

    /// Ends an IRI. If it is a new base, checks its length; a relative one may add its whole length to the previous
    /// base.
    fn based(&mut self) -> Result<(), String> {
        if self.iri.is_base {
            if self.iri.absolute {
                self.base = self.iri.len;
                if self.base > MAX_BASE {
                    return Err(format!(
                        "the base IRI is too long, expected at most {MAX_BASE} bytes"
                    ));
                }
            } else {
                self.base += self.iri.len;
                if self.base > MAX_BUILT_BASE {
                    return Err(format!(
                        "the base IRI grows with each relative @base, expected at most {MAX_BUILT_BASE} bytes"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Handles the byte after one `<`, which begins an IRI unless it is another `<`.
    fn after_less(&mut self, b: u8, at: u64) {
        self.state = match b {
            b'<' => TurtleState::Less(2),
            b'>' => TurtleState::Plain,
            _ => TurtleState::Iri,
        };
        if b != b'<' {
            let is_base = self.letters == 4 && &self.word == b"base";
            self.rewriter.begin(self.less, b, is_base);
            if b == b'>' {
                self.rewriter.end(at, is_base);
            }
            self.iri = IriState {
                is_base,
                may_be_scheme: true,
                ..IriState::default()
            };
        }
        self.letters = 0;
    }

    fn add_to_iri(&mut self, bytes: &[u8]) {
        self.iri.add(bytes);
        self.rewriter.add(bytes);
    }

    /// Begins a triple term. Its `)` is counted like that of a collection.
    fn triple_term(&mut self) -> Result<(), String> {
        self.open += 1;
        self.depth += 1;
        match self.depth > MAX_NESTING {
            true => Err(format!(
                "triple terms are nested too deeply, expected at most {MAX_NESTING} levels"
            )),
            false => Ok(()),
        }
    }

    /// Sets the state after a byte outside of strings, IRIs and comments.
    #[inline]
    fn plain(&mut self, b: u8, at: u64) {
        use TurtleState as S;
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => self.letter(b),
            b' ' | b'\t' | b'\r' | b'\n' => self.spaced = true,
            b'#' => self.state = S::Comment,
            b'<' => {
                self.state = S::Less(1);
                self.less = at;
            }
            b'"' | b'\'' => self.state = S::Open(b, 1),
            b'[' | b'(' => self.open += 1,
            b']' => self.open = self.open.saturating_sub(1),
            b')' => {
                self.open = self.open.saturating_sub(1);
                self.state = S::Close(1);
            }
            b'>' => self.state = S::Greater,
            b'\\' => self.state = S::PlainEscape,
            _ => {}
        }
    }

    /// Scans bytes; `start` is the position of the first one.
    pub(super) fn see(&mut self, bytes: &[u8], start: u64) -> Seen {
        use TurtleState as S;
        let mut i = 0;
        while let Some(&b) = bytes.get(i) {
            let at = start + i as u64;
            if self.state == S::Plain && (self.bar || self.block_ended || b == b'|') {
                self.block(b, at);
            }
            match self.state {
                S::Plain => self.plain(b, at),
                S::PlainEscape => self.state = S::Plain,
                S::Comment => match memchr::memchr2(b'\n', b'\r', &bytes[i..]) {
                    Some(n) => {
                        i += n;
                        self.state = S::Plain;
                    }
                    None => return Ok(()),
                },
                S::Less(1) => {
                    self.after_less(b, at);
                    if self.state == S::Iri {
                        self.add_to_iri(&bytes[i..=i]);
                    }
                }
                S::Greater => {
                    self.state = S::Plain;
                    if b != b'>' {
                        continue;
                    }
                    self.open = self.open.saturating_sub(1);
                }
                S::Less(_) => {
                    self.state = S::Plain;
                    self.open += 1;
                    if b != b'(' {
                        continue; // `<<` without a bracket
                    }
                    self.triple_term().map_err(|m| (i, m))?;
                }
                S::Iri => match memchr::memchr(b'>', &bytes[i..]) {
                    Some(n) => {
                        self.add_to_iri(&bytes[i..i + n]);
                        i += n;
                        self.state = S::Plain;
                        self.rewriter.end(start + i as u64, self.iri.is_base);
                        self.based().map_err(|m| (i, m))?;
                    }
                    None => {
                        self.add_to_iri(&bytes[i..]);
                        return Ok(());
                    }
                },
                S::Close(1) if b == b'>' => self.state = S::Close(2),
                S::Close(n) => {
                    self.state = S::Plain;
                    if n == 2 && b == b'>' {
                        self.depth = self.depth.saturating_sub(1);
                        self.open = self.open.saturating_sub(1);
                    } else {
                        continue;
                    }
                }
                S::Open(q, 1) if b == q => self.state = S::Open(q, 2),
                S::Open(q, 2) if b == q => self.state = S::Text(q, true, false, 0),
                S::Open(q, 1) => {
                    self.state = S::Text(q, false, false, 0);
                    continue;
                }
                S::Open(..) => {
                    self.state = S::Plain; // the empty string
                    continue;
                }
                S::Text(q, long, true, _) => self.state = S::Text(q, long, false, 0),
                S::Text(q, long, false, closing) => {
                    if b == b'\\' {
                        self.state = S::Text(q, long, true, 0);
                    } else if b == q {
                        self.state = match (long, closing) {
                            (false, _) | (true, 2) => S::Plain,
                            (true, n) => S::Text(q, true, false, n + 1),
                        };
                    } else {
                        if closing > 0 {
                            self.state = S::Text(q, long, false, 0);
                        }
                        match memchr::memchr2(q, b'\\', &bytes[i..]) {
                            Some(n) => {
                                i += n;
                                continue;
                            }
                            None => return Ok(()),
                        }
                    }
                }
            }
            i += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_that_close_leave_none_open() {
        let open = |text: &str| {
            let mut turtle = Turtle::default();
            assert!(turtle.see(text.as_bytes(), 0).is_ok(), "{text}");
            turtle.open
        };
        for (text, want) in [
            ("<s> <p> [ <q> ( 1 2 ) ] .", 0),
            ("<s> <p> <<( <a> <b> <c> )>> , <<( <a> <b> <c> ) >> .", 0),
            ("<< <a> <b> <c> >> <p> <> .", 0),
            ("[ <p> <<( <a> <b> <c> )>> , [ <q> (", 3),
            ("<s> <p> \"[[\" , '((' , <http://e/[> . # [[[", 0),
            ("<s> <p> <<( <a> <b> <<( <c> <d> (", 5),
        ] {
            assert_eq!(open(text), want, "{text}");
        }
    }
}
