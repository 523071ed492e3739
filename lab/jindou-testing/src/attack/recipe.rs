//! Recipes: descriptions, in one line, of texts of up to megabytes.

use std::fmt;
use std::str::FromStr;

/// A text, described by its pieces and the number of repetitions of each.
///
/// [`fmt::Display`] writes a recipe in a notation that [`FromStr`] reads: `⟪2000×{ ?x§ ?p ?o }¦ UNION ⟫` is two
/// thousand branches of a UNION, and `⟪500⇓OPTIONAL { ¦?s ?p ?o¦ }⟫` is a pattern inside five hundred groups. In a
/// repeated piece, `§` is replaced by the number of the repetition, and `¶` by the number of the enclosing repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A text that is written as it is, except for `§` and `¶`.
    Text(String),
    /// Recipes in sequence.
    All(Vec<Recipe>),
    /// A recipe, repeated this number of times with a text in between.
    Times(usize, Box<Recipe>, String),
    /// The number of levels, the opening and the inner recipe, and the closing.
    Nested(usize, Box<[Recipe; 2]>, String),
}

impl From<&str> for Recipe {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Recipe {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Recipes in sequence: `all!["SELECT * { ", pattern, " }"]`.
macro_rules! all {
    ($($part:expr),* $(,)?) => { $crate::attack::recipe::Recipe::All(vec![$($part.into()),*]) };
}
pub(super) use all;

impl Recipe {
    /// `one`, repeated `n` times with the text `between` in between.
    pub fn times(n: usize, one: impl Into<Self>, between: &str) -> Self {
        Self::Times(n, Box::new(one.into()), between.to_owned())
    }

    /// `inner` after `n` openings and before `n` closings.
    pub fn nested(
        n: usize,
        open: impl Into<Self>,
        inner: impl Into<Self>,
        close: impl Into<String>,
    ) -> Self {
        Self::Nested(n, Box::new([open.into(), inner.into()]), close.into())
    }

    /// The text of the recipe, truncated after at most `most` bytes. O(length of the text).
    pub fn text(&self, most: usize) -> String {
        let mut out = String::new();
        self.write(&mut out, most, [0, 0]);
        let end = (0..=most.min(out.len()))
            .rev()
            .find(|&i| out.is_char_boundary(i));
        out.truncate(end.unwrap_or(0));
        out
    }

    /// Approximate length of the text in bytes: every `§` and `¶` counts as many digits as the number of repetitions
    /// has. O(length of the recipe).
    pub fn bytes(&self) -> usize {
        self.length([1, 1])
    }

    fn length(&self, digits: [usize; 2]) -> usize {
        let of = |text: &str, digits: [usize; 2]| {
            let number = |c| match c {
                '§' => digits[0],
                '¶' => digits[1],
                c => c.len_utf8(),
            };
            text.chars().map(number).sum::<usize>()
        };
        let inside = |n: usize| [1 + n.checked_ilog10().unwrap_or(0) as usize, digits[0]];
        match self {
            Self::Text(text) => of(text, digits),
            Self::All(parts) => parts
                .iter()
                .fold(0, |sum, p| sum.saturating_add(p.length(digits))),
            Self::Times(n, one, between) => one
                .length(inside(*n))
                .saturating_add(of(between, inside(*n)))
                .saturating_mul(*n),
            Self::Nested(n, parts, close) => parts[0]
                .length(inside(*n))
                .saturating_add(of(close, digits))
                .saturating_mul(*n)
                .saturating_add(parts[1].length(digits)),
        }
    }

    fn write(&self, out: &mut String, most: usize, at: [usize; 2]) {
        if out.len() > most {
            return;
        }
        match self {
            Self::Text(text) => numbered(text, at, out),
            Self::All(parts) => parts.iter().for_each(|p| p.write(out, most, at)),
            Self::Times(n, one, between) => {
                for i in 0..*n {
                    if i > 0 {
                        numbered(between, [i, at[0]], out);
                    }
                    one.write(out, most, [i, at[0]]);
                    if out.len() > most {
                        return;
                    }
                }
            }
            Self::Nested(n, parts, close) => {
                for i in 0..*n {
                    parts[0].write(out, most, [i, at[0]]);
                    if out.len() > most {
                        return;
                    }
                }
                parts[1].write(out, most, at);
                for _ in 0..*n {
                    numbered(close, at, out);
                }
            }
        }
    }

