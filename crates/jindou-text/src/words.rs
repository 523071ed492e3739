//! Folding of the words of texts and IRIs, and queries for words.
//!
//! A folded text consists of its words in lower case and without accents, with a space before, between and after them:
//! `" new york "`. A query tests for parts of it: a whole word such as `" new "`, or the beginning of a word such as `"
//! yo"`.
//!
//! Texts become equal by folding if they differ only in their Unicode normal form (UAX 15), in case, or in accents of
//! scripts that are readable without them:
//!
//! ```text
//! text ─► NFKD ─► without accents ─► NFC ─► runs of letters, marks and digits ─► lower case ─► ASCII for Latin letters
//! ```
//!
//! After a change of the folding, [`VERSION`] must be increased.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{
    CanonicalCombiningClass, DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup,
    Script,
};
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed, CodePointSetData, CodePointSetDataBorrowed,
};
use tantivy::tokenizer::{AsciiFoldingFilter, RawTokenizer, TextAnalyzer};

/// Version of the folding, on which the words in an index depend. Version 2 normalizes all scripts, and includes the
/// part after the `?` of an IRI.
pub const VERSION: u32 = 2;
/// Longest text in bytes whose words are indexed: labels, but not books.
pub const MAX_TEXT: usize = 512;
/// Longest word in bytes; of a longer word only the beginning is used.
const MAX_WORD: usize = 64;
/// Largest number of words in a search.
const MAX_ASKED: usize = 16;

const DECOMPOSED: DecomposingNormalizerBorrowed<'static> =
    DecomposingNormalizerBorrowed::new_nfkd();
const COMPOSED: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
const CATEGORIES: CodePointMapDataBorrowed<'static, GeneralCategory> = CodePointMapData::new();
const CLASSES: CodePointMapDataBorrowed<'static, CanonicalCombiningClass> = CodePointMapData::new();
const SCRIPTS: CodePointMapDataBorrowed<'static, Script> = CodePointMapData::new();
const IGNORABLE: CodePointSetDataBorrowed<'static> =
    CodePointSetData::new::<DefaultIgnorableCodePoint>();
/// A stroke that lengthens a line of Arabic, but is not a letter.
const TATWEEL: char = '\u{640}';

/// True for a mark that may be omitted in writing: an accent, a Hebrew point, an Arabic vowel. Marks of other scripts
/// are vowels or tones, or change a letter into another one (voicing marks of kana).
fn is_accent(c: char) -> bool {
    type Class = CanonicalCombiningClass;
    CATEGORIES.get(c) == GeneralCategory::NonspacingMark
        && matches!(
            SCRIPTS.get(c),
            Script::Inherited
                | Script::Latin
                | Script::Greek
                | Script::Coptic
                | Script::Cyrillic
                | Script::Hebrew
                | Script::Arabic
                | Script::Syriac
        )
        && !matches!(
            CLASSES.get(c),
            Class::NotReordered | Class::Nukta | Class::KanaVoicing | Class::Virama
        )
}

/// Sets `out` to the normal form of a text, without accents and invisible characters.
fn normalize(text: &str, out: &mut String) {
    out.clear();
    let is_kept =
        |c: &char| c.is_ascii() || !(is_accent(*c) || *c == TATWEEL || IGNORABLE.contains(*c));
    let kept = DECOMPOSED.normalize_iter(text.chars()).filter(is_kept);
    out.extend(COMPOSED.normalize_iter(kept));
}

/// Folds texts, reusing its buffers.
pub struct Folder {
    ascii: TextAnalyzer,
    normal: String,
    word: String,
}

impl Default for Folder {
    fn default() -> Self {
        let ascii = TextAnalyzer::builder(RawTokenizer::default()).filter(AsciiFoldingFilter);
        Self {
            ascii: ascii.build(),
            normal: String::new(),
            word: String::new(),
        }
    }
}

/// True for a mark, which belongs to the letter before it.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && GeneralCategoryGroup::Mark.contains(CATEGORIES.get(c))
}

/// True for characters of scripts without spaces between words; each of them is a word.
fn stands_alone(c: char) -> bool {
    const PROLONGED: char = 'ー';
    !c.is_ascii()
        && (c == PROLONGED
            || matches!(
                SCRIPTS.get(c),
                Script::Han | Script::Hiragana | Script::Katakana
            ) && c.is_alphanumeric())
}

