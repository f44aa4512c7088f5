//! Several kinds of content in the result of one tool: tuples of what can stand alone.

use crate::call::handler::{HandlerOutcome, IntoOutcome, Json, Structured};
use antiphon_wire::{
    AudioContent, CallToolResult, ContentBlock, ImageContent, ResourceContents, ResourceLink, TextContent,
};
use serde_json::Value;

/// A part of a tool's result: a text, an image, a link to a resource, the contents of a resource; a list of blocks; or an `Option` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a tool's result here",
    note = "a part is a String, ImageContent, AudioContent, ResourceLink, ResourceContents, ContentBlock, Vec<ContentBlock>, or an Option of these; a Json<T> comes first"
)]
pub trait IntoContent {
    /// Adds the blocks of this part.
    fn add_to(self, content: &mut Vec<ContentBlock>);
}

impl<C: IntoContent> IntoContent for Option<C> {
    fn add_to(self, content: &mut Vec<ContentBlock>) {
        if let Some(part) = self {
            part.add_to(content);
        }
    }
}

impl IntoContent for Vec<ContentBlock> {
    fn add_to(mut self, content: &mut Vec<ContentBlock>) {
        content.append(&mut self);
    }
}

macro_rules! one_block {
    ($($part:ty)*) => { $(
        impl IntoContent for $part {
            fn add_to(self, content: &mut Vec<ContentBlock>) {
                content.push(self.into());
            }
        }
    )* };
}

one_block! {
    String &'static str ContentBlock TextContent ImageContent AudioContent ResourceLink ResourceContents
}

/// The first part of a result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the first part of a tool's result",
    note = "the first part is a Json<T>, String, ImageContent, AudioContent, ResourceLink, ResourceContents, ContentBlock, Vec<ContentBlock>, or an Option of one of these blocks"
)]
pub trait Begins {
    /// Returns the result with this part only.
    fn begin(self) -> HandlerOutcome<CallToolResult>;

    /// Returns the schema of the structured result, if this is one.
    fn schema() -> Option<Value> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<C: IntoContent> Begins for C {
    fn begin(self) -> HandlerOutcome<CallToolResult> {
        let mut content = Vec::new();
        self.add_to(&mut content);
        HandlerOutcome::Complete(CallToolResult::new(content))
    }
}

/// Its text is the first block, for clients that do not read structured results.
impl<T: Structured> Begins for Json<T> {
    fn begin(self) -> HandlerOutcome<CallToolResult> {
        self.into_outcome()
    }

    fn schema() -> Option<Value> {
        Self::output_schema()
    }
}

macro_rules! tuples {
    ($(($($part:ident)*))*) => { $(
        #[diagnostic::do_not_recommend]
        impl<First: Begins, $($part: IntoContent),*> IntoOutcome<CallToolResult> for (First, $($part),*) {
            fn into_outcome(self) -> HandlerOutcome<CallToolResult> {
                #[allow(non_snake_case, reason = "the variables have the names of their types")]
                let (first, $($part),*) = self;
                let mut outcome = first.begin();
                if let HandlerOutcome::Complete(result) = &mut outcome {
                    $( $part.add_to(&mut result.content); )*
                }
                outcome
            }

            fn output_schema() -> Option<Value> {
                First::schema()
            }
        }
    )* };
}

tuples! { (A) (A B) (A B C) }
