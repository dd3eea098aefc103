//! The streaming client of the Anthropic Messages API: one request, one answer. A failure is the last item of the
//! stream, with a class that says who can act. Connections are kept between requests.

mod body;
mod optional_fields;
mod settings;
mod transport;
mod watchdog;
pub(crate) mod whole_answer;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response};
use tokio::time::timeout;
use windlass_ports::{BoxStream, ModelClient};
use windlass_protocol::{Delivery, Failure, FailureClass, ModelEvent, ModelRequest, Secret};

use crate::classify::{ErrorBody, ErrorHeaders, answer_failure, read_headers};
use crate::{ResponseAssembler, SseDecoder};
use body::BodyBuilder;
use optional_fields::{FieldRefusals, OptionalFields};
pub use settings::{AnthropicSettings, ClientError, ClientIdentity, WatchdogLimits};
use settings::{Endpoint, without_credentials};
use transport::{ClientCell, body_failure, build, send_failure};
use watchdog::{Stall, Watchdog};
use whole_answer::MessageError;

/// More of an error's body is not read.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;

/// The status says most; the words behind it are not worth a longer wait.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// The smallest limit on requests that a provider documents.
const REFUSED_BODY_BYTES_MIN: u64 = 20 * 1000 * 1000;

/// The largest answer that is taken in one piece.
const WHOLE_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long to read on for the end of the HTTP answer, which keeps the connection: a new one takes longer.
const ANSWER_END_WAIT: Duration = Duration::from_millis(50);

/// Talks to a server that speaks the Anthropic Messages API. Cheap to clone.
#[derive(Clone)]
pub struct AnthropicClient {
    shared: Arc<ClientState>,
}

struct ClientState {
    settings: AnthropicSettings,
    endpoint: Endpoint,
    headers: HeaderMap,
    bodies: BodyBuilder,
    refusals: FieldRefusals,
    client: ClientCell,
}

impl AnthropicClient {
    /// Checks the settings. Connections and certificates wait for the first request.
    pub fn new(settings: AnthropicSettings) -> Result<Self, ClientError> {
        let shared = ClientState {
            endpoint: settings::endpoint(&settings.base_url)?,
            headers: settings::headers(&settings)?,
            bodies: BodyBuilder::new(settings.has_prompt_caching),
            refusals: FieldRefusals::default(),
            client: ClientCell::new(),
            settings,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl fmt::Debug for AnthropicClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicClient").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl ModelClient for AnthropicClient {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let exchange = HttpExchange::new(Arc::clone(&self.shared), request);
        Box::pin(unfold(Box::new(exchange), |mut exchange| async move {
            let event = exchange.next().await?;
            Some((event, exchange))
        }))
    }
}

/// One request and its answer.
struct HttpExchange {
    shared: Arc<ClientState>,
    stage: ExchangeStage,
    model: Arc<str>,
    delivery: Delivery,
    watchdog: Watchdog,
    decoder: SseDecoder,
    response: ResponseAssembler,
    request_id: Option<String>,
}

enum ExchangeStage {
    Unsent(Arc<ModelRequest>),
    Streaming(Response),
    Whole(VecDeque<ModelEvent>),
    Over,
}

impl HttpExchange {
    fn new(shared: Arc<ClientState>, request: Arc<ModelRequest>) -> Self {
        Self {
            watchdog: Watchdog::new(match request.delivery {
                Delivery::Streamed => shared.settings.watchdog,
                Delivery::Whole => WatchdogLimits { bytes: shared.settings.whole_wait, events: None },
            }),
            delivery: request.delivery,
            shared,
            decoder: SseDecoder::default(),
            response: ResponseAssembler::for_model(Arc::clone(&request.model)),
            model: Arc::clone(&request.model),
            stage: ExchangeStage::Unsent(request),
            request_id: None,
        }
    }

    async fn next(&mut self) -> Option<ModelEvent> {
        self.watchdog.on_return();
        let event = self.advance().await;
        match event {
            Ok(event) => event,
            Err(mut failure) => {
                self.stage = ExchangeStage::Over;
                failure.request_id = failure.request_id.or_else(|| self.request_id.take());
                failure.message = self.shared.without_secrets(&failure.message);
                Some(ModelEvent::Failed(failure))
            }
        }
    }

    async fn advance(&mut self) -> Result<Option<ModelEvent>, Box<Failure>> {
        loop {
            match &mut self.stage {
                ExchangeStage::Unsent(request) => {
                    let request = Arc::clone(request);
                    self.stage = self.open(&request).await?;
                }
                ExchangeStage::Whole(events) => match events.pop_front() {
                    Some(event) => return or_failure(event).map(Some),
                    None => self.stage = ExchangeStage::Over,
                },
                ExchangeStage::Streaming(_) => {
                    let event = match self.decode()? {
                        Some(event) => Some(event),
                        None => self.read().await?,
                    };
                    if let Some(event) = event {
                        return self.hand_out(event).await.map(Some);
                    }
                }
                ExchangeStage::Over => return Ok(None),
            }
        }
    }

