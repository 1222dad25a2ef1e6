//! A change that is on its way: from the request over admission to the store.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Subject, strategy, subresource, validate};
use crate::convert;
use crate::object;
use crate::patch::{self, PatchKind};
use crate::request::Request;
use crate::status::{ApiError, Cause};
use crate::store::Stored;
use crate::user::User;
use crate::world::World;

/// Letters that make no words.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
}

/// A create, an update or a patch before it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) subject: Subject,
    pub(crate) version: String,
    pub(crate) subresource: String,
    pub(crate) operation: Operation,
    pub(crate) old: Option<Arc<Stored>>,
    /// In the version of the request.
    pub(crate) new: Value,
    pub(crate) user: User,
    pub(crate) is_dry_run: bool,
    /// A patch other than apply.
    pub(crate) is_patch: bool,
    pub(crate) manager: String,
    /// Server-side apply: the applied configuration and whether it takes fields by force.
    pub(crate) applied: Option<(Value, bool)>,
    /// The writer named the state that it changes; a newer one is a conflict and no reason to try again.
    pub(crate) is_conditional: bool,
    pub(crate) field_validation: String,
    pub(crate) warnings: Vec<String>,
    /// By a webhook: the object to be stored, and that in the version of the request.
    pub(crate) converted: Option<(Value, Value)>,
}

/// What storing came to.
#[derive(Debug)]
pub(crate) enum Commit {
    Stored(Arc<Stored>, StatusCode),
    /// Somebody else was quicker: make the draft again.
    Stale,
}

impl World {
    /// What a create, update or patch wants, on the object as it is now.
    pub(crate) fn draft(&mut self, subject: Subject, request: &Request) -> Result<Draft, ApiError> {
        let target = &request.target;
        let kind = Arc::clone(&subject.kind);
        let mut draft = Draft {
            subject,
            version: target.version.clone(),
            subresource: target.subresource.clone(),
            operation: Operation::Update,
            old: None,
            new: Value::Null,
            user: request.user.clone(),
            is_dry_run: request.is_dry_run(),
            is_patch: request.method == Method::PATCH
                && PatchKind::of(&request.content_type) != Some(PatchKind::Apply),
            manager: request.manager(),
            applied: None,
            is_conditional: false,
            field_validation: request.query.get("fieldValidation").to_owned(),
            warnings: Vec::new(),
            converted: None,
        };
        if request.method == Method::POST {
            draft.operation = Operation::Create;
            draft.new = request.object()?;
            self.identify(&mut draft)?;
        } else {
            draft.old = self.get(&kind, &draft.subject.key);
            let body = request.object()?;
            if request.method == Method::PUT {
                self.draft_update(&mut draft, body)?;
            } else {
                let how = PatchKind::of(&request.content_type)
                    .ok_or_else(|| unsupported_patch(!kind.is_custom()))?;
                self.draft_patch(&mut draft, how, &body, request)?;
            }
        }
        Ok(draft)
    }

    /// Checks what the object says of itself and names it.
    fn identify(&mut self, draft: &mut Draft) -> Result<(), ApiError> {
        let kind = Arc::clone(&draft.subject.kind);
        if !draft.new.is_object() {
            return Err(ApiError::bad_request("the body is no object"));
        }
        check_type(&kind, &draft.version, &mut draft.new)?;
        let namespace = draft.subject.key.0.clone();
        if kind.is_namespaced && namespace.is_empty() {
            return Err(ApiError::method_not_allowed());
        }
        check_namespace(&draft.new, &namespace)?;
        let suffix: String = (0..5)
            .filter_map(|_| self.random.pick(NAME_LETTERS).map(|letter| char::from(*letter)))
            .collect();
        let metadata = object::metadata_mut(&mut draft.new);
        if !namespace.is_empty() {
            metadata.insert("namespace".into(), json!(namespace));
        }
        let has_name =
            metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
        if let Some(prefix) =
            metadata.get("generateName").and_then(Value::as_str).filter(|_| !has_name)
        {
            let name = format!("{prefix}{suffix}");
            metadata.insert("name".into(), json!(name));
        }
        if !draft.subject.key.1.is_empty() && !has_name {
            metadata.insert("name".into(), json!(draft.subject.key.1));
        }
        draft.subject.key.1 = object::name(&draft.new).to_owned();
        Ok(())
    }