    /// Smaller recipes, the smallest first. In each, one number of repetitions is reduced to a tenth, half or three
    /// quarters, or one part of a sequence is left out.
    pub fn smaller(&self) -> Vec<Self> {
        let mut out = vec![];
        let mut counts = vec![];
        self.clone().each_count(&mut |n| counts.push(*n));
        for (count, n) in counts.into_iter().enumerate().filter(|(_, n)| *n > 1) {
            for (of, per) in [(1, 10), (1, 2), (3, 4)] {
                let (mut other, mut at) = (self.clone(), 0);
                other.each_count(&mut |m| {
                    if at == count {
                        *m = (n * of / per).max(1);
                    }
                    at += 1;
                });
                out.push(other);
            }
        }
        self.each_without(&mut |r| out.push(r));
        out.sort_by_key(Self::bytes);
        out
    }

    /// Calls `visit` with each number of repetitions, in the same order at every call.
    fn each_count(&mut self, visit: &mut dyn FnMut(&mut usize)) {
        match self {
            Self::Text(_) => {}
            Self::All(parts) => parts.iter_mut().for_each(|p| p.each_count(visit)),
            Self::Times(n, one, _) => {
                visit(n);
                one.each_count(visit);
            }
            Self::Nested(n, parts, _) => {
                visit(n);
                parts.iter_mut().for_each(|p| p.each_count(visit));
            }
        }
    }

    /// Calls `to` with each recipe that results from leaving out one part of one sequence. Recursive; recipes have few
    /// levels.
    fn each_without(&self, to: &mut dyn FnMut(Self)) {
        match self {
            Self::Text(_) => {}
            Self::All(parts) => {
                for i in 0..parts.len() {
                    if parts.len() > 1 {
                        let mut fewer = parts.clone();
                        fewer.remove(i);
                        to(Self::All(fewer));
                    }
                    parts[i].each_without(&mut |r| {
                        let mut other = parts.clone();
                        other[i] = r;
                        to(Self::All(other));
                    });
                }
            }
            Self::Times(n, one, between) => {
                one.each_without(&mut |r| to(Self::times(*n, r, between)));
            }
            Self::Nested(n, parts, close) => {
                for i in 0..2 {
                    parts[i].each_without(&mut |r| {
                        let mut other = parts.clone();
                        other[i] = r;
                        to(Self::Nested(*n, other, close.clone()));
                    });
                }
            }
        }
    }
}

/// Appends a text in which `§` and `¶` are replaced by the numbers in `at`.
fn numbered(text: &str, at: [usize; 2], out: &mut String) {
    use fmt::Write as _;
    let mut rest = text;
    while let Some(i) = rest.find(['§', '¶']) {
        out.push_str(&rest[..i]);
        let n = usize::from(rest[i..].starts_with('¶'));
        let _ = write!(out, "{}", at[n]);
        rest = &rest[i + '§'.len_utf8()..];
    }
    out.push_str(rest);
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::All(parts) => parts.iter().try_for_each(|p| p.fmt(f)),
            Self::Times(n, one, between) if between.is_empty() => write!(f, "⟪{n}×{one}⟫"),
            Self::Times(n, one, between) => write!(f, "⟪{n}×{one}¦{between}⟫"),
            Self::Nested(n, parts, close) => write!(f, "⟪{n}⇓{}¦{}¦{close}⟫", parts[0], parts[1]),
        }
    }
}

impl FromStr for Recipe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let recipe = read(&mut rest)?;
        match rest.chars().next() {
            None => Ok(recipe),
            Some(c) => Err(format!(
                "'{c}' {} bytes before the recipe's end stands outside of ⟪ and ⟫",
                rest.len()
            )),
        }
    }
}

