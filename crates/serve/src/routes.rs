//! The addresses, and what is answered at each.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use evenhand_forecast::StartRecord;
use evenhand_model::Time;
use evenhand_slurm::WhyRecord;
use serde::Serialize;

use crate::answers::{JobRecord, NoAnswer, QueueRecord, View};
use crate::guard::{Client, Format, HEALTH, Visitor, format_of, guard};
use crate::identity::UserHeader;
use crate::latest::{Answer, Latest};
use crate::nodes_page::{api_nodes, nodes};
use crate::pages::{Frame, Pages, is_stale, url_part};
use crate::queries::{QueryFields, filter, without_query};
use crate::rate_limit::RateLimit;
use crate::study_files::{LARGEST, StudyFiles};
use crate::visibility::{Sight, Viewer, VisibilityPolicy};

/// What all requests share.
pub(crate) struct Site {
    pub(crate) latest: Arc<Latest>,
    pub(crate) clock: fn() -> Time,
    pub(crate) interval: Duration,
    pub(crate) user_header: Option<UserHeader>,
    pub(crate) policy: VisibilityPolicy,
    pub(crate) study: Option<StudyFiles>,
    pub(crate) limit: RateLimit<Client>,
    pub(crate) pages: Pages,
}

pub(crate) type Shared = State<Arc<Site>>;

/// Returns the service of all addresses.
pub(crate) fn router(site: Site) -> Router {
    let site = Arc::new(site);
    let without_fields = Router::new()
        .route("/api/v1/status", get(api_status))
        .route("/api/v1/jobs/{job}", get(api_job))
        .route("/api/v1/jobs/{job}/why", get(api_why))
        .route("/api/v1/jobs/{job}/when", get(api_when))
        .route("/api/v1/users/{name}", get(api_user))
        .route("/api/v1/accounts/{name}", get(api_account))
        .route("/api/v1/week", get(api_week))
        .route("/api/v1/nodes", get(api_nodes))
        .route_layer(from_fn_with_state(Arc::clone(&site), without_query));
    Router::new()
        .route("/", get(overview))
        .route("/queue", get(queue))
        .route("/jobs/{job}", get(job))
        .route("/users/{name}", get(user))
        .route("/accounts/{name}", get(account))
        .route("/week", get(week))
        .route("/nodes", get(nodes))
        .route("/me", get(me))
        .route("/style.css", get(style))
        .route("/study/{*file}", get(study))
        .route(HEALTH, get(healthz))
        .route("/api/v1/queue", get(api_queue))
        .merge(without_fields)
        .fallback(nothing_here)
        .layer(from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site)
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// What programs read around every answer.
#[derive(Serialize)]
struct Envelope<'a, T> {
    read_s: f64,
    age_s: f64,
    failure: Option<&'a str>,
    answer: T,
}

#[derive(Serialize)]
struct ErrorRecord<'a> {
    status: u16,
    message: &'a str,
}

#[derive(Serialize)]
struct ErrorEnvelope<'a> {
    error: ErrorRecord<'a>,
}

#[derive(Serialize)]
struct Message<'a> {
    message: &'a str,
}

impl NoAnswer {
    fn parts(&self) -> (StatusCode, &str) {
        match self {
            NoAnswer::BadRequest(text) => (StatusCode::BAD_REQUEST, text),
            NoAnswer::NotFound(text) => (StatusCode::NOT_FOUND, text),
            NoAnswer::Conflict(text) => (StatusCode::CONFLICT, text),
            NoAnswer::NotYet(text) => (StatusCode::SERVICE_UNAVAILABLE, text),
        }
    }
}

/// A page: its template, its title and its place among the pages.
pub(crate) struct PageOf<T> {
    pub(crate) template: &'static str,
    pub(crate) title: String,
    pub(crate) here: &'static str,
    pub(crate) answer: T,
}

impl Site {
    fn age_s(&self, answer: &Answer) -> Option<f64> {
        let read_at = answer.snapshot.as_ref()?.read_at;
        Some((self.clock)().since(read_at).secs_f64())
    }