/// Calls `f` with every run of letters and digits, and with every character that is a word by itself.
fn each_run<'t>(text: &'t str, mut f: impl FnMut(&'t str)) {
    let mut start = None;
    for (at, c) in text.char_indices() {
        if stands_alone(c) {
            if let Some(start) = start.take() {
                f(&text[start..at]);
            }
            f(&text[at..at + c.len_utf8()]);
        } else if c.is_alphanumeric() {
            start.get_or_insert(at);
        } else if !is_mark(c)
            && let Some(start) = start.take()
        {
            f(&text[start..at]);
        }
    }
    if let Some(start) = start {
        f(&text[start..]);
    }
}

/// Calls `f` with the parts of a run of letters and digits. A part ends between a digit and a letter, and before a
/// capital letter with which a word begins.
fn each_camel<'t>(run: &'t str, mut f: impl FnMut(&'t str)) {
    let mut start = 0;
    let mut before: Option<char> = None;
    let mut chars = run.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if let Some(b) = before {
            let next_is_small = chars.peek().is_some_and(|(_, n)| n.is_lowercase());
            let begins =
                c.is_uppercase() && (b.is_lowercase() || b.is_uppercase() && next_is_small);
            if begins || b.is_numeric() != c.is_numeric() && !is_mark(c) {
                f(&run[start..at]);
                start = at;
            }
        }
        if !is_mark(c) {
            before = Some(c);
        }
    }
    f(&run[start..]);
}

/// The descriptive part of an IRI: its fragment, or the last part of its path with the query.
#[must_use]
pub fn local_name(iri: &str) -> &str {
    let trimmed = iri.trim_end_matches(['/', '#']);
    if let Some((_, fragment)) = trimmed.split_once('#') {
        return fragment;
    }
    let path = trimmed.split('?').next().unwrap_or(trimmed);
    match path.trim_end_matches('/').rfind('/') {
        Some(slash) => &trimmed[slash + 1..],
        None => trimmed.split_once(':').map_or(trimmed, |(_, name)| name),
    }
}

impl Folder {
    /// A text in lower case and without accents, folded like words, but with all characters between the words.
    pub fn line(&mut self, text: &str) -> String {
        if text.is_ascii() {
            return text.to_ascii_lowercase();
        }
        let mut normal = std::mem::take(&mut self.normal);
        normalize(text, &mut normal);
        self.lower(&normal);
        self.normal = normal;
        self.word.clone()
    }

    /// Sets `self.word` to a normalized text in lower case, with ASCII letters in place of other Latin ones.
    fn lower(&mut self, text: &str) {
        let word = &mut self.word;
        word.clear();
        // A final sigma is folded to an ordinary sigma.
        let lower = text.chars().flat_map(char::to_lowercase);
        word.extend(lower.map(|c| if c == 'ς' { 'σ' } else { c }));
        if !word.is_ascii() {
            let mut tokens = self.ascii.token_stream(word);
            let folded = tokens.next().map(|t| t.text.clone());
            drop(tokens);
            *word = folded.unwrap_or_default();
            word.make_ascii_lowercase();
        }
    }

    /// Appends a run's folded form and a space. If the folded form is empty, appends nothing and returns false.
    fn push(&mut self, run: &str, out: &mut String) -> bool {
        self.lower(run);
        let word = &mut self.word;
        if !word.is_ascii() || !run.is_ascii() {
            word.retain(|c| c.is_alphanumeric() || is_mark(c));
        }
        let mut end = word.len().min(MAX_WORD);
        while !word.is_char_boundary(end) {
            end -= 1;
        }
        if end == 0 {
            return false;
        }
        out.push_str(&word[..end]);
        out.push(' ');
        true
    }

    /// Calls `f` with a text in normal form, without accents and invisible characters.
    fn with_normal(&mut self, text: &str, f: impl FnOnce(&mut Self, &str)) {
        if text.is_ascii() {
            return f(self, text);
        }
        let mut normal = std::mem::take(&mut self.normal);
        normalize(text, &mut normal);
        f(self, &normal);
        self.normal = normal;
    }

    /// Sets `out` to the folded text of a literal; empty if it contains no word.
    pub fn text(&mut self, text: &str, out: &mut String) {
        out.clear();
        out.push(' ');
        self.with_normal(text, |folder, text| {
            each_run(text, |run| {
                folder.push(run, out);
            });
        });
        if out.len() == 1 {
            out.clear();
        }
    }

