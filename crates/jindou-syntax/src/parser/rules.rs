//! Checks beyond the grammar: names, scopes, numbers of arguments.

use super::fault::shortened;
use super::{Parser, RuleHalt};
use crate::advice::{Extension, QUAD_TEMPLATE, REPEATED_PATH, extension_of_name, nearest};
use crate::keyword::Keyword as K;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::prefixes::{COMMON_PREFIXES, common};
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D};
use std::ops::Range;

/// Largest number of tokens of a statement that are searched for its first variable.
const MOST_TOKENS: usize = 1_000;

impl Parser<'_, '_> {
    /// Reports a prefix that is declared without its colon.
    pub(super) fn prefix_without_colon(&mut self, token: Token) {
        let d = self.diagnostic(
            token.range(),
            D::Unexpected,
            "a prefix ends with a colon".into(),
        );
        let at = token.end;
        let d = self.with(d, format!("write {}:", self.slice(token)), at..at, ":");
        self.fault(d);
    }

    pub(super) fn comma_in_select(&mut self) {
        let token = self.token;
        let d = self.diagnostic(
            token.range(),
            D::Unexpected,
            "SELECT lists its variables without commas".into(),
        );
        let d = self.with(d, "remove the comma", token.range(), "");
        self.fault(d);
    }

    pub(super) fn shared_label(&mut self, label: &str, before: Token, token: Token) {
        let (line, _) = self.place_of(before);
        let message = format!(
            "the blank node _:{} is already used in another group or update, at line {line}",
            shortened(label)
        );
        let remedy = "a label is local to one group; use a variable to refer to the same node";
        self.report(token.range(), D::BlankNode, message, remedy);
    }

    pub(super) fn misplaced_aggregate(&mut self, token: Token, word: K, why: &str) {
        let message = format!("the aggregate {} is not allowed {why}", word.text());
        let remedy = match why {
            "inside another aggregate" => "compute the inner one first, in { SELECT … }",
            _ => {
                "aggregates are allowed in SELECT, HAVING and ORDER BY; for a condition on one write HAVING (…)"
            }
        };
        self.report(token.range(), D::Aggregate, message, remedy);
    }

    pub(super) fn wrong_arguments(
        &mut self,
        name: Token,
        word: K,
        given: usize,
        least: usize,
        most: usize,
    ) {
        let count = |n: usize| match n {
            0 => "no argument".to_owned(),
            1 => "one argument".to_owned(),
            n => format!("{n} arguments"),
        };
        let takes = match (least, most) {
            (a, b) if a == b => count(a),
            (a, usize::MAX) => format!("at least {}", count(a)),
            (a, b) => format!("{a} to {}", count(b)),
        };
        let d = self.diagnostic(
            name.start..self.behind,
            D::Arguments,
            format!(
                "{} takes {takes}, but {given} {} given",
                word.text(),
                if given == 1 { "is" } else { "are" }
            ),
        );
        self.fault(d);
    }

    pub(super) fn bad_escape(&mut self, range: Range<usize>, letter: Option<char>) {
        let d = match letter {
            Some('u' | 'U') => self
                .diagnostic(range, D::Character, "this escape is not a character".into())
                .suggest(
                    "write \\u and four, or \\U and eight hexadecimal digits, not a surrogate",
                ),
            _ => {
                let text = shortened(&self.text[range.clone()]);
                let d = self.diagnostic(
                    range.clone(),
                    D::Character,
                    format!("unknown escape {text}"),
                );
                let at = range.start;
                self.with(
                    d,
                    "write \\\\ for a backslash; the other escapes are \\t \\n \\r \\b \\f \\\" \\'",
                    at..at,
                    "\\",
                )
            }
        };
        self.fault(d);
    }

    pub(super) fn unknown_prefix(&mut self, token: Token, name: &str) {
        let shown = shortened(name);
        let range = token.start..token.start + name.len() + 1;
        let mut d = self.diagnostic(
            range.clone(),
            D::UnknownPrefix,
            format!("the prefix {shown}: is not declared"),
        );
        let local = self.slice(token).get(name.len() + 1..).unwrap_or("");
        if let Some(extension) = extension_of_name(name, local) {
            let message = format!(
                "the prefix {shown}: is not declared; {}",
                extension.message()
            );
            let d = self.diagnostic(range, D::UnknownPrefix, message);
            let other = format!("if it is another prefix, declare it: PREFIX {shown}: <http://…>");
            self.fault(d.suggest(extension.instead).suggest(other));
            return;
        }
        let known = common(name).or_else(|| common(&name.to_ascii_lowercase()));
        let others: Vec<&str> = self
            .prefixes
            .names()
            .chain(self.options.prefixes.iter().map(|p| p.0.as_str()))
            .chain(self.options.table.iter().flat_map(|t| t.names()))
            .collect();
        if let Some(iri) = known {
            let line = format!("PREFIX {name}: <{iri}>");
            d = self.with(
                d,
                format!("did you mean {line}?"),
                0..0,
                format!("{line}\n"),
            );
        } else if let Some(other) = nearest(name, others.iter().copied()) {
            d = self.with(
                d,
                format!("did you mean {other}:?"),
                range,
                format!("{other}:"),
            );
        } else if let Some((other, iri)) =
            nearest(name, COMMON_PREFIXES.iter().map(|p| p.0)).and_then(|n| Some((n, common(n)?)))
        {
            let declared = match self.options.common_prefixes {
                true => String::new(),
                false => format!(" It is declared by PREFIX {other}: <{iri}>"),
            };
            d = self.with(
                d,
                format!("did you mean {other}:?{declared}"),
                range,
                format!("{other}:"),
            );
        } else {
            d = d.suggest(format!(
                "declare it at the beginning: PREFIX {shown}: <http://…>"
            ));
        }
        self.fault(d);
    }

