//! A backtracking matcher that remembers failures. The result of a step depends only on the step, the position in the
//! text, and the positions of the groups that back-references use. Each such state is tried only once. So time is
//! polynomial in the text, with the number of those groups as its degree; it is limited as well.

use super::case;
use super::program::{PatternProgram, PatternStep};
use jindou_model::{Error, Limit, Resource, Result};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Number of steps allowed for any search, and additional steps per byte of the text.
const STEPS: u64 = 10_000_000;
const STEPS_A_BYTE: u64 = 1_000;
/// Number of steps between two checks of the clock and the memory.
const CHECK: u64 = 1 << 14;
/// Number of failed alternatives after which a search begins to remember failures.
const PATIENCE: u32 = 1 << 10;
/// Largest number of remembered failures.
const FAILURES: usize = 1 << 20;
/// Largest number of pending alternatives, in addition to the bytes of the text.
const CHOICES: usize = 1 << 22;

/// Value of a slot without a position.
const NOWHERE: usize = usize::MAX;

/// Check of the caller's limits, called at intervals with the number of bytes that the search occupies.
pub type Check<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// Memory of the matcher, which callers reuse for further searches.
#[derive(Debug, Default)]
pub struct MatcherScratch {
    choices: Vec<Backtrack>,
    failed: HashSet<u128, BuildHasherDefault<StateHasher>>,
    slots: Vec<usize>,
}

/// A hasher for states, which are hashes already.
#[derive(Debug, Default)]
struct StateHasher(u64);

impl Hasher for StateHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(b);
        }
    }
    fn write_u128(&mut self, n: u128) {
        self.0 = n as u64;
    }
}

/// An entry of the stack of alternatives, whose top is tried first when a step fails.
#[derive(Clone, Copy, Debug)]
enum Backtrack {
    /// Continue with this step at this position.
    Step(u32, usize),
    /// Restores a slot's earlier position, then continues with the next entry.
    Slot(u32, usize),
    /// Lets a `Several` match one character less, down to this position.
    Fewer { next: u32, least: usize, at: usize },
    /// Lets a `Several` match one character more, at most `left` times.
    More { step: u32, at: usize, left: u32 },
}

impl MatcherScratch {
    /// Number of bytes that it occupies.
    pub fn bytes(&self) -> usize {
        Self::bytes_for(self.choices.capacity(), self.failed.capacity())
    }

    fn bytes_for(choices: usize, failed: usize) -> usize {
        choices * size_of::<Backtrack>() + failed * 20
    }

    /// Reserves memory for all steps up to the next check. `check` is called with the future size first.
    fn make_room(&mut self, check: Check<'_>) -> Result<()> {
        let room = |held: usize, capacity: usize, more: usize| match held + more > capacity {
            true => (2 * capacity).max(held + more),
            false => capacity,
        };
        let choices = room(
            self.choices.len(),
            self.choices.capacity(),
            2 * CHECK as usize,
        );
        let failed = room(self.failed.len(), self.failed.capacity(), CHECK as usize);
        check(Self::bytes_for(choices, failed))?;
        self.choices.reserve(choices - self.choices.len());
        self.failed.reserve(failed - self.failed.len());
        Ok(())
    }
}

/// One search.
struct PatternSearch<'p, 't> {
    program: &'p PatternProgram,
    text: &'t str,
    scratch: &'p mut MatcherScratch,
    steps: u64,
    next_check: u64,
    given_up: u32,
}

/// Finds the first match that begins at `from` or later, and stores the positions of the match and of the groups.
///
/// # Errors
/// The errors of `check`, and `Limit` for a search that takes too many steps.
pub(super) fn find(
    program: &PatternProgram,
    text: &str,
    from: usize,
    slots: &mut [Option<usize>],
    scratch: &mut MatcherScratch,
    check: Check<'_>,
) -> Result<bool> {
    scratch.failed.clear();
    let mut search = PatternSearch {
        program,
        text,
        scratch,
        steps: 0,
        next_check: CHECK,
        given_up: 0,
    };
    let mut at = from;
    let found = loop {
        if search.begins(at, check)? {
            break true;
        }
        match search.char(at) {
            Some(c) => at += c.len_utf8(),
            None => break false,
        }
    };
    if found {
        for (slot, place) in slots.iter_mut().zip(&search.scratch.slots) {
            *slot = (*place != NOWHERE).then_some(*place);
        }
    }
    // The memory of a difficult search is freed, not kept for later ones.
    if scratch.bytes() > 1 << 20 {
        *scratch = MatcherScratch::default();
    }
    Ok(found)
}