    /// Sets `out` to the folded text of an IRI: the runs of its local name, then the parts of those that have several
    /// (`birthPlace`: birthplace, birth, place).
    pub fn iri(&mut self, iri: &str, out: &mut String) {
        out.clear();
        out.push(' ');
        self.with_normal(local_name(iri), |folder, name| {
            each_run(name, |run| {
                folder.push(run, out);
            });
            each_run(name, |run| {
                each_camel(run, |part| {
                    if part.len() < run.len() {
                        folder.push(part, out);
                    }
                });
            });
        });
        if out.len() == 1 {
            out.clear();
        }
    }
}

/// Number of words of a folded text.
#[must_use]
pub fn count(folded: &str) -> usize {
    folded
        .bytes()
        .filter(|&b| b == b' ')
        .count()
        .saturating_sub(1)
}

/// A query: words all of which must occur, the last one as the prefix of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordQuery {
    /// All words as a folded text.
    whole: String,
    /// Parts of a folded text that must occur: each word but the last, once, with spaces around it, and then the last
    /// word with a space before it only.
    needles: Vec<String>,
}

/// How well a text matches a query; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The text equals the query.
    Same,
    /// The text begins with the words of the query.
    Whole,
    /// The text begins with the query, whose last word is the prefix of a longer word there.
    Begins,
    /// The text contains all words, in any order.
    Has,
}

