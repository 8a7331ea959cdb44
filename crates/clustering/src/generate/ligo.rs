//! LIGO: groups of chains in two halves. A coincidence test joins the chains of a half and starts those of the next.

use super::builder::Builder;
use super::fit;

/// One group with one chain in each half.
pub(super) const MIN_TASKS: usize = 6;

/// Of this many groups one depends on a chain of the group before (figure 11): 1 of 18 in table 5, 2 of 20 in a trace.
const LINKED: usize = 10;

/// Builds a workflow of this many tasks, or of one task less: the graph has an even number.
pub(super) fn build(builder: &mut Builder, tasks: usize) {
    let (groups, first, second) = counts(tasks);
    let shared = Shared {
        reference: builder.file("H-CAL_REF_DARM_ERR_H1_S5_V1.gwf", 902_334),
        factors: builder.file("H-CAL_FAC_DARM_ERR_H1_S5_U_060.gwf", 8_415_922),
        injections: builder.file("HL-INJECTIONS_100.xml", 2_421_423),
    };
    // Groups of the traces differ in size as much as squares of uniform numbers: their deviation is 0.9 of the mean.
    let sizes = builder.draw.parts(first, groups, |draw| {
        let unit = draw.unit();
        unit * unit
    });
    let mut link = None;
    for (group, size) in sizes.into_iter().enumerate() {
        // The first group takes a chain that is too many for equal halves.
        let extra = if group == 0 { second - first } else { 0 };
        let linked = link.filter(|_| group % LINKED == LINKED - 1);
        link = Some(add_group(builder, &shared, group, (size, size + extra), linked));
    }
}

/// Files that each group reads.
struct Shared {
    reference: u32,
    factors: u32,
    injections: u32,
}

/// A task and the file that it writes.
#[derive(Clone, Copy)]
struct Output {
    task: u32,
    file: u32,
}

/// Adds a group with these numbers of chains in its halves. Returns the last chain of its first half.
fn add_group(
    builder: &mut Builder,
    shared: &Shared,
    group: usize,
    chains: (usize, usize),
    linked: Option<Output>,
) -> Output {
    let mut strains = Vec::with_capacity(chains.0);
    let mut ends: Vec<Output> = linked.into_iter().collect();
    for chain in 0..chains.0 {
        let strain = [0, 1].map(|part| {
            let name = format!("H-H1_RDS_L4-{group}-{chain}-{part}.gwf");
            builder.random_file(name, 15_562_000, 15_628_000)
        });
        let bank = builder.random_file(format!("H1-TMPLTBANK-{group}-{chain}.xml"), 954_000, 1_020_000);
        let reads = vec![shared.reference, shared.factors, strain[0], strain[1]];
        let task = builder.task("TmpltBank", (&fit::TMPLT_BANK, 1.0), reads, vec![bank], &[]);
        let file = builder.random_file(format!("H1-INSPIRAL-{group}-{chain}.xml"), 157_000, 470_000);
        ends.push(inspiral(builder, shared, strain, Output { task, file: bank }, file));
        strains.push(strain);
    }
    let middle = thinca(builder, &ends, format!("H1-THINCA-{group}.xml"));
    let mut second = Vec::with_capacity(chains.1);
    for chain in 0..chains.1 {
        let bank = builder.random_file(format!("H1-TRIGBANK_H1-{group}-{chain}.xml"), 6_400, 19_200);
        let time = (&fit::TRIG_BANK, 1.0);
        let task = builder.task("TrigBank", time, vec![middle.file], vec![bank], &[middle.task]);
        let file = builder.random_file(format!("H1-INSPIRAL_H1-{group}-{chain}.xml"), 158_000, 468_000);
        let strain = strains[chain % strains.len()];
        second.push(inspiral(builder, shared, strain, Output { task, file: bank }, file));
    }
    thinca(builder, &second, format!("H1-THINCA_H1-{group}.xml"));
    ends[ends.len() - 1]
}

fn inspiral(builder: &mut Builder, shared: &Shared, strain: [u32; 2], bank: Output, file: u32) -> Output {
    let reads = vec![shared.injections, shared.reference, shared.factors, strain[0], strain[1], bank.file];
    let task = builder.task("Inspiral", (&fit::INSPIRAL, 1.0), reads, vec![file], &[bank.task]);
    Output { task, file }
}

fn thinca(builder: &mut Builder, ends: &[Output], name: String) -> Output {
    let file = builder.random_file(name, 17_000, 50_000);
    let reads = ends.iter().map(|end| end.file).collect();
    let parents: Vec<u32> = ends.iter().map(|end| end.task).collect();
    Output { task: builder.task("Thinca", (&fit::THINCA, 1.0), reads, vec![file], &parents), file }
}

/// Returns the numbers of groups and of chains in each half: 18 groups of 800 tasks in table 5.
fn counts(tasks: usize) -> (usize, usize, usize) {
    let groups = ((tasks * 9 + 200) / 400).max(1);
    let chains = tasks / 2 - groups;
    (groups, chains / 2, chains - chains / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_table_5() {
        assert_eq!([6, 30, 800, 8000].map(counts), [(1, 1, 1), (1, 7, 7), (18, 191, 191), (180, 1910, 1910)]);
    }
}
