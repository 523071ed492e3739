//! Regular expressions of REGEX and REPLACE, which are those of XPath (F&O 3.1 §5.6). They extend those of XML Schema
//! 1.1 (Part 2, appendix G) by anchors, reluctant quantifiers, capturing and non-capturing groups, back-references, and
//! the flags `s`, `m`, `i`, `x`, `q`.
//!
//! ```text
//! pattern, flags ─ parse ─► tree ─ regular ─► regex-automata: linear time
//!                             └── program ─► search: back-references, and texts that end with a line end
//! ```

mod blocks;
mod case;
mod class;
mod parse;
mod program;
mod regular;
mod replacement;
mod search;
mod stepped;

pub(crate) use class::{is_name, is_name_start};
pub use replacement::{PatternReplacement, ReplacementPart};
pub use search::{Check, MatcherScratch};

use jindou_model::Result;
use program::PatternProgram;
use regex_automata::meta::Regex;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input};
use std::fmt;
use stepped::SteppedPattern;

/// Longest pattern in bytes; a longer one would probably exceed the largest compiled size.
const LONGEST: usize = 64 << 10;
/// Sizes in bytes to which a compiled pattern is limited. They are tried in turn; the first sufficient one is charged.
const PROGRAMS: [usize; 3] = [8 << 10, 96 << 10, 1_000_000];
/// Product of a program's steps and a text's bytes up to which `regex-automata` finds the positions of groups, although
/// it does not check the clock.
const IN_ONE_GO: usize = 1 << 24;
/// The same limit if the backtracking search has taken too many steps: about a second.
const WORTH_WAITING: usize = 1 << 27;
/// Smallest size of a state of a compiled pattern, in bytes.
const STATE: usize = 24;
/// Largest number of bytes for the positions of groups in all states together.
const PLACES: usize = 24 << 20;

/// The reason why a pattern is invalid, with F&O's error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPattern {
    /// A letter that is not a flag (FORX0001).
    Flags,
    /// A pattern that is not a regular expression (FORX0002).
    Pattern,
    /// A valid regular expression that is too large.
    Size,
}

/// Error for an invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The reason.
    pub reason: InvalidPattern,
    /// Position of the character in the pattern or the flags at which the error was detected, from 1.
    pub place: usize,
    message: String,
}

impl Error {
    fn pattern(place: usize, message: impl Into<String>) -> Self {
        Self {
            reason: InvalidPattern::Pattern,
            place,
            message: message.into(),
        }
    }

    fn too_large() -> Self {
        Self {
            reason: InvalidPattern::Size,
            place: 1,
            message: "the pattern takes too much memory; use fewer repetitions or groups".into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            InvalidPattern::Flags => {
                write!(f, "character {} of the flags: {}", self.place, self.message)
            }
            InvalidPattern::Pattern => {
                write!(
                    f,
                    "character {} of the pattern: {}",
                    self.place, self.message
                )
            }
            InvalidPattern::Size => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

/// Flags, by their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags {
    /// `s`: `.` matches any character.
    dot: bool,
    /// `m`: `^` and `$` also match at the starts and ends of lines.
    lines: bool,
    /// `i`: case is ignored.
    case: bool,
    /// `x`: white space in the pattern is ignored.
    space: bool,
    /// `q`: the pattern is a literal text.
    quote: bool,
}

impl Flags {
    fn new(text: &str) -> std::result::Result<Self, Error> {
        let mut flags = Self::default();
        for (at, c) in text.chars().enumerate() {
            match c {
                's' => flags.dot = true,
                'm' => flags.lines = true,
                'i' => flags.case = true,
                'x' => flags.space = true,
                'q' => flags.quote = true,
                c => {
                    return Err(Error {
                        reason: InvalidPattern::Flags,
                        place: at + 1,
                        message: format!("`{c}` is not a flag; the flags are s, m, i, x and q"),
                    });
                }
            }
        }
        Ok(flags)
    }
}

/// The texts for which the backtracking matcher (`search`) is needed, since `regex-automata` matches too much or cannot
/// be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatcherNeed {
    /// All texts.
    Always,
    /// Texts whose last character is a line end.
    LastLine,
    /// Long texts, and only for the positions of groups.
    Groups,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    /// Matches every text that the pattern matches. If `exact` is set, it may match more.
    regular: Regex,
    /// The same pattern for long texts, which are searched block by block.
    stepped: SteppedPattern,
    exact: Option<(MatcherNeed, PatternProgram)>,
    groups: usize,
    quoted: bool,
    bytes: usize,
}

/// Positions of a match and of its groups, in bytes.
#[derive(Clone, Debug)]
pub struct Captures {
    regular: Vec<Option<NonMaxUsize>>,
    exact: Vec<Option<usize>>,
}

impl Captures {
    /// Start and end of group `n`, or of the whole match for 0; `None` if the group did not participate in the match.
    pub fn group(&self, n: usize) -> Option<(usize, usize)> {
        let place = |at: usize| match self.exact.is_empty() {
            true => self
                .regular
                .get(at)
                .copied()
                .flatten()
                .map(NonMaxUsize::get),
            false => self.exact.get(at).copied().flatten(),
        };
        Some((place(2 * n)?, place(2 * n + 1)?))
    }
}

impl Pattern {
    /// Compiles a pattern with flags of F&O. The positions of its groups are available only with `capture`.
    ///
    /// # Errors
    /// The first error in the pattern or its flags.
    pub fn new(pattern: &str, flags: &str, capture: bool) -> std::result::Result<Self, Error> {
        let flags = Flags::new(flags)?;
        if pattern.len() > LONGEST {
            return Err(Error::too_large());
        }
        let parsed = parse::parse(pattern, flags)?;
        let need = match (parsed.refers, parsed.lines) {
            (true, _) => Some(MatcherNeed::Always),
            (false, true) => Some(MatcherNeed::LastLine),
            (false, false) if capture && parsed.groups > 0 => Some(MatcherNeed::Groups),
            (false, false) => None,
        };
        let program =
            need.and_then(|_| PatternProgram::new(&parsed.root, parsed.groups, flags.case));
        let exact = match (need, program) {
            (Some(need), Some(program)) => Some((need, program)),
            (None | Some(MatcherNeed::Groups), _) => None,
            (Some(_), None) => return Err(Error::too_large()),
        };
        let capture =
            capture && parsed.groups > 0 && !matches!(exact, Some((MatcherNeed::Always, _)));
        let groups = parsed.groups as usize;
        let hir = regular::translate(&parsed.root, capture)?;
        drop(parsed);
        for program in PROGRAMS {
            // Memory for the automaton's states, which are created as texts need them.
            let states = (2 * program).max(32 << 10);
            let places = match capture {
                true => (program / STATE).saturating_mul(16 * groups),
                false => 0,
            };
            if places > PLACES {
                break;
            }
            let Some(regular) = regular::compile(&hir, program, states) else {
                continue;
            };
            let exact_bytes = exact.as_ref().map_or(0, |(_, p)| p.bytes());
            return Ok(Self {
                regular,
                stepped: SteppedPattern {
                    hir,
                    program,
                    states,
                },
                exact,
                groups,
                quoted: flags.quote,
                // `regex-automata` has an automaton for each direction.
                bytes: 2 * (program + states) + places + exact_bytes,
            });
        }
        Err(Error::too_large())
    }

