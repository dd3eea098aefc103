//! The documentation of the environment variables, made from their table.

use std::fmt::Write as _;

use crate::variables::{VARIABLES, VariableArea};

/// The page as Markdown.
pub fn environment_page() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         Windlass reads them once, at the start. An empty variable counts as unset; an invalid value is an error.\n\
         This page is made from the table in `crates/config/src/variables.rs`; a test compares the two.\n",
    );
    for (area, heading) in VariableArea::HEADINGS {
        let _ =
            write!(page, "\n## {heading}\n\n| Variable | Value | Default | Meaning |\n|---|---|---|---|\n");
        for variable in VARIABLES.iter().filter(|variable| variable.area == area) {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                variable.name, variable.accepts, variable.default, variable.meaning
            );
        }
    }
    page.push_str(
        "\nThe HTTP client also respects the usual `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, and\n\
         `SSL_CERT_FILE` and `SSL_CERT_DIR` for the authorities it trusts.\n",
    );
    page.push_str(SCRIPTED_HOOKS);
    page
}

const SCRIPTED_HOOKS: &str = r#"
## Answers that stand in for hooks

`WINDLASS_SCRIPTED_HOOKS` names a JSON file with a list of answers for each event (`PreToolUse`, `PostToolUse`,
`PostToolUseFailure`, `Stop`, `StopFailure`, `PreCompact`). Each time hooks of an event would run, the next answer of its
list is used; after the last, hooks say nothing. Every field of an answer is optional:

```json
{
  "PreToolUse": [
    {"permission": "allow", "input": {"file_path": "b.txt"}, "context": ["Told to the model."]},
    {"permission": {"deny": "Why not, for the model."}},
    {"permission": {"ask": "Why, for the person."}},
    {"permission": "defer"}
  ],
  "Stop": [
    {"blocks": ["Run the tests before you end."]},
    {"stop": "Enough for today.", "notices": ["Told to the user."]}
  ]
}
```
"#;
