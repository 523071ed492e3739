//! Triple terms with variables in patterns (SPARQL 1.2): the whole triple term gets a slot, from whose value its parts
//! are extracted.

use super::*;
use jindou_model::scope;

impl Translator {
    /// Adds operators that match the triple terms in `self.open` part by part, and bind their variables. Each solution
    /// of the node yields at most one, since a triple term determines its parts.
    pub(super) fn opened(
        &mut self,
        mut node: LogicalNode,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
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
                    PatternTerm::Term(bytes) => {
                        let to = self.hidden("part")?;
                        node = LogicalNode::join(
                            node.extend(to, of(function)),
                            LogicalNode::values(vec![to], vec![vec![Some(bytes)]]),
                        );
                    }
                    PatternTerm::Slot(to)
                        if node.possible.has(to) || *place == PatternGraphTerm::Slot(to) =>
                    {
                        let known = Variable::new_unchecked("known");
                        let same = Expression::SameTerm(
                            Arc::new(call(function)),
                            Arc::new(known.clone().into()),
                        );
                        let both = [(name.clone(), whole), (known, to)];
                        node = node.filter(vec![Arc::new(Expr::plain(same, both))]);
                    }
                    PatternTerm::Slot(to) => node = node.extend(to, of(function)),
                }
            }
        }
        Ok(node)
    }
}

/// Returns true if a pattern of a template contains a blank node.
pub(super) fn has_blank(t: &TriplePattern) -> bool {
    [&t.subject, &t.object].into_iter().any(|end| match end {
        TermPattern::BlankNode(_) => true,
        TermPattern::Triple(t) => has_blank(t),
        _ => false,
    })
}
