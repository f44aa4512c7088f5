//! Reading of messages that are not quite those of the specification. A client reads them so; nothing is written so.
//!
//! Each rule has one place. A rule changes no name, identifier, key, URI or choice (`enum`, `const`), because these go back to the
//! peer.
//!
//! | rule | place | peers that need it |
//! |---|---|---|
//! | half of a surrogate pair in a text is U+FFFD | [`repaired`] | JavaScript servers that cut a text with `slice`: OpenClaw, technocore-chat |
//! | an entry of a list that does not decode is left out | [`page`] | servers with one bad tool, seen with Claude Code, mastra, neuro-san and the MCP server of GitLab |
//! | `null` for a `result` beside an `error` or a `method`, and for the `id` of a notification, is absent | [`parse`] | .NET and Python, with one type for all messages |
//! | `null` for an optional array or object, a list or `resultType` is absent | `or_default` | .NET and Java: data-api-builder, OpenLiberty, aj-mcp; the MCP server of Roblox Studio |
//! | `{}` for a list without entries | `list` | Lua, which has one type for both: mcphub.nvim |
//! | a cursor and a TTL in the other of text and number | `cursor`, [`Ttl`](crate::Ttl) | Python and PHP, whose cursors are offsets |
//! | `[]` for an object without members | [`parse`] for `params` and `result`; `optional_object_or_empty`, `members_or_empty`, `capabilities` | PHP: aiquila, bricks-mcp, novamira, the MCP schema for PHP |
//! | annotations and icons that do not decode are left out | `annotations`, `icons` | PHP (`[]`), texts in the place of booleans |
//! | `sizes` of an icon as one text | `sizes` | servers of the drafts before 2025-11-25, GitHub Copilot's command line |
//! | a content block that does not decode is a block of an unknown type | [`ContentBlock`](crate::ContentBlock) | servers with `null` for a required text |
//! | a version of a server that is no text is empty | [`InitializeResult`](crate::InitializeResult) | .NET, whose assemblies may have none |
//! | one question of a round that cannot be read is an [`UnknownAsk`](crate::UnknownAsk) | [`InputRequests`](crate::InputRequests) | JavaScript servers that cut a choice of an `enum`; servers of later revisions |
//! | `inputRequests` without entries in a final result is absent | [`Outcome`](crate::Outcome) | .NET and PHP, which write each member of a type |
//! | `1`, `0`, `"true"` and `"false"` for a boolean that decides something | `flag` | PHP, Python and SQLite, whose booleans are numbers or texts |
//! | the code of an error as a text or as a float; `data` that does not decode is left out | [`parse`] | PHP, whose `getCode` may be a text; JavaScript and Lua, whose numbers are floats |
//! | the id `1.0` of a response to the request 1 | [`parse`] | JavaScript and GDScript, whose numbers are floats: Godot-MCP-Native |
//! | the id `"1"` of a response to the request 1 | [`RequestId::text_as_number`](crate::RequestId::text_as_number) | servers in Python and C: python-sdk, codebase-memory-mcp |

mod entries;
mod members;
mod surrogates;

pub use entries::{LeftOut, LeftOutEntry, page};
pub(crate) use members::{
    annotations, capabilities, cursor, flag, icons, list, members_or_empty, optional_object_or_empty,
    or_default, sizes,
};
pub use surrogates::repaired;
pub(crate) use surrogates::{all_replaced, has_half};

use crate::{Incoming, Unreadable};

/// Reads one message of a server. Call [`repaired`] before.
///
/// Other than [`Incoming::parse`], the function accepts `[]` for `params` and for a result without members, `null` for a `result`
/// beside an `error` or a `method` and for the id of a notification, the id of a response as a float, and the code of an error as a text or as a float.
///
/// # Errors
/// The same as those of [`Incoming::parse`].
pub fn parse(message: &[u8]) -> Result<Incoming<'_>, Unreadable> {
    Incoming::read(message, true)
}
