//! Search in long texts, block by block, so that the clock can be checked: `regex-automata` itself searches without
//! interruption.

use super::search::Check;
use jindou_model::Result;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::{Anchored, Input};
use regex_syntax::hir::Hir;

/// Length in bytes from which a text is searched block by block.
pub(super) const LONG: usize = 1 << 18;
/// Number of bytes between two checks of the clock.
const BLOCK: usize = 1 << 14;

/// A pattern for long texts, which is compiled for each search.
#[derive(Debug)]
pub(super) struct SteppedPattern {
    pub hir: Hir,
    /// Largest number of bytes of the program, and of the states that a text needs.
    pub program: usize,
    pub states: usize,
}

impl SteppedPattern {
    /// True if the text has a match; `None` if the memory for states does not suffice.
    ///
    /// # Errors
    /// Those of `check`.
    pub(super) fn is_match(&self, text: &str, check: Check<'_>) -> Result<Option<bool>> {
        check(self.program + self.states)?;
        let Some(automaton) = self.automaton() else {
            return Ok(None);
        };
        let mut cache = automaton.create_cache();
        let input = Input::new(text).anchored(Anchored::No);
        let Ok(mut state) = automaton.start_state_forward(&mut cache, &input) else {
            return Ok(None);
        };
        for block in text.as_bytes().chunks(BLOCK) {
            check(self.program + self.states)?;
            for &byte in block {
                match automaton.next_state(&mut cache, state, byte) {
                    Ok(next) => state = next,
                    Err(_) => return Ok(None),
                }
                if state.is_tagged() {
                    if state.is_match() || state.is_dead() {
                        return Ok(Some(state.is_match()));
                    }
                    if state.is_quit() {
                        return Ok(None);
                    }
                }
            }
        }
        let end = automaton.next_eoi_state(&mut cache, state);
        Ok(end.ok().map(|state| state.is_match()))
    }

    fn automaton(&self) -> Option<DFA> {
        let config = thompson::Config::new()
            .nfa_size_limit(Some(self.program))
            .which_captures(WhichCaptures::None);
        let nfa = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(&self.hir)
            .ok()?;
        let config = DFA::config().cache_capacity(self.states);
        DFA::builder().configure(config).build_from_nfa(nfa).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MatcherScratch, Pattern};

    #[test]
    fn long_texts_match_what_short_ones_do() {
        for (pattern, flags, around, end, expected) in [
            ("b$", "", "a", "b", true),
            ("b$", "", "a", "ba", false),
            ("^b", "m", "a", "\nb", true),
            ("^b", "", "a", "\nb", false),
            ("(a|aa)+b", "", "a", "b", true),
            ("(a|aa)*c", "", "a", "b", false),
            ("É.X", "i", "é", "yx", true),
            ("[^a]", "", "a", "", false),
            ("^a*$", "", "a", "", true),
            ("\\p{Lu}", "", "a", "Z", true),
        ] {
            let made = Pattern::new(pattern, flags, false).unwrap();
            for times in [10, super::LONG] {
                let text = around.repeat(times) + end;
                let mut looks = 0;
                let found = made.is_match(&text, &mut MatcherScratch::default(), &mut |_| {
                    looks += 1;
                    Ok(())
                });
                assert_eq!(found.unwrap(), expected, "{pattern} {flags} {times}");
                // A pattern that begins with `^` fails at once, so the text is not searched to its end.
                let is_searched_whole =
                    times == super::LONG && !expected && !pattern.starts_with('^');
                assert!(!is_searched_whole || looks >= 16, "{pattern}: {looks}");
            }
        }
    }

    #[test]
    fn groups_in_long_texts_are_where_they_are_in_short_ones() {
        for (pattern, flags, around, end) in [
            ("(a{3}|a{5})*b", "", "a", "b"),
            // For this pattern, too many alternatives are pending at once.
            ("(a|aa)*b", "", "a", "b"),
            ("(a)(a)", "", "a", ""),
            ("(a+)(b|$)", "", "ab", "\n"),
            ("^(.)(.*)$", "s", "é", "x"),
            ("(x)?(a*)c", "i", "A", "C"),
            ("(z)", "", "a", ""),
        ] {
            let made = Pattern::new(pattern, flags, true).unwrap();
            let mut places = made.places(made.groups());
            let mut found = |text: &str| {
                let (mut looks, mut scratch) = (0, MatcherScratch::default());
                let is_found = made.find(text, 0, &mut places, &mut scratch, &mut |_| {
                    looks += 1;
                    Ok(())
                });
                let place = |n| places.group(n).filter(|_| matches!(is_found, Ok(true)));
                ((0..=made.groups()).map(place).collect::<Vec<_>>(), looks)
            };
            let many = super::super::IN_ONE_GO / 60 * 15;
            let (short, _) = found(&(around.repeat(300) + end));
            let (long, looks) = found(&(around.repeat(many) + end));
            let more = around.len() * (many - 300);
            let moved = |place: (usize, usize), long: (usize, usize)| {
                [(0, 0), (0, more), (more, more)]
                    .iter()
                    .any(|by| (place.0 + by.0, place.1 + by.1) == long)
            };
            for (place, long) in short.iter().zip(&long) {
                let same = match (place, long) {
                    (Some(place), Some(long)) => moved(*place, *long),
                    (place, long) => place == long,
                };
                assert!(same, "{pattern}: {place:?} {long:?}");
            }
            assert!(looks >= 16 || !pattern.starts_with("(a{3}"), "{looks}");
        }
    }
}
