//! The simulation, seen from threads that live in real time.

use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use jiff::Timestamp;
use roost_clock::Clock;
use roost_door::{
    Acting, Answered, Core, CoreView, DoorWords, FrontDoor, Order, Refused, Route, Steer, Summary,
};
use roost_views::{
    AddressView, CheckView, DecisionQuery, DecisionView, DeletionsDetail, LinkDetail, NeedView,
    OutageView, PoolView, RequestDetail, RequestId, RequestView, SteeringView, StepView, VmDetail,
    VmView,
};
use serde_json::Value;
use tokio::runtime::Handle;

/// A door, a core or a clock of another runtime: whoever asks it, and from whatever thread, asks at the simulation's time.
#[derive(Debug)]
pub(super) struct LookingIn<T: ?Sized> {
    /// Another one after a restart.
    inside: RwLock<Arc<T>>,
    simulation: Handle,
}

impl<T: ?Sized> LookingIn<T> {
    /// To be made within the simulation.
    pub(super) fn new(inside: Arc<T>) -> Arc<Self> {
        Arc::new(Self { inside: RwLock::new(inside), simulation: Handle::current() })
    }

    /// From now on this one is asked.
    pub(super) fn replace(&self, inside: Arc<T>) {
        *self.inside.write().unwrap_or_else(PoisonError::into_inner) = inside;
    }

    fn inside(&self) -> Arc<T> {
        Arc::clone(&self.inside.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn ask<A>(&self, question: impl FnOnce(&T) -> A) -> A {
        let _time = self.simulation.enter();
        question(&self.inside())
    }
}

impl Clock for LookingIn<dyn Clock> {
    fn now(&self) -> Timestamp {
        self.ask(Clock::now)
    }
}

impl FrontDoor for LookingIn<dyn FrontDoor> {
    fn words(&self) -> DoorWords {
        self.inside().words()
    }

    fn title(&self) -> String {
        self.inside().title()
    }

    fn liveness(&self) -> Vec<CheckView> {
        self.ask(FrontDoor::liveness)
    }

    fn readiness(&self) -> Vec<CheckView> {
        self.ask(FrontDoor::readiness)
    }

    fn summary(&self) -> Summary {
        self.ask(FrontDoor::summary)
    }

    fn requests(&self) -> Vec<RequestView> {
        self.ask(FrontDoor::requests)
    }

    fn request(&self, id: &str) -> Option<RequestDetail> {
        self.ask(|door| door.request(id))
    }

    fn vms(&self) -> Vec<VmView> {
        self.ask(FrontDoor::vms)
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        self.ask(|door| door.vm(name_or_id))
    }

    fn pools(&self) -> Vec<PoolView> {
        self.ask(FrontDoor::pools)
    }

    fn stuck(&self) -> Vec<RequestView> {
        self.ask(FrontDoor::stuck)
    }

    fn advice(&self, gate: &str) -> Option<&'static str> {
        self.inside().advice(gate)
    }

    fn runbook(&self) -> Option<&'static str> {
        self.inside().runbook()
    }

    fn needs(&self) -> Vec<NeedView> {
        self.ask(FrontDoor::needs)
    }

    fn outages(&self) -> Vec<OutageView> {
        self.ask(FrontDoor::outages)
    }

    fn line(&self) -> Vec<RequestId> {
        self.ask(FrontDoor::line)
    }

    fn steering(&self) -> SteeringView {
        self.ask(FrontDoor::steering)
    }

    fn steer(&self) -> Option<&dyn Steer> {
        self.inside().steer().map(|_| self as &dyn Steer)
    }

    fn forgets_ended(&self) -> bool {
        self.inside().forgets_ended()
    }

    fn pauses_requests(&self) -> bool {
        self.inside().pauses_requests()
    }

    fn routes(self: Arc<Self>) -> Vec<Route> {
        let inside = self.inside().routes().into_iter();
        inside
            .map(|route| {
                let simulation = self.simulation.clone();
                let there = from_fn(move |request: Request, next: Next| {
                    let answering = simulation.spawn(next.run(request));
                    async { answering.await.unwrap_or_else(|_| ended()) }
                });
                Route { methods: route.methods.layer(there), ..route }
            })
            .collect()
    }

    fn metrics(&self) -> String {
        self.ask(FrontDoor::metrics)
    }

    fn config(&self) -> Option<Value> {
        self.ask(FrontDoor::config)
    }

    fn http_answered(&self, answered: &Answered) {
        self.ask(|door| door.http_answered(answered));
    }
}

const ENDED: &str = "the demo has ended";

fn ended() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, ENDED).into_response()
}

/// Carries out orders in the simulation, at its time.
impl Steer for LookingIn<dyn FrontDoor> {
    fn act(&self, order: Order) -> Acting<'_> {
        let inside = self.inside();
        let acting = self.simulation.spawn(async move {
            match inside.steer() {
                Some(steer) => steer.act(order).await,
                None => Err(Refused::NotNow { why: "it can only be looked at".into() }),
            }
        });
        Box::pin(async {
            acting.await.unwrap_or_else(|_| Err(Refused::NotNow { why: ENDED.into() }))
        })
    }
}

impl Core for LookingIn<dyn Core> {
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        self.ask(|core| core.decisions(query))
    }

    fn overview(&self) -> CoreView {
        self.ask(Core::overview)
    }

    fn link_detail(&self) -> LinkDetail {
        self.ask(Core::link_detail)
    }

    fn addresses(&self) -> Vec<AddressView> {
        self.ask(Core::addresses)
    }

    fn deletions(&self) -> DeletionsDetail {
        self.ask(Core::deletions)
    }

    fn timeline(&self, vm: &str) -> Vec<StepView> {
        self.ask(|core| core.timeline(vm))
    }

    fn metrics(&self) -> String {
        self.ask(Core::metrics)
    }
}
