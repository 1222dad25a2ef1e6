//! Reading properties once, page by page.

use std::sync::Arc;

use roost_vim_wire::methods::{ContinueRetrievePropertiesEx, Effect, RetrievePropertiesEx};
use roost_vim_wire::types::{
    MissingProperty, ObjectContent, ObjectSpec, PropertyFilterSpec, PropertySpec, RetrieveOptions,
};
use roost_vim_wire::{Fault, Item, LocalizedMethodFault, MoRef};

use crate::call::Tries;
use crate::cleanup::Chore;
use crate::client_core::Core;
use crate::exchange::Patience;
use crate::session::Lease;
use crate::{CallClass, CallError, Properties};

const METHOD: &str = "RetrievePropertiesEx";

/// The server's promise of more pages. Dropped unused, it is given back.
struct Token<'a> {
    core: &'a Core,
    generation: u64,
    next: Option<String>,
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.next.take() {
            self.core.janitor.push(Chore::CancelRetrieve { generation: self.generation, token });
        }
    }
}

impl Core {
    /// All objects that the spec selects, following every token. Each page has the deadline of a read.
    pub(crate) async fn retrieve(
        self: &Arc<Self>,
        spec: PropertyFilterSpec,
    ) -> Result<Vec<ObjectContent>, CallError> {
        let call = self.retrieve_call(spec)?;
        let mut tries = Tries::new(self, self.deadline(CallClass::Read), Effect::Read);
        loop {
            let lease = match tries.lease().await {
                Ok(lease) => lease,
                Err(error) => {
                    tries.after(None, error).await?;
                    continue;
                }
            };
            // Tokens die with their session and are good for one use: after a break the read starts over.
            match self.retrieve_pages(&lease, &call).await {
                Ok(objects) => return Ok(objects),
                Err(error) => tries.after(Some(lease), error).await?,
            }
        }
    }

    /// The same in this session and no other, tried once.
    pub(crate) async fn retrieve_in(
        &self,
        lease: &Lease,
        spec: PropertyFilterSpec,
    ) -> Result<Vec<ObjectContent>, CallError> {
        self.retrieve_pages(lease, &self.retrieve_call(spec)?).await
    }

    fn retrieve_call(&self, spec: PropertyFilterSpec) -> Result<RetrievePropertiesEx, CallError> {
        let this = self.content()?.property_collector.clone();
        Ok(RetrievePropertiesEx { this, spec_set: vec![spec], options: RetrieveOptions::default() })
    }

    async fn retrieve_pages(
        &self,
        lease: &Lease,
        call: &RetrievePropertiesEx,
    ) -> Result<Vec<ObjectContent>, CallError> {
        let patience = Patience {
            first: self.deadline(CallClass::Read),
            silence: self.deadline(CallClass::Read),
        };
        let (mut objects, mut more) =
            (Vec::new(), Token { core: self, generation: lease.generation, next: None });
        let mut gone = None;
        let mut found = |more: &mut Token<'_>, item| match item {
            Item::Object(object) => {
                gone = gone.take().or_else(|| not_authenticated(&object.missing_set));
                objects.push(object);
            }
            Item::Token(token) => more.next = Some(token),
            _ => {}
        };
        self.exchange_page(call, &lease.cookie, patience, |item| found(&mut more, item)).await?;
        while let Some(token) = more.next.take() {
            let next = ContinueRetrievePropertiesEx { this: call.this.clone(), token };
            self.exchange_page(&next, &lease.cookie, patience, |item| found(&mut more, item))
                .await?;
        }
        match gone {
            // A dead session reads as objects without properties; that is no answer.
            Some(fault) => Err(CallError::of_fault(METHOD, fault)),
            None => Ok(objects),
        }
    }

    pub(crate) async fn properties(
        self: &Arc<Self>,
        obj: &MoRef,
        paths: &[&str],
    ) -> Result<Properties, CallError> {
        let objects = self.retrieve(properties_spec(obj, paths)).await?;
        let found = objects.into_iter().find(|object| object.obj == *obj);
        found.map(Properties::from).ok_or_else(|| {
            let fault = Fault::of("ManagedObjectNotFound").with("obj", obj);
            CallError::of_fault(METHOD, LocalizedMethodFault { fault, localized_message: None })
        })
    }
}

pub(crate) fn properties_spec(obj: &MoRef, paths: &[&str]) -> PropertyFilterSpec {
    PropertyFilterSpec {
        prop_set: vec![PropertySpec::new(obj.kind.as_str(), paths)],
        object_set: vec![ObjectSpec {
            obj: obj.clone(),
            skip: Some(false),
            select_set: Vec::new(),
        }],
        report_missing_objects_in_results: None,
    }
}

/// The fault of a session that ended, among what could not be read.
pub(crate) fn not_authenticated(missing: &[MissingProperty]) -> Option<LocalizedMethodFault> {
    missing
        .iter()
        .find(|missing| missing.fault.fault.is("NotAuthenticated"))
        .map(|missing| missing.fault.clone())
}
