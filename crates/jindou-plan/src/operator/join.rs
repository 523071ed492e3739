//! Joins of two independent inputs.

use super::Operator;
use super::facts::{EachId, EachInput, Facts, Role, prune};
use crate::explain::{Explainer, Node};
use crate::set::SlotSet;
use crate::{Condition, Slot, condition, cost, parameters, weigh};

/// A slot that both sides of a join have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinKey {
    /// The slot.
    pub slot: Slot,
    /// Bound in every row of the left side. Unbound is compatible with every value, and takes the other side's.
    pub left_bound: bool,
    /// Bound in every row of the right side.
    pub right_bound: bool,
}

/// Kinds of matches of two inputs, by the rows that they give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Gives each compatible pair.
    Inner,
    /// As `Inner`, and rows of the left side without a partner once, alone (OPTIONAL).
    Left,
    /// Rows of the left side that have a partner, once.
    Semi,
    /// Rows of the left side that have none (NOT EXISTS).
    Anti,
    /// Rows of the left side without a compatible partner that shares at least one **bound** slot (MINUS).
    Minus,
}

/// Two independent inputs, matched on their shared slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Kind of the match.
    pub kind: JoinKind,
    /// The side that streams.
    pub left: Box<Operator>,
    /// The side that is held in memory.
    pub right: Box<Operator>,
    /// Exactly the slots that both sides have.
    pub on: Vec<JoinKey>,
    /// For `Left` and `Semi`/`Anti`: more that a matching pair must satisfy, over the slots of both sides.
    pub condition: Option<Condition>,
    /// For `Inner` and `Semi` without `on`: a slot of the left and one of the right side, of which `=` must be true in a
    /// matching pair (SPARQL 1.1 §17.3). Where one is unbound, nothing matches.
    pub equal: Option<(Slot, Slot)>,
}

impl Join {
    fn right_role(&self) -> Role {
        match self.kind {
            JoinKind::Inner | JoinKind::Left => Role::Held,
            JoinKind::Semi | JoinKind::Anti | JoinKind::Minus => Role::Sought,
        }
    }
}

impl Facts for Join {
    fn name(&self) -> &'static str {
        match self.kind {
            JoinKind::Inner => "join",
            JoinKind::Left => "left join",
            JoinKind::Semi => "semi-join",
            JoinKind::Anti => "anti-join",
            JoinKind::Minus => "minus",
        }
    }

    fn each_input<'a>(&'a self, f: &mut EachInput<'_, 'a>) {
        f(Role::Streams, &self.left);
        f(self.right_role(), &self.right);
    }

    fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Operator)) {
        f(&mut self.left);
        f(&mut self.right);
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut keys: SlotSet = self.on.iter().map(|k| k.slot).collect();
        if let Some((l, r)) = self.equal {
            keys.insert(l);
            keys.insert(r);
        }
        if let Some(c) = &self.condition {
            condition::add_slots(c, &mut keys);
        }
        let both = wanted.or(&keys);
        let mut used = prune(&mut self.left, &both);
        let right = if self.right_role() == Role::Held {
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

    fn own_bytes(&self, held: &mut crate::weigh::Held) -> u64 {
        weigh::list::<JoinKey>(self.on.len())
            + self
                .condition
                .as_ref()
                .map_or(0, |c| weigh::condition(c, held))
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> Node {
        let name = match self.kind {
            JoinKind::Inner if self.on.is_empty() && self.equal.is_none() => "product",
            JoinKind::Inner => "hash join",
            JoinKind::Left => "hash left join",
            JoinKind::Semi => "hash semi-join",
            JoinKind::Anti => "hash anti-join",
            JoinKind::Minus => "minus",
        };
        let key = |k: &JoinKey| {
            let maybe = if k.left_bound && k.right_bound {
                ""
            } else {
                " (may be unbound)"
            };
            format!("{}{maybe}", e.slot(k.slot))
        };
        let on = if let Some((l, r)) = self.equal {
            format!(" on {} = {}", e.slot(l), e.slot(r))
        } else if self.on.is_empty() {
            String::new()
        } else {
            let keys: Vec<String> = self.on.iter().map(key).collect();
            format!(" on {}", keys.join(" "))
        };
        let when = self
            .condition
            .as_ref()
            .map_or(String::new(), |c| format!(" if {}", e.condition(c)));
        let (l, r) = (e.node(&self.left, outer), e.node(&self.right, outer));
        let keys = self.on.len() + usize::from(self.equal.is_some());
        let (rows, own) = cost::join(self.kind, l.rows, r.rows, keys);
        Node {
            text: format!("{name}{on}{when}"),
            rows,
            cost: l.cost + r.cost + own,
            steps: vec![],
            inputs: vec![l, r],
        }
    }
}
