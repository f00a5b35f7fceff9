//! The query of the queue's address: a filter, and the page.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde::Deserialize;

use crate::answers::{NoAnswer, QueueFilter};

/// The fields as they were sent. The page is a text too, so that an error has our words rather than those of the parser.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct QueueQuery {
    user: Option<String>,
    account: Option<String>,
    partition: Option<String>,
    state: Option<String>,
    page: Option<String>,
}

pub(crate) type QueueQueryResult = Result<Query<QueueQuery>, QueryRejection>;

/// The most characters of a visitor's text that an answer repeats.
const REPEATED: usize = 40;

/// Returns the filter of a query.
pub(crate) fn filter(query: QueueQueryResult) -> Result<QueueFilter, NoAnswer> {
    // All fields are texts, so that only one that stands twice is not understood.
    let twice = "The address has a field twice, expected user, account, partition, state and page at most once each.";
    let Query(query) = query.map_err(|_| NoAnswer::BadRequest(twice.into()))?;
    // A form sends empty fields too.
    let given = |text: Option<String>| text.map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
    let page = match given(query.page) {
        None => 1,
        Some(text) => text.parse().ok().filter(|page| *page > 0).ok_or_else(|| {
            let found: String = text.chars().take(REPEATED).collect();
            NoAnswer::BadRequest(format!("Found page={found}, expected a whole number, at least 1."))
        })?,
    };
    Ok(QueueFilter {
        user: given(query.user),
        account: given(query.account),
        partition: given(query.partition),
        state: given(query.state),
        page,
    })
}
