//! Rewrites a text so that known deviations of `spargebra` from SPARQL's rules for tokens have no effect: one separator
//! between tokens, keywords in upper case, and other names instead of those that it does not parse. A word that is not
//! a keyword is replaced by a character that neither parser accepts.

use crate::keyword::Keyword as K;
use crate::lexer::{Lexer, TokenKind};
use rustc_hash::FxHashMap;

/// The rewritten text. If `masked`, text from `<` to `>` that might be read as comparisons is replaced by other IRIs.
/// `None` if there is a token that cannot be written so that both parsers accept it.
pub(super) fn canonical(text: &str, masked: bool) -> Option<String> {
    let mut lexer = Lexer::new(text);
    let mut prefixes: FxHashMap<&str, &str> = FxHashMap::default();
    let mut out = String::with_capacity(text.len() + 64);
    let mut before = (TokenKind::End, 0);
    let mut declared = "";
    loop {
        let token = lexer.next();
        let slice = &text[token.start..token.end];
        let touches = before.1 == token.start;
        let close = match (before.0, token.kind) {
            (
                TokenKind::Plus | TokenKind::Minus,
                TokenKind::Integer | TokenKind::Double | TokenKind::Decimal,
            ) => touches,
            (TokenKind::CloseParen, TokenKind::CloseReified) => touches,
            (TokenKind::Word(K::Concat | K::Coalesce | K::BNode), TokenKind::OpenParen) => true,
            (TokenKind::OpenParen, TokenKind::CloseParen)
            | (TokenKind::OpenBracket, TokenKind::CloseBracket) => true,
            _ => false,
        };
        if !close {
            out.push(' ');
        }
        match token.kind {
            TokenKind::End => return Some(out),
            TokenKind::Word(K::Unknown) | TokenKind::Bad(_) => out.push('§'),
            TokenKind::Word(word) => out.push_str(word.text()),
            TokenKind::Decimal | TokenKind::Double if slice.starts_with('.') => return None,
            TokenKind::Namespace if before.0 == TokenKind::Word(K::Prefix) => {
                declared = &slice[..slice.len() - 1];
                out.push_str(slice);
            }
            TokenKind::Iri if before.0 == TokenKind::Namespace => {
                prefixes.insert(declared, &slice[1..slice.len() - 1]);
                declared = "";
                out.push_str(slice);
            }
            TokenKind::Prefixed | TokenKind::Namespace => {
                let (name, local) = slice.split_once(':').unwrap_or_default();
                match prefixes.get(name) {
                    None => out.push('§'),
                    Some(iri) if odd(local) || odd(name) => {
                        out.push('<');
                        out.push_str(iri);
                        out.extend(local.split('\\'));
                        out.push('>');
                    }
                    Some(_) => out.push_str(slice),
                }
            }
            // Text from `<` to `>` without spaces is an IRI, but `spargebra` may read it as comparisons.
            TokenKind::Iri
                if masked
                    && slice.contains(['&', '=', ',', ')', '(', '?', '$', ':'])
                    && ends_operand(before.0)
                    && !slice.contains("://") =>
            {
                out.push_str("<http://an-iri/>");
            }
            _ => out.push_str(slice),
        }
        before = (token.kind, token.end);
    }
}

/// True for names that `spargebra` does not parse.
fn odd(name: &str) -> bool {
    let runs = name
        .split(|c: char| c != '.')
        .filter(|run| !run.is_empty())
        .count();
    runs > 1 || name.contains("\\.") || name.chars().any(|c| c > '\u{ffff}')
}

fn ends_operand(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Variable
            | TokenKind::CloseParen
            | TokenKind::String
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Double
            | TokenKind::Iri
            | TokenKind::Prefixed
            | TokenKind::Namespace
            | TokenKind::Word(K::True | K::False)
    )
}
