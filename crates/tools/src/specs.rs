//! The list of built-in tools: what a session is given, and what is checked of each.

/// Makes `built_in` of the rows, and their test: `specs/` holds what the model reads, made beforehand.
macro_rules! built_in_tools {
    ($($tool:ty: |$settings:pat_param| $new:expr;)+) => {
        /// The built-in tools, in the order the model sees them.
        pub fn built_in(settings: &ToolSettings) -> Vec<Arc<dyn AnyTool>> {
            vec![$({
                let $settings = settings.clone();
                Arc::new($new)
            }),+]
        }

        #[test]
        fn the_files_say_what_the_types_say() {
            $(specs::check::<$tool>();)+
        }
    };
}

pub(crate) use built_in_tools;

#[cfg(test)]
pub(crate) fn check<T: windlass_ports::Tool>() {
    use windlass_protocol::{KNOWN_TOOLS, ToolProfile};

    /// Set to have the files written.
    const UPDATE: &str = "WINDLASS_UPDATE_SPECS";
    if KNOWN_TOOLS.contains(&T::NAME) {
        assert_eq!(T::PROFILE, ToolProfile::named(T::NAME), "what is known of {} by its name", T::NAME);
    }
    let generated = windlass_ports::generated_spec::<T>() + "\n";
    if std::env::var_os(UPDATE).is_some() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
        return std::fs::write(folder.join(format!("{}.json", T::NAME)), generated).unwrap();
    }
    let hint = "write the files anew: WINDLASS_UPDATE_SPECS=1 cargo test -p windlass-tools the_files_say";
    assert!(T::SPEC.is_none_or(|spec| spec == generated), "{hint}");
}
