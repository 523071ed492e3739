//! Triple terms with variables in patterns (SPARQL 1.2): the whole term is one slot, and its parts are taken out of it.

use super::*;
use jindou_model::scope;

impl Translator {
    /// The node with the triple terms opened that its patterns stand for. A triple term is the same as its three parts, so
    /// solutions stay as many.
    pub(super) fn opened(
        &mut self,
        mut node: Node,
        env: &mut Env,
        place: &Place,
    ) -> Result<Node, Reason> {
        while let Some((whole, t)) = self.open.pop() {
            if scope::is_over() {
                return Err(GIVEN_UP.into());
            }
            let name = Variable::new_unchecked("triple");
            let call = |f: Function| Expression::FunctionCall(f, vec![name.clone().into()]);
            let of = |f: Function| Arc::new(Expr::plain(call(f), [(name.clone(), whole)]));
            node = node.filter(vec![of(Function::IsTriple)]);
            let predicate = match &t.predicate {
                NamedNodePattern::NamedNode(n) => n.clone().into(),
                NamedNodePattern::Variable(v) => v.clone().into(),
            };
            for (function, part) in [
                (Function::Subject, &t.subject),
                (Function::Predicate, &predicate),
                (Function::Object, &t.object),
            ] {
                match self.end(part, env)? {
                    End::Term(bytes) => {
                        let to = self.hidden("part")?;
                        node = Node::join(
                            node.extend(to, of(function)),
                            Node::values(vec![to], vec![vec![Some(bytes)]]),
                        );
                    }
                    End::Slot(to) if node.possible.has(to) || *place == Place::Slot(to) => {
                        let known = Variable::new_unchecked("known");
                        let same = Expression::SameTerm(
                            Arc::new(call(function)),
                            Arc::new(known.clone().into()),
                        );
                        let both = [(name.clone(), whole), (known, to)];
                        node = node.filter(vec![Arc::new(Expr::plain(same, both))]);
                    }
                    End::Slot(to) => node = node.extend(to, of(function)),
                }
            }
        }
        Ok(node)
    }
}

/// True if a pattern of a template has a blank node somewhere.
pub(super) fn has_blank(t: &TriplePattern) -> bool {
    [&t.subject, &t.object].into_iter().any(|end| match end {
        TermPattern::BlankNode(_) => true,
        TermPattern::Triple(t) => has_blank(t),
        _ => false,
    })
}
