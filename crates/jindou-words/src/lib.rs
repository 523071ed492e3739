//! Words of texts as an index: the example of how one is added to a store. Nothing that is shipped depends on it.
//!
//! It answers two conditions on a variable `?t`:
//!
//! - the function [`HAS_WORD`]`(?t, "word")` exactly. A program that uses the index registers the function as well, as [`has_word`]: it
//!   decides for texts that no index has.
//! - `CONTAINS(?t, "… word …")` where a whole word stands inside the constant: only texts with that word can contain it, and each
//!   of those is read to see whether it does.
//!
//! ```text
//! index-words.jd   1  words      their bytes, one after the other, ascending
//!                  2  ends       u64 a word: where it ends
//!                  3  list ends  u64 a word: where its list ends
//!                  4  lists      u32: ids of the texts that have the word, ascending
//!                  5  long       u32: ids of texts that are too long to be taken apart, ascending
//! ```

mod build;
mod probe;

use jindou_dictionary::Dictionary;
use jindou_dictionary::index::{
    Call, Index, IndexFile, IndexWriter, OpenIndex, Probe, Question, QuestionPart, Terms,
};
use jindou_model::term::{self, LANG, Parts, STRING};
use jindou_model::{Error, Result};
use probe::WordProbe;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// The function's IRI: whether a text, with or without a language, has a word, whatever its case. An error for other terms.
pub const HAS_WORD: &str = "http://example.org/fn#word";

/// Longest word in bytes; longer runs of letters are none.
const MAX_WORD: usize = 64;
/// Longest text in bytes that is taken apart.
const MAX_TEXT: usize = 1 << 16;

/// Sections of the file.
mod section {
    pub const WORDS: u32 = 1;
    pub const ENDS: u32 = 2;
    pub const LIST_ENDS: u32 = 3;
    pub const LISTS: u32 = 4;
    pub const LONG: u32 = 5;
}

/// Calls `f` with every word in lower case.
fn each_word(text: &str, mut f: impl FnMut(&str)) {
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let word = run.to_lowercase();
        if !word.is_empty() && word.len() <= MAX_WORD {
            f(&word);
        }
    }
}

/// The function [`HAS_WORD`]. `None`, an error, unless the second argument is one word.
#[must_use]
pub fn has_word(text: &str, word: &str) -> Option<bool> {
    let word = one_word(word)?;
    let mut found = false;
    each_word(text, |w| found |= w == word);
    Some(found)
}

/// A text that is a word, in lower case.
fn one_word(text: &str) -> Option<String> {
    let word = text.to_lowercase();
    let is_word = !text.is_empty() && text.chars().all(char::is_alphanumeric);
    (is_word && word.len() <= MAX_WORD).then_some(word)
}

/// A whole word inside a text, with something else on both sides: the longest one.
fn inner_word(text: &str) -> Option<String> {
    let runs: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let inner = runs.get(1..runs.len().checked_sub(1)?)?;
    let words = inner.iter().filter_map(|run| one_word(run));
    words.max_by_key(String::len)
}

/// The kind of index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words;

impl Index for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
        build::build(terms, file)
    }

    fn open(
        &self,
        file: Option<Arc<IndexFile>>,
        dictionary: &Dictionary,
    ) -> Result<Box<dyn OpenIndex>> {
        let file = file.ok_or_else(|| Error::Internal("the words are in a file".into()))?;
        let ends = [section::ENDS, section::LIST_ENDS].map(|s| file.u64s(s).len());
        if ends[0] != ends[1] {
            return Err(file.damaged("numbers of words and lists"));
        }
        let texts = dictionary.tag_range(STRING).len() + dictionary.tag_range(LANG).len();
        Ok(Box::new(OpenWords {
            file,
            texts: texts as u64,
        }))
    }
}

struct OpenWords {
    file: Arc<IndexFile>,
    /// Texts that the dictionary has.
    texts: u64,
}

impl OpenWords {
    /// A part of an array whose ends are in another; empty where they are damaged.
    fn range(ends: &[u64], at: usize) -> Range<usize> {
        let start = at.checked_sub(1).and_then(|b| ends.get(b));
        let range = start.copied().unwrap_or(0)..ends.get(at).copied().unwrap_or(0);
        range.start as usize..range.end as usize
    }

