//! Operations that join and cut regions across units. The expansion of stage inputs with bounds inserts them; no
//! descriptor names them.
//!
//! Every registry has them, because a task that joins is in plans of any workflow. Their number of inputs depends on
//! the study, so they are created by their names: `regions.join-ELEMENT-UNITS`, `regions.cut-ELEMENT` and
//! `regions.only-ELEMENT`.

use super::{Argument, Operation, OperationError, Port};
use crate::value::Value;
use parking_lot::Mutex;
use pleach_regions::{DataRegion, ElementType, MAX_PARTS, UnitError, UnitLayout};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Version of all of them.
pub(crate) const JOINING_VERSION: u32 = 1;

/// Kind of an operation that joins or cuts regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Joining {
    /// Joins the regions of a number of units to one region of the layout's window.
    Join(ElementType, usize),
    /// Cuts the own unit out of a region of the layout's window.
    Cut(ElementType),
    /// Passes the region of a unit, or an empty one if the unit does not exist.
    Only(ElementType),
}

impl Joining {
    /// Returns the name of the operation.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Join(element, units) => format!("regions.join-{element}-{units}"),
            Self::Cut(element) => format!("regions.cut-{element}"),
            Self::Only(element) => format!("regions.only-{element}"),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let element = |text: &str| ElementType::ALL.into_iter().find(|element| element.name() == text);
        let rest = name.strip_prefix("regions.")?;
        let found = if let Some(rest) = rest.strip_prefix("join-") {
            let (of, units) = rest.rsplit_once('-')?;
            Self::Join(element(of)?, units.parse().ok().filter(|units| (1..=MAX_PARTS).contains(units))?)
        } else if let Some(of) = rest.strip_prefix("cut-") {
            Self::Cut(element(of)?)
        } else {
            Self::Only(element(rest.strip_prefix("only-")?)?)
        };
        // A name has one spelling only: `join-points-03` is none.
        (found.name() == name).then_some(found)
    }
}

/// Returns whether the name and version are those of an operation that joins or cuts regions across units. Every process
/// has these operations.
#[must_use]
pub fn is_joining(name: &str, version: u32) -> bool {
    version == JOINING_VERSION && Joining::parse(name).is_some()
}

/// An operation, for the lifetime of the process.
type Known = HashMap<Joining, &'static Arc<dyn Operation>>;

/// Returns the operation of a name. `None` for other names.
pub(super) fn get(name: &str, version: u32) -> Option<&'static Arc<dyn Operation>> {
    // At most MAX_PARTS for each element type, and a study has one for each size of its specimens.
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let joining = Joining::parse(name).filter(|_| version == JOINING_VERSION)?;
    let mut known = KNOWN.lock();
    let operation = known.entry(joining).or_insert_with(|| {
        let operation: Arc<dyn Operation> = Arc::new(JoiningOperation::new(joining));
        Box::leak(Box::new(operation))
    });
    Some(operation)
}

struct JoiningOperation {
    joining: Joining,
    name: &'static str,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl JoiningOperation {
    fn new(joining: Joining) -> Self {
        let (Joining::Join(element, _) | Joining::Cut(element) | Joining::Only(element)) = joining;
        let units = if let Joining::Join(_, units) = joining { units } else { 1 };
        let mut inputs = vec![Port { name: "region", element }; units];
        inputs.push(Port { name: "layout", element: ElementType::Table });
        let outputs = vec![Port { name: "region", element }];
        Self { joining, name: Box::leak(joining.name().into_boxed_str()), inputs, outputs }
    }
}

/// Seconds to copy one pixel: a byte takes a tenth of a nanosecond, and a pixel has up to 8 of them.
const SECONDS_A_PIXEL: f64 = 1e-9;

impl Operation for JoiningOperation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        JOINING_VERSION
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        pixels as f64 * SECONDS_A_PIXEL
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        let output = self.outputs[0].element.bytes(pixels);
        match self.joining {
            // The labels of all units, renumbered.
            Joining::Join(ElementType::Labels, _) => 2 * output,
            _ => output,
        }
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        for (what, wanted, found) in
            [("inputs", self.inputs.len(), inputs.len()), ("arguments", 0, arguments.len())]
        {
            if wanted != found {
                return Err(OperationError::Arity { what, wanted, found });
            }
        }
        let fail = |cause: UnitError| OperationError::Library { library: "regions", cause: Box::new(cause) };
        // The number of inputs is that of the ports: the regions, then the layout.
        let (layout, regions) = (inputs[inputs.len() - 1], &inputs[..inputs.len() - 1]);
        let layout = UnitLayout::from_table(layout.table()?).map_err(fail)?;
        let output = match self.joining {
            Joining::Join(..) => layout.join(regions),
            Joining::Cut(_) => layout.cut(regions[0]),
            Joining::Only(_) => layout.only(regions[0]),
        };
        Ok(vec![output.map_err(fail)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Registry;

    #[test]
    fn every_registry_has_them_under_their_only_names() {
        let registry = Registry::default();
        for joining in [
            Joining::Join(ElementType::ArrayU16, 27),
            Joining::Join(ElementType::Points, MAX_PARTS),
            Joining::Cut(ElementType::Bgr8),
            Joining::Only(ElementType::Objects),
        ] {
            let operation = registry.get(&joining.name(), JOINING_VERSION).unwrap();
            assert_eq!(operation.name(), joining.name());
            assert!(is_joining(operation.name(), JOINING_VERSION));
            assert!(registry.get(&joining.name(), 2).is_none());
        }
        for name in [
            "regions.join-points-03",
            "regions.join-points-0",
            "regions.join-points",
            "regions.cut-dice",
            "noop",
        ] {
            assert!(registry.get(name, JOINING_VERSION).is_none(), "{name}");
        }
        assert!(registry.get(&Joining::Join(ElementType::Points, MAX_PARTS + 1).name(), 1).is_none());
        assert!(registry.names().is_empty());
    }
}
