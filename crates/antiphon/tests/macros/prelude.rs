//! The prelude beside a web framework: both are imported whole, and no name is ambiguous.

use antiphon::prelude::*;
use framework::{extract::*, response::*, routing::*, *};

/// The public names of axum 0.8, as of its documentation.
mod framework {
    macro_rules! types {
        ($($name:ident)*) => { $( #[derive(Debug, Default)] pub(crate) struct $name<T = ()>(pub(crate) T); )* };
    }

    types! { BoxError Error Extension Form Json RequestExt Router ServiceExt }

    pub(crate) mod extract {
        types! {
            ConnectInfo DefaultBodyLimit FromRef FromRequest FromRequestParts Host MatchedPath Multipart
            NestedPath OptionalFromRequest OptionalFromRequestParts OriginalUri Path Query RawForm RawPathParams
            RawQuery Request Scheme State WebSocketUpgrade
        }
    }

    pub(crate) mod response {
        types! {
            AppendHeaders ErrorResponse Html IntoResponse IntoResponseParts NoContent Redirect Response
            ResponseParts Result Sse
        }
    }

    pub(crate) mod routing {
        types! { MethodFilter MethodRouter Route }
        pub(crate) fn get() {}
        pub(crate) fn post() {}
    }

    pub(crate) fn serve() {}
    pub(crate) mod body {}
    pub(crate) mod handler {}
    pub(crate) mod http {}
    pub(crate) mod middleware {}
}

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Database {
    region: String,
}

/// Orders a database.
#[tool]
async fn order(ctx: &Ctx, cloud: SharedState<String>) -> antiphon::Result<StructuredJson<Database>> {
    let Region { region } = ctx.elicit("Which region?").await?;
    Ok(StructuredJson(Database { region: format!("{}{region}", *cloud) }))
}

/// Each name of the framework, used without its path.
type Names = (
    (BoxError, Error, Extension, Form, Json, RequestExt, Router, ServiceExt),
    (ConnectInfo, DefaultBodyLimit, FromRef, FromRequest, FromRequestParts, Host, MatchedPath, Multipart),
    (NestedPath, OptionalFromRequest, OptionalFromRequestParts, OriginalUri, Path, Query, RawForm),
    (RawPathParams, RawQuery, Request, Scheme, State, WebSocketUpgrade, AppendHeaders, ErrorResponse, Html),
    (IntoResponse, IntoResponseParts, NoContent, Redirect, Response, ResponseParts, Sse),
    (MethodFilter, MethodRouter, Route, Result<()>),
);

#[test]
fn names_of_the_prelude_and_of_axum_are_disjoint() {
    let _: Names = Names::default();
    get();
    post();
    serve();
    let server: Server =
        Server::builder("databases", "1.0").state(String::from("eu-")).tool(order).build().unwrap();
    let (_service, _client): (HttpService, ClientBuilder) =
        (HttpService::new(server, HttpOptions::default()), Client::builder("c", "1"));
}
