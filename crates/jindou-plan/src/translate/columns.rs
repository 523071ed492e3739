//! Variables and blank nodes of a CONSTRUCT template.

use super::*;

/// Numbers the variables that a template reads, which become output columns, and its blank nodes.
#[derive(Default)]
pub(super) struct TemplateColumns {
    pub variables: Vec<Variable>,
    places: FxHashMap<Variable, usize>,
    blanks: FxHashMap<BlankNode, usize>,
}

impl TemplateColumns {
    pub(super) fn triple(&mut self, p: &TriplePattern) -> [TemplateTerm; 3] {
        let predicate = match &p.predicate {
            NamedNodePattern::NamedNode(n) => TemplateTerm::Term(n.canonical()),
            NamedNodePattern::Variable(v) => self.column(v),
        };
        [self.term(&p.subject), predicate, self.term(&p.object)]
    }

    pub(super) fn column(&mut self, v: &Variable) -> TemplateTerm {
        let place = self.places.get(v).copied();
        TemplateTerm::Column(place.unwrap_or_else(|| {
            let place = self.variables.len();
            self.variables.push(v.clone());
            self.places.insert(v.clone(), place);
            place
        }))
    }

    pub(super) fn term(&mut self, t: &TermPattern) -> TemplateTerm {
        match t {
            TermPattern::NamedNode(n) => TemplateTerm::Term(n.canonical()),
            TermPattern::Literal(l) => TemplateTerm::Term(l.canonical().clone()),
            TermPattern::Variable(v) => self.column(v),
            TermPattern::BlankNode(b) => {
                let next = self.blanks.len();
                TemplateTerm::Blank(*self.blanks.entry(b.clone()).or_insert(next))
            }
            TermPattern::Triple(t) => TemplateTerm::Triple(Box::new(self.triple(t))),
        }
    }
}