    /// Sends the request and looks at the head of the answer.
    async fn open(&mut self, request: &ModelRequest) -> Result<ExchangeStage, Box<Failure>> {
        let shared = Arc::clone(&self.shared);
        let client = shared.client()?;
        let fields = OptionalFields::of(request, |field| shared.refusals.has(&request.model, field));
        let headers = settings::request_headers(&shared.headers, request.delivery, fields.betas());
        let body = shared.bodies.build(request, &fields);
        let body_bytes = body.left;
        let post = client.post(shared.endpoint.url.clone()).headers(headers);
        let sending = post.body(body.into_reqwest()).send();
        let response = match self.watchdog.wait(sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let failure = send_failure(&error, &shared.settings, &shared.endpoint);
                return Err(explain_size(failure, body_bytes).into());
            }
            Err(stall) => return Err(stall_failure(stall, &shared.endpoint.place).into()),
        };
        self.watchdog.on_bytes();
        let headers = read_headers(|name| header(&response, name), SystemTime::now());
        self.request_id.clone_from(&headers.request_id);
        let status = response.status().as_u16();
        match status {
            200..=299 => {
                shared.refusals.accept(&fields.used);
                self.take_answer(response).await
            }
            300..=399 => Err(redirect_failure(&response, &shared.endpoint.place).into()),
            _ => {
                let body = read_error_body(response).await;
                let body = ErrorBody::parse(&String::from_utf8_lossy(&body));
                let failure = answer_failure(status, &body, headers, &shared.endpoint.place);
                Err(shared.refusals.learn(failure, &body.words, &fields.used, &request.model).into())
            }
        }
    }

    async fn take_answer(&mut self, response: Response) -> Result<ExchangeStage, Box<Failure>> {
        let usual = match self.delivery {
            Delivery::Streamed => "text/event-stream",
            Delivery::Whole => "application/json",
        };
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or(usual).to_ascii_lowercase();
        let encoding = header(&response, CONTENT_ENCODING.as_str()).filter(|name| *name != "identity");
        if encoding.is_none() && kind.starts_with("text/event-stream") {
            self.watchdog = Watchdog::new(self.shared.settings.watchdog);
            return Ok(ExchangeStage::Streaming(response));
        }
        if let Some(encoding) = encoding {
            return Err(self.mismatch(&format!("unexpected encoding {encoding}")).into());
        }
        if !kind.contains("json") {
            return Err(self.mismatch(&kind).into());
        }
        let status = response.status().as_u16();
        let body = self.read_whole(response).await?;
        let text = String::from_utf8_lossy(&body);
        match whole_answer::events(&text, Arc::clone(&self.model)) {
            Ok(events) => Ok(ExchangeStage::Whole(events)),
            Err(MessageError::Cut) => {
                let place = &self.shared.endpoint.place;
                let message = format!("{place} broke off the response.");
                Err(Failure::new(FailureClass::Cut, message).into())
            }
            Err(MessageError::Wrong(problem)) => {
                let error = ErrorBody::parse(&text);
                if !error.is_error() {
                    return Err(self.mismatch(&format!("JSON that is not a message ({problem})")).into());
                }
                Err(answer_failure(status, &error, ErrorHeaders::default(), &self.shared.endpoint.place)
                    .into())
            }
        }
    }

    fn mismatch(&self, what: &str) -> Failure {
        let place = &self.shared.endpoint.place;
        let wanted = match self.delivery {
            Delivery::Streamed => "a stream of events",
            Delivery::Whole => "a message",
        };
        let message = format!("{place} sent {what} instead of {wanted}. Check ANTHROPIC_BASE_URL.");
        Failure::new(FailureClass::Malformed, message)
    }

    async fn read_whole(&mut self, mut response: Response) -> Result<BytesMut, Box<Failure>> {
        let mut body = BytesMut::new();
        let place = &self.shared.endpoint.place;
        while let Some(chunk) = next_chunk(&mut self.watchdog, &mut response, place).await? {
            body.extend_from_slice(&chunk);
            if body.len() > WHOLE_BODY_BYTES_MAX {
                let message = format!("The response is larger than {WHOLE_BODY_BYTES_MAX} bytes.");
                return Err(Failure::new(FailureClass::Malformed, message).into());
            }
        }
        Ok(body)
    }

