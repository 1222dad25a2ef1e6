//! Every endpoint that a hatchery, a worker or a guest uses.

use percent_encoding::percent_decode_str;

use crate::handlers::{access, models, queue_v1, queue_v2, service, workers};
use crate::incoming::Incoming;
use crate::reply::{Refusal, Reply};
use crate::world::World;

pub(crate) type Handler = fn(&mut World, &Incoming) -> Result<Reply, Refusal>;

/// Whose session a route demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    None,
    /// Any bearer token; the handler knows what it is.
    Bearer,
    Consumer,
    Hatchery,
    Worker,
    /// A worker's result, or a hatchery's when it gives up on a job.
    ConsumerOrWorker,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// Method and pattern, by which calls are counted.
    pub(crate) name: &'static str,
    pub(crate) auth: Auth,
    pub(crate) handler: Handler,
}

const fn route(name: &'static str, auth: Auth, handler: Handler) -> Route {
    Route { name, auth, handler }
}

pub(crate) const V1_SOCKET: &str = "GET /ws";
pub(crate) const V2_SOCKET: &str = "GET /v2/hatchery/ws";

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    route("POST /auth/consumer/builtin/signin", Auth::None, access::v1_sign_in),
    route("POST /auth/consumer/signout", Auth::Consumer, access::v1_sign_out),
    route("POST /services/heartbeat", Auth::Consumer, service::v1_heartbeat),
    route("GET /config/cdn", Auth::Consumer, service::cdn_config),
    route("GET /queue/workflows", Auth::Consumer, queue_v1::list),
    route("GET /queue/workflows/{}/infos", Auth::Consumer, queue_v1::info),
    route("POST /queue/workflows/{}/book", Auth::Consumer, queue_v1::book),
    route("DELETE /queue/workflows/{}/book", Auth::Consumer, queue_v1::free),
    route("POST /queue/workflows/{}/spawn/infos", Auth::Consumer, queue_v1::spawn_infos),
    route("POST /queue/workflows/{}/result", Auth::ConsumerOrWorker, queue_v1::result),
    route("GET /worker", Auth::Consumer, workers::v1_list),
    route("POST /worker/{}/disable", Auth::Consumer, workers::v1_disable),
    route("GET /worker/model/enabled", Auth::Consumer, models::enabled),
    route("GET /worker/model/{}/{}", Auth::Consumer, models::one),
    route("GET /worker/model/{}/{}/secret", Auth::Consumer, models::secrets),
    route("PUT /worker/model/{}/{}/book", Auth::Consumer, models::book),
    route("PUT /worker/model/{}/{}/error", Auth::Consumer, models::spawn_error),
    route("POST /v2/auth/consumer/hatchery/signin", Auth::None, access::v2_sign_in),
    route("POST /v2/hatchery/{}/regen", Auth::Hatchery, access::v2_regenerate),
    route("POST /v2/hatchery/heartbeat", Auth::Hatchery, service::v2_heartbeat),
    route("GET /v2/config/cdn", Auth::Hatchery, service::cdn_config),
    route("GET /v2/queue/{}", Auth::Hatchery, queue_v2::list),
    route("GET /v2/queue/{}/job/{}", Auth::Hatchery, queue_v2::info),
    route("POST /v2/queue/{}/job/{}/hatchery/take", Auth::Hatchery, queue_v2::take),
    route("DELETE /v2/queue/{}/job/{}/hatchery/take", Auth::Hatchery, queue_v2::release),
    route("POST /v2/queue/{}/job/{}/info", Auth::Hatchery, queue_v2::add_info),
    route("GET /v2/worker", Auth::Hatchery, workers::v2_list),
    route("GET /v2/project/{}/vcs/{}/repository/{}/workermodel/{}", Auth::Hatchery, models::as_code),
    route("GET /download/worker/{}/{}", Auth::None, service::download_worker),
    route("GET /mon/version", Auth::None, service::version),
    // What workers call.
    route("POST /auth/consumer/worker/signin", Auth::Bearer, workers::v1_sign_in),
    route("POST /auth/consumer/worker/signout", Auth::Worker, workers::sign_out),
    route("POST /worker/refresh", Auth::Worker, workers::refresh),
    route("POST /worker/waiting", Auth::Worker, workers::v1_waiting),
    route("POST /queue/workflows/{}/take", Auth::Worker, workers::v1_take),
    route("POST /v2/queue/{}/job/{}/worker/signin", Auth::Bearer, workers::v2_sign_in),
    route("POST /v2/queue/{}/job/{}/worker/take", Auth::Worker, workers::v2_take),
    route("POST /v2/queue/{}/job/{}/worker/refresh", Auth::Worker, workers::refresh),
    route("POST /v2/queue/{}/job/{}/worker/signout", Auth::Worker, workers::sign_out),
    route("POST /v2/queue/{}/job/{}/step", Auth::Worker, workers::v2_step),
    route("POST /v2/queue/{}/job/{}/result", Auth::Worker, workers::v2_result),
];

/// The route of a request and what stands in the places of `{}`.
pub(crate) fn find(method: &str, path: &str) -> Option<(Route, Vec<String>)> {
    let literal = |(route, params): (Route, Vec<String>)| (params.len(), route, params);
    // Of two that fit, `/worker/model/enabled` and `/worker/model/{}`, the more literal one is meant.
    let best = ROUTES
        .iter()
        .filter_map(|route| params(route.name, method, path).map(|found| (*route, found)))
        .map(literal)
        .min_by_key(|(count, _, _)| *count);
    best.map(|(_, route, params)| (route, params))
}

fn params(name: &str, method: &str, path: &str) -> Option<Vec<String>> {
    let pattern = name.strip_prefix(method)?.strip_prefix(' ')?;
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    let mut params = Vec::new();
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return Some(params),
            (Some("{}"), Some(segment)) => {
                params.push(percent_decode_str(segment).decode_utf8_lossy().into_owned());
            }
            (Some(wanted), Some(segment)) if wanted == segment => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_finds_its_route_and_its_names_are_unescaped() {
        let path = "/v2/project/P/vcs/my%20vcs/repository/org%2Frepo/workermodel/m";
        let (route, params) = find("GET", path).unwrap();
        assert!(route.name.ends_with("workermodel/{}"));
        assert_eq!(params, ["P", "my vcs", "org/repo", "m"]);
        assert_eq!(find("GET", "/worker/model/enabled").unwrap().1, [""; 0]);
        assert_eq!(find("DELETE", "/queue/workflows/7/book").unwrap().1, ["7"]);
        assert!(find("PUT", "/queue/workflows/7/book").is_none());
        assert!(find("GET", "/queue").is_none());
    }
}
