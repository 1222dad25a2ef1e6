//! A simulated vCenter on simulated time, and a client that is as plain as can be.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "it is part of tests")]

pub(crate) mod watch;

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use roost_clock::SimClock;
use roost_vcenter_sim::{Body, Options, Vcenter, full_body};
use roost_vim_wire::methods::{Login, RetrieveServiceContent};
use roost_vim_wire::types::{
    ObjectContent, ObjectSpec, Password, PropertyFilterSpec, PropertySpec, RetrieveOptions,
    ServiceContent, UserSession,
};
use roost_vim_wire::{
    Fault, LocalizedMethodFault, Method, MoRef, MoType, Reply, Value, decode_reply, encode_request,
    methods,
};

pub(crate) struct Lab {
    pub(crate) vcenter: Vcenter,
    pub(crate) content: ServiceContent,
}

/// One client with its cookie.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) vcenter: Vcenter,
    pub(crate) content: ServiceContent,
    pub(crate) cookie: Option<String>,
    pub(crate) session: UserSession,
}

impl Lab {
    pub(crate) async fn start(options: Options) -> Self {
        let vcenter = Vcenter::start(options, Arc::new(SimClock::new()));
        let call = RetrieveServiceContent { this: MoRef::service_instance() };
        let response = send(&vcenter, None, encode_request(&call, None)).await.unwrap();
        Self { content: read::<RetrieveServiceContent>(response).await.unwrap(), vcenter }
    }

    pub(crate) async fn default() -> Self {
        Self::start(Options::default()).await
    }

    pub(crate) fn anonymous(&self) -> Client {
        Client {
            vcenter: self.vcenter.clone(),
            content: self.content.clone(),
            cookie: None,
            session: UserSession::default(),
        }
    }

    pub(crate) async fn login(&self) -> Client {
        let mut client = self.anonymous();
        client.log_in("user", "pass").await.unwrap();
        client
    }
}

impl Client {
    pub(crate) async fn log_in(
        &mut self,
        user: &str,
        password: &str,
    ) -> Result<(), LocalizedMethodFault> {
        let call = Login {
            this: self.content.session_manager.clone().unwrap(),
            user_name: user.into(),
            password: Password(password.into()),
            locale: Some("en_US".into()),
        };
        let response = self.send(encode_request(&call, None)).await.unwrap();
        let cookie =
            response.headers().get("set-cookie").map(|value| value.to_str().unwrap().to_owned());
        self.session = read::<Login>(response).await?;
        self.cookie = cookie.map(|cookie| cookie.split(';').next().unwrap().to_owned());
        Ok(())
    }

    pub(crate) async fn send(&self, body: Vec<u8>) -> std::io::Result<Response<Body>> {
        send(&self.vcenter, self.cookie.as_deref(), body).await
    }

    pub(crate) async fn call<M: Method>(&self, method: M) -> Result<M::Output, Fault> {
        self.try_call(method).await.expect("the connection was cut")
    }

    /// The outer error is a cut connection.
    pub(crate) async fn try_call<M: Method>(
        &self,
        method: M,
    ) -> std::io::Result<Result<M::Output, Fault>> {
        let response = self.send(encode_request(&method, None)).await?;
        Ok(read::<M>(response).await.map_err(|fault| fault.fault))
    }

