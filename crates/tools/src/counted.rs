//! Numbers of things, for people.

/// `1 line`, `2 lines`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let check = |count, expected: &str| assert_eq!(counted(count, "line"), expected);
        check(0, "0 lines");
        check(1, "1 line");
        check(2, "2 lines");
    }
}
