"""Runs the script in the first argument, which may call connect(url)."""

import sys


def connect(url):
    """The ServiceInstance of a logged-in session; log out with pyVim.connect.Disconnect."""
    from urllib.parse import unquote, urlsplit

    from pyVim.connect import SmartConnect

    parts = urlsplit(url)
    plain = parts.scheme == "http"
    return SmartConnect(
        protocol=parts.scheme,
        host=parts.hostname,
        port=parts.port or (80 if plain else 443),
        user=unquote(parts.username or ""),
        pwd=unquote(parts.password or ""),
        disableSslCertValidation=not plain,
    )


# Compiled under a name of its own, so that line numbers in a traceback are the script's.
exec(compile(sys.argv.pop(1), "<script>", "exec"))