    /// Reports a call of an unknown function. Does nothing after other errors, since the IRI may then not be the
    /// intended one.
    pub(super) fn check_call(&mut self, name: Token, iri: &str, arguments: usize) {
        let Some(calls) = &self.options.calls else {
            return;
        };
        if self.faults.iter().all(|f| f.kind == D::Function)
            && let Some(why) = calls.fault(iri, arguments)
        {
            let d = self.diagnostic(name.range(), D::Function, why);
            self.fault(d);
        }
    }

    pub(super) fn bad_iri(&mut self, token: Token, iri: &str, why: &str) {
        let shown = shortened(iri);
        let relative = !iri.contains(':') || why.contains("scheme");
        if relative && self.base.is_none() {
            let message = format!("the IRI <{shown}> is relative, but there is no base");
            let remedy =
                "write the whole IRI with its scheme, like <http://…>, or declare BASE <http://…>";
            return self.report(token.range(), D::Iri, message, remedy);
        }
        let why = super::terms::decapitalised(why);
        let d = self.diagnostic(
            token.range(),
            D::Iri,
            format!("<{shown}> is not an IRI: {why}"),
        );
        self.fault(d);
    }

    pub(super) fn annotated_path(&mut self, at: Token) -> RuleHalt {
        let message = "a triple with a path as its predicate cannot be annotated";
        let d = self.diagnostic(at.range(), D::NotSparql, message.into());
        self.halt(d.suggest("annotate a triple with a plain predicate"))
    }

    /// The message for an extension of another engine.
    pub(super) fn extension(&self, range: Range<usize>, extension: &Extension) -> Diagnostic {
        let d = self.diagnostic(range, D::NotSparql, extension.message());
        d.suggest(extension.instead)
    }

    /// Reports a clause such as FILTER in the template of CONSTRUCT, if one begins here.
    pub(super) fn clause_in_template(&mut self) -> Option<RuleHalt> {
        let TokenKind::Word(word) = self.kind() else {
            return None;
        };
        let token = self.token;
        let d = match word {
            K::Graph => self.extension(token.range(), &QUAD_TEMPLATE),
            K::Filter | K::Optional | K::Bind | K::Values | K::Minus | K::Service | K::Union => {
                let message = format!("the template of CONSTRUCT has {} in it", word.text());
                let d = self.diagnostic(token.range(), D::Unexpected, message);
                d.suggest(
                    "write triples in the template, and everything else in the group after WHERE",
                )
            }
            _ => return None,
        };
        Some(self.halt(d))
    }

    /// Reports `{n,m}` after a step of a path, which begins at `start`; `None` if there is something else here.
    pub(super) fn repeated_path(&mut self, start: usize) -> Option<RuleHalt> {
        const FEW: usize = 8;
        const LONGEST: usize = 40;
        let open = self.token;
        let rest = self.text.get(open.end..)?;
        let close = rest.bytes().take(LONGEST).position(|b| b == b'}')?;
        let inside = rest.get(..close)?;
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let number = |s: &str| match s.trim() {
            "" => Some(None),
            s => s.parse::<usize>().ok().map(Some),
        };
        let (least, most) = (number(least)?, number(most)?);
        if least.is_none() && most.is_none() {
            return None;
        }
        let d = self.extension(start..open.end + inside.len() + 1, &REPEATED_PATH);
        let least = least.unwrap_or(0);
        let step = self.text.get(start..self.behind)?;
        let mut steps = vec![step.to_owned(); least.min(FEW)];
        match most {
            Some(most) => {
                let more = most.saturating_sub(least).min(FEW);
                steps.resize(steps.len() + more, format!("{step}?"));
            }
            None => match steps.last_mut() {
                Some(last) => last.push('+'),
                None => steps.push(format!("{step}*")),
            },
        }
        let is_short = most.unwrap_or(least).max(least) <= FEW && step.len() <= 100;
        let d = match is_short && !steps.is_empty() {
            true => {
                let steps = steps.join("/");
                let range = start..open.end + inside.len() + 1;
                self.with(d, format!("here: {steps}"), range, steps)
            }
            false => d,
        };
        Some(self.halt(d))
    }