    fn word(&self, at: usize) -> &[u8] {
        let range = Self::range(self.file.u64s(section::ENDS), at);
        self.file.bytes(section::WORDS).get(range).unwrap_or(&[])
    }

    fn list(&self, at: usize) -> &[u32] {
        let range = Self::range(self.file.u64s(section::LIST_ENDS), at);
        self.file.u32s(section::LISTS).get(range).unwrap_or(&[])
    }

    fn long(&self) -> &[u32] {
        self.file.u32s(section::LONG)
    }

    /// Ids of the texts with a word. O(log words).
    fn find(&self, word: &str) -> &[u32] {
        let (mut low, mut high) = (0, self.file.u64s(section::ENDS).len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(middle).cmp(word.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return self.list(middle),
                Ordering::Greater => high = middle,
            }
        }
        &[]
    }
}

/// The word of which a call's truth depends, and whether having it is all that is asked.
fn asked(call: &Call) -> Option<(String, bool)> {
    let [QuestionPart::Variable, QuestionPart::Constant(constant)] = &call.arguments[..] else {
        return None;
    };
    let text = match (call.name.as_str(), term::parts(constant)?) {
        (HAS_WORD, Parts::String(s) | Parts::Lang(s, _)) | ("CONTAINS", Parts::String(s)) => s,
        _ => return None,
    };
    if call.name == HAS_WORD {
        Some((one_word(text)?, true))
    } else {
        Some((inner_word(text)?, false))
    }
}

impl OpenIndex for OpenWords {
    fn probe<'a>(
        &'a self,
        question: &Question<'_>,
        dictionary: &'a Dictionary,
    ) -> Option<Box<dyn Probe + 'a>> {
        let Question::Holds(call) = question else {
            return None;
        };
        let (word, exact) = asked(call)?;
        Some(Box::new(WordProbe::new(
            self.find(&word),
            self.long(),
            exact,
            self.texts,
            dictionary,
        )))
    }

    fn check(&self, dictionary: &Dictionary, damage: &mut dyn FnMut(String)) {
        let ascend = |list: &[u32]| list.windows(2).all(|w| w[0] < w[1]);
        let known = |list: &[u32]| list.iter().all(|&id| probe::is_text(dictionary, id));
        let words = self.file.u64s(section::ENDS).len();
        let mut before: &[u8] = &[];
        for at in 0..words {
            let (word, list) = (self.word(at), self.list(at));
            if word <= before {
                damage(format!("word {at} does not follow the one before"));
            }
            if list.is_empty() || !ascend(list) || !known(list) {
                damage(format!(
                    "the list of word {at} is not one of texts, ascending"
                ));
            }
            before = word;
        }
        if !ascend(self.long()) || !known(self.long()) {
            damage("the long texts are not ids of texts, ascending".into());
        }
    }

    fn describe(&self) -> String {
        let words = self.file.u64s(section::ENDS).len();
        let left = self.long().len();
        format!(
            "{words} words of {} texts, {left} of them too long",
            self.texts
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let mut found = vec![];
        let run = "x".repeat(65);
        each_word(&format!("Grün, as_2 (Σ) {run}!"), |w| {
            found.push(w.to_owned())
        });
        assert_eq!(found, ["grün", "as", "2", "σ"]);
        assert_eq!(has_word("The end.", "END"), Some(true));
        assert_eq!(has_word("Then", "the"), Some(false));
        for none in ["", "a b", "a.", &run] {
            assert_eq!(has_word("a b", none), None);
        }
    }

    #[test]
    fn inner_words_are_whole() {
        assert_eq!(inner_word("the big cat").as_deref(), Some("big"));
        assert_eq!(inner_word(" Cat ").as_deref(), Some("cat"));
        assert_eq!(inner_word(".a.long.b").as_deref(), Some("long"));
        for none in ["", "cat", "the cat", "cat.", ".cat"] {
            assert_eq!(inner_word(none), None, "{none}");
        }
    }
}
