//! Whether a role is enough for a door, and no more than it uses: found out by running the door under it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderValue, Request, StatusCode};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;

use super::{Asked, Names, Needs};

const USER: &str = "Impersonate-User";
const GROUP: &str = "Impersonate-Group";

/// A door's service account with exactly its needs, and a book of what the door asked for.
///
/// ```no_run
/// # async fn example(admin: kube::Client, needs: roost_controller::rbac::Needs) -> Result<(), kube::Error> {
/// use roost_controller::rbac::Audit;
///
/// let audit = Audit::grant(&admin, needs, "greeter", "system").await?;
/// let client = audit.client(); // run the door with it, through everything that it does
/// # drop(client);
/// audit.verdict().assert_exact();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Audit {
    admin: Client,
    needs: Needs,
    account: String,
    namespace: String,
    book: Arc<Mutex<Book>>,
}

/// By kind of request and path.
#[derive(Debug, Default)]
struct Book {
    allowed: BTreeSet<(Asked, String)>,
    refused: BTreeSet<(Asked, String)>,
}

/// What an [`Audit`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What the API server refused every time: the role is not enough. While it starts, a server refuses what it allows a moment later.
    pub refused: Vec<String>,
    /// What is allowed and was never asked for: the role is too large, or the door was not run through everything.
    pub unused: Vec<String>,
}

impl Verdict {
    /// Panics unless the role is enough and all of it was used.
    #[track_caller]
    pub fn assert_exact(&self) {
        assert!(
            self.refused.is_empty() && self.unused.is_empty(),
            "the role does not fit: refused {:?}, unused {:?}",
            self.refused,
            self.unused
        );
    }
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Audit").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Audit {
    /// Applies the account, roles and bindings that are shipped for these needs. `admin` must be allowed to impersonate.
    pub async fn grant(
        admin: &Client,
        needs: Needs,
        names: impl Into<Names>,
        namespace: &str,
    ) -> Result<Self, kube::Error> {
        let names = names.into();
        let account = names.account.clone();
        for manifest in needs.manifests(names, namespace) {
            let object: DynamicObject =
                serde_json::from_value(manifest).map_err(kube::Error::SerdeError)?;
            let types = object.types.clone().unwrap_or_default();
            let (group, version) =
                types.api_version.split_once('/').unwrap_or(("", &types.api_version));
            let resource =
                ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
            let api: Api<DynamicObject> = match &object.metadata.namespace {
                Some(namespace) => Api::namespaced_with(admin.clone(), namespace, &resource),
                None => Api::all_with(admin.clone(), &resource),
            };
            let params = PatchParams::apply("roost-audit").force();
            let name = object.metadata.name.clone().unwrap_or_default();
            api.patch(&name, &params, &Patch::Apply(&object)).await?;
        }
        let namespace = namespace.to_owned();
        Ok(Self { admin: admin.clone(), needs, account, namespace, book: Arc::default() })
    }

    /// A client that is the door's service account.
    pub fn client(&self) -> Client {
        let audit = self.clone();
        let groups = [
            "system:authenticated".to_owned(),
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
        ];
        let user = format!("system:serviceaccount:{}:{}", self.namespace, self.account);
        let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
            let (audit, user, groups) = (audit.clone(), user.clone(), groups.clone());
            async move {
                let path = request.uri().path_and_query().map_or("", |path| path.as_str());
                let asked = Asked::of(request.method().as_str(), path);
                let path = request.uri().path().to_owned();
                let headers = request.headers_mut();
                headers.insert(USER, HeaderValue::from_str(&user)?);
                for group in &groups {
                    headers.append(GROUP, HeaderValue::from_str(group)?);
                }
                let answer = audit.admin.send(request).await?;
                let is_refused = answer.status() == StatusCode::FORBIDDEN;
                let mut book = audit.book();
                let page = if is_refused { &mut book.refused } else { &mut book.allowed };
                page.extend(asked.map(|asked| (asked, path)));
                drop(book);
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answer)
            }
        });
        Client::new(service, self.namespace.clone())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known so far.
    pub fn verdict(&self) -> Verdict {
        let book = self.book();
        let kinds = |page: &mut dyn Iterator<Item = &(Asked, String)>| -> BTreeSet<Asked> {
            page.map(|(asked, _)| asked.clone()).collect()
        };
        let refused = kinds(&mut book.refused.difference(&book.allowed));
        let asked = kinds(&mut book.refused.union(&book.allowed));
        Verdict {
            refused: refused.iter().map(ToString::to_string).collect(),
            unused: self.needs.unused(&asked),
        }
    }
}
