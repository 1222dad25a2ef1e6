use bytes::Bytes;
use roost_cds::{Secret, json};
use serde::de::DeserializeOwned;

use crate::reply::Refusal;
use crate::world::Who;

/// A request on its way into a handler.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// What stands in the places of `{}` in the route's pattern, unescaped.
    pub(crate) params: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// The bearer token, whatever it is.
    pub(crate) token: Option<Secret>,
    pub(crate) who: Option<Who>,
    /// A fault: this booking does not see that of another hatchery.
    pub(crate) booking_race: bool,
}

impl Incoming {
    pub(crate) fn param(&self, at: usize) -> &str {
        self.params.get(at).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, at: usize) -> Result<i64, Refusal> {
        self.param(at).parse().map_err(|_| Refusal::wrong_request("not a number"))
    }

    /// All values of a query parameter.
    pub(crate) fn query(&self, key: &str) -> Vec<&str> {
        self.query.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        json::decode(&self.body).map_err(|error| Refusal::wrong_request(error.to_string()))
    }

    /// Who has the session. Routes that call this demand one.
    pub(crate) fn who(&self) -> Result<&Who, Refusal> {
        self.who.as_ref().ok_or_else(Refusal::not_authenticated)
    }

    pub(crate) fn token(&self) -> Result<&Secret, Refusal> {
        self.token.as_ref().ok_or_else(Refusal::not_authenticated)
    }
}
