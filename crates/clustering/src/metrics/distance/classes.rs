//! Tasks of a level by their child sets.

use std::collections::HashMap;

use crate::workflow::Workflow;

/// Classes of the tasks of a level: tasks of one class have the same children, so their distances to all other tasks agree.
#[derive(Debug)]
pub(crate) struct Classes<'a> {
    /// Children of each class.
    pub(crate) children: Vec<&'a [u32]>,
    /// Number of tasks of each class.
    pub(crate) weights: Vec<u64>,
    /// Class of each task of the level, in its order.
    pub(crate) class_of: Vec<u32>,
}

impl<'a> Classes<'a> {
    pub(crate) fn new(graph: &'a Workflow, level: &[u32]) -> Self {
        let mut numbers = HashMap::new();
        let mut classes = Self { children: Vec::new(), weights: Vec::new(), class_of: Vec::new() };
        for task in level {
            let children = graph.children(*task);
            let class = *numbers.entry(children).or_insert_with(|| {
                classes.children.push(children);
                classes.weights.push(0);
                classes.weights.len() as u32 - 1
            });
            classes.weights[class as usize] += 1;
            classes.class_of.push(class);
        }
        classes
    }

    /// Returns the number of classes.
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }
}