    fn frame(&self, answer: &Answer, visitor: &Visitor, title: String, here: &'static str) -> Frame {
        let user = match &visitor.viewer {
            Viewer::User(name) => Some(name.clone()),
            Viewer::Anonymous => None,
        };
        let age_s = self.age_s(answer);
        let snapshot = answer.snapshot.as_ref();
        let sight = snapshot.map(|snapshot| Sight::new(&visitor.viewer, &self.policy, snapshot));
        let sees_all = sight.as_ref().is_some_and(Sight::sees_all);
        Frame {
            nodes: sight.is_some_and(|sight| sight.nodes) && self.latest.agent().is_some(),
            title,
            root: visitor.root.clone(),
            here,
            cluster: snapshot.and_then(|snapshot| snapshot.setting("ClusterName").map(String::from)),
            user,
            study: self.study.is_some() && sees_all,
            read_s: snapshot.map(|snapshot| snapshot.read_at.secs_f64()),
            age_s,
            stale: age_s.is_some_and(|age| is_stale(age, self.interval)),
            failure: answer.failure.clone(),
        }
    }

    /// A sentence instead of an answer.
    pub(crate) fn message(&self, format: Format, status: StatusCode, message: &str, visitor: &Visitor) -> Response {
        if format == Format::Json {
            return json(status, &ErrorEnvelope { error: ErrorRecord { status: status.as_u16(), message } });
        }
        let title = status.canonical_reason().unwrap_or("Error").to_string();
        let frame = Frame { cluster: None, ..self.frame(&Answer::default(), visitor, title, "message") };
        self.html(status, "message.html", &frame, &Message { message })
    }

    fn html(&self, status: StatusCode, template: &str, frame: &Frame, answer: &impl Serialize) -> Response {
        match self.pages.render(template, frame, answer) {
            Ok(page) => text(status, "text/html; charset=utf-8", page),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", format!("{error}\n")),
        }
    }

