//! Sends requests in the way of the server's era.

use crate::{
    request::{
        fault::{RequestFault, common_version, supported},
        spec::{BodyWriter, RequestSpec},
    },
    session::{
        connection::{Connection, EraState},
        verdict::discover,
    },
    transport::ServerReply,
};
use antiphon_wire::{ErrorCode, Implementation, Meta, method};
use serde::Deserialize;
use serde_json::value::RawValue;

impl Connection {
    /// Sends a request and returns its result. Sends it once more if the server names another version that is supported
    /// here.
    pub(crate) async fn request(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        let result = self.request_in_common_version(spec, write).await;
        result.map_err(|fault| self.with_own_versions(fault))
    }

    /// Adds the versions of the mode to a fault of versions.
    fn with_own_versions(&self, fault: RequestFault) -> RequestFault {
        fault.with_own_versions(&self.mode.versions(self.transport.sessions().is_some()))
    }

    async fn request_in_common_version(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        // > The client **SHOULD** select a mutually supported version from the `supported` list and retry the request,
        // > or surface an error to the user if no compatible version exists.
        let reply = match self.send(spec, write).await? {
            Err(error) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                let theirs = supported(&error);
                match common_version(theirs.iter().map(String::as_str)).filter(|_| self.may_change_version())
                {
                    Some(version) => {
                        self.core.change_version(version);
                        self.send(spec, write).await?
                    }
                    None if Box::pin(self.follow_to_session(&theirs)).await? => {
                        self.send(spec, write).await?
                    }
                    None => Err(error),
                }
            }
            reply => reply,
        };
        let result = reply.map_err(|error| RequestFault::server(error, self.core.handlers.declared))?;
        if let Some(info) = server_info(&result) {
            self.core.known().info = Some(info);
        }
        Ok(result)
    }

    async fn send(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        if self.is_modern() {
            self.send_modern(spec, write).await
        } else {
            Box::pin(self.send_by_era(spec, write)).await
        }
    }

    /// Detects the era if it is unknown, and opens a session if a legacy server has none.
    pub(crate) async fn settle(&self) -> Result<EraState, RequestFault> {
        if let EraState::Unknown = self.era_state() {
            let spec = RequestSpec::single(method::DISCOVER, self.core.bounds.leg_timeout);
            let reply = self.send_by_era(&spec, &discover).await;
            let reply = reply.map_err(|fault| self.with_own_versions(fault))?;
            if let (EraState::Unknown, Err(error)) = (self.era_state(), reply) {
                return Err(RequestFault::server(error, self.core.handlers.declared));
            }
        }
        match self.era_state() {
            EraState::Legacy(session) if session.is_over() => self.drop_session(&session),
            EraState::Ended => {}
            other => return Ok(other),
        }
        self.session().await.map(EraState::Legacy)
    }
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
}

/// The identity of the server, which any result may hold.
fn server_info(result: &RawValue) -> Option<Implementation> {
    let meta = serde_json::from_str::<WithMeta<'_>>(result.get()).ok()?.meta?;
    serde_json::from_str::<Meta>(meta.get()).ok()?.server_info()
}
