use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    CallFacts, CallId, CallKind, FileSeen, PathFact, ToolOutput, ToolProfile, ToolProgress, ToolSpec,
};

/// A tool, written against the type of its input.
///
/// The doc comments of [`Tool::Input`] and of its fields are what the model reads; the schema is generated
/// from the type. Every `Tool` is an [`AnyTool`], which is what the engine holds.
///
/// ```
/// use windlass_ports::{ExamineContext, JsonSchema, Tool, ToolContext};
/// use windlass_protocol::{CallFacts, CallKind, ToolOutput};
///
/// /// Counts the characters of a text.
/// #[derive(serde::Deserialize, JsonSchema)]
/// #[schemars(crate = "windlass_ports::schemars")]
/// struct CountInput {
///     /// The text to count.
///     text: String,
/// }
///
/// struct Count;
///
/// impl Tool for Count {
///     type Input = CountInput;
///     const NAME: &'static str = "Count";
///
///     fn facts(&self, input: &CountInput, _: &ExamineContext) -> Result<CallFacts, String> {
///         Ok(CallFacts { is_shared: true, target: input.text.clone(), ..CallFacts::new(CallKind::Read) })
///     }
///
///     async fn run(&self, input: CountInput, _: ToolContext) -> ToolOutput {
///         ToolOutput::text(&input.text.chars().count().to_string())
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The input; its doc comment is the tool's description.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The name the model calls it by.
    const NAME: &'static str;
    /// What it declares about itself: former names, what its calls are about, whether its results may be cleared.
    const PROFILE: ToolProfile = ToolProfile::DEFAULT;
    /// In characters: a longer result goes to a file and is previewed; `None` if the tool limits its results itself.
    const RESULT_CHARS_MAX: Option<usize> = Some(50_000);
    /// What [`AnyTool::generated_spec`] makes of the input, as JSON. It can be left out; then that is done at each start.
    const SPEC: Option<&'static str> = None;

    /// Checks the input beyond its schema and says what the call would do. Called when the call's turn to be
    /// prepared has come, so that earlier exclusive calls have had their effect. Must be quick and change nothing.
    /// An error is for the model and names the field.
    fn facts(&self, input: &Self::Input, cx: &ExamineContext) -> Result<CallFacts, String>;

    /// Changes what the model reads about the tool where that follows its settings.
    fn adapt_spec(&self, spec: ToolSpec) -> ToolSpec {
        spec
    }

    /// Runs the call. A failure is an outcome too: text the model must read.
    ///
    /// When [`ToolContext::cancel`] fires, the tool stops what it started and returns what it has within
    /// a second. Dropping the future must stop it as well.
    fn run(&self, input: Self::Input, cx: ToolContext) -> impl Future<Output = ToolOutput> + Send;
}

/// What a tool may look at to say what a call would do.
#[derive(Clone, Debug)]
pub struct ExamineContext {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The working directories of the session, absolute; the first is the project's. All are resolved, and one that was
    /// named through a link is listed by that name too.
    pub roots: Arc<[PathBuf]>,
    /// What may not be read without a question, if at all.
    pub hidden: HiddenPaths,
}

impl ExamineContext {
    /// A place in which everything may be read.
    pub fn new(cwd: PathBuf, roots: Arc<[PathBuf]>) -> Self {
        Self { cwd, roots, hidden: HiddenPaths::default() }
    }
}

/// Files that may not be read, and so are not found either.
#[derive(Clone, Default)]
pub struct HiddenPaths(Option<Arc<Hides>>);

type Hides = dyn Fn(&Path) -> bool + Send + Sync;

impl HiddenPaths {
    /// Hides the resolved paths that `hides` says yes to.
    pub fn new(hides: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hides)))
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a file or directory must not be shown.
    pub fn hides(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|hides| hides(path))
    }
}

impl std::fmt::Debug for HiddenPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HiddenPaths").field(&self.0.is_some()).finish()
    }
}

