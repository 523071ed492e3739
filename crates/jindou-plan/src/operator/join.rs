//! Joins of two independent inputs.

use super::Operator;
use super::facts::{EachId, EachInput, InputRole, OperatorFacts, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Condition, Relation, Slot, condition, cost, parameters, show, weigh};

/// A slot that both sides of a join have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinKey {
    /// The slot.
    pub slot: Slot,
    /// True if it is bound in every row of the left side. An unbound slot is compatible with every value; the joined
    /// row has the other side's value.
    pub left_bound: bool,
    /// True if it is bound in every row of the right side.
    pub right_bound: bool,
}

/// A comparison of a slot of the left side with a slot of the right side that must be true for a pair of rows. If
/// either slot is unbound, or the comparison is an error, the pair does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The slot of the left side.
    pub left: Slot,
    /// The slot of the right side, which differs from `left`.
    pub right: Slot,
    /// The comparison.
    pub by: MatchBy,
}

/// The comparison of a [`Match`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchBy {
    /// `sameTerm`, or an `=` that holds only for the same term.
    Term,
    /// `=` (SPARQL 1.1 §17.3).
    Value,
    /// `<`, `<=`, `>` or `>=`, with the left side's value on the left (SPARQL 1.1 §17.3).
    Order(Relation),
}

/// Kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Returns each matching pair.
    Inner,
    /// As `Inner`; also returns each left row without a partner, alone (OPTIONAL).
    Left,
    /// Returns each left row that has a partner, once.
    Semi,
    /// Returns each left row without a partner (NOT EXISTS).
    Anti,
    /// Returns each left row without a compatible partner with which it shares at least one **bound** slot (MINUS).
    Minus,
    /// Returns each left row, once, with `xsd:boolean` in this slot: whether it has a partner (EXISTS inside an
    /// expression).
    Mark(Slot),
}

impl JoinKind {
    /// Returns true if each matching pair is a row.
    #[must_use]
    pub fn gives_pairs(self) -> bool {
        matches!(self, Self::Inner | Self::Left)
    }
}

/// A join of two independent inputs on their shared slots, or by comparisons.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Kind of the join.
    pub kind: JoinKind,
    /// The side whose rows pass through the join.
    pub left: Box<Operator>,
    /// The side whose rows are stored in memory.
    pub right: Box<Operator>,
    /// All slots that both sides have.
    pub on: Vec<JoinKey>,
    /// For `Left`, `Semi`, `Anti` and `Mark`: a condition on matching pairs, over the slots of both sides.
    pub condition: Option<Condition>,
    /// For all but `Minus`: comparisons that must all be true for a matching pair.
    pub matches: Vec<Match>,
    /// For all kinds but `Minus`: comparisons for equality. If there are any, at least one must be true for a matching
    /// pair, and `matches` is empty.
    pub either: Vec<Match>,
}

impl Join {
    fn right_role(&self) -> InputRole {
        match self.kind {
            JoinKind::Inner | JoinKind::Left => InputRole::Held,
            JoinKind::Semi | JoinKind::Anti | JoinKind::Minus | JoinKind::Mark(_) => {
                InputRole::Sought
            }
        }
    }

    /// Returns true if the right side's rows are stored sorted by a value.
    fn is_sorted(&self) -> bool {
        self.matches
            .iter()
            .any(|m| matches!(m.by, MatchBy::Order(_)))
    }
}

fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Less => "<",
        Relation::LessOrEqual => "<=",
        Relation::Greater => ">",
        Relation::GreaterOrEqual => ">=",
        Relation::Equal => "=",
        Relation::NotEqual => "!=",
    }
}

