//! Splits text into tokens by SPARQL's longest-match rule. Linear: every character is read a bounded number of times.

use crate::keyword::Keyword;
use jindou_model::prefixes::{is_name_char, is_name_start};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    End,
    /// `<…>`
    Iri,
    /// `ns:local`
    Prefixed,
    /// `ns:`
    Namespace,
    /// `_:label`
    Blank,
    Variable,
    String,
    /// `@en`, `@ar--rtl`
    Language,
    Integer,
    Decimal,
    Double,
    Word(Keyword),
    /// The word `a`.
    A,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    /// `{|`
    OpenAnnotation,
    /// `|}`
    CloseAnnotation,
    /// `<<`
    OpenReified,
    /// `>>`
    CloseReified,
    /// `<<(`
    OpenTriple,
    Dot,
    Comma,
    Semicolon,
    Tilde,
    Plus,
    Minus,
    Star,
    Slash,
    Pipe,
    Caret,
    DoubleCaret,
    Question,
    Bang,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Bad(BadToken),
}

impl TokenKind {
    /// True for an IRI in angle brackets, a prefixed name, or a prefix alone.
    pub(crate) fn is_iri(self) -> bool {
        matches!(self, Self::Iri | Self::Prefixed | Self::Namespace)
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Decimal | Self::Double)
    }
}

/// Kinds of invalid tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadToken {
    Character,
    /// A short string that is not terminated before the end of its line or of the text.
    String,
    /// `_:` without a label.
    Label,
    /// `\u…` outside strings and IRIs.
    Escape,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

#[derive(Clone)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Position up to which the text is known to be a name without a colon.
    no_colon: usize,
    /// Position up to which the text is known to consist of keywords and numbers without spaces between them.
    glued: usize,
    /// Positions from which no long string in `"`, or in `'`, is terminated.
    endless: [usize; 2],
}

const NAME: u8 = 1; // ASCII characters of PN_CHARS
const WORD: u8 = 2; // ASCII letters, digits and _
const IRI: u8 = 4; // ASCII characters that an IRI can contain unescaped

static CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        if c.is_ascii_alphanumeric() || c == b'_' {
            table[b] |= NAME | WORD;
        }
        if c == b'-' {
            table[b] |= NAME;
        }
        let out = matches!(
            c,
            b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\'
        );
        if c > b' ' && !out {
            table[b] |= IRI;
        }
        b += 1;
    }
    table
};

