//! Parser for the grammar of XML Schema 1.1 Part 2, appendix G, with the additions of F&O 3.1 §5.6.1.

use super::class::{self, NamedSet};
use super::{Error, Flags, case};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest nesting of groups and of subtracted classes.
const DEPTH: usize = 250;

/// A node of a regular expression.
#[derive(Debug)]
pub(super) enum RegexNode {
    Empty,
    Char(char),
    Set(Set),
    /// `^` and, below, `$`; with `line`, also at each line.
    Start {
        line: bool,
    },
    End {
        line: bool,
    },
    /// A group, with its number if it is capturing.
    Group(Box<RegexNode>, Option<u32>),
    Repeat {
        of: Box<RegexNode>,
        min: u32,
        max: Option<u32>,
        greedy: bool,
    },
    Concat(Vec<RegexNode>),
    Either(Vec<RegexNode>),
    /// A back-reference to the group with this number.
    Back(u32),
}

/// A set of characters, any of which matches.
#[derive(Clone, Debug)]
pub(super) enum Set {
    Known(NamedSet),
    Own(Arc<ClassUnicode>),
}

impl Set {
    pub fn get(&self) -> &ClassUnicode {
        match self {
            Self::Known(known) => known.set(),
            Self::Own(set) => set,
        }
    }
}

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct ParsedPattern {
    pub root: RegexNode,
    /// Number of capturing groups.
    pub groups: u32,
    /// True if there is a back-reference.
    pub refers: bool,
    /// True if `^` or `$` occurs with the flag `m`.
    pub lines: bool,
}

/// The meaning of an escape.
enum Escape {
    Char(char),
    Set(Set),
}

struct PatternParser {
    /// The pattern's characters with their positions, from 1; without those that the flag `x` removes.
    text: Vec<(char, usize)>,
    at: usize,
    flags: Flags,
    depth: usize,
    groups: u32,
    /// Numbers of the capturing groups that are open.
    open: Vec<u32>,
    refers: bool,
    lines: bool,
    /// The variants of each character that has some, once it was found: a set takes hundreds of bytes.
    cased: BTreeMap<char, Arc<ClassUnicode>>,
    /// Sum of the ranges of all sets.
    ranges: usize,
}

/// Largest sum of the ranges of a pattern's sets. A pattern with a tenth of it exceeds the largest compiled size.
const RANGES: usize = 1 << 17;

/// Parses a pattern.
pub(super) fn parse(pattern: &str, flags: Flags) -> Result<ParsedPattern, Error> {
    let mut parser = PatternParser {
        text: characters(pattern, flags),
        at: 0,
        flags,
        depth: 0,
        groups: 0,
        open: vec![],
        refers: false,
        lines: false,
        cased: BTreeMap::new(),
        ranges: 0,
    };
    let root = if flags.quote {
        let text = std::mem::take(&mut parser.text);
        let chars = text.iter().map(|(c, _)| parser.single(*c));
        RegexNode::Concat(chars.collect())
    } else {
        let root = parser.either()?;
        if parser.peek().is_some() {
            return Err(parser.wrong("`)` closes no group; write `\\)` for the character"));
        }
        root
    };
    Ok(ParsedPattern {
        root,
        groups: parser.groups,
        refers: parser.refers,
        lines: parser.lines,
    })
}

