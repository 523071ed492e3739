//! Texts that have a word.

use jindou_dictionary::index::{Estimate, Probe, Verdict};
use jindou_dictionary::{Dictionary, NO_LEX};
use jindou_model::VertexId;
use jindou_model::term::{LANG, STRING};
use std::ops::Range;

pub(crate) struct WordProbe<'a> {
    /// Ids of texts that have the word: ascending, unless the file is damaged.
    list: &'a [u32],
    /// Ids of texts of which nothing is known.
    long: &'a [u32],
    /// Having the word is all that is asked.
    exact: bool,
    texts: u64,
    dictionary: &'a Dictionary,
    /// Lex indexes of texts.
    of_texts: [Range<u32>; 2],
    lexes: Vec<u32>,
}

/// True for a text of the dictionary.
pub(crate) fn is_text(dictionary: &Dictionary, id: u32) -> bool {
    matches!(dictionary.tag(VertexId(id)), Some(STRING | LANG))
}

impl<'a> WordProbe<'a> {
    pub fn new(
        list: &'a [u32],
        long: &'a [u32],
        exact: bool,
        texts: u64,
        dictionary: &'a Dictionary,
    ) -> Self {
        Self {
            list,
            long,
            exact,
            texts,
            dictionary,
            of_texts: [STRING, LANG].map(|tag| dictionary.tag_range(tag)),
            lexes: vec![],
        }
    }

    fn verdict(&self, id: u32, lex: u32) -> Verdict {
        if lex == NO_LEX {
            return Verdict::Unsettled;
        }
        if !self.of_texts.iter().any(|r| r.contains(&lex)) {
            return Verdict::Error;
        }
        if self.list.binary_search(&id).is_ok() {
            return match self.exact {
                true => Verdict::True,
                false => Verdict::Unsettled,
            };
        }
        match self.long.binary_search(&id) {
            Ok(_) => Verdict::Unsettled,
            Err(_) => Verdict::False,
        }
    }
}

impl Probe for WordProbe<'_> {
    fn estimate(&self) -> Estimate {
        Estimate {
            passing: (self.list.len() + self.long.len()) as u64,
            of: self.texts,
            exact: self.exact && self.long.is_empty(),
        }
    }

    fn explain(&self) -> String {
        let Estimate { passing, of, exact } = self.estimate();
        match exact {
            true => format!("by index words: {passing} of {of} texts"),
            false => format!("by index words: {passing} of {of} texts are read"),
        }
    }

    fn test_many(&mut self, ids: &[u32], out: &mut [Verdict]) {
        let mut lexes = std::mem::take(&mut self.lexes);
        lexes.clear();
        self.dictionary.lex_many(ids, &mut lexes);
        for ((o, &id), &lex) in out.iter_mut().zip(ids).zip(&lexes) {
            *o = self.verdict(id, lex);
        }
        self.lexes = lexes;
    }

    fn ids(&mut self, limit: usize) -> Option<Vec<u32>> {
        if self.list.len() + self.long.len() > limit {
            return None;
        }
        Some([self.list, self.long].concat())
    }
}