fn mix(hash: u128, n: u64) -> u128 {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let mixed = (hash ^ u128::from(n)).wrapping_mul(ODD);
    mixed ^ mixed >> 67
}

impl PatternSearch<'_, '_> {
    #[inline]
    fn char(&self, at: usize) -> Option<char> {
        let byte = *self.text.as_bytes().get(at)?;
        if byte < 128 {
            return Some(char::from(byte));
        }
        self.text.get(at..)?.chars().next()
    }

    /// The position of the previous character.
    fn before(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = at.saturating_sub(1);
        while at > 0 && bytes.get(at).is_some_and(|b| b & 0xc0 == 0x80) {
            at -= 1;
        }
        at
    }

    fn check(&mut self, check: Check<'_>) -> Result<()> {
        if self.steps > STEPS + STEPS_A_BYTE * self.text.len() as u64
            || self.scratch.choices.len() > CHOICES + self.text.len()
        {
            let message = format!(
                "a regular expression with back-references takes more than {} steps over a text of {} bytes; write it without `\\1`, or with fewer alternatives",
                self.steps,
                self.text.len()
            );
            return Err(Error::Limit(Limit::new(Resource::Form, message)));
        }
        self.scratch.make_room(check)
    }

    /// The next alternative to try, as step and position; `None` if there are no more.
    fn another(&mut self) -> Option<(u32, usize)> {
        loop {
            let (step, at) = match self.scratch.choices.pop()? {
                Backtrack::Slot(slot, place) => {
                    if let Some(slot) = self.scratch.slots.get_mut(slot as usize) {
                        *slot = place;
                    }
                    continue;
                }
                Backtrack::Step(step, at) => (step, at),
                Backtrack::Fewer { next, least, at } => {
                    let at = self.before(at);
                    if at > least {
                        self.scratch
                            .choices
                            .push(Backtrack::Fewer { next, least, at });
                    }
                    (next, at)
                }
                Backtrack::More { step, at, left } => {
                    let Some(PatternStep::Several { set, .. }) =
                        self.program.steps.get(step as usize)
                    else {
                        continue;
                    };
                    let set = self.program.sets.get(*set as usize)?;
                    let Some(c) = self.char(at).filter(|c| set.has(*c)) else {
                        continue;
                    };
                    let at = at + c.len_utf8();
                    if left > 1 {
                        self.scratch.choices.push(Backtrack::More {
                            step,
                            at,
                            left: left - 1,
                        });
                    }
                    (step + 1, at)
                }
            };
            self.given_up += 1;
            self.steps += 1;
            if self.given_up > PATIENCE && self.scratch.failed.len() < FAILURES {
                let mut state = mix(mix(0, u64::from(step)), at as u64);
                for slot in &self.program.read {
                    let place = self.scratch.slots.get(*slot as usize);
                    state = mix(state, place.map_or(0, |p| *p as u64));
                }
                if !self.scratch.failed.insert(state) {
                    continue;
                }
            }
            return Some((step, at));
        }
    }

    /// True if a match begins at `begin`; the slots then contain its positions.
    fn begins(&mut self, begin: usize, check: Check<'_>) -> Result<bool> {
        self.scratch.choices.clear();
        self.scratch.slots.clear();
        self.scratch.slots.resize(self.program.slots, NOWHERE);
        let mut way = Some((0, begin));
        while let Some((step, at)) = way {
            self.steps += 1;
            if self.steps >= self.next_check {
                self.next_check = self.steps + CHECK;
                self.check(check)?;
            }
            way = match self.follow(step, at) {
                Ok(Some(way)) => Some(way),
                Ok(None) => self.another(),
                Err(end) => {
                    for (slot, place) in self.scratch.slots.iter_mut().zip([begin, end]) {
                        *slot = place;
                    }
                    return Ok(true);
                }
            };
        }
        Ok(false)
    }

