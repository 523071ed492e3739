//! Damage to texts, so that what reads them fails in every place.

use crate::random::Rng;

/// Damage to a text. Places are given in thousandths of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The end of the text in this place.
    Cut(usize),
    /// A gap of this much from this place on.
    Gap(usize, usize),
    /// Something else in this place as well.
    Put(usize, &'static str),
    /// The piece between these places once more.
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
