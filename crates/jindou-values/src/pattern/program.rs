//! Programs for the backtracking matcher in `search`, which handles what finite automata cannot: back-references, and
//! the rule that no line begins after a line end at the end of the text.

use super::class;
use super::parse::{RegexNode, Set};
use regex_syntax::hir::ClassUnicode;

/// Largest number of steps in a program.
const LONGEST: usize = 40_000;
/// Largest number of bytes of a program's sets.
const SETS: usize = 1 << 20;

/// A step of a program. Unless stated otherwise, the following step is next.
#[derive(Clone, Copy, Debug)]
pub(super) enum PatternStep {
    Char(char),
    /// Matches a character of the set with this number.
    Set(u32),
    /// Matches several characters of a set, as many as possible or, if not greedy, as few as possible.
    Several {
        set: u32,
        min: u32,
        max: u32,
        greedy: bool,
    },
    /// Tries the following step first, then the step with this number.
    Fork(u32),
    /// Tries the step with this number first, then the following one.
    Skip(u32),
    Jump(u32),
    /// Stores the current position in a slot. The slots of groups come before those of loops.
    Save(u32),
    /// Continues at the step (second number) if the loop's body, which began at the position in the slot (first
    /// number), matched the empty text; that prevents endless loops.
    Leave(u32, u32),
    Start {
        line: bool,
    },
    End {
        line: bool,
    },
    /// Matches the text that the group has matched; the empty text if it has not.
    Back(u32),
    Match,
}

/// A set of characters, with a bit mask for ASCII.
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
    /// Number of slots for positions: two for the match and for each group, one for each loop whose body may match
    /// nothing.
    pub slots: usize,
    /// Slots that steps read: those of groups with back-references, and of loops.
    pub read: Vec<u32>,
    /// True if back-references ignore case.
    pub case: bool,
}

impl PatternProgram {
    /// Compiles a pattern with this many groups; `None` if the program would be too large.
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

/// True if the node may match the empty text.
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

    /// Sets the target of an earlier `Fork` or `Skip` to the next step.
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
            // A body without steps needs no repetition.
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
