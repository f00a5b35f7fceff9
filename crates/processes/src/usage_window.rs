//! What clients used: time served by each resource, in a sliding window and in all.

use std::collections::VecDeque;

/// Use of all resources, and one column more for their sum.
///
/// Services are kept a server, in order of time, as long as the window sees some of them; neighbours of
/// the same client are one. So bringing the window to a later instant costs as much as services end or fall
/// out of it, and the sums are always exact: whole nanoseconds, in `f64` because they are compared with
/// entitlements, and below 2^53.
pub(crate) struct ResourceUsage {
    clients: usize,
    resources: usize,
    servers: Vec<Server>,
    /// The first server of each resource, and their number at the end.
    first: Vec<usize>,
    /// In the window: resource after resource, then the sums; of each, client after client.
    in_window: Vec<f64>,
    /// Since the beginning, resource after resource.
    ever: Vec<u64>,
    /// Time in the window in which servers of each resource were busy.
    busy: Vec<u64>,
}

struct Server {
    resource: usize,
    /// Whom it serves.
    client: Option<usize>,
    /// Up to when that is counted.
    counted: u64,
    services: VecDeque<Service>,
}

struct Service {
    from: u64,
    to: u64,
    client: usize,
}

impl ResourceUsage {
    /// Of resources with so many servers.
    pub(crate) fn new(clients: usize, servers: &[u32]) -> ResourceUsage {
        let mut first = vec![0];
        let mut all = Vec::new();
        for (resource, count) in servers.iter().enumerate() {
            let server = || Server { resource, client: None, counted: 0, services: VecDeque::new() };
            all.extend((0..*count).map(|_| server()));
            first.push(all.len());
        }
        ResourceUsage {
            clients,
            resources: servers.len(),
            servers: all,
            first,
            in_window: vec![0.0; (servers.len() + 1) * clients],
            ever: vec![0; servers.len() * clients],
            busy: vec![0; servers.len()],
        }
    }

    /// A server begins to serve the client.
    #[inline]
    pub(crate) fn begin(&mut self, now: u64, server: usize, client: usize) {
        let server = &mut self.servers[server];
        (server.client, server.counted) = (Some(client), now);
    }

    /// The server ends it.
    #[inline]
    pub(crate) fn end(&mut self, now: u64, server: usize) {
        self.count(now, server);
        self.servers[server].client = None;
    }

    /// Counts what a running service used up to now.
    #[inline]
    fn count(&mut self, now: u64, server: usize) {
        let server = &mut self.servers[server];
        let Some(client) = server.client else { return };
        let time = now - server.counted;
        if time == 0 {
            return;
        }
        match server.services.back_mut() {
            Some(last) if last.to == server.counted && last.client == client => last.to = now,
            _ => server.services.push_back(Service { from: server.counted, to: now, client }),
        }
        server.counted = now;
        self.busy[server.resource] += time;
        self.ever[server.resource * self.clients + client] += time;
        self.in_window[server.resource * self.clients + client] += time as f64;
        self.in_window[self.resources * self.clients + client] += time as f64;
    }

    /// Brings all to an instant whose window begins at `edge`.
    pub(crate) fn sync(&mut self, now: u64, edge: u64) {
        for at in 0..self.servers.len() {
            self.count(now, at);
            let server = &mut self.servers[at];
            while let Some(service) = server.services.front_mut().filter(|s| s.from < edge) {
                let gone = service.to.min(edge) - service.from;
                self.busy[server.resource] -= gone;
                self.in_window[server.resource * self.clients + service.client] -= gone as f64;
                self.in_window[self.resources * self.clients + service.client] -= gone as f64;
                if service.to > edge {
                    service.from = edge;
                    break;
                }
                server.services.pop_front();
            }
        }
    }

    /// Time in the window, of each client; the column after the last resource is the sum over all.
    pub(crate) fn in_window(&self, column: usize) -> &[f64] {
        &self.in_window[column * self.clients..][..self.clients]
    }

    /// Time in the window in which the resource's servers were busy, summed over them.
    pub(crate) fn busy(&self, resource: usize) -> u64 {
        self.busy[resource]
    }

    /// All that the client ever used of the resource, what runs now included.
    pub(crate) fn ever(&self, now: u64, client: usize, resource: usize) -> u64 {
        let counted = self.ever[resource * self.clients + client];
        let servers = &self.servers[self.first[resource]..self.first[resource + 1]];
        let running = servers.iter().filter(|s| s.client == Some(client));
        counted + running.map(|s| now - s.counted).sum::<u64>()
    }
}
