//! Functions of up to sixteen parameters.

/// Implements a trait with a type parameter for the shape of a function, for all functions; `$body` is the content of
/// the impl. The shape is the function's type: without it, the impls would overlap.
macro_rules! for_functions {
    ($trait:ident, $future:ident, $body:tt) => {
        $crate::define::shapes::for_functions! { @each $trait, $future, $body,
            () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E G) (A B C D E G H) (A B C D E G H I)
            (A B C D E G H I J) (A B C D E G H I J K) (A B C D E G H I J K L) (A B C D E G H I J K L M)
            (A B C D E G H I J K L M N) (A B C D E G H I J K L M N O) (A B C D E G H I J K L M N O P)
            (A B C D E G H I J K L M N O P Q)
        }
    };
    (@each $trait:ident, $future:ident, $body:tt, $($shape:tt)*) => {
        $( $crate::define::shapes::for_functions! { @one $trait, $future, $body, $shape } )*
    };
    (@one $trait:ident, $future:ident, { $($body:tt)* }, ($($a:ident)*)) => {
        #[diagnostic::do_not_recommend]
        impl<F, R, $($a),*> $trait<fn($($a),*) -> R> for F
        where
            F: FnOnce($($a),*) -> R + Send + Sync + 'static,
            R: $future,
        {
            $($body)*
        }
    };
}
pub(crate) use for_functions;