    pub(super) fn redefined(&mut self, token: Token, by: &str) {
        let name = shortened(self.slice(token));
        let message = format!("{name} already has a value, so {by} cannot assign it again");
        self.report(token.range(), D::Redefined, message, "choose another name");
    }

    pub(super) fn redefined_in_lateral(&mut self, token: Token, v: u32) {
        let name = &self.variables[v as usize];
        let message = format!("{name} already has a value, so LATERAL cannot assign it again");
        self.report(token.range(), D::Redefined, message, "choose another name");
    }

    pub(super) fn selected_before(&mut self, token: Token) {
        let name = shortened(self.slice(token));
        let message = format!("{name} is already selected, so SELECT cannot assign it a value");
        self.report(token.range(), D::Redefined, message, "choose another name");
    }

    pub(super) fn star_of_groups(&mut self, star: Token) {
        let message = "SELECT * cannot be combined with GROUP BY";
        let remedy = "list the grouping variables and the aggregates";
        self.report(star.range(), D::NotGrouped, message, remedy);
    }

    pub(super) fn not_grouped(&mut self, token: Token) {
        // After another error, a GROUP BY or an aggregate may have been skipped, so this error might be wrong.
        if !self.faults.iter().all(|f| f.kind == D::NotGrouped) {
            return;
        }
        let name = shortened(self.slice(token));
        let message = format!("{name} is neither grouped nor aggregated");
        let remedy = format!(
            "add {name} to GROUP BY, or pick one value of the group: (SAMPLE({name}) AS …)"
        );
        self.report(token.range(), D::NotGrouped, message, remedy);
    }

    pub(super) fn twice_in_values(&mut self, token: Token) {
        let name = shortened(self.slice(token));
        let message = format!("{name} is listed twice in VALUES");
        self.report(token.range(), D::Values, message, "remove one of them");
    }

    pub(super) fn wrong_row(&mut self, range: Range<usize>, given: usize, wanted: usize) {
        let s = if wanted == 1 { "" } else { "s" };
        let are = if given == 1 { "is" } else { "are" };
        let message = format!(
            "this row should have {wanted} value{s}, one for each variable, but {given} {are} given"
        );
        self.report(
            range,
            D::Values,
            message,
            "write UNDEF where there is no value",
        );
    }

    pub(super) fn disorder(&mut self, token: Token, word: K, before: K) {
        let name = |k: K| match k {
            K::Group => "GROUP BY",
            K::Order => "ORDER BY",
            k => k.text(),
        };
        let message = format!("{} stands before {}", name(word), name(before));
        let remedy = "the order is WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET, VALUES";
        self.report(token.range(), D::Order, message, remedy);
    }

    pub(super) fn too_large(&mut self, token: Token, word: K) {
        let message = format!("the number of {} is too large", word.text());
        let d = self.diagnostic(token.range(), D::Number, message);
        self.fault(d);
    }

    pub(super) fn blank_in_delete(&mut self, at: Token) {
        let message = "blank nodes are not allowed in DELETE";
        let remedy = "use a variable: DELETE { ?x … } WHERE { ?x … }";
        self.report(at.range(), D::BlankNode, message, remedy);
    }

    /// The first variable of the statement that begins at a token, up to its dot. Each object of the statement may
    /// request it, so the last result is cached.
    fn variable_after(&mut self, at: Token) -> Option<Token> {
        if let Some((start, found)) = self.variable_after
            && start == at.start
        {
            return found;
        }
        let mut lexer = Lexer::new(self.text);
        lexer.go_on_from(at.start);
        let mut found = None;
        for _ in 0..MOST_TOKENS {
            let token = lexer.next();
            match token.kind {
                TokenKind::Variable => found = Some(token),
                TokenKind::Dot | TokenKind::CloseBrace | TokenKind::End => {}
                _ => continue,
            }
            break;
        }
        self.variable_after = Some((at.start, found));
        found
    }

    pub(super) fn not_data(&mut self, at: Token, literal: bool, verb: &str) {
        if literal {
            let message = "the subject of a triple must be an IRI or a blank node";
            let d = self.diagnostic(at.range(), D::NotConstant, message.into());
            return self.fault(d);
        }
        let range = self.variable_after(at).unwrap_or(at).range();
        let message = format!("{verb} takes constants, not variables");
        let remedy = format!(
            "write {} {{ … }} WHERE {{ … }} to use variables",
            &verb[..6]
        );
        self.report(range, D::NotConstant, message, remedy);
    }
}
