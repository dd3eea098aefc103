//! Numbers in texts for people.

/// A number with its thousands set apart.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 turn`, `2,000 turns`.
pub fn counted(n: u64, thing: &str) -> String {
    crate::plurals::counted(number(n), thing)
}