/// The pattern's characters with their positions. The flag `x` removes white space outside square brackets.
fn characters(pattern: &str, flags: Flags) -> Vec<(char, usize)> {
    let all = pattern.chars().zip(1..);
    if flags.quote || !flags.space {
        return all.collect();
    }
    let (mut depth, mut escaped) = (0_usize, false);
    all.filter(|(c, _)| {
        if depth == 0 && matches!(c, ' ' | '\t' | '\n' | '\r') {
            return false;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        true
    })
    .collect()
}

impl PatternParser {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).map(|(c, _)| *c)
    }

    fn second(&self) -> Option<char> {
        self.text.get(self.at + 1).map(|(c, _)| *c)
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    /// An error at the next character.
    fn wrong(&self, message: impl Into<String>) -> Error {
        let end = self.text.last().map_or(1, |(_, place)| place + 1);
        let place = self.text.get(self.at).map_or(end, |(_, place)| *place);
        Error::pattern(place, message)
    }

    /// An error at the last character read.
    fn wrong_before(&self, message: impl Into<String>) -> Error {
        let place = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        Error::pattern(place.map_or(1, |(_, place)| *place), message)
    }

    fn deeper(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.wrong_before(format!("nested more than {DEPTH} levels deep")));
        }
        Ok(())
    }

    /// A node for one character; if case is ignored, it also matches the character's variants.
    fn single(&mut self, c: char) -> RegexNode {
        if !self.flags.case {
            return RegexNode::Char(c);
        }
        if let Some(set) = self.cased.get(&c) {
            return RegexNode::Set(Set::Own(Arc::clone(set)));
        }
        let set = class::from_ranges(case::variants(c).chain([c]).map(|c| (c, c)));
        if set.ranges().len() == 1 {
            return RegexNode::Char(c);
        }
        let set = Arc::new(set);
        self.cased.insert(c, Arc::clone(&set));
        RegexNode::Set(Set::Own(set))
    }

    /// Parses branches separated by `|`.
    fn either(&mut self) -> Result<RegexNode, Error> {
        let first = self.branch()?;
        if self.peek() != Some('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.eat('|') {
            all.push(self.branch()?);
        }
        Ok(RegexNode::Either(all))
    }

    fn branch(&mut self) -> Result<RegexNode, Error> {
        let mut pieces = vec![];
        while let Some(c) = self.peek()
            && c != '|'
            && c != ')'
        {
            let atom = self.atom(c)?;
            if let RegexNode::Set(set) = &atom {
                self.ranges += set.get().ranges().len();
                if self.ranges > RANGES {
                    return Err(Error::too_large());
                }
            }
            pieces.push(self.quantified(atom)?);
        }
        Ok(match pieces.len() {
            0 => RegexNode::Empty,
            1 => pieces.swap_remove(0),
            _ => RegexNode::Concat(pieces),
        })
    }

    fn atom(&mut self, c: char) -> Result<RegexNode, Error> {
        Ok(match c {
            '(' => return self.group(),
            '*' | '+' | '?' | '{' => {
                return Err(self.wrong(format!(
                    "there is nothing before `{c}` to repeat; write `\\{c}` for the character"
                )));
            }
            ']' | '}' => {
                return Err(self.wrong(format!(
                    "`{c}` closes nothing; write `\\{c}` for the character"
                )));
            }
            _ => {
                self.at += 1;
                match c {
                    '[' => RegexNode::Set(Set::Own(Arc::new(self.class()?))),
                    '\\' => return self.escape_or_reference(),
                    '.' if self.flags.dot => RegexNode::Set(Set::Known(NamedSet::ANY)),
                    '.' => RegexNode::Set(Set::Known(NamedSet::DOT)),
                    '^' | '$' => {
                        let line = self.flags.lines;
                        self.lines |= line;
                        match c {
                            '^' => RegexNode::Start { line },
                            _ => RegexNode::End { line },
                        }
                    }
                    c => self.single(c),
                }
            }
        })
    }

    fn group(&mut self) -> Result<RegexNode, Error> {
        let begin = self.at;
        self.at += 1;
        self.deeper()?;
        let number = if self.eat('?') {
            if !self.eat(':') {
                return Err(self.wrong(
                    "`(?` can only begin `(?:…)`, a group that does not capture; there are no look-around assertions, and flags go into the argument after the pattern",
                ));
            }
            None
        } else {
            self.groups += 1;
            self.open.push(self.groups);
            Some(self.groups)
        };
        let inner = self.either()?;
        if !self.eat(')') {
            self.at = begin;
            return Err(self.wrong("`(` without `)`; write `\\(` for the character"));
        }
        if number.is_some() {
            self.open.pop();
        }
        self.depth -= 1;
        Ok(RegexNode::Group(Box::new(inner), number))
    }

    fn quantified(&mut self, of: RegexNode) -> Result<RegexNode, Error> {
        let (min, max) = match self.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                self.at += 1;
                self.quantity()?
            }
            _ => return Ok(of),
        };
        self.at += 1;
        let greedy = !self.eat('?');
        Ok(RegexNode::Repeat {
            of: Box::new(of),
            min,
            max,
            greedy,
        })
    }

    /// Parses `n`, `n,` or `n,m`, up to the `}`: the least and the largest number of repetitions (`None`: no limit).
    fn quantity(&mut self) -> Result<(u32, Option<u32>), Error> {
        let min = self.number()?;
        let max = if !self.eat(',') {
            Some(min)
        } else if self.peek() == Some('}') {
            None
        } else {
            let begin = self.at;
            let max = self.number()?;
            if max < min {
                self.at = begin;
                return Err(self.wrong(format!("{max} is less than {min}")));
            }
            Some(max)
        };
        if self.peek() != Some('}') {
            return Err(self.wrong("expected `}`: a quantity is `{n}`, `{n,}` or `{n,m}`"));
        }
        Ok((min, max))
    }

    fn number(&mut self) -> Result<u32, Error> {
        let begin = self.at;
        let mut n = Some(0_u32);
        while let Some(d) = self.peek().filter(char::is_ascii_digit) {
            let d = u32::from(d) - u32::from('0');
            n = n.and_then(|n| n.checked_mul(10)?.checked_add(d));
            self.at += 1;
        }
        if self.at == begin {
            return Err(self.wrong("expected a number: a quantity is `{n}`, `{n,}` or `{n,m}`"));
        }
        n.ok_or_else(|| {
            self.at = begin;
            self.wrong("the number is too large")
        })
    }

    /// Parses an escape or a back-reference outside square brackets, after its `\`.
    fn escape_or_reference(&mut self) -> Result<RegexNode, Error> {
        if let Some(first @ '1'..='9') = self.peek() {
            let begin = self.at;
            self.at += 1;
            let mut n = u32::from(first) - u32::from('0');
            // A further digit belongs to the number only if that many groups precede it.
            while let Some(d) = self.peek().filter(char::is_ascii_digit) {
                let more = n * 10 + u32::from(d) - u32::from('0');
                if more > self.groups {
                    break;
                }
                n = more;
                self.at += 1;
            }
            let fault = if n > self.groups {
                "comes before it"
            } else if self.open.contains(&n) {
                "is closed before it"
            } else {
                self.refers = true;
                return Ok(RegexNode::Back(n));
            };
            self.at = begin;
            return Err(self.wrong_before(format!(
                "`\\{n}` refers to a group, but no group {n} {fault}"
            )));
        }
        Ok(match self.escape()? {
            Escape::Char(c) => self.single(c),
            Escape::Set(set) => RegexNode::Set(set),
        })
    }

    /// Parses an escape that is allowed both inside and outside square brackets, after its `\`.
    fn escape(&mut self) -> Result<Escape, Error> {
        let Some(c) = self.peek() else {
            return Err(self.wrong_before("`\\` at the end; write `\\\\` for the character"));
        };
        self.at += 1;
        Ok(match c {
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            '\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '$' | '-' | '[' | ']'
            | '^' => Escape::Char(c),
            'p' | 'P' => Escape::Set(self.property(c == 'P')?),
            _ => match NamedSet::multi(c) {
                Some(known) => Escape::Set(Set::Known(known)),
                None => {
                    self.at -= 1;
                    return Err(self.wrong_before(match c {
                        '0'..='9' => format!("`\\{c}` is not allowed here: back-references are written `\\1` and so on, outside square brackets"),
                        'b' | 'B' | 'A' | 'z' | 'Z' | 'G' => format!("XPath's regular expressions have no `\\{c}`; `^` and `$` are the only anchors"),
                        'u' | 'x' => format!("XPath's regular expressions have no `\\{c}`; write the character itself, which SPARQL has as `\\uXXXX`"),
                        _ => format!("XPath's regular expressions have no `\\{c}`"),
                    }));
                }
            },
        })
    }

    /// Parses the name of a category or block in braces, after `\p` or `\P`.
    fn property(&mut self, complement: bool) -> Result<Set, Error> {
        if !self.eat('{') {
            return Err(self.wrong("expected `{` and the name of a category or block, as in `\\p{Lu}` and `\\p{IsGreek}`"));
        }
        let begin = self.at;
        let mut name = String::new();
        loop {
            match self.peek() {
                Some('}') => break,
                Some(c) => name.push(c),
                None => {
                    self.at = begin;
                    return Err(self.wrong_before("`{` without `}`"));
                }
            }
            self.at += 1;
        }
        let found = match name.strip_prefix("Is") {
            Some(block) => class::block(block, complement).map(|set| Set::Own(Arc::new(set))),
            None => NamedSet::category(&name, complement).map(Set::Known),
        };
        let Some(found) = found else {
            self.at = begin;
            let shown: String = name.chars().take(40).collect();
            return Err(self.wrong(match name.strip_prefix("Is") {
                Some(_) => format!("Unicode has no block `{shown}`; names are those of Blocks.txt without spaces, as in `IsBasicLatin`"),
                None => format!("`{shown}` is not a category; the categories are L, M, N, P, Z, S, C, their parts such as Lu, and blocks such as `IsBasicLatin`"),
            }));
        };
        self.at += 1;
        Ok(found)
    }

    /// Parses a character class, after its `[`, up to its `]`.
    fn class(&mut self) -> Result<ClassUnicode, Error> {
        let begin = self.at;
        self.deeper()?;
        let negated = self.eat('^');
        // Case variants are added to characters and ranges (`plain`), but not to escapes.
        let (mut plain, mut escapes) = (vec![], vec![]);
        let mut known = [false; NamedSet::COUNT];
        let mut parts = 0;
        let subtracted = loop {
            let Some(c) = self.peek() else {
                self.at = begin;
                return Err(self.wrong_before("`[` without `]`; write `\\[` for the character"));
            };
            match c {
                ']' if parts > 0 => break None,
                ']' => {
                    return Err(
                        self.wrong("nothing between `[` and `]`; write `\\]` for the character")
                    );
                }
                '[' => {
                    return Err(self.wrong(
                        "`[` between square brackets can only follow `-`, to subtract; write `\\[` for the character",
                    ));
                }
                '-' if self.second() == Some('[') => {
                    if parts == 0 {
                        return Err(
                            self.wrong("nothing to subtract from; write `\\-` for the character")
                        );
                    }
                    self.at += 2;
                    let less = self.class()?;
                    if self.peek() != Some(']') {
                        return Err(self.wrong("expected `]`: a subtraction must come last"));
                    }
                    break Some(less);
                }
                _ => {}
            }
            parts += 1;
            self.at += 1;
            let from = match c {
                '\\' => match self.escape()? {
                    Escape::Char(c) => c,
                    Escape::Set(set) => {
                        if let Set::Known(k) = set
                            && std::mem::replace(&mut known[k.number()], true)
                        {
                            continue;
                        }
                        escapes.extend_from_slice(set.get().ranges());
                        continue;
                    }
                },
                c => c,
            };
            let to = self.range(c == '-', from)?;
            plain.push(ClassUnicodeRange::new(from, to));
        };
        self.at += 1;
        self.depth -= 1;
        let mut set = ClassUnicode::new(plain);
        if self.flags.case {
            case::close(&mut set);
        }
        if !escapes.is_empty() {
            set.union(&ClassUnicode::new(escapes));
        }
        if negated {
            set = class::complement(&set);
        }
        if let Some(less) = subtracted {
            set.difference(&less);
        }
        Ok(set)
    }

    /// Parses the rest of a range after its first character `from`; returns its last character, or `from` if this is
    /// not a range.
    fn range(&mut self, hyphen: bool, from: char) -> Result<char, Error> {
        let after = self.text.get(self.at + 2).map(|(c, _)| *c);
        match (self.peek(), self.second()) {
            // The hyphen begins a subtraction, or is literal at the end or before a subtraction.
            (Some('-'), Some('[' | ']') | None) => return Ok(from),
            (Some('-'), Some('-')) if after == Some('[') => return Ok(from),
            (Some('-'), Some(_)) => {}
            _ => return Ok(from),
        }
        if hyphen {
            return Err(self.wrong_before("a range cannot begin with `-`; write `\\-`"));
        }
        self.at += 1;
        let place = self.at;
        let to = match self.peek() {
            Some('-') => return Err(self.wrong("a range cannot end with `-`; write `\\-`")),
            Some('\\') => {
                self.at += 1;
                match self.escape()? {
                    Escape::Char(c) => c,
                    Escape::Set(_) => {
                        self.at = place;
                        return Err(self.wrong("a range must end with one character, and this denotes several; write `\\-` for the hyphen"));
                    }
                }
            }
            Some(c) => {
                self.at += 1;
                c
            }
            None => return Ok(from),
        };
        if to < from {
            self.at = place;
            return Err(self.wrong(format!(
                "`{from}` comes after `{to}`, so the range is empty"
            )));
        }
        Ok(to)
    }
}
