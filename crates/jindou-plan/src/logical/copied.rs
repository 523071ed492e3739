//! Copies of parts of a query, for a second plan of the same part.

use super::{Kind, Node};

impl Node {
    /// A node of the same slots and size.
    pub(crate) fn with_kind(&self, kind: Kind) -> Self {
        Self {
            kind,
            certain: self.certain.clone(),
            possible: self.possible.clone(),
            uses: self.uses.clone(),
            size: self.size,
            group: self.group,
        }
    }

    /// A copy of the node and all below it. Nodes are not `Clone`, so that no rewriting copies them by the way: whoever needs two plans of
    /// a part asks for this, and counts the [tries](crate::build::Builder::may_try). Recurses.
    pub(crate) fn copied(&self) -> Self {
        let boxed = |node: &Self| Box::new(node.copied());
        let all = |nodes: &[Self]| nodes.iter().map(Self::copied).collect();
        self.with_kind(match &self.kind {
            Kind::Bgp(bgp) => Kind::Bgp(bgp.clone()),
            Kind::Graphs(slot) => Kind::Graphs(*slot),
            Kind::HasGraph(name) => Kind::HasGraph(name.clone()),
            Kind::Path(path) => Kind::Path(path.clone()),
            Kind::Values { slots, rows } => Kind::Values {
                slots: slots.clone(),
                rows: rows.clone(),
            },
            Kind::Service(service) => Kind::Service(service.clone()),
            Kind::Join(parts) => Kind::Join(all(parts)),
            Kind::LeftJoin {
                left,
                right,
                condition,
            } => Kind::LeftJoin {
                left: boxed(left),
                right: boxed(right),
                condition: condition.clone(),
            },
            Kind::Minus { left, right } => Kind::Minus {
                left: boxed(left),
                right: boxed(right),
            },
            Kind::Union(parts) => Kind::Union(all(parts)),
            Kind::Filter { inner, filters } => Kind::Filter {
                inner: boxed(inner),
                filters: filters.clone(),
            },
            Kind::Extend { inner, to, value } => Kind::Extend {
                inner: boxed(inner),
                to: *to,
                value: value.clone(),
            },
            Kind::Apply { input, body, kind } => Kind::Apply {
                input: boxed(input),
                body: boxed(body),
                kind: *kind,
            },
            Kind::Group {
                inner,
                by,
                aggregates,
            } => Kind::Group {
                inner: boxed(inner),
                by: by.clone(),
                aggregates: aggregates.clone(),
            },
            Kind::OrderBy { inner, keys } => Kind::OrderBy {
                inner: boxed(inner),
                keys: keys.clone(),
            },
            Kind::Distinct { inner, slots } => Kind::Distinct {
                inner: boxed(inner),
                slots: slots.clone(),
            },
            Kind::Reduced { inner, slots } => Kind::Reduced {
                inner: boxed(inner),
                slots: slots.clone(),
            },
            Kind::Slice {
                inner,
                offset,
                limit,
            } => Kind::Slice {
                inner: boxed(inner),
                offset: *offset,
                limit: *limit,
            },
            Kind::Project(inner) => Kind::Project(boxed(inner)),
        })
    }
}

/// Compiles only for types that are not `Clone`: for one that is, both implementations fit.
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

not_clone!(Node, Kind);
