//! Copies of parts of a query, for planning a part twice.

use super::{LogicalNode, NodeKind};

impl LogicalNode {
    /// Creates a node of another kind with the same slots and size.
    pub(crate) fn with_kind(&self, kind: NodeKind) -> Self {
        Self {
            kind,
            certain: self.certain.clone(),
            possible: self.possible.clone(),
            uses: self.uses.clone(),
            size: self.size,
            group: self.group,
        }
    }

    /// Copies the node and everything below it. Nodes are not `Clone`, so that rewritings do not copy them by accident:
    /// copies at each level of a deep query would take exponential time. A caller that plans a part twice must ask
    /// [`may_try`](crate::build::PlanBuilder::may_try). Recursive.
    pub(crate) fn copied(&self) -> Self {
        let boxed = |node: &Self| Box::new(node.copied());
        let all = |nodes: &[Self]| nodes.iter().map(Self::copied).collect();
        // Copies a node with fields: first those that are nodes, then the others.
        macro_rules! fields {
            ($variant:ident { $($node:ident)*; $($field:ident)* }) => {
                NodeKind::$variant { $($node: boxed($node),)* $($field: Clone::clone($field)),* }
            };
        }
        self.with_kind(match &self.kind {
            NodeKind::Bgp(bgp) => NodeKind::Bgp(bgp.clone()),
            NodeKind::Graphs(slot) => NodeKind::Graphs(*slot),
            NodeKind::HasGraph(name) => NodeKind::HasGraph(name.clone()),
            NodeKind::Path(path) => NodeKind::Path(path.clone()),
            NodeKind::Values { slots, rows } => fields!(Values { ; slots rows }),
            NodeKind::Service(service) => NodeKind::Service(service.clone()),
            NodeKind::Join(parts) => NodeKind::Join(all(parts)),
            NodeKind::LeftJoin {
                left,
                right,
                condition,
            } => fields!(LeftJoin { left right; condition }),
            NodeKind::Minus { left, right } => fields!(Minus { left right; }),
            NodeKind::Union(parts) => NodeKind::Union(all(parts)),
            NodeKind::Filter { inner, filters } => fields!(Filter { inner; filters }),
            NodeKind::Extend { inner, to, value } => fields!(Extend { inner; to value }),
            NodeKind::Apply { input, body, kind } => fields!(Apply { input body; kind }),
            NodeKind::Group {
                inner,
                by,
                aggregates,
            } => fields!(Group { inner; by aggregates }),
            NodeKind::OrderBy { inner, keys } => fields!(OrderBy { inner; keys }),
            NodeKind::Distinct { inner, slots } => fields!(Distinct { inner; slots }),
            NodeKind::Reduced { inner, slots } => fields!(Reduced { inner; slots }),
            NodeKind::Slice {
                inner,
                offset,
                limit,
            } => fields!(Slice { inner; offset limit }),
            NodeKind::Project(inner) => NodeKind::Project(boxed(inner)),
        })
    }
}

jindou_syntax::not_clone!(LogicalNode, NodeKind);
