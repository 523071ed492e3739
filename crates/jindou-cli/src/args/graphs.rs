//! The option for a query's default graph.

use clap::{Args as ClapArgs, ValueEnum};

/// The default graph of queries that have no FROM.
#[derive(ClapArgs, Debug, Clone, Copy)]
pub struct GraphsArg {
    /// Graphs that patterns outside GRAPH read: `default`, the store's default graph, or `all`, the union of its graphs. Otherwise as
    /// the store was loaded, which is `default` unless it was loaded with --union-default-graph.
    #[arg(long, value_enum, value_name = "WHICH", hide_possible_values = true)]
    pub graphs: Option<GraphChoice>,
    /// The same as `--graphs all`.
    #[arg(long, hide = true)]
    pub union_default_graph: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphChoice {
    /// The store's default graph.
    Default,
    /// The union of all graphs.
    All,
}

impl GraphChoice {
    /// True if the default graph is the union of all graphs.
    pub fn is_union(self) -> bool {
        self == Self::All
    }
}

impl GraphsArg {
    /// True if the default graph is the union of all graphs; `None` keeps the setting of the store's load.
    pub fn union_default(self) -> Option<bool> {
        let chosen = self.graphs.map(GraphChoice::is_union);
        chosen.or(self.union_default_graph.then_some(true))
    }
}
