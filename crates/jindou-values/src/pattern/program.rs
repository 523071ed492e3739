//! Programs of the matcher in `search`, for features beyond finite automata: back-references, and lines that do not
//! begin or end after the last line end.

use super::class;
use super::parse::{RegexNode, Set};
use regex_syntax::hir::ClassUnicode;

/// Most instructions in a program.
const LONGEST: usize = 40_000;
/// Most bytes of a program's sets.
const SETS: usize = 1 << 20;

/// A step. Unless stated otherwise, the next one follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum PatternStep {
    Char(char),
    /// A character of the set with this number.
    Set(u32),
    /// Characters of a set, as many as possible or, if not greedy, as few.
    Several {
        set: u32,
        min: u32,
        max: u32,
        greedy: bool,
    },
    /// Two alternatives: the next step first, then this one.
    Fork(u32),
    /// Two alternatives: this one first, then the next step.
    Skip(u32),
    Jump(u32),
    /// Records the position in a slot: first those of groups, then those of loops.
    Save(u32),
    /// Continues at the other step if the loop's body, which began at the position in this slot, matched the empty
    /// text.
    Leave(u32, u32),
    Start {
        line: bool,
    },
    End {
        line: bool,
    },
    /// The text that the group matched; empty if it took no part.
    Back(u32),
    Match,
}

/// A set with a quick answer for ASCII.
#[derive(Debug)]
pub(super) struct Chars {
    ascii: u128,
    set: ClassUnicode,
}

impl Chars {
    fn new(set: &ClassUnicode) -> Self {
        let ascii = (0..128_u8)
            .filter(|b| class::contains(set, char::from(*b)))
            .fold(0, |bits, b| bits | 1 << b);
        Self {
            ascii,
            set: set.clone(),
        }
    }

    #[inline]
    pub fn has(&self, c: char) -> bool {
        match u32::from(c) {
            n @ 0..128 => self.ascii >> n & 1 == 1,
            _ => class::contains(&self.set, c),
        }
    }
}

#[derive(Debug)]
pub(super) struct PatternProgram {
    pub steps: Vec<PatternStep>,
    pub sets: Vec<Chars>,
    /// Number of position slots: two for the match and for each group, one for each loop whose body may be empty.
    pub slots: usize,
    /// Slots that later steps read: those of groups with back-references, and of loops.
    pub read: Vec<u32>,
    /// True if back-references ignore case.
    pub case: bool,
}

impl PatternProgram {
    /// `None` if it would be too long.
    pub fn new(root: &RegexNode, groups: u32, case: bool) -> Option<Self> {
        let mut writer = ProgramWriter {
            program: Self {
                steps: vec![],
                sets: vec![],
                slots: 2 * groups as usize + 2,
                read: vec![],
                case,
            },
            bytes: 0,
        };
        writer.write(root)?;
        writer.step(PatternStep::Match)?;
        let mut program = writer.program;
        program.read.sort_unstable();
        program.read.dedup();
        Some(program)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        let sets: usize = self.sets.iter().map(|s| 8 * s.set.ranges().len()).sum();
        size_of::<PatternStep>() * self.steps.len() + size_of::<Chars>() * self.sets.len() + sets
    }
}

struct ProgramWriter {
    program: PatternProgram,
    bytes: usize,
}

/// True if it may match without taking a character.
fn is_nullable(node: &RegexNode) -> bool {
    match node {
        RegexNode::Char(_) | RegexNode::Set(_) => false,
        RegexNode::Group(inner, _) => is_nullable(inner),
        RegexNode::Repeat { of, min, .. } => *min == 0 || is_nullable(of),
        RegexNode::Concat(parts) => parts.iter().all(is_nullable),
        RegexNode::Either(parts) => parts.iter().any(is_nullable),
        RegexNode::Empty | RegexNode::Start { .. } | RegexNode::End { .. } | RegexNode::Back(_) => {
            true
        }
    }
}

impl ProgramWriter {
    fn step(&mut self, step: PatternStep) -> Option<u32> {
        let at = self.program.steps.len();
        if at >= LONGEST {
            return None;
        }
        self.program.steps.push(step);
        Some(at as u32)
    }

