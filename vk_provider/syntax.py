"""How Kubernetes spells names and labels, as patterns for a full match.

Source: k8s.io/apimachinery/pkg/util/validation. Fed by nobody; feeds whoever reads a name that a
person wrote: configuration, flags, providers' blocks.
"""

from __future__ import annotations

DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
"""Of namespaces and Services."""
DNS_LABEL_WORDS = "at most 63 lower-case letters, digits and -"
DNS_SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
"""Of most other objects."""
_WORD = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
QUALIFIED_NAME = rf"({DNS_SUBDOMAIN}/)?{_WORD}"
"""Of keys of labels and taints, and of resources."""
LABEL_VALUE = rf"({_WORD})?"