fn is(b: u8, class: u8) -> bool {
    CLASS[b as usize] & class != 0
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        // A byte order mark is not part of the text.
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self {
            text,
            at,
            no_colon: 0,
            glued: 0,
            endless: [usize::MAX; 2],
        }
    }

    /// Sets the position from which to continue; it must not be inside a token.
    pub(crate) fn go_on_from(&mut self, at: usize) {
        self.at = at;
    }

    /// Continues from a later position, which must not be inside a token. No effect if the lexer is already past it.
    pub(crate) fn skip_to(&mut self, at: usize) {
        self.at = self.at.max(at);
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn char(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// End of the sequence of name characters that begins at `at`.
    fn name(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at) {
                Some(&b) if is(b, NAME) => at += 1,
                Some(0x80..) => match self.char(at).filter(|c| is_name_char(*c)) {
                    Some(c) => at += c.len_utf8(),
                    None => return at,
                },
                _ => return at,
            }
        }
    }

    /// End of the name that begins at `at` and may contain dots, though not as its last character.
    fn dotted(&self, at: usize) -> usize {
        let mut end = self.name(at);
        let mut to = end;
        while self.byte(to) == b'.' {
            to += 1;
            let more = self.name(to);
            if more > to {
                end = more;
                to = more;
            }
        }
        end
    }

    /// End of the local name that begins at `from`; `from` itself if there is none.
    fn local(&self, from: usize) -> usize {
        let (mut at, mut end) = (from, from);
        loop {
            let next = match self.byte(at) {
                b'.' if at > from => {
                    at += 1;
                    continue;
                }
                b':' => at + 1,
                b'-' if at == from => return end,
                b'%' => {
                    let hex = |i| self.byte(at + i).is_ascii_hexdigit();
                    if !(hex(1) && hex(2)) {
                        return end;
                    }
                    at + 3
                }
                b'\\' if b"_~.-!$&'()*+,;=/?#@%".contains(&self.byte(at + 1)) => at + 2,
                b if is(b, NAME) => at + 1,
                0x80.. => match self.char(at) {
                    Some(c) if is_name_start(c) || at > from && is_name_char(c) => {
                        at + c.len_utf8()
                    }
                    _ => return end,
                },
                _ => return end,
            };
            at = next;
            end = next;
        }
    }

    pub(crate) fn next(&mut self) -> Token {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'#') => {
                    self.at = memchr::memchr2(b'\n', b'\r', &bytes[self.at..])
                        .map_or(bytes.len(), |n| self.at + n);
                }
                _ => break,
            }
        }
        let start = self.at;
        let Some(&b) = bytes.get(start) else {
            return Token {
                kind: TokenKind::End,
                start,
                end: start,
            };
        };
        let (kind, end) = match b {
            b'<' => self.less(start),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(start),
            b':' => self.prefixed(start),
            b'?' | b'$' => self.variable(start),
            b'"' | b'\'' => self.string(start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.byte(start + 1).is_ascii_digit() => self.number(start),
            b'@' => self.language(start),
            _ => self.sign(start, b),
        };
        self.at = end;
        Token { kind, start, end }
    }

    fn sign(&self, start: usize, b: u8) -> (TokenKind, usize) {
        let two = |second: u8, long: TokenKind, short: TokenKind| {
            if self.byte(start + 1) == second {
                (long, start + 2)
            } else {
                (short, start + 1)
            }
        };
        let bad = TokenKind::Bad(BadToken::Character);
        let kind = match b {
            b'{' => return two(b'|', TokenKind::OpenAnnotation, TokenKind::OpenBrace),
            b'|' if self.byte(start + 1) == b'}' => return (TokenKind::CloseAnnotation, start + 2),
            b'|' => return two(b'|', TokenKind::Or, TokenKind::Pipe),
            b'>' if self.byte(start + 1) == b'=' => return (TokenKind::GreaterOrEqual, start + 2),
            b'>' => return two(b'>', TokenKind::CloseReified, TokenKind::Greater),
            b'^' => return two(b'^', TokenKind::DoubleCaret, TokenKind::Caret),
            b'!' => return two(b'=', TokenKind::NotEqual, TokenKind::Bang),
            b'&' => return two(b'&', TokenKind::And, bad),
            b'\\' if matches!(self.byte(start + 1), b'u' | b'U') => {
                return (TokenKind::Bad(BadToken::Escape), start + 2);
            }
            b'}' => TokenKind::CloseBrace,
            b'(' => TokenKind::OpenParen,
            b')' => TokenKind::CloseParen,
            b'[' => TokenKind::OpenBracket,
            b']' => TokenKind::CloseBracket,
            b'.' => TokenKind::Dot,
            b',' => TokenKind::Comma,
            b';' => TokenKind::Semicolon,
            b'~' => TokenKind::Tilde,
            b'+' => TokenKind::Plus,
            b'-' => TokenKind::Minus,
            b'*' => TokenKind::Star,
            b'/' => TokenKind::Slash,
            b'=' => TokenKind::Equal,
            _ => bad,
        };
        (kind, start + 1)
    }

    fn less(&self, start: usize) -> (TokenKind, usize) {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                Some(&b) if is(b, IRI) => at += 1,
                Some(b'>') => return (TokenKind::Iri, at + 1),
                Some(b'\\') => match self.escape(at) {
                    Some(end) => at = end,
                    None => break,
                },
                _ => break,
            }
        }
        match (self.byte(start + 1), self.byte(start + 2)) {
            (b'<', b'(') => (TokenKind::OpenTriple, start + 3),
            (b'<', _) => (TokenKind::OpenReified, start + 2),
            (b'=', _) => (TokenKind::LessOrEqual, start + 2),
            _ => (TokenKind::Less, start + 1),
        }
    }

    /// End of the `\u` or `\U` escape at `at`; `None` if it is invalid.
    fn escape(&self, at: usize) -> Option<usize> {
        let digits = match self.byte(at + 1) {
            b'u' => 4,
            b'U' => 8,
            _ => return None,
        };
        let hex = (0..digits).all(|i| self.byte(at + 2 + i).is_ascii_hexdigit());
        hex.then_some(at + 2 + digits)
    }

    fn word(&mut self, start: usize) -> (TokenKind, usize) {
        let bytes = self.text.as_bytes();
        if bytes[start] == b'_' && self.byte(start + 1) == b':' {
            return match self.char(start + 2) {
                Some(c) if c.is_ascii_digit() || is_name_start(c) => {
                    (TokenKind::Blank, self.dotted(start + 2))
                }
                _ => (TokenKind::Bad(BadToken::Label), start + 2),
            };
        }
        let mut end = start;
        while is(self.byte(end), WORD) {
            end += 1;
        }
        let behind = self.byte(end);
        if behind == b':' && bytes[start] != b'_' {
            return self.prefixed(end);
        }
        if behind >= 0x80 || matches!(behind, b'-' | b'.') {
            let first = self.char(start).unwrap_or('_');
            if !is_name_start(first) {
                return (
                    TokenKind::Bad(BadToken::Character),
                    start + first.len_utf8(),
                );
            }
            if start >= self.no_colon {
                let to = self.dotted(start);
                if self.byte(to) == b':' && first != '_' {
                    return self.prefixed(to);
                }
                self.no_colon = to;
            }
            if behind >= 0x80 {
                end = self.name(start);
            }
        }
        let kind = match &bytes[start..end] {
            b"a" => TokenKind::A,
            word => match Keyword::from_word(word) {
                Keyword::Unknown => {
                    if let Some((keyword, long)) = self.first_of_glued(start, end) {
                        return (TokenKind::Word(keyword), start + long);
                    }
                    TokenKind::Word(Keyword::Unknown)
                }
                keyword => TokenKind::Word(keyword),
            },
        };
        (kind, end)
    }

    /// The first keyword, and its length, of a word that consists of keywords and numbers without spaces, such as
    /// `FILTERsameTerm` and `LIMIT10`. `None` if any part of the word is neither: then the whole word is one token,
    /// since it is probably a misspelt keyword.
    fn first_of_glued(&mut self, start: usize, end: usize) -> Option<(Keyword, usize)> {
        let bytes = self.text.as_bytes();
        let first = Keyword::longest(bytes.get(start..end)?)?;
        if start >= self.glued {
            let mut at = start + first.1;
            while at < end {
                let rest = bytes.get(at..end)?;
                at += match Keyword::longest(rest) {
                    Some((_, long)) => long,
                    None => match rest.iter().take_while(|b| b.is_ascii_digit()).count() {
                        0 => return None,
                        digits => digits,
                    },
                };
            }
            self.glued = end;
        }
        Some(first)
    }

    /// The prefixed name, or the namespace alone, whose colon is at this position.
    fn prefixed(&self, colon: usize) -> (TokenKind, usize) {
        match self.local(colon + 1) {
            end if end == colon + 1 => (TokenKind::Namespace, end),
            end => (TokenKind::Prefixed, end),
        }
    }

    fn variable(&self, start: usize) -> (TokenKind, usize) {
        let mut at = start + 1;
        loop {
            match self.byte(at) {
                b if is(b, WORD) => at += 1,
                0x80.. => match self.char(at) {
                    Some(c) if is_name_start(c) || at > start + 1 && is_name_char(c) => {
                        at += c.len_utf8();
                    }
                    _ => break,
                },
                _ => break,
            }
        }
        match self.byte(start) {
            _ if at > start + 1 => (TokenKind::Variable, at),
            b'?' => (TokenKind::Question, at),
            _ => (TokenKind::Bad(BadToken::Character), at),
        }
    }

    fn string(&mut self, start: usize) -> (TokenKind, usize) {
        let bytes = self.text.as_bytes();
        let quote = bytes[start];
        let which = usize::from(quote == b'\'');
        if bytes[start..].starts_with(&[quote; 3]) && start < self.endless[which] {
            let mut at = start + 3;
            while let Some(n) = memchr::memchr2(quote, b'\\', &bytes[at.min(bytes.len())..]) {
                at += n;
                if bytes[at] == b'\\' {
                    at += 2;
                } else if bytes[at..].starts_with(&[quote; 3]) {
                    return (TokenKind::String, at + 3);
                } else {
                    at += 1;
                }
            }
            self.endless[which] = start;
        }
        let mut at = start + 1;
        while let Some(n) = bytes.get(at..).and_then(|rest| {
            rest.iter()
                .position(|b| *b == quote || matches!(b, b'\\' | b'\n' | b'\r'))
        }) {
            at += n;
            match bytes[at] {
                b'\\' if !matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => at += 2,
                b if b == quote => return (TokenKind::String, at + 1),
                _ => return (TokenKind::Bad(BadToken::String), at),
            }
        }
        (TokenKind::Bad(BadToken::String), bytes.len())
    }

    fn digits(&self, mut at: usize) -> usize {
        while self.byte(at).is_ascii_digit() {
            at += 1;
        }
        at
    }

    fn number(&self, start: usize) -> (TokenKind, usize) {
        let whole = self.digits(start);
        let exponent = |at: usize| {
            if !matches!(self.byte(at), b'e' | b'E') {
                return None;
            }
            let from = at + 1 + usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
            let end = self.digits(from);
            (end > from).then_some(end)
        };
        if self.byte(whole) == b'.' {
            let fraction = self.digits(whole + 1);
            if (fraction > whole + 1 || whole > start)
                && let Some(end) = exponent(fraction)
            {
                return (TokenKind::Double, end);
            }
            if fraction > whole + 1 {
                return (TokenKind::Decimal, fraction);
            }
        }
        match exponent(whole) {
            Some(end) => (TokenKind::Double, end),
            None => (TokenKind::Integer, whole),
        }
    }

    fn language(&self, start: usize) -> (TokenKind, usize) {
        let run = |mut at: usize, of: fn(&u8) -> bool| {
            while of(&self.byte(at)) {
                at += 1;
            }
            at
        };
        let mut end = run(start + 1, u8::is_ascii_alphabetic);
        if end == start + 1 {
            return (TokenKind::Bad(BadToken::Character), end);
        }
        while self.byte(end) == b'-' {
            let more = run(end + 1, u8::is_ascii_alphanumeric);
            if more == end + 1 {
                break;
            }
            end = more;
        }
        if self.byte(end) == b'-' && self.byte(end + 1) == b'-' {
            let more = run(end + 2, u8::is_ascii_alphabetic);
            if more > end + 2 {
                end = more;
            }
        }
        (TokenKind::Language, end)
    }
}