    /// Makes a fork or a skip continue here.
    fn land(&mut self, from: u32) {
        let here = self.program.steps.len() as u32;
        if let Some(
            PatternStep::Fork(to)
            | PatternStep::Skip(to)
            | PatternStep::Jump(to)
            | PatternStep::Leave(_, to),
        ) = self.program.steps.get_mut(from as usize)
        {
            *to = here;
        }
    }

    fn set(&mut self, set: &Set) -> Option<u32> {
        self.chars(set.get())
    }

    fn chars(&mut self, set: &ClassUnicode) -> Option<u32> {
        self.bytes += 8 * set.ranges().len() + size_of::<Chars>();
        if self.bytes > SETS {
            return None;
        }
        self.program.sets.push(Chars::new(set));
        Some(self.program.sets.len() as u32 - 1)
    }

    fn write(&mut self, node: &RegexNode) -> Option<()> {
        match node {
            RegexNode::Empty => {}
            RegexNode::Char(c) => _ = self.step(PatternStep::Char(*c))?,
            RegexNode::Set(set) => {
                let set = self.set(set)?;
                self.step(PatternStep::Set(set))?;
            }
            RegexNode::Start { line } => _ = self.step(PatternStep::Start { line: *line })?,
            RegexNode::End { line } => _ = self.step(PatternStep::End { line: *line })?,
            RegexNode::Group(inner, None) => self.write(inner)?,
            RegexNode::Group(inner, Some(number)) => {
                self.step(PatternStep::Save(2 * number))?;
                self.write(inner)?;
                self.step(PatternStep::Save(2 * number + 1))?;
            }
            RegexNode::Concat(parts) => {
                for part in parts {
                    self.write(part)?;
                }
            }
            RegexNode::Either(parts) => self.either(parts)?,
            RegexNode::Back(number) => {
                self.program.read.extend([2 * number, 2 * number + 1]);
                self.step(PatternStep::Back(*number))?;
            }
            RegexNode::Repeat {
                of,
                min,
                max,
                greedy,
            } => self.repeat(of, *min, *max, *greedy)?,
        }
        Some(())
    }

    fn either(&mut self, parts: &[RegexNode]) -> Option<()> {
        let mut ends = vec![];
        for (i, part) in parts.iter().enumerate() {
            if i + 1 == parts.len() {
                self.write(part)?;
                break;
            }
            let fork = self.step(PatternStep::Fork(0))?;
            self.write(part)?;
            ends.push(self.step(PatternStep::Jump(0))?);
            self.land(fork);
        }
        for end in ends {
            self.land(end);
        }
        Some(())
    }

    fn choice(&mut self, greedy: bool) -> Option<u32> {
        self.step(match greedy {
            true => PatternStep::Fork(0),
            false => PatternStep::Skip(0),
        })
    }

    fn repeat(&mut self, of: &RegexNode, min: u32, max: Option<u32>, greedy: bool) -> Option<()> {
        if max == Some(0) {
            return Some(());
        }
        let set = match of {
            RegexNode::Set(set) => Some(self.set(set)?),
            RegexNode::Char(c) => Some(self.chars(&class::from_ranges([(*c, *c)]))?),
            _ => None,
        };
        if let Some(set) = set {
            self.step(PatternStep::Several {
                set,
                min,
                max: max.unwrap_or(u32::MAX),
                greedy,
            })?;
            return Some(());
        }
        for n in 0..min {
            let before = self.program.steps.len();
            self.write(of)?;
            // An empty body needs no code: once is the same as many times.
            if before == self.program.steps.len() && n == 0 {
                return Some(());
            }
        }
        let Some(max) = max else {
            let begin = self.choice(greedy)?;
            match is_nullable(of) {
                false => self.write(of)?,
                true => {
                    let slot = self.program.slots as u32;
                    self.program.slots += 1;
                    self.program.read.push(slot);
                    self.step(PatternStep::Save(slot))?;
                    self.write(of)?;
                    let leave = self.step(PatternStep::Leave(slot, 0))?;
                    self.step(PatternStep::Jump(begin))?;
                    self.land(begin);
                    self.land(leave);
                    return Some(());
                }
            }
            self.step(PatternStep::Jump(begin))?;
            self.land(begin);
            return Some(());
        };
        let mut exits = vec![];
        for _ in min..max {
            exits.push(self.choice(greedy)?);
            self.write(of)?;
        }
        for exit in exits {
            self.land(exit);
        }
        Some(())
    }
}
