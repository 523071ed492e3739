//! The words of which literals consist. The original takes words from the machine's dictionary and from a list of first
//! names. Ours are made of random syllables; they have the same number and average length, and are the same on every
//! machine.

use crate::random::SplitMix;
use std::collections::BTreeSet;

/// Number of words, as in Debian's list of American English, with which the given data was made.
const WORDS: usize = 104_334;
/// Number of first names, as in the given data: 14,104 draws gave 1,790 different names, so hardly any is missing.
const NAMES: usize = 1_790;

const STARTS: &[&str] = &[
    "b", "br", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n", "p",
    "pl", "qu", "r", "s", "sh", "st", "str", "t", "tr", "v", "w", "y", "z", "",
];
const MIDDLES: &[&str] = &["a", "e", "i", "o", "u", "ai", "ea", "ou", "y", "oa"];
const ENDS: &[&str] = &[
    "", "", "", "n", "r", "l", "s", "t", "m", "ck", "nd", "ng", "st", "x",
];
const SUFFIXES: &[&str] = &["", "", "", "'s", "s", "ed", "ing", "y"];

/// Distinct words in byte order.
#[derive(Debug)]
pub(crate) struct Words {
    text: String,
    /// Start of each word in `text`, and the end of the last one.
    starts: Vec<u32>,
}

impl Words {
    /// The dictionary. Takes about 20 ms to make.
    pub(crate) fn dictionary() -> Self {
        Self::make(WORDS, 1, |random, word| {
            for _ in 0..2 {
                push_syllable(random, word);
            }
            word.push_str(pick(random, SUFFIXES));
            if random.chance(1, 5) {
                capital(word);
            }
        })
    }

    /// First names in upper case.
    pub(crate) fn names() -> Self {
        Self::make(NAMES, 2, |random, word| {
            for _ in 0..2 {
                push_syllable(random, word);
            }
            word.make_ascii_uppercase();
        })
    }

    fn make(count: usize, stream: u64, one: impl Fn(&mut SplitMix, &mut String)) -> Self {
        // Independent of the data's seed, so that all graphs have the same words.
        let mut random = SplitMix::stream(0, stream, 0);
        let mut words = BTreeSet::new();
        while words.len() < count {
            let mut word = String::new();
            one(&mut random, &mut word);
            if word.len() > 1 {
                words.insert(word);
            }
        }
        let mut made = Self {
            text: String::new(),
            starts: vec![0],
        };
        for word in words {
            made.text.push_str(&word);
            made.starts.push(made.text.len() as u32);
        }
        made
    }

    pub(crate) fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Word `number`, or the last word if there are fewer.
    pub(crate) fn get(&self, number: u32) -> &str {
        let at = number.min(self.len() - 1) as usize;
        &self.text[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Numbers of the words from `low` to `high`, inclusive: the first number, and the one after the last.
    pub(crate) fn between(&self, low: &str, high: &str) -> (u32, u32) {
        let before = |is: &dyn Fn(&str) -> bool| {
            let (mut from, mut to) = (0, self.len());
            while from < to {
                let middle = from + (to - from) / 2;
                if is(self.get(middle)) {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            from
        };
        (before(&|w| w < low), before(&|w| w <= high))
    }
}

fn pick(random: &mut SplitMix, from: &[&'static str]) -> &'static str {
    from[random.below(from.len() as u32) as usize]
}

fn push_syllable(random: &mut SplitMix, word: &mut String) {
    for part in [STARTS, MIDDLES, ENDS] {
        word.push_str(pick(random, part));
    }
}

fn capital(word: &mut str) {
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_many_different_and_in_order() {
        let words = Words::dictionary();
        assert_eq!(words.len() as usize, WORDS);
        assert!((1..words.len()).all(|i| words.get(i - 1) < words.get(i)));
        let mean = words.text.len() as f64 / WORDS as f64;
        // In the given data, the mean length of 119,018 words is 8.4.
        assert!((7.4..9.4).contains(&mean), "{mean} letters a word");
        let names = Words::names();
        assert_eq!(names.len() as usize, NAMES);
        assert!(names.text.bytes().all(|b| b.is_ascii_uppercase()));
    }

    #[test]
    fn intervals_hold_both_ends() {
        let words = Words::dictionary();
        let (low, high) = (words.get(100).to_owned(), words.get(200).to_owned());
        assert_eq!(words.between(&low, &high), (100, 201));
        assert_eq!(words.between("", "~"), (0, words.len()));
        assert_eq!(words.between("~", "~~"), (words.len(), words.len()));
        assert_eq!(words.get(u32::MAX), words.get(words.len() - 1));
    }
}
