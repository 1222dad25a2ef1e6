//! Tags and their categories.

use http::Method;
use roost_vim_wire::{MoRef, MoType};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rest::id;
use crate::{Client, Observer, RestError};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TagCategory {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// `SINGLE` or `MULTIPLE`: how many of its tags an object may carry.
    #[serde(default)]
    pub cardinality: String,
    #[serde(default)]
    pub associable_types: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tag {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub category_id: String,
}

fn parse<T: for<'de> Deserialize<'de>>(what: &'static str, value: Value) -> Result<T, RestError> {
    serde_json::from_value(value).map_err(|source| RestError::Answer { what, source })
}

fn object_id(obj: &MoRef) -> Value {
    json!({ "type": obj.kind.as_str(), "id": &*obj.id })
}

impl Observer {
    /// All categories.
    pub async fn tag_categories(&self) -> Result<Vec<TagCategory>, RestError> {
        const WHAT: &str = "listing tag categories";
        let ids: Vec<String> = parse(WHAT, self.rest_get(WHAT, "cis/tagging/category").await?)?;
        let mut all = Vec::new();
        for own in ids {
            match self.rest_get(WHAT, &format!("cis/tagging/category/{}", id(&own))).await {
                Ok(found) => all.push(parse(WHAT, found)?),
                // Deleted since it was listed.
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    pub async fn tag(&self, tag: &str) -> Result<Tag, RestError> {
        const WHAT: &str = "reading a tag";
        parse(WHAT, self.rest_get(WHAT, &format!("cis/tagging/tag/{}", id(tag))).await?)
    }

    /// The tags of a category.
    pub async fn tags_of_category(&self, category: &str) -> Result<Vec<Tag>, RestError> {
        const WHAT: &str = "listing the tags of a category";
        let path = format!("cis/tagging/tag/{}?~action=list-tags-for-category", id(category));
        let body = json!({ "category_id": category });
        let ids: Vec<String> = parse(WHAT, self.rest_query(WHAT, &path, &body).await?)?;
        let mut all = Vec::new();
        for tag in ids {
            all.push(self.tag(&tag).await?);
        }
        Ok(all)
    }

    /// The ids of the tags that each of these objects carries, in one call.
    pub async fn attached_tags(
        &self,
        objects: &[MoRef],
    ) -> Result<Vec<(MoRef, Vec<String>)>, RestError> {
        const WHAT: &str = "listing the tags of objects";
        #[derive(Deserialize)]
        struct Object {
            id: String,
            r#type: String,
        }
        #[derive(Deserialize)]
        struct Row {
            object_id: Object,
            #[serde(default)]
            tag_ids: Vec<String>,
        }
        let body = json!({ "object_ids": objects.iter().map(object_id).collect::<Vec<_>>() });
        let path = "cis/tagging/tag-association?~action=list-attached-tags-on-objects";
        let rows: Vec<Row> = parse(WHAT, self.rest_query(WHAT, path, &body).await?)?;
        let row = |row: Row| {
            let kind = MoType::from(row.object_id.r#type.as_str());
            (MoRef::new(kind, row.object_id.id), row.tag_ids)
        };
        Ok(rows.into_iter().map(row).collect())
    }
}

impl Client {
    /// The category of this name; made if it is not there.
    pub async fn ensure_tag_category(
        &self,
        name: &str,
        associable_types: &[&str],
    ) -> Result<String, RestError> {
        const WHAT: &str = "making a tag category";
        let spec = json!({ "create_spec": {
            "name": name,
            "description": "",
            "cardinality": "MULTIPLE",
            "associable_types": associable_types,
        } });
        match self.rest_change(WHAT, Method::POST, "cis/tagging/category", Some(&spec)).await {
            Ok(id) => parse(WHAT, id),
            Err(error) if error.already_exists() => {
                let all = self.tag_categories().await?;
                let own = all.into_iter().find(|category| category.name == name);
                own.map(|category| category.id).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The tag of this name in a category; made if it is not there.
    pub async fn ensure_tag(&self, category: &str, name: &str) -> Result<String, RestError> {
        const WHAT: &str = "making a tag";
        let spec =
            json!({ "create_spec": { "name": name, "description": "", "category_id": category } });
        match self.rest_change(WHAT, Method::POST, "cis/tagging/tag", Some(&spec)).await {
            Ok(id) => parse(WHAT, id),
            Err(error) if error.already_exists() => {
                let all = self.tags_of_category(category).await?;
                all.into_iter().find(|tag| tag.name == name).map(|tag| tag.id).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Puts a tag on an object. Succeeds when it is there.
    pub async fn attach_tag(&self, tag: &str, object: &MoRef) -> Result<(), RestError> {
        self.associate("attaching a tag", "attach", tag, object).await
    }

    /// Takes a tag off an object. Succeeds when it is not there.
    pub async fn detach_tag(&self, tag: &str, object: &MoRef) -> Result<(), RestError> {
        self.associate("detaching a tag", "detach", tag, object).await
    }

    async fn associate(
        &self,
        what: &'static str,
        action: &str,
        tag: &str,
        object: &MoRef,
    ) -> Result<(), RestError> {
        let path = format!("cis/tagging/tag-association/{}?~action={action}", id(tag));
        let body = json!({ "object_id": object_id(object) });
        self.rest_change(what, Method::POST, &path, Some(&body)).await.map(drop)
    }
}