    /// Performs one step. Returns the next step and its position, or `None` if the step fails; `Err` contains the end
    /// of a match.
    #[inline]
    fn follow(
        &mut self,
        at_step: u32,
        at: usize,
    ) -> std::result::Result<Option<(u32, usize)>, usize> {
        let program = self.program;
        let Some(step) = program.steps.get(at_step as usize) else {
            return Ok(None);
        };
        let next = at_step + 1;
        Ok(match *step {
            PatternStep::Match => return Err(at),
            PatternStep::Char(c) => {
                let found = self.char(at) == Some(c);
                found.then(|| (next, at + c.len_utf8()))
            }
            PatternStep::Set(set) => {
                let set = program.sets.get(set as usize);
                let found = self.char(at).filter(|c| set.is_some_and(|s| s.has(*c)));
                found.map(|c| (next, at + c.len_utf8()))
            }
            PatternStep::Several { .. } => self.several(at_step, at),
            PatternStep::Fork(other) => {
                self.scratch.choices.push(Backtrack::Step(other, at));
                Some((next, at))
            }
            PatternStep::Skip(other) => {
                self.scratch.choices.push(Backtrack::Step(next, at));
                Some((other, at))
            }
            PatternStep::Jump(to) => Some((to, at)),
            PatternStep::Save(number) => {
                if let Some(slot) = self.scratch.slots.get_mut(number as usize) {
                    self.scratch.choices.push(Backtrack::Slot(number, *slot));
                    *slot = at;
                }
                Some((next, at))
            }
            PatternStep::Leave(slot, out) => {
                let began = self.scratch.slots.get(slot as usize);
                Some((if began == Some(&at) { out } else { next }, at))
            }
            PatternStep::Start { line } => {
                let bytes = self.text.as_bytes();
                // No line begins after a line end at the end of the text.
                let found =
                    at == 0 || line && at < bytes.len() && bytes.get(at - 1) == Some(&b'\n');
                found.then_some((next, at))
            }
            PatternStep::End { line } => {
                let bytes = self.text.as_bytes();
                let found = match at == bytes.len() {
                    true => !line || bytes.last() != Some(&b'\n'),
                    false => line && bytes.get(at) == Some(&b'\n'),
                };
                found.then_some((next, at))
            }
            PatternStep::Back(group) => self.back(group, at).map(|end| (next, end)),
        })
    }

    fn several(&mut self, at_step: u32, at: usize) -> Option<(u32, usize)> {
        let Some(&PatternStep::Several {
            set,
            min,
            max,
            greedy,
        }) = self.program.steps.get(at_step as usize)
        else {
            return None;
        };
        let chars = self.program.sets.get(set as usize)?;
        let (mut end, mut taken, mut least) = (at, 0, at);
        let most = if greedy { max } else { min };
        while taken < most
            && let Some(c) = self.char(end)
            && chars.has(c)
        {
            end += c.len_utf8();
            taken += 1;
            if taken == min {
                least = end;
            }
        }
        self.steps += u64::from(taken) / 8;
        if taken < min {
            return None;
        }
        if greedy && end > least {
            self.scratch.choices.push(Backtrack::Fewer {
                next: at_step + 1,
                least,
                at: end,
            });
        }
        if !greedy && max > min {
            self.scratch.choices.push(Backtrack::More {
                step: at_step,
                at: end,
                left: max - min,
            });
        }
        Some((at_step + 1, end))
    }

    /// The position after the text that a group has matched, if the same text occurs at `at`; otherwise `None`.
    fn back(&mut self, group: u32, at: usize) -> Option<usize> {
        let slot = 2 * group as usize;
        let (Some(&from), Some(&to)) = (
            self.scratch.slots.get(slot),
            self.scratch.slots.get(slot + 1),
        ) else {
            return None;
        };
        if from == NOWHERE || to == NOWHERE {
            return Some(at);
        }
        let taken = self.text.get(from..to)?;
        self.steps += taken.len() as u64 / 8;
        let rest = self.text.get(at..)?;
        if !self.program.case {
            return rest.starts_with(taken).then(|| at + taken.len());
        }
        let mut end = at;
        let mut rest = rest.chars();
        for c in taken.chars() {
            let d = rest.next().filter(|d| case::alike(c, *d))?;
            end += d.len_utf8();
        }
        Some(end)
    }
}
