//! Numbers of things, for people.

use std::fmt::Display;

/// `1 line`, `2 lines`.
pub fn quantity(count: impl Display, thing: &str) -> String {
    quantity_as(count, thing, &format!("{thing}s"))
}

/// The same for a thing whose plural is not made with an s.
pub fn quantity_as(count: impl Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    format!("{count} {}", if count == "1" { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let check = |count, expected: &str| assert_eq!(quantity(count, "line"), expected);
        check(0, "0 lines");
        check(1, "1 line");
        check(2, "2 lines");
        assert_eq!(quantity_as(1, "directory", "directories"), "1 directory");
        assert_eq!(quantity_as(2, "directory", "directories"), "2 directories");
    }
}