    /// Largest number of bytes that the pattern can take, including states created for texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of capturing groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// True with the flag `q`, with which the replacement of REPLACE is a literal text, too.
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// True if the pattern matches the empty text, which REPLACE does not allow (FORX0003).
    pub fn matches_empty(&self) -> bool {
        // A pattern that takes too many steps is treated as if it matched.
        let found = self.is_match("", &mut MatcherScratch::default(), &mut |_| Ok(()));
        found.unwrap_or(true)
    }

    /// The program for the backtracking matcher, if it is needed to decide whether this text matches.
    #[inline]
    fn exact(&self, text: &str) -> Option<&PatternProgram> {
        match &self.exact {
            None | Some((MatcherNeed::Groups, _)) => None,
            Some((MatcherNeed::Always, program)) => Some(program),
            Some((MatcherNeed::LastLine, program)) => text.ends_with('\n').then_some(program),
        }
    }

    /// The program for the backtracking matcher, if it is needed to find the positions of groups: in a long text,
    /// `regex-automata` could take minutes, and does not check the clock.
    #[inline]
    fn exact_places(&self, text: &str, places: &Captures) -> Option<&PatternProgram> {
        match &self.exact {
            Some((_, program))
                if places.regular.len() > 2
                    && text.len() >= stepped::LONG
                    && work(program, text) >= IN_ONE_GO =>
            {
                Some(program)
            }
            _ => self.exact(text),
        }
    }

    /// True if the pattern matches some part of the text. Time is linear in the text unless there are back-references.
    ///
    /// # Errors
    /// The errors of `check`, and `Limit` if back-references take too many steps.
    #[inline]
    pub fn is_match(
        &self,
        text: &str,
        scratch: &mut MatcherScratch,
        check: Check<'_>,
    ) -> Result<bool> {
        match self.exact(text) {
            None if text.len() >= stepped::LONG => match self.stepped.is_match(text, check)? {
                Some(found) => Ok(found),
                None => Ok(self.regular.is_match(text)),
            },
            None => Ok(self.regular.is_match(text)),
            Some(program) => match self.regular.find(text) {
                None => Ok(false),
                Some(first) => search::find(program, text, first.start(), &mut [], scratch, check),
            },
        }
    }

    /// Space for the positions of the match and of the first `groups` groups.
    pub fn places(&self, groups: usize) -> Captures {
        let slots = 2 * groups.min(self.groups) + 2;
        Captures {
            regular: vec![None; slots],
            exact: vec![],
        }
    }

    /// Finds the first match that begins at `from` or later.
    ///
    /// # Errors
    /// As for [`Pattern::is_match`].
    pub fn find(
        &self,
        text: &str,
        from: usize,
        places: &mut Captures,
        scratch: &mut MatcherScratch,
        check: Check<'_>,
    ) -> Result<bool> {
        let input = Input::new(text).range(from..).anchored(Anchored::No);
        let Some(program) = self.exact_places(text, places) else {
            places.exact.clear();
            return Ok(self
                .regular
                .search_slots(&input, &mut places.regular)
                .is_some());
        };
        let Some(first) = self.regular.search(&input) else {
            return Ok(false);
        };
        places.exact.clear();
        places.exact.resize(places.regular.len(), None);
        let exact = &mut places.exact;
        match search::find(program, text, first.start(), exact, scratch, check) {
            Err(jindou_model::Error::Limit(_))
                if self.exact(text).is_none() && work(program, text) < WORTH_WAITING =>
            {
                exact.clear();
                let found = self.regular.search_slots(&input, &mut places.regular);
                Ok(found.is_some())
            }
            found => found,
        }
    }
}

/// Bound on the steps that `regex-automata` takes to find the positions of groups.
fn work(program: &PatternProgram, text: &str) -> usize {
    text.len().saturating_mul(program.steps.len())
}

#[cfg(test)]
mod tests;
