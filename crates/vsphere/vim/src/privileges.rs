//! Asking what the session may do, without trying it.

use roost_vim_wire::MoRef;
use roost_vim_wire::methods::HasPrivilegeOnEntities;
use roost_vim_wire::types::UserSession;

use crate::{CallError, Observer};

/// The privileges that the session does not have on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    pub object: MoRef,
    pub privileges: Vec<String>,
}

impl Observer {
    /// Which of these privileges the session lacks, object by object, in the order asked for. One call, and one read for the session's key.
    pub async fn lacking_privileges(
        &self,
        objects: &[MoRef],
        privileges: &[&str],
    ) -> Result<Vec<Lacking>, CallError> {
        let content = self.content();
        let manager =
            |found: &Option<MoRef>, manager| found.clone().ok_or(CallError::NoManager { manager });
        let sessions = manager(&content.session_manager, "session manager")?;
        let this = manager(&content.authorization_manager, "authorization manager")?;
        let mut key = self.session_key(&sessions).await?;
        if key.is_none() {
            // A session that has ended reads as nothing. Any other read notices, and renews it.
            self.properties(&content.root_folder, &["name"]).await?;
            key = self.session_key(&sessions).await?;
        }
        let no_session = CallError::NoManager { manager: "record of the session" };
        let session_id = key.ok_or(no_session)?;
        let ask = HasPrivilegeOnEntities {
            this,
            entity: objects.to_vec(),
            session_id,
            priv_id: privileges.iter().map(ToString::to_string).collect(),
        };
        let told = self.read(&ask).await?;
        let lacking = told.into_iter().map(|on| Lacking {
            object: on.entity,
            privileges: on
                .priv_availability
                .into_iter()
                .filter(|known| !known.is_granted)
                .map(|known| known.priv_id)
                .collect(),
        });
        Ok(lacking.collect())
    }

    async fn session_key(&self, sessions: &MoRef) -> Result<Option<String>, CallError> {
        let read = self.properties(sessions, &["currentSession"]).await?;
        Ok(read.data::<UserSession>("currentSession").map(|session| session.key.clone()))
    }
}
