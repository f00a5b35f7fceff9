//! Requests per client: a bucket of tokens for each.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most clients that are remembered at once.
const CLIENTS: usize = 100_000;

/// How many requests a client has at once after a pause, in seconds of its rate.
const BURST_S: f64 = 5.0;

/// Limits the requests of each client.
#[derive(Debug)]
pub(crate) struct RateLimit<K> {
    per_second: f64,
    clients: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl<K: Eq + Hash> RateLimit<K> {
    /// Lets each client make so many requests per second on average, and five times as many at once after a pause.
    pub(crate) fn new(per_second: u32) -> RateLimit<K> {
        RateLimit { per_second: f64::from(per_second.max(1)), clients: Mutex::default() }
    }

    /// Counts a request at `now`. Returns how long the client should wait if it made too many.
    ///
    /// # Errors
    /// Returns that time.
    pub(crate) fn request(&self, client: K, now: Instant) -> Result<(), Duration> {
        let full = BURST_S * self.per_second;
        let grown = |bucket: &Bucket| {
            (bucket.tokens + now.saturating_duration_since(bucket.at).as_secs_f64() * self.per_second).min(full)
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS && !clients.contains_key(&client) {
            // Whose bucket is full again is forgotten without a difference.
            clients.retain(|_, bucket| grown(bucket) < full);
            if clients.len() >= CLIENTS {
                return Err(Duration::from_secs(1));
            }
        }
        let bucket = clients.entry(client).or_insert(Bucket { tokens: full, at: now });
        let tokens = grown(bucket);
        if tokens < 1.0 {
            *bucket = Bucket { tokens, at: now };
            return Err(Duration::from_secs_f64((1.0 - tokens) / self.per_second));
        }
        *bucket = Bucket { tokens: tokens - 1.0, at: now };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_rate() {
        let limit = RateLimit::new(2);
        let begin = Instant::now();
        for _ in 0..10 {
            assert_eq!(limit.request("ann", begin), Ok(()));
        }
        assert_eq!(limit.request("ann", begin), Err(Duration::from_millis(500)));
        assert_eq!(limit.request("bob", begin), Ok(()));
        assert_eq!(limit.request("ann", begin + Duration::from_millis(500)), Ok(()));
        assert!(limit.request("ann", begin + Duration::from_millis(500)).is_err());
        // A long pause fills the bucket, no more.
        let later = begin + Duration::from_secs(3600);
        assert_eq!((0..20).filter(|_| limit.request("ann", later).is_ok()).count(), 10);
    }

    #[test]
    fn clients_that_came_once_do_not_fill_the_memory() {
        let limit = RateLimit::new(1);
        let begin = Instant::now();
        for client in 0..CLIENTS {
            assert_eq!(limit.request(client, begin), Ok(()));
        }
        assert!(limit.request(CLIENTS, begin).is_err());
        assert_eq!(limit.request(CLIENTS, begin + Duration::from_secs(60)), Ok(()));
        assert_eq!(limit.clients.lock().unwrap().len(), 1);
    }
}
