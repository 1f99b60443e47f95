//! A request to a collection, and the way that all of them take: its options are read, then its body within the bounds, then
//! a worker does what is asked, then the answer holds its share of memory until it is sent.

use std::sync::Arc;

use axum::extract::{FromRequest, Path, Query, Request};
use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::{Collection, CollectionSettings, Outcome, StoreError, Time, Write};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::app::App;
use crate::endpoint::held;
use crate::memory::Share;
use crate::problem::Problem;
use crate::request::{Form, Item, Items, Received, Written, parse_one, receive};
use crate::sketch::Bench;
use crate::worker::here;

/// Requests that wait to be written before more are refused.
const WAITING_WRITES: usize = 4096;

/// A request to a collection, of which everything but the body is read.
pub(crate) struct Asked<O> {
    pub(crate) app: Arc<App>,
    /// The name in the path. It is only ever compared with names of collections that exist, or checked by the store before
    /// one is made.
    pub(crate) name: String,
    pub(crate) options: O,
    request: Request,
}

/// No options.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

impl<O: DeserializeOwned> FromRequest<Arc<App>> for Asked<O> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        use axum::extract::FromRequestParts as _;
        let (mut parts, body) = request.into_parts();
        let path = Path::<String>::from_request_parts(&mut parts, &()).await;
        let Path(name) = path.map_err(|refused| Problem::malformed(refused.body_text()))?;
        let options = Query::try_from_uri(&parts.uri);
        let Query(options) = options.map_err(|refused| Problem::malformed(refused.body_text()))?;
        Ok(Self {
            app: Arc::clone(app),
            name,
            options,
            request: Request::from_parts(parts, body),
        })
    }
}

/// What a worker has to do something with.
pub(crate) struct Task<'b> {
    pub(crate) app: &'b App,
    pub(crate) bench: &'b mut Bench,
    pub(crate) collection: Arc<Collection>,
    pub(crate) settings: Arc<CollectionSettings>,
    pub(crate) now: Time,
    body: Received,
}

impl Task<'_> {
    /// Reads the body; what it was is given back.
    pub(crate) fn items<T: Item>(&mut self) -> Result<Items<T>, Problem> {
        let bytes = std::mem::take(&mut self.body.bytes);
        Items::read(&bytes, self.body.form, self.app.limits.batch)
    }

    /// The same of a body that is one object, whatever its collection.
    pub(crate) fn object<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        object(&std::mem::take(&mut self.body.bytes), self.body.form)
    }
}

/// Reads a body that is one object.
pub(crate) fn object<T: DeserializeOwned>(body: &[u8], form: Form) -> Result<T, Problem> {
    match form {
        Form::Json => parse_one(body),
        Form::Packed => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "this operation has no compact form",
            "send JSON",
        )),
    }
}

/// Bodies up to so many bytes are worked on where they are read, if that is quick.
const SMALL: usize = 512;
/// The same of bodies without texts: some hundred fingerprints, less than a millisecond.
const SMALL_PACKED: usize = 2048;

/// What an answer may cost beside what the request costs by its size: memory, bytes for each item that the body may hold, and
/// bytes for each byte of the body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) fixed: usize,
    pub(crate) item: usize,
    pub(crate) byte: usize,
    /// Whether nothing is read from the disk, and nothing takes long while the body is small.
    pub(crate) quick: bool,
}

impl Cost {
    /// Of what needs no memory and no disk.
    pub(crate) const QUICK: Self = Self {
        fixed: 0,
        item: 0,
        byte: 0,
        quick: true,
    };

    fn of(self, request: &Request, batch: usize, largest: usize) -> usize {
        use axum::body::HttpBody as _;
        let length = request.body().size_hint().upper();
        let length = length.map_or(largest, |length| usize::try_from(length).unwrap_or(largest));
        let length = length.min(largest);
        // The smallest item, of the compact form, has eight bytes.
        let items = batch.min(length / 8).max(1);
        self.fixed + items * self.item + length * self.byte
    }
}

impl Received {
    fn is_small(&self) -> bool {
        let most = match self.form {
            Form::Json => SMALL,
            Form::Packed => SMALL_PACKED,
        };
        self.bytes.len() <= most
    }
}

impl<O> Asked<O> {
    /// Does something with the collection once the body is here: on a worker, or at once if that is quick.
    pub(crate) async fn on_worker<T: Send + 'static>(
        self,
        cost: Cost,
        work: impl FnOnce(Task<'_>) -> Result<T, Problem> + Send + 'static,
    ) -> Result<(T, Share), Problem> {
        let Self {
            app, name, request, ..
        } = self;
        let extra = cost.of(&request, app.limits.batch, app.limits.body_bytes);
        let (body, share) = receive(&app, request, extra).await?;
        let task = |app: &App, bench: &mut Bench, collection: Arc<Collection>, body| {
            work(Task {
                bench,
                settings: collection.settings(),
                collection,
                now: app.now(),
                app,
                body,
            })
        };
        if cost.quick
            && body.is_small()
            && let Some(collection) = app.store.try_collection(&name)
        {
            let collection = collection?;
            let done = here(|bench| task(&app, bench, collection, body))?;
            return Ok((done, share));
        }
        let on_worker = Arc::clone(&app);
        let done = app.workers.run(move |bench| {
            let collection = on_worker.collection(&name)?;
            task(&on_worker, bench, collection, body)
        });
        Ok((done.await?, share))
    }

    /// As [`Asked::on_worker`], of an answer that is ready then.
    pub(crate) async fn answer(
        self,
        cost: Cost,
        work: impl FnOnce(Task<'_>) -> Result<Written, Problem> + Send + 'static,
    ) -> Result<Response, Problem> {
        let (written, share) = self.on_worker(cost, work).await?;
        Ok(held(written, share))
    }

    /// As [`Asked::on_worker`], of work that needs no collection.
    pub(crate) async fn alone<T: Send + 'static>(
        self,
        work: impl FnOnce(&App, String, Received) -> Result<T, Problem> + Send + 'static,
    ) -> Result<(T, Share), Problem> {
        let Self {
            app, name, request, ..
        } = self;
        let (body, share) = receive(&app, request, 0).await?;
        let on_worker = Arc::clone(&app);
        let done = app.workers.run(move |_| work(&on_worker, name, body));
        Ok((done.await?, share))
    }
}

/// Writes that are on their way.
pub(crate) struct Submitted(oneshot::Receiver<lookalike_store::Result<Vec<Outcome>>>);

impl Submitted {
    /// Waits until they are durable.
    pub(crate) async fn wait(self) -> Result<Vec<Outcome>, Problem> {
        Ok(self.0.await.unwrap_or(Err(StoreError::Closed))?)
    }
}

impl Task<'_> {
    /// Hands writes to the store, all or none of them.
    pub(crate) fn submit(&self, writes: Vec<Write>, limit: usize) -> Result<Submitted, Problem> {
        if self.collection.queued() >= WAITING_WRITES {
            return Err(Problem::busy(
                "writes",
                "too many requests wait to be written",
            ));
        }
        let (done, submitted) = oneshot::channel();
        self.collection
            .submit(writes, self.now, limit, move |outcomes| {
                // Whoever asked may have gone.
                let _ = done.send(outcomes);
            });
        Ok(Submitted(submitted))
    }
}
