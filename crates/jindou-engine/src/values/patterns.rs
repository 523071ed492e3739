//! Regular expressions of REGEX and REPLACE whose pattern is computed row by row: compiled once each, kept while they are used.

use crate::batch::Charge;
use jindou_model::{MemoryBudget, Result};
use regex::{Regex, RegexBuilder};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Memory that one pattern's program may take.
const PROGRAM: usize = 1_000_000;
/// For patterns that are kept, tried in turn: the first that is enough also says what to charge.
const PROGRAMS: [usize; 3] = [8 << 10, 96 << 10, PROGRAM];
/// Longest pattern in bytes. One that is longer hardly fits the largest program; parsing takes up to a KiB a byte (`\p{L}`).
const LONGEST: usize = 64 << 10;
/// Patterns kept.
const KEPT: usize = 256;
/// Bytes that all kept patterns may take together.
const KEPT_BYTES: usize = 24 << 20;

/// A compiled pattern with its flags.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub regex: Regex,
    /// A replacement is meant literally (flag `q`).
    pub literal: bool,
    /// True if the pattern matches the empty text, so that REPLACE is an error (FORX0003).
    pub empty: bool,
}

impl Compiled {
    fn of(regex: Regex, flags: &str) -> Self {
        Self {
            literal: flags.contains('q'),
            empty: regex.is_match(""),
            regex,
        }
    }
}

fn are_flags(flags: &str) -> bool {
    flags.bytes().all(|f| b"smixq".contains(&f))
}

/// `None` for a pattern that may not be compiled at all.
fn builder(pattern: &str, flags: &str) -> Option<RegexBuilder> {
    if pattern.len() > LONGEST || !are_flags(flags) {
        return None;
    }
    let has = |flag: char| flags.contains(flag);
    if has('q') {
        // The other flags have no meaning for a literal pattern.
        let mut builder = RegexBuilder::new(&regex::escape(pattern));
        builder.case_insensitive(has('i'));
        return Some(builder);
    }
    let mut builder = RegexBuilder::new(pattern);
    builder
        .dot_matches_new_line(has('s'))
        .multi_line(has('m'))
        .case_insensitive(has('i'))
        .ignore_whitespace(has('x'));
    Some(builder)
}

/// A pattern with SPARQL's flags, and the bytes that it takes at most; `None` for one that is none, or too large. Matching is linear
/// in the text whatever the pattern.
pub(crate) fn measured(pattern: &str, flags: &str) -> Option<(Compiled, usize)> {
    let mut builder = builder(pattern, flags)?;
    for program in PROGRAMS {
        // States of the automaton are made as texts bring them: their room.
        let states = (2 * program).max(32 << 10);
        match builder.size_limit(program).dfa_size_limit(states).build() {
            // Both are there twice: forwards and backwards.
            Ok(regex) => return Some((Compiled::of(regex, flags), 2 * (program + states))),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(_) => return None,
        }
    }
    None
}

/// True for a pattern that matches its own text and nothing else.
pub(crate) fn is_plain(pattern: &str) -> bool {
    !pattern.bytes().any(|b| b"\\.+*?()|[]{}^$".contains(&b))
}

struct Kept {
    /// `None` for a pattern that is none.
    compiled: Option<Arc<Compiled>>,
    /// Flags, `/`, pattern.
    key: Box<str>,
    bytes: usize,
    /// When it was used last.
    used: u64,
}

/// The patterns compiled last. Of too many the one that waits longest goes.
pub(crate) struct Patterns {
    kept: Vec<Kept>,
    places: FxHashMap<Box<str>, usize>,
    /// Place of the pattern asked for last.
    last: usize,
    clock: u64,
    bytes: usize,
    charge: Charge,
    key: String,
    #[cfg(test)]
    compiled: usize,
}

impl Patterns {
    pub fn new(budget: &MemoryBudget) -> Self {
        Self {
            kept: vec![],
            places: FxHashMap::default(),
            last: 0,
            clock: 0,
            bytes: 0,
            charge: Charge::new(budget),
            key: String::new(),
            #[cfg(test)]
            compiled: 0,
        }
    }

    /// The compiled pattern; `None` for one that is none, or too large.
    ///
    /// # Errors
    /// `Limit` when there is no memory for even this one.
    pub fn get(&mut self, pattern: &str, flags: &str) -> Result<Option<&Arc<Compiled>>> {
        let known = |k: &Kept| {
            k.key.len() == flags.len() + 1 + pattern.len()
                && k.key.ends_with(pattern)
                && k.key.starts_with(flags)
        };
        // No flag is a `/`, so a key says where its pattern begins.
        if !are_flags(flags) {
            return Ok(None);
        }
        if !self.kept.get(self.last).is_some_and(known) {
            self.last = self.place(pattern, flags)?;
        }
        Ok(self.kept.get(self.last).and_then(|k| k.compiled.as_ref()))
    }

