//! Progress of a query while it runs.

use crate::profile::ProfileNode;
use jindou_engine::LiveProfile;
use jindou_graph::Graph;
use jindou_plan::Plan;
use std::sync::{Arc, OnceLock};

/// A view of one running query. Give a clone to [`QueryOptions::with_watch`](crate::QueryOptions::with_watch), and read
/// this one from any thread. It shows the first query that runs with these options.
///
/// ```
/// use jindou::{Database, QueryOptions, QueryWatch};
///
/// let db = Database::in_memory();
/// db.update("INSERT DATA { <http://e/a> <http://e/p> <http://e/b> }", &Default::default())?;
/// let watch = QueryWatch::default();
/// assert!(watch.tree().is_none());
/// db.query_with("SELECT * { ?s ?p ?o }", &QueryOptions::default().with_watch(watch.clone()))?;
/// assert_eq!(watch.tree().and_then(|t| t.rows_out), Some(1));
/// # Ok::<(), jindou::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct QueryWatch {
    shared: Arc<WatchShared>,
}

#[derive(Debug, Default)]
struct WatchShared {
    live: Arc<LiveProfile>,
    plan: OnceLock<(Plan, Vec<String>)>,
}

impl QueryWatch {
    /// The plan's nodes with their rows and times so far, summed over threads; numbers of bytes are known only at the
    /// end. `None` until the query starts to run. A part that runs on a GPU has no numbers until it is done.
    #[must_use]
    pub fn tree(&self) -> Option<ProfileNode> {
        let (plan, _) = self.shared.plan.get()?;
        let profile = self.shared.live.profile()?;
        jindou_plan::with_stack(plan.depth(), || {
            ProfileNode::from_profile(plan, &profile).so_far()
        })
        .ok()
    }

    /// The plan as lines of text, as in [`Database::explain`](crate::Database::explain); `None` until the query runs.
    #[must_use]
    pub fn plan(&self) -> Option<&[String]> {
        self.shared.plan.get().map(|(_, text)| text.as_slice())
    }

    pub(crate) fn live(&self) -> Arc<LiveProfile> {
        Arc::clone(&self.shared.live)
    }

    /// Sets the plan that starts to run now, unless a plan was set before.
    pub(crate) fn begin(&self, plan: &Plan, snapshot: &dyn Graph) {
        if self.shared.plan.get().is_some() {
            return;
        }
        let made = jindou_plan::with_stack(plan.depth(), || {
            let text = jindou_plan::explain(plan, snapshot);
            (plan.clone(), text.lines().map(str::to_owned).collect())
        });
        // If no thread could be started to explain a deep plan, the watch has no plan.
        if let Ok(made) = made {
            let _ = self.shared.plan.set(made);
        }
    }
}
