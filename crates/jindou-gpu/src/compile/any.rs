//! Compilation of steps with a predicate variable. Each becomes two or three device steps: the first produces a row for
//! each predicate of a vertex (or each predicate of the graph); after it, each row reads the segment of its own
//! predicate.
//!
//! Characteristic sets are exact for vertices that no update touched. So each row of the first device step leads to at
//! least one result row, unless the edge's far end is already bound: there are no more intermediate rows than result
//! rows.

use super::{
    CompiledStep, DeviceList, DeviceSource, DeviceWithin, Owner, StepCompiler, StepWork, scope_of,
};
use jindou_model::{Direction, Error, Result};
use jindou_plan::{FarEnd, GraphRef, Operand, PredicateRef, Slot, Step, StepKind};
use std::sync::Arc;

impl<'a> StepCompiler<'a> {
    /// Appends the device steps of an `ExpandAny` or `ScanAll` to `parts`, except the last one, which is returned.
    pub(super) fn any(
        &mut self,
        step: &Step,
        parts: &mut Vec<CompiledStep<'a>>,
    ) -> Result<CompiledStep<'a>> {
        if self.pager.is_some() {
            return Err(Error::Unsupported(
                "predicate variables over segments larger than the GPU's memory".into(),
            ));
        }
        match &step.kind {
            StepKind::ExpandAny {
                anchor,
                direction,
                predicate,
                far,
                graph,
            } => self.expand_any(*anchor, *direction, *predicate, *far, graph, parts),
            StepKind::ScanAll {
                subject,
                predicate,
                object,
                graph,
            } => self.scan_all(*subject, *predicate, *object, graph, parts),
            _ => Err(Error::Internal(
                "a step without a predicate variable".into(),
            )),
        }
    }

    /// Expands the edges of all predicates of a vertex; or of one predicate, if an earlier step has bound the variable.
    fn expand_any(
        &mut self,
        anchor: Operand,
        direction: Direction,
        predicate: PredicateRef,
        far: FarEnd,
        graph: &GraphRef,
        parts: &mut Vec<CompiledStep<'a>>,
    ) -> Result<CompiledStep<'a>> {
        let scope = scope_of(graph)?;
        let constant = match (anchor, predicate) {
            (Operand::Const(v), PredicateRef::Bind(_)) => Some(v),
            _ => None,
        };
        let catalog = self
            .cache
            .catalog(self.device, self.snapshot, direction, scope, constant)?;
        self.segments.extend(catalog.segments.iter().cloned());
        let predicate = match predicate {
            PredicateRef::Slot(p) => p,
            PredicateRef::Bind(p) => {
                let segment = self.cache.sets(self.device, self.snapshot, direction)?;
                self.segments.push(Arc::clone(&segment));
                let work = StepWork::Expand {
                    to: p,
                    lists: vec![DeviceList {
                        segment,
                        anchor,
                        constant: None,
                        most: None,
                        clips: false,
                        cut: false,
                    }],
                    within: DeviceWithin::new(self.device, None, false)?,
                };
                parts.push((work, format!("predicates of a vertex as ?{p}")));
                p
            }
        };
        Ok(match far {
            FarEnd::Bind(to) => (
                StepWork::ExpandAny {
                    to,
                    anchor,
                    predicate,
                    catalog,
                },
                format!("expand ?{to} along ?{predicate}"),
            ),
            FarEnd::Known(other) => (
                StepWork::CheckAny {
                    anchor,
                    predicate,
                    other,
                    catalog,
                },
                format!("check along ?{predicate}"),
            ),
        })
    }

    /// All edges of the graph, of any predicate.
    fn scan_all(
        &mut self,
        subject: Slot,
        predicate: PredicateRef,
        object: Slot,
        graph: &GraphRef,
        parts: &mut Vec<CompiledStep<'a>>,
    ) -> Result<CompiledStep<'a>> {
        let scope = scope_of(graph)?;
        let catalog =
            self.cache
                .catalog(self.device, self.snapshot, Direction::Out, scope, None)?;
        self.segments.extend(catalog.segments.iter().cloned());
        let subjects = self.cache.subjects(self.device, self.snapshot, scope)?;
        self.segments.push(Arc::clone(&subjects));
        let predicate = match predicate {
            PredicateRef::Slot(p) => p,
            PredicateRef::Bind(p) => {
                let source = DeviceSource::Column {
                    at: catalog.params.terms,
                    rows: u64::from(catalog.params.count),
                    owner: Owner::Buffer(Arc::clone(catalog.buffer())),
                };
                parts.push((
                    StepWork::Cross { to: p, source },
                    format!("all predicates as ?{p}"),
                ));
                p
            }
        };
        let work = StepWork::Expand {
            to: subject,
            lists: vec![DeviceList {
                segment: subjects,
                anchor: Operand::Slot(predicate),
                constant: None,
                most: None,
                clips: false,
                cut: false,
            }],
            within: DeviceWithin::new(self.device, None, false)?,
        };
        parts.push((work, format!("subjects of ?{predicate} as ?{subject}")));
        Ok((
            StepWork::ExpandAny {
                to: object,
                anchor: Operand::Slot(subject),
                predicate,
                catalog,
            },
            format!("expand ?{object} along ?{predicate}"),
        ))
    }
}
