//! The place of a cursor in a query that is being written: the kind of term expected there, and the known facts about
//! its neighbours.
//!
//! The text may be anything: nothing here is an error, nothing recurses, and time and memory are linear in the text.
//!
//! | module | job |
//! |---|---|
//! | `mod` | the cursor's word, the prologue, the answer |
//! | `walk` | tokens to triple patterns, group by group |
//! | `path` | the predicate or property path that is being read |

mod path;
mod walk;

#[cfg(test)]
mod tests;

use crate::lexer::{BadToken, Lexer, Token, TokenKind};
use walk::PlaceWalk;

/// The kind of term expected at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// No term: inside a comment, a string, inline data or another endpoint's pattern.
    Nothing,
    /// A word of SPARQL.
    Keyword,
    /// A prefix and its IRI.
    Prefix,
    /// A variable: in the list of SELECT, or after VALUES.
    Variable,
    /// Part of an expression: a variable or a function.
    Expression,
    /// The name of a graph.
    Graph,
    /// A triple's subject, or the next word of a group.
    Subject,
    /// A triple's predicate.
    Predicate,
    /// A triple's object.
    Object,
}

/// A triple pattern in SPARQL's notation. Variables begin with `?`, and nodes without a name become variables that do
/// not occur in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The subject.
    pub subject: String,
    /// The predicate, or a property path.
    pub predicate: String,
    /// The object.
    pub object: String,
    /// The graph of its group.
    pub graph: Option<String>,
}

/// A place in a query.
#[derive(Clone, Debug)]
pub struct CursorPlace {
    /// The kind of term expected at the cursor.
    pub slot: Slot,
    /// The offset in bytes of the word that is being written; the cursor if there is none.
    pub from: usize,
    /// The subject of the triple; `None` if it has no name or is unknown.
    pub subject: Option<String>,
    /// The predicate of the triple whose object is expected.
    pub predicate: Option<String>,
    /// True if the expected predicate leads to the subject (`^`).
    pub inverse: bool,
    /// The graph of the group.
    pub graph: Option<String>,
    /// Patterns that hold at the cursor: those of the groups around it, before and after.
    pub patterns: Vec<Pattern>,
    /// Prefixes that the text declares, with their IRIs. The last declaration of a prefix wins.
    pub prefixes: Vec<(String, String)>,
    /// The last BASE that the text declares before the cursor.
    pub base: Option<String>,
    /// Graphs of FROM and of FROM NAMED, in SPARQL's notation.
    pub dataset: [Vec<String>; 2],
    /// Variables of the text with `?`, without duplicates: the nearest before the cursor first, then those after it.
    /// The word that is being written is not included.
    pub variables: Vec<String>,
}

/// The place between two parts of a text. O(length).
#[must_use]
pub fn place(before: &str, after: &str) -> CursorPlace {
    let (mut tokens, open) = tokens(before);
    let at = before.len();
    let iri = open_iri(before, &tokens);
    let nothing = open || iri.is_none() && in_comment(before, tokens.last());
    let from = match iri {
        _ if nothing => at,
        Some(from) => {
            tokens.truncate(tokens.partition_point(|t| t.end <= from));
            from
        }
        None => written(before, &mut tokens),
    };
    let behind = self::tokens(after).0;
    let hidden = hidden(before, after);
    let mut walk = PlaceWalk::new(before, hidden);
    for &token in &tokens {
        walk.token(token);
    }
    let variables = variables(before, &tokens, after, &behind);
    let mut place = walk.place(from);
    if !nothing && matches!(place.slot, Slot::Predicate | Slot::Object) {
        walk.go_on(after, &behind);
    }
    place.patterns.extend(walk.patterns());
    if nothing {
        place.slot = Slot::Nothing;
    }
    place.variables = variables;
    place
}

