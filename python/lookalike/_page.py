"""Self-contained pages."""

from __future__ import annotations

__all__ = ["Page"]


class Page(str):
    """The text of an HTML page. A notebook shows it in a frame, :meth:`open` in the browser."""

    __slots__ = ()
    __module__ = "lookalike"

    def open(self) -> None:
        """Show the page in the browser. It is written to a temporary file that is not removed."""
        import tempfile
        import webbrowser
        from pathlib import Path

        file = Path(tempfile.mkdtemp(prefix="lookalike-"), "page.html")
        file.write_text(self, encoding="utf-8")
        webbrowser.open(file.as_uri())

    def __repr__(self) -> str:
        return f"<lookalike.Page of {len(self):,} characters>"

    def _repr_html_(self) -> str:
        # Its script runs, but cannot access the notebook.
        return framed(self, "allow-scripts")


def framed(page: str, allowed: str = "") -> str:
    """Return a page in a separate frame, so that neither its style nor the contents of texts can affect the notebook."""
    import html

    return (
        # Never with `allow-same-origin`: together with scripts it would disable the sandbox.
        f'<iframe sandbox="{allowed}" style="width:100%;height:30em;border:0" srcdoc="'
        f'{html.escape(page, quote=True)}"></iframe>'
    )
