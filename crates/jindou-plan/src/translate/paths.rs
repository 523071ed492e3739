//! Property paths: patterns, joins and unions for paths without `?`, `*` and `+` (SPARQL 1.1 §18.2.2.4), and path nodes
//! for the others.

use super::*;

/// Longest sequence that becomes one path node; engines may reject longer ones.
const LONGEST: usize = 200;
/// Largest group of patterns that is searched for sequences.
const MOST: usize = 200;

/// A triple pattern whose predicate is an IRI or a path.
struct PathPattern {
    ends: [TermPattern; 2],
    path: PropertyPathExpression,
    is_path: bool,
}

/// Restores sequence paths in a join. The parser translates a sequence into several patterns connected by a blank node;
/// a blank node that occurs in only two patterns, one of which is a path, can be turned back into a sequence. `None` if
/// there is no such blank node. `p` must be the whole join, so that it contains all patterns with its blank nodes.
pub(super) fn sequences(p: &GraphPattern) -> Option<Arc<GraphPattern>> {
    let mut open = vec![p];
    loop {
        match open.pop()? {
            GraphPattern::Join { left, right } => open.extend([&**left, &**right]),
            GraphPattern::Path { .. } => break,
            _ => {}
        }
    }
    let (mut legs, mut triples, mut others) = (vec![], vec![], vec![]);
    let GraphPattern::Join { left, right } = p else {
        return None;
    };
    let mut open = vec![right, left];
    while let Some(p) = open.pop() {
        match &**p {
            GraphPattern::Join { left, right } => open.extend([right, left]),
            GraphPattern::Path {
                subject,
                path,
                object,
            } => legs.push(PathPattern {
                ends: [subject.clone(), object.clone()],
                path: path.clone(),
                is_path: true,
            }),
            GraphPattern::Bgp { patterns } => {
                for t in patterns {
                    match &t.predicate {
                        NamedNodePattern::NamedNode(n) => legs.push(PathPattern {
                            ends: [t.subject.clone(), t.object.clone()],
                            path: n.clone().into(),
                            is_path: false,
                        }),
                        NamedNodePattern::Variable(_) => triples.push(t.clone()),
                    }
                }
            }
            _ => others.push(p),
        }
        if legs.len() + triples.len() > MOST {
            return None;
        }
    }
    let before = legs.len();
    while let Some((a, b)) = pair(&legs, &triples) {
        let second = legs.swap_remove(b.0);
        let first = legs.swap_remove(a.0);
        // The patterns are reversed so that the blank node is the object of the first and the subject of the second.
        let first = turned(first, a.1 == 0);
        let second = turned(second, b.1 == 1);
        let ([start, _], [_, end]) = (first.ends, second.ends);
        legs.push(PathPattern {
            ends: [start, end],
            path: PropertyPathExpression::Sequence(Arc::new(first.path), Arc::new(second.path)),
            is_path: true,
        });
    }
    if legs.len() == before {
        return None;
    }
    let mut parts = vec![];
    for leg in legs {
        let [subject, object] = leg.ends;
        match leg.path {
            PropertyPathExpression::NamedNode(n) => triples.push(TriplePattern {
                subject,
                predicate: n.into(),
                object,
            }),
            path => parts.push(GraphPattern::Path {
                subject,
                path,
                object,
            }),
        }
    }
    if !triples.is_empty() {
        parts.insert(0, GraphPattern::Bgp { patterns: triples });
    }
    let mut parts: Vec<_> = parts.into_iter().map(Arc::new).collect();
    parts.extend(others.into_iter().cloned());
    let join = |left, right| Arc::new(GraphPattern::Join { left, right });
    parts.into_iter().reduce(join)
}