/// What a running call is given.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The call.
    pub call: CallId,
    /// The provider's id of the call.
    pub tool_use_id: Arc<str>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The working directories of the session, as in [`ExamineContext::roots`].
    pub roots: Arc<[PathBuf]>,
    /// The facts that permission was decided on: those of this very input. What a tool does must be what they say, and what
    /// it opens must be their paths.
    pub facts: Arc<CallFacts>,
    /// What the conversation knows of the files that the call's facts name.
    pub seen: Vec<FileSeen>,
    /// What a search must not show.
    pub hidden: HiddenPaths,
    /// Whether a command runs in the sandbox. A command that should and cannot does not run.
    pub is_confined: bool,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// Where to say how it is getting on.
    pub progress: ProgressSender,
}

impl ToolContext {
    /// What the conversation knows of the file at this resolved path.
    pub fn seen_file(&self, resolved: &Path) -> Option<&FileSeen> {
        self.seen.iter().find(|seen| seen.path == resolved)
    }

    /// Whether a path is still what it was when permission was decided: a link may have been swapped since.
    pub fn is_decided(&self, path: &PathFact) -> bool {
        let is_same =
            |decided: &PathFact| decided.lexical == path.lexical && decided.resolved == path.resolved;
        let decided = &self.facts.paths;
        decided.is_empty() || decided.iter().any(is_same)
    }

    /// A context for trying a tool on its own: nothing decided, nothing seen, never cancelled, progress dropped.
    pub fn detached(cwd: PathBuf) -> Self {
        Self {
            call: CallId(0),
            tool_use_id: "detached".into(),
            roots: [cwd.clone()].into(),
            cwd,
            facts: Arc::new(CallFacts::new(CallKind::Execute)),
            seen: Vec::new(),
            hidden: HiddenPaths::default(),
            is_confined: false,
            cancel: CancellationToken::new(),
            progress: progress_channel().0,
        }
    }
}

/// The sending end of the progress of all running calls: bounded, so a chatty tool waits.
#[derive(Clone, Debug)]
pub struct ProgressSender(mpsc::Sender<(CallId, ToolProgress)>);

/// The receiving end, held by the driver.
#[derive(Debug)]
pub struct ProgressReceiver(mpsc::Receiver<(CallId, ToolProgress)>);

/// A channel for progress.
pub fn progress_channel() -> (ProgressSender, ProgressReceiver) {
    let (sender, receiver) = mpsc::channel(16);
    (ProgressSender(sender), ProgressReceiver(receiver))
}

impl ProgressSender {
    /// Says how `call` is getting on; waits while the caller is behind.
    pub async fn send(&self, call: CallId, progress: ToolProgress) {
        // A closed channel means that nobody watches any more.
        let _ = self.0.send((call, progress)).await;
    }
}

impl ProgressReceiver {
    /// The next news, if there is any.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<(CallId, ToolProgress)> {
        match self.0.poll_recv(cx) {
            Poll::Ready(Some(news)) => Poll::Ready(news),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// A tool without its input type, for the engine; implement it directly only where the schema is known at run time.
pub trait AnyTool: Send + Sync + 'static {
    /// The tool as the model sees it.
    fn spec(&self) -> ToolSpec;
    /// What the type of its input says about it, as JSON, if there is one; with it, what is kept of that ([`Tool::SPEC`]).
    fn generated_spec(&self) -> (String, Option<&'static str>) {
        (String::new(), None)
    }
    /// Parses the input and says what the call would do; an error is for the model and names the field.
    fn examine(&self, input: &RawValue, cx: &ExamineContext) -> Result<CallFacts, String>;
    /// Runs the call.
    fn run(self: Arc<Self>, input: Arc<RawValue>, cx: ToolContext) -> BoxFuture<'static, ToolOutput>;
}

impl<T: Tool> AnyTool for T {
    fn spec(&self) -> ToolSpec {
        let spec = T::SPEC.and_then(|text| serde_json::from_str(text).ok());
        let Spec { description, input_schema } = spec.unwrap_or_else(generate::<T>);
        self.adapt_spec(ToolSpec {
            name: T::NAME.into(),
            description: description.into(),
            input_schema: input_schema.into(),
            result_chars_max: T::RESULT_CHARS_MAX,
            profile: T::PROFILE,
        })
    }

    fn generated_spec(&self) -> (String, Option<&'static str>) {
        (serde_json::to_string(&generate::<T>()).unwrap_or_default(), T::SPEC)
    }