    fn draft_update(&mut self, draft: &mut Draft, mut body: Value) -> Result<(), ApiError> {
        let kind = Arc::clone(&draft.subject.kind);
        let name = draft.subject.key.1.clone();
        if object::name(&body).is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        if draft.subresource == "scale" {
            return subresource::draft_scale(draft, &body);
        }
        check_type(&kind, &draft.version, &mut body)?;
        check_namespace(&body, &draft.subject.key.0)?;
        check_name(&body, &name)?;
        draft.new = body;
        let Some(old) = &draft.old else {
            let creates = kind
                .built_in()
                .is_some_and(|built_in| built_in.has(crate::builtin::CREATE_ON_UPDATE));
            if !creates || !draft.subresource.is_empty() {
                return Err(ApiError::not_found(&kind, &name));
            }
            draft.operation = Operation::Create;
            return self.identify(draft);
        };
        let said = object::resource_version(&draft.new);
        if said.is_empty() {
            let must = kind
                .built_in()
                .is_none_or(|built_in| built_in.has(crate::builtin::CONDITIONAL_UPDATE));
            if must {
                let cause = Cause::invalid(
                    "metadata.resourceVersion",
                    &json!(0),
                    "must be specified for an update",
                );
                // The real server names the resource here, not the kind.
                let mut error = ApiError::invalid(&kind, &name, &[cause]);
                error.message = error.message.replacen(&kind.full_kind(), &kind.qualified(), 1);
                error.details.insert("kind".into(), kind.plural.clone().into());
                return Err(error);
            }
        } else if said.parse::<u64>().is_err() {
            return Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "",
                format!("strconv.ParseUint: parsing {said:?}: invalid syntax"),
            ));
        } else if said != old.revision.to_string() {
            return Err(ApiError::modified(&kind, &name));
        } else {
            draft.is_conditional = true;
        }
        check_uid(draft, old)
    }

    fn draft_patch(
        &mut self,
        draft: &mut Draft,
        how: PatchKind,
        body: &Value,
        request: &Request,
    ) -> Result<(), ApiError> {
        let kind = Arc::clone(&draft.subject.kind);
        let name = draft.subject.key.1.clone();
        if how == PatchKind::Apply {
            return self.draft_apply(draft, body, request);
        }
        let old = draft.old.clone().ok_or_else(|| ApiError::not_found(&kind, &name))?;
        let mut value = convert::from_storage(&kind, &draft.version, &old);
        let scale = kind.version(&draft.version).and_then(|version| version.scale.clone());
        if let Some(scale) = scale.filter(|_| draft.subresource == "scale") {
            let mut view = super::scale::view(&scale, &value);
            change(&mut view, how, body, !kind.is_custom())?;
            return subresource::draft_scale(draft, &view);
        }
        change(&mut value, how, body, !kind.is_custom())?;
        if !value.is_object() {
            return Err(ApiError::bad_request("the patch leaves no object"));
        }
        check_name(&value, &name)?;
        if kind.is_custom() {
            check_type(&kind, &draft.version, &mut value)?;
        }
        let said = object::resource_version(&value);
        if !said.is_empty() && said != old.revision.to_string() {
            return Err(ApiError::modified(&kind, &name));
        }
        let in_patch = body["metadata"]["resourceVersion"].is_string();
        draft.is_conditional = in_patch;
        draft.new = value;
        check_uid(draft, &old)
    }

    fn draft_apply(
        &mut self,
        draft: &mut Draft,
        body: &Value,
        request: &Request,
    ) -> Result<(), ApiError> {
        let kind = Arc::clone(&draft.subject.kind);
        if request.query.get("fieldManager").is_empty() {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(ApiError::invalid_options("PatchOptions", &[cause]));
        }
        let mut applied = body.clone();
        if draft.subresource == "scale" {
            applied = subresource::applied_scale(draft, body)?;
        }
        let said = applied["kind"].as_str().unwrap_or_default();
        if kind.is_custom() && !said.is_empty() && said != kind.kind {
            let version = kind.api_version(&draft.version);
            return Err(ApiError::bad_request(format!(
                "invalid object type: {version}, Kind={said}"
            )));
        }
        check_type(&kind, &draft.version, &mut applied)?;
        if !object::name(&applied).is_empty() {
            check_name(&applied, &draft.subject.key.1)?;
        }
        validate::check_declared(draft, &applied)?;
        check_namespace(&applied, &draft.subject.key.0)?;
        if object::metadata(&applied).contains_key("managedFields") {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        let metadata = object::metadata_mut(&mut applied);
        metadata.insert("name".into(), json!(draft.subject.key.1));
        if !draft.subject.key.0.is_empty() {
            metadata.insert("namespace".into(), json!(draft.subject.key.0));
        }
        let force = request.query.is_set("force");
        let live = draft.old.as_ref().map(|old| convert::from_storage(&kind, &draft.version, old));
        if live.is_none() && !draft.subresource.is_empty() {
            return Err(ApiError::not_found(&kind, &draft.subject.key.1));
        }
        let said = object::resource_version(&applied).to_owned();
        if let Some(old) = &draft.old
            && !said.is_empty()
            && said != old.revision.to_string()
        {
            return Err(ApiError::modified(&kind, &draft.subject.key.1));
        }
        draft.new = crate::apply::merge(
            &kind,
            &draft.version,
            &draft.subresource,
            live.as_ref(),
            &applied,
            &draft.manager,
            force,
        )?;
        draft.applied = Some((applied, force));
        if draft.old.is_none() {
            draft.operation = Operation::Create;
            self.identify(draft)?;
        }
        Ok(())
    }

    /// Everything between the request and the store that needs no answer from outside: strategy, defaults, pruning,
    /// validation. Asked before admission and again after it has changed the object.
    pub(crate) fn finish_draft(&mut self, draft: &mut Draft) -> Result<(), ApiError> {
        let kind = Arc::clone(&draft.subject.kind);
        if draft.operation == Operation::Create {
            self.check_place(draft)?;
        }
        validate::prune(draft)?;
        strategy::prepare(self, draft)?;
        validate::set_defaults(draft);
        validate::check(self, draft)?;
        crate::apply::track(draft, &self.now());
        strategy::count_generation(&kind, draft);
        Ok(())
    }

    /// The namespace must be there and stay.
    fn check_place(&self, draft: &Draft) -> Result<(), ApiError> {
        let (kind, (namespace, name)) = (&draft.subject.kind, &draft.subject.key);
        if namespace.is_empty() {
            return Ok(());
        }
        let Some(stored) = self.namespace(namespace) else {
            let mut error = ApiError::new(
                StatusCode::NOT_FOUND,
                "NotFound",
                format!("namespaces \"{namespace}\" not found"),
            );
            error.details = json!({"name": namespace, "kind": "namespaces"})
                .as_object()
                .cloned()
                .unwrap_or_default();
            return Err(error);
        };
        if object::is_being_deleted(&stored.value) {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = Cause::new(
                "NamespaceTerminating",
                "metadata.namespace",
                format!("namespace {namespace} is being terminated"),
            );
            return Err(ApiError::forbidden(kind, name, &why).with_causes(&[cause]));
        }
        Ok(())
    }

    /// Stores a finished draft.
    pub(crate) fn commit(&mut self, draft: &Draft) -> Result<Commit, ApiError> {
        let Subject { kind, key } = &draft.subject;
        let current = self.get(kind, key);
        let created =
            if draft.operation == Operation::Create { StatusCode::CREATED } else { StatusCode::OK };
        match (&draft.old, &current) {
            (None, Some(_)) if draft.applied.is_some() => return Ok(Commit::Stale),
            (None, Some(_)) => return Err(ApiError::exists(kind, &key.1)),
            (Some(_), None) => return Err(ApiError::not_found(kind, &key.1)),
            (Some(old), Some(current)) if old.revision != current.revision => {
                if draft.is_conditional {
                    return Err(ApiError::modified(kind, &key.1));
                }
                return Ok(Commit::Stale);
            }
            _ => {}
        }
        let value = match &draft.converted {
            Some((stored, _)) => stored.clone(),
            None => convert::to_storage(kind, draft.new.clone()),
        };
        if draft.is_dry_run {
            let revision = draft.old.as_ref().map_or(0, |old| old.revision);
            let mut stored = Stored::new(value, revision);
            if revision == 0
                && let Some(stored) = Arc::get_mut(&mut stored)
            {
                object::metadata_mut(&mut stored.value).remove("resourceVersion");
            }
            return Ok(Commit::Stored(stored, created));
        }
        if let Some(old) = &draft.old {
            if object::is_same_content(&old.value, &value)
                && crate::apply::is_same_ownership(&old.value, &value)
            {
                return Ok(Commit::Stored(Arc::clone(old), created));
            }
            let is_free = object::is_being_deleted(&value)
                && object::finalizers(&value).is_empty()
                && value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
                && !(kind.is("", "namespaces")
                    && value["spec"]["finalizers"].as_array().is_some_and(|held| !held.is_empty()));
            if is_free {
                // The last finalizer is gone, so is the object. Those who watch see its end, not this update.
                let last = Stored::new(value, old.revision);
                self.remove(kind, key);
                self.run_todo();
                return Ok(Commit::Stored(last, created));
            }
        }
        let stored = self.write(kind, key, value);
        self.settle(kind, key);
        Ok(Commit::Stored(stored, created))
    }
}

