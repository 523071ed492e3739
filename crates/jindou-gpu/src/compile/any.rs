//! Steps with a predicate variable, as two or three parts: the first part produces a row for each predicate of a vertex
//! (or for each predicate of the graph), then each row reads the segment of its own predicate.
//!
//! Characteristic sets are exact for vertices that no update touched. So each row of the first part produces at least
//! one row of the second, unless its far end is known: there are no more intermediate rows than result rows.

use super::{
    CompiledStep, DeviceList, DeviceSource, DeviceWithin, Owner, StepCompiler, StepWork, scope_of,
};
use jindou_model::{Direction, Error, Result};
use jindou_plan::{FarEnd, GraphRef, Operand, PredicateRef, Slot, Step, StepKind};
use std::sync::Arc;

impl<'a> StepCompiler<'a> {
    /// Returns the last part of an `ExpandAny` or `ScanAll`; the parts before it are appended to `parts`.
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

    /// Along the edges of all predicates of a vertex, or of a known one.
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

    /// All edges of the graph.
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