impl OperatorFacts for Join {
    fn name(&self) -> &'static str {
        match self.kind {
            JoinKind::Inner => "join",
            JoinKind::Left => "left join",
            JoinKind::Semi => "semi-join",
            JoinKind::Anti => "anti-join",
            JoinKind::Minus => "minus",
            JoinKind::Mark(_) => "mark join",
        }
    }

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        if let JoinKind::Mark(s) = self.kind {
            f(s);
        }
    }

    fn each_input<'a>(&'a self, f: &mut EachInput<'_, 'a>) {
        f(InputRole::Streams, &self.left);
        f(self.right_role(), &self.right);
    }

    fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Operator)) {
        f(&mut self.left);
        f(&mut self.right);
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut keys: SlotSet = self.on.iter().map(|k| k.slot).collect();
        for m in self.matches.iter().chain(&self.either) {
            keys.insert(m.left);
            keys.insert(m.right);
        }
        if let Some(c) = &self.condition {
            condition::add_slots(c, &mut keys);
        }
        let both = wanted.or(&keys);
        let mut used = prune(&mut self.left, &both);
        let right = if self.right_role() == InputRole::Held {
            both
        } else {
            keys
        };
        used.add(&prune(&mut self.right, &right));
        used
    }

    fn is_never(&self) -> bool {
        self.left.is_never()
            || (matches!(self.kind, JoinKind::Inner | JoinKind::Semi) && self.right.is_never())
    }

    fn each_id(&mut self, f: &mut EachId<'_>) {
        if let Some(c) = &mut self.condition {
            parameters::ids_of_condition(c, f);
        }
    }

    fn own_bytes(&self, held: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::list::<JoinKey>(self.on.len())
            + weigh::list::<Match>(self.matches.len())
            + weigh::list::<Match>(self.either.len())
            + self
                .condition
                .as_ref()
                .map_or(0, |c| weigh::condition(c, held))
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let name = match self.kind {
            JoinKind::Inner
                if self.on.is_empty() && self.matches.is_empty() && self.either.is_empty() =>
            {
                "product"
            }
            JoinKind::Inner if self.is_sorted() => "range join",
            JoinKind::Inner => "hash join",
            JoinKind::Left if self.is_sorted() => "range left join",
            JoinKind::Semi if self.is_sorted() => "range semi-join",
            JoinKind::Anti if self.is_sorted() => "range anti-join",
            JoinKind::Left => "hash left join",
            JoinKind::Semi => "hash semi-join",
            JoinKind::Anti => "hash anti-join",
            JoinKind::Minus => "minus",
            JoinKind::Mark(_) if self.is_sorted() => "range mark join",
            JoinKind::Mark(_) => "hash mark join",
        };
        let key = |k: &JoinKey| {
            let maybe = if k.left_bound && k.right_bound {
                ""
            } else {
                " (may be unbound)"
            };
            format!("{}{maybe}", e.slot(k.slot))
        };
        let mut keys = show::listed(&self.on, key);
        let compared = |m: &Match| {
            let (l, r) = (e.slot(m.left), e.slot(m.right));
            match m.by {
                MatchBy::Term => format!("sameTerm({l}, {r})"),
                MatchBy::Value => format!("{l} = {r}"),
                MatchBy::Order(relation) => format!("{l} {} {r}", sign(relation)),
            }
        };
        keys.extend(show::listed(&self.matches, compared));
        if !self.either.is_empty() {
            let either = show::list(&self.either, " or ", compared);
            keys.push(format!("either {either}"));
        }
        let on = if keys.is_empty() {
            String::new()
        } else {
            format!(" on {}", keys.join(" "))
        };
        let when = self
            .condition
            .as_ref()
            .map_or(String::new(), |c| format!(" if {}", e.condition(c)));
        let (l, r) = (e.node(&self.left, outer), e.node(&self.right, outer));
        let compared = (&self.matches[..], self.either.len());
        let (rows, own) = cost::matching(self.kind, l.rows, r.rows, self.on.len(), compared);
        let what = match self.kind {
            JoinKind::Mark(s) => format!("{} = true if there is a match (EXISTS), ", e.slot(s)),
            _ => String::new(),
        };
        ExplainNode {
            text: format!("{what}{name}{on}{when}"),
            rows,
            cost: l.cost + r.cost + own,
            steps: vec![],
            inputs: vec![l, r],
        }
    }
}
