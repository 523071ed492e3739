//! Divides the bytes of a text among its parts, and chooses how often parts are repeated.

use super::recipe::Recipe;
use crate::random::Rng;

/// Length in bytes below which generators return the smallest construct of its kind.
pub(super) const SMALL: usize = 120;

/// Largest number of levels of nested constructs, not counting those of [`Maker::deep`].
const DEEPEST: usize = 12;

/// Generator of one text.
pub(super) struct Maker<'a> {
    pub rng: &'a mut Rng,
    /// Number of constructs that contain the current one.
    pub depth: usize,
    /// Declarations of prefixes and bases, which are written before the text.
    pub prologue: Vec<Recipe>,
    /// Short forms of long IRIs, whose prefix, base or variable is declared once.
    pub short: Vec<&'static str>,
    /// Values of variables that are passed with the query.
    pub values: Vec<(String, Recipe)>,
    /// True if variables are allowed at this point; data cannot contain them.
    pub variables: bool,
    /// True if property paths are allowed at this point; templates cannot contain them.
    pub paths: bool,
    /// True if blank nodes are allowed at this point; deletions cannot contain them.
    pub blanks: bool,
}

impl<'a> Maker<'a> {
    pub fn new(rng: &'a mut Rng) -> Self {
        Self {
            rng,
            depth: 0,
            prologue: vec![],
            short: vec![],
            values: vec![],
            variables: true,
            paths: true,
            blanks: true,
        }
    }

    /// A random number up to `most`, all orders of magnitude being equally likely.
    pub fn magnitude(&mut self, most: usize) -> usize {
        let most = most.max(1);
        let low = 1 << self.rng.below(most.ilog2() as usize + 1);
        (low + self.rng.below(low)).min(most)
    }

    /// Divides bytes among parts: two parts get most of the bytes, or one part does, or all parts get equally many.
    pub fn split(&mut self, bytes: usize, parts: usize) -> Vec<usize> {
        if parts <= 1 {
            return vec![bytes; parts];
        }
        let large = match self.rng.below(10) {
            0..5 => 2,
            5..8 => 1,
            _ => return vec![bytes / parts; parts],
        };
        let mut out = vec![bytes / 20 / parts; parts];
        let from = self.rng.below(parts);
        // The first of the two large parts may be much smaller than the second.
        let first = match self.rng.below(3) {
            0 => self.magnitude(bytes / 2),
            _ => bytes / 2,
        };
        let sizes = if large == 1 {
            [bytes, 0]
        } else {
            [first, bytes - first]
        };
        for (i, size) in sizes.into_iter().take(large).enumerate() {
            out[(from + i) % parts] = size / 20 * 19;
        }
        out
    }

    /// Repeats one construct: as often as it fits, or a few large ones, or a number in between.
    pub fn many(
        &mut self,
        bytes: usize,
        between: &str,
        one: impl FnOnce(&mut Self, usize) -> Recipe,
    ) -> Recipe {
        let (each, most) = match self.rng.below(12) {
            _ if bytes < SMALL => (0, 1 + self.rng.below(3)),
            0..5 => (0, usize::MAX),
            5 => (bytes, 1),
            6 => (bytes / 3, 3),
            7 => (bytes / 30, 30),
            8 => (bytes.isqrt() * 8, usize::MAX),
            9 => (0, self.magnitude(bytes / 10)),
            _ => {
                let n = self.magnitude(bytes / SMALL);
                (bytes / n, n)
            }
        };
        let one = self.deeper(|m| one(m, each));
        let n = (bytes / (one.bytes() + between.len()).max(1)).clamp(1, most);
        Recipe::times(n, one, between)
    }

    /// Nests a construct in itself, as deep as the bytes allow or less deep.
    pub fn deep(
        &mut self,
        bytes: usize,
        open: impl Into<Recipe>,
        inner: impl Into<Recipe>,
        close: &str,
    ) -> Recipe {
        let (open, inner) = (open.into(), inner.into());
        let each = open.bytes() + close.len();
        let most = (bytes.saturating_sub(inner.bytes()) / each.max(1)).max(1);
        let n = match self.rng.below(3) {
            0 => most,
            1 => self.magnitude(most),
            _ => self.magnitude(most.min(1000)),
        };
        Recipe::nested(n, open, inner, close)
    }

    /// About `bytes` bytes of text inside an IRI, a name or a literal.
    pub fn filler(&mut self, bytes: usize, units: &[&'static str]) -> Recipe {
        let unit = self.rng.one(units);
        Recipe::times((bytes / unit.len()).max(1), unit, "")
    }

    /// Calls `make` with the depth increased by one.
    pub fn deeper<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        made
    }

    /// Returns true if the smallest construct of its kind should be generated.
    pub fn is_small(&self, bytes: usize) -> bool {
        bytes < SMALL || self.depth > DEEPEST
    }
}
