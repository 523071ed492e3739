//! The prefixes of a database: those that its data declares, and those that were set explicitly.

use crate::database::Database;
use crate::update::{Change, Transaction, UpdateOptions, UpdateReport};
use jindou_model::prefixes::{MOST_PREFIXES, PrefixChange, PrefixOrigin, PrefixTable};
use jindou_model::{Error, Resource, Result};
use std::sync::Arc;

/// Prefixes in effect with their IRIs and origins, sorted by name: those of a store and, if `common` is true, the
/// common prefixes that the store does not redefine.
#[must_use]
pub fn prefixes_in_effect(
    store: Option<&PrefixTable>,
    common: bool,
) -> Vec<(&str, &str, PrefixOrigin)> {
    let mut all: Vec<_> = store.into_iter().flat_map(PrefixTable::iter).collect();
    let common = jindou_plan::COMMON_PREFIXES.iter().filter(|_| common);
    let hidden = |name: &str| store.is_some_and(|store| store.get(name).is_some());
    let common = common.filter(|(name, _)| !hidden(name));
    all.extend(common.map(|(name, iri)| (*name, *iri, PrefixOrigin::Common)));
    all.sort_unstable();
    all
}

impl Database {
    /// The prefixes that queries need not declare, apart from the common ones: those that loaded documents declared
    /// (the first declaration of a name counts), and those of [`Self::set_prefix`], which take precedence.
    ///
    /// ```
    /// use jindou::parse::{Format, Sources};
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let text = "@prefix ex: <http://example.org/> . ex:mars a ex:Planet .";
    /// let source = Sources::builder().text("planets.ttl", text.as_bytes(), Format::Turtle).build()?;
    /// let db = Database::in_memory_from(&source, &UpdateOptions::default())?;
    /// assert_eq!(db.prefixes().get("ex"), Some("http://example.org/"));
    /// assert_eq!(db.query("SELECT ?s { ?s a ex:Planet }")?.solutions().len(), 1);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    #[must_use]
    pub fn prefixes(&self) -> Arc<PrefixTable> {
        Arc::clone(self.snapshot().prefixes())
    }

    /// Sets a prefix, given without its colon, for all queries and updates of this database. It takes precedence over
    /// one that the data declares, but not over a declaration in a query, and is stored as durably as an update.
    ///
    /// # Errors
    /// [`Error::Usage`] if the name is not a valid prefix, or the IRI is not absolute; [`Error::Limit`] if the store
    /// has some thousand prefixes already; otherwise as [`Self::update`].
    pub fn set_prefix(
        &self,
        name: &str,
        iri: &str,
        options: &UpdateOptions,
    ) -> Result<UpdateReport> {
        PrefixTable::check(name, iri)?;
        let options = &self.inner.runtime.settle_update(options);
        let change = Change::SetPrefix(name.to_owned(), iri.to_owned());
        self.submit(change, options, &options.token())
    }

    pub(crate) fn set_prefix_in(tx: &mut Transaction, name: &str, iri: &str) -> Result<()> {
        tx.change_prefixes([PrefixChange::Set(name.into(), iri.into())])?;
        if tx.unapplied().prefixes().get(name) == Some(iri) {
            return Ok(());
        }
        Err(Error::limit(
            Resource::Form,
            format!("at most {MOST_PREFIXES} prefixes can be set; remove some first"),
        ))
    }

    /// Removes the prefix with this name that was set by [`Self::set_prefix`], or, if there is none, the one that the
    /// data declares. A prefix that it has overridden, such as a common one, is then in effect again.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the store has no such prefix (the common ones do not count); otherwise as
    /// [`Self::update`].
    pub fn remove_prefix(&self, name: &str, options: &UpdateOptions) -> Result<UpdateReport> {
        let options = &self.inner.runtime.settle_update(options);
        let change = Change::RemovePrefix(name.to_owned());
        self.submit(change, options, &options.token())
    }

    pub(crate) fn remove_prefix_in(tx: &mut Transaction, name: &str) -> Result<()> {
        let before = tx.unapplied().prefixes();
        if before.get(name).is_none() {
            let common = jindou_plan::COMMON_PREFIXES.iter().any(|p| p.0 == name);
            return Err(Error::Conflict(match common {
                true => format!(
                    "the prefix {name}: is a common one, which is known everywhere; set it to give it another meaning"
                ),
                false => format!("the store has no prefix {name}:"),
            }));
        }
        tx.change_prefixes([PrefixChange::Remove(name.into())])
    }
}
