//! The position of a cursor in a query that is being written: the kind of term expected there, and what the text says
//! about it.
//!
//! The text may be anything: there are no errors and no recursion, and time and memory are linear in the text.
//!
//! | module | job |
//! |---|---|
//! | `mod` | the word at the cursor, the prologue, the result |
//! | `walk` | tokens to triple patterns, group by group |
//! | `path` | the predicate or property path that is being read |

mod path;
mod walk;

#[cfg(test)]
mod tests;

use crate::lexer::{BadToken, Lexer, Token, TokenKind};
use walk::PlaceWalk;

/// The kind of term expected at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// No term: inside a comment, a string, inline data or another endpoint's pattern.
    Nothing,
    /// A keyword of SPARQL.
    Keyword,
    /// The name of a prefix that is being declared, with its IRI.
    Prefix,
    /// A variable: in the list of SELECT, or after VALUES.
    Variable,
    /// Part of an expression: a variable or a function.
    Expression,
    /// The name of a graph.
    Graph,
    /// A triple's subject, or a keyword with which a clause of the group begins.
    Subject,
    /// A triple's predicate.
    Predicate,
    /// A triple's object.
    Object,
}

/// A triple pattern in SPARQL syntax. Variables begin with `?`; nodes without a name become variables that do not occur
/// in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The subject.
    pub subject: String,
    /// The predicate, or a property path.
    pub predicate: String,
    /// The object.
    pub object: String,
    /// The graph of the group that contains the pattern; `None` outside GRAPH.
    pub graph: Option<String>,
}

/// The position of a cursor in a query.
#[derive(Clone, Debug)]
pub struct CursorPlace {
    /// The kind of term expected at the cursor.
    pub slot: Slot,
    /// Byte offset at which the word that is being written begins; the cursor's own if there is no such word.
    pub from: usize,
    /// The subject of the triple at the cursor; `None` if it has no name or is unknown.
    pub subject: Option<String>,
    /// If an object is expected: the predicate or path of its triple.
    pub predicate: Option<String>,
    /// True if the expected predicate follows `^`, so that the subject is at the end of its edges.
    pub inverse: bool,
    /// The graph of the group at the cursor; `None` outside GRAPH.
    pub graph: Option<String>,
    /// Patterns that restrict the terms at the cursor: those of all groups around it, before and after it.
    pub patterns: Vec<Pattern>,
    /// Prefixes that the text declares before the cursor, with their IRIs. The last declaration of a prefix counts.
    pub prefixes: Vec<(String, String)>,
    /// The last BASE before the cursor.
    pub base: Option<String>,
    /// Graphs of FROM, and graphs of FROM NAMED, in SPARQL syntax.
    pub dataset: [Vec<String>; 2],
    /// Variables of the text with `?`, without duplicates: first those before the cursor, the nearest first, then those
    /// after it. The word that is being written is not included.
    pub variables: Vec<String>,
}

/// The position of a cursor between `before` and `after`. O(length).
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
        // A long string without an end is split into an empty string and the beginning of another one.
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

/// Removes the word that is being written, which ends at the cursor, from the tokens. Returns the offset of its start.
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

/// Offset of the `<` of an IRI without its `>`, if one ends at the cursor.
fn open_iri(text: &str, tokens: &[Token]) -> Option<usize> {
    let stops = |c: char| c <= ' ' || "<>\"{}|^`".contains(c);
    let from = text.rfind(stops)?;
    if text.as_bytes().get(from) != Some(&b'<') {
        return None;
    }
    // If there is an IRI, the lexer has found a `<` sign there, since the IRI is incomplete.
    let sign = tokens.binary_search_by_key(&from, |t| t.start).ok()?;
    let compared = sign.checked_sub(1).is_some_and(|i| is_operand(tokens[i]));
    let open = tokens[sign].kind == TokenKind::Less && (text.len() > from + 1 || !compared);
    open.then_some(from)
}

/// True for a token after which `<` may be a comparison.
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

/// A prefix for names of generated variables, with which no variable of the text begins.
fn hidden(before: &str, after: &str) -> String {
    let longest = |text: &str| {
        let runs = text.split(|c| c != '_').map(str::len);
        runs.max().unwrap_or(0)
    };
    "_".repeat(longest(before).max(longest(after)) + 1)
}

/// The variables without duplicates: first those before the cursor, the nearest first, then those after it.
fn variables(before: &str, tokens: &[Token], after: &str, behind: &[Token]) -> Vec<String> {
    /// Largest number of returned variables; more would not help in a list of completions.
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
