//! Service instance and sessions.

use jiff::Timestamp;

use crate::types::{
    Password, ServiceContent, SessionManagerGenericServiceTicket,
    SessionManagerHttpServiceRequestSpec, UserSession,
};

methods! {
    on ServiceInstance {
        read RetrieveServiceContent = "RetrieveServiceContent" {} -> ServiceContent;
        read CurrentTime = "CurrentTime" {} -> Timestamp;
    }

    on SessionManager {
        session Login = "Login" {
            user_name "userName": String,
            password: Password,
            locale: Option<String>,
        } -> UserSession;
        session Logout = "Logout" {} -> ();
        read SessionIsActive = "SessionIsActive" needs "Sessions.ValidateSession"
        { session_id "sessionID": String, user_name "userName": String } -> bool;
        session TerminateSession = "TerminateSession" needs "Sessions.TerminateSession"
        { session_id "sessionId": Vec<String> } -> ();
        read AcquireCloneTicket = "AcquireCloneTicket" {} -> String;
        session CloneSession = "CloneSession" { clone_ticket "cloneTicket": String } -> UserSession;
        session AcquireGenericServiceTicket = "AcquireGenericServiceTicket" {
            spec: SessionManagerHttpServiceRequestSpec,
        } -> SessionManagerGenericServiceTicket;
    }
}
