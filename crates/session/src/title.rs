//! The name of a session. Any program may give it one, while others write into the file too.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::json;
use uuid::Uuid;

use crate::disk::ends_in_a_line;

/// Names a session. The last name counts; it is a line of its own at the end of the log.
pub fn rename(log: &Path, session: Uuid, title: &str) -> io::Result<()> {
    let line = json!({"type": "custom-title", "customTitle": title, "sessionId": session.to_string()});
    // A file that ends in the middle of a line must not take the name with it.
    let mut file = OpenOptions::new().read(true).append(true).open(log)?;
    let lead = if ends_in_a_line(&file)? { "\n" } else { "" };
    file.write_all(format!("{lead}{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, expected: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), before).unwrap();
        rename(file.path(), Uuid::nil(), "my \"work\"").unwrap();
        let after = std::fs::read_to_string(file.path()).unwrap();
        let line = r#"{"type":"custom-title","customTitle":"my \"work\"","sessionId":"00000000-0000-0000-0000-000000000000"}"#;
        assert_eq!(after, format!("{expected}{line}\n"));
    }

    #[test]
    fn a_name_is_a_line_of_its_own() {
        check("", "");
        check("{}\n", "{}\n");
        check("{}\n{\"type\":\"us", "{}\n{\"type\":\"us\n");
        assert!(rename(Path::new("/nowhere/at/all"), Uuid::nil(), "x").is_err());
    }
}
