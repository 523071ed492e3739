//! Cache of compiled regular expressions, for REGEX and REPLACE with a pattern that differs from row to row.

use crate::batch::OperatorCharge;
use jindou_model::{MemoryBudget, Result};
use jindou_values::pattern::Pattern;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Largest number of cached patterns.
const KEPT: usize = 256;
/// Largest total size in bytes of all cached patterns.
const KEPT_BYTES: usize = 24 << 20;

/// The function that uses a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// REGEX only tests for a match.
    Match,
    /// REPLACE also needs its groups, and refuses a pattern that matches the empty string (FORX0003).
    Replace,
}

/// Compiles a pattern with SPARQL's flags; `None` if it is invalid, too large, or not allowed in this function.
pub(crate) fn compiled(pattern: &str, flags: &str, of_use: Use) -> Option<Pattern> {
    let compiled = Pattern::new(pattern, flags, of_use == Use::Replace).ok()?;
    let refused = of_use == Use::Replace && compiled.matches_empty();
    (!refused).then_some(compiled)
}

/// Returns true if the pattern has no special characters, so that it matches only its own text.
pub(crate) fn is_plain(pattern: &str) -> bool {
    !pattern.bytes().any(|b| b"\\.+*?()|[]{}^$".contains(&b))
}

struct KeptPattern {
    /// `None` for an invalid pattern, which is an error in every row.
    compiled: Option<Arc<Pattern>>,
    /// A letter for the use, the flags, `/`, and the pattern.
    key: Box<str>,
    bytes: usize,
    /// Value of `clock` at the last use.
    used: u64,
}

/// Cache of compiled patterns; if it is full, the least recently used one is dropped.
pub(crate) struct Patterns {
    kept: Vec<KeptPattern>,
    places: FxHashMap<Box<str>, usize>,
    /// Position of the pattern that was used last.
    last: usize,
    clock: u64,
    bytes: usize,
    charge: OperatorCharge,
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
            charge: OperatorCharge::new(budget),
            key: String::new(),
            #[cfg(test)]
            compiled: 0,
        }
    }

    /// The compiled pattern; `None` if it is invalid, too large, or not allowed in this function.
    ///
    /// # Errors
    /// `Limit` if there is no memory even after all other patterns were dropped.
    pub fn get(
        &mut self,
        pattern: &str,
        flags: &str,
        of_use: Use,
    ) -> Result<Option<&Arc<Pattern>>> {
        // In a key, `/` ends the flags. It is not a valid flag.
        if flags.contains('/') {
            return Ok(None);
        }
        let letter = match of_use {
            Use::Match => 'M',
            Use::Replace => 'R',
        };
        let known = |k: &KeptPattern| {
            let rest = k
                .key
                .strip_prefix(letter)
                .and_then(|k| k.strip_prefix(flags));
            rest.and_then(|k| k.strip_prefix('/')) == Some(pattern)
        };
        if !self.kept.get(self.last).is_some_and(known) {
            self.key.clear();
            self.key.push(letter);
            self.key.push_str(flags);
            self.key.push('/');
            self.key.push_str(pattern);
            self.last = self.place(pattern, flags, of_use)?;
        }
        Ok(self.kept.get(self.last).and_then(|k| k.compiled.as_ref()))
    }

    /// Position of the pattern whose key is in `self.key`; compiles it if it is not cached.
    fn place(&mut self, pattern: &str, flags: &str, of_use: Use) -> Result<usize> {
        self.clock += 1;
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
        let compiled = compiled(pattern, flags, of_use).map(Arc::new);
        let bytes = compiled.as_ref().map_or(0, |c| c.bytes());
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
        self.kept.push(KeptPattern {
            compiled,
            key: self.key.as_str().into(),
            bytes,
            used: self.clock,
        });
        let at = self.kept.len() - 1;
        self.places.insert(self.key.as_str().into(), at);
        Ok(at)
    }

    /// Drops the pattern whose last use was longest ago.
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
    use jindou_values::pattern::MatcherScratch;

    fn matches(found: Option<&Arc<Pattern>>, text: &str) -> bool {
        found
            .unwrap()
            .is_match(text, &mut MatcherScratch::default(), &mut |_| Ok(()))
            .unwrap()
    }

    #[test]
    fn patterns_are_compiled_once_while_they_are_used() {
        let budget = MemoryBudget::new(64 << 20);
        let mut p = Patterns::new(&budget);
        for round in 0..50 {
            for n in 0..KEPT - 1 {
                let found = p.get(&format!("^a{n}$"), "i", Use::Match).unwrap();
                assert!(
                    matches(found, &format!("A{n}")) && !matches(found, "b"),
                    "{round}"
                );
            }
        }
        let fits = p.kept.len();
        assert!(fits >= 200 && p.bytes <= KEPT_BYTES && budget.used() >= p.bytes as u64);
        drop(p);
        // As many patterns as fit are all kept.
        let mut p = Patterns::new(&budget);
        for _ in 0..50 {
            for n in 0..fits {
                p.get(&format!("^a{n}$"), "", Use::Match).unwrap().unwrap();
            }
        }
        assert_eq!(p.compiled, fits);
        drop(p);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_one_that_waits_longest_goes() {
        let mut p = Patterns::new(&MemoryBudget::unlimited());
        p.get("^kept$", "", Use::Match).unwrap();
        for n in 0..2 * KEPT {
            p.get(&format!("^n{n}$"), "", Use::Match).unwrap();
            p.get("^kept$", "", Use::Match).unwrap();
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
        assert!(matches(p.get("a", "i", Use::Match).unwrap(), "A"));
        assert!(!matches(p.get("ia", "", Use::Match).unwrap(), "A"));
        assert!(!matches(p.get("a", "", Use::Match).unwrap(), "A"));
        assert!(p.get("a", "i/", Use::Match).unwrap().is_none());
        assert!(matches(p.get("/a", "i", Use::Match).unwrap(), "/A"));
        assert!(matches(p.get("a.c", "q", Use::Match).unwrap(), "a.c"));
        assert!(!matches(p.get("a.c", "q", Use::Match).unwrap(), "abc"));
    }

    #[test]
    fn large_and_wrong_patterns_are_errors() {
        let budget = MemoryBudget::new(64 << 20);
        let mut p = Patterns::new(&budget);
        for wrong in ["[", "(", "a{1000}{1000}{1000}", &"\\p{L}".repeat(1 << 20)] {
            assert!(p.get(wrong, "", Use::Match).unwrap().is_none());
        }
        assert!(p.get("a", "?", Use::Match).unwrap().is_none());
        assert!(matches(
            p.get("(?:ab){5000}", "", Use::Match).unwrap(),
            &"ab".repeat(5000)
        ));
    }

    #[test]
    fn little_memory_keeps_few() {
        let budget = MemoryBudget::new(1 << 20);
        let mut p = Patterns::new(&budget);
        for n in 0..100 {
            p.get(&format!("^a{n}"), "", Use::Match).unwrap().unwrap();
            assert!(budget.used() <= 1 << 20);
        }
        let budget = MemoryBudget::new(1 << 10);
        assert!(Patterns::new(&budget).get("^a", "", Use::Match).is_err());
    }
}
