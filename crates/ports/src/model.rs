use std::sync::Arc;

use futures_util::stream::BoxStream;
use windlass_protocol::{ModelEvent, ModelRequest};

/// A model that answers requests with a stream of events.
pub trait ModelClient: Send + Sync + 'static {
    /// Sends the request and streams the response.
    ///
    /// The stream does nothing until it is polled and never fails: a failure is its last item, see
    /// [`ModelEvent`]. Dropping it ends the request. A client does not retry; the core decides that.
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent>;
}
