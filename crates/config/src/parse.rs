//! Reading the values of variables. What cannot be read is `None`; the table says what could.

use windlass_protocol::{Secret, SyncPolicy};

/// A switch: `1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off`.
pub(crate) fn switch(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// When the log waits for the disk.
pub(crate) fn sync(value: &str) -> Option<SyncPolicy> {
    match value.trim().to_ascii_lowercase().as_str() {
        "always" => Some(SyncPolicy::Always),
        "turn" => Some(SyncPolicy::Turn),
        "never" => Some(SyncPolicy::Never),
        _ => None,
    }
}

/// A whole number in a range.
pub(crate) fn number<N: std::str::FromStr + PartialOrd + Copy>(value: &str, least: N, most: N) -> Option<N> {
    value.trim().parse().ok().filter(|number| *number >= least && *number <= most)
}

/// Names separated by commas.
pub(crate) fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Headers, one `Name: value` per line.
pub(crate) fn headers(value: &str) -> Option<Vec<(String, Secret)>> {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':')?;
            let (name, value) = (name.trim(), value.trim());
            let is_name = !name.is_empty() && name.bytes().all(is_name_byte);
            let is_value = value.bytes().all(|byte| byte >= b' ' && byte != 0x7f);
            (is_name && is_value).then(|| (name.to_owned(), Secret::new(value.to_owned())))
        })
        .collect()
}

/// A key or token as it can stand in a header.
pub(crate) fn secret(value: &str) -> Option<Secret> {
    let value = value.trim();
    let sendable = !value.is_empty() && value.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    sendable.then(|| Secret::new(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_lines_of_name_and_value() {
        let check = |value, expected: Option<&str>| {
            let seen = headers(value).map(|list| {
                let list: Vec<_> =
                    list.iter().map(|(name, value)| format!("{name}={}", value.reveal())).collect();
                list.join("|")
            });
            assert_eq!(seen.as_deref(), expected, "{value:?}");
        };
        check("X-A: 1\nX-B:two: parts\n\n", Some("X-A=1|X-B=two: parts"));
        check("X-A:", Some("X-A="));
        check("no colon", None);
        check("bad name: x", None);
        check(": x", None);
        check("X-A: \u{1}", None);
    }

    #[test]
    fn switches_and_numbers() {
        assert_eq!(
            ["1", "TRUE", "off", "No", "2", ""].map(switch),
            [Some(true), Some(true), Some(false), Some(false), None, None]
        );
        assert_eq!(
            ["0", "7", "15", "16", "-1", "1e3"].map(|text| number(text, 1_u32, 15)),
            [None, Some(7), Some(15), None, None, None]
        );
    }
}
