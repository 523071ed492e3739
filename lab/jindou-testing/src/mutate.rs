//! Random changes to texts, for fuzzing without a fuzzer. They are reproducible from a seed. There is no feedback from
//! code coverage, but the caller may add texts that proved useful ([`Mutator::keep`]).

use crate::random::Rng;
use std::ops::Range;

/// Largest number of added texts that are kept; any further text replaces a random one.
const KEPT: usize = 4096;
/// Largest length in bytes of new texts, unless a seed text is longer.
const LONGEST: usize = 16 << 10;

/// Makes new texts by changing known ones.
#[derive(Clone, Debug)]
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    words: Vec<&'static str>,
}

impl Mutator {
    /// Creates a mutator that changes the texts `seeds`, and inserts `words` at random positions.
    pub fn new(seeds: Vec<Vec<u8>>, words: &[&'static str]) -> Self {
        assert!(!seeds.is_empty(), "there is no text to begin with");
        assert!(!words.is_empty(), "there is no word to put in");
        Self {
            seeds,
            kept: Vec::new(),
            words: words.to_vec(),
        }
    }

    /// Adds a text from which later texts are made.
    pub fn keep(&mut self, rng: &mut Rng, text: &[u8]) {
        if text.len() > LONGEST {
            return;
        }
        if self.kept.len() < KEPT {
            self.kept.push(text.to_vec());
        } else {
            let at = rng.below(KEPT);
            self.kept[at] = text.to_vec();
        }
    }

    fn some<'s>(&'s self, rng: &mut Rng) -> &'s [u8] {
        if !self.kept.is_empty() && rng.chance(50) {
            &self.kept[rng.below(self.kept.len())]
        } else {
            &self.seeds[rng.below(self.seeds.len())]
        }
    }

    /// A new text, made by one to eight changes to a known one. O(length of the text) per change.
    pub fn text(&self, rng: &mut Rng) -> Vec<u8> {
        let mut out = self.some(rng).to_vec();
        // Mostly few changes: parsers reject most texts with many changes, so such texts test nothing else.
        let changes = rng.one(&[1, 1, 1, 2, 2, 3, 5, 8]);
        for _ in 0..changes {
            let before = out.len();
            if rng.chance(70) {
                self.change_words(rng, &mut out);
            } else {
                self.change_bytes(rng, &mut out);
            }
            if out.len() > LONGEST.max(before) {
                out.truncate(LONGEST);
            }
        }
        out
    }

    fn change_words(&self, rng: &mut Rng, text: &mut Vec<u8>) {
        let words = words(text);
        if words.is_empty() {
            return text.extend_from_slice(rng.one(&self.words).as_bytes());
        }
        let at = words[rng.below(words.len())].clone();
        match rng.below(9) {
            0 => drop(text.drain(at)),
            1 => drop(text.splice(at, rng.one(&self.words).bytes())),
            2 => {
                let word = rng.one(&self.words);
                text.splice(at.start..at.start, [b" ", word.as_bytes(), b" "].concat());
            }
            // Replaces a word by a word of this or another text, so that some names occur more than once.
            3 | 4 => {
                let word = text[words[rng.below(words.len())].clone()].to_vec();
                text.splice(at, word);
            }
            5 => {
                let other = self.some(rng);
                let from = self::words(other);
                if !from.is_empty() {
                    let a = rng.below(from.len());
                    let b = (a + 1 + rng.below(8)).min(from.len());
                    text.splice(at, other[from[a].start..from[b - 1].end].to_vec());
                }
            }
            // Repeats a part of the text, a few times or very often.
            6 => {
                let to = words[rng.below(words.len())].end;
                let (from, to) = (at.start.min(to), at.end.max(to));
                let times = rng.one(&[1, 2, 3, 10, 300]);
                let piece = text[from..to].repeat(times.min(1 + LONGEST / (to - from)));
                text.splice(to..to, piece);
            }
            7 => {
                let other = words[rng.below(words.len())].clone();
                let (a, b) = if at.start < other.start {
                    (at, other)
                } else {
                    (other, at)
                };
                if a.end <= b.start {
                    let (first, second) = (text[a.clone()].to_vec(), text[b.clone()].to_vec());
                    text.splice(b, first);
                    text.splice(a, second);
                }
            }
            _ => {
                let numbers = "0; -1; 1; 2147483648; 4294967295; 9223372036854775807; 9223372036854775808; \
                    -9223372036854775808; 18446744073709551616; 1e308; 1e-320; 0.000000000000000001; -0; NaN; \"\"; \
                    99999999999999999999999999";
                text.splice(at, rng.part(numbers).bytes());
            }
        }
    }

    fn change_bytes(&self, rng: &mut Rng, text: &mut Vec<u8>) {
        let at = rng.below(text.len() + 1);
        match rng.below(6) {
            0 if at < text.len() => text[at] ^= 1 << rng.below(8),
            1 if at < text.len() => text[at] = rng.below(256) as u8,
            2 => text.insert(
                at,
                rng.one(b"\0\n\r\t \"'\\<>{}()[]|&^!?$@#%;,.:/*+-=\x7f\xc3\xff"),
            ),
            3 => {
                let to = (at + 1 + rng.below(16)).min(text.len());
                text.drain(at..to);
            }
            4 => text.truncate(at),
            _ => {
                let other = self.some(rng);
                let from = rng.below(other.len() + 1);
                text.truncate(at);
                text.extend_from_slice(&other[from..]);
            }
        }
    }
}

/// Ranges of the words of a text: names, numbers, single signs. Spaces do not belong to words.
fn words(text: &[u8]) -> Vec<Range<usize>> {
    let inside =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'?' | b'$' | b'-') || b >= 128;
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let from = at;
        at += 1;
        if text[from].is_ascii_whitespace() {
            continue;
        }
        if text[from] == b'<' {
            // An IRI in angle brackets is one word.
            let end = text[at..]
                .iter()
                .take(200)
                .position(|b| matches!(b, b'>' | b' ' | b'\n'));
            if let Some(n) = end.filter(|&n| text[at + n] == b'>') {
                at += n + 1;
            }
        } else if inside(text[from]) {
            while at < text.len() && inside(text[at]) {
                at += 1;
            }
        }
        out.push(from..at);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_texts_and_they_differ_from_the_seeds() {
        let m = Mutator::new(
            vec![b"SELECT * { ?s <http://e/p> 1 }".to_vec()],
            &["OPTIONAL"],
        );
        let texts = |seed| {
            let mut rng = Rng::new(seed);
            (0..100).map(|_| m.text(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
        let changed = texts(1).iter().filter(|t| **t != m.seeds[0]).count();
        assert!(changed > 80, "{changed}");
        assert!(texts(3).iter().all(|t| t.len() <= LONGEST));
    }

    #[test]
    fn words_are_names_signs_and_iris() {
        let text = b"{ ?s <http://e/p> -1.5 } <";
        let found: Vec<_> = words(text).into_iter().map(|r| &text[r]).collect();
        let expected: Vec<&[u8]> =
            vec![b"{", b"?s", b"<http://e/p>", b"-1", b".", b"5", b"}", b"<"];
        assert_eq!(found, expected);
    }
}