    fn place(&mut self, pattern: &str, flags: &str) -> Result<usize> {
        self.clock += 1;
        self.key.clear();
        self.key.push_str(flags);
        self.key.push('/');
        self.key.push_str(pattern);
        if let Some(&at) = self.places.get(self.key.as_str()) {
            if let Some(k) = self.kept.get_mut(at) {
                k.used = self.clock;
            }
            return Ok(at);
        }
        #[cfg(test)]
        {
            self.compiled += 1;
        }
        let (compiled, bytes) = match measured(pattern, flags) {
            Some((compiled, bytes)) => (Some(Arc::new(compiled)), bytes),
            None => (None, 0),
        };
        let bytes = bytes + 2 * self.key.len() + 128;
        while self.kept.len() >= KEPT || self.bytes + bytes > KEPT_BYTES && !self.kept.is_empty() {
            self.forget();
        }
        while let Err(refused) = self.charge.set(self.bytes + bytes) {
            if self.kept.is_empty() {
                return Err(refused);
            }
            self.forget();
        }
        self.bytes += bytes;
        self.kept.push(Kept {
            compiled,
            key: self.key.as_str().into(),
            bytes,
            used: self.clock,
        });
        let at = self.kept.len() - 1;
        self.places.insert(self.key.as_str().into(), at);
        Ok(at)
    }

    /// Drops the pattern that waits longest.
    fn forget(&mut self) {
        let oldest = (0..self.kept.len()).min_by_key(|&i| self.kept[i].used);
        let Some(at) = oldest else { return };
        let gone = self.kept.swap_remove(at);
        self.bytes -= gone.bytes;
        self.places.remove(&gone.key);
        if let Some(moved) = self.kept.get(at)
            && let Some(place) = self.places.get_mut(&moved.key)
        {
            *place = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_compiled_once_while_they_are_used() {
        let budget = MemoryBudget::new(64 << 20);
        let mut p = Patterns::new(&budget);
        for round in 0..50 {
            for n in 0..KEPT - 1 {
                let found = p.get(&format!("^a{n}$"), "i").unwrap().unwrap();
                assert!(
                    found.regex.is_match(&format!("A{n}")) && !found.regex.is_match("b"),
                    "{round}"
                );
            }
        }
        let fits = p.kept.len();
        assert!(fits >= 200 && p.bytes <= KEPT_BYTES && budget.used() >= p.bytes as u64);
        drop(p);
        // Fewer than fit: all stay.
        let mut p = Patterns::new(&budget);
        for _ in 0..50 {
            for n in 0..fits {
                p.get(&format!("^a{n}$"), "").unwrap().unwrap();
            }
        }
        assert_eq!(p.compiled, fits);
        drop(p);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_one_that_waits_longest_goes() {
        let mut p = Patterns::new(&MemoryBudget::unlimited());
        p.get("^kept$", "").unwrap();
        for n in 0..2 * KEPT {
            p.get(&format!("^n{n}$"), "").unwrap();
            p.get("^kept$", "").unwrap();
        }
        assert_eq!(p.compiled, 2 * KEPT + 1);
        assert!(p.kept.len() <= KEPT && p.places.len() == p.kept.len());
        for (i, k) in p.kept.iter().enumerate() {
            assert_eq!(p.places[&k.key], i);
        }
    }

    #[test]
    fn flags_are_no_part_of_the_pattern() {
        let mut p = Patterns::new(&MemoryBudget::unlimited());
        assert!(p.get("a", "i").unwrap().unwrap().regex.is_match("A"));
        assert!(!p.get("ia", "").unwrap().unwrap().regex.is_match("A"));
        assert!(!p.get("a", "").unwrap().unwrap().regex.is_match("A"));
        assert!(p.get("a", "i/").unwrap().is_none());
        assert!(p.get("/a", "i").unwrap().unwrap().regex.is_match("/A"));
        assert!(p.get("a.c", "q").unwrap().unwrap().regex.is_match("a.c"));
        assert!(!p.get("a.c", "q").unwrap().unwrap().regex.is_match("abc"));
    }

    #[test]
    fn large_and_wrong_patterns_are_errors() {
        let budget = MemoryBudget::new(64 << 20);
        let mut p = Patterns::new(&budget);
        for wrong in ["[", "(", "a{1000}{1000}{1000}", &"\\p{L}".repeat(1 << 20)] {
            assert!(p.get(wrong, "").unwrap().is_none());
        }
        assert!(p.get("a", "?").unwrap().is_none());
        assert!(
            p.get("(?:ab){5000}", "")
                .unwrap()
                .unwrap()
                .regex
                .is_match(&"ab".repeat(5000))
        );
    }

    #[test]
    fn little_memory_keeps_few() {
        let budget = MemoryBudget::new(1 << 20);
        let mut p = Patterns::new(&budget);
        for n in 0..100 {
            p.get(&format!("^a{n}"), "").unwrap().unwrap();
            assert!(budget.used() <= 1 << 20);
        }
        let budget = MemoryBudget::new(1 << 10);
        assert!(Patterns::new(&budget).get("^a", "").is_err());
    }
}