fn change(
    value: &mut Value,
    how: PatchKind,
    patch: &Value,
    is_built_in: bool,
) -> Result<(), ApiError> {
    match how {
        PatchKind::Json => patch::apply_json_patch(value, patch),
        PatchKind::Strategic if is_built_in => patch::merge_strategically(value, patch),
        PatchKind::Strategic => Err(unsupported_patch(is_built_in)),
        PatchKind::Merge | PatchKind::Apply => {
            if !patch.is_object() {
                return Err(ApiError::bad_request("error decoding patch: it is no object"));
            }
            patch::merge(value, patch);
            Ok(())
        }
    }
}

/// Definitions do not say how lists merge, so custom kinds lack one kind of patch.
fn unsupported_patch(is_built_in: bool) -> ApiError {
    let strategic = if is_built_in { " application/strategic-merge-patch+json," } else { "" };
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json,{strategic} application/apply-patch+yaml"
        ),
    )
}

/// `apiVersion` and `kind` must be those of the URL; what is not said is filled in.
fn check_type(kind: &crate::kind::Kind, version: &str, value: &mut Value) -> Result<(), ApiError> {
    let wanted = kind.api_version(version);
    match value["apiVersion"].as_str().unwrap_or_default() {
        "" => value["apiVersion"] = json!(wanted),
        said if said != wanted && !kind.is_custom() => {
            let name = &kind.kind;
            return Err(ApiError::bad_request(format!(
                "{name} in version {said:?} cannot be handled as a {name}: no kind {name:?} is registered for version {said:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        said if said != wanted => {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({said}) does not match the expected API version ({wanted})"
            )));
        }
        _ => {}
    }
    match value["kind"].as_str().unwrap_or_default() {
        "" => value["kind"] = json!(kind.kind),
        said if said != kind.kind && kind.is_custom() => {
            let cause = Cause::invalid("kind", &json!(said), &format!("must be {}", kind.kind));
            let mut error = ApiError::invalid(kind, object::name(value), &[cause]);
            error.message = error.message.replacen(&kind.kind, said, 1);
            error.details.insert("kind".into(), said.into());
            return Err(error);
        }
        said if said != kind.kind => {
            return Err(ApiError::bad_request(format!(
                "the kind in the data ({said}) does not match the expected kind ({})",
                kind.kind
            )));
        }
        _ => {}
    }
    Ok(())
}

fn check_name(value: &Value, name: &str) -> Result<(), ApiError> {
    let said = object::name(value);
    if said == name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the name of the object ({said}) does not match the name on the URL ({name})"
    )))
}

fn check_namespace(value: &Value, namespace: &str) -> Result<(), ApiError> {
    let said = object::namespace(value);
    if said.is_empty() || said == namespace {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

fn check_uid(draft: &Draft, old: &Stored) -> Result<(), ApiError> {
    let said = object::uid(&draft.new);
    if said.is_empty() || said == old.uid() {
        return Ok(());
    }
    let (kind, (namespace, name)) = (&draft.subject.kind, &draft.subject.key);
    let place: Vec<_> = [&kind.group, &kind.plural, namespace, name]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(String::as_str)
        .collect();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {said}, UID in object meta: {}",
        place.join("/"),
        old.uid()
    );
    Err(ApiError::conflict(&draft.subject.kind, &draft.subject.key.1, &why))
}
