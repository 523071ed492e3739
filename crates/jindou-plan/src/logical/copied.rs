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
        self.with_kind(match &self.kind {
            NodeKind::Bgp(bgp) => NodeKind::Bgp(bgp.clone()),
            NodeKind::Graphs(slot) => NodeKind::Graphs(*slot),
            NodeKind::HasGraph(name) => NodeKind::HasGraph(name.clone()),
            NodeKind::Path(path) => NodeKind::Path(path.clone()),
            NodeKind::Values { slots, rows } => NodeKind::Values {
                slots: slots.clone(),
                rows: rows.clone(),
            },
            NodeKind::Service(service) => NodeKind::Service(service.clone()),
            NodeKind::Join(parts) => NodeKind::Join(all(parts)),
            NodeKind::LeftJoin {
                left,
                right,
                condition,
            } => NodeKind::LeftJoin {
                left: boxed(left),
                right: boxed(right),
                condition: condition.clone(),
            },
            NodeKind::Minus { left, right } => NodeKind::Minus {
                left: boxed(left),
                right: boxed(right),
            },
            NodeKind::Union(parts) => NodeKind::Union(all(parts)),
            NodeKind::Filter { inner, filters } => NodeKind::Filter {
                inner: boxed(inner),
                filters: filters.clone(),
            },
            NodeKind::Extend { inner, to, value } => NodeKind::Extend {
                inner: boxed(inner),
                to: *to,
                value: value.clone(),
            },
            NodeKind::Apply { input, body, kind } => NodeKind::Apply {
                input: boxed(input),
                body: boxed(body),
                kind: *kind,
            },
            NodeKind::Group {
                inner,
                by,
                aggregates,
            } => NodeKind::Group {
                inner: boxed(inner),
                by: by.clone(),
                aggregates: aggregates.clone(),
            },
            NodeKind::OrderBy { inner, keys } => NodeKind::OrderBy {
                inner: boxed(inner),
                keys: keys.clone(),
            },
            NodeKind::Distinct { inner, slots } => NodeKind::Distinct {
                inner: boxed(inner),
                slots: slots.clone(),
            },
            NodeKind::Reduced { inner, slots } => NodeKind::Reduced {
                inner: boxed(inner),
                slots: slots.clone(),
            },
            NodeKind::Slice {
                inner,
                offset,
                limit,
            } => NodeKind::Slice {
                inner: boxed(inner),
                offset: *offset,
                limit: *limit,
            },
            NodeKind::Project(inner) => NodeKind::Project(boxed(inner)),
        })
    }
}

/// Compiles only for types that are not `Clone`: for a type that is, both implementations apply.
macro_rules! not_clone {
    ($($type:ty),* $(,)?) => {
        $(const _: fn() = || {
            trait Fits<Why> {
                fn once() {}
            }
            struct AsClone;
            impl<T: ?Sized> Fits<()> for T {}
            impl<T: ?Sized + Clone> Fits<AsClone> for T {}
            let _ = <$type as Fits<_>>::once;
        };)*
    };
}

not_clone!(LogicalNode, NodeKind);