/// Parses a recipe up to the character that ends it, which is not consumed.
fn read(rest: &mut &str) -> Result<Recipe, String> {
    let mut parts = vec![];
    loop {
        let end = rest.find(['⟪', '¦', '⟫']).unwrap_or(rest.len());
        if end > 0 {
            parts.push(Recipe::Text(rest[..end].to_owned()));
            *rest = &rest[end..];
        }
        let Some(inner) = rest.strip_prefix('⟪') else {
            break;
        };
        *rest = inner;
        let sign = inner
            .find(['×', '⇓'])
            .ok_or("a ⟪ without × or ⇓ behind its number")?;
        let n = inner[..sign]
            .parse()
            .map_err(|_| format!("'{}' is not a number of repetitions", &inner[..sign]))?;
        let nests = inner[sign..].starts_with('⇓');
        *rest = &inner[sign + if nests { '⇓' } else { '×' }.len_utf8()..];
        let mut pieces = vec![read(rest)?];
        while let Some(more) = rest.strip_prefix('¦') {
            *rest = more;
            pieces.push(read(rest)?);
        }
        *rest = rest
            .strip_prefix('⟫')
            .ok_or("a ⟪ without the ⟫ that ends it")?;
        let mut pieces = pieces.into_iter();
        let (one, two, three, more) = (pieces.next(), pieces.next(), pieces.next(), pieces.next());
        parts.push(match (nests, one, two, three, more) {
            (false, Some(one), None, None, None) => Recipe::times(n, one, ""),
            (false, Some(one), Some(between), None, None) => {
                Recipe::times(n, one, &between.to_string())
            }
            (true, Some(open), Some(inner), Some(close), None) => {
                Recipe::nested(n, open, inner, close.to_string())
            }
            _ => return Err("×: one or two parts; ⇓: three".into()),
        });
    }
    Ok(match parts.len() {
        0 => Recipe::Text(String::new()),
        1 => parts.remove(0),
        _ => Recipe::All(parts),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_read_and_written_out() {
        for (recipe, text) in [
            ("", ""),
            ("a § b", "a 0 b"),
            ("⟪3×x§¦,⟫", "x0,x1,x2"),
            (
                "<⟪2×{⟪2×?a§_¶ ⟫}⟫⟪2⇓(§ ¦.¦)⟫>",
                "<{?a0_0 ?a1_0 }{?a0_1 ?a1_1 }(0 (1 .))>",
            ),
        ] {
            let read: Recipe = recipe.parse().expect(recipe);
            assert_eq!(read.to_string(), recipe);
            assert_eq!(read.text(100), text, "{recipe}");
            assert!(read.bytes() >= text.len() && read.bytes() <= text.len() + 4);
        }
        for wrong in ["⟫", "⟪3×a", "⟪×a⟫", "⟪3a⟫", "⟪3⇓a¦b⟫", "⟪3×a¦b¦c⟫", "a¦b"]
        {
            assert!(wrong.parse::<Recipe>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_end_at_the_limit_between_characters() {
        let endless = Recipe::times(usize::MAX, Recipe::times(usize::MAX, "aé", ""), "");
        assert_eq!(endless.text(5), "aéa");
        assert_eq!(endless.bytes(), usize::MAX);
    }

    #[test]
    fn smaller_recipes_have_shorter_texts() {
        let recipe: Recipe = "a ⟪100×{⟪20⇓(¦b c¦)⟫}⟫ d".parse().expect("a recipe");
        let smaller = recipe.smaller();
        assert!(smaller.iter().all(|r| r.bytes() < recipe.bytes()));
        let written: Vec<String> = smaller.iter().map(Recipe::to_string).collect();
        for wanted in [
            "a ⟪10×{⟪20⇓(¦b c¦)⟫}⟫ d",
            "a ⟪100×{⟪2⇓(¦b c¦)⟫}⟫ d",
            "a  d",
            "a ⟪100×{⟪20⇓(¦b c¦)⟫⟫ d",
        ] {
            assert!(
                written.iter().any(|w| w == wanted),
                "{wanted}: {written:#?}"
            );
        }
    }
}
