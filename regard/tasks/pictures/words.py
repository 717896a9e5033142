"""How tokens are shown to people."""

END = "∎"
"""How the end of a source is shown."""


def shown(token: str) -> str:
    """The token; a sign for one that is no text."""
    return token or END