    fn decode(&mut self) -> Result<Option<ModelEvent>, Box<Failure>> {
        loop {
            if let Some(block) = self.response.take_held() {
                return Ok(Some(block));
            }
            let event = match self.decoder.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(None),
                Err(error) => {
                    let message = format!("Invalid response stream: {error}.");
                    return Err(Failure::new(FailureClass::Malformed, message).into());
                }
            };
            // Some gateways send empty events to keep a connection busy.
            if event.data.trim().is_empty() {
                continue;
            }
            // Some write pings with any data, and errors in their own words.
            let item = match &*event.name {
                "ping" => continue,
                "error" => Some(self.response.on_error(&event.data)),
                _ => self.response.on_event(&event.data),
            };
            if self.response.has_news() {
                self.watchdog.on_event();
            }
            if item.is_some() {
                return Ok(item);
            }
        }
    }

    /// Takes more bytes. An item comes of it only if there are no more.
    async fn read(&mut self) -> Result<Option<ModelEvent>, Box<Failure>> {
        let ExchangeStage::Streaming(answer) = &mut self.stage else { return Ok(None) };
        match next_chunk(&mut self.watchdog, answer, &self.shared.endpoint.place).await? {
            Some(chunk) => {
                self.decoder.push(&chunk);
                Ok(None)
            }
            None => Ok(self.response.on_eof()),
        }
    }

    async fn hand_out(&mut self, event: ModelEvent) -> Result<ModelEvent, Box<Failure>> {
        let event = or_failure(event)?;
        if matches!(event, ModelEvent::Ended { .. })
            && let ExchangeStage::Streaming(mut answer) =
                std::mem::replace(&mut self.stage, ExchangeStage::Over)
        {
            // Reading the end of the answer is what gives the connection back for the next request.
            let rest = async { while let Ok(Some(_)) = answer.chunk().await {} };
            let _ = timeout(ANSWER_END_WAIT, rest).await;
        }
        Ok(event)
    }
}

impl ClientState {
    fn client(&self) -> Result<&Client, Box<Failure>> {
        let client = self.client.get_or_init(|| build(&self.settings, &self.endpoint, &self.headers));
        client.as_ref().map_err(Clone::clone)
    }

    /// Servers repeat what they were sent; a key must not reach a log that way.
    fn without_secrets(&self, message: &str) -> String {
        let settings = &self.settings;
        let custom = settings.custom_headers.iter().map(|(_, value)| value);
        let secrets = settings.api_key.iter().chain(&settings.auth_token).chain(custom);
        secrets
            .map(Secret::reveal)
            .filter(|secret| secret.len() >= 8 && message.contains(secret))
            .fold(message.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
    }
}

/// The next bytes of an answer, or none after the last.
async fn next_chunk(
    watchdog: &mut Watchdog,
    answer: &mut Response,
    place: &str,
) -> Result<Option<Bytes>, Box<Failure>> {
    let chunk = watchdog.wait(answer.chunk()).await.map_err(|stall| stall_failure(stall, place))?;
    watchdog.on_bytes();
    chunk.map_err(|error| body_failure(&error, place).into())
}

fn stall_failure(stall: Stall, place: &str) -> Failure {
    let message = match stall {
        Stall::Bytes(limit) => format!("{place} sent nothing for {} s.", limit.as_secs_f32()),
        Stall::Events(limit) => format!("{place} sent no event for {} s.", limit.as_secs_f32()),
    };
    Failure::new(FailureClass::Stalled, message)
}

/// The event, unless it tells a failure: that is finished as every other failure is.
fn or_failure(event: ModelEvent) -> Result<ModelEvent, Box<Failure>> {
    match event {
        ModelEvent::Failed(failure) => Err(failure),
        event => Ok(event),
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn redirect_failure(response: &Response, place: &str) -> Failure {
    let target = header(response, LOCATION.as_str()).map(without_credentials);
    let target = target.map(|to| format!(" to {to}")).unwrap_or_default();
    let status = response.status().as_u16();
    let message = format!(
        "{place} redirects{target} (HTTP {status}). Windlass does not send credentials to a redirect; set \
         ANTHROPIC_BASE_URL to the final address."
    );
    Failure { status: Some(status), ..Failure::new(FailureClass::NotFound, message) }
}

/// A server that closes on a request of this size most likely refused it; its answer got lost in the reset.
fn explain_size(failure: Failure, body_bytes: u64) -> Failure {
    if failure.class != FailureClass::Cut || body_bytes < REFUSED_BODY_BYTES_MIN {
        return failure;
    }
    let megabytes = body_bytes / 1_000_000;
    let message = format!("{} The request ({megabytes} MB) is probably too large.", failure.message);
    Failure { class: FailureClass::Overflow, message, ..failure }
}

/// The beginning of an error's body, as far as it comes in time.
async fn read_error_body(mut response: Response) -> BytesMut {
    let mut body = BytesMut::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = ERROR_BODY_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == ERROR_BODY_BYTES_MAX {
                break;
            }
        }
    };
    let _ = timeout(ERROR_BODY_WAIT, reading).await;
    body
}

#[cfg(test)]
mod tests;
