//! Variables in scope (SPARQL 1.1 §18.2.1), which are numbered in the order of their first occurrence in the text.
//! Adding or removing a variable takes constant time.

/// All open scopes in one list; the innermost begins at `mark`.
#[derive(Default)]
pub(crate) struct Scopes {
    /// Variables in scope, each with the previous entry of the same variable (its index + 1; 0 if there is none).
    log: Vec<(u32, u32)>,
    /// For each variable, the index + 1 of its last entry in `log`; 0 if there is none.
    last: Vec<u32>,
    mark: usize,
    /// Variables that AS and VALUES define, for the rules of LATERAL.
    defined: Vec<u32>,
}

/// State of the outer scope while an inner one is open.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct OuterScope {
    mark: usize,
    inner: usize,
    defined: usize,
}

impl Scopes {
    /// Adds a variable, which is not in scope yet.
    pub(crate) fn grow(&mut self) {
        self.last.push(0);
    }

    /// Opens a scope.
    pub(crate) fn enter(&mut self) -> OuterScope {
        let outer = self.here();
        self.mark = self.log.len();
        outer
    }

    /// State of the current scope, to restore after an error.
    pub(crate) fn here(&self) -> OuterScope {
        OuterScope {
            mark: self.mark,
            inner: self.log.len(),
            defined: self.defined.len(),
        }
    }

    /// Closes the scope; its variables remain in scope of the outer one.
    pub(crate) fn merge(&mut self, outer: OuterScope) {
        self.mark = outer.mark;
    }

    /// Closes the scope and removes its variables.
    pub(crate) fn forget(&mut self, outer: OuterScope) {
        self.clear();
        self.mark = outer.mark;
    }

    /// Closes the scope and removes its variables and definitions.
    pub(crate) fn forget_all(&mut self, outer: OuterScope) {
        self.forget(outer);
        self.defined.truncate(outer.defined);
    }

    /// Removes all variables of the scope.
    pub(crate) fn clear(&mut self) {
        while self.log.len() > self.mark {
            if let Some((v, before)) = self.log.pop() {
                self.last[v as usize] = before;
            }
        }
    }

    /// Puts a variable into scope.
    pub(crate) fn see(&mut self, v: u32) {
        if !self.contains(v) {
            let last = &mut self.last[v as usize];
            self.log.push((v, *last));
            *last = self.log.len() as u32;
        }
    }

    pub(crate) fn define(&mut self, v: u32) {
        self.defined.push(v);
    }

    pub(crate) fn contains(&self, v: u32) -> bool {
        self.last[v as usize] as usize > self.mark
    }

    /// Of the definitions since the scope was opened, keeps only those that pass the test.
    pub(crate) fn keep_defined(&mut self, outer: OuterScope, pass: impl Fn(u32) -> bool) {
        let mut to = outer.defined;
        for i in outer.defined..self.defined.len() {
            if pass(self.defined[i]) {
                self.defined[to] = self.defined[i];
                to += 1;
            }
        }
        self.defined.truncate(to);
    }

    /// A variable that the inner scope defines although it is in scope outside; must be called before the inner scope
    /// is closed.
    pub(crate) fn clash(&self, outer: OuterScope) -> Option<u32> {
        self.defined[outer.defined..].iter().copied().find(|v| {
            let mut at = self.last[*v as usize] as usize;
            while at > outer.inner {
                at = self.log[at - 1].1 as usize;
            }
            at > outer.mark
        })
    }

    /// The variables in scope in the order of their first occurrence in the text.
    pub(crate) fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.log[self.mark..].iter().map(|e| e.0).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
