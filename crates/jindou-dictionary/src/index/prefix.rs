//! Decides `STRSTARTS(?x, constant)` and `STRSTARTS(STR(?x), constant)` without reading a term: the terms that begin with
//! the constant are intervals of lex indexes. For `REGEX` with a pattern such as `^constant.*`, terms outside these
//! intervals are rejected, and those inside are left to the engine, which matches the whole pattern.

use super::ranks::by_parts;
use super::{Call, Estimate, Probe, QuestionPart, Verdict};
use crate::Dictionary;
use crate::value::NO_LEX;
use jindou_model::term;
use jindou_values::pattern::Pattern;
use std::ops::Range;

pub(super) struct PrefixProbe<'a> {
    dictionary: &'a Dictionary,
    /// The tags of which the dictionary has terms, and whose terms are decided. Ascending, as their intervals are.
    decided: Vec<DecidedTag>,
    /// The verdict on terms that begin with the constant.
    inside: Verdict,
}

/// The terms with one tag, as lex indexes.
struct DecidedTag {
    all: Range<u32>,
    /// Lex indexes of the terms that begin with the constant; `None` if the call is an error for all terms.
    passing: Option<Range<u32>>,
}

impl<'a> PrefixProbe<'a> {
    /// `None` for other calls. O(log terms).
    pub(super) fn new(call: &Call, dictionary: &'a Dictionary) -> Option<Self> {
        let [text, QuestionPart::Constant(constant)] = &call.arguments[..] else {
            return None;
        };
        let is_str = match text {
            QuestionPart::Variable => false,
            QuestionPart::Call(of) if of.name == "STR" => {
                matches!(of.arguments[..], [QuestionPart::Variable]).then_some(true)?
            }
            _ => return None,
        };
        let (&term::STRING, constant) = constant.split_first()? else {
            return None;
        };
        let (prefix, inside) = match &*call.name {
            "STRSTARTS" => (constant, Verdict::True),
            "REGEX" => (beginning_of(constant)?, Verdict::Unsettled),
            _ => return None,
        };
        let has_text = |tag| tag == term::STRING || is_str;
        // Language-tagged strings and literals of datatypes without a tag have other bytes before their text.
        let coded = (term::FIRST_DATATYPE..=*term::TEMPORAL_TAGS.end()).filter(|_| is_str);
        let decided = [term::STRING, term::IRI, term::BLANK]
            .into_iter()
            .chain(coded);
        let decided = decided.map(|tag| DecidedTag {
            all: dictionary.tag_range(tag),
            passing: (has_text(tag) && tag != term::BLANK)
                .then(|| beginning(dictionary, tag, prefix)),
        });
        Some(Self {
            dictionary,
            inside,
            decided: decided.filter(|tag| !tag.all.is_empty()).collect(),
        })
    }

    #[inline]
    fn verdict(&self, id: u32, lex: u32) -> Verdict {
        if lex == NO_LEX {
            return match id {
                0 => Verdict::Error,
                _ => Verdict::Unsettled,
            };
        }
        let at = self.decided.partition_point(|tag| tag.all.end <= lex);
        match self.decided.get(at) {
            Some(tag) if tag.all.contains(&lex) => match &tag.passing {
                None => Verdict::Error,
                Some(passing) if passing.contains(&lex) => self.inside,
                Some(_) => Verdict::False,
            },
            _ => Verdict::Unsettled,
        }
    }
}

/// The constant bytes with which each text must begin to match a pattern without flags. `None` if there are none, if the
/// pattern has alternatives, or if it is invalid.
fn beginning_of(pattern: &[u8]) -> Option<&[u8]> {
    let rest = pattern.strip_prefix(b"^")?;
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"/:-_#@ ,;=%&~".contains(b);
    let length = rest.iter().take_while(|b| is_plain(b)).count();
    // A quantifier refers to the last character only.
    let length = match rest.get(length) {
        Some(b'*' | b'?' | b'+' | b'{') => length.checked_sub(1)?,
        _ => length,
    };
    let is_valid =
        |p: &[u8]| std::str::from_utf8(p).is_ok_and(|p| Pattern::new(p, "", false).is_ok());
    (length > 0 && !rest.contains(&b'|') && is_valid(pattern)).then(|| &rest[..length])
}

/// The lex indexes of the terms with a tag whose other bytes begin with these.
fn beginning(dictionary: &Dictionary, tag: u8, prefix: &[u8]) -> Range<u32> {
    let all = dictionary.tag_range(tag);
    let mut bytes = [&[tag], prefix].concat();
    let strings = dictionary.strings();
    let from = strings.lower_bound(&bytes).clamp(all.start, all.end);
    // UTF-8 has no byte 0xFF, so a last byte of the prefix has a successor.
    let to = match bytes.split_first_mut() {
        Some((_, [.., last])) if *last < u8::MAX => {
            *last += 1;
            strings.lower_bound(&bytes).clamp(from, all.end)
        }
        _ => all.end,
    };
    from..to
}

impl Probe for PrefixProbe<'_> {
    fn estimate(&self) -> Estimate {
        let sum =
            |each: &dyn Fn(&DecidedTag) -> usize| self.decided.iter().map(each).sum::<usize>();
        let of = sum(&|tag| tag.all.len()) as u64;
        Estimate {
            passing: sum(&|tag| tag.passing.as_ref().map_or(0, ExactSizeIterator::len)) as u64,
            of,
            exact: self.inside == Verdict::True && of == u64::from(self.dictionary.len()),
        }
    }

    fn explain(&self) -> String {
        "by position".into()
    }

    fn test_many(&mut self, ids: &[u32], out: &mut [Verdict]) {
        by_parts(self.dictionary, ids, out, |ids, lexes, out| {
            for ((out, &lex), &id) in out.iter_mut().zip(lexes).zip(ids) {
                *out = self.verdict(id, lex);
            }
        });
    }
}
