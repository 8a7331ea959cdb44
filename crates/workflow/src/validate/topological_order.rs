//! Ordering of small directed graphs: the tasks of a stage, the stages of a workflow.

/// Returns the nodes `0..edges.len()` in topological order, keeping the listed order where possible. `waits_for[node]`
/// lists the nodes that `node` depends on.
///
/// # Errors
/// Returns the nodes along a cycle, if one exists.
pub(crate) fn order(waits_for: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut placed = vec![false; waits_for.len()];
    let mut order = Vec::with_capacity(waits_for.len());
    // A quadratic search suffices: stages have tens of tasks, workflows a handful of stages.
    while order.len() < waits_for.len() {
        let ready = (0..waits_for.len()).find(|&n| !placed[n] && waits_for[n].iter().all(|&m| placed[m]));
        let Some(node) = ready else { return Err(cycle(waits_for, &placed)) };
        placed[node] = true;
        order.push(node);
    }
    Ok(order)
}

/// Returns the nodes of a cycle. Every unplaced node depends on an unplaced node, so a walk along dependencies ends in
/// a cycle.
fn cycle(waits_for: &[Vec<usize>], placed: &[bool]) -> Vec<usize> {
    let mut walk: Vec<usize> = Vec::new();
    let mut node = placed.iter().position(|placed| !placed).unwrap_or(0);
    loop {
        if let Some(start) = walk.iter().position(|&seen| seen == node) {
            let mut members = walk.split_off(start);
            members.reverse();
            return members;
        }
        walk.push(node);
        // An unplaced node waits for another unplaced one, so the walk must return to a node that it has seen.
        node = waits_for[node].iter().copied().find(|&m| !placed[m]).unwrap_or(node);
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn keeps_the_listed_order_where_it_can() {
        assert_eq!(order(&[vec![], vec![], vec![0]]), Ok(vec![0, 1, 2]));
        assert_eq!(order(&[vec![2], vec![], vec![1]]), Ok(vec![1, 2, 0]));
    }

    #[test]
    fn names_the_cycle_and_nothing_else() {
        assert_eq!(order(&[vec![], vec![3, 0], vec![1], vec![2]]), Err(vec![2, 3, 1]));
        assert_eq!(order(&[vec![0]]), Err(vec![0]));
    }
}
