//! The files in `specs/`: what the model reads about each built-in tool, made beforehand.

use windlass_ports::AnyTool;
use windlass_protocol::{KNOWN_TOOLS, ToolProfile};
use windlass_sandbox::Launcher;

use crate::*;

/// Set to have the files written.
const UPDATE: &str = "WINDLASS_UPDATE_SPECS";

#[test]
fn the_files_say_what_the_types_say() {
    let bash = BashSettings::new(Launcher::direct());
    let tools = built_in(bash, GlobSettings::default(), ReadLimits::default(), &Tasks::new(None));
    for tool in &tools {
        check(&**tool);
    }
}

fn check(tool: &dyn AnyTool) {
    let spec = tool.spec();
    let name = &*spec.name;
    if KNOWN_TOOLS.contains(&name) {
        assert_eq!(spec.profile, ToolProfile::named(name), "what is known of {name} by its name");
    }
    let (generated, kept) = tool.generated_spec();
    let generated = generated + "\n";
    if std::env::var_os(UPDATE).is_some() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
        return std::fs::write(folder.join(format!("{name}.json")), generated).unwrap();
    }
    let hint = "write the files anew: WINDLASS_UPDATE_SPECS=1 cargo test -p windlass-tools the_files_say";
    assert!(kept.is_none_or(|kept| kept == generated), "{hint}");
}
