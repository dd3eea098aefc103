//! What the model reads about Bash, which follows the settings.

use serde_json::Value;
use windlass_protocol::ToolSpec;

use super::BashSettings;

/// The description and the schema as they are under these settings.
pub(super) fn follow_settings(spec: ToolSpec, settings: &BashSettings) -> ToolSpec {
    let mut schema: Value = serde_json::from_str(spec.input_schema.get()).unwrap_or_default();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        if settings.is_background_off {
            properties.shift_remove("run_in_background");
        }
        if settings.sandbox.is_some() && settings.can_leave_sandbox {
            let leave = serde_json::json!({
                "type": "boolean",
                "description": "Run outside the sandbox; this needs approval. Only when the command failed because of the sandbox.",
            });
            properties.insert("dangerouslyDisableSandbox".to_owned(), leave);
        }
        if let Some(Value::Object(timeout)) = properties.get_mut("timeout") {
            timeout.insert("description".to_owned(), timeout_text(settings).into());
        }
    }
    let input_schema = serde_json::value::to_raw_value(&schema).map_or(spec.input_schema, Into::into);
    ToolSpec { name: spec.name, description: description(settings).into(), input_schema, ..spec }
}

fn timeout_text(settings: &BashSettings) -> String {
    let what = if settings.is_background_off { "stopped" } else { "moved to the background or stopped" };
    let (default, max) = (settings.timeout_default.as_millis(), settings.longest_timeout().as_millis());
    format!("Milliseconds until the command is {what}. Default {default}, at most {max}.")
}

fn description(settings: &BashSettings) -> String {
    let shell = if settings.should_keep_directory {
        "Each call is a new shell in the project's directory: `cd`, variables, functions and aliases do not carry over."
    } else {
        "Each call is a new shell. `cd` carries over to later calls while it stays inside the working directories; \
         variables, functions and aliases do not carry over."
    };
    let background = if settings.is_background_off {
        "A command that reaches its timeout is stopped; nothing runs in the background."
    } else {
        "A command that reaches its timeout continues in the background. Start servers and watchers with \
         `run_in_background`, Read their output file, and stop them with `TaskStop`."
    };
    let sandbox = settings.sandbox.as_ref().map_or_else(String::new, |sandbox| {
        let limits = sandbox.limits();
        format!(
            "\n- Commands run in a sandbox. {limits} If it may be why a command failed, the result says so."
        )
    });
    format!(
        "Runs a command with bash and returns its output, standard output and standard error together.\n\n\
         - {shell}\n\
         - There is no terminal and no input: pass flags such as `-y` or `-m`, never start an editor or a pager.\n\
         - Long output is cut in the middle; the result names a file with more of it.\n\
         - {background}\n\
         - To read, search, write or change files use Read, Grep, Glob, Write and Edit instead.{sandbox}"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use windlass_ports::AnyTool;
    use windlass_sandbox::{Launcher, Sandbox, SandboxPolicy};

    use super::*;
    use crate::{Bash, Tasks};

    fn spec(change: impl FnOnce(&mut BashSettings)) -> (String, Value) {
        let mut settings = BashSettings::new(Launcher::direct());
        change(&mut settings);
        let spec = Bash::new(settings, Tasks::new(None)).spec();
        assert_eq!(&*spec.name, "Bash");
        (spec.description.to_string(), serde_json::from_str(spec.input_schema.get()).unwrap())
    }

    #[test]
    fn the_usual_text() {
        let (description, schema) = spec(|_| {});
        assert!(
            description.contains("continues in the background") && description.contains("`cd` carries over")
        );
        let properties = schema["properties"].as_object().unwrap();
        let names: Vec<&String> = properties.keys().collect();
        assert_eq!(names, ["command", "timeout", "description", "run_in_background"]);
        assert_eq!(
            properties["timeout"]["description"],
            "Milliseconds until the command is moved to the background or stopped. Default 120000, at most 600000."
        );
        assert_eq!(schema["required"], serde_json::json!(["command"]));
    }

    #[test]
    fn the_text_about_the_sandbox_is_what_the_sandbox_says_of_itself() {
        let policy = SandboxPolicy::new(vec!["/work".into()], Path::new("/home/me"));
        let Ok(sandbox) = Sandbox::prepare(&policy) else { return };
        let limits = sandbox.limits();
        let (description, _) = spec(|settings| settings.sandbox = Some(sandbox));
        assert!(description.contains(&format!("\n- Commands run in a sandbox. {limits} ")), "{description}");
        assert!(limits.contains("There is no network") && limits.contains("/work and $TMPDIR"), "{limits}");
    }

    #[test]
    fn the_text_follows_the_settings() {
        let (description, schema) = spec(|settings| {
            settings.is_background_off = true;
            settings.should_keep_directory = true;
            settings.timeout_default = Duration::from_mins(15);
        });
        assert!(!description.contains("run_in_background") && description.contains("timeout is stopped"));
        assert!(description.contains("new shell in the project's directory"), "{description}");
        let properties = schema["properties"].as_object().unwrap();
        assert!(!properties.contains_key("run_in_background"));
        assert_eq!(
            properties["timeout"]["description"],
            "Milliseconds until the command is stopped. Default 900000, at most 900000."
        );
    }
}
