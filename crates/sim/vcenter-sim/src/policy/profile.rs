use jiff::Timestamp;
use roost_vim_wire::Element;

/// A storage policy.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    pub id: String,
    pub name: String,
    pub description: String,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub user: String,
    pub is_default: bool,
    /// As it was given, to be given back.
    pub constraints: Element,
    pub rules: Vec<Rule>,
    pub encrypts: bool,
}

/// What one capability of a policy asks of a datastore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    Any,
    Vsan,
    Tag { category: String, tags: Vec<String> },
}

const TAGS: &str = "http://www.vmware.com/storage/tag";
const ENCRYPTION: &str = "com.vmware.storageprofile.dataservice";

impl Profile {
    pub(super) fn new(
        id: String,
        name: &str,
        constraints: Element,
        now: Timestamp,
        user: &str,
    ) -> Self {
        let capabilities = capabilities(&constraints);
        let encrypts = capabilities.iter().any(|capability| namespace(capability) == ENCRYPTION);
        let rules = capabilities.iter().map(rule).collect();
        Self {
            id,
            name: name.into(),
            description: String::new(),
            created: now,
            updated: now,
            user: user.into(),
            is_default: false,
            constraints,
            rules,
            encrypts,
        }
    }

    /// `PbmCapabilityProfile`, or the subclass that a vCenter gives back.
    pub(super) fn element(&self, name: &str) -> Element {
        let k8s: String = self
            .name
            .to_lowercase()
            .chars()
            .map(|char| if char.is_ascii_alphanumeric() { char } else { '-' })
            .collect();
        let id = Element::new("profileId").with_field("uniqueId", &self.id);
        let kind = Element::new("resourceType").with_field("resourceType", &"STORAGE".to_owned());
        let mut profile = Element::new(name)
            .typed("PbmCapabilityProfile")
            .with(id)
            .with_field("name", &self.name)
            .with_field("description", &self.description)
            .with_field("creationTime", &self.created)
            .with_field("createdBy", &self.user)
            .with_field("lastUpdatedTime", &self.updated)
            .with_field("lastUpdatedBy", &self.user)
            .with_field("profileCategory", &"REQUIREMENT".to_owned())
            .with(kind);
        let mut constraints = self.constraints.clone();
        constraints.name = "constraints".into();
        profile = profile.with(constraints);
        profile
            .with_field("generationId", &0_i64)
            .with_field("isDefault", &self.is_default)
            .with_field("k8sCompliantName", &k8s)
    }
}

fn capabilities(constraints: &Element) -> Vec<Element> {
    let profiles = constraints.children_named("subProfiles");
    profiles.flat_map(|profile| profile.children_named("capability").cloned()).collect()
}

fn namespace(capability: &Element) -> &str {
    capability.child("id").and_then(|id| id.text_of("namespace")).unwrap_or_default()
}

fn rule(capability: &Element) -> Rule {
    match namespace(capability) {
        "VSAN" => Rule::Vsan,
        TAGS => {
            let category = capability.child("id").and_then(|id| id.text_of("id"));
            let properties = capability
                .children_named("constraint")
                .flat_map(|constraint| constraint.children_named("propertyInstance"));
            let values = properties.filter_map(|property| property.child("value"));
            let tags = values.flat_map(|value| match value.child("values") {
                // A set has one `values` per tag.
                Some(_) => value.children_named("values").map(|tag| tag.text.clone()).collect(),
                None => vec![value.text.clone()],
            });
            Rule::Tag { category: category.unwrap_or_default().into(), tags: tags.collect() }
        }
        _ => Rule::Any,
    }
}

fn capability(namespace: &str, id: &str, property: &str, value: Element) -> Element {
    let own = Element::new("id")
        .with_field("namespace", &namespace.to_owned())
        .with_field("id", &id.to_owned());
    let property =
        Element::new("propertyInstance").with_field("id", &property.to_owned()).with(value);
    Element::new("capability").with(own).with(Element::new("constraint").with(property))
}

fn constraints(name: &str, capabilities: Vec<Element>) -> Element {
    let profile = capabilities
        .into_iter()
        .fold(Element::new("subProfiles").with_field("name", &name.to_owned()), Element::with);
    Element::new("constraints").typed("PbmCapabilitySubProfileConstraints").with(profile)
}

fn value(kind: &str, text: &str) -> Element {
    Element::leaf("value", text).typed(kind)
}

/// The policies that every vCenter comes with.
pub(super) fn defaults() -> Vec<Profile> {
    const ENCRYPTION_ID: &str = "ad5a249d-cbc2-43af-9366-694d7664fa52";
    let vsan = ["hostFailuresToTolerate", "stripeWidth"]
        .map(|rule| capability("VSAN", rule, rule, value("int", "1")));
    let encryption =
        capability(ENCRYPTION, ENCRYPTION_ID, ENCRYPTION_ID, value("string", ENCRYPTION_ID));
    let all = [
        (
            "aa6d5a82-1c88-45da-85d3-3d74b91a5bad",
            "vSAN Default Storage Policy",
            "Storage policy used as default for vSAN datastores",
            constraints("VSAN sub-profile", vsan.into()),
        ),
        (
            "f4e5bade-15a2-4805-bf8e-52318c4ce443",
            "VVol No Requirements Policy",
            "Allow the datastore to determine the best placement strategy for storage objects",
            constraints("No requirements", Vec::new()),
        ),
        (
            "4d5f673c-536f-11e6-beb8-9e71128cae77",
            "VM Encryption Policy",
            "Sample storage policy for VMware's VM and virtual disk encryption",
            constraints("sp-1", vec![encryption]),
        ),
    ];
    let profile = |(id, name, description, constraints): (&str, &str, &str, Element)| Profile {
        description: description.into(),
        is_default: name.contains("Default"),
        ..Profile::new(id.into(), name, constraints, Timestamp::UNIX_EPOCH, "Temporary user handle")
    };
    all.map(profile).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_about_tags_names_its_category_and_any_number_of_tags() {
        let set = Element::parse(
            b"<capability><id><namespace>http://www.vmware.com/storage/tag</namespace><id>tier</id></id><constraint><propertyInstance>\
              <id>com.vmware.storage.tag.tier.property</id><value xsi:type=\"PbmCapabilityDiscreteSet\"><values xsi:type=\"xsd:string\">gold</values>\
              <values xsi:type=\"xsd:string\">silver</values></value></propertyInstance></constraint></capability>",
        )
        .unwrap();
        let tags = vec!["gold".to_owned(), "silver".to_owned()];
        assert_eq!(rule(&set), Rule::Tag { category: "tier".into(), tags });
        assert_eq!(defaults()[0].rules, [Rule::Vsan, Rule::Vsan]);
        assert!(defaults()[2].encrypts);
    }
}
