//! Which line of a drawing a bar stands on, so that no two bars cover each other.

/// The lane of each span, given in the order in which they begin. A span takes the first lane that is free; beyond
/// `lanes_max` lanes the last one is shared.
pub(crate) fn pack(spans: impl Iterator<Item = (u64, u64)>, lanes_max: usize) -> Vec<usize> {
    let mut free_from: Vec<u64> = Vec::new();
    let lane_of = |(from, to): (u64, u64)| {
        let free = free_from.iter().position(|free| *free <= from);
        let lane = free.unwrap_or(free_from.len()).min(lanes_max.saturating_sub(1));
        if lane == free_from.len() {
            free_from.push(to);
        } else {
            free_from[lane] = free_from[lane].max(to);
        }
        lane
    };
    spans.map(lane_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_stand_on_lanes_of_their_own() {
        let check = |spans: &[(u64, u64)], lanes: &[usize]| assert_eq!(pack(spans.iter().copied(), 3), lanes);
        check(&[], &[]);
        check(&[(0, 10), (10, 20), (20, 30)], &[0, 0, 0]);
        check(&[(0, 10), (5, 20), (10, 30)], &[0, 1, 0]);
        check(&[(0, 100), (1, 5), (2, 6), (5, 7)], &[0, 1, 2, 1]);
        check(&[(0, 9), (1, 9), (2, 9), (3, 9), (9, 10)], &[0, 1, 2, 2, 0]);
        check(&[(3, 3), (3, 3)], &[0, 0]);
    }
}
