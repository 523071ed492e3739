//! CONSTRUCT's template.

use super::*;

/// The columns that a template reads, and its blank nodes.
#[derive(Default)]
pub(super) struct Columns {
    pub variables: Vec<Variable>,
    blanks: Vec<String>,
}

impl Columns {
    pub(super) fn triple(&mut self, p: &TriplePattern) -> [TemplateTerm; 3] {
        let predicate = match &p.predicate {
            NamedNodePattern::NamedNode(n) => TemplateTerm::Term(iri(n.as_str())),
            NamedNodePattern::Variable(v) => self.column(v),
        };
        [self.term(&p.subject), predicate, self.term(&p.object)]
    }

    pub(super) fn column(&mut self, v: &Variable) -> TemplateTerm {
        let at = self.variables.iter().position(|x| x == v);
        TemplateTerm::Column(at.unwrap_or_else(|| {
            self.variables.push(v.clone());
            self.variables.len() - 1
        }))
    }

    pub(super) fn term(&mut self, t: &TermPattern) -> TemplateTerm {
        match t {
            TermPattern::NamedNode(n) => TemplateTerm::Term(iri(n.as_str())),
            TermPattern::Literal(l) => TemplateTerm::Term(literal(l)),
            TermPattern::Variable(v) => self.column(v),
            TermPattern::BlankNode(b) => {
                let at = self.blanks.iter().position(|x| x == b.as_str());
                TemplateTerm::Blank(at.unwrap_or_else(|| {
                    self.blanks.push(b.as_str().to_owned());
                    self.blanks.len() - 1
                }))
            }
            TermPattern::Triple(t) => TemplateTerm::Triple(Box::new(self.triple(t))),
        }
    }
}