    fn examine(&self, input: &RawValue, cx: &ExamineContext) -> Result<CallFacts, String> {
        let input: T::Input = parse(T::NAME, input)?;
        self.facts(&input, cx)
    }

    fn run(self: Arc<Self>, input: Arc<RawValue>, cx: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            match parse(T::NAME, &input) {
                Ok(input) => Tool::run(&*self, input, cx).await,
                Err(error) => ToolOutput::error(&error),
            }
        })
    }
}

/// Takes a field out and leaves the others in their order.
fn take(schema: &mut Value, key: &str) -> Option<Value> {
    schema.as_object_mut()?.shift_remove(key)
}

/// What a model reads about a tool besides its name.
#[derive(Serialize, Deserialize)]
struct Spec {
    description: String,
    input_schema: Box<RawValue>,
}

fn generate<T: Tool>() -> Spec {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut schema = generator.into_root_schema_for::<T::Input>().to_value();
    let description = take(&mut schema, "description");
    take(&mut schema, "title");
    take(&mut schema, "$schema");
    plain(&mut schema);
    Spec {
        description: description.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
        input_schema: serde_json::value::to_raw_value(&schema).unwrap_or_default(),
    }
}

/// Leaves out what tells a model nothing: widths of integers, absent defaults, and that what is optional may be null.
fn plain(schema: &mut Value) {
    take(schema, "format");
    if schema["default"].is_null() {
        take(schema, "default");
    }
    if schema["minimum"] == 0 {
        take(schema, "minimum");
    }
    if let Some(kind) = schema.get_mut("type") {
        let named = kind.as_array().and_then(|types| types.iter().find(|name| *name != "null")).cloned();
        if let Some(named) = named {
            *kind = named;
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
}

/// Parses a tool's input; the error says which field is wrong and how.
fn parse<I: DeserializeOwned>(tool: &str, input: &RawValue) -> Result<I, String> {
    let mut json = serde_json::Deserializer::from_str(input.get());
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!(" in `{path}`") };
        let inner = error.into_inner().to_string();
        // The position counts characters of the JSON, which means nothing to a model.
        let what = inner.split(" at line ").next().unwrap_or(&inner);
        format!("The input of {tool} is not valid{place}: {what}. Correct the input and call the tool again.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds things.
    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct FindInput {
        /// What to find.
        what: String,
        /// How many.
        #[serde(default)]
        count: Option<u64>,
    }

    struct Find;

    impl Tool for Find {
        type Input = FindInput;
        const NAME: &'static str = "Find";

        fn facts(&self, _: &FindInput, _: &ExamineContext) -> Result<CallFacts, String> {
            Err("not used here".into())
        }

        async fn run(&self, _: FindInput, _: ToolContext) -> ToolOutput {
            ToolOutput::text("")
        }
    }

    #[test]
    fn a_schema_says_what_the_type_says_and_no_more() {
        let spec = Find.spec();
        assert_eq!((&*spec.name, &*spec.description), ("Find", "Finds things."));
        assert_eq!(
            spec.input_schema.get(),
            concat!(
                r#"{"type":"object","additionalProperties":false,"properties":{"#,
                r#""what":{"type":"string","description":"What to find."},"#,
                r#""count":{"type":"integer","description":"How many."}},"required":["what"]}"#
            )
        );
    }

    #[test]
    fn bad_input_names_the_field() {
        let check = |input: &str, expected: &str| {
            let raw = RawValue::from_string(input.into()).unwrap();
            let cx = ExamineContext::new("/".into(), [].into());
            assert_eq!(Find.examine(&raw, &cx).unwrap_err(), expected);
        };
        let advice = "Correct the input and call the tool again.";
        check("{}", &format!("The input of Find is not valid: missing field `what`. {advice}"));
        check(
            r#"{"what":"x","count":"many"}"#,
            &format!(
                "The input of Find is not valid in `count`: invalid type: string \"many\", expected u64. {advice}"
            ),
        );
        check(
            r#"{"what":"x","why":1}"#,
            &format!(
                "The input of Find is not valid in `why`: unknown field `why`, expected `what` or `count`. {advice}"
            ),
        );
        check(r#"{"what":"x"}"#, "not used here");
    }
}
