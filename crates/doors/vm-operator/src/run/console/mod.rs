//! `VirtualMachineWebConsoleRequest` objects: each gets one ticket for the console of its VM, encrypted for whoever has the private key, and goes
//! when the ticket has expired.

mod oaep;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt as _};
use ring::rand::{SecureRandom as _, SystemRandom};
use roost_controller::{Draft, Key, Next, Pass, Reconciler};
use roost_fleet::{Power, VmId};
use roost_supervise::Chain;

use super::owner;
use crate::api::names::label;
use crate::api::{VirtualMachine, VirtualMachineWebConsoleRequest};
use crate::flow::{Context, PassError};
use crate::provider::find;
use oaep::{PublicKey, SEED};

/// How long an answer is kept. A ticket of vSphere lasts about as long.
const EXPIRES_SECS: i64 = 120;

pub(crate) struct ConsoleRequests {
    pub(crate) cx: Arc<Context>,
}

impl Reconciler for ConsoleRequests {
    type Object = VirtualMachineWebConsoleRequest;
    type Error = PassError;

    async fn reconcile(
        &self,
        pass: &Pass<VirtualMachineWebConsoleRequest>,
    ) -> Result<Next, PassError> {
        let Some(mut request) = pass.draft() else { return Ok(Next::AwaitChange) };
        if request.is_being_deleted() {
            return Ok(Next::AwaitChange);
        }
        let expiry = request.status.as_ref().and_then(|status| status.expiry_time.as_ref());
        match expiry.map(|Time(at)| *at) {
            Some(at) if at > self.cx.now() => Ok(Next::At(at)),
            Some(_) => self.remove(&request).await,
            None => self.answer(&mut request).await,
        }
    }
}

impl ConsoleRequests {
    async fn answer(
        &self,
        request: &mut Draft<VirtualMachineWebConsoleRequest>,
    ) -> Result<Next, PassError> {
        // What is missing comes, or is switched on, as a change of the VM.
        let namespace = request.namespace().unwrap_or_default();
        let key = Key::new(&namespace, &request.spec.name);
        let Some(vm) = self.cx.stores.vms.get(&key) else { return Ok(Next::AwaitChange) };
        let Some(machine) = self.running(&vm)? else { return Ok(Next::AwaitChange) };
        let public_key = PublicKey::parse(&request.spec.public_key);
        let public_key = public_key.map_err(|why| PassError::NeedsPerson(why.to_string()))?;
        let ticket = self.cx.provider.fleet.machines().console_ticket(&machine, "webmks").await;
        let ticket = ticket.map_err(|error| PassError::Failed(vec![Chain(&error).to_string()]))?;
        let host = ticket.host.clone().unwrap_or_default();
        let url = if let Some(url) = &ticket.url {
            url.0.clone()
        } else {
            let port = ticket.port.unwrap_or(443);
            format!("wss://{host}:{port}/ticket/{}", ticket.ticket.0)
        };
        let mut seed = [0; SEED];
        let no_chance = |_| PassError::Failed(vec!["the system has no random numbers".into()]);
        SystemRandom::new().fill(&mut seed).map_err(no_chance)?;
        let response = public_key.encrypt(url.as_bytes(), seed);
        let response = response.map_err(|why| PassError::NeedsPerson(why.to_string()))?;

        let uid = request.uid().unwrap_or_default();
        request.labels_mut().insert(label::WEB_CONSOLE_REQUEST_UUID.to_owned(), uid);
        request.owner_references_mut().push(owner::of(&*vm));
        let second = self.cx.now().as_second() + EXPIRES_SECS;
        let expiry = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
        let status = request.status_mut();
        status.response = STANDARD.encode(response);
        status.expiry_time = Some(Time(expiry));
        // Nothing stands between the console and its client.
        status.proxy_addr = host;
        self.cx.writer.save(request).await?;
        Ok(Next::At(expiry))
    }

    /// The VM of an object, if it is on: others have no console.
    fn running(&self, vm: &VirtualMachine) -> Result<Option<VmId>, PassError> {
        let row = find(vm, &self.cx.provider.fleet.mirror().snapshot());
        let row = row.map_err(|error| PassError::Failed(vec![Chain(&error).to_string()]))?;
        Ok(row.filter(|row| row.power == Power::On).map(|row| row.id.clone()))
    }

    async fn remove(&self, request: &VirtualMachineWebConsoleRequest) -> Result<Next, PassError> {
        let namespace = request.namespace().unwrap_or_default();
        let client = self.cx.writer.client().clone();
        let api: Api<VirtualMachineWebConsoleRequest> = Api::namespaced(client, &namespace);
        let only = Preconditions { uid: request.uid(), resource_version: None };
        let params = DeleteParams::default().preconditions(only);
        match api.delete(&request.name_any(), &params).await {
            Ok(_) => Ok(Next::AwaitChange),
            Err(kube::Error::Api(said)) if said.is_not_found() || said.is_conflict() => {
                Ok(Next::AwaitChange)
            }
            Err(source) => {
                let what = "delete an expired console request".to_owned();
                Err(PassError::Api { what, source: Box::new(source) })
            }
        }
    }
}
