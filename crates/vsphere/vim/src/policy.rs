//! Storage policies: which there are, which datastores they allow, which a VM has.

use roost_vim_wire::methods::{
    PbmCheckCompatibility, PbmQueryAssociatedProfile, PbmQueryProfile, PbmRetrieveContent,
    PbmRetrieveServiceContent,
};
use roost_vim_wire::types::{PbmProfileId, PbmServerObjectRef};
use roost_vim_wire::{Element, MoRef, MoType};

use crate::{CallError, Observer, Remedy};

/// A storage policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoragePolicy {
    pub id: String,
    pub name: String,
    pub description: String,
    /// Thin (0) or thick (100), where the policy says so.
    pub proportional_capacity: Option<i64>,
}

/// Why storage policies could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("asking for storage policies")]
    Call { source: CallError },
    #[error("the server has no {what} for storage policies")]
    Lacks { what: &'static str },
    #[error("there is no storage policy {id}")]
    Unknown { id: String },
}

impl PolicyError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Call { source } => source.remedy(),
            Self::Lacks { .. } | Self::Unknown { .. } => Remedy::GiveUp,
        }
    }
}

impl From<CallError> for PolicyError {
    fn from(source: CallError) -> Self {
        Self::Call { source }
    }
}

impl Observer {
    async fn policy_manager(&self, what: &'static str) -> Result<MoRef, PolicyError> {
        let this = MoRef::new(MoType::from("PbmServiceInstance"), "ServiceInstance");
        let content = self.read(&PbmRetrieveServiceContent { this }).await?;
        content.child(what).and_then(Element::moref).ok_or(PolicyError::Lacks { what })
    }

    /// All policies that VMs can have.
    pub async fn storage_policies(&self) -> Result<Vec<StoragePolicy>, PolicyError> {
        let this = self.policy_manager("profileManager").await?;
        let ids = self
            .read(&PbmQueryProfile {
                this: this.clone(),
                resource_type: Element::new("resourceType")
                    .with_field("resourceType", &"STORAGE".to_owned()),
                profile_category: Some("REQUIREMENT".into()),
            })
            .await?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.read(&PbmRetrieveContent { this, profile_ids: ids }).await?;
        Ok(found.iter().map(read_policy).collect())
    }

    /// The datastores that a policy allows, among all that there are.
    pub async fn compatible_datastores(&self, policy: &str) -> Result<Vec<MoRef>, PolicyError> {
        let this = self.policy_manager("placementSolver").await?;
        let profile = PbmProfileId { unique_id: policy.into() };
        let call = PbmCheckCompatibility { this, hubs_to_search: Vec::new(), profile };
        let results = match self.read(&call).await {
            Ok(results) => results,
            Err(CallError::Fault { fault, .. }) if fault.fault.is("InvalidArgument") => {
                return Err(PolicyError::Unknown { id: policy.into() });
            }
            Err(source) => return Err(source.into()),
        };
        let allowed = results
            .into_iter()
            .filter(|result| result.error.is_empty() && result.hub.hub_type == "Datastore");
        Ok(allowed.map(|result| MoRef::new(MoType::Datastore, result.hub.hub_id)).collect())
    }

    /// The policies of a VM's home.
    pub async fn policies_of_vm(&self, vm: &MoRef) -> Result<Vec<String>, PolicyError> {
        let this = self.policy_manager("profileManager").await?;
        let entity = PbmServerObjectRef::vm(vm);
        let ids = self.read(&PbmQueryAssociatedProfile { this, entity }).await?;
        Ok(ids.into_iter().map(|id| id.unique_id).collect())
    }
}

fn read_policy(profile: &Element) -> StoragePolicy {
    let text = |name: &str| profile.text_of(name).unwrap_or_default().to_owned();
    let id = profile.child("profileId").and_then(|id| id.text_of("uniqueId")).unwrap_or_default();
    let rules = profile.child("constraints").into_iter().flat_map(|constraints| {
        constraints
            .children_named("subProfiles")
            .flat_map(|rules| rules.children_named("capability"))
    });
    let capacity = rules
        .filter(|rule| {
            rule.child("id").and_then(|id| id.text_of("id")) == Some("proportionalCapacity")
        })
        .find_map(|rule| rule.child("constraint")?.child("propertyInstance")?.number_of("value"));
    StoragePolicy {
        id: id.to_owned(),
        name: text("name"),
        description: text("description"),
        proportional_capacity: capacity,
    }
}
