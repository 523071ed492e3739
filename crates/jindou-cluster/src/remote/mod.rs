//! Reading another server's lists.
