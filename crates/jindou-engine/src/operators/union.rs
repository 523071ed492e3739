//! UNION: leaves and stages of several inputs that end in one place.

use super::extend::ProjectSpec;
use crate::compile::{Builder, Open};
use crate::explore::Halt;
use crate::tree::with;
use jindou_model::Result;
use jindou_plan::{Slot, operator};

impl<'a> Builder<'_, 'a> {
    pub(super) fn union(
        &mut self,
        op: &'a operator::Union,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let list = &op.inputs;
        let before = std::mem::take(&mut self.open);
        debug_assert!(before.is_empty(), "a union begins where nothing is open");
        let mut parts: Vec<(Vec<Slot>, Vec<Open>)> = Vec::with_capacity(list.len());
        let mut at = node + 1;
        for input in list {
            let slots = self.op(input, at)?;
            parts.push((slots, std::mem::take(&mut self.open)));
            at = self.exec.nodes.after(at);
        }
        let all = parts.iter().fold(vec![], |all: Vec<Slot>, (slots, open)| {
            if open.is_empty() {
                all
            } else {
                with(all, slots.iter().copied())
            }
        });
        let mut done = Vec::new();
        for (slots, open) in parts {
            self.open = open;
            if slots != all {
                let columns = all
                    .iter()
                    .map(|s| slots.iter().position(|t| t == s))
                    .collect();
                self.link(ProjectSpec(columns), &slots, node);
            }
            done.append(&mut self.open);
        }
        self.open = done;
        Ok(all)
    }
}
