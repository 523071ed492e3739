//! The predicate of a triple that is being read: a single name, or a property path.

use crate::lexer::TokenKind;

/// A predicate or path, as far as it has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct PartialPath {
    parts: Vec<PathPart>,
    /// Number of open brackets.
    depth: usize,
    /// True if the last operand is complete, so that an operator or the path's end may follow.
    whole: bool,
}

#[derive(Clone, Debug)]
struct PathPart {
    kind: TokenKind,
    text: String,
}

impl PartialPath {
    /// True if a name, or something that precedes one, must follow.
    pub(super) fn wants_operand(&self) -> bool {
        !self.whole
    }

    /// Processes an operator or bracket. False if it does not belong to the path.
    pub(super) fn sign(&mut self, kind: TokenKind, text: &str) -> bool {
        match kind {
            TokenKind::OpenParen if !self.whole => self.depth += 1,
            TokenKind::CloseParen if self.depth > 0 => {
                self.depth -= 1;
                self.whole = true;
            }
            TokenKind::Caret | TokenKind::Bang if !self.whole => {}
            // `^^` before a name would be a double inverse, which does not occur in practice.
            TokenKind::Slash | TokenKind::Pipe if self.whole => self.whole = false,
            TokenKind::Star | TokenKind::Plus | TokenKind::Question if self.whole => {}
            _ => return false,
        }
        self.push(kind, text);
        true
    }

    /// Processes a name.
    pub(super) fn name(&mut self, kind: TokenKind, text: &str) {
        self.push(kind, text);
        self.whole = true;
    }

    /// True if the path may end here.
    pub(super) fn is_done(&self) -> bool {
        self.whole && self.depth == 0
    }

    fn push(&mut self, kind: TokenKind, text: &str) {
        let text = text.to_owned();
        self.parts.push(PathPart { kind, text });
    }

    pub(super) fn text(&self) -> String {
        text(&self.parts)
    }

    /// The path that leads from the subject to the node at which the next name starts, and true if that name is an
    /// inverse. For example, the path is `a/b` in `a/b/`, none in `a|`, and `x/c` in `x/(a/b|c/`.
    pub(super) fn so_far(&self) -> (Option<String>, bool) {
        // For each open bracket, and for the outermost level first, the range of the steps before the current one.
        let mut levels: Vec<(usize, usize)> = vec![(0, 0)];
        for (i, part) in self.parts.iter().enumerate() {
            match part.kind {
                TokenKind::OpenParen => levels.push((i + 1, i + 1)),
                TokenKind::CloseParen if levels.len() > 1 => {
                    levels.pop();
                }
                TokenKind::Slash => {
                    if let Some(level) = levels.last_mut() {
                        level.1 = i;
                    }
                }
                TokenKind::Pipe => {
                    if let Some(level) = levels.last_mut() {
                        *level = (i + 1, i + 1);
                    }
                }
                _ => {}
            }
        }
        let steps: Vec<String> = levels
            .iter()
            .filter(|(from, to)| to > from)
            .map(|&(from, to)| text(&self.parts[from..to]))
            .collect();
        let inverse = self
            .parts
            .iter()
            .rev()
            .take_while(|p| matches!(p.kind, TokenKind::Caret | TokenKind::OpenParen))
            .filter(|p| p.kind == TokenKind::Caret)
            .count()
            % 2
            == 1;
        let path = (!steps.is_empty()).then(|| steps.join("/"));
        (path, inverse)
    }
}

fn text(parts: &[PathPart]) -> String {
    parts.iter().map(|p| p.text.as_str()).collect()
}
