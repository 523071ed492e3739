//! Patterns for `regex-automata`. They are passed to it as trees with ranges of characters, never as text.

use super::Error;
use super::class::NamedSet;
use super::parse::{RegexNode, Set};
use regex_automata::meta::{self, BuildError};
use regex_syntax::hir::{Capture, Class, Hir, Look, Repetition};

/// Largest number of ranges of all sets together; more would exceed the largest compiled size anyway.
const RANGES: usize = 1 << 16;

/// Translates a pattern. Back-references become `.*` over all characters, and a line may also begin after a line end at
/// the end of the text. So the result matches all texts that the pattern matches, and possibly more.
pub(super) fn translate(root: &RegexNode, capture: bool) -> Result<Hir, Error> {
    Translation { capture, ranges: 0 }.hir(root)
}

/// Compiles a pattern into at most `program` bytes, with at most `states` bytes for states that texts need; `None` if
/// these do not suffice.
pub(super) fn compile(hir: &Hir, program: usize, states: usize) -> Option<meta::Regex> {
    let config = meta::Config::new()
        .nfa_size_limit(Some(program))
        .onepass_size_limit(Some(program))
        .hybrid_cache_capacity(states);
    let built: Result<_, BuildError> = meta::Builder::new().configure(config).build_from_hir(hir);
    built.ok()
}

struct Translation {
    capture: bool,
    ranges: usize,
}

impl Translation {
    fn hir(&mut self, node: &RegexNode) -> Result<Hir, Error> {
        Ok(match node {
            RegexNode::Empty => Hir::empty(),
            RegexNode::Char(c) => Hir::literal(c.encode_utf8(&mut [0; 4]).as_bytes()),
            RegexNode::Set(set) => self.set(set)?,
            RegexNode::Start { line: false } => Hir::look(Look::Start),
            RegexNode::Start { line: true } => Hir::look(Look::StartLF),
            RegexNode::End { line: false } => Hir::look(Look::End),
            RegexNode::End { line: true } => Hir::look(Look::EndLF),
            RegexNode::Group(inner, number) => {
                let sub = self.hir(inner)?;
                match number {
                    Some(index) if self.capture => Hir::capture(Capture {
                        index: *index,
                        name: None,
                        sub: Box::new(sub),
                    }),
                    _ => sub,
                }
            }
            RegexNode::Repeat {
                of,
                min,
                max,
                greedy,
            } => Hir::repetition(Repetition {
                min: *min,
                max: *max,
                greedy: *greedy,
                sub: Box::new(self.hir(of)?),
            }),
            RegexNode::Concat(parts) => Hir::concat(self.all(parts)?),
            RegexNode::Either(parts) => Hir::alternation(self.all(parts)?),
            RegexNode::Back(_) => Hir::repetition(Repetition {
                min: 0,
                max: None,
                greedy: true,
                sub: Box::new(self.set(&Set::Known(NamedSet::ANY))?),
            }),
        })
    }

    fn all(&mut self, nodes: &[RegexNode]) -> Result<Vec<Hir>, Error> {
        nodes.iter().map(|n| self.hir(n)).collect()
    }

    fn set(&mut self, set: &Set) -> Result<Hir, Error> {
        let set = set.get();
        self.ranges += set.ranges().len();
        if self.ranges > RANGES {
            return Err(Error::too_large());
        }
        Ok(Hir::class(Class::Unicode(set.clone())))
    }
}