    /// Answers from the last snapshot, as far as this visitor sees it.
    fn with_view<R>(
        &self,
        visitor: &Visitor,
        format: Format,
        ask: impl FnOnce(&View<'_>) -> Result<R, NoAnswer>,
        show: impl FnOnce(&Answer, R) -> Response,
    ) -> Response {
        let answer = self.latest.answer();
        let Some(snapshot) = &answer.snapshot else {
            let message = match &answer.failure {
                Some(why) => format!("Slurm has not answered yet: {why}"),
                None => "Slurm has not answered yet: the first question to it is open. Try again in some seconds."
                    .to_owned(),
            };
            let mut response = self.message(format, StatusCode::SERVICE_UNAVAILABLE, &message, visitor);
            // It is asked again after the interval; the first answer may come sooner.
            let wait = if answer.failure.is_some() { self.interval.as_secs().clamp(1, 60) } else { 5 };
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait));
            return response;
        };
        let view = View { snapshot, sight: Sight::new(&visitor.viewer, &self.policy, snapshot) };
        match ask(&view) {
            Ok(found) => show(&answer, found),
            Err(error) => {
                let (status, message) = error.parts();
                let mut response = self.message(format, status, message, visitor);
                if status == StatusCode::SERVICE_UNAVAILABLE {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
                }
                response
            }
        }
    }

    pub(crate) fn page<T: Serialize>(
        &self,
        visitor: &Visitor,
        ask: impl FnOnce(&View<'_>) -> Result<PageOf<T>, NoAnswer>,
    ) -> Response {
        self.with_view(visitor, Format::Page, ask, |answer, page| {
            let frame = self.frame(answer, visitor, page.title, page.here);
            self.html(StatusCode::OK, page.template, &frame, &page.answer)
        })
    }

    pub(crate) fn api<T: Serialize>(
        &self,
        visitor: &Visitor,
        ask: impl FnOnce(&View<'_>) -> Result<T, NoAnswer>,
    ) -> Response {
        self.with_view(visitor, Format::Json, ask, |answer, found| {
            let read_s = answer.snapshot.as_ref().map_or(0.0, |snapshot| snapshot.read_at.secs_f64());
            let age_s = self.age_s(answer).unwrap_or(0.0);
            json(StatusCode::OK, &Envelope { read_s, age_s, failure: answer.failure.as_deref(), answer: found })
        })
    }
}

fn json(status: StatusCode, record: &impl Serialize) -> Response {
    match serde_json::to_string_pretty(record) {
        Ok(body) => text(status, "application/json", body + "\n"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", format!("{error}\n")),
    }
}

/// A part of the path that was not understood is the visitor's fault.
fn part(path: Result<Path<String>, PathRejection>) -> Result<String, NoAnswer> {
    // Every part is a text, so that only one that is no UTF-8 is not understood.
    let problem = "The address has bytes that are no UTF-8, expected a job's number or a name.";
    path.map(|Path(text)| text).map_err(|_| NoAnswer::BadRequest(problem.into()))
}

async fn nothing_here(State(site): Shared, Extension(visitor): Extension<Visitor>, request: Request) -> Response {
    site.message(format_of(&request), StatusCode::NOT_FOUND, "There is no such page.", &visitor)
}

async fn healthz() -> Response {
    text(StatusCode::OK, "text/plain", "ok\n".into())
}

async fn style(State(site): Shared) -> Response {
    let mut response = text(StatusCode::OK, "text/css; charset=utf-8", site.pages.style());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

async fn me(State(site): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    let Viewer::User(name) = &visitor.viewer else {
        let message = "This page is about the visitor, and your name is not known: come by the site's portal, or by the Unix socket.";
        return site.message(Format::Page, StatusCode::FORBIDDEN, message, &visitor);
    };
    let mut response = text(StatusCode::SEE_OTHER, "text/plain", String::new());
    if let Ok(place) = HeaderValue::from_str(&format!("users/{}", url_part(name))) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

async fn overview(State(site): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    site.page(&visitor, |view| {
        let (title, answer) = ("Queue and shares".to_string(), view.status());
        Ok(PageOf { template: "overview.html", title, here: "overview", answer })
    })
}

async fn api_status(State(site): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    site.api(&visitor, |view| Ok(view.status()))
}

#[derive(Serialize)]
struct QueuePage {
    queue: QueueRecord,
    user: String,
    account: String,
    partition: String,
    state: String,
    /// The filter as the beginning of a query, for the other pages.
    query: String,
}

async fn queue(State(site): Shared, Extension(visitor): Extension<Visitor>, query: QueryFields) -> Response {
    site.page(&visitor, |view| {
        let filter = filter(query)?;
        let queue = view.queue(&filter)?;
        let named = [
            ("user", &filter.user),
            ("account", &filter.account),
            ("partition", &filter.partition),
            ("state", &filter.state),
        ];
        let given = named.iter().filter_map(|(name, value)| Some(format!("{name}={}&", url_part(value.as_deref()?))));
        let query = given.collect();
        let shown = |text: Option<String>| text.unwrap_or_default();
        let answer = QueuePage {
            queue,
            query,
            user: shown(filter.user),
            account: shown(filter.account),
            partition: shown(filter.partition),
            state: shown(filter.state).to_ascii_lowercase(),
        };
        Ok(PageOf { template: "queue.html", title: "Queue".into(), here: "queue", answer })
    })
}

async fn api_queue(State(site): Shared, Extension(visitor): Extension<Visitor>, query: QueryFields) -> Response {
    site.api(&visitor, |view| view.queue(&filter(query)?))
}

type PathPart = Result<Path<String>, PathRejection>;

#[derive(Serialize)]
struct JobPage {
    records: Vec<JobRecord>,
    why: Option<WhyRecord>,
    why_not: Option<String>,
    when: Option<StartRecord>,
    when_not: Option<String>,
}

async fn job(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.page(&visitor, |view| {
        let number = part(path)?;
        let records = view.job(&number)?;
        let sentence = |error: NoAnswer| {
            let text = error.parts().1.to_string();
            let mut letters = text.chars();
            letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
        };
        let (why, why_not) = either(view.why(&number).map_err(sentence));
        let (when, when_not) = either(view.when(&number, &site.latest.forecasts()).map_err(sentence));
        let title = match records.first() {
            Some(first) => format!("Job {} of {}", first.job, first.user),
            None => "Job".to_string(),
        };
        let answer = JobPage { records, why, why_not, when, when_not };
        Ok(PageOf { template: "job.html", title, here: "job", answer })
    })
}

fn either<T>(found: Result<T, String>) -> (Option<T>, Option<String>) {
    match found {
        Ok(found) => (Some(found), None),
        Err(sentence) => (None, Some(sentence)),
    }
}

#[derive(Serialize)]
struct JobsRecord {
    records: Vec<JobRecord>,
}

async fn api_job(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.api(&visitor, |view| Ok(JobsRecord { records: view.job(&part(path)?)? }))
}

async fn api_why(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.api(&visitor, |view| view.why(&part(path)?))
}

async fn api_when(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.api(&visitor, |view| view.when(&part(path)?, &site.latest.forecasts()))
}

fn nothing_of(kind: &str, name: &str) -> NoAnswer {
    NoAnswer::NotFound(format!("Nothing is known of {kind} {name}, or the site hides it (PrivateData, or its policy)."))
}

async fn user(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.page(&visitor, |view| {
        let name = part(path)?;
        let answer = view.user(&name).ok_or_else(|| nothing_of("user", &name))?;
        let here = if view.sight.user() == Some(&name) { "me" } else { "user" };
        Ok(PageOf { template: "party.html", title: format!("User {name}"), here, answer })
    })
}

async fn api_user(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.api(&visitor, |view| {
        let name = part(path)?;
        view.user(&name).ok_or_else(|| nothing_of("user", &name))
    })
}

async fn account(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.page(&visitor, |view| {
        let name = part(path)?;
        let answer = view.account(&name).ok_or_else(|| nothing_of("account", &name))?;
        Ok(PageOf { template: "party.html", title: format!("Account {name}"), here: "account", answer })
    })
}

async fn api_account(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    site.api(&visitor, |view| {
        let name = part(path)?;
        view.account(&name).ok_or_else(|| nothing_of("account", &name))
    })
}

async fn week(State(site): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    site.page(&visitor, |view| {
        let (title, answer) = ("Who received what this week".to_string(), view.week());
        Ok(PageOf { template: "week.html", title, here: "week", answer })
    })
}

async fn api_week(State(site): Shared, Extension(visitor): Extension<Visitor>) -> Response {
    site.api(&visitor, |view| Ok(view.week()))
}

/// A file of the stored study, which names users: only for those who see all.
async fn study(State(site): Shared, Extension(visitor): Extension<Visitor>, path: PathPart) -> Response {
    let snapshot = site.latest.answer().snapshot;
    let sees_all = snapshot.is_some_and(|snapshot| Sight::new(&visitor.viewer, &site.policy, &snapshot).sees_all());
    let name = part(path).unwrap_or_default();
    let found = site.study.as_ref().filter(|_| sees_all).and_then(|study| study.find(&name));
    let Some((path, kind)) = found else {
        let message = "There is no such file of a stored study, or you may not see it.";
        return site.message(Format::Page, StatusCode::NOT_FOUND, message, &visitor);
    };
    let path = path.to_path_buf();
    let read = tokio::task::spawn_blocking(move || {
        let size = std::fs::symlink_metadata(&path)?;
        if !size.is_file() || size.len() > LARGEST {
            return Err(std::io::Error::other("not a file, or too large"));
        }
        std::fs::read(&path)
    });
    let Ok(Ok(bytes)) = read.await else {
        return site.message(Format::Page, StatusCode::NOT_FOUND, "The file of the study cannot be read.", &visitor);
    };
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Reports hold their own script and style; the sandbox keeps them from the rest of the site.
    headers.insert(
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static(
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; \
             sandbox allow-scripts allow-downloads",
        ),
    );
    response
}
