//! The door in process: a `kube::Client` whose requests never leave it.

use std::io;

use http_body_util::BodyExt as _;

use crate::sim::KubeSim;
use crate::user::User;

impl KubeSim {
    /// A client that may do everything.
    pub fn client(&self) -> kube::Client {
        self.client_as(User::admin())
    }

    /// A client of this user, who may do what roles and bindings say.
    pub fn client_as(&self, user: User) -> kube::Client {
        let sim = self.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (sim, user) = (sim.clone(), user.clone());
            async move {
                let (mut parts, body) = request.into_parts();
                let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
                parts.extensions.insert(user);
                sim.answer(http::Request::from_parts(parts, body)).await
            }
        });
        kube::Client::new(service, "default")
    }
}
