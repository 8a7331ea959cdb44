//! A workflow as simulations of many clusterings need it: files that no worker can share are sums of bytes.

use crate::workflow::Workflow;
use crate::workflow::lists::Lists;

/// A workflow, prepared once for all simulations.
pub(crate) struct Prepared<'a> {
    pub(crate) workflow: &'a Workflow,
    /// Bytes of the inputs that no other task reads or writes, by task: each execution moves them once.
    pub(crate) own_bytes: Vec<u64>,
    /// All other inputs, by task. Files without bytes are left out: they are never missed.
    pub(crate) reads: Lists,
    /// Outputs that some task reads, by task.
    pub(crate) writes: Lists,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(workflow: &'a Workflow) -> Self {
        let files = workflow.files();
        let mut readers = vec![0_u32; files.len()];
        let mut is_written = vec![false; files.len()];
        for task in workflow.tasks() {
            task.reads.iter().for_each(|file| readers[*file as usize] += 1);
            task.writes.iter().for_each(|file| is_written[*file as usize] = true);
        }
        let mut own_bytes = Vec::with_capacity(workflow.tasks().len());
        let (mut reads, mut writes) = (Lists::default(), Lists::default());
        for task in workflow.tasks() {
            let mut own: u64 = 0;
            for file in &task.reads {
                let (index, bytes) = (*file as usize, files[*file as usize].bytes);
                if readers[index] == 1 && !is_written[index] {
                    own = own.saturating_add(bytes);
                } else if bytes > 0 {
                    reads.push(*file);
                }
            }
            own_bytes.push(own);
            reads.close();
            let read = |file: &&u32| readers[**file as usize] > 0 && files[**file as usize].bytes > 0;
            task.writes.iter().filter(read).for_each(|file| writes.push(*file));
            writes.close();
        }
        Self { workflow, own_bytes, reads, writes }
    }
}
