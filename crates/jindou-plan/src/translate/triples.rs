//! Triple terms with variables in patterns (SPARQL 1.2): the whole term is one slot, and its parts are taken out of it.

use super::*;

impl Translator<'_> {
    /// The node with the triple terms opened that its patterns stand for. A triple term is the same as its three parts, so
    /// solutions stay as many.
    pub(super) fn opened(
        &mut self,
        mut node: Node,
        env: &mut Env,
        place: &Place,
    ) -> Result<Node, Reason> {
        while let Some((whole, t)) = self.open.pop() {
            if self.watch.is_over() {
                return Err(GIVEN_UP.into());
            }
            let name = Variable::new_unchecked("triple");
            let of = |f: Function| Expr {
                expression: Expression::FunctionCall(f, vec![name.clone().into()]),
                variables: vec![(name.clone(), whole)],
                per_row: false,
                base_iri: None,
                functions: crate::Functions::new(),
            };
            node = node.filter(vec![Arc::new(of(Function::IsTriple))]);
            let predicate = match &t.predicate {
                NamedNodePattern::NamedNode(n) => n.clone().into(),
                NamedNodePattern::Variable(v) => v.clone().into(),
            };
            for (function, part) in [
                (Function::Subject, &t.subject),
                (Function::Predicate, &predicate),
                (Function::Object, &t.object),
            ] {
                let value = of(function);
                match self.end(part, env)? {
                    End::Term(bytes) => {
                        let to = self.hidden("part")?;
                        node = Node::join(
                            node.extend(to, Arc::new(value)),
                            Node::values(vec![to], vec![vec![Some(bytes)]]),
                        );
                    }
                    End::Slot(to) if node.possible.has(to) || *place == Place::Slot(to) => {
                        let known = Variable::new_unchecked("known");
                        let mut same = value;
                        same.expression = Expression::SameTerm(
                            Box::new(same.expression),
                            Box::new(known.clone().into()),
                        );
                        same.variables.push((known, to));
                        node = node.filter(vec![Arc::new(same)]);
                    }
                    End::Slot(to) => node = node.extend(to, Arc::new(value)),
                }
            }
        }
        Ok(node)
    }
}

/// A triple term without variables.
pub(super) fn ground_triple(t: &TriplePattern) -> Option<Vec<u8>> {
    fn of(t: &TermPattern) -> Option<oxrdf::Term> {
        Some(match t {
            TermPattern::NamedNode(n) => n.clone().into(),
            TermPattern::Literal(l) => l.clone().into(),
            TermPattern::Triple(t) => triple(t)?.into(),
            TermPattern::BlankNode(_) | TermPattern::Variable(_) => return None,
        })
    }
    fn triple(t: &TriplePattern) -> Option<oxrdf::Triple> {
        let TermPattern::NamedNode(s) = &t.subject else {
            return None;
        };
        let NamedNodePattern::NamedNode(p) = &t.predicate else {
            return None;
        };
        Some(oxrdf::Triple::new(s.clone(), p.clone(), of(&t.object)?))
    }
    Some(term::encode(&triple(t)?.into()))
}

/// True if a pattern of a template has a blank node somewhere.
pub(super) fn has_blank(t: &TriplePattern) -> bool {
    [&t.subject, &t.object].into_iter().any(|end| match end {
        TermPattern::BlankNode(_) => true,
        TermPattern::Triple(t) => has_blank(t),
        _ => false,
    })
}
