//! Messages of extensions: requests and notifications of any method, and the settings of the server.

use crate::{
    call::errors::ClientError,
    client::Client,
    lists::read,
    request::{DeclaredExtensions, RequestSpec, fault::RequestFault},
    session::EraState,
    transport::OutgoingNotification,
};
use antiphon_wire::{
    Meta, OutcomeFault, RequestId, TASKS_EXTENSION,
    extension::{ExtensionId, InvalidExtension, check_method},
    method, write_notification, write_request,
};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned, ser::Error as _};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use std::{borrow::Cow, collections::BTreeMap};

/// Extensions.
impl Client {
    /// Sends a request of an extension, and reads its result. `params` is written as an object, `()` as an empty one; the client adds its
    /// `_meta`. [`ClientBuilder::extension`](crate::ClientBuilder::extension) declares the extension.
    ///
    /// ```
    /// # async fn search(client: antiphon::client::Client) -> Result<(), antiphon::client::ClientError> {
    /// #[derive(serde::Deserialize)]
    /// struct Found {
    ///     titles: Vec<String>,
    /// }
    ///
    /// let found: Found = client.request("com.example/search.query", serde_json::json!({ "text": "sea" })).await?;
    /// # drop(found.titles); Ok(()) }
    /// ```
    ///
    /// `R` reads the whole result, `resultType` and `_meta` included. A client that declares no extension knows only the `resultType`
    /// `complete`; otherwise `R` decides about others, except for those of the core protocol:
    ///
    /// > The set of supported `ResultType` values **MUST** be created from the set defined in the core protocol and include any additional
    /// > values of supported extensions that are advertised via capabilities.
    ///
    /// # Errors
    /// [`ClientError`]. A method of the core protocol is not sent: it has a function of its own.
    pub async fn request<R: DeserializeOwned>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl Serialize,
    ) -> Result<R, ClientError> {
        let method = method.into();
        let params = Params::new(&method, &params);
        let answered = async {
            let params = params?;
            let spec = RequestSpec::single(method.clone(), self.core().bounds.leg_timeout);
            let write = |id: &RequestId, meta| write_request(id, &method, &params.with_meta(meta));
            let result = self.connection().request(&spec, &write).await?;
            self.check_type(&result)?;
            read(&result)
        };
        answered.await.map_err(|fault: RequestFault| self.error(method.clone(), fault))
    }

    /// Sends a notification of an extension. Returns once it is written, or over HTTP once the server has accepted it. `params` is as in
    /// [`request`](Self::request). It passes no layers of the client.
    ///
    /// # Errors
    /// [`ClientError`]; over HTTP also if the server did not accept the notification ([`ClientError::server_error`]).
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl Serialize,
    ) -> Result<(), ClientError> {
        let method = method.into();
        let params = Params::new(&method, &params);
        let sent = async {
            let params = params?;
            // The way of a notification depends on the era.
            if let EraState::Legacy(session) = self.connection().settle().await? {
                let message = write_notification(&method, &params.with_meta(Meta::default()));
                return session.send(message.map_err(RequestFault::Unwritable)?).await;
            }
            let core = self.core();
            let version = core.known().version.clone();
            let meta = Meta::for_request(&version, Some(&core.info), &core.capabilities);
            let body =
                write_notification(&method, &params.with_meta(meta)).map_err(RequestFault::Unwritable)?;
            let notification = OutgoingNotification::new(method.clone(), version, body);
            let limit = core.bounds.leg_timeout;
            let sending = tokio::time::timeout(limit, self.connection().transport.notify(notification));
            sending.await.map_err(|_elapsed| RequestFault::Timeout(limit))?.map_err(RequestFault::Transport)
        };
        sent.await.map_err(|fault: RequestFault| self.error(method.clone(), fault))
    }

    /// Reads the settings that the server declares for an extension; `None` if it does not declare the extension. Sends `server/discover`
    /// if the capabilities of the server are not known yet.
    ///
    /// # Errors
    /// [`ClientError`]; also if the settings do not fit the type.
    pub async fn server_extension<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, ClientError> {
        let capabilities = match self.capabilities() {
            Some(known) => known,
            None => self.discover().await?.capabilities,
        };
        let Some(settings) = capabilities.extension(id) else { return Ok(None) };
        let read = T::deserialize(settings).map(Some);
        read.map_err(|fault| {
            let fault = OutcomeFault::Malformed(fault);
            self.error(method::DISCOVER, RequestFault::Result { fault, ask: None })
        })
    }

    /// > A `resultType` of any value unrecognized by the client **MUST** be considered invalid.
    fn check_type(&self, result: &RawValue) -> Result<(), RequestFault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed {
            #[serde(default)]
            result_type: Option<String>,
        }
        let Typed { result_type } = read(result)?;
        match result_type {
            None => Ok(()),
            Some(name) if name == "complete" => Ok(()),
            Some(name)
                if !matches!(&*name, "input_required" | "task") && !self.core().extensions.0.is_empty() =>
            {
                Ok(())
            }
            Some(name) => {
                Err(RequestFault::Result { fault: OutcomeFault::UnknownResultType(name), ask: None })
            }
        }
    }
}

