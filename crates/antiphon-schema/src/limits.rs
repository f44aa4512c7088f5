//! The limits on schemas, on values, and on the work of a validation.

/// The maximum JSON nesting of a schema. Compilation recurses along the nesting.
pub(super) const MAX_SCHEMA_DEPTH: usize = 96;
/// The approximate maximum size of a schema's text, in bytes.
pub(super) const MAX_SCHEMA_SIZE: usize = 512 * 1024;
/// The maximum number of subschemas.
pub(super) const MAX_SUBSCHEMAS: usize = 8_192;
/// The maximum number of distinct regular expressions. Each may use up to the last of [`PATTERN_SIZES`].
pub(super) const MAX_PATTERNS: usize = 128;
/// The maximum length of all regular expressions of one schema, in bytes. Compilation takes up to a microsecond for each byte
/// and state, and the validator compiles an expression for each of [`PATTERN_SIZES`] until one suffices.
pub(super) const MAX_PATTERN_BYTES: usize = 16 * 1024;
/// The size limits for one compiled regular expression, in bytes. The smallest sufficient one is used. The engine's time is
/// linear in the text and at worst linear in this size.
pub(super) const PATTERN_SIZES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, 1 << 20];
/// The size of a compiled regular expression that costs one step per byte of text: a state has about 32 bytes, and one step
/// takes about as long as 32 states.
pub(super) const PATTERN_BYTES_PER_STEP: usize = 1 << 10;
/// The maximum JSON nesting of a value.
pub(super) const MAX_INSTANCE_DEPTH: usize = 128;
/// The maximum number of nested schemas in one validation, from the root. Both validation and the drop of a compiled schema
/// are recursive.
pub(super) const MAX_CHAIN: u32 = 400;
/// The maximum number of nested schemas in compilation. Each takes about 5 KiB of stack in an unoptimized build.
pub(super) const MAX_COMPILED: u32 = 220;
/// The number of nested reference targets that the validator compiles recursively; it defers deeper ones.
pub(super) const NESTED_COMPILATIONS: u32 = 9;
/// The maximum work of one validation, in weighted visits of one schema at one value. A visit takes tens of nanoseconds.
pub(super) const MAX_WORK: u64 = 8_000_000;
/// The maximum work of a validation that lists its faults, in visits. The validator collects all faults, about a hundred
/// bytes each, and repeats work that a plain verdict does once.
pub(super) const MAX_WORK_WITH_FAULTS: u64 = 400_000;
