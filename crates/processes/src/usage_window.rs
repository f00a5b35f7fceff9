//! Consumption of each resource by each client, in a sliding window and in total.

use std::collections::VecDeque;

/// Consumption of all resources, with one more column for their sum.
///
/// Services are kept per server, in order of time, as long as the window includes part of them; consecutive ones of the
/// same client are merged. Moving the window therefore costs O(services that end or leave it), and sums are always
/// exact: whole nanoseconds below 2^53, in `f64` because they are compared with entitlements.
pub(crate) struct ResourceUsage {
    clients: usize,
    resources: usize,
    servers: Vec<Server>,
    /// First server of each resource, and the number of servers at the end.
    first: Vec<usize>,
    /// Consumption in the window: resource-major, then the sums; by client within each.
    in_window: Vec<f64>,
    /// Consumption since the start, resource-major.
    ever: Vec<u64>,
    /// Time in the window during which servers of each resource were busy.
    busy: Vec<u64>,
}

struct Server {
    resource: usize,
    /// Client being served.
    client: Option<usize>,
    /// Time up to which its service is counted.
    counted: u64,
    services: VecDeque<Service>,
}

struct Service {
    from: u64,
    to: u64,
    client: usize,
}

impl ResourceUsage {
    /// Creates the columns of resources with these numbers of servers.
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

    /// Records that a server starts to serve the client.
    #[inline]
    pub(crate) fn start(&mut self, now: u64, server: usize, client: usize) {
        let server = &mut self.servers[server];
        (server.client, server.counted) = (Some(client), now);
    }

    /// Records that the server ends its service.
    #[inline]
    pub(crate) fn end(&mut self, now: u64, server: usize) {
        self.count(now, server);
        self.servers[server].client = None;
    }

    /// Counts a running service up to now.
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

    /// Moves the window to [`edge`, `now`].
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

    /// Returns the consumption of each client in the window; the column after the last resource is the sum.
    pub(crate) fn in_window(&self, column: usize) -> &[f64] {
        &self.in_window[column * self.clients..][..self.clients]
    }

    /// Returns the time in the window during which the resource's servers were busy, summed over them.
    pub(crate) fn busy(&self, resource: usize) -> u64 {
        self.busy[resource]
    }

    /// Returns the total consumption of the resource by the client, including the running service.
    pub(crate) fn ever(&self, now: u64, client: usize, resource: usize) -> u64 {
        let counted = self.ever[resource * self.clients + client];
        let servers = &self.servers[self.first[resource]..self.first[resource + 1]];
        let running = servers.iter().filter(|s| s.client == Some(client));
        counted + running.map(|s| now - s.counted).sum::<u64>()
    }
}