impl DeclaredExtensions {
    /// Adds an extension.
    pub(crate) fn add(&mut self, id: &str, settings: impl Serialize) -> Result<(), InvalidExtension> {
        let id = ExtensionId::new(id)?;
        let error = |text: String| Err(InvalidExtension::new(format!("the extension `{id}`: {text}")));
        if id.as_str() == TASKS_EXTENSION {
            return error("`ClientBuilder::tasks` declares it".to_owned());
        }
        if self.0.iter().any(|(known, _)| *known == id) {
            return error("it is declared twice".to_owned());
        }
        match serde_json::to_value(settings) {
            Ok(Value::Object(settings)) => {
                self.0.push((id, settings));
                Ok(())
            }
            Ok(Value::Null) => {
                self.0.push((id, Map::new()));
                Ok(())
            }
            Ok(_) => error("its settings must be an object".to_owned()),
            Err(fault) => error(format!("its settings cannot be written as JSON: {fault}")),
        }
    }
}

/// The params of a message, as text.
struct Params(Box<RawValue>);

/// Params with the metadata of the client.
struct WithMeta<'a> {
    params: &'a RawValue,
    meta: Meta,
}

impl Params {
    /// Writes params, if the method is one of an extension.
    fn new(method: &str, params: &impl Serialize) -> Result<Self, RequestFault> {
        check_method(method).map_err(RequestFault::Extension)?;
        let text = to_raw_value(params).map_err(RequestFault::Unwritable)?;
        let text = if text.get() == "null" { to_raw_value(&Map::new()) } else { Ok(text) };
        let text = text.map_err(RequestFault::Unwritable)?;
        if !text.get().starts_with('{') {
            return Err(RequestFault::Unwritable(serde_json::Error::custom("params must be an object")));
        }
        Ok(Self(text))
    }

    fn with_meta(&self, meta: Meta) -> WithMeta<'_> {
        WithMeta { params: &self.0, meta }
    }
}

impl Serialize for WithMeta<'_> {
    /// The members of a `_meta` of the program stay, beside those of the protocol.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members: BTreeMap<String, Cow<'_, RawValue>> =
            serde_json::from_str::<BTreeMap<String, &RawValue>>(self.params.get())
                .map_err(S::Error::custom)?
                .into_iter()
                .map(|(name, value)| (name, Cow::Borrowed(value)))
                .collect();
        let own = members.remove("_meta").and_then(|own| serde_json::from_str::<Meta>(own.get()).ok());
        let mut meta = own.unwrap_or_default();
        meta.0.extend(self.meta.0.clone());
        if !meta.is_empty() {
            members.insert("_meta".to_owned(), Cow::Owned(to_raw_value(&meta).map_err(S::Error::custom)?));
        }
        members.serialize(serializer)
    }
}