impl WordQuery {
    /// The query for the words of a text, of which sixteen are used; `None` if there are none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut whole = String::new();
        Folder::default().text(text, &mut whole);
        let mut words: Vec<&str> = whole.split_ascii_whitespace().collect();
        words.truncate(MAX_ASKED);
        let whole = words.iter().fold(String::from(" "), |all, w| all + w + " ");
        let (last, others) = words.split_last()?;
        let mut needles: Vec<String> = Vec::new();
        for word in others {
            let needle = format!(" {word} ");
            if !needles.contains(&needle) {
                needles.push(needle);
            }
        }
        needles.push(format!(" {last}"));
        Some(Self { whole, needles })
    }

    /// The words that must occur as whole words: all but the last.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let (_, words) = self.needles.split_last().unwrap_or((&self.whole, &[]));
        words.iter().map(|w| w.trim())
    }

    /// The last word, which must occur as the prefix of a word.
    #[must_use]
    pub fn beginning(&self) -> &str {
        self.needles.last().map_or("", |w| w.trim())
    }

    /// How well a folded text matches the query; `None` if a word is missing.
    #[must_use]
    pub fn fit(&self, folded: &str) -> Option<Fit> {
        if !self
            .needles
            .iter()
            .all(|needle| folded.contains(needle.as_str()))
        {
            return None;
        }
        Some(if folded == self.whole {
            Fit::Same
        } else if folded.starts_with(&self.whole) {
            Fit::Whole
        } else if folded.starts_with(self.whole.trim_end()) {
            Fit::Begins
        } else {
            Fit::Has
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str) -> String {
        let mut out = String::new();
        Folder::default().text(t, &mut out);
        out
    }

    fn iri(t: &str) -> String {
        let mut out = String::new();
        Folder::default().iri(t, &mut out);
        out
    }

    #[test]
    fn texts_are_folded() {
        for (from, to) in [
            ("New York", " new york "),
            ("Zürich, Großstadt!", " zurich grossstadt "),
            ("ΟΔΟΣ οδός", " οδοσ οδοσ "),
            ("e\u{301}tat", " etat "),
            ("İzmir ﬁn Diyarbakır", " izmir fin diyarbakir "),
            ("Łódź Ærø ĐẶNG ſ", " lodz aero dang s "),
            ("Ёлка Май", " елка маи "),
            ("שָׁלוֹם", " שלום "),
            ("مُحَمَّد مـحمد أحمد", " محمد محمد احمد "),
            ("می\u{200c}خواهم co\u{ad}op", " میخواهم coop "),
            // Voiced kana are different letters, but half-width kana are the same ones.
            ("ガラス カラス", " ガ ラ ス カ ラ ス "),
            ("ｶﾞﾗｽ", " ガ ラ ス "),
            ("コーヒー・カップ", " コ ー ヒ ー カ ッ プ "),
            ("Ａ１　①", " a1 1 "),
            // Vowel signs, viramas and tone marks are part of the word.
            ("हिन्दी", " हिन्दी "),
            ("ภาษาไทย น้ำ", " ภาษาไทย น\u{e49}\u{e4d}า "),
            ("東京 tower", " 東 京 tower "),
            ("as_2 (x)", " as 2 x "),
            ("--", ""),
            ("", ""),
        ] {
            assert_eq!(text(from), to, "{from}");
        }
        let long = "é".repeat(300);
        assert_eq!(text(&long), format!(" {} ", "e".repeat(64)));
        assert_eq!(text(&"界".repeat(3)).len(), 13);
        assert_eq!(count(&text("a b c")), 3);
        assert_eq!(count(""), 0);
    }

    /// All normal forms of a text have the same folded text.
    #[test]
    fn normal_forms_are_one_text() {
        use icu_normalizer::{
            ComposingNormalizerBorrowed as C, DecomposingNormalizerBorrowed as D,
        };
        for t in [
            "한국",
            "Αθήνα",
            "Май",
            "Ёлка",
            "ガラス",
            "ぱぴぷ",
            "שָׁלוֹם",
            "مُحَمَّد",
            "हिन्दी क़लम",
            "ภาษาไทย น้ำ",
            "Zürich",
            "Ǆ ﬁ",
            "ὕδωρ ᾳ",
            "Ա Ֆ և",
            "བོད་ཡིག",
            "မြန်မာ",
            "ខ្មែរ",
            "ఆంధ్ర",
            "Việt Nam",
            "Å Å",
        ] {
            let forms = [D::new_nfd().normalize(t), C::new_nfc().normalize(t)];
            let more = [D::new_nfkd().normalize(t), C::new_nfkc().normalize(t)];
            for form in forms.iter().chain(&more) {
                assert_eq!(text(form), text(t), "{t}");
                let iris = [form, t].map(|t| iri(&format!("http://e/{t}")));
                assert_eq!(iris[0], iris[1], "{t}");
                let lines = [form, t].map(|t| Folder::default().line(t));
                assert_eq!(lines[0], lines[1], "{t}");
            }
        }
    }

    /// Folding a folded text changes nothing, for any letter.
    #[test]
    fn folding_is_idempotent() {
        for c in (0x80..0x3_0000)
            .filter_map(char::from_u32)
            .filter(|c| c.is_alphanumeric())
        {
            let once = text(&format!("a{c}"));
            assert_eq!(text(&once), once, "{c} U+{:04X}", c as u32);
            let lower: String = c.to_lowercase().collect();
            assert_eq!(text(&lower), text(&c.to_string()), "{c} U+{:04X}", c as u32);
        }
    }

    #[test]
    fn iris_are_taken_apart() {
        for (from, to) in [
            ("http://e/birthPlace", " birthplace birth place "),
            (
                "http://e/x#GraduateStudent12",
                " graduatestudent12 graduate student 12 ",
            ),
            ("http://www.wikidata.org/prop/direct/P31", " p31 p 31 "),
            ("http://e/Alan_Turing", " alan turing "),
            ("http://e/HTTPServer/", " httpserver http server "),
            (
                "http://www.University0.edu",
                " www university0 edu university 0 ",
            ),
            ("http://e/a.b-c#", " a b c "),
            ("urn:isbn:123", " isbn 123 "),
            ("http://e/q?x=1", " q x 1 "),
            ("http://e/page?id=77", " page id 77 "),
            ("http://e/a/?u=http://x/y#", " a u http x y "),
            ("http://e/?q=b", " e q b "),
            ("urn:a?b", " a b "),
            ("http://e/Αθήνα", " αθηνα "),
            ("http://", ""),
            ("", ""),
        ] {
            assert_eq!(iri(from), to, "{from}");
        }
    }

    #[test]
    fn what_is_asked_must_occur() {
        let asked = WordQuery::new("New, yo").unwrap();
        assert_eq!(asked.words().collect::<Vec<_>>(), ["new"]);
        assert_eq!(asked.beginning(), "yo");
        assert_eq!(asked.fit(&text("new york")), Some(Fit::Begins));
        assert_eq!(asked.fit(&text("New Yo")), Some(Fit::Same));
        assert_eq!(asked.fit(&text("new Yo!ho")), Some(Fit::Whole));
        assert_eq!(asked.fit(&text("York, new")), Some(Fit::Has));
        assert_eq!(asked.fit(&text("newer york")), None);
        assert_eq!(asked.fit(&text("new")), None);
        assert_eq!(
            WordQuery::new("new").unwrap().fit(&text("newest")),
            Some(Fit::Begins)
        );
        assert_eq!(WordQuery::new(" , "), None);
        let many = "w ".repeat(100);
        assert_eq!(WordQuery::new(&many).unwrap().words().count(), 1);
    }
}
