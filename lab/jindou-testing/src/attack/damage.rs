//! Random damage to texts, so that parsers must report errors at every position.

use crate::random::Rng;

/// Damage to a text. Positions and lengths are in thousandths of the text's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Cuts the text off at this position.
    Cut(usize),
    /// Removes a part: its position and length.
    Gap(usize, usize),
    /// Inserts a token at this position.
    Put(usize, &'static str),
    /// Repeats the part between two positions.
    Again(usize, usize),
}

impl Damage {
    pub(super) fn random(rng: &mut Rng) -> Self {
        let at = rng.below(1001);
        match rng.below(4) {
            0 => Self::Cut(at),
            1 => Self::Gap(at, rng.below(20)),
            2 => {
                let what = rng.one(&[
                    "{", "}", "(", ")", "[", "]", "<", ">", "\"", "'''", ".", ";", ",", "?", "$",
                    "^", "|", "/", "!", "#", "\\", "\\u0000", "\\uD800", "\u{0}", "\u{FEFF}",
                    "SELECT", "WHERE", "UNION", "OPTIONAL", "FILTER", "GRAPH", "PREFIX", "BASE",
                    "VALUES", "<<(", ")>>", "{|", "|}", "UNDEF", "AS", "a", "_:", "1e", "@", "&&",
                ]);
                Self::Put(at, what)
            }
            _ => Self::Again(at, rng.below(1001)),
        }
    }

    pub(super) fn done_to(&self, mut text: String) -> String {
        let place = |thousandths: usize, text: &str| {
            let at = text.len() / 1000 * thousandths + text.len() % 1000 * thousandths / 1000;
            let at = (0..=at.min(text.len())).rev();
            at.into_iter()
                .find(|&i| text.is_char_boundary(i))
                .unwrap_or(0)
        };
        match *self {
            Self::Cut(at) => text.truncate(place(at, &text)),
            Self::Gap(at, thousandths) => {
                let (from, to) = (place(at, &text), place(at + thousandths, &text));
                text.replace_range(from..to, "");
            }
            Self::Put(at, what) => text.insert_str(place(at, &text), what),
            Self::Again(one, other) => {
                let (a, b) = (place(one, &text), place(other, &text));
                let piece = text[a.min(b)..a.max(b)].to_owned();
                text.insert_str(a.max(b), &piece);
            }
        }
        text
    }
}
