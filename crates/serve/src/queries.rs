//! The queries of addresses: a filter and a page for the queue, and none elsewhere in the API. An unknown field is refused, because the
//! answer to a misspelt filter would be taken for that to the filter.

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use evenhand_documents::did_you_mean;
use evenhand_slurm::JobState;

use crate::answers::{NoAnswer, QueueFilter};
use crate::guard::{Visitor, format_of};
use crate::routes::Shared;

/// The fields of the queue's query.
const FIELDS: [&str; 5] = ["user", "account", "partition", "state", "page"];

/// The names and values of a query. All are texts, so that an error has our words rather than those of the parser.
pub(crate) type QueryFields = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// The most characters of a visitor's text that an answer repeats.
const REPEATED: usize = 40;

fn repeated(text: &str) -> String {
    text.chars().take(REPEATED).collect()
}

/// Returns the filter of a query.
pub(crate) fn filter(query: QueryFields) -> Result<QueueFilter, NoAnswer> {
    let expected = || format!("expected {} and page at most once each", FIELDS[..4].join(", "));
    let Query(pairs) =
        query.map_err(|_| NoAnswer::BadRequest(format!("The address has no fields with values, {}.", expected())))?;
    let mut values: [Option<&str>; FIELDS.len()] = [None; FIELDS.len()];
    for (name, value) in &pairs {
        let Some(field) = FIELDS.iter().position(|field| field == name) else {
            let near = did_you_mean(name, FIELDS);
            let found = repeated(name);
            let known = FIELDS.join(", ");
            return Err(NoAnswer::BadRequest(format!("Found the field {found:?}, expected one of: {known}{near}")));
        };
        if values[field].replace(value.trim()).is_some() {
            return Err(NoAnswer::BadRequest(format!("The address has a field twice, {}.", expected())));
        }
    }
    // A form sends empty fields too.
    let [user, account, partition, state, page] =
        values.map(|value| value.filter(|text| !text.is_empty()).map(String::from));
    let page = match page {
        None => 1,
        Some(text) => text.parse().ok().filter(|page| *page > 0).ok_or_else(|| {
            NoAnswer::BadRequest(format!("Found page={}, expected a whole number, at least 1.", repeated(&text)))
        })?,
    };
    Ok(QueueFilter { user, account, partition, state, page })
}

/// Checks that jobs can have a state: one that Slurm's manual lists, or one of `shown`, which may be of another release.
pub(crate) fn check_state<'a>(wanted: Option<&str>, shown: impl Iterator<Item = &'a str>) -> Result<(), NoAnswer> {
    let Some(found) = wanted else { return Ok(()) };
    let known = JobState::NAMES;
    if known.iter().copied().chain(shown).any(|name| name.eq_ignore_ascii_case(found)) {
        return Ok(());
    }
    let near = did_you_mean(&found.to_ascii_uppercase(), known.iter().copied());
    let (found, known) = (repeated(found), known.join(", "));
    Err(NoAnswer::BadRequest(format!("Found state={found}, expected one of: {known}{near}")))
}

/// Refuses a query where none is read.
pub(crate) async fn without_query(
    State(site): Shared,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let Some(query) = request.uri().query().filter(|query| !query.is_empty()) else { return next.run(request).await };
    let message = format!("Found the query {:?}, expected none: only the queue has fields.", repeated(query));
    site.message(format_of(&request), StatusCode::BAD_REQUEST, &message, &visitor)
}
