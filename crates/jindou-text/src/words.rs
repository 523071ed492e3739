//! Words of texts and of IRIs, folded, and what is asked of them.
//!
//! A folded text is its words in lower case and without accents, with a space before, between and after them: `" new york "`. What is
//! asked is then a part of it: a whole word `" new "`, the beginning of one `" yo"`.

use tantivy::tokenizer::{AsciiFoldingFilter, RawTokenizer, TextAnalyzer};

/// Longest text in bytes whose words are in the index: a label, not a book.
pub const MAX_TEXT: usize = 512;
/// Longest word in bytes; of longer ones the beginning counts.
const MAX_WORD: usize = 64;
/// Most words that are asked for.
const MAX_ASKED: usize = 16;

/// Folds texts; keeps what it needs for the next one.
pub struct Folder {
    accents: TextAnalyzer,
    word: String,
}

impl Default for Folder {
    fn default() -> Self {
        let accents = TextAnalyzer::builder(RawTokenizer::default()).filter(AsciiFoldingFilter);
        Self {
            accents: accents.build(),
            word: String::new(),
        }
    }
}

/// True for a mark over the letter before it, as in a decomposed `é`.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}')
}

/// True for characters of scripts that put no space between words: each counts as a word.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}

/// Calls `f` with every run of letters and digits.
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

/// Calls `f` with the parts of a run of letters and digits: they end where a digit meets a letter, and before a capital that begins a word.
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

/// The last part of an IRI's path or its fragment, which names what it is about.
#[must_use]
pub fn local_name(iri: &str) -> &str {
    let trimmed = iri.trim_end_matches(['/', '#']);
    if let Some((_, fragment)) = trimmed.split_once('#') {
        return fragment;
    }
    let path = trimmed.split('?').next().unwrap_or(trimmed);
    match path.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => name,
        Some(_) => trimmed,
        None => path.split_once(':').map_or(path, |(_, name)| name),
    }
}

impl Folder {
    /// Appends a run's folded form and a space; nothing for a run that has none. Returns whether there was one.
    fn push(&mut self, run: &str, out: &mut String) -> bool {
        let word = &mut self.word;
        word.clear();
        if run.is_ascii() {
            word.push_str(run);
        } else {
            // A sigma at the end of a word is a sigma.
            let lower = run.chars().flat_map(char::to_lowercase);
            word.extend(lower.map(|c| if c == 'ς' { 'σ' } else { c }));
            let mut tokens = self.accents.token_stream(word);
            let folded = tokens.next().map(|t| t.text.clone()).unwrap_or_default();
            drop(tokens);
            word.clear();
            word.extend(folded.chars().filter(|c| c.is_alphanumeric()));
        }
        word.make_ascii_lowercase();
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

    /// Sets `out` to the folded text of a literal; empty without a word.
    pub fn text(&mut self, text: &str, out: &mut String) {
        out.clear();
        out.push(' ');
        each_run(text, |run| {
            self.push(run, out);
        });
        if out.len() == 1 {
            out.clear();
        }
    }

    /// Sets `out` to the folded text of an IRI: the runs of its local name, and their parts (`birthPlace`: birthplace, birth, place).
    pub fn iri(&mut self, iri: &str, out: &mut String) {
        let name = local_name(iri);
        out.clear();
        out.push(' ');
        each_run(name, |run| {
            self.push(run, out);
        });
        each_run(name, |run| {
            each_camel(run, |part| {
                if part.len() < run.len() {
                    self.push(part, out);
                }
            });
        });
        if out.len() == 1 {
            out.clear();
        }
    }
}

/// Words of a folded text.
#[must_use]
pub fn count(folded: &str) -> usize {
    folded
        .bytes()
        .filter(|&b| b == b' ')
        .count()
        .saturating_sub(1)
}

/// A question: words that must all occur, the last one as the beginning of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordQuery {
    /// All words as a folded text.
    whole: String,
    /// Each word but the last with its spaces, once; then the last one without the space after it.
    needles: Vec<String>,
}

/// How well a text has what is asked; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The text is what is asked.
    Same,
    /// The text begins with the words.
    Whole,
    /// The text begins with the question, the last word unfinished.
    Begins,
    /// The text has all words.
    Has,
}

impl WordQuery {
    /// The words of a text, at most sixteen of them; `None` without one.
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

    /// The words that must occur, without the last.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let (_, words) = self.needles.split_last().unwrap_or((&self.whole, &[]));
        words.iter().map(|w| w.trim())
    }

    /// The beginning of a word.
    #[must_use]
    pub fn beginning(&self) -> &str {
        self.needles.last().map_or("", |w| w.trim())
    }

    /// The way in which a folded text has all words; `None` if it lacks one.
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
            ("ΟΔΟΣ οδός", " οδοσ οδόσ "),
            ("e\u{301}tat", " etat "),
            ("İzmir ﬁn", " izmir fin "),
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
            ("http://e/q?x=1", " q "),
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
