//! Reconcilers from watches through the priority queue: patches, events, leases, webhooks, metrics.