    /// Any request by HTTP.
    pub(crate) async fn http(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> std::io::Result<(StatusCode, String)> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let response =
            self.vcenter.handle(request.body(full_body(body.to_owned())).unwrap()).await?;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    pub(crate) fn collector(&self) -> MoRef {
        self.content.property_collector.clone()
    }

    pub(crate) async fn find(&self, path: &str) -> MoRef {
        let call = methods::FindByInventoryPath {
            this: self.content.search_index.clone().unwrap(),
            inventory_path: path.into(),
        };
        self.call(call).await.unwrap().unwrap_or_else(|| panic!("{path} is not there"))
    }

    /// A container view of everything of this kind below the root folder.
    pub(crate) async fn view(&self, kind: &str) -> MoRef {
        self.view_below(&self.content.root_folder, &[kind], true).await.unwrap()
    }

    pub(crate) async fn view_below(
        &self,
        container: &MoRef,
        kinds: &[&str],
        recursive: bool,
    ) -> Result<MoRef, Fault> {
        self.call(methods::CreateContainerView {
            this: self.content.view_manager.clone().unwrap(),
            container: container.clone(),
            kind: kinds.iter().map(ToString::to_string).collect(),
            recursive,
        })
        .await
    }

    /// All pages of a read.
    pub(crate) async fn read_all(
        &self,
        spec: PropertyFilterSpec,
    ) -> Result<Vec<ObjectContent>, Fault> {
        let mut page = self
            .call(methods::RetrievePropertiesEx {
                this: self.collector(),
                spec_set: vec![spec],
                options: RetrieveOptions::default(),
            })
            .await?;
        let mut all = Vec::new();
        while let Some(result) = page {
            all.extend(result.objects);
            let Some(token) = result.token else { break };
            page = self
                .call(methods::ContinueRetrievePropertiesEx { this: self.collector(), token })
                .await?;
        }
        Ok(all)
    }

    pub(crate) async fn property(&self, obj: &MoRef, path: &str) -> Option<Value> {
        let objects = self.read_all(of_object(obj, &[path])).await.unwrap();
        objects.into_iter().next()?.prop_set.into_iter().next().map(|property| property.val)
    }

    pub(crate) async fn names(&self, view: &MoRef, kind: &str) -> Vec<String> {
        let spec = PropertyFilterSpec::of_view(view, vec![PropertySpec::new(kind, &["name"])]);
        let all = self.read_all(spec).await.unwrap();
        all.iter().map(|object| text(object, "name")).collect()
    }

    /// Waits for a task and returns its error, if it ended with one.
    pub(crate) async fn finish(&self, task: &MoRef) -> Result<Option<Value>, Fault> {
        loop {
            let info = self.property(task, "info").await.unwrap();
            let info = info.as_data::<roost_vim_wire::types::TaskInfo>().unwrap().clone();
            match info.state.as_str() {
                "success" => return Ok(info.result),
                "error" => return Err(info.error.unwrap().fault),
                _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    }

    pub(crate) async fn rename(&self, obj: &MoRef, name: &str) {
        let task = self
            .call(methods::RenameTask { this: obj.clone(), new_name: name.into() })
            .await
            .unwrap();
        self.finish(&task).await.unwrap();
    }

    pub(crate) async fn create_folder(&self, parent: &MoRef, name: &str) -> MoRef {
        self.call(methods::CreateFolder { this: parent.clone(), name: name.into() }).await.unwrap()
    }

    pub(crate) async fn destroy(&self, obj: &MoRef) {
        let task = self.call(methods::DestroyTask { this: obj.clone() }).await.unwrap();
        self.finish(&task).await.unwrap();
    }
}

pub(crate) fn of_object(obj: &MoRef, paths: &[&str]) -> PropertyFilterSpec {
    let start = ObjectSpec { obj: obj.clone(), ..ObjectSpec::default() };
    PropertyFilterSpec {
        prop_set: vec![PropertySpec::new(obj.kind.as_str(), paths)],
        object_set: vec![start],
        report_missing_objects_in_results: None,
    }
}

pub(crate) fn text(object: &ObjectContent, path: &str) -> String {
    let property = object.prop_set.iter().find(|property| property.name == path);
    property.and_then(|property| property.val.as_str()).unwrap_or_default().to_owned()
}

pub(crate) fn session_manager(client: &Client) -> MoRef {
    client.content.session_manager.clone().unwrap()
}

pub(crate) fn folder(id: &str) -> MoRef {
    MoRef::new(MoType::Folder, id)
}

async fn send(
    vcenter: &Vcenter,
    cookie: Option<&str>,
    body: Vec<u8>,
) -> std::io::Result<Response<Body>> {
    let mut request = Request::post("/sdk").header("soapaction", "urn:vim25/8.0.3.0");
    if let Some(cookie) = cookie {
        request = request.header("cookie", cookie);
    }
    vcenter.handle(request.body(full_body(body)).unwrap()).await
}

async fn read<M: Method>(response: Response<Body>) -> Result<M::Output, LocalizedMethodFault> {
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    if body.is_empty() {
        return Err(LocalizedMethodFault::new(Fault::of(&format!("Http{}", status.as_u16())), ""));
    }
    let reply = decode_reply::<M>(&body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)));
    match reply {
        Reply::Output(output) => {
            assert_eq!(status, StatusCode::OK);
            Ok(output)
        }
        Reply::Fault(fault) => {
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
            Err(fault)
        }
    }
}