/// Finds two patterns connected by a blank node that occurs nowhere else. For each of them, returns its position and
/// which end the blank node is (0 for the subject, 1 for the object).
#[allow(clippy::type_complexity, reason = "two places")]
fn pair(
    legs: &[PathPattern],
    triples: &[TriplePattern],
) -> Option<((usize, usize), (usize, usize))> {
    let mut at: FxHashMap<&BlankNode, Vec<(usize, usize)>> = FxHashMap::default();
    for (i, leg) in legs.iter().enumerate() {
        for (e, end) in leg.ends.iter().enumerate() {
            for_each_blank(end, &mut |b| at.entry(b).or_default().push((i, e)));
            if matches!(end, TermPattern::Triple(_)) {
                // A blank node inside a triple term is not an end: counting it twice excludes it.
                for_each_blank(end, &mut |b| at.entry(b).or_default().push((i, e)));
            }
        }
    }
    for t in triples {
        for end in [&t.subject, &t.object] {
            let out = &mut |b| at.entry(b).or_default().extend([(0, 0); 3]);
            for_each_blank(end, out);
        }
    }
    let mut found: Vec<((usize, usize), (usize, usize))> = at
        .into_values()
        .filter_map(|places| match places.as_slice() {
            &[a, b] if a.0 != b.0 && (legs[a.0].is_path || legs[b.0].is_path) => Some((a, b)),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found.pop()
}

fn for_each_blank<'p>(end: &'p TermPattern, f: &mut dyn FnMut(&'p BlankNode)) {
    match end {
        TermPattern::BlankNode(b) => f(b),
        TermPattern::Triple(t) => {
            for_each_blank(&t.subject, f);
            for_each_blank(&t.object, f);
        }
        _ => {}
    }
}

/// The pattern, with exchanged ends and the inverse path if `back`.
fn turned(leg: PathPattern, back: bool) -> PathPattern {
    if !back {
        return leg;
    }
    let [subject, object] = leg.ends;
    PathPattern {
        ends: [object, subject],
        path: PropertyPathExpression::Reverse(Arc::new(leg.path)),
        is_path: leg.is_path,
    }
}

impl Translator {
    pub(super) fn path(
        &mut self,
        s: PatternTerm,
        path: &PropertyPathExpression,
        o: PatternTerm,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        use PropertyPathExpression as P;
        let pattern = |predicate: PatternTerm, s: PatternTerm, o: PatternTerm| {
            let hidden = place.slot().into_iter().collect();
            let pattern = LogicalPattern {
                subject: s,
                predicate,
                object: o,
                place: place.clone(),
            };
            LogicalNode::bgp(vec![pattern], hidden)
        };
        Ok(match path {
            P::NamedNode(n) => pattern(PatternTerm::Term(n.canonical()), s, o),
            P::Reverse(inner) => self.path(o, inner, s, place)?,
            P::Sequence(a, b) => {
                if let Some(node) = self.sequence(&s, path, &o, place)? {
                    return Ok(node);
                }
                let middle = PatternTerm::Slot(self.hidden("path")?);
                let first = self.path(s, a, middle.clone(), place)?;
                let second = self.path(middle, b, o, place)?;
                LogicalNode::join(first, second)
            }
            P::Alternative(..) => {
                // One union of all alternatives: joining them pair by pair would move each as often as the tree is
                // deep.
                let (mut open, mut parts) = (vec![path], vec![]);
                while let Some(p) = open.pop() {
                    if let P::Alternative(a, b) = p {
                        open.extend([&**b, &**a]);
                        continue;
                    }
                    self.room(size_of::<LogicalNode>())?;
                    parts.push(self.path(s.clone(), p, o.clone(), place)?);
                }
                LogicalNode::union(parts)
            }
            P::NegatedPropertySet(list) => {
                let p = self.hidden("predicate")?;
                let v = Variable::new_unchecked("predicate");
                let names = list.iter().map(|n| Expression::from(n.clone())).collect();
                let within = Expression::In(Arc::new(v.clone().into()), names);
                let filter = Expr::plain(Expression::Not(Arc::new(within)), [(v, p)]);
                let node = pattern(PatternTerm::Slot(p), s, o);
                if list.is_empty() {
                    node
                } else {
                    node.filter(vec![Arc::new(filter)])
                }
            }
            P::ZeroOrMore(_) | P::OneOrMore(_) | P::ZeroOrOne(_) => LogicalNode::path(PathNode {
                subject: s,
                path: path.clone(),
                object: o,
                place: place.clone(),
            }),
        })
    }

    /// Translates a sequence if duplicate solutions do not matter: its part from the first to the last path with `?`,
    /// `*` or `+` becomes one path node, whose search visits each node once, instead of one search for each node
    /// between the parts. If an end is a constant, the part extends to it, so that the search starts there rather than
    /// at many nodes. `None` if nothing is gained.
    fn sequence(
        &mut self,
        s: &PatternTerm,
        path: &PropertyPathExpression,
        o: &PatternTerm,
        place: &PatternGraphTerm,
    ) -> Result<Option<LogicalNode>, Reason> {
        use PropertyPathExpression as P;
        if !self.as_set {
            return Ok(None);
        }
        let mut list = vec![];
        let mut open = vec![(path, false)];
        while let Some((p, back)) = open.pop() {
            match p {
                P::Sequence(a, b) if back => open.extend([(&**a, back), (&**b, back)]),
                P::Sequence(a, b) => open.extend([(&**b, back), (&**a, back)]),
                P::Reverse(p) => open.push((p, !back)),
                p if back => list.push(P::Reverse(Arc::new(p.clone()))),
                p => list.push(p.clone()),
            }
        }
        if list.len() > LONGEST {
            return Ok(None);
        }
        let repeats = |p: &P| {
            let p = match p {
                P::Reverse(inner) => &**inner,
                p => p,
            };
            matches!(p, P::ZeroOrMore(_) | P::OneOrMore(_) | P::ZeroOrOne(_))
        };
        let first = list.iter().position(repeats);
        let last = list.iter().rposition(repeats);
        let (Some(mut first), Some(mut last)) = (first, last) else {
            return Ok(None);
        };
        if matches!(s, PatternTerm::Term(_)) {
            first = 0;
        }
        if matches!(o, PatternTerm::Term(_)) {
            last = list.len() - 1;
        }
        let mut parts = list.get(first..=last).unwrap_or(&[]).iter().cloned();
        let Some(one) = parts.next() else {
            return Ok(None);
        };
        if parts.len() == 0 {
            return Ok(None);
        }
        let one = parts.fold(one, |a, b| P::Sequence(Arc::new(a), Arc::new(b)));
        let (mut node, mut at) = (LogicalNode::unit(), s.clone());
        for i in (0..list.len()).filter(|i| *i <= first || *i > last) {
            let ends = if i == first { last } else { i } + 1 == list.len();
            let to = if ends {
                o.clone()
            } else {
                PatternTerm::Slot(self.hidden("path")?)
            };
            let part = if i == first {
                LogicalNode::path(PathNode {
                    subject: at,
                    path: one.clone(),
                    object: to.clone(),
                    place: place.clone(),
                })
            } else {
                self.path(at, &list[i], to.clone(), place)?
            };
            node = LogicalNode::join(node, part);
            at = to;
        }
        Ok(Some(node))
    }
}