/// The tokens of a text, and true if it ends inside a string.
fn tokens(text: &str) -> (Vec<Token>, bool) {
    let mut lexer = Lexer::new(text);
    let mut all: Vec<Token> = Vec::new();
    let mut open = false;
    loop {
        let token = lexer.next();
        if token.kind == TokenKind::End {
            break;
        }
        // Three quotes without an end are tokenised as an empty string and the beginning of another one.
        let long = all.last().is_some_and(|l| {
            l.kind == TokenKind::String
                && l.end == token.start
                && l.end - l.start == 2
                && text.as_bytes().get(l.start) == text.as_bytes().get(token.start)
        });
        let string = matches!(
            token.kind,
            TokenKind::Bad(BadToken::String) | TokenKind::String
        );
        if string && long {
            open = true;
            break;
        }
        open = token.kind == TokenKind::Bad(BadToken::String) && token.end == text.len();
        all.push(token);
    }
    (all, open)
}

fn in_comment(text: &str, last: Option<&Token>) -> bool {
    let gap = text.get(last.map_or(0, |t| t.end)..).unwrap_or_default();
    let line = gap.rfind(['\n', '\r']).map_or(gap, |at| &gap[at..]);
    line.contains('#')
}

/// Removes the word that is being written, which touches the cursor, from the tokens. Returns its beginning.
fn written(text: &str, tokens: &mut Vec<Token>) -> usize {
    let is_word = |kind| {
        matches!(
            kind,
            TokenKind::Prefixed
                | TokenKind::Namespace
                | TokenKind::Blank
                | TokenKind::Variable
                | TokenKind::Language
                | TokenKind::Word(_)
                | TokenKind::A
                | TokenKind::Integer
                | TokenKind::Decimal
                | TokenKind::Double
                | TokenKind::Question
                | TokenKind::Bad(BadToken::Label | BadToken::Character)
        )
    };
    match tokens.pop_if(|t| t.end == text.len() && is_word(t.kind)) {
        Some(word) => word.start,
        None => text.len(),
    }
}

/// Beginning of an IRI without its `>`, if one touches the cursor.
fn open_iri(text: &str, tokens: &[Token]) -> Option<usize> {
    let stops = |c: char| c <= ' ' || "<>\"{}|^`".contains(c);
    let from = text.rfind(stops)?;
    if text.as_bytes().get(from) != Some(&b'<') {
        return None;
    }
    // The lexer found `<` there, but no complete IRI.
    let sign = tokens.binary_search_by_key(&from, |t| t.start).ok()?;
    let compared = sign.checked_sub(1).is_some_and(|i| is_operand(tokens[i]));
    let open = tokens[sign].kind == TokenKind::Less && (text.len() > from + 1 || !compared);
    open.then_some(from)
}

/// True after a token that may be compared with `<`.
fn is_operand(token: Token) -> bool {
    matches!(
        token.kind,
        TokenKind::CloseParen
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Double
            | TokenKind::String
    )
}

/// A prefix for variable names that no variable of the text has.
fn hidden(before: &str, after: &str) -> String {
    let longest = |text: &str| {
        let runs = text.split(|c| c != '_').map(str::len);
        runs.max().unwrap_or(0)
    };
    "_".repeat(longest(before).max(longest(after)) + 1)
}

/// The variables without duplicates, the nearest first.
fn variables(before: &str, tokens: &[Token], after: &str, behind: &[Token]) -> Vec<String> {
    /// Most variables that are offered; more would not help.
    const MOST: usize = 200;
    let name = |text: &str, t: &Token| {
        let name = text.get(t.start + 1..t.end).unwrap_or_default();
        format!("?{name}")
    };
    let mut seen = rustc_hash::FxHashSet::default();
    let mut all = Vec::new();
    let is = |t: &&Token| t.kind == TokenKind::Variable;
    let near = tokens.iter().rev().filter(is).map(|t| name(before, t));
    let far = behind.iter().filter(is).map(|t| name(after, t));
    for name in near.chain(far) {
        if all.len() == MOST {
            break;
        }
        if seen.insert(name.clone()) {
            all.push(name);
        }
    }
    all
}
