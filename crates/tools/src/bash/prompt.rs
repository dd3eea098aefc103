//! Recognising that a command waits for somebody to type.

/// Whether a line without an end is a known question to a person. Only forms that programs really use count, and only
/// at the very end of the output: a wrong guess would stop a command that is merely slow.
pub(crate) fn is_prompt(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    if let Some(question) = line.strip_suffix(':') {
        let secret = ["password", "passphrase", "passcode", "verification code"];
        let who = ["username", "login", "user name", "otp", "pin"];
        let asks = secret.iter().any(|word| has_word(question, word))
            || who.iter().any(|word| begins_or_ends_with_word(question, word));
        if asks {
            return true;
        }
    }
    let choice = [
        "[y/n]", "(y/n)", "[yes/no]", "(yes/no)", "[y/n/q]", "[y/n/a]", "(y/n/a)", "[y|n]", "(y|n)", "[n/y]",
        "? (y)",
    ];
    let question = line.trim_end_matches([':', '?', '>', ' ', '.']);
    if choice.iter().any(|choice| question.ends_with(choice)) || question.ends_with("(yes/no/[fingerprint])")
    {
        return true;
    }
    let press = ["press any key", "press enter", "press return", "hit enter", "hit any key"];
    if press.iter().any(|press| line.contains(press)) {
        return true;
    }
    let confirm = ["are you sure", "continue", "proceed", "overwrite"];
    line.ends_with('?') && confirm.iter().any(|confirm| line.contains(confirm))
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| is_apart(&text[..at], &text[at + word.len()..]))
}

fn begins_or_ends_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| is_apart("", rest))
        || text.strip_suffix(word).is_some_and(|rest| is_apart(rest, ""))
}

/// Whether no letter or digit touches what stands between the two.
fn is_apart(before: &str, after: &str) -> bool {
    let touches = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !touches(before.chars().next_back()) && !touches(after.chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_other_lines() {
        let check = |line: &str, expected: bool| assert_eq!(is_prompt(line), expected, "{line}");
        for line in [
            "Password: ",
            "[sudo] password for user: ",
            "user@host's password:",
            "Enter passphrase for key '/home/user/.ssh/id_ed25519': ",
            "Username for 'https://example.com': ",
            "localhost login: ",
            "Verification code:",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
            "Do you want to continue? [Y/n] ",
            "Proceed (Y/n)? ",
            "rm: remove regular file 'a'? [y/N]: ",
            "overwrite 'b'? ",
            "Press any key to continue . . . ",
            "Press ENTER to continue",
            "Ok to proceed? (y) ",
        ] {
            check(line, true);
        }
        for line in [
            "",
            "Compiling windlass",
            "Downloading: 40%",
            "tests passed",
            "step 1/3:",
            "spin:",
            "why?",
            "f(y)",
            "logins:",
            "> ",
        ] {
            check(line, false);
        }
    }
}
